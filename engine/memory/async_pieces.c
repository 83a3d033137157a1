// SPDX-License-Identifier: Apache-2.0
// The pool's chunks and the pieces under them.
#include <string.h>

#include "memory/async_impl.h"
#include "memory/counting.h"

// ---- chunks ---------------------------------------------------------------------------------------------------

bool async_reserve(async_heap *h)
{
    if (!chunks_reserve(&h->chunks, 2) || vec_push(&h->regions) == NULL) {
        return false;
    }
    h->regions.count--;
    return true;
}

static bins *shelf_of(async_heap *h, uint32_t id)
{
    return &h->owners.data[h->chunks.records[id].group].free;
}

void async_shelve(async_heap *h, uint32_t id)
{
    bins_add(shelf_of(h, id), h->chunks.records, id);
}

void async_unshelve(async_heap *h, uint32_t id)
{
    bins_remove(shelf_of(h, id), h->chunks.records, id);
}

// Behind `prev`; CHUNK_NONE: before all others, whose first is `next`.
static void link_chunk(async_heap *h, uint32_t id, uint32_t prev, uint32_t next)
{
    chunk *records = h->chunks.records;
    records[id].prev = prev;
    records[id].next = next;
    if (prev != CHUNK_NONE) {
        records[prev].next = id;
    }
    if (next != CHUNK_NONE) {
        records[next].prev = id;
    } else {
        h->last = id;
    }
}

static void unlink_chunk(async_heap *h, uint32_t id)
{
    chunk *records = h->chunks.records;
    uint32_t prev = records[id].prev, next = records[id].next;
    if (prev != CHUNK_NONE) {
        records[prev].next = next;
    }
    if (next != CHUNK_NONE) {
        records[next].prev = prev;
    } else {
        h->last = prev;
    }
    chunks_release(&h->chunks, id);
}

uint32_t async_split(async_heap *h, uint32_t id, uint64_t bytes)
{
    uint32_t rest = chunks_add(&h->chunks);
    chunk *whole = &h->chunks.records[id];
    h->chunks.records[rest] = (chunk){.address = whole->address + bytes,
                                      .size_bytes = whole->size_bytes - bytes,
                                      .since = whole->since,
                                      .group = whole->group};
    whole->size_bytes = bytes;
    link_chunk(h, rest, id, whole->next);
    async_shelve(h, rest);
    return rest;
}

void async_join(async_heap *h, uint32_t low, uint32_t high)
{
    chunk *a = &h->chunks.records[low];
    const chunk *b = &h->chunks.records[high];
    a->size_bytes += b->size_bytes;
    a->since = a->since > b->since ? a->since : b->since;
    unlink_chunk(h, high);
}

// Both free, of one owner, side by side.
static bool belong_together(const async_heap *h, uint32_t low, uint32_t high)
{
    const chunk *records = h->chunks.records;
    return async_touch(h, low, high) && async_is_free(&records[low]) && async_is_free(&records[high]) &&
           records[low].group == records[high].group;
}

uint32_t async_settle(async_heap *h, uint32_t id)
{
    uint32_t next = h->chunks.records[id].next, prev = h->chunks.records[id].prev;
    if (belong_together(h, id, next)) {
        async_unshelve(h, next);
        async_join(h, id, next);
    }
    if (belong_together(h, prev, id)) {
        async_unshelve(h, prev);
        async_join(h, prev, id);
        id = prev;
    }
    async_shelve(h, id);
    return id;
}

// ---- runs of neighbours ---------------------------------------------------------------------------------------

static bool may_use(const async_heap *h, uint32_t owner, uint32_t id)
{
    const chunk *c = &h->chunks.records[id];
    return async_is_free(c) && (c->group == owner || c->group == ASYNC_EVERYBODY);
}

// The bytes that `owner` may use from `id` on upwards, and where they end.
static uint64_t run_from(const async_heap *h, uint32_t owner, uint32_t id, uint32_t *behind)
{
    uint64_t bytes = 0;
    uint32_t before = CHUNK_NONE;
    while (id != CHUNK_NONE && may_use(h, owner, id) &&
           (before == CHUNK_NONE || async_touch(h, before, id))) {
        bytes += h->chunks.records[id].size_bytes;
        before = id;
        id = h->chunks.records[id].next;
    }
    *behind = id;
    return bytes;
}

