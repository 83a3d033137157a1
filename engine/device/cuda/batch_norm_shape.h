// SPDX-License-Identifier: Apache-2.0
// How batch normalisation is spread over a card: by shape and number of multiprocessors alone, so that a plan knows the
// partial sums' bytes and the same card makes the same bits.
//
// Rows that make whole packs of sixteen bytes are a period. A block of statistics sees some packs of a period (`across`, a
// tile) in several rows at once, and brings one partial result for each of its channels: of wide rows as few packs as a
// warp reads side by side, because partial results weigh as much as channels times parts.
#ifndef DEVICE_CUDA_BATCH_NORM_SHAPE_H
#define DEVICE_CUDA_BATCH_NORM_SHAPE_H

#include "kernels/batch_norm_args.h"
#include "ops/op.h"

typedef struct batch_norm_division {
    batch_norm_walk walk; // without chunk
    uint32_t tiles;       // blocks side by side over a period
    uint32_t threads;     // of a block
    uint32_t values;      // of a block in a step
} batch_norm_division;

// Partial results: blocks below one another, and how many steps a block takes at once.
typedef struct batch_norm_parts {
    uint32_t count; // times tiles: blocks
    int32_t chunk;
} batch_norm_parts;

// The join of the parts: channels side by side in a block, and its threads.
typedef struct batch_norm_join {
    uint32_t across, threads, blocks;
} batch_norm_join;

// Of an image or rows [..., channels], which has elements.
batch_norm_division batch_norm_divide(const op_operand *t);
// `flight`: the steps whose values a thread holds at once (BATCH_NORM_STEPS, BATCH_NORM_FLIGHT). Four blocks for every
// multiprocessor, fewer where each would have less than two flights; a multiple of the multiprocessors, as near as tiles
// and equal shares allow, and one for each of them as long as there are steps.
batch_norm_parts batch_norm_parts_of(const batch_norm_division *d, uint32_t multiprocessors, uint32_t flight);
// Of the block that takes most.
int64_t batch_norm_steps_most(const batch_norm_division *d, const batch_norm_parts *p);
// As many threads as there are parts of a block's channels, and blocks of fewer channels where there would be fewer than
// multiprocessors, down to the eight of one sector.
batch_norm_join batch_norm_join_of(const batch_norm_division *d, uint32_t parts, uint32_t multiprocessors);

#endif
