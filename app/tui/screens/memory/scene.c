// SPDX-License-Identifier: Apache-2.0
#include "app/tui/screens/memory/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void heap_scene_deinit(heap_scene *v)
{
    heap_mirror_deinit(&v->heap);
    free(v->changes);
    if (v->map != NULL) {
        free(v->map->data);
    }
    free(v->map);
    *v = (heap_scene){0};
}

void heap_scene_clear(heap_scene *v)
{
    heap_mirror_clear(&v->heap);
    v->count = v->at = v->peak = 0;
    v->step = (heap_step){0};
    v->refused = (heap_refused){0};
    v->address = 0;
    v->version++;
    v->map = v->map == NULL ? calloc(1, sizeof *v->map) : v->map;
}

// ---- taking a step --------------------------------------------------------------------------------------------

static bool has_room(heap_scene *v, size_t count)
{
    if (count <= v->room) {
        return true;
    }
    heap_change *grown = reallocarray(v->changes, count, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    v->changes = grown;
    v->room = count;
    return true;
}

// The heap stands behind the last change.
static void find_peak(heap_scene *v)
{
    uint64_t bytes = v->heap.in_use_bytes, most_bytes = 0;
    for (size_t at = v->count + 1; at-- > 0;) { // backwards, so that the first of equals stays
        if (bytes >= most_bytes) {
            most_bytes = bytes;
            v->peak = at;
        }
        const heap_change *c = at > 0 ? &v->changes[at - 1] : NULL;
        if (c != NULL && c->kind == HR_EVENT_FREE) {
            bytes += c->bytes;
        } else if (c != NULL && c->kind == HR_EVENT_ALLOC) {
            bytes -= c->bytes;
        }
    }
}

bool heap_scene_take(heap_scene *v, const heap_record *r)
{
    v->seen = r->version;
    if (r->step.kind == HEAP_STEP_NONE) {
        v->refused = r->refused;
        v->version++;
        return true; // what was shown stays
    }
    heap_scene_clear(v);
    if (!has_room(v, r->closed) || !heap_mirror_copy(&v->heap, &r->now)) {
        return false;
    }
    for (size_t i = r->count; i > r->closed; i--) {
        if (!heap_mirror_undo(&v->heap, &r->changes[i - 1])) {
            heap_scene_clear(v);
            return false;
        }
    }
    for (size_t i = 0; i < r->closed; i++) {
        v->changes[i] = r->changes[i];
    }
    v->count = v->at = r->closed;
    v->step = r->step;
    v->refused = r->refused;
    heap_mirror_measure(&v->heap);
    find_peak(v);
    return true;
}

// The plan knows of the request what the stream did not: whose it was.
static void take_refusal(heap_refused *r, const hr_event *last)
{
    const hr_event_memory *what = &last->u.memory;
    if (last->kind == HR_EVENT_OOM) {
        r->requested_bytes = what->requested_bytes;
        r->largest_free_bytes = what->largest_free_bytes;
        r->in_use_bytes = what->in_use_bytes;
        r->pool_bytes = what->pool_bytes;
        r->tensor = what->tensor;
        r->category = last->category < HR_CATEGORY_COUNT ? last->category : HR_CATEGORY_COUNT;
    }
}

bool heap_scene_plan(heap_scene *v, const hr_step_plan *p, const hr_knobs *knobs, const heap_refused *refused)
{
    char kind[HR_KNOB_TEXT_MAX];
    size_t held = p->event_count < HEAP_STEP_CHANGES_MAX ? p->event_count : HEAP_STEP_CHANGES_MAX;
    size_t first = p->event_count - held; // what is before only makes the heap
    first = first < p->build_events ? p->build_events : first;
    heap_scene_clear(v);
    if (!has_room(v, held)) {
        return false;
    }
    // Where nothing but numbers is there, the driver's own pool is played by async.
    v->heap.joins = heap_joins_regions(knobs) || hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "async_driver");
    for (size_t i = 0; i < p->event_count; i++) {
        heap_change c = heap_change_of(&p->events[i]);
        if (heap_mirror_apply(&v->heap, &c) && i >= first) {
            v->changes[v->count++] = c;
        }
    }
    v->at = v->count;
    v->step = (heap_step){.kind = HEAP_STEP_PLANNED, .missing = first - p->build_events};
    snprintf(v->step.allocator, sizeof v->step.allocator, "%.15s",
             hr_knob_format(knobs, HR_KNOB_ALLOCATOR_KIND, kind));
    v->refused = *refused;
    heap_mirror_measure(&v->heap);
    take_refusal(&v->refused, &p->events[p->event_count - 1]);
    find_peak(v);
    return true;
}

