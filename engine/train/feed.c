// SPDX-License-Identifier: Apache-2.0
#include "train/feed.h"

#include <stdio.h>

#include "train/engine_impl.h"

// The item's samples become the step's batch.
static void set_slots(step_io *io, const data_item *item)
{
    for (uint32_t k = 0; k < STEP_MAX_SLOTS; k++) {
        io->slot[k] = item->room.slot[k];
    }
}

// Of the first, from the last part of its path on: a note is short. The report counts them.
static void tell_bad(hr_engine *e)
{
    char line[HR_EVENT_TEXT_MAX];
    const char *why, *leaf;
    (void)pipeline_bad_samples(e->data, &why);
    leaf = why = why != NULL ? why : "a sample";
    for (const char *c = why; *c != '\0' && *c != ':'; c++) {
        leaf = *c == '/' ? c + 1 : leaf;
    }
    (void)snprintf(line, sizeof line, "replaced: %s", leaf);
    trace_note(&e->bus, HR_EVENT_LOG, 0, line);
    e->told_bad = true;
}

static hr_status pull(hr_engine *e, data_item *item, fed_batch *out, uint64_t *wait_ns, hr_err *err)
{
    uint64_t waited_ns = 0;
    HR_TRY(pipeline_next(e->data, item, &waited_ns, err));
    if (item->bad > 0 && !e->told_bad) {
        tell_bad(e);
    }
    *wait_ns += waited_ns;
    *out = (fed_batch){.end = item->end,
                       .samples = item->count,
                       .first_sample = item->first_sample,
                       .after = pipeline_position(e->data)};
    return HR_OK;
}

static fed_batch take_first(feed *f)
{
    const fed_batch first = f->queue[f->begin];
    f->begin = (f->begin + 1) % FEED_ROOM;
    f->count--;
    f->batches -= !first.end;
    return first;
}

// The next batch goes to the end of the queue, behind the ends of epochs before it; its samples are in *item.
static hr_status pull_ahead(hr_engine *e, data_item *item, uint64_t *wait_ns, hr_err *err)
{
    feed *f = &e->feed;
    for (bool end = true; end;) {
        fed_batch next;
        HR_TRY(pull(e, item, &next, wait_ns, err));
        if (f->count == FEED_ROOM) {
            return HR_FAIL(err, STATE, "an epoch without a batch");
        }
        f->queue[(f->begin + f->count++) % FEED_ROOM] = next;
        f->batches += !next.end;
        end = next.end;
    }
    return HR_OK;
}

// Copies batches to the device until it holds as many as it is to. No step needs them yet.
static hr_status fill(hr_engine *e, uint64_t *wait_ns, hr_err *err)
{
    while (e->feed.batches < e->build->ahead) {
        data_item item;
        step_io io = {0};
        HR_TRY(pull_ahead(e, &item, wait_ns, err));
        set_slots(&io, &item);
        HR_TRY(executor_step(e->build->x, e->build->slots[BUILD_FEED], &io, err));
    }
    return HR_OK;
}

static hr_status next_ahead(hr_engine *e, fed_batch *out, step_io *io, uint64_t *wait_ns, hr_err *err)
{
    data_item item;
    HR_TRY(fill(e, wait_ns, err));
    if (e->feed.queue[e->feed.begin].end) {
        *out = take_first(&e->feed);
        return HR_OK;
    }
    HR_TRY(pull_ahead(e, &item, wait_ns, err));
    *out = take_first(&e->feed);
    set_slots(io, &item);
    return HR_OK;
}

static hr_status next_now(hr_engine *e, fed_batch *out, step_io *io, uint64_t *wait_ns, hr_err *err)
{
    data_item item;
    HR_TRY(pull(e, &item, out, wait_ns, err));
    set_slots(io, &item);
    return HR_OK;
}

// The resident batch is copied to its slots.
static hr_status settle(hr_engine *e, uint64_t *wait_ns, hr_err *err)
{
    const uint32_t samples = e->build->programs[BUILD_TRAIN]->batch;
    data_item item;
    step_io io = {0};
    fed_batch *batch = &e->feed.resident;
    HR_TRY(pipeline_seek(e->data, (data_position){.epoch = e->position.epoch}, err));
    HR_TRY(pull(e, &item, batch, wait_ns, err));
    if (batch->end || batch->samples != samples) {
        const hr_status status = HR_FAIL(err, DATA, "pipeline.resident: needed a batch of %u samples, had %u",
                                         samples, batch->samples);
        hr_err_try(err, "-s batch.size=%u, or -s pipeline.resident=off",
                   batch->samples > 0 ? batch->samples : 1);
        return status;
    }
    set_slots(&io, &item);
    HR_TRY(executor_step(e->build->x, e->build->slots[BUILD_FEED], &io, err));
    batch->after = e->position;
    e->feed.stays = true;
    return HR_OK;
}

static hr_status next_resident(hr_engine *e, fed_batch *out, uint64_t *wait_ns, hr_err *err)
{
    HR_TRY(e->feed.stays ? HR_OK : settle(e, wait_ns, err));
    *out = e->feed.resident;
    return HR_OK;
}

hr_status engine_next_batch(hr_engine *e, fed_batch *out, step_io *io, uint64_t *wait_ns, hr_err *err)
{
    HR_TRY(e->build->resident    ? next_resident(e, out, wait_ns, err)
           : e->build->ahead > 0 ? next_ahead(e, out, io, wait_ns, err)
                                 : next_now(e, out, io, wait_ns, err));
    io->first_sample = out->first_sample;
    e->position = out->after;
    return HR_OK;
}

hr_status engine_seek_data(hr_engine *e, hr_err *err)
{
    e->feed = (feed){.begin = 0};
    e->needs_seek = false;
    return pipeline_seek(e->data, e->position, err);
}

hr_status engine_refeed(hr_engine *e, hr_err *err)
{
    return e->feed.count > 0 || e->feed.stays || e->needs_seek ? engine_seek_data(e, err) : HR_OK;
}
