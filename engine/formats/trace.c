// SPDX-License-Identifier: Apache-2.0
#include "formats/trace.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"

enum { FIRST_LIVE = 64 };

typedef struct trace_live {
    uint64_t address;
    uint64_t bytes; // 0: empty
    uint32_t block;
    uint8_t device;
    bool retired;
} trace_live;

void trace_deinit(trace *t)
{
    vec_deinit(&t->events);
    intern_deinit(&t->names);
    for (uint32_t k = 0; k < TRACE_DEVICES_MAX; k++) {
        if (t->heaps[k] != NULL) {
            heap_snapshot_deinit(t->heaps[k]);
            hr_free(t->heaps[k]);
        }
    }
    *t = (trace){0};
}

void trace_builder_init(trace_builder *b, trace *t)
{
    *b = (trace_builder){.t = t};
}

void trace_builder_deinit(trace_builder *b)
{
    hr_free(b->live);
    vec_deinit(&b->spare_blocks);
    *b = (trace_builder){0};
}

// ---- what lives -----------------------------------------------------------------------------------------------

static uint32_t home_of(const trace_builder *b, uint8_t device, uint64_t address)
{
    return (uint32_t)hash64_mix(address, device) & (b->live_capacity - 1);
}

// The entry of the address, or the empty one where it belongs. The table is never full.
static trace_live *find_live(const trace_builder *b, uint8_t device, uint64_t address)
{
    uint32_t at = home_of(b, device, address);
    while (b->live[at].bytes != 0 && (b->live[at].address != address || b->live[at].device != device)) {
        at = (at + 1) & (b->live_capacity - 1);
    }
    return &b->live[at];
}

static bool reserve_live(trace_builder *b)
{
    if (2 * ((uint64_t)b->live_count + 1) <= b->live_capacity) {
        return true;
    }
    trace_builder grown = *b;
    grown.live_capacity = b->live_capacity == 0 ? FIRST_LIVE : b->live_capacity * 2;
    grown.live = grown.live_capacity == 0 ? NULL : hr_calloc(grown.live_capacity, sizeof *grown.live);
    if (grown.live == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < b->live_capacity; k++) {
        if (b->live[k].bytes != 0) {
            *find_live(&grown, b->live[k].device, b->live[k].address) = b->live[k];
        }
    }
    hr_free(b->live);
    *b = grown;
    return true;
}

// Closes the gap that a removed entry leaves in its run.
static void remove_live(trace_builder *b, trace_live *entry)
{
    uint32_t mask = b->live_capacity - 1, hole = (uint32_t)(entry - b->live);
    for (uint32_t at = (hole + 1) & mask; b->live[at].bytes != 0; at = (at + 1) & mask) {
        uint32_t home = home_of(b, b->live[at].device, b->live[at].address);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            b->live[hole] = b->live[at];
            hole = at;
        }
    }
    b->live[hole] = (trace_live){0};
    b->live_count--;
}

uint64_t trace_live_bytes(const trace_builder *b, uint8_t device, uint64_t address)
{
    return b->live_capacity == 0 ? 0 : find_live(b, device, address)->bytes;
}

// ---- rows -----------------------------------------------------------------------------------------------------

static hr_status no_memory(const trace *t, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "trace: needed host memory for event %" PRIu32 ", had none", t->events.count);
}

static hr_status push(trace_builder *b, const trace_event *event, hr_err *err)
{
    trace *t = b->t;
    if (t->events.count >= UINT32_MAX - 1) {
        return HR_FAIL(err, READ, "trace: needed at most %" PRIu32 " events, has more", UINT32_MAX - 1);
    }
    trace_event *added = vec_push(&t->events);
    if (added == NULL) {
        return no_memory(t, err);
    }
    *added = *event;
    t->device_count = event->device >= t->device_count ? event->device + 1u : t->device_count;
    return HR_OK;
}

static uint32_t next_block(trace_builder *b)
{
    return b->spare_blocks.count > 0 ? b->spare_blocks.data[--b->spare_blocks.count] : b->t->block_count++;
}

static hr_status end_block(trace_builder *b, trace_event event, trace_live *entry, hr_err *err)
{
    event.block = entry->block;
    event.bytes = entry->bytes;
    if (event.kind == TRACE_RETIRE) {
        if (entry->retired) {
            b->t->lost_frees++;
            return HR_OK;
        }
        HR_TRY(push(b, &event, err));
        entry->retired = true;
        return HR_OK;
    }
    uint32_t *spare = vec_push(&b->spare_blocks);
    if (spare == NULL) {
        return no_memory(b->t, err);
    }
    *spare = entry->block;
    hr_status status = push(b, &event, err);
    if (status != HR_OK) {
        b->spare_blocks.count--;
        return status;
    }
    remove_live(b, entry);
    return HR_OK;
}

