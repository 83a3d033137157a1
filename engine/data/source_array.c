// SPDX-License-Identifier: Apache-2.0
// pipeline.array: the training set decoded and held as one array of a type, as a script holds it that reads its data before it
// trains. With pipeline.mode=eager_stack it is made as such scripts make it: a list of the samples, each by itself, that is then
// stacked into the array. The held-out set stays where it is.
#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/workers.h"
#include "data/record.h"
#include "data/source.h"

enum { SCRATCH_ALIGNMENT = 64 };

#define NO_LABEL INT32_MIN // of a sample that could not be read

typedef struct array_source {
    data_source base;
    data_source *inner;   // owned
    uint32_t value_bytes; // 0: no images; a sample is its slots side by side
    uint32_t room_values; // of the inner's room, up to where values begin
    uint8_t *array;
    int32_t *label;
    uint8_t **list; // while it is made
} array_source;

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
}

static void write_typed(const uint8_t *image, uint32_t count, uint32_t value_bytes, uint8_t *to)
{
    float *floats = (void *)to;
    double *doubles = (void *)to;
    if (value_bytes == 1) {
        memcpy(to, image, count);
    }
    for (uint32_t k = 0; k < count && value_bytes == sizeof *floats; k++) {
        floats[k] = (float)image[k] / 255.0f;
    }
    for (uint32_t k = 0; k < count && value_bytes == sizeof *doubles; k++) {
        doubles[k] = image[k] / 255.0;
    }
}

// The room: what the inner source fetches, what it decodes with, and the image.
static hr_status make_sample(const array_source *s, data_set set, uint32_t index, uint8_t *room, uint8_t *to,
                             int32_t *label, hr_err *err)
{
    const data_source *inner = s->inner;
    uint8_t *scratch = room + aligned(inner->room_bytes);
    uint8_t *image = scratch + aligned(inner->scratch_bytes);
    data_raw raw;
    HR_TRY(inner->ops->fetch(inner, set, index, room, &raw, err));
    *label = raw.label;
    if (inner->ops->write != NULL) {
        const data_room slots = data_room_packed(&inner->form, to);
        return inner->ops->write(inner, &raw, scratch, &slots, err);
    }
    raw.set = set;
    raw.sample = index;
    HR_TRY(inner->ops->decode(inner, &raw, scratch, image, err));
    write_typed(image, data_source_values(inner), s->value_bytes, to);
    return HR_OK;
}

// ---- making the array -----------------------------------------------------------------------------------------

typedef struct load_range {
    hr_status status;
    hr_err err;
} load_range;

typedef struct load_job {
    const array_source *s;
    load_range *range; // of each worker, as `rooms`
    uint8_t *rooms;
} load_job;

static void load_samples(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const load_job *job = argument;
    const array_source *s = job->s;
    load_range *range = &job->range[worker];
    uint8_t *room = job->rooms + (size_t)worker * s->room_values;
    for (int64_t k = begin; k < end && range->status == HR_OK; k++) {
        uint8_t *to = s->list != NULL ? s->list[k] : s->array + (uint64_t)k * s->base.raw_bytes;
        range->status = make_sample(s, DATA_TRAIN, (uint32_t)k, room, to, &s->label[k], &range->err);
        if (range->status == HR_DATA && s->base.skips_bad) {
            s->label[k] = NO_LABEL;
            range->status = HR_OK;
        }
    }
}

static hr_status load_all(array_source *s, workers *threads, uint8_t *rooms, load_range *range, hr_err *err)
{
    const load_job job = {s, range, rooms};
    workers_for(threads, (int64_t)s->base.info.train_samples, 1, load_samples, &job);
    for (uint32_t k = 0; k < workers_count(threads); k++) {
        if (range[k].status != HR_OK) {
            *err = range[k].err;
            return range[k].status;
        }
    }
    return HR_OK;
}

