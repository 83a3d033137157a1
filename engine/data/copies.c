// SPDX-License-Identifier: Apache-2.0
#include "data/copies.h"

#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/workers.h"

// One thread's.
typedef struct maker {
    uint8_t *scratch; // the map's, and two images
    hr_status status;
    hr_err err;
} maker;

typedef struct copying {
    const data_map *map;
    uint32_t copies;
    data_cache *to;
    uint64_t scratch_bytes, image_bytes;
    maker *makers;
} copying;

static data_cache_plan plan_of(const data_source *source, uint32_t copies)
{
    data_cache_plan plan = {.name = "pipeline.augment_copies",
                            .instead = "-s pipeline.augment_copies=0",
                            .samples = data_source_samples(source, DATA_TRAIN) * copies};
    if (!hr_mul_bytes(plan.samples, data_source_values(source), &plan.bytes) || plan.samples > UINT32_MAX) {
        plan.bytes = UINT64_MAX; // no memory holds it
    }
    return plan;
}

uint64_t data_copies_host_bytes(const data_source *source, uint32_t copies)
{
    const data_cache_plan plan = plan_of(source, copies);
    return data_cache_host_bytes(&plan);
}

static hr_status make_variants(const copying *c, uint32_t sample, maker *m, hr_err *err)
{
    const pipeline_info *info = &c->map->source->info;
    const image_size size = {info->height, info->width, info->channels};
    uint8_t *image = m->scratch + c->scratch_bytes, *spare = image + c->image_bytes;
    const data_ask ask = {.set = DATA_TRAIN, .sample = sample};
    data_raw raw;
    HR_TRY(data_map_decode(c->map, &ask, m->scratch, &raw, err));
    for (uint32_t k = 0; k < c->copies; k++) {
        memcpy(image, raw.bytes, c->image_bytes);
        const data_raw variant = {
            .bytes = data_augment_image(&c->map->augment, k + 1, sample, &size, image, spare),
            .size_bytes = c->image_bytes,
            .label = raw.label};
        HR_TRY(data_cache_keep(c->to, sample * c->copies + k, &variant, err));
    }
    return HR_OK;
}

static void make_range(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const copying *c = argument;
    maker *m = &c->makers[worker];
    for (int64_t k = begin; k < end && m->status == HR_OK; k++) {
        hr_err failure = {0};
        m->status = make_variants(c, (uint32_t)k, m, &failure);
        if (m->status == HR_DATA && c->map->bad != NULL) {
            data_bad_note(c->map->bad, &failure);
            m->status = HR_OK; // it has none, and is replaced by one that has
        } else if (m->status != HR_OK) {
            m->err = failure;
        }
    }
}

// What went wrong first, in the order of the samples.
static hr_status make_all(const copying *c, uint32_t threads, hr_err *err)
{
    workers *w = NULL;
    if (threads > 1) {
        HR_TRY(workers_create(threads, &w, err));
    }
    workers_for(w, (int64_t)data_source_samples(c->map->source, DATA_TRAIN), 1, make_range, c);
    workers_destroy(w);
    for (uint32_t k = 0; k < threads; k++) {
        if (c->makers[k].status != HR_OK) {
            if (err != NULL) {
                *err = c->makers[k].err;
            }
            return c->makers[k].status;
        }
    }
    return HR_OK;
}

static hr_status make_with_scratch(copying *c, uint32_t threads, hr_err *err)
{
    const uint64_t each_bytes = c->scratch_bytes + 2 * c->image_bytes;
    uint8_t *scratch = hr_calloc(threads, each_bytes);
    c->makers = hr_calloc(threads, sizeof *c->makers);
    hr_status status = HR_OK;
    if (scratch == NULL || c->makers == NULL) {
        status = HR_FAIL(err, NOMEM, "pipeline.augment_copies: needed %" PRIu64 " bytes, had less",
                         threads * each_bytes);
    }
    for (uint32_t k = 0; k < threads && status == HR_OK; k++) {
        c->makers[k].scratch = scratch + k * each_bytes;
    }
    if (status == HR_OK) {
        status = make_all(c, threads, err);
    }
    hr_free(scratch);
    hr_free(c->makers);
    return status;
}

hr_status data_copies_open(const data_map *map, uint32_t copies, uint32_t threads, data_cache **out,
                           hr_err *err)
{
    const data_cache_plan plan = plan_of(map->source, copies);
    HR_TRY(data_cache_open(&plan, out, err));
    copying c = {.map = map,
                 .copies = copies,
                 .to = *out,
                 .scratch_bytes = data_map_scratch_bytes(map),
                 .image_bytes = data_source_values(map->source)};
    const hr_status status = make_with_scratch(&c, threads, err);
    if (status != HR_OK) {
        data_cache_close(*out);
        *out = NULL;
    }
    return status;
}
