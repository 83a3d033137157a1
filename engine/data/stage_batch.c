// SPDX-License-Identifier: Apache-2.0
// Writes the samples of a batch side by side into the slots of the model: which they are is asked of the stage before,
// then they are read and written on several threads.
#include <inttypes.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/workers.h"
#include "data/stages.h"

typedef struct batch_stage {
    data_stage base;
    data_map map;
    data_set set;
    uint64_t epoch; // of the batch under way
    batch_remainder remainder;
    uint32_t batch;
    uint64_t update;    // samples of one update: the remainder concerns whole updates
    uint64_t in_update; // of the update under way, given out
    uint64_t pulled;    // of the epoch, from the stage before
    bool drained;       // the epoch gave its last sample
    workers *threads;   // NULL: the caller alone
    uint8_t *scratch;   // for each of them
    uint64_t scratch_bytes;
    data_buffers buffers;
    data_pool *pool;
    bool is_filled;
    void *numbers;      // NULL: not taken. By place of the samples of the batch:
    uint64_t *epoch_of; //   with is_filled their epochs; else NULL, they are of `epoch`
    uint32_t *number;   //   their numbers
    uint32_t *lies;     //   with a pool: where there, or DATA_NO_PLACE; else NULL
    bool has_room;
    data_room room, own; // where items go: own or lent; own is taken when wanted
    uint32_t *first;     // BATCH_PAD: the samples the epoch began with, at most `update`
    uint64_t first_count;
    uint64_t pads; // samples that were filled up in this epoch
} batch_stage;

static uint64_t batch_bytes(const batch_stage *s)
{
    return s->batch * data_form_bytes(&s->buffers.form);
}

static uint64_t number_bytes(const batch_stage *s)
{
    return (uint64_t)s->batch * data_number_bytes(s->pool != NULL, s->is_filled);
}

static hr_status batch_take_numbers(batch_stage *s, hr_err *err)
{
    if (s->numbers != NULL) {
        return HR_OK;
    }
    s->numbers = hr_calloc(s->batch, number_bytes(s) / s->batch);
    if (s->numbers == NULL) {
        return HR_FAIL(err, NOMEM, "the numbers of %u samples: needed %" PRIu64 " bytes, had less", s->batch,
                       number_bytes(s));
    }
    s->epoch_of = s->is_filled ? s->numbers : NULL;
    s->number = s->is_filled ? (void *)(s->epoch_of + s->batch) : s->numbers;
    s->lies = s->pool != NULL ? s->number + s->batch : NULL;
    data_stage_hold(&s->base, number_bytes(s));
    return HR_OK;
}

static void batch_give_back_numbers(batch_stage *s)
{
    if (s->numbers != NULL) {
        data_stage_release(&s->base, number_bytes(s));
        hr_free(s->numbers);
        s->numbers = NULL;
    }
}

// Takes a buffer of its own unless a place to write to was lent.
static hr_status batch_take_room(batch_stage *s, hr_err *err)
{
    HR_TRY(batch_take_numbers(s, err));
    if (s->has_room) {
        return HR_OK;
    }
    if (data_stage_take_room(&s->base, &s->buffers, s->batch, &s->own, NULL) != HR_OK) {
        return HR_FAIL(err, NOMEM, "a batch of %u samples: needed %" PRIu64 " bytes, had less", s->batch,
                       batch_bytes(s));
    }
    s->room = s->own;
    s->has_room = true;
    return HR_OK;
}

static void batch_give_back_room(batch_stage *s)
{
    data_stage_give_back_room(&s->base, &s->buffers.form, s->batch, &s->own);
    s->has_room = false;
}

// One sample's number from the stage before, or the end of the epoch.
static hr_status batch_pull(batch_stage *s, data_item *item, hr_err *err)
{
    HR_TRY(s->base.before->ops->next(s->base.before, item, err));
    s->drained = item->end;
    if (item->end) {
        return HR_OK;
    }
    s->epoch = item->epoch;
    s->pulled++;
    if (s->first != NULL && s->first_count < s->update) {
        s->first[s->first_count++] = item->sample;
    }
    return HR_OK;
}

static void batch_begin(batch_stage *s)
{
    s->drained = false;
    s->first_count = s->pads = s->in_update = s->pulled = 0;
}

// Whether the samples that are left make no whole update: they are passed over.
static bool batch_drops_rest(const batch_stage *s)
{
    const uint64_t samples = data_source_samples(s->map.source, s->set);
    return s->remainder == BATCH_DROP && s->in_update == 0 && samples - s->pulled < s->update;
}

static hr_status batch_pass_over_rest(batch_stage *s, hr_err *err)
{
    data_item item = {0};
    while (!item.end) {
        HR_TRY(batch_pull(s, &item, err));
    }
    return HR_OK;
}

// ---- writing --------------------------------------------------------------------------------------------------

// What went wrong first, in the order of the places.
typedef struct write_range {
    hr_status status;
    hr_err err;
    uint64_t busy_ns;
} write_range;

