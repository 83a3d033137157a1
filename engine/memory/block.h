// SPDX-License-Identifier: Apache-2.0
// One range of addresses cut into chunks where the caller says, not where there is room: chunks tile it without
// gaps, and no two free ones are neighbours.
#ifndef MEMORY_BLOCK_H
#define MEMORY_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/bins.h"
#include "memory/chunks.h"

// Starts zeroed. Its first chunk is record 0 for its whole life: cuts and merges keep the low part in the record.
typedef struct block {
    chunks chunks;
    bins bins;
    uint32_t *gaps; // free chunks, by address
    uint32_t gap_count;
} block;

// The whole range, free; it will never be cut into more than `most` used chunks at once. False when host memory is
// short. bytes > 0.
bool block_open(block *b, uint64_t address, uint64_t bytes, uint32_t most);
void block_close(block *b);

// Makes room for the next block_cut. False when host memory is short; nothing has changed then.
bool block_reserve(block *b);
// Cuts [address, address + bytes) out of a free chunk. Its record, free still in name (no id, no index): the caller
// fills and indexes it. CHUNK_NONE when not all of it is free.
uint32_t block_cut(block *b, uint64_t address, uint64_t bytes);
// Frees a chunk that is out of the index, and joins it with its free neighbours.
void block_heal(block *b, uint32_t id);

#endif
