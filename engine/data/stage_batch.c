// SPDX-License-Identifier: Apache-2.0
// Writes the samples of a batch side by side into the slots of the model.
#include <inttypes.h>

#include "base/host_mem.h"
#include "data/stages.h"

typedef struct batch_stage {
    data_stage base;
    const data_source *source;
    data_set set;
    batch_remainder remainder;
    uint32_t batch;
    uint64_t update;    // samples of one update: the remainder concerns whole updates
    uint64_t in_update; // of the update under way, given out
    uint64_t pulled;    // of the epoch, from the stage before
    bool drained;       // the epoch gave its last sample
    uint8_t *scratch;
    bool has_room;
    data_room room, own; // where items go: own or lent; own is taken when wanted
    uint32_t *first;     // BATCH_PAD: the samples the epoch began with, at most `update`
    uint64_t first_count;
    uint64_t pads; // samples that were filled up in this epoch
} batch_stage;

static hr_status batch_write(batch_stage *s, uint32_t sample, uint32_t place, hr_err *err)
{
    const data_room at = data_room_at(&s->source->form, &s->room, place);
    return data_source_write(s->source, s->set, sample, s->scratch, &at, err);
}

static uint64_t batch_bytes(const batch_stage *s)
{
    return s->batch * data_form_bytes(&s->source->form);
}

// Takes a buffer of its own unless a place to write to was lent.
static hr_status batch_take_room(batch_stage *s, hr_err *err)
{
    if (s->has_room) {
        return HR_OK;
    }
    if (!data_room_take(&s->source->form, s->batch, &s->own)) {
        return HR_FAIL(err, NOMEM, "a batch of %u samples: needed %" PRIu64 " bytes, had less", s->batch,
                       batch_bytes(s));
    }
    s->room = s->own;
    s->has_room = true;
    data_stage_hold(&s->base, batch_bytes(s));
    return HR_OK;
}

static void batch_give_back_room(batch_stage *s)
{
    if (s->own.slot[0] != NULL) {
        data_room_give_back(&s->own);
        data_stage_release(&s->base, batch_bytes(s));
    }
    s->has_room = false;
}

// One sample's number from the stage before; false in *any at the end of the epoch.
static hr_status batch_pull(batch_stage *s, uint32_t *sample, bool *any, hr_err *err)
{
    data_item item;
    HR_TRY(s->base.before->ops->next(s->base.before, &item, err));
    s->drained = item.end;
    *any = !item.end;
    *sample = item.sample;
    s->pulled += *any;
    if (*any && s->first != NULL && s->first_count < s->update) {
        s->first[s->first_count++] = item.sample;
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
    const pipeline_info *info = &s->source->info;
    uint64_t samples = s->set == DATA_TRAIN ? info->train_samples : info->eval_samples;
    return s->remainder == BATCH_DROP && s->in_update == 0 && samples - s->pulled < s->update;
}

static hr_status batch_pass_over_rest(batch_stage *s, hr_err *err)
{
    uint32_t sample;
    for (bool any = true; any;) {
        HR_TRY(batch_pull(s, &sample, &any, err));
    }
    return HR_OK;
}

static hr_status batch_next(data_stage *stage, data_item *out, hr_err *err)
{
    batch_stage *s = (batch_stage *)stage;
    uint32_t count = 0;
    *out = (data_item){0};
    HR_TRY(batch_take_room(s, err));
    if (batch_drops_rest(s)) {
        HR_TRY(batch_pass_over_rest(s, err));
    }
    while (count < s->batch && !s->drained) {
        uint32_t sample;
        bool any;
        HR_TRY(batch_pull(s, &sample, &any, err));
        if (any) {
            HR_TRY(batch_write(s, sample, count++, err));
        }
    }
    bool padded = s->remainder == BATCH_PAD && (count > 0 || s->in_update > 0);
    if (count == 0 && !padded) {
        batch_begin(s);
        out->end = true;
        return HR_OK;
    }
    while (padded && count < s->batch) {
        HR_TRY(batch_write(s, s->first[s->pads++ % s->first_count], count++, err));
    }
    s->in_update = (s->in_update + count) % s->update;
    *out = (data_item){.room = s->room, .count = count};
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
        uint32_t sample;
        bool any;
        HR_TRY(batch_pull(s, &sample, &any, err));
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
    batch_give_back_room(s);
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

hr_status stage_batch_open(data_stage *before, const data_source *source, data_set set,
                           const batch_form *form, data_stage **out, hr_err *err)
{
    const uint64_t update = (uint64_t)form->batch * form->rounds;
    const bool pads = form->remainder == BATCH_PAD;
    *out = NULL;
    batch_stage *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "batch stage: needed %zu bytes, had less", sizeof *s);
    }
    *s = (batch_stage){.base = {.ops = &batch_ops},
                       .source = source,
                       .set = set,
                       .batch = form->batch,
                       .update = update,
                       .remainder = form->remainder,
                       .scratch = hr_calloc(source->scratch_bytes, 1),
                       .first = pads ? hr_calloc(update, sizeof *s->first) : NULL};
    if (s->scratch == NULL || (pads && s->first == NULL)) {
        batch_close(&s->base);
        return HR_FAIL(err, NOMEM, "batch stage: needed %u bytes, had less", source->scratch_bytes);
    }
    s->base.before = before;
    data_stage_hold(&s->base, source->scratch_bytes + (s->first != NULL ? update * sizeof *s->first : 0));
    *out = &s->base;
    return HR_OK;
}

void stage_batch_resize(data_stage *stage, uint32_t batch)
{
    batch_stage *s = (batch_stage *)stage;
    if (batch != s->batch) {
        batch_give_back_room(s);
        s->batch = batch;
        s->update = batch;
    }
}