typedef struct write_job {
    const batch_stage *s;
    uint32_t begin;     // of the places that are written
    write_range *range; // of each thread
} write_job;

static hr_status write_sample(const batch_stage *s, uint32_t place, uint8_t *scratch, hr_err *err)
{
    const data_ask ask = {.set = s->set,
                          .sample = s->number[place],
                          .epoch = s->epoch_of != NULL ? s->epoch_of[place] : s->epoch};
    const data_room at = data_room_at(&s->map.to, &s->room, place);
    if (s->pool != NULL && s->lies[place] != DATA_NO_PLACE) {
        return data_pool_write(s->pool, s->lies[place], &ask, scratch, &at, err);
    }
    return data_map_write(&s->map, &ask, scratch, &at, err);
}

static void write_samples(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const write_job *job = argument;
    write_range *range = &job->range[worker];
    uint8_t *scratch = job->s->scratch + (size_t)worker * job->s->scratch_bytes;
    const uint64_t began_ns = clock_now_ns();
    for (int64_t k = begin; k < end && range->status == HR_OK; k++) {
        range->status = write_sample(job->s, job->begin + (uint32_t)k, scratch, &range->err);
    }
    range->busy_ns = clock_now_ns() - began_ns;
}

static void load_samples(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const write_job *job = argument;
    write_range *range = &job->range[worker];
    uint8_t *scratch = job->s->scratch + (size_t)worker * job->s->scratch_bytes;
    const uint64_t began_ns = clock_now_ns();
    for (int64_t k = begin; k < end && range->status == HR_OK; k++) {
        range->status = data_pool_load(job->s->pool, (uint32_t)k, scratch, &range->err);
    }
    range->busy_ns = clock_now_ns() - began_ns;
}

// Ranges lie in the order of the workers.
static hr_status side_by_side(batch_stage *s, uint32_t begin, uint32_t count, workers_body body, hr_err *err)
{
    write_range range[BATCH_THREADS_MAX] = {{.status = HR_OK}};
    const write_job job = {s, begin, range};
    const uint64_t began_ns = clock_now_ns();
    workers_for_few(s->threads, count, atomic_load(&s->base.making.threads), body, &job);
    stage_spent spent = {.wall_ns = clock_now_ns() - began_ns, .items = count};
    for (uint32_t k = 0; k < BATCH_THREADS_MAX; k++) {
        spent.busy_ns += range[k].busy_ns;
    }
    stage_times_add(&s->base.making, &spent);
    for (uint32_t k = 0; k < workers_count(s->threads); k++) {
        if (range[k].status != HR_OK) {
            if (err != NULL) {
                *err = range[k].err;
            }
            return range[k].status;
        }
    }
    return HR_OK;
}

// Writes the places [begin, end) of the batch, then fills the pool's places that this has freed.
static hr_status batch_write(batch_stage *s, uint32_t begin, uint32_t end, hr_err *err)
{
    HR_TRY(end > begin ? side_by_side(s, begin, end - begin, write_samples, err) : HR_OK);
    const uint32_t missing = s->pool != NULL ? data_pool_missing(s->pool) : 0;
    if (missing > 0) {
        HR_TRY(side_by_side(s, 0, missing, load_samples, err));
        data_pool_forget(s->pool);
    }
    return HR_OK;
}

// Fills up with the samples that the epoch began with.
static void batch_pad(batch_stage *s, uint32_t *count)
{
    while (*count < s->batch) {
        if (s->lies != NULL) {
            s->lies[*count] = DATA_NO_PLACE;
        }
        s->number[(*count)++] = s->first[s->pads++ % s->first_count];
    }
}

// The next batch; *count 0 at the end of the epoch. With a pool, samples are written as soon as one is drawn that is not there yet.
static hr_status batch_make(batch_stage *s, uint32_t *count, hr_err *err)
{
    uint32_t written = 0;
    *count = 0;
    if (batch_drops_rest(s)) {
        HR_TRY(batch_pass_over_rest(s, err));
    }
    while (*count < s->batch && !s->drained) {
        data_item item;
        HR_TRY(batch_pull(s, &item, err));
        if (item.end) {
            break;
        }
        if (s->pool != NULL && data_pool_is_missing(s->pool, item.place)) {
            HR_TRY(batch_write(s, written, *count, err));
            written = *count;
        }
        if (s->lies != NULL) {
            s->lies[*count] = item.place;
        }
        if (s->epoch_of != NULL) {
            s->epoch_of[*count] = item.epoch;
        }
        s->number[(*count)++] = item.sample;
    }
    if (s->remainder == BATCH_PAD && (*count > 0 || s->in_update > 0)) {
        batch_pad(s, count);
    }
    return batch_write(s, written, *count, err);
}

// Samples that were replaced so far; none is being made.
static uint64_t batch_replaced(const batch_stage *s)
{
    return s->map.bad != NULL ? atomic_load(&s->map.bad->replaced) : 0;
}

