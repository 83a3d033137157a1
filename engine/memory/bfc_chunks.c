// SPDX-License-Identifier: Apache-2.0
#include "memory/bfc_impl.h"

void bfc_split(bfc *b, uint32_t id, uint64_t bytes)
{
    uint32_t rest_id = chunks_add(&b->chunks);
    chunk *whole = &b->chunks.records[id];
    b->chunks.records[rest_id] = (chunk){
        .address = whole->address + bytes,
        .size_bytes = whole->size_bytes - bytes,
        .prev = id,
        .next = whole->next,
        .since = whole->since,
    };
    if (whole->next != CHUNK_NONE) {
        b->chunks.records[whole->next].prev = rest_id;
    }
    whole->next = rest_id;
    whole->size_bytes = bytes;
    bins_add(&b->bins, b->chunks.records, rest_id);
}

void bfc_drop(bfc *b, uint32_t id)
{
    chunk_number(&b->chunks.records[id], UINT64_MAX);
    chunks_release(&b->chunks, id);
}

// Joins two neighbours, neither of them in a bin, into the lower record.
static void join(bfc *b, uint32_t low_id, uint32_t high_id)
{
    chunk *low = &b->chunks.records[low_id], *high = &b->chunks.records[high_id];
    low->size_bytes += high->size_bytes;
    low->since = low->since > high->since ? low->since : high->since;
    low->next = high->next;
    if (high->next != CHUNK_NONE) {
        b->chunks.records[high->next].prev = low_id;
    }
    bfc_drop(b, high_id);
}

static bool can_join(const bfc *b, uint32_t id, bool by_force)
{
    if (id == CHUNK_NONE || !bfc_is_free(&b->chunks.records[id])) {
        return false;
    }
    return !b->timestamped || by_force || b->chunks.records[id].since == 0;
}

uint32_t bfc_coalesce(bfc *b, uint32_t id, bool by_force)
{
    chunk *records = b->chunks.records;
    uint32_t next = records[id].next, prev = records[id].prev;
    if (b->timestamped && !can_join(b, id, by_force)) {
        return id;
    }
    if (can_join(b, next, by_force)) {
        bins_remove(&b->bins, records, next);
        join(b, id, next);
    }
    if (can_join(b, prev, by_force)) {
        bins_remove(&b->bins, records, prev);
        join(b, prev, id);
        id = prev;
    }
    return id;
}
