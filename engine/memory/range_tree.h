// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses that do not overlap, and first fit between them: the lowest gap that is large enough, found in
// expected O(log n). A treap by address (as chunk_tree.h) whose nodes know the gap below them and the largest gap of
// their subtree.
#ifndef MEMORY_RANGE_TREE_H
#define MEMORY_RANGE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

typedef struct range_node {
    uint64_t address, bytes;
    uint64_t mapped_bytes; // the owner's own; 0 at first
    uint64_t gap_bytes;    // between the range below, or the low end, and this one
    uint64_t widest_bytes; // the widest gap of the subtree
    uint32_t left, right;  // RANGE_NONE: none
} range_node;

#define RANGE_NONE UINT32_MAX

typedef struct range_tree {
    VEC(range_node) nodes;
    uint32_t root, spare; // spare: released nodes, linked by `left`
    uint64_t low, high;   // ranges lie in [low, high)
} range_tree;

void range_tree_init(range_tree *t, uint64_t low, uint64_t high);
void range_tree_deinit(range_tree *t);
// A new range in the lowest gap; its address, 0 when there is no gap or no host memory. bytes > 0.
uint64_t range_tree_enter(range_tree *t, uint64_t bytes);
// The range around an address, good until the next range_tree_enter; NULL when there is none.
range_node *range_tree_at(range_tree *t, uint64_t address);
// Takes out the range that begins at `address`, which there is.
range_node range_tree_leave(range_tree *t, uint64_t address);

#endif