// What is not making is its own: asking for numbers.
static hr_status batch_make_timed(batch_stage *s, uint32_t *count, hr_err *err)
{
    const uint64_t began_ns = clock_now_ns(), made_ns = atomic_load(&s->base.making.wall_ns);
    HR_TRY(batch_make(s, count, err));
    const uint64_t wall_ns = clock_now_ns() - began_ns;
    const uint64_t making_ns = atomic_load(&s->base.making.wall_ns) - made_ns;
    stage_times_add(&s->base.times,
                    &(stage_spent){.busy_ns = wall_ns - making_ns, .wall_ns = wall_ns, .items = *count > 0});
    return HR_OK;
}

static hr_status batch_next(data_stage *stage, data_item *out, hr_err *err)
{
    batch_stage *s = (batch_stage *)stage;
    uint32_t count = 0;
    const uint64_t replaced = batch_replaced(s);
    *out = (data_item){0};
    HR_TRY(batch_take_room(s, err));
    HR_TRY(batch_make_timed(s, &count, err));
    if (count == 0) {
        batch_begin(s);
        out->end = true;
        return HR_OK;
    }
    s->in_update = (s->in_update + count) % s->update;
    *out = (data_item){.room = s->room, .count = count, .bad = (uint32_t)(batch_replaced(s) - replaced)};
    return HR_OK;
}

static hr_status batch_seek(data_stage *stage, data_position p, hr_err *err)
{
    batch_stage *s = (batch_stage *)stage;
    data_stage *before = stage->before;
    batch_begin(s);
    if (s->first == NULL) {
        s->pulled = p.samples;
        return before->ops->seek(before, p, err);
    }
    // Padding needs the samples that the epoch began with: go through its order from there.
    HR_TRY(before->ops->seek(before, (data_position){.epoch = p.epoch}, err));
    for (uint64_t i = 0; i < p.samples && !s->drained; i++) {
        data_item item;
        HR_TRY(batch_pull(s, &item, err));
    }
    return HR_OK;
}

static void batch_write_to(data_stage *stage, const data_room *room)
{
    batch_stage *s = (batch_stage *)stage;
    batch_give_back_room(s);
    s->room = *room;
    s->has_room = true;
}

static void batch_close(data_stage *stage)
{
    batch_stage *s = (batch_stage *)stage;
    workers_destroy(s->threads);
    batch_give_back_room(s);
    batch_give_back_numbers(s);
    hr_free(s->first);
    hr_free(s->scratch);
    hr_free(s);
}

static const data_stage_ops batch_ops = {
    .name = "batch",
    .next = batch_next,
    .seek = batch_seek,
    .close = batch_close,
    .write_to = batch_write_to,
};

static hr_status batch_take(batch_stage *s, const batch_form *form, hr_err *err)
{
    s->scratch_bytes = data_map_scratch_bytes(&s->map);
    const uint64_t scratch = form->threads * s->scratch_bytes;
    const uint64_t first = s->remainder == BATCH_PAD ? s->update * sizeof *s->first : 0;
    s->scratch = hr_calloc(scratch, 1);
    s->first = first > 0 ? hr_calloc(first, 1) : NULL;
    if (s->scratch == NULL || (first > 0 && s->first == NULL)) {
        return HR_FAIL(err, NOMEM, "batch stage: needed %" PRIu64 " bytes, had less", scratch + first);
    }
    s->base.in_flight_bytes = scratch;
    data_stage_hold(&s->base, first);
    HR_TRY(form->at_once ? batch_take_room(s, err) : batch_take_numbers(s, err));
    if (form->threads == 1) {
        return HR_OK;
    }
    const hr_status status = workers_create(form->threads, &s->threads, err);
    if (status != HR_OK) {
        hr_err_try(err, "-s pipeline.map_threads=1");
    }
    return status;
}

hr_status stage_batch_open(data_stage *before, const data_map *map, data_set set, const batch_form *form,
                           const data_buffers *buffers, data_stage **out, hr_err *err)
{
    *out = NULL;
    batch_stage *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "batch stage: needed %zu bytes, had less", sizeof *s);
    }
    *s = (batch_stage){.base = {.ops = &batch_ops},
                       .map = *map,
                       .set = set,
                       .buffers = *buffers,
                       .pool = form->pool,
                       .is_filled = form->is_filled,
                       .batch = form->batch,
                       .update = (uint64_t)form->batch * form->rounds,
                       .remainder = form->remainder};
    const hr_status status = batch_take(s, form, err);
    if (status != HR_OK) {
        batch_close(&s->base);
        return status;
    }
    s->base.before = before;
    atomic_store(&s->base.making.threads, form->threads);
    *out = &s->base;
    return HR_OK;
}

void stage_batch_use_threads(data_stage *stage, uint32_t threads)
{
    atomic_store(&stage->making.threads, threads);
}

void stage_batch_resize(data_stage *stage, uint32_t batch)
{
    batch_stage *s = (batch_stage *)stage;
    if (batch != s->batch) {
        batch_give_back_room(s);
        batch_give_back_numbers(s);
        s->batch = batch;
        s->update = batch;
    }
}
