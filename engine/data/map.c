// SPDX-License-Identifier: Apache-2.0
#include "data/map.h"

#include <inttypes.h>
#include <string.h>

#include "base/narrow.h"
#include "data/cache.h"
#include "data/pixels.h"

enum { SCRATCH_ALIGNMENT = 64 };

// Where the parts of a thread's scratch begin: what is fetched, what the source decodes with, the image, the same again to augment
// it in, the floats that are to be converted, and the sample as a cache takes it.
typedef struct map_layout {
    uint64_t scratch, image, spare, floats, packed, bytes;
} map_layout;

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SCRATCH_ALIGNMENT - 1) & ~(uint64_t)(SCRATCH_ALIGNMENT - 1);
}

// Images are written as they travel; what a source writes itself takes another type afterwards.
static bool is_converted(const data_map *m, uint32_t slot)
{
    return m->source->ops->decode == NULL && m->to.slot[slot].type != m->source->form.slot[slot].type;
}

static pixels_type pixels_type_of(data_type type)
{
    return type == DATA_F16    ? PIXELS_F16
           : type == DATA_BF16 ? PIXELS_BF16
           : type == DATA_F64  ? PIXELS_F64
                               : PIXELS_F32;
}

static void write_pixels(const data_map *m, const uint8_t *image, void *to)
{
    const uint32_t values = data_source_values(m->source);
    if (m->to.slot[0].type == DATA_BYTES) {
        memcpy(to, image, values);
    } else {
        pixels_write(to, pixels_type_of(m->to.slot[0].type), image, values, m->past_caches);
    }
}

static void convert(data_type type, void *to, const float *from, uint64_t count)
{
    double *wide = to;
    if (type == DATA_F16) {
        narrow_to_f16(to, from, count);
    } else if (type == DATA_BF16) {
        narrow_to_bf16(to, from, count);
    }
    for (uint64_t k = 0; k < count && type == DATA_F64; k++) {
        wide[k] = (double)from[k];
    }
}

static map_layout layout_of(const data_map *m)
{
    const data_source *s = m->source;
    map_layout at = {.scratch = aligned(s->room_bytes)};
    at.image = at.scratch + aligned(s->scratch_bytes);
    const uint64_t image = s->ops->decode != NULL ? aligned(data_source_values(s)) : 0;
    at.spare = at.image + image;
    at.floats = at.spare + (m->augment.list.count > 0 ? image : 0);
    at.packed = at.floats;
    for (uint32_t k = 0; k < s->form.count; k++) {
        at.packed += is_converted(m, k) ? aligned(data_slot_bytes(&s->form.slot[k])) : 0;
    }
    at.bytes = at.packed + (m->has_made ? aligned(data_form_packed_bytes(&m->to)) : 0);
    return at;
}

uint64_t data_map_scratch_bytes(const data_map *m)
{
    return layout_of(m).bytes;
}

// Which of the copies the epoch takes, from 1; 0: the original.
static uint32_t copy_of(const data_map *m, const data_ask *ask)
{
    return m->copies != NULL && ask->set == DATA_TRAIN ? (uint32_t)(ask->epoch % (m->copy_count + 1)) : 0;
}

static void write_image(const data_map *m, const uint8_t *image, int32_t label, const data_room *to)
{
    write_pixels(m, image, to->slot[0]);
    *(int32_t *)to->slot[1] = label;
}

// A sample that is being made.
typedef struct making {
    const data_map *m;
    const data_ask *ask;
    map_layout at; // in scratch
    uint8_t *scratch;
} making;

static const uint8_t *augmented(const making *k, uint8_t *image)
{
    const pipeline_info *info = &k->m->source->info;
    const image_size size = {info->height, info->width, info->channels};
    const uint64_t epoch = k->m->augment_once ? 0 : k->ask->epoch;
    return k->ask->set != DATA_TRAIN || k->m->copies != NULL
               ? image
               : data_augment_image(&k->m->augment, epoch, k->ask->sample, &size, image,
                                    k->scratch + k->at.spare);
}