static hr_status begin_block(trace_builder *b, trace_event event, uint64_t address, hr_err *err)
{
    if (!reserve_live(b)) {
        return no_memory(b->t, err);
    }
    trace_live *entry = find_live(b, event.device, address);
    if (entry->bytes != 0) {
        trace_event end = event;
        end.kind = TRACE_FREE;
        end.name = HR_NO_ID;
        b->t->reused++;
        HR_TRY(end_block(b, end, entry, err));
        entry = find_live(b, event.device, address);
    }
    event.block = next_block(b);
    hr_status status = push(b, &event, err);
    if (status == HR_OK) {
        *entry = (trace_live){address, event.bytes, event.block, event.device, false};
        b->live_count++;
    }
    return status;
}

static void begin_at_zero(trace_builder *b, trace_event *event)
{
    if (!b->has_first_time) {
        b->first_time_ns = event->time_ns;
        b->has_first_time = true;
    }
    const trace *t = b->t;
    uint64_t last_ns = t->events.count == 0 ? 0 : t->events.data[t->events.count - 1].time_ns;
    uint64_t now_ns = event->time_ns < b->first_time_ns ? 0 : event->time_ns - b->first_time_ns;
    event->time_ns = now_ns < last_ns ? last_ns : now_ns; // files of several threads are not quite in order
    b->t->has_times |= event->time_ns != 0;
}

hr_status trace_add(trace_builder *b, trace_event event, uint64_t address, hr_err *err)
{
    if (event.device >= TRACE_DEVICES_MAX) {
        return HR_FAIL(err, READ, "trace: row %" PRIu32 ": needed a device below %d, had %d", event.row,
                       TRACE_DEVICES_MAX, event.device);
    }
    begin_at_zero(b, &event);
    if (event.kind == TRACE_ALLOC) {
        return event.bytes == 0 ? HR_OK : begin_block(b, event, address, err);
    }
    if (event.kind == TRACE_FREE || event.kind == TRACE_RETIRE) {
        trace_live *entry = b->live_capacity == 0 ? NULL : find_live(b, event.device, address);
        if (entry == NULL || entry->bytes == 0) {
            b->t->lost_frees++;
            return HR_OK;
        }
        return end_block(b, event, entry, err);
    }
    event.block = HR_NO_ID;
    return push(b, &event, err);
}

// ---- checking -------------------------------------------------------------------------------------------------

enum { BLOCK_FREE, BLOCK_LIVE, BLOCK_RETIRED };

static const char *offence_of(const trace *t, const trace_event *e, uint64_t last_ns, const uint8_t *state)
{
    bool takes_block = e->kind == TRACE_ALLOC || e->kind == TRACE_FREE || e->kind == TRACE_RETIRE;
    if (e->kind >= TRACE_KINDS || e->device >= t->device_count) {
        return "is of no known kind or device";
    }
    if (e->time_ns < last_ns) {
        return "lies before the one ahead of it";
    }
    if (e->name != HR_NO_ID && e->name >= intern_count(&t->names)) {
        return "has a name that the table does not";
    }
    if (takes_block != (e->block < t->block_count) || (!takes_block && e->block != HR_NO_ID)) {
        return "has no block, or one that it should not have";
    }
    if (e->kind == TRACE_ALLOC && (state[e->block] != BLOCK_FREE || e->bytes == 0)) {
        return "allocates a living block, or nothing";
    }
    if (e->kind == TRACE_FREE && state[e->block] == BLOCK_FREE) {
        return "frees what does not live";
    }
    if (e->kind == TRACE_RETIRE && state[e->block] != BLOCK_LIVE) {
        return "retires what does not live";
    }
    return NULL;
}

hr_status trace_check(const trace *t, hr_err *err)
{
    uint8_t *state = hr_calloc((size_t)t->block_count + 1, sizeof *state);
    if (state == NULL) {
        return no_memory(t, err);
    }
    hr_status status = HR_OK;
    uint64_t last_ns = 0;
    for (uint32_t k = 0; status == HR_OK && k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        const char *offence = offence_of(t, e, last_ns, state);
        if (offence != NULL) {
            status = HR_FAIL(err, CHECK, "trace: event %" PRIu32 " (row %" PRIu32 ") %s", k, e->row, offence);
        } else if (e->block != HR_NO_ID) {
            state[e->block] = e->kind == TRACE_ALLOC  ? BLOCK_LIVE
                              : e->kind == TRACE_FREE ? BLOCK_FREE
                                                      : BLOCK_RETIRED;
        }
        last_ns = e->time_ns;
    }
    hr_free(state);
    return status;
}
