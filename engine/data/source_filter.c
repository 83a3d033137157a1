// SPDX-License-Identifier: Apache-2.0
// pipeline.filter: the samples of some classes, of both sets. Labels are asked for when the source is opened; kept are the numbers of
// the samples that stay, 4 bytes each.
#include <inttypes.h>

#include "base/host_mem.h"
#include "data/source.h"

typedef struct filter_source {
    data_source base;
    data_source *inner; // owned
    uint32_t *kept[DATA_SET_COUNT];
    uint32_t count[DATA_SET_COUNT];
} filter_source;

// ---- samples --------------------------------------------------------------------------------------------------

static hr_status filter_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                              data_raw *out, hr_err *err)
{
    const filter_source *s = (const filter_source *)base;
    return data_source_fetch(s->inner, set, s->kept[set][index], room, out, err);
}

static hr_status filter_decode(const data_source *base, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                               hr_err *err)
{
    const data_source *inner = ((const filter_source *)base)->inner;
    return inner->ops->decode(inner, raw, scratch, image, err);
}

static uint64_t filter_size(const data_source *base, data_set set, uint32_t index)
{
    const filter_source *s = (const filter_source *)base;
    return data_source_size(s->inner, set, s->kept[set][index]);
}

static hr_status filter_label(const data_source *base, data_set set, uint32_t index, int32_t *out,
                              hr_err *err)
{
    const filter_source *s = (const filter_source *)base;
    return s->inner->ops->label(s->inner, set, s->kept[set][index], out, err);
}

// Numbers that stay are in order: how many of them come before the part.
static uint64_t filter_part_begin(const data_source *base, uint32_t part)
{
    const filter_source *s = (const filter_source *)base;
    const uint64_t number = data_source_part_begin(s->inner, part);
    uint32_t below = 0, above = s->count[DATA_TRAIN];
    while (below < above) {
        const uint32_t middle = below + (above - below) / 2;
        if (s->kept[DATA_TRAIN][middle] < number) {
            below = middle + 1;
        } else {
            above = middle;
        }
    }
    return below;
}

static void filter_close(data_source *base)
{
    filter_source *s = (filter_source *)base;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        hr_free(s->kept[set]);
    }
    data_source_close(s->inner);
    hr_free(s);
}

static const data_source_ops even_ops = {.fetch = filter_fetch,
                                         .decode = filter_decode,
                                         .label = filter_label,
                                         .part_begin = filter_part_begin,
                                         .close = filter_close};
static const data_source_ops uneven_ops = {.fetch = filter_fetch,
                                           .decode = filter_decode,
                                           .label = filter_label,
                                           .part_begin = filter_part_begin,
                                           .size = filter_size,
                                           .close = filter_close};

// ---- opening --------------------------------------------------------------------------------------------------

// Those of the wanted classes: counted, and kept where there is room for them.
static hr_status look_through(filter_source *s, data_set set, const class_filter *wanted, uint32_t *kept,
                              uint32_t *count, hr_err *err)
{
    const uint64_t samples = data_source_samples(s->inner, set);
    uint32_t found = 0;
    for (uint64_t k = 0; k < samples; k++) {
        int32_t label;
        HR_TRY(s->inner->ops->label(s->inner, set, (uint32_t)k, &label, err));
        if (!class_filter_has(wanted, label)) {
            continue;
        }
        if (kept != NULL && found < *count) {
            kept[found] = (uint32_t)k;
        }
        found++;
    }
    if (kept != NULL && found != *count) {
        return HR_FAIL(err, DATA, "%s: needed data that stays as it is, had other labels than before",
                       s->base.info.label);
    }
    *count = found;
    return HR_OK;
}

static hr_status filter_set(filter_source *s, data_set set, const class_filter *wanted, hr_err *err)
{
    HR_TRY(look_through(s, set, wanted, NULL, &s->count[set], err));
    if (s->count[set] == 0) {
        const hr_status status =
            HR_FAIL(err, DATA, "%s: needed samples of the classes of pipeline.filter to %s, had none",
                    s->base.info.label, set == DATA_EVAL ? "hold out" : "train on");
        hr_err_try(err, "-s pipeline.filter=\"\"");
        return status;
    }
    const uint64_t bytes = s->count[set] * sizeof *s->kept[set];
    s->kept[set] = hr_calloc(s->count[set], sizeof *s->kept[set]);
    if (s->kept[set] == NULL) {
        return HR_FAIL(err, NOMEM, "pipeline.filter: needed %" PRIu64 " bytes, had less", bytes);
    }
    s->base.held_bytes += bytes;
    return look_through(s, set, wanted, s->kept[set], &s->count[set], err);
}

hr_status source_filter_open(data_source *inner, const class_filter *wanted, data_source **out, hr_err *err)
{
    *out = NULL;
    if (inner->ops->label == NULL || inner->ops->decode == NULL) {
        const hr_status status =
            HR_FAIL(err, DATA,
                    "%s: pipeline.filter needed labels that are known without reading the "
                    "samples, had none",
                    inner->info.label);
        hr_err_try(
            err,
            "-s pipeline.filter=\"\", or one of pipeline.source cifar10, mnist, images, npy and generated");
        return status;
    }
    filter_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "pipeline.filter: needed %zu bytes, had less", sizeof *s);
    }
    s->inner = inner;
    s->base = *inner;
    s->base.ops = inner->ops->size != NULL ? &uneven_ops : &even_ops;
    s->base.is_endless = false;
    hr_status status = HR_OK;
    for (data_set set = 0; set < DATA_SET_COUNT && status == HR_OK; set++) {
        status = filter_set(s, set, wanted, err);
    }
    if (status != HR_OK) {
        s->inner = NULL; // stays the caller's
        filter_close(&s->base);
        return status;
    }
    s->base.info.train_samples = s->count[DATA_TRAIN];
    s->base.info.eval_samples = s->count[DATA_EVAL];
    *out = &s->base;
    return HR_OK;
}
