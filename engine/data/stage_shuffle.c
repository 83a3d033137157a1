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
    philox_key key;
    uint64_t epoch, given; // position of the next output
    uint32_t capacity, filled;
    bool drained; // the input's epoch is over
    uint32_t *waiting;
} shuffle_stage;

static hr_status shuffle_fill(shuffle_stage *s, hr_err *err)
{
    data_stage *before = s->base.before;
    while (s->filled < s->capacity && !s->drained) {
        data_item item;
        HR_TRY(before->ops->next(before, &item, err));
        s->drained = item.end;
        if (!item.end) {
            s->waiting[s->filled++] = item.sample;
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
    philox(s->key, s->given++, s->epoch, random);
    uint32_t drawn = (uint32_t)philox_below(random[0], random[1], s->filled);
    out->sample = s->waiting[drawn];
    out->epoch = s->epoch;
    out->count = 1;
    s->waiting[drawn] = s->waiting[--s->filled];
    return HR_OK;
}

static hr_status shuffle_seek(data_stage *stage, data_position p, hr_err *err)
{
    shuffle_stage *s = (shuffle_stage *)stage;
    data_stage *before = stage->before;
    shuffle_begin(s, p.epoch);
    HR_TRY(before->ops->seek(before, (data_position){.epoch = p.epoch}, err));
    for (uint64_t i = 0; i < p.samples; i++) {
        data_item item;
        HR_TRY(shuffle_fill(s, err));
        if (s->filled == 0) {
            break; // the position is at or beyond the end: the next item is the end
        }
        HR_TRY(shuffle_next(stage, &item, err));
    }
    return HR_OK;
}

static void shuffle_close(data_stage *stage)
{
    shuffle_stage *s = (shuffle_stage *)stage;
    hr_free(s->waiting);
    hr_free(s);
}

static const data_stage_ops shuffle_ops = {
    .name = "shuffle", .next = shuffle_next, .seek = shuffle_seek, .close = shuffle_close};

hr_status stage_shuffle_open(data_stage *before, uint32_t samples, uint64_t seed, data_stage **out,
                             hr_err *err)
{
    uint64_t bytes = (uint64_t)samples * sizeof(uint32_t);
    shuffle_stage *s = hr_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "shuffle stage: needed %zu bytes, had less", sizeof *s);
    }
    s->waiting = hr_calloc(samples, sizeof *s->waiting);
    if (s->waiting == NULL) {
        hr_free(s);
        hr_status status = HR_FAIL(
            err, NOMEM, "shuffle buffer of %u samples: needed %" PRIu64 " bytes, had less", samples, bytes);
        hr_err_try(err, "-s pipeline.shuffle=1000");
        return status;
    }
    s->base.ops = &shuffle_ops;
    s->base.before = before;
    s->key = philox_key_of(seed, "shuffle");
    s->capacity = samples;
    data_stage_hold(&s->base, bytes);
    *out = &s->base;
    return HR_OK;
}
