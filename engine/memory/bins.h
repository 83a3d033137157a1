// SPDX-License-Identifier: Apache-2.0
// The free chunks, in bins by size: bin i holds sizes from 256 << i, the last one everything above. Each bin is a tree
// (chunk_tree.h), so the best fit of all is the smallest chunk that is large enough, the lowest address among equals.
#ifndef MEMORY_BINS_H
#define MEMORY_BINS_H

#include <stdint.h>

#include "memory/chunks.h"

enum { BIN_COUNT = 21, BIN_MIN_BYTES = 256 };

typedef struct bins {
    uint32_t root[BIN_COUNT];
    uint32_t occupied; // bit i: bin i holds a chunk
} bins;

void bins_init(bins *b);
unsigned bins_of(uint64_t bytes);
void bins_add(bins *b, chunk *records, uint32_t id);
void bins_remove(bins *b, chunk *records, uint32_t id);
uint32_t bins_best_fit(const bins *b, const chunk *records,
                       uint64_t bytes); // CHUNK_NONE when none is large enough
// The next one behind `id` by size and address, of whatever bin; CHUNK_NONE behind the last.
uint32_t bins_after(const bins *b, const chunk *records, uint32_t id);
uint64_t bins_largest_bytes(const bins *b, const chunk *records); // 0 when all bins are empty

#endif
