// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/heap_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void heap_record_deinit(heap_record *r)
{
    heap_mirror_deinit(&r->now);
    free(r->changes);
    *r = (heap_record){0};
}

static void forget_changes(heap_record *r)
{
    r->count = r->closed = r->current = 0;
    r->missing = 0;
    r->step = (heap_step){0};
}

void heap_record_clear(heap_record *r)
{
    heap_mirror_clear(&r->now);
    forget_changes(r);
    r->in_build = r->broken = r->resumes = false;
    r->refused = (heap_refused){0};
    r->version++;
}

bool heap_joins_regions(const hr_knobs *knobs)
{
    bool expandable =
        hr_knob_is(knobs, HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, "on") ||
        strcasestr(hr_knob_text(knobs, HR_KNOB_ALLOCATOR_CONF), "expandable_segments:true") != NULL;
    return hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "async") ||
           (expandable && hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching"));
}

static void take_knobs(heap_record *r)
{
    r->now.joins = r->joins;
    memcpy(r->allocator, r->next_allocator, sizeof r->allocator);
}

void heap_record_knobs(heap_record *r, const hr_knobs *knobs)
{
    char kind[HR_KNOB_TEXT_MAX];
    hr_knob_format(knobs, HR_KNOB_ALLOCATOR_KIND, kind);
    snprintf(r->next_allocator, sizeof r->next_allocator, "%.15s", kind);
    r->joins = heap_joins_regions(knobs);
    if (r->now.region_count == 0) {
        take_knobs(r);
    }
}

// ---- changes --------------------------------------------------------------------------------------------------

// Forgets the oldest ones.
static void drop(heap_record *r, size_t count)
{
    if (count == 0) {
        return;
    }
    size_t of_closed = count < r->closed ? count : r->closed;
    size_t of_current = count > r->current ? count - r->current : 0;
    r->step.missing += of_closed;
    r->missing += of_current;
    r->closed -= of_closed;
    r->current -= count - of_current;
    r->count -= count;
    memmove(r->changes, &r->changes[count], r->count * sizeof *r->changes);
}