// ---- walking --------------------------------------------------------------------------------------------------

static void point_at_hole(heap_scene *v)
{
    heap_walk walk = {0};
    heap_piece piece;
    uint64_t largest = 0;
    while (heap_mirror_next(&v->heap, &walk, &piece)) {
        if (piece.block == NULL && piece.bytes > largest) {
            largest = piece.bytes;
            v->address = piece.address;
        }
    }
}

void heap_scene_seek(heap_scene *v, size_t at)
{
    at = at < v->count ? at : v->count;
    while (v->at > at && heap_mirror_undo(&v->heap, &v->changes[v->at - 1])) {
        v->at--;
    }
    while (v->at < at && heap_mirror_apply(&v->heap, &v->changes[v->at])) {
        v->at++;
    }
    if (!v->heap.is_measured) {
        heap_mirror_measure(&v->heap);
    }
    const heap_change *last = v->at > 0 ? &v->changes[v->at - 1] : NULL;
    if (last != NULL && last->kind == HR_EVENT_OOM) {
        point_at_hole(v);
    } else if (last != NULL) {
        v->address = last->address;
    }
}

size_t heap_scene_rows(const heap_scene *v)
{
    bool beside = v->refused.any && !v->refused.is_recorded && v->step.kind != HEAP_STEP_PLANNED;
    return v->step.kind == HEAP_STEP_NONE && !beside ? 0 : 1 + v->count + (beside ? 1 : 0);
}

const heap_change *heap_scene_row(const heap_scene *v, size_t row)
{
    return row >= 1 && row <= v->count ? &v->changes[row - 1] : NULL;
}

bool heap_scene_row_is_refused(const heap_scene *v, size_t row)
{
    const heap_change *c = heap_scene_row(v, row);
    return c != NULL ? c->kind == HR_EVENT_OOM : row > v->count;
}

// ---- pieces ---------------------------------------------------------------------------------------------------

// Whether the change concerns bytes of the piece.
static bool meets(const heap_change *c, const heap_piece *piece)
{
    return c->kind != HR_EVENT_OOM && c->address < piece->address + piece->bytes &&
           piece->address < c->address + c->bytes;
}

size_t heap_scene_made(const heap_scene *v, const heap_piece *piece)
{
    for (size_t i = v->at; i-- > 0;) {
        if (meets(&v->changes[i], piece)) {
            return i;
        }
    }
    return SIZE_MAX;
}

size_t heap_scene_ended(const heap_scene *v, const heap_piece *piece)
{
    for (size_t i = v->at; i < v->count; i++) {
        if (meets(&v->changes[i], piece)) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool heap_scene_piece(const heap_scene *v, heap_piece *piece)
{
    if (heap_mirror_at(&v->heap, v->address, piece)) {
        return true;
    }
    heap_walk walk = {0};
    bool any = false;
    while (heap_mirror_next(&v->heap, &walk, piece)) {
        any = true;
        if (piece->address >= v->address) {
            break;
        }
    }
    return any;
}

// The address in the piece beside, of this region or the next; false: there is none.
static bool beside(const heap_mirror *m, const heap_piece *here, bool before, uint64_t *address)
{
    const heap_region *r = &m->regions[here->region];
    if (before ? here->address > r->address : here->address + here->bytes < r->address + r->bytes) {
        *address = before ? here->address - 1 : here->address + here->bytes;
        return true;
    }
    if (before ? here->region == 0 : here->region + 1 == m->region_count) {
        return false;
    }
    *address = before ? r[-1].address + r[-1].bytes - 1 : r[1].address;
    return true;
}

void heap_scene_move(heap_scene *v, int pieces)
{
    heap_piece here, piece;
    uint64_t address;
    if (!heap_scene_piece(v, &here)) {
        return;
    }
    v->address = here.address;
    v->is_kept = true;
    if (pieces != 0 && beside(&v->heap, &here, pieces < 0, &address) &&
        heap_mirror_at(&v->heap, address, &piece)) {
        v->address = piece.address;
    }
}
