// SPDX-License-Identifier: Apache-2.0
#include "insight/replay.h"

#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "device/device.h"
#include "insight/play.h"
#include "memory/heap_snapshot.h"

enum { EVENTS_BETWEEN_STOPS = 1 << 16 };

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool asks(const trace_event *e)
{
    return e->kind == TRACE_ALLOC || e->kind == TRACE_REFUSED;
}

const char *replay_name(const trace *t, uint32_t event)
{
    return event < t->events.count ? intern_text(&t->names, t->events.data[event].name) : NULL;
}

// ---- what fails -----------------------------------------------------------------------------------------------

// Names of what lives, in place of tags.
static hr_status name_chunks(const replay_player *p, heap_snapshot *snapshot, hr_err *err)
{
    for (uint32_t k = 0; k < snapshot->chunks.count; k++) {
        heap_chunk *c = &snapshot->chunks.data[k];
        const char *name =
            p->tags_events ? replay_name(p->t, c->tensor) : intern_text(&p->t->names, c->tensor);
        if (!c->in_use || name == NULL) {
            c->tensor = HR_NO_ID;
            continue;
        }
        c->tensor = intern_add(&snapshot->names, name, strlen(name));
        if (c->tensor == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "replay: needed host memory for the names of a heap, had none");
        }
    }
    return HR_OK;
}

static hr_status name_refusal(const replay_player *p, heap_snapshot *snapshot, hr_err *err)
{
    heap_refusal *r = &snapshot->refusal;
    const char *name = p->tags_events ? replay_name(p->t, r->tensor) : intern_text(&p->t->names, r->tensor);
    r->tensor = HR_NO_ID;
    if (r->any && name != NULL) {
        r->tensor = intern_add(&snapshot->names, name, strlen(name));
        if (r->tensor == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "replay: needed host memory for the names of a heap, had none");
        }
    }
    return HR_OK;
}

hr_status replay_snapshot(const replay_player *p, uint32_t device, heap_snapshot *out, hr_err *err)
{
    *out = (heap_snapshot){0};
    if (p->devices[device].heap == NULL) {
        return HR_OK;
    }
    HR_TRY(heap_snapshot_of(p->devices[device].heap, out, err));
    hr_status status = name_chunks(p, out, err);
    if (status == HR_OK) {
        status = name_refusal(p, out, err);
    }
    if (status != HR_OK) {
        heap_snapshot_deinit(out);
    }
    return status;
}

static hr_status keep_failure_heap(replay_player *p, uint32_t device, hr_err *err)
{
    p->failure_heap = hr_calloc(1, sizeof *p->failure_heap);
    if (p->failure_heap == NULL) {
        return HR_FAIL(err, NOMEM, "replay: needed host memory for a heap, had none");
    }
    return replay_snapshot(p, device, p->failure_heap, err);
}

// The heap is kept of the first one only.
static hr_status note_failure(replay_player *p, uint32_t device, uint32_t event, uint64_t bytes, hr_err *err)
{
    replay_device *d = &p->devices[device];
    d->failures++;
    if (p->failure_count < REPLAY_FAILURES_MAX) {
        p->failures[p->failure_count] =
            (replay_failure){event, p->steps, device, bytes, allocator_get_stats(d->heap)};
    }
    if (p->failure_count++ == 0 && p->setup.keeps_failure_heap) {
        return keep_failure_heap(p, device, err);
    }
    return HR_OK;
}

// ---- planning ahead -------------------------------------------------------------------------------------------

static uint32_t count_requests(const trace *t, uint32_t device)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < t->events.count; k++) {
        count += asks(&t->events.data[k]) && t->events.data[k].device == device;
    }
    return count;
}

// The lifetimes of a device's blocks. last[block] is the buffer that the block is now.
static void find_lifetimes(const trace *t, uint32_t device, pack_buffer *buffers, uint32_t *tags,
                           uint32_t *last)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        if (e->device != device) {
            continue;
        }
        if (asks(e)) {
            bool stays = e->kind == TRACE_ALLOC;
            buffers[count] = (pack_buffer){k, stays ? t->events.count : k + 1, e->bytes};
            tags[count] = k;
            if (stays) {
                last[e->block] = count;
            }
            count++;
        } else if (e->kind == TRACE_FREE) {
            buffers[last[e->block]].death = k;
        }
    }
}

