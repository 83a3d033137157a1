// SPDX-License-Identifier: Apache-2.0
#include "memory/chunk_tree.h"

#include <stdbool.h>

static uint32_t priority(uint32_t id)
{
    uint32_t mixed = (id + 1) * UINT32_C(0x9E3779B1); // a bijection, as is each step: no two nodes are equal
    mixed ^= mixed >> 15;
    return mixed * UINT32_C(0x85EBCA77);
}

static bool is_before(const chunk *a, const chunk *b)
{
    return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes
           : a->order != b->order         ? a->order < b->order
                                          : a->address < b->address;
}

void chunk_tree_add(uint32_t *root, chunk *records, uint32_t id)
{
    chunk *added = &records[id];
    uint32_t *link = root;
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
}

void chunk_tree_remove(uint32_t *root, chunk *records, uint32_t id)
{
    chunk *removed = &records[id];
    uint32_t *link = root;
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
}

uint32_t chunk_tree_fit(uint32_t root, const chunk *records, uint64_t bytes)
{
    uint32_t best = CHUNK_NONE, node = root;
    while (node != CHUNK_NONE) {
        bool fits = records[node].size_bytes >= bytes;
        best = fits ? node : best;
        node = fits ? records[node].left : records[node].right;
    }
    return best;
}

uint32_t chunk_tree_after(uint32_t root, const chunk *records, uint32_t id)
{
    uint32_t after = CHUNK_NONE, node = root;
    while (node != CHUNK_NONE) {
        bool behind = is_before(&records[id], &records[node]);
        after = behind ? node : after;
        node = behind ? records[node].left : records[node].right;
    }
    return after;
}

uint32_t chunk_tree_last(uint32_t root, const chunk *records)
{
    while (root != CHUNK_NONE && records[root].right != CHUNK_NONE) {
        root = records[root].right;
    }
    return root;
}

uint64_t chunk_tree_largest(uint32_t root, const chunk *records)
{
    uint32_t last = chunk_tree_last(root, records);
    return last == CHUNK_NONE ? 0 : records[last].size_bytes;
}