static hr_status load_with(array_source *s, uint32_t count, hr_err *err)
{
    workers *threads = NULL;
    hr_err failure = {0};
    uint8_t *rooms = hr_calloc(count, s->room_values);
    load_range *range = hr_calloc(count, sizeof *range);
    hr_status status = HR_OK;
    if (rooms == NULL || range == NULL) {
        status = HR_FAIL(&failure, NOMEM, "pipeline.array: needed %u rooms of %u bytes, had less", count,
                         s->room_values);
    }
    if (status == HR_OK && count > 1) {
        status = workers_create(count, &threads, &failure);
    }
    if (status == HR_OK) {
        status = load_all(s, threads, rooms, range, &failure);
    }
    workers_destroy(threads);
    hr_free(rooms);
    hr_free(range);
    if (status != HR_OK && err != NULL) {
        *err = failure;
    }
    return status;
}

static void free_list(array_source *s)
{
    for (uint64_t k = 0; s->list != NULL && k < s->base.info.train_samples; k++) {
        hr_free(s->list[k]);
    }
    hr_free(s->list);
    s->list = NULL;
}

static bool take_list(array_source *s)
{
    const uint64_t samples = s->base.info.train_samples;
    s->list = hr_calloc(samples, sizeof *s->list);
    bool taken = s->list != NULL;
    for (uint64_t k = 0; taken && k < samples; k++) {
        s->list[k] = hr_calloc(s->base.raw_bytes, 1);
        taken = s->list[k] != NULL;
    }
    return taken;
}

static bool take_array(array_source *s)
{
    s->array = hr_calloc(s->base.info.train_samples, s->base.raw_bytes);
    return s->array != NULL;
}

static hr_status short_of(const array_source *s, hr_err *err)
{
    const hr_status status =
        HR_FAIL(err, NOMEM, "pipeline.array of %" PRIu64 " samples: needed %" PRIu64 " bytes, had less",
                s->base.info.train_samples, s->base.held_bytes + s->base.opening_bytes);
    hr_err_try(err, "-s pipeline.array=off");
    return status;
}

static hr_status array_load(data_source *base, uint32_t threads, hr_err *err)
{
    array_source *s = (array_source *)base;
    const bool is_list = base->opening_bytes > 0;
    s->label = hr_calloc(base->info.train_samples, sizeof *s->label);
    if (s->label == NULL || !(is_list ? take_list(s) : take_array(s))) {
        return short_of(s, err);
    }
    HR_TRY(s->inner->ops->load != NULL ? s->inner->ops->load(s->inner, threads, err) : HR_OK);
    HR_TRY(load_with(s, threads, err));
    if (is_list && !take_array(s)) {
        return short_of(s, err);
    }
    for (uint64_t k = 0; is_list && k < base->info.train_samples; k++) {
        memcpy(s->array + k * base->raw_bytes, s->list[k], base->raw_bytes);
    }
    free_list(s);
    return HR_OK;
}

// ---- the source -----------------------------------------------------------------------------------------------

static hr_status array_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                             data_raw *out, hr_err *err)
{
    const array_source *s = (const array_source *)base;
    *out = (data_raw){.size_bytes = base->raw_bytes};
    if (set == DATA_TRAIN) {
        out->bytes = s->array + (uint64_t)index * base->raw_bytes;
        out->label = s->label[index];
        if (out->label == NO_LABEL) {
            return HR_FAIL(err, DATA,
                           "sample %u: needed one that could be read when the array was made, had none",
                           index);
        }
        return HR_OK;
    }
    out->bytes = room + s->room_values;
    return make_sample(s, set, index, room, room + s->room_values, &out->label, err);
}

static hr_status array_decode(const data_source *base, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                              hr_err *err)
{
    (void)scratch;
    (void)err;
    memcpy(image, raw->bytes, base->raw_bytes);
    return HR_OK;
}

static hr_status array_write(const data_source *base, const data_raw *raw, uint8_t *scratch,
                             const data_room *to, hr_err *err)
{
    (void)scratch;
    (void)err;
    const array_source *s = (const array_source *)base;
    const double *doubles = (const void *)raw->bytes;
    float *values = to->slot[0];
    if (s->value_bytes == sizeof *values) {
        memcpy(values, raw->bytes, base->raw_bytes);
    }
    for (uint32_t k = 0; k < data_source_values(base) && s->value_bytes == sizeof *doubles; k++) {
        values[k] = (float)doubles[k];
    }
    *(int32_t *)to->slot[1] = raw->label;
    return HR_OK;
}