// The same downwards from the end of `id`; *first is the lowest chunk of the run, untouched where there is none.
static uint64_t run_up_to(const async_heap *h, uint32_t owner, uint32_t id, uint32_t *first)
{
    uint64_t bytes = 0;
    uint32_t above = CHUNK_NONE;
    while (id != CHUNK_NONE && may_use(h, owner, id) && (above == CHUNK_NONE || async_touch(h, id, above))) {
        bytes += h->chunks.records[id].size_bytes;
        *first = above = id;
        id = h->chunks.records[id].prev;
    }
    return bytes;
}

uint32_t async_find_run(const async_heap *h, uint32_t owner, uint64_t bytes)
{
    uint32_t best = CHUNK_NONE, id = h->regions.count == 0 ? CHUNK_NONE : h->regions.data[0].first;
    uint64_t best_bytes = UINT64_MAX;
    while (id != CHUNK_NONE) {
        uint32_t behind = CHUNK_NONE;
        uint64_t run_bytes = run_from(h, owner, id, &behind);
        if (run_bytes >= bytes && run_bytes < best_bytes) {
            best = id;
            best_bytes = run_bytes;
        }
        id = run_bytes == 0 ? h->chunks.records[id].next : behind;
    }
    return best;
}

// ---- mapping --------------------------------------------------------------------------------------------------

// Where pieces may come: the hole before regions[at], or behind the last one.
typedef struct site {
    uint32_t at;
    uint64_t address, bytes;
} site;

static uint64_t whole_pieces(const async_heap *h, uint64_t bytes)
{
    return (bytes + h->piece_bytes - 1) / h->piece_bytes * h->piece_bytes;
}

// The fewest pieces in one hole that make a run of `bytes`; none when the hole is too short. Right behind what lies
// before it or, where that takes fewer, right before what lies behind.
static bool find_in_hole(const async_heap *h, uint32_t owner, uint32_t at, uint64_t bytes, site *out)
{
    uint32_t ignored = CHUNK_NONE;
    const async_region *below = at == 0 ? NULL : &h->regions.data[at - 1];
    const async_region *above = at == h->regions.count ? NULL : &h->regions.data[at];
    uint64_t low = below == NULL ? h->origin : below->address + below->bytes;
    uint64_t high = above == NULL ? h->origin + h->reserved_bytes : above->address;
    uint32_t last = above == NULL ? h->last : h->chunks.records[above->first].prev;
    uint64_t before = run_up_to(h, owner, last, &ignored);
    uint64_t after = above == NULL ? 0 : run_from(h, owner, above->first, &ignored);
    uint64_t from_low = whole_pieces(h, bytes - before), from_high = whole_pieces(h, bytes - after);
    if (from_low < high - low || from_high < high - low) {
        bool at_low = from_low <= from_high;
        *out = (site){at, at_low ? low : high - from_high, at_low ? from_low : from_high};
        return true;
    }
    *out = (site){at, low, high - low};
    return high > low && before + (high - low) + after >= bytes;
}

static bool find_site(const async_heap *h, uint32_t owner, uint64_t bytes, site *best)
{
    bool found = false;
    for (uint32_t at = 0; at <= h->regions.count; at++) {
        site s;
        if (find_in_hole(h, owner, at, bytes, &s) && (!found || s.bytes < best->bytes)) {
            *best = s;
            found = true;
        }
    }
    return found;
}

// Joins new pieces, whose chunk is `id`, to the regions they touch; there is room for one more.
static void enter_region(async_heap *h, const site *s, uint32_t id)
{
    async_region *r = h->regions.data;
    uint32_t count = h->regions.count;
    bool low = s->at > 0 && r[s->at - 1].address + r[s->at - 1].bytes == s->address;
    bool high = s->at < count && s->address + s->bytes == r[s->at].address;
    if (low) {
        r[s->at - 1].bytes += s->bytes;
    }
    if (low && high) {
        r[s->at - 1].bytes += r[s->at].bytes;
        memmove(&r[s->at], &r[s->at + 1], (count - s->at - 1) * sizeof *r);
        h->regions.count--;
    } else if (high) {
        r[s->at] = (async_region){s->address, s->bytes + r[s->at].bytes, id};
    } else if (!low) {
        memmove(&r[s->at + 1], &r[s->at], (count - s->at) * sizeof *r);
        r[s->at] = (async_region){s->address, s->bytes, id};
        h->regions.count++;
    }
}