// Out of memory and numbers beyond all measure are a result: the plan does not fit.
static hr_status plan_ahead(replay_player *p, uint32_t device, const allocator_requests *all, hr_err *err)
{
    allocator_plan plan = {.steps = all, .step_count = 1};
    uint64_t needed_bytes = 0;
    replay_device *d = &p->devices[device];
    hr_status status = allocator_plan_ahead(d->heap, &plan, &needed_bytes, err);
    if (status == HR_OOM || status == HR_CHECK) {
        d->hopeless = true;
        return note_failure(p, device, HR_NO_ID, status == HR_OOM ? needed_bytes : HR_NONE, err);
    }
    return status == HR_OK ? allocator_follow(d->heap, 0, err) : status;
}

static hr_status plan_device(replay_player *p, uint32_t device, hr_err *err)
{
    allocator_requests all = {.count = count_requests(p->t, device)};
    pack_buffer *buffers = hr_calloc(all.count, sizeof *buffers);
    uint32_t *tags = hr_calloc(all.count, sizeof *tags);
    uint32_t *last = hr_calloc((size_t)p->t->block_count + 1, sizeof *last);
    hr_status status = HR_OK;
    if (last == NULL || (all.count > 0 && (buffers == NULL || tags == NULL))) {
        status = HR_FAIL(err, NOMEM, "replay: needed host memory to plan %u requests, had none", all.count);
    } else {
        find_lifetimes(p->t, device, buffers, tags, last);
        all.buffers = buffers;
        all.tensors = tags;
        status = plan_ahead(p, device, &all, err);
    }
    hr_free(buffers);
    hr_free(tags);
    hr_free(last);
    return status;
}

// ---- starting and ending --------------------------------------------------------------------------------------

// The plan device's memory: the card's granules, and mapping where numbers can map.
static hr_status open_numbers(const hr_card *card, const allocator_config *config, backing *out, hr_err *err)
{
    void *context = NULL;
    device_options options = {.card = card};
    HR_TRY(device_plan.open(&options, &context, err));
    hr_status status = device_plan.memory(context, play_backing_bytes(config), true, out, err);
    device_plan.close(context);
    return status;
}

static hr_status open_device(replay_player *p, uint32_t device, hr_err *err)
{
    replay_device *d = &p->devices[device];
    const uint64_t own_bytes = p->setup.limit_bytes[device];
    allocator_config config = p->setup.config;
    config.limit_bytes = own_bytes != 0 ? own_bytes : config.limit_bytes;
    HR_TRY(open_numbers(p->setup.card, &config, &d->numbers, err));
    hr_status status = allocator_create(&config, &d->numbers, p->setup.bus, &d->heap, err);
    if (status != HR_OK) {
        backing_close(&d->numbers);
        return status;
    }
    d->peak.event = HR_NO_ID;
    if (!allocator_plans(d->heap)) {
        return HR_OK;
    }
    p->tags_events = true;
    return plan_device(p, device, err);
}

hr_status replay_start(replay_player *p, const trace *t, const replay_setup *setup, hr_err *err)
{
    *p = (replay_player){.t = t, .setup = *setup, .tags_events = setup->tags_events};
    p->addresses = hr_calloc((size_t)t->block_count + 1, sizeof *p->addresses);
    if (p->addresses == NULL) {
        return HR_FAIL(err, NOMEM, "replay: needed host memory for %u blocks, had none", t->block_count);
    }
    for (uint32_t k = 0; k < t->events.count; k++) {
        if (p->devices[t->events.data[k].device].heap == NULL) {
            HR_TRY(open_device(p, t->events.data[k].device, err));
        }
    }
    return HR_OK;
}

void replay_close(replay_player *p)
{
    for (uint32_t k = 0; k < TRACE_DEVICES_MAX; k++) {
        if (p->devices[k].heap != NULL) {
            allocator_destroy(p->devices[k].heap);
            backing_close(&p->devices[k].numbers);
        }
    }
    if (p->failure_heap != NULL) {
        heap_snapshot_deinit(p->failure_heap);
        hr_free(p->failure_heap);
    }
    hr_free(p->addresses);
    *p = (replay_player){0};
}

// ---- playing --------------------------------------------------------------------------------------------------