static bool has_room(heap_record *r)
{
    enum { FIRST_ROOM = 256, DROPPED_AT_ONCE = HEAP_CHANGES_MAX / 4 };
    if (r->count == HEAP_CHANGES_MAX) {
        drop(r, DROPPED_AT_ONCE);
    }
    if (r->count < r->room) {
        return true;
    }
    size_t room = r->room == 0 ? FIRST_ROOM : 2 * r->room;
    heap_change *grown = reallocarray(r->changes, room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    r->changes = grown;
    r->room = room;
    return true;
}

static void break_off(heap_record *r, uint64_t seq)
{
    forget_changes(r);
    r->broken = true;
    r->resumed_seq = seq;
}

static void push(heap_record *r, const heap_change *c)
{
    if (has_room(r)) {
        r->changes[r->count++] = *c;
    } else {
        break_off(r, UINT64_MAX);
    }
}

static bool has_sums(const heap_record *r, const hr_event_memory *what)
{
    return r->now.in_use_bytes == what->in_use_bytes && r->now.pool_bytes == what->pool_bytes;
}

// ---- steps ----------------------------------------------------------------------------------------------------

static void close_step(heap_record *r, heap_step_kind kind, uint64_t number)
{
    r->in_build = false;
    if (r->broken) {
        forget_changes(r);
        return;
    }
    drop(r, r->current);
    if (r->count > HEAP_STEP_CHANGES_MAX) {
        r->current = 0;
        drop(r, r->count - HEAP_STEP_CHANGES_MAX);
    }
    r->step = (heap_step){.kind = kind, .number = number, .missing = r->missing};
    memcpy(r->step.allocator, r->allocator, sizeof r->allocator);
    r->closed = r->current = r->count;
    r->missing = 0;
    r->refused.any = kind == HEAP_STEP_REFUSED;
    r->version++;
}

static void on_memory(heap_record *r, const hr_event *e)
{
    heap_change c = heap_change_of(e);
    if (r->in_build && e->phase != HR_PHASE_BUILD) {
        close_step(r, HEAP_STEP_BUILD, e->step);
    }
    bool fits = heap_mirror_apply(&r->now, &c);
    if (!fits) {
        heap_mirror_yield(&r->now, &c);
        (void)heap_mirror_apply(&r->now, &c);
    }
    r->agrees = has_sums(r, &e->u.memory);
    if (!fits || (!r->agrees && !r->broken)) {
        r->damage++;
        break_off(r, e->seq);
    }
    push(r, &c);
}

static void on_oom(heap_record *r, const hr_event *e)
{
    const hr_event_memory *what = &e->u.memory;
    heap_change c = heap_change_of(e);
    bool recorded = !r->broken && has_sums(r, what);
    r->refused = (heap_refused){.any = true,
                                .is_recorded = recorded,
                                .requested_bytes = what->requested_bytes,
                                .largest_free_bytes = what->largest_free_bytes,
                                .in_use_bytes = what->in_use_bytes,
                                .pool_bytes = what->pool_bytes,
                                .tensor = what->tensor,
                                .instr = e->instr,
                                .category = c.category,
                                .phase = c.phase};
    r->version++;
    if (recorded) {
        push(r, &c);
        close_step(r, HEAP_STEP_REFUSED, e->step);
    }
}

static void on_build(heap_record *r)
{
    forget_changes(r);
    r->refused.any = false;
    r->broken = r->broken && (!r->agrees || r->resumes);
    r->in_build = true;
    take_knobs(r);
}

// With the step's last event the heap is known to be right, or not.
static void on_step(heap_record *r, const hr_event *e)
{
    close_step(r, HEAP_STEP_TRAINED, e->step);
    r->refused.any = false;
    r->broken = r->broken && (!r->agrees || r->resumes);
}

void heap_record_feed(heap_record *r, const hr_event *e)
{
    if (e->version != HR_EVENT_VERSION || e->device != 0) {
        return;
    }
    if (r->resumes) {
        r->resumes = false;
        r->resumed_seq = e->seq;
    }
    switch ((int)e->kind) { // the others do not concern the heap
    case HR_EVENT_ALLOC:
    case HR_EVENT_FREE:
    case HR_EVENT_GROW:
    case HR_EVENT_SHRINK:
        on_memory(r, e);
        break;
    case HR_EVENT_OOM:
        on_oom(r, e);
        break;
    case HR_EVENT_STEP:
        on_step(r, e);
        break;
    case HR_EVENT_EVAL:
        r->current = r->count;
        r->missing = 0;
        break;
    case HR_EVENT_BUILD:
        on_build(r);
        break;
    default:
        break;
    }
}

void heap_record_lost(heap_record *r, uint64_t events)
{
    r->lost_events += events;
    break_off(r, UINT64_MAX);
    r->agrees = false;
    r->resumes = true;
}

bool heap_record_restore(heap_record *r, const hr_session_heap *heap)
{
    heap_mirror restored = {.joins = r->joins};
    bool fits = !r->resumes && r->broken && r->missing == 0 && heap->seq >= r->resumed_seq &&
                heap_mirror_restore(&restored, heap);
    bool between = true; // two steps, with nothing behind the snapshot
    for (size_t i = 0; fits && i < r->count; i++) {
        heap_change c = r->changes[i];
        if ((int32_t)(c.seq - (uint32_t)heap->seq) >= 0) {
            fits = heap_mirror_apply(&restored, &c);
            between = false;
        }
    }
    if (!fits) {
        heap_mirror_deinit(&restored);
        return false;
    }
    heap_mirror_deinit(&r->now);
    r->now = restored;
    forget_changes(r);
    r->broken = !between;
    r->agrees = true; // until an event says otherwise
    return true;
}
