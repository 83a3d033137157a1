// SPDX-License-Identifier: Apache-2.0
// tf.data's interleave(cycle_length, block_length) over the files of a data set (tensorflow/core/kernels/data/interleave_dataset_op.cc),
// by numbers alone. Of each open file `block` samples are given, then the next one's turn comes. A file that is found to be at its end
// loses its turn; the next file takes its place when the turn comes round again.
//
//   cycle 2, block 4, files of 6:   1 1 1 1  2 2 2 2  1 1  2 2  3 3 3 3  4 4 4 4  3 3  4 4  …
#include <inttypes.h>

#include "base/host_mem.h"
#include "data/stages.h"

// What is left of an open file: numbers next … end − 1. Closed: next > end.
typedef struct open_file {
    uint32_t next, end;
} open_file;
_Static_assert(sizeof(open_file) == INTERLEAVE_FILE_BYTES, "as planned");

static const open_file closed = {.next = 1, .end = 0};

typedef struct interleave_stage {
    data_stage base;
    interleave_form form;
    const data_source *source;
    open_file *file; // form.cycle
    uint32_t turn;   // whose it is
    uint32_t given;  // of its block
    uint32_t part;   // that is opened next
} interleave_stage;

static void pass_turn(interleave_stage *s)
{
    s->given = 0;
    s->turn = s->turn + 1 < s->form.cycle ? s->turn + 1 : 0;
}

// The next number; there is one.
static uint32_t next_number(interleave_stage *s)
{
    for (;;) {
        open_file *f = &s->file[s->turn];
        if (f->next < f->end) {
            const uint32_t number = f->next++;
            if (++s->given == s->form.block) {
                pass_turn(s);
            }
            return number;
        }
        if (f->next > f->end && s->part < s->source->parts) {
            f->next = (uint32_t)data_source_part_begin(s->source, s->part++);
            f->end = (uint32_t)data_source_part_begin(s->source, s->part);
        } else {
            *f = closed;
            pass_turn(s);
        }
    }
}

static void begin_epoch(interleave_stage *s)
{
    for (uint32_t k = 0; k < s->form.cycle; k++) {
        s->file[k] = closed;
    }
    s->turn = s->given = s->part = 0;
}

static hr_status interleave_next(data_stage *stage, data_item *out, hr_err *err)
{
    interleave_stage *s = (interleave_stage *)stage;
    HR_TRY(stage->before->ops->next(stage->before, out, err));
    if (out->end) {
        begin_epoch(s);
    } else {
        out->sample = next_number(s);
    }
    return HR_OK;
}

static hr_status interleave_seek(data_stage *stage, data_position p, hr_err *err)
{
    interleave_stage *s = (interleave_stage *)stage;
    const uint64_t samples = data_source_samples(s->source, DATA_TRAIN);
    HR_TRY(stage->before->ops->seek(stage->before, p, err));
    begin_epoch(s);
    for (uint64_t k = 0; k < p.samples && k < samples; k++) {
        (void)next_number(s);
    }
    return HR_OK;
}

static void interleave_close(data_stage *stage)
{
    interleave_stage *s = (interleave_stage *)stage;
    hr_free(s->file);
    hr_free(s);
}

static const data_stage_ops interleave_ops = {
    .name = "interleave", .next = interleave_next, .seek = interleave_seek, .close = interleave_close};

hr_status stage_interleave_open(data_stage *before, const data_source *source, const interleave_form *form,
                                data_stage **out, hr_err *err)
{
    *out = NULL;
    interleave_stage *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "interleave stage: needed %zu bytes, had less", sizeof *s);
    }
    *s = (interleave_stage){.base = {.ops = &interleave_ops}, .form = *form, .source = source};
    s->file = hr_calloc(form->cycle, sizeof *s->file);
    if (s->file == NULL) {
        const hr_status status = HR_FAIL(err, NOMEM, "interleave of %u files: needed %zu bytes, had less",
                                         form->cycle, form->cycle * sizeof *s->file);
        interleave_close(&s->base);
        return status;
    }
    begin_epoch(s);
    data_stage_hold(&s->base, form->cycle * sizeof *s->file);
    s->base.before = before;
    *out = &s->base;
    return HR_OK;
}
