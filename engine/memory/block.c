// SPDX-License-Identifier: Apache-2.0
#include "memory/block.h"

#include <string.h>

#include "base/host_mem.h"

bool block_open(block *b, uint64_t address, uint64_t bytes, uint32_t most)
{
    *b = (block){.gaps = hr_calloc((size_t)most + 1, sizeof *b->gaps)};
    if (b->gaps == NULL || !chunks_reserve(&b->chunks, 1)) {
        block_close(b);
        return false;
    }
    uint32_t id = chunks_add(&b->chunks);
    b->chunks.records[id] =
        (chunk){.address = address, .size_bytes = bytes, .prev = CHUNK_NONE, .next = CHUNK_NONE};
    b->gaps[b->gap_count++] = id;
    bins_init(&b->bins);
    bins_add(&b->bins, b->chunks.records, id);
    return true;
}

void block_close(block *b)
{
    chunks_deinit(&b->chunks);
    hr_free(b->gaps);
    *b = (block){.gaps = NULL};
}

bool block_reserve(block *b)
{
    return chunks_reserve(&b->chunks, 2);
}

// Index of the first gap that begins behind `address`.
static uint32_t gap_behind(const block *b, uint64_t address)
{
    uint32_t low = 0, high = b->gap_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (b->chunks.records[b->gaps[middle]].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add_gap(block *b, uint32_t at, uint32_t id)
{
    memmove(&b->gaps[at + 1], &b->gaps[at], (b->gap_count - at) * sizeof *b->gaps);
    b->gaps[at] = id;
    b->gap_count++;
    bins_add(&b->bins, b->chunks.records, id);
}

static void remove_gap(block *b, uint32_t at)
{
    bins_remove(&b->bins, b->chunks.records, b->gaps[at]);
    b->gap_count--;
    memmove(&b->gaps[at], &b->gaps[at + 1], (b->gap_count - at) * sizeof *b->gaps);
}

// Cuts `id`, which is in no bin, to `bytes`; the record of the rest behind it.
static uint32_t split(block *b, uint32_t id, uint64_t bytes)
{
    uint32_t rest_id = chunks_add(&b->chunks);
    chunk *whole = &b->chunks.records[id];
    b->chunks.records[rest_id] = (chunk){.address = whole->address + bytes,
                                         .size_bytes = whole->size_bytes - bytes,
                                         .prev = id,
                                         .next = whole->next};
    if (whole->next != CHUNK_NONE) {
        b->chunks.records[whole->next].prev = rest_id;
    }
    whole->next = rest_id;
    whole->size_bytes = bytes;
    return rest_id;
}

uint32_t block_cut(block *b, uint64_t address, uint64_t bytes)
{
    uint32_t at = gap_behind(b, address);
    if (at == 0) {
        return CHUNK_NONE;
    }
    uint32_t id = b->gaps[--at];
    uint64_t before_bytes = address - b->chunks.records[id].address;
    uint64_t size_bytes = b->chunks.records[id].size_bytes;
    if (before_bytes > size_bytes || bytes > size_bytes - before_bytes) {
        return CHUNK_NONE;
    }
    remove_gap(b, at);
    if (before_bytes > 0) {
        uint32_t before = id;
        id = split(b, before, before_bytes);
        add_gap(b, at++, before);
    }
    if (b->chunks.records[id].size_bytes > bytes) {
        add_gap(b, at, split(b, id, bytes));
    }
    return id;
}

// Joins two neighbours, neither of them in a bin, into the lower record.
static void join(block *b, uint32_t low_id, uint32_t high_id)
{
    chunk *low = &b->chunks.records[low_id], *high = &b->chunks.records[high_id];
    low->size_bytes += high->size_bytes;
    low->next = high->next;
    if (high->next != CHUNK_NONE) {
        b->chunks.records[high->next].prev = low_id;
    }
    chunks_release(&b->chunks, high_id);
}

void block_heal(block *b, uint32_t id)
{
    chunk *records = b->chunks.records;
    uint32_t at = gap_behind(b, records[id].address);
    records[id].requested_bytes = 0;
    records[id].allocation_id = 0;
    if (at < b->gap_count && b->gaps[at] == records[id].next) {
        remove_gap(b, at);
        join(b, id, records[id].next);
    }
    if (at > 0 && b->gaps[at - 1] == records[id].prev) {
        uint32_t before = records[id].prev;
        remove_gap(b, --at);
        join(b, before, id);
        id = before;
    }
    add_gap(b, at, id);
}