static void note_served(replay_device *d, uint32_t event, uint64_t address, uint64_t bytes)
{
    const heap_counters *c = &d->heap->counters;
    if (d->first_address == 0) {
        d->first_address = address;
    }
    d->reach_bytes = max_of(d->reach_bytes, address + bytes - d->first_address);
    if (c->in_use_bytes > d->peak.in_use_bytes) {
        d->peak.in_use_bytes = c->in_use_bytes;
        d->peak.requested_bytes = c->requested_bytes;
        d->peak.pool_bytes = c->pool_bytes;
        d->peak.largest_free_bytes = d->heap->ops->largest_free(d->heap);
        d->peak.event = event;
    }
}

// *address is 0 when the request is not served, which is no error.
static hr_status ask(replay_player *p, const trace_event *e, uint64_t *address, hr_err *err)
{
    replay_device *d = &p->devices[e->device];
    allocator_request r = {
        .bytes = e->bytes, .tensor = p->tags_events ? p->at : e->name, .stream = e->stream};
    *address = 0;
    if (d->hopeless) {
        return HR_OK;
    }
    const hr_status status =
        allocator_serve(d->heap, &r, address, NULL); // a sentence for each would take long
    if (status == HR_OK) {
        note_served(d, p->at, *address, e->bytes);
        return HR_OK;
    }
    if (status == HR_OOM) {
        return note_failure(p, e->device, p->at, e->bytes, err);
    }
    return hr_err_set(err, status, __FILE__, __LINE__,
                      "replay: the %s allocator needed host memory at event %u, had none", d->heap->ops->name,
                      p->at);
}

// What failed when it was recorded: would it have been served here?
static hr_status ask_again(replay_player *p, const trace_event *e, hr_err *err)
{
    uint64_t address = 0;
    if (e->bytes == 0) {
        return HR_OK;
    }
    HR_TRY(ask(p, e, &address, err));
    p->devices[e->device].served += address != 0;
    allocator_free(p->devices[e->device].heap, address);
    return HR_OK;
}

static void tell(const replay_player *p, const trace_event *e)
{
    trace_bus *bus = p->setup.bus;
    bus->step = p->steps;
    bus->device = e->device;
    bus->instr = HR_NO_ID;
    bus->now_ns = e->time_ns;
}

// A step is over on every device.
static void end_step(replay_player *p)
{
    p->steps++;
    if (p->setup.bus != NULL) {
        hr_event event = {.kind = HR_EVENT_STEP, .u.step = {.loss = (double)NAN, .accuracy = (double)NAN}};
        trace_emit(p->setup.bus, &event);
    }
    for (uint32_t k = 0; k < p->t->device_count; k++) {
        if (p->devices[k].heap != NULL) {
            allocator_synchronise(p->devices[k].heap);
        }
    }
}

static hr_status play_event(replay_player *p, const trace_event *e, hr_err *err)
{
    switch ((trace_kind)e->kind) {
    case TRACE_ALLOC:
        return ask(p, e, &p->addresses[e->block], err);
    case TRACE_FREE:
        allocator_free(p->devices[e->device].heap, p->addresses[e->block]);
        p->addresses[e->block] = 0;
        return HR_OK;
    case TRACE_REFUSED:
        return ask_again(p, e, err);
    case TRACE_STEP:
        end_step(p);
        return HR_OK;
    case TRACE_RETIRE: // its memory is not to be had before the stream has got there
    case TRACE_GROW:
    case TRACE_SHRINK:
    case TRACE_KINDS:
        break;
    }
    return HR_OK;
}

hr_status replay_play(replay_player *p, uint32_t end, hr_err *err)
{
    const trace_event *events = p->t->events.data;
    end = end < p->t->events.count ? end : p->t->events.count;
    for (; p->at < end && !(p->setup.ends_at_failure && p->failure_count > 0); p->at++) {
        if (p->setup.bus != NULL) {
            tell(p, &events[p->at]);
        }
        if (p->at % EVENTS_BETWEEN_STOPS == 0 && p->setup.stop != NULL &&
            p->setup.stop(p->setup.stop_context)) {
            return HR_FAIL(err, INTERRUPTED, "at event %u of %u", p->at, p->t->events.count);
        }
        HR_TRY(play_event(p, &events[p->at], err));
    }
    return HR_OK;
}