// Losses of logits take targets from 0 to 1: beyond them they have no least value, and powers of them are no numbers.
static hr_status check_binary(const making *k, const data_raw *raw, const data_room *to, hr_err *err)
{
    const data_source *s = k->m->source;
    for (uint32_t n = 0; n < s->form.count; n++) {
        const float *values = to->slot[n];
        const uint64_t count = s->form.slot[n].binary ? data_slot_values(&s->form.slot[n]) : 0;
        for (uint64_t i = 0; i < count; i++) {
            if (!(values[i] >= 0 && values[i] <= 1)) {
                return HR_FAIL(err, DATA, "%s, %s sample %u: needed a label from 0 to 1, had %g",
                               s->info.label, raw->set == DATA_EVAL ? "held-out" : "training", k->ask->sample,
                               (double)values[i]);
            }
        }
    }
    return HR_OK;
}

static hr_status write_wide(const making *k, const data_raw *raw, const data_room *to, hr_err *err)
{
    const data_map *m = k->m;
    const data_source *s = m->source;
    uint8_t *scratch = k->scratch + k->at.scratch, *image = k->scratch + k->at.image;
    if (s->ops->write != NULL) {
        HR_TRY(s->ops->write(s, raw, scratch, to, err));
        return check_binary(k, raw, to, err);
    }
    HR_TRY(s->ops->decode(s, raw, scratch, image, err));
    write_image(m, augmented(k, image), raw->label, to);
    return HR_OK;
}

hr_status data_map_fetch(const data_map *m, const data_ask *ask, uint8_t *scratch, data_raw *out, hr_err *err)
{
    data_cache *cache = ask->set == DATA_TRAIN ? m->raw : NULL;
    bool found = false;
    if (cache != NULL) {
        HR_TRY(data_cache_find(cache, ask->sample, scratch, &found, out, err));
    }
    if (!found && ask->set == DATA_TRAIN && m->slices != NULL) {
        HR_TRY(data_cache_find(m->slices, ask->sample, scratch, &found, out, err));
        if (!found) { // with m->bad alone
            return HR_FAIL(err, DATA,
                           "sample %u: needed one that could be read when slices were made, had none",
                           ask->sample);
        }
        return cache == NULL ? HR_OK : data_cache_keep(cache, ask->sample, out, err);
    }
    if (!found) {
        HR_TRY(data_source_fetch(m->source, ask->set, ask->sample, scratch, out, err));
    }
    return found || cache == NULL ? HR_OK : data_cache_keep(cache, ask->sample, out, err);
}

// A sample is converted while it lies in the near caches.
static hr_status make(const making *of, const data_raw *raw, const data_room *to, hr_err *err)
{
    const data_map *m = of->m;
    data_room wide = *to;
    uint8_t *floats = of->scratch + of->at.floats;
    for (uint32_t k = 0; k < m->to.count; k++) {
        if (is_converted(m, k)) {
            wide.slot[k] = floats;
            floats += aligned(data_slot_bytes(&m->source->form.slot[k]));
        }
    }
    HR_TRY(write_wide(of, raw, &wide, err));
    for (uint32_t k = 0; k < m->to.count; k++) {
        if (is_converted(m, k)) {
            convert(m->to.slot[k].type, to->slot[k], wide.slot[k], data_slot_values(&m->to.slot[k]));
        }
    }
    if (m->answers != NULL) {
        const uint32_t last = m->to.count - 1;
        memcpy(to->slot[last], m->answers + of->ask->sample * data_slot_values(&m->to.slot[last]),
               data_slot_bytes(&m->to.slot[last]));
    }
    return HR_OK;
}

static data_cache *made_of(const data_map *m, const data_ask *ask)
{
    return ask->set == DATA_TRAIN ? m->made : NULL;
}

hr_status data_map_make(const data_map *m, const data_ask *ask, const data_raw *raw, uint8_t *scratch,
                        const data_room *to, hr_err *err)
{
    const making now = {m, ask, layout_of(m), scratch};
    data_cache *cache = made_of(m, ask);
    data_raw asked = *raw;
    asked.set = ask->set;
    asked.sample = ask->sample;
    HR_TRY(make(&now, &asked, to, err));
    if (cache == NULL) {
        return HR_OK;
    }
    const data_raw packed = {.bytes = scratch + now.at.packed, .size_bytes = data_form_packed_bytes(&m->to)};
    data_room_pack(&m->to, to, scratch + now.at.packed);
    return data_cache_keep(cache, ask->sample, &packed, err);
}

