// SPDX-License-Identifier: Apache-2.0
// What the kernels of adafactor.cu are given. Read by C and by CUDA C++.
//
// A matrix is cut into tiles of tile_rows x tile_columns, which blocks take one after another:
//
//   measure   Σ g² + epsilon of every row and every column of a tile; Σ w²            → row_part, column_part, w_part
//   factors   the parts of LINE rows or columns become r or c; Σ r of LINE rows       → r, c, r_now, c_now, r_part
//   size      Σ g²/v, v = r/mean(r) * c                                               → u_part, v where it is held
//   apply     w -= rate * g / sqrt(v)
//
// Every sum has one order, which follows from the shape alone.
#ifndef KERNELS_ADAFACTOR_ARGS_H
#define KERNELS_ADAFACTOR_ARGS_H

#include <stdint.h>

enum {
    ADAFACTOR_THREADS = 256,
    ADAFACTOR_TILE_ROWS = 64,  // or a multiple: no more than ADAFACTOR_TILES of them, if columns allow
    ADAFACTOR_LANE_BYTES = 16, // a tile is as wide as a warp that reads sixteen bytes
    ADAFACTOR_TILES = 2048,
    ADAFACTOR_LINE = 32,
    ADAFACTOR_BLOCKS_MAX = 1024,
    ADAFACTOR_SMALL = 16384, // elements of a vector that one block updates
};

// Of this update, in device memory.
typedef struct adafactor_scalars {
    float rate;        // relative to the size of the weights
    float kept;        // of a weight, behind its decay
    float keep, fresh; // of the second moment: the old share and the new one
} adafactor_scalars;

typedef struct adafactor_args {
    void *w;
    const void *g;
    void *r, *c;           // matrices
    void *v;               // vectors: the second moment; matrices: where it is held, else NULL
    const int32_t *finite; // 0: nothing changes; NULL: always
    const adafactor_scalars *scalars;
    int64_t matrices, rows, columns, elements;
    int64_t row_tiles, column_tiles; // of a matrix
    int64_t row_lines, column_lines; // of a matrix
    int32_t tile_rows;
    int32_t in_vectors;   // rows are whole vectors of sixteen bytes
    int32_t parts;        // blocks of measure, size
    float epsilon, least; // least size of the weights
    uint32_t unused;      // no byte of an argument is undefined
    // Workspace:
    float *row_part;        // [matrices][column_tiles][rows]
    float *column_part;     // [matrices][row_tiles][columns]
    float *r_now, *c_now;   // as r and c, but not rounded
    float *r_part;          // [matrices][row_lines]
    float *w_part, *u_part; // [parts]
} adafactor_args;

#endif
