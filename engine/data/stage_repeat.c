// SPDX-License-Identifier: Apache-2.0
// tf.data's repeat(): the epochs of the stage before, one behind the other and without an end. Each item says which it is of.
#include "base/host_mem.h"
#include "data/stages.h"

typedef struct repeat_stage {
    data_stage base;
    uint64_t samples; // of an epoch
} repeat_stage;

static hr_status repeat_next(data_stage *stage, data_item *out, hr_err *err)
{
    data_stage *before = stage->before;
    HR_TRY(before->ops->next(before, out, err));
    return out->end ? before->ops->next(before, out, err) : HR_OK;
}

static hr_status repeat_seek(data_stage *stage, data_position p, hr_err *err)
{
    const uint64_t samples = ((const repeat_stage *)stage)->samples;
    data_stage *before = stage->before;
    const data_position at = {p.epoch + p.samples / samples, p.samples % samples};
    return before->ops->seek(before, at, err);
}

static void repeat_close(data_stage *stage)
{
    hr_free(stage);
}

static const data_stage_ops repeat_ops = {
    .name = "repeat", .next = repeat_next, .seek = repeat_seek, .close = repeat_close};

hr_status stage_repeat_open(data_stage *before, uint64_t samples, data_stage **out, hr_err *err)
{
    repeat_stage *s = hr_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "repeat stage: needed %zu bytes, had less", sizeof *s);
    }
    *s = (repeat_stage){.base = {.ops = &repeat_ops, .before = before}, .samples = samples};
    *out = &s->base;
    return HR_OK;
}
