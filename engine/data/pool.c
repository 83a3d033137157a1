// SPDX-License-Identifier: Apache-2.0
#include "data/pool.h"

#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"

#define NOT_MISSING UINT32_MAX

typedef struct pool_place {
    uint32_t missing; // its number among the missing, or NOT_MISSING
    int32_t label;
    uint32_t size_bytes; // 0: the map is asked for it, which has it in its cache or has to replace it
} pool_place;

struct data_pool {
    data_map map;
    data_pool_form form;
    uint32_t missing_count;
    uint64_t each_bytes;
    uint8_t *bytes;
    pool_place *place;
    uint32_t *missing;  // places
    uint32_t *number;   // of the sample that is to lie at a place
    uint64_t *epoch_of; // of that sample; NULL: `epoch`
    uint64_t epoch;     // of what was wanted last
};

static uint64_t each_bytes(const data_map *map, bool mapped)
{
    return mapped ? data_form_packed_bytes(&map->to) : map->source->raw_bytes;
}

uint64_t data_pool_bytes(const data_map *map, const data_pool_form *form)
{
    uint64_t bytes;
    const uint64_t entry = DATA_POOL_ENTRY_BYTES + (form->mixes_epochs ? DATA_POOL_EPOCH_BYTES : 0);
    (void)hr_add_bytes(entry, each_bytes(map, form->mapped), &bytes);
    (void)hr_mul_bytes(form->places, bytes, &bytes);
    return bytes;
}

_Static_assert(sizeof(pool_place) + 2 * sizeof(uint32_t) == DATA_POOL_ENTRY_BYTES, "as it is counted");

hr_status data_pool_open(const data_map *map, const data_pool_form *form, data_pool **out, hr_err *err)
{
    const uint32_t places = form->places;
    *out = NULL;
    data_pool *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "shuffle: needed %zu bytes, had less", sizeof *p);
    }
    *p = (data_pool){.map = *map, .form = *form, .each_bytes = each_bytes(map, form->mapped)};
    p->bytes = hr_calloc(places, p->each_bytes);
    p->place = hr_calloc(places, sizeof *p->place);
    p->missing = hr_calloc(places, sizeof *p->missing);
    p->number = hr_calloc(places, sizeof *p->number);
    p->epoch_of = form->mixes_epochs ? hr_calloc(places, sizeof *p->epoch_of) : NULL;
    if (p->bytes == NULL || p->place == NULL || p->missing == NULL || p->number == NULL ||
        (form->mixes_epochs && p->epoch_of == NULL)) {
        const hr_status status =
            HR_FAIL(err, NOMEM, "shuffle buffer of %" PRIu32 " elements: needed %" PRIu64 " bytes, had less",
                    places, data_pool_bytes(map, form));
        hr_err_try(err, "-s pipeline.shuffle_of=indices, or a smaller pipeline.shuffle");
        data_pool_close(p);
        return status;
    }
    for (uint32_t k = 0; k < places; k++) {
        p->place[k].missing = NOT_MISSING;
    }
    *out = p;
    return HR_OK;
}

void data_pool_close(data_pool *p)
{
    if (p != NULL) {
        hr_free(p->bytes);
        hr_free(p->place);
        hr_free(p->missing);
        hr_free(p->number);
        hr_free(p->epoch_of);
        hr_free(p);
    }
}

void data_pool_want(data_pool *p, uint32_t place, const data_ask *ask)
{
    p->number[place] = ask->sample;
    p->epoch = ask->epoch;
    if (p->epoch_of != NULL) {
        p->epoch_of[place] = ask->epoch;
    }
    if (p->place[place].missing == NOT_MISSING) {
        p->place[place].missing = p->missing_count;
        p->missing[p->missing_count++] = place;
    }
}

bool data_pool_is_missing(const data_pool *p, uint32_t place)
{
    return p->place[place].missing != NOT_MISSING;
}

void data_pool_forget(data_pool *p)
{
    while (p->missing_count > 0) {
        p->place[p->missing[--p->missing_count]].missing = NOT_MISSING;
    }
}

uint32_t data_pool_missing(const data_pool *p)
{
    return p->missing_count;
}

hr_status data_pool_load(data_pool *p, uint32_t k, uint8_t *scratch, hr_err *err)
{
    const uint32_t at = p->missing[k];
    const data_ask ask = {.set = DATA_TRAIN,
                          .sample = p->number[at],
                          .epoch = p->epoch_of != NULL ? p->epoch_of[at] : p->epoch};
    uint8_t *to = p->bytes + at * p->each_bytes;
    data_raw raw;
    if (p->form.mapped) {
        const data_room room = data_room_packed(&p->map.to, to);
        return data_map_write(&p->map, &ask, scratch, &room, err);
    }
    p->place[at].size_bytes = 0;
    if (data_map_keeps(&p->map, &ask)) {
        return HR_OK;
    }
    hr_err failure = {0};
    const hr_status status = data_map_fetch(&p->map, &ask, scratch, &raw, &failure);
    if (status == HR_DATA && p->map.bad != NULL) {
        return HR_OK; // replaced when it is written
    }
    if (status != HR_OK) {
        if (err != NULL) {
            *err = failure;
        }
        return status;
    }
    memcpy(to, raw.bytes, raw.size_bytes);
    p->place[at].size_bytes = (uint32_t)raw.size_bytes;
    p->place[at].label = raw.label;
    return HR_OK;
}

hr_status data_pool_write(const data_pool *p, uint32_t place, const data_ask *ask, uint8_t *scratch,
                          const data_room *to, hr_err *err)
{
    uint8_t *from = p->bytes + place * p->each_bytes;
    const pool_place *at = &p->place[place];
    if (p->form.mapped) {
        data_room_unpack(&p->map.to, from, to);
        return HR_OK;
    }
    if (at->size_bytes == 0) {
        return data_map_write(&p->map, ask, scratch, to, err);
    }
    const data_raw raw = {.bytes = from, .size_bytes = at->size_bytes, .label = at->label};
    hr_err failure = {0};
    const hr_status status = data_map_make(&p->map, ask, &raw, scratch, to, &failure);
    if (status == HR_DATA && p->map.bad != NULL) {
        return data_map_write(&p->map, ask, scratch, to, err);
    }
    if (status != HR_OK && err != NULL) {
        *err = failure;
    }
    return status;
}
