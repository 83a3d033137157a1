// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "memory/bfc_impl.h"
#include "memory/counting.h"

#define DOUBLING_MAX (UINT64_C(1) << 61) // beyond any limit: more would only wrap

// Asks the backing for `bytes`, then for 0.9 of it and so on, but never for less than `least_bytes`. The product is
// in single precision, as TensorFlow's; where rounding up undoes the shrinking, one step of 256 B is taken.
static uint64_t take_backpedalling(bfc *b, uint64_t *bytes, uint64_t least_bytes)
{
    backing *source = b->base.source;
    uint64_t address = source->take(source->context, *bytes);
    while (address == 0) {
        uint64_t fewer = bfc_round_up((uint64_t)((float)*bytes * 0.9f));
        b->base.refusal.driver_bytes = *bytes;
        *bytes = fewer < *bytes ? fewer : *bytes - BFC_ROUNDING_BYTES;
        if (*bytes < least_bytes) {
            return 0;
        }
        address = source->take(source->context, *bytes);
    }
    return address;
}

// Enters the range into the regions, whose last element is room for one. The chunk that now ends right before the
// range when it was joined to an older region, CHUNK_NONE when it is a region of its own.
static uint32_t add_region(bfc *b, uint64_t address, uint64_t bytes, uint32_t chunk_id)
{
    bfc_region *regions = b->regions.data;
    uint32_t others = b->regions.count - 1, at = 0;
    while (at < others && regions[at].address < address) {
        at++;
    }
    if (b->base.source->coalesces && at > 0 && regions[at - 1].address + regions[at - 1].bytes == address) {
        regions[at - 1].bytes += bytes;
        b->regions.count--;
        uint32_t last = regions[at - 1].first;
        while (b->chunks.records[last].next != CHUNK_NONE) {
            last = b->chunks.records[last].next;
        }
        return last;
    }
    memmove(&regions[at + 1], &regions[at], (others - at) * sizeof *regions);
    regions[at] = (bfc_region){.address = address, .bytes = bytes, .first = chunk_id};
    return CHUNK_NONE;
}

static void add_chunk(bfc *b, uint64_t address, uint64_t bytes)
{
    uint32_t id = chunks_add(&b->chunks);
    uint32_t before = add_region(b, address, bytes, id);
    b->chunks.records[id] =
        (chunk){.address = address, .size_bytes = bytes, .prev = before, .next = CHUNK_NONE};
    if (before != CHUNK_NONE) {
        b->chunks.records[before].next = id;
    }
    bins_add(&b->bins, b->chunks.records, bfc_coalesce(b, id, false));
    count_grown(&b->base, address, bytes);
}

hr_status bfc_extend(bfc *b, uint64_t rounded_bytes)
{
    const heap_counters *c = &b->base.counters;
    uint64_t available_bytes = (c->limit_bytes - c->pool_bytes) & ~(BFC_ROUNDING_BYTES - 1);
    if (rounded_bytes > available_bytes) {
        return HR_OOM;
    }
    if (vec_push(&b->regions) == NULL) {
        return HR_NOMEM;
    }
    bool raised = false;
    while (rounded_bytes > b->next_region_bytes) {
        b->next_region_bytes *= 2;
        raised = true;
    }
    uint64_t bytes = bfc_min(b->next_region_bytes, available_bytes);
    uint64_t address = take_backpedalling(b, &bytes, rounded_bytes);
    if (address == 0) {
        b->regions.count--;
        return HR_OOM;
    }
    if (!raised && b->next_region_bytes < DOUBLING_MAX) {
        b->next_region_bytes *= 2;
    }
    add_chunk(b, address, bytes);
    return HR_OK;
}

// One free chunk, unless some wait for their stamps.
static bool is_wholly_free(const bfc *b, const bfc_region *r)
{
    uint32_t id = r->first;
    while (id != CHUNK_NONE && bfc_is_free(&b->chunks.records[id])) {
        id = b->chunks.records[id].next;
    }
    return id == CHUNK_NONE;
}

static void give_back(bfc *b, const bfc_region *r)
{
    for (uint32_t id = r->first; id != CHUNK_NONE;) {
        uint32_t next = b->chunks.records[id].next;
        bins_remove(&b->bins, b->chunks.records, id);
        bfc_drop(b, id);
        id = next;
    }
    b->base.source->give_back(b->base.source->context, r->address, r->bytes);
    count_shrunk(&b->base, r->address, r->bytes);
}

bool bfc_collect(bfc *b, uint64_t rounded_bytes)
{
    uint64_t free_bytes = 0;
    for (uint32_t i = 0; i < b->regions.count; i++) {
        free_bytes += is_wholly_free(b, &b->regions.data[i]) ? b->regions.data[i].bytes : 0;
    }
    if (free_bytes == 0 ||
        rounded_bytes > b->base.counters.limit_bytes - b->base.counters.pool_bytes + free_bytes) {
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->regions.count; i++) {
        if (is_wholly_free(b, &b->regions.data[i])) {
            give_back(b, &b->regions.data[i]);
        } else {
            b->regions.data[kept++] = b->regions.data[i];
        }
    }
    b->regions.count = kept;
    return true;
}
