// SPDX-License-Identifier: Apache-2.0
#include "memory/bins.h"

#include "memory/chunk_tree.h"

void bins_init(bins *b)
{
    for (unsigned i = 0; i < BIN_COUNT; i++) {
        b->root[i] = CHUNK_NONE;
    }
    b->occupied = 0;
}

unsigned bins_of(uint64_t bytes)
{
    uint64_t units = bytes / BIN_MIN_BYTES;
    unsigned log2 = units == 0 ? 0 : 63u - (unsigned)__builtin_clzll(units);
    return log2 < BIN_COUNT - 1 ? log2 : BIN_COUNT - 1;
}

void bins_add(bins *b, chunk *records, uint32_t id)
{
    unsigned bin = bins_of(records[id].size_bytes);
    chunk_tree_add(&b->root[bin], records, id);
    b->occupied |= UINT32_C(1) << bin;
}

void bins_remove(bins *b, chunk *records, uint32_t id)
{
    unsigned bin = bins_of(records[id].size_bytes);
    chunk_tree_remove(&b->root[bin], records, id);
    if (b->root[bin] == CHUNK_NONE) {
        b->occupied &= ~(UINT32_C(1) << bin);
    }
}

uint32_t bins_best_fit(const bins *b, const chunk *records, uint64_t bytes)
{
    unsigned bin = bins_of(bytes);
    uint32_t best = chunk_tree_fit(b->root[bin], records, bytes);
    uint32_t above = b->occupied >> bin >> 1;
    if (best == CHUNK_NONE && above != 0) {
        bin += 1 + (unsigned)__builtin_ctz(above);
        best = chunk_tree_fit(b->root[bin], records, bytes);
    }
    return best;
}

uint32_t bins_after(const bins *b, const chunk *records, uint32_t id)
{
    unsigned bin = bins_of(records[id].size_bytes);
    uint32_t after = chunk_tree_after(b->root[bin], records, id);
    uint32_t above = b->occupied >> bin >> 1;
    return after != CHUNK_NONE || above == 0
               ? after
               : chunk_tree_fit(b->root[bin + 1 + (unsigned)__builtin_ctz(above)], records, 0);
}

uint64_t bins_largest_bytes(const bins *b, const chunk *records)
{
    return b->occupied == 0
               ? 0
               : chunk_tree_largest(b->root[31u - (unsigned)__builtin_clz(b->occupied)], records);
}
