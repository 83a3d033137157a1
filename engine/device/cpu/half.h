// SPDX-License-Identifier: Apache-2.0
// Private to half*.c: operations over two-byte operands, computed in float32 a tile at a time.
//
// An operation is cut into items that do not need one another: elements, rows, heads. A worker widens the operands
// of a few items into a scratch of its own, in the nearest cache, runs the float32 kernel on them and narrows the
// results: every result is rounded once.
#ifndef DEVICE_CPU_HALF_H
#define DEVICE_CPU_HALF_H

#include <stdbool.h>
#include <stdint.h>

#include "attention.h"
#include "cpu.h"

typedef enum half_role {
    HALF_ROWS,     // `each` elements per item, one item behind the other
    HALF_PERIODIC, // the same, and begins anew with every group
    HALF_HEAD,     // an item is a head of a sequence [N, length, heads * features]
    HALF_LARGE,    // an item is a row of an image, this one the image that windows look at
    HALF_SMALL,    // the same, the image with a pixel for each window
    HALF_WHOLE,    // every item sees all of it
    HALF_SUM,      // an output that is the sum over all items
} half_role;

typedef struct half_operand {
    half_role role;
    hr_dtype dtype;
    int64_t each; // elements: of an item or row, of a WHOLE or SUM in all
    int64_t most; // elements of the largest tile
} half_operand;

// Images cut by rows: tiles of one image, with the rows around them that their windows share.
typedef struct half_rows {
    int64_t large, small; // heights
    int64_t kernel, stride, pad;
    bool by_large; // items are rows of the large image: its rows are the result
} half_rows;

// Of one tile: rows of both images, and those of the large one that are its result.
typedef struct half_band {
    int64_t image, large, large_rows, small, small_rows, kept, kept_rows;
    int32_t pad_top;
} half_band;

typedef struct half_tile_plan {
    int64_t items, most; // in all, and of one tile
    int64_t group;       // tiles end where a group does; 0: no groups
    uint8_t updated;     // bit k: input k is written back
    attention_sizes heads;
    bool by_images; // items are images
    bool by_rows;   // items are rows of images:
    half_rows rows;
    uint32_t in_count, out_count;
    half_operand in[OP_MAX_IN], out[OP_MAX_OUT];
} half_tile_plan;

// False for what is not cut: lower widens the whole operation.
bool half_tile_plan_of(const op_query *q, half_tile_plan *out);

half_band half_band_of(const half_tile_plan *cut, int64_t at, int64_t count);

// The query of a tile of `count` items from `at` on, its operands float32.
void half_tile_query(const half_tile_plan *cut, int64_t at, int64_t count, const op_query *q, op_query *tile);

#endif
