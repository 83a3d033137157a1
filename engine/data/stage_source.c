// SPDX-License-Identifier: Apache-2.0
// The first stage: the numbers of a set's samples in file order.
#include "base/host_mem.h"
#include "data/stages.h"

typedef struct source_stage {
    data_stage base;
    uint64_t samples; // of the set
    uint64_t next;    // number of the next one
    uint64_t epoch;
} source_stage;

static hr_status source_next(data_stage *stage, data_item *out, hr_err *err)
{
    (void)err;
    source_stage *s = (source_stage *)stage;
    *out = (data_item){.end = s->next == s->samples};
    if (out->end) {
        s->next = 0;
        s->epoch++;
        return HR_OK;
    }
    out->epoch = s->epoch;
    out->sample = (uint32_t)s->next++;
    out->place = DATA_NO_PLACE;
    out->count = 1;
    return HR_OK;
}

static hr_status source_seek(data_stage *stage, data_position p, hr_err *err)
{
    (void)err;
    source_stage *s = (source_stage *)stage;
    s->epoch = p.epoch;
    s->next = p.samples < s->samples ? p.samples : s->samples;
    return HR_OK;
}

static void source_close(data_stage *stage)
{
    hr_free(stage);
}

static const data_stage_ops source_ops = {
    .name = "source", .next = source_next, .seek = source_seek, .close = source_close};

hr_status stage_source_open(const data_source *source, data_set set, data_stage **out, hr_err *err)
{
    source_stage *s = hr_calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "source stage: needed %zu bytes, had less", sizeof *s);
    }
    s->base.ops = &source_ops;
    s->samples = set == DATA_EVAL ? source->info.eval_samples : source->info.train_samples;
    data_stage_hold(&s->base, source->held_bytes + source->opening_bytes);
    data_stage_release(&s->base, source->opening_bytes);
    *out = &s->base;
    return HR_OK;
}
