// SPDX-License-Identifier: Apache-2.0
#include "events/heap_holes.h"

#include <stdlib.h>

void heap_holes_deinit(heap_holes *holes)
{
    vec_deinit(&holes->list);
    *holes = (heap_holes){.bytes = 0};
}

static const heap_chunk *chunk_at(const heap_snapshot *p, uint32_t k)
{
    return &p->chunks.data[k];
}

static bool in_one_region(const heap_snapshot *p, uint32_t a, uint32_t b)
{
    return chunk_at(p, a)->region_address == chunk_at(p, b)->region_address;
}

// Bytes of the free chunks directly below and above chunk k, in its region.
static uint64_t free_below(const heap_snapshot *p, uint32_t k)
{
    uint64_t bytes = 0;
    for (; k > 0 && in_one_region(p, k - 1, k) && !chunk_at(p, k - 1)->in_use; k--) {
        bytes += chunk_at(p, k - 1)->size_bytes;
    }
    return bytes;
}

static uint64_t free_above(const heap_snapshot *p, uint32_t k)
{
    uint64_t bytes = 0;
    for (; k + 1 < p->chunks.count && in_one_region(p, k, k + 1) && !chunk_at(p, k + 1)->in_use; k++) {
        bytes += chunk_at(p, k + 1)->size_bytes;
    }
    return bytes;
}

uint64_t heap_joined_bytes(const heap_snapshot *p, uint32_t chunk)
{
    return free_below(p, chunk) + chunk_at(p, chunk)->size_bytes + free_above(p, chunk);
}

uint64_t heap_now(const heap_snapshot *p)
{
    uint64_t now = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = chunk_at(p, k);
        now = c->since > now ? c->since : now;
        now = c->allocation_id > now ? c->allocation_id : now;
    }
    return now;
}

uint64_t heap_age(const heap_chunk *c, uint64_t now)
{
    uint64_t since = c->since != 0 ? c->since : c->allocation_id;
    return since == 0 ? HEAP_NO_AGE : now - since;
}

// ---- holes ----------------------------------------------------------------------------------------------------

static heap_pin pin_at(const heap_snapshot *p, bool exists, uint32_t chunk, uint64_t hole_bytes)
{
    return exists ? (heap_pin){chunk, heap_joined_bytes(p, chunk)} : (heap_pin){HR_NO_ID, hole_bytes};
}

// The run of free chunks from k on.
static heap_hole hole_from(const heap_snapshot *p, uint32_t k)
{
    heap_hole h = {.address = chunk_at(p, k)->address, .first = k};
    uint32_t behind = k;
    do {
        h.bytes += chunk_at(p, behind)->size_bytes;
        behind++;
    } while (behind < p->chunks.count && in_one_region(p, k, behind) && !chunk_at(p, behind)->in_use);
    h.count = behind - k;
    h.below = pin_at(p, k > 0 && in_one_region(p, k - 1, k), k - 1, h.bytes);
    h.above = pin_at(p, behind < p->chunks.count && in_one_region(p, k, behind), behind, h.bytes);
    return h;
}

static int by_size(const void *a, const void *b)
{
    const heap_hole *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return (x->first > y->first) - (x->first < y->first);
}

hr_status heap_holes_of(const heap_snapshot *p, heap_holes *out, hr_err *err)
{
    *out = (heap_holes){.bytes = 0};
    for (uint32_t k = 0; k < p->chunks.count;) {
        if (chunk_at(p, k)->in_use) {
            k++;
            continue;
        }
        heap_hole *hole = vec_push(&out->list);
        if (hole == NULL) {
            heap_holes_deinit(out);
            return HR_FAIL(err, NOMEM, "heap: needed host memory to list its holes, had none");
        }
        *hole = hole_from(p, k);
        out->bytes += hole->bytes;
        k += hole->count;
    }
    if (out->list.count > 1) {
        qsort(out->list.data, out->list.count, sizeof *out->list.data, by_size);
    }
    return HR_OK;
}

// ---- room for a request ---------------------------------------------------------------------------------------

static void widen(heap_window *w, const heap_chunk *c)
{
    w->count++;
    w->bytes += c->size_bytes;
    w->used_bytes += c->in_use ? c->size_bytes : 0;
    w->used_chunks += c->in_use;
}

static void narrow(heap_window *w, const heap_chunk *c)
{
    w->first++;
    w->count--;
    w->bytes -= c->size_bytes;
    w->used_bytes -= c->in_use ? c->size_bytes : 0;
    w->used_chunks -= c->in_use;
}

static bool is_cheaper(const heap_window *a, const heap_window *b)
{
    if (a->used_bytes != b->used_bytes) {
        return a->used_bytes < b->used_bytes;
    }
    if (a->used_chunks != b->used_chunks) {
        return a->used_chunks < b->used_chunks;
    }
    return a->bytes < b->bytes;
}

// Of all windows that end at a chunk, the shortest that is large enough holds the fewest bytes in use: a second end
// that follows the first is all there is to try.
heap_window heap_cheapest_window(const heap_snapshot *p, uint64_t bytes, heap_chooser may_go, void *context)
{
    heap_window best = {.found = false}, w = {.found = true};
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        bool allowed = may_go == NULL || may_go(context, chunk_at(p, k));
        if (!allowed || w.count == 0 || !in_one_region(p, w.first, k)) {
            w = (heap_window){.found = true, .first = k};
        }
        if (!allowed) {
            continue;
        }
        widen(&w, chunk_at(p, k));
        while (w.bytes - chunk_at(p, w.first)->size_bytes >= bytes && w.count > 1) {
            narrow(&w, chunk_at(p, w.first));
        }
        if (w.bytes >= bytes && (!best.found || is_cheaper(&w, &best))) {
            best = w;
        }
    }
    return best;
}
