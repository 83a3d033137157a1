// SPDX-License-Identifier: Apache-2.0
#include "memory/bins.h"

#include <stdbool.h>

static uint32_t priority(uint32_t id)
{
    uint32_t mixed = (id + 1) * UINT32_C(0x9E3779B1); // a bijection, as is each step: no two nodes are equal
    mixed ^= mixed >> 15;
    return mixed * UINT32_C(0x85EBCA77);
}

static bool is_before(const chunk *a, const chunk *b)
{
    return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes : a->address < b->address;
}

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
    chunk *added = &records[id];
    unsigned bin = bins_of(added->size_bytes);
    uint32_t *link = &b->root[bin];
    while (*link != CHUNK_NONE && priority(*link) > priority(id)) {
        chunk *node = &records[*link];
        link = is_before(added, node) ? &node->left : &node->right;
    }
    uint32_t below = *link;
    *link = id;
    uint32_t *smaller = &added->left, *larger = &added->right;
    while (below != CHUNK_NONE) {
        chunk *node = &records[below];
        if (is_before(node, added)) {
            *smaller = below;
            smaller = &node->right;
            below = node->right;
        } else {
            *larger = below;
            larger = &node->left;
            below = node->left;
        }
    }
    *smaller = *larger = CHUNK_NONE;
    b->occupied |= UINT32_C(1) << bin;
}

void bins_remove(bins *b, chunk *records, uint32_t id)
{
    chunk *removed = &records[id];
    unsigned bin = bins_of(removed->size_bytes);
    uint32_t *link = &b->root[bin];
    while (*link != id) {
        chunk *node = &records[*link];
        link = is_before(removed, node) ? &node->left : &node->right;
    }
    uint32_t smaller = removed->left, larger = removed->right;
    while (smaller != CHUNK_NONE && larger != CHUNK_NONE) {
        if (priority(smaller) > priority(larger)) {
            *link = smaller;
            link = &records[smaller].right;
            smaller = *link;
        } else {
            *link = larger;
            link = &records[larger].left;
            larger = *link;
        }
    }
    *link = smaller != CHUNK_NONE ? smaller : larger;
    if (b->root[bin] == CHUNK_NONE) {
        b->occupied &= ~(UINT32_C(1) << bin);
    }
}

// The first chunk of one bin, in its order, of at least `bytes`.
static uint32_t first_fit_in_order(const chunk *records, uint32_t node, uint64_t bytes)
{
    uint32_t best = CHUNK_NONE;
    while (node != CHUNK_NONE) {
        bool fits = records[node].size_bytes >= bytes;
        best = fits ? node : best;
        node = fits ? records[node].left : records[node].right;
    }
    return best;
}

uint32_t bins_best_fit(const bins *b, const chunk *records, uint64_t bytes)
{
    unsigned bin = bins_of(bytes);
    uint32_t best = first_fit_in_order(records, b->root[bin], bytes);
    uint32_t above = b->occupied >> bin >> 1;
    if (best == CHUNK_NONE && above != 0) {
        bin += 1 + (unsigned)__builtin_ctz(above);
        best = first_fit_in_order(records, b->root[bin], bytes);
    }
    return best;
}

uint64_t bins_largest_bytes(const bins *b, const chunk *records)
{
    if (b->occupied == 0) {
        return 0;
    }
    uint32_t node = b->root[31u - (unsigned)__builtin_clz(b->occupied)];
    while (records[node].right != CHUNK_NONE) {
        node = records[node].right;
    }
    return records[node].size_bytes;
}
