// SPDX-License-Identifier: Apache-2.0
// Private to gemm*.c: the inner tiles, one table per instruction set.
#ifndef DEVICE_CPU_GEMM_TILES_H
#define DEVICE_CPU_GEMM_TILES_H

#include <stdbool.h>
#include <stdint.h>

// One tile of C: rows x (vectors * lanes). Element (i, k) of A lies at a[i * a_row + k * a_step], row k of B
// at b + k * b_step.
typedef struct gemm_tile {
    int64_t depth; // how many k
    const float *a;
    int64_t a_row, a_step;
    const float *b;
    int64_t b_step;
    const float *fetch; // what follows of B, brought near on the way, at the same steps; NULL: nothing
    float *c;
    int64_t c_row;
    const float *bias; // of these columns, NULL: none
    bool add;          // to what C holds
    float scale;       // of the whole sum; 0: none
    bool relu;
} gemm_tile;

enum { GEMM_MAX_ROWS = 8, GEMM_MAX_VECTORS = 3, GEMM_MAX_COLUMNS = 32 };

typedef struct gemm_tiles {
    const char *name;
    int rows, vectors, lanes;                                                    // of a full tile
    void (*run[GEMM_MAX_ROWS + 1][GEMM_MAX_VECTORS + 1])(const gemm_tile *tile); // [rows][vectors]
} gemm_tiles;

const gemm_tiles *gemm_tiles_here(void);

// One tile of rows x columns at most as large as a full one. Columns that are no whole registers are written as
// exactly so many; B (and bias up to its end) is read in whole registers.
void gemm_tile_run(const gemm_tiles *tiles, const gemm_tile *t, int64_t rows, int64_t columns);

#endif