hr_status data_map_decode(const data_map *m, const data_ask *ask, uint8_t *scratch, data_raw *out,
                          hr_err *err)
{
    const map_layout at = layout_of(m);
    data_raw raw;
    HR_TRY(data_map_fetch(m, ask, scratch, &raw, err));
    raw.set = ask->set;
    raw.sample = ask->sample;
    *out = (data_raw){
        .bytes = scratch + at.image, .size_bytes = data_source_values(m->source), .label = raw.label};
    return m->source->ops->decode(m->source, &raw, scratch + at.scratch, scratch + at.image, err);
}

bool data_map_keeps(const data_map *m, const data_ask *ask)
{
    const data_cache *cache = made_of(m, ask);
    return copy_of(m, ask) > 0 || (cache != NULL && data_cache_has(cache, ask->sample));
}

// What is kept: *found, and written.
static hr_status write_kept(const data_map *m, const data_ask *ask, uint8_t *scratch, const data_room *to,
                            bool *found, hr_err *err)
{
    const map_layout at = layout_of(m);
    const uint32_t copy = copy_of(m, ask);
    data_raw raw;
    if (copy > 0) {
        HR_TRY(data_cache_find(m->copies, ask->sample * m->copy_count + copy - 1, scratch + at.image, found,
                               &raw, err));
        if (!*found) { // with m->bad alone
            return HR_FAIL(err, DATA,
                           "sample %u: needed one that could be read when copies were made, had none",
                           ask->sample);
        }
        write_image(m, raw.bytes, raw.label, to);
        return HR_OK;
    }
    HR_TRY(data_cache_find(m->made, ask->sample, scratch + at.packed, found, &raw, err));
    if (*found) {
        data_room_unpack(&m->to, raw.bytes, to);
    }
    return HR_OK;
}

static hr_status write_asked(const data_map *m, const data_ask *ask, uint8_t *scratch, const data_room *to,
                             hr_err *err)
{
    data_raw raw;
    bool found = false;
    HR_TRY(data_map_keeps(m, ask) ? write_kept(m, ask, scratch, to, &found, err) : HR_OK);
    if (found) {
        return HR_OK;
    }
    HR_TRY(data_map_fetch(m, ask, scratch, &raw, err));
    return data_map_make(m, ask, &raw, scratch, to, err);
}

// The next one in file order that can be read.
static hr_status write_another(const data_map *m, const data_ask *ask, uint8_t *scratch, const data_room *to,
                               hr_err *err)
{
    const uint64_t samples = data_source_samples(m->source, ask->set);
    hr_status status = HR_DATA;
    data_ask other = *ask;
    for (uint64_t k = 1; k < samples && status == HR_DATA; k++) {
        hr_err failure = {0};
        other.sample = (uint32_t)((ask->sample + k) % samples);
        status = write_asked(m, &other, scratch, to, &failure);
        if (status != HR_OK && status != HR_DATA && err != NULL) {
            *err = failure;
        }
    }
    if (status == HR_DATA) {
        return HR_FAIL(err, DATA, "%s: needed a sample that can be read, had none among %" PRIu64 " (%.200s)",
                       m->source->info.label, samples, m->bad->first.sentence);
    }
    return status;
}

hr_status data_map_write(const data_map *m, const data_ask *ask, uint8_t *scratch, const data_room *to,
                         hr_err *err)
{
    if (m->bad == NULL) {
        const hr_status stopped = write_asked(m, ask, scratch, to, err);
        if (stopped == HR_DATA && err != NULL && err->hint[0] == '\0') {
            hr_err_try(err, "-s pipeline.bad=skip, or mend the file");
        }
        return stopped;
    }
    hr_err failure = {0};
    const hr_status status = write_asked(m, ask, scratch, to, &failure);
    if (status == HR_DATA) {
        data_bad_note(m->bad, &failure);
        atomic_fetch_add_explicit(&m->bad->replaced, 1, memory_order_relaxed);
        return write_another(m, ask, scratch, to, err);
    }
    if (status != HR_OK && err != NULL) {
        *err = failure;
    }
    return status;
}