hr_status async_grow(async_heap *h, uint32_t owner, uint64_t bytes, uint32_t *run)
{
    backing *source = h->base.source;
    site s = {0};
    if (!find_site(h, owner, bytes, &s)) {
        return HR_OOM;
    }
    h->base.refusal.driver_bytes = s.bytes;
    if (s.bytes > h->base.counters.limit_bytes - h->base.counters.pool_bytes ||
        !source->map(source->context, s.address, s.bytes)) {
        return HR_OOM;
    }
    uint32_t id = chunks_add(&h->chunks);
    uint32_t next = s.at == h->regions.count ? CHUNK_NONE : h->regions.data[s.at].first;
    uint32_t prev = next == CHUNK_NONE ? h->last : h->chunks.records[next].prev;
    h->chunks.records[id] = (chunk){.address = s.address, .size_bytes = s.bytes, .group = owner & 0xFFFFFFu};
    chunk_set_free(&h->chunks.records[id], h->base.allocation_ids, 0);
    link_chunk(h, id, prev, next);
    enter_region(h, &s, id);
    count_grown(&h->base, s.address, s.bytes);
    *run = async_settle(h, id);
    (void)run_up_to(h, owner, *run, run);
    return HR_OK;
}

// ---- unmapping ------------------------------------------------------------------------------------------------

static uint32_t region_of(const async_heap *h, uint64_t address)
{
    uint32_t low = 0, high = h->regions.count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (h->regions.data[middle].address <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Takes [cut, end) out of its region; `behind` is the chunk at `end`, if the region goes on there.
static void leave_region(async_heap *h, uint64_t cut, uint64_t end, uint32_t behind)
{
    uint32_t at = region_of(h, cut);
    async_region *r = &h->regions.data[at];
    uint64_t region_end = r->address + r->bytes;
    async_region rest = {end, region_end - end, behind};
    if (cut > r->address && rest.bytes > 0) {
        memmove(r + 2, r + 1, (h->regions.count - at - 1) * sizeof *r);
        r[1] = rest;
        h->regions.count++;
        r->bytes = cut - r->address;
    } else if (cut > r->address) {
        r->bytes = cut - r->address;
    } else if (rest.bytes > 0) {
        *r = rest;
    } else {
        memmove(r, r + 1, (h->regions.count - at - 1) * sizeof *r);
        h->regions.count--;
    }
}

// Unmaps the highest wholly free pieces of a free chunk, `most_bytes` of them. False when the books have no room.
static bool unmap_inside(async_heap *h, uint32_t id, uint64_t most_bytes)
{
    const chunk *c = &h->chunks.records[id];
    uint64_t low = h->origin + whole_pieces(h, c->address - h->origin);
    uint64_t end = h->origin + (async_end(c) - h->origin) / h->piece_bytes * h->piece_bytes;
    if (low >= end) {
        return true;
    }
    if (!async_reserve(h)) {
        return false;
    }
    c = &h->chunks.records[id];
    uint64_t cut = end - low > most_bytes ? end - most_bytes : low;
    async_unshelve(h, id);
    uint32_t behind = async_end(c) > end ? async_split(h, id, end - c->address) : c->next;
    leave_region(h, cut, end, behind);
    if (cut > h->chunks.records[id].address) {
        h->chunks.records[id].size_bytes = cut - h->chunks.records[id].address;
        async_shelve(h, id);
    } else {
        unlink_chunk(h, id);
    }
    h->base.source->unmap(h->base.source->context, cut, end - cut);
    count_shrunk(&h->base, cut, end - cut);
    return true;
}

void async_trim(async_heap *h, uint64_t keep_bytes)
{
    uint32_t id = h->last;
    while (id != CHUNK_NONE && h->base.counters.pool_bytes > keep_bytes) {
        uint32_t below = h->chunks.records[id].prev;
        uint64_t most_bytes = whole_pieces(h, h->base.counters.pool_bytes - keep_bytes);
        if (async_is_free(&h->chunks.records[id]) && !unmap_inside(h, id, most_bytes)) {
            return;
        }
        id = below;
    }
}
