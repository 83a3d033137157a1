// SPDX-License-Identifier: Apache-2.0
// Free chunks in a tree ordered by (size, order, address), whose nodes are the chunk records themselves (left, right). A tree
// is its root: CHUNK_NONE when empty. Everything is expected O(log n).
//
// Treaps: Seidel and Aragon, "Randomized search trees", 1996; insertion by unzipping and removal by zipping as in
// Tarjan, Levy and Timmel, "Zip trees", 2019. A node's priority is a mix of its index: no bits to store.
#ifndef MEMORY_CHUNK_TREE_H
#define MEMORY_CHUNK_TREE_H

#include <stdint.h>

#include "memory/chunks.h"

void chunk_tree_add(uint32_t *root, chunk *records, uint32_t id);
void chunk_tree_remove(uint32_t *root, chunk *records, uint32_t id);
// The best fit: the smallest chunk of at least `bytes`, the first in order among equals. CHUNK_NONE: there is none.
uint32_t chunk_tree_fit(uint32_t root, const chunk *records, uint64_t bytes);
// The next one in order behind `id`; CHUNK_NONE behind the last.
uint32_t chunk_tree_after(uint32_t root, const chunk *records, uint32_t id);
uint32_t chunk_tree_last(uint32_t root, const chunk *records);    // CHUNK_NONE when empty
uint64_t chunk_tree_largest(uint32_t root, const chunk *records); // bytes; 0 when empty

#endif