static void array_close(data_source *base)
{
    array_source *s = (array_source *)base;
    free_list(s);
    hr_free(s->array);
    hr_free(s->label);
    data_source_close(s->inner);
    hr_free(s);
}

static uint64_t array_part_begin(const data_source *base, uint32_t part)
{
    return data_source_part_begin(((const array_source *)base)->inner, part);
}

static const data_source_ops array_of_bytes = {.load = array_load,
                                               .fetch = array_fetch,
                                               .decode = array_decode,
                                               .part_begin = array_part_begin,
                                               .close = array_close};
static const data_source_ops array_of_reals = {.load = array_load,
                                               .fetch = array_fetch,
                                               .write = array_write,
                                               .part_begin = array_part_begin,
                                               .close = array_close};

static const data_source_ops array_of_slots = {.load = array_load,
                                               .fetch = array_fetch,
                                               .write = record_write_packed,
                                               .part_begin = array_part_begin,
                                               .close = array_close};

// Rooms are small where each part is: all parts have at most INT32_MAX bytes.
static hr_status check_rooms(const data_source *inner, uint64_t sample_bytes, uint64_t room_bytes,
                             hr_err *err)
{
    if (sample_bytes <= INT32_MAX && room_bytes <= INT32_MAX) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(
        err, DATA,
        "pipeline.array of %s: needed samples, with what they are made in, of at most %d bytes, had %" PRIu64,
        inner->info.label, INT32_MAX, room_bytes);
    hr_err_try(err, "-s pipeline.array=off");
    return status;
}

static uint64_t room_before_values(const data_source *inner)
{
    const uint64_t values = inner->ops->decode != NULL ? data_source_values(inner) : 0;
    return aligned(inner->room_bytes) + aligned(inner->scratch_bytes) + aligned(values);
}

hr_status source_array_describe(const data_source *inner, uint32_t value_bytes, bool as_list,
                                data_source *out, hr_err *err)
{
    const bool images = inner->ops->decode != NULL;
    const uint64_t sample_bytes =
        images ? (uint64_t)data_source_values(inner) * value_bytes : data_form_packed_bytes(&inner->form);
    const uint64_t room_bytes = room_before_values(inner) + sample_bytes, samples = inner->info.train_samples;
    HR_TRY(check_rooms(inner, sample_bytes, room_bytes, err));
    *out = (data_source){.ops = !images            ? &array_of_slots
                                : value_bytes == 1 ? &array_of_bytes
                                                   : &array_of_reals,
                         .form = inner->form,
                         .info = inner->info,
                         .skips_bad = inner->skips_bad,
                         .left_out = inner->left_out,
                         .parts = inner->parts,
                         .raw_bytes = (uint32_t)sample_bytes,
                         .room_bytes = (uint32_t)room_bytes,
                         .cost.make_value_ns = value_bytes == 1   ? 0.25
                                               : value_bytes == 4 ? 0.5
                                                                  : 1.9};
    (void)hr_mul_bytes(samples, sample_bytes + sizeof(int32_t), &out->held_bytes);
    (void)hr_add_bytes(out->held_bytes, inner->held_bytes, &out->held_bytes);
    (void)hr_mul_bytes(as_list ? samples : 0, sample_bytes + sizeof(uint8_t *), &out->opening_bytes);
    return HR_OK;
}

hr_status source_array_open(data_source *inner, uint32_t value_bytes, bool as_list, data_source **out,
                            hr_err *err)
{
    data_source base;
    *out = NULL;
    HR_TRY(source_array_describe(inner, value_bytes, as_list, &base, err));
    array_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "pipeline.array: needed %zu bytes, had less", sizeof *s);
    }
    *s = (array_source){.base = base,
                        .inner = inner,
                        .value_bytes = inner->ops->decode != NULL ? value_bytes : 0,
                        .room_values = (uint32_t)room_before_values(inner)};
    *out = &s->base;
    return HR_OK;
}
