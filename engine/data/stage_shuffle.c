// SPDX-License-Identifier: Apache-2.0
// A bounded shuffle with tf.data's semantics (tensorflow/core/kernels/data/shuffle_dataset_op.cc): the buffer is
// filled before the first output, each output is drawn from all that is in it, and its place is filled with the
// next input while there is one. An input can come at most `samples` places early and any number late.
#include <inttypes.h>

#include "base/host_mem.h"
#include "base/philox.h"
#include "data/stages.h"

typedef struct shuffle_stage {
    data_stage base;
    shuffle_form form;
    philox_key key;
    uint64_t epoch, given; // position of the next output
    uint32_t filled;
    bool drained; // the input's epoch is over
    uint32_t *waiting;
    uint64_t *epoch_of; // of waiting[0..filled); NULL: `epoch`
    uint32_t *place;    // in the pool: of waiting[0..filled), then the free ones; NULL without one
} shuffle_stage;

static data_ask ask_of(const shuffle_stage *s, uint32_t k)
{
    return (data_ask){
        .set = DATA_TRAIN, .sample = s->waiting[k], .epoch = s->epoch_of != NULL ? s->epoch_of[k] : s->epoch};
}

static void shuffle_take_in(shuffle_stage *s, const data_item *item)
{
    s->waiting[s->filled] = item->sample;
    if (s->epoch_of != NULL) {
        s->epoch_of[s->filled] = item->epoch;
    }
    if (s->form.pool != NULL) {
        const data_ask ask = ask_of(s, s->filled);
        data_pool_want(s->form.pool, s->place[s->filled], &ask);
    }
    s->filled++;
}

static hr_status shuffle_fill(shuffle_stage *s, hr_err *err)
{
    data_stage *before = s->base.before;
    while (s->filled < s->form.samples && !s->drained) {
        data_item item;
        HR_TRY(before->ops->next(before, &item, err));
        s->drained = item.end;
        if (!item.end) {
            shuffle_take_in(s, &item);
        }
    }
    return HR_OK;
}

static void shuffle_begin(shuffle_stage *s, uint64_t epoch)
{
    s->epoch = epoch;
    s->given = 0;
    s->filled = 0;
    s->drained = false;
    if (s->form.pool != NULL) {
        data_pool_forget(s->form.pool);
    }
}

// The drawn one leaves; its place in the pool is the first that is free.
static void shuffle_give_out(shuffle_stage *s, uint32_t drawn, data_item *out)
{
    const uint32_t last = --s->filled;
    const data_ask ask = ask_of(s, drawn);
    out->sample = ask.sample;
    out->epoch = ask.epoch;
    out->place = DATA_NO_PLACE;
    s->waiting[drawn] = s->waiting[last];
    if (s->epoch_of != NULL) {
        s->epoch_of[drawn] = s->epoch_of[last];
    }
    if (s->place != NULL) {
        out->place = s->place[drawn];
        s->place[drawn] = s->place[last];
        s->place[last] = out->place;
    }
    out->count = 1;
}

static hr_status shuffle_next(data_stage *stage, data_item *out, hr_err *err)
{
    shuffle_stage *s = (shuffle_stage *)stage;
    *out = (data_item){0};
    HR_TRY(shuffle_fill(s, err));
    if (s->filled == 0) {
        shuffle_begin(s, s->epoch + 1);
        out->end = true;
        return HR_OK;
    }
    uint32_t random[4];
    philox(s->key, s->given++, s->form.same_order ? 0 : s->epoch, random);
    shuffle_give_out(s, (uint32_t)philox_below(random[0], random[1], s->filled), out);
    return HR_OK;
}

// After a seek nothing lies in the pool.
static void shuffle_want_all(shuffle_stage *s)
{
    data_pool_forget(s->form.pool);
    for (uint32_t k = 0; k < s->filled; k++) {
        const data_ask ask = ask_of(s, k);
        data_pool_want(s->form.pool, s->place[k], &ask);
    }
}

static hr_status shuffle_seek(data_stage *stage, data_position p, hr_err *err)
{
    shuffle_stage *s = (shuffle_stage *)stage;
    data_stage *before = stage->before;
    const data_position begin = {.epoch = s->form.repeated > 0 ? 0 : p.epoch};
    const uint64_t given = p.samples + (p.epoch - begin.epoch) * s->form.repeated;
    shuffle_begin(s, begin.epoch);
    HR_TRY(before->ops->seek(before, begin, err));
    for (uint64_t i = 0; i < given; i++) {
        data_item item;
        HR_TRY(shuffle_fill(s, err));
        if (s->filled == 0) {
            break; // the position is at or beyond the end: the next item is the end
        }
        HR_TRY(shuffle_next(stage, &item, err));
    }
    if (s->form.pool != NULL) {
        shuffle_want_all(s);
    }
    return HR_OK;
}

static void shuffle_close(data_stage *stage)
{
    shuffle_stage *s = (shuffle_stage *)stage;
    hr_free(s->waiting);
    hr_free(s->epoch_of);
    hr_free(s->place);
    hr_free(s);
}

static const data_stage_ops shuffle_ops = {
    .name = "shuffle", .next = shuffle_next, .seek = shuffle_seek, .close = shuffle_close};

static hr_status shuffle_take(shuffle_stage *s, hr_err *err)
{
    const uint32_t samples = s->form.samples;
    const bool places = s->form.pool != NULL, epochs = s->form.repeated > 0;
    const uint64_t bytes = (uint64_t)samples * data_number_bytes(places, epochs);
    s->waiting = hr_calloc(samples, sizeof *s->waiting);
    s->place = places ? hr_calloc(samples, sizeof *s->place) : NULL;
    s->epoch_of = epochs ? hr_calloc(samples, sizeof *s->epoch_of) : NULL;
    if (s->waiting == NULL || (places && s->place == NULL) || (epochs && s->epoch_of == NULL)) {
        const hr_status status = HR_FAIL(
            err, NOMEM, "shuffle buffer of %u samples: needed %" PRIu64 " bytes, had less", samples, bytes);
        hr_err_try(err, "-s pipeline.shuffle=1000");
        return status;
    }
    for (uint32_t k = 0; places && k < samples; k++) {
        s->place[k] = k;
    }
    data_stage_hold(&s->base, bytes);
    return HR_OK;
}

hr_status stage_shuffle_open(data_stage *before, const shuffle_form *form, data_stage **out, hr_err *err)
{
    *out = NULL;
    shuffle_stage *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "shuffle stage: needed %zu bytes, had less", sizeof *s);
    }
    *s = (shuffle_stage){
        .base = {.ops = &shuffle_ops}, .form = *form, .key = philox_key_of(form->seed, "shuffle")};
    const hr_status status = shuffle_take(s, err);
    if (status != HR_OK) {
        shuffle_close(&s->base);
        return status;
    }
    s->base.before = before;
    *out = &s->base;
    return HR_OK;
}
