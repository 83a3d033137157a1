// SPDX-License-Identifier: Apache-2.0
#include "gemm_tiles.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "gemm.h"
#include "simd.h"

enum { T_LINE_FLOATS = 16 };

#define T_ROW(r, v)                                                                                          \
    static T_TARGET void T(r##x##v)(const gemm_tile *t)                                                      \
    {                                                                                                        \
        T(tile)(t, r, v);                                                                                    \
    }
#define T_ROWS_1_TO_4(v) T_ROW(1, v) T_ROW(2, v) T_ROW(3, v) T_ROW(4, v)
#define T_ROWS_5_TO_8(v) T_ROW(5, v) T_ROW(6, v) T_ROW(7, v) T_ROW(8, v)

#if CPU_HAS_CLONES
#define T(name)   avx512_##name
#define T_TARGET  __attribute__((target("arch=x86-64-v4")))
#define T_LANES   16
#define T_ROWS    8
#define T_VECTORS 2
#include "gemm_tile.h"
T_ROWS_1_TO_4(1)
T_ROWS_5_TO_8(1)
T_ROWS_1_TO_4(2)
T_ROWS_5_TO_8(2)
static const gemm_tiles avx512_tiles = {"avx512",
                                        T_ROWS,
                                        T_VECTORS,
                                        T_LANES,
                                        {[1] = {NULL, avx512_1x1, avx512_1x2},
                                         [2] = {NULL, avx512_2x1, avx512_2x2},
                                         [3] = {NULL, avx512_3x1, avx512_3x2},
                                         [4] = {NULL, avx512_4x1, avx512_4x2},
                                         [5] = {NULL, avx512_5x1, avx512_5x2},
                                         [6] = {NULL, avx512_6x1, avx512_6x2},
                                         [7] = {NULL, avx512_7x1, avx512_7x2},
                                         [8] = {NULL, avx512_8x1, avx512_8x2}}};
#undef T
#undef T_TARGET
#undef T_LANES
#undef T_ROWS
#undef T_VECTORS

#define T(name)   avx2_##name
#define T_TARGET  __attribute__((target("arch=x86-64-v3")))
#define T_LANES   8
#define T_ROWS    4
#define T_VECTORS 3
#include "gemm_tile.h"
T_ROWS_1_TO_4(1)
T_ROWS_1_TO_4(2)
T_ROWS_1_TO_4(3)
static const gemm_tiles avx2_tiles = {"avx2",
                                      T_ROWS,
                                      T_VECTORS,
                                      T_LANES,
                                      {[1] = {NULL, avx2_1x1, avx2_1x2, avx2_1x3},
                                       [2] = {NULL, avx2_2x1, avx2_2x2, avx2_2x3},
                                       [3] = {NULL, avx2_3x1, avx2_3x2, avx2_3x3},
                                       [4] = {NULL, avx2_4x1, avx2_4x2, avx2_4x3}}};
#undef T
#undef T_TARGET
#undef T_LANES
#undef T_ROWS
#undef T_VECTORS
#endif

#define T(name) plain_##name
#define T_TARGET
#define T_LANES   4
#define T_ROWS    4
#define T_VECTORS 2
#include "gemm_tile.h"
T_ROWS_1_TO_4(1)
T_ROWS_1_TO_4(2)
static const gemm_tiles plain_tiles = {"plain",
                                       T_ROWS,
                                       T_VECTORS,
                                       T_LANES,
                                       {[1] = {NULL, plain_1x1, plain_1x2},
                                        [2] = {NULL, plain_2x1, plain_2x2},
                                        [3] = {NULL, plain_3x1, plain_3x2},
                                        [4] = {NULL, plain_4x1, plain_4x2}}};

static _Atomic uint32_t most_lanes = UINT32_MAX;

void gemm_keep_to(uint32_t lanes)
{
    atomic_store_explicit(&most_lanes, lanes, memory_order_relaxed);
}

const gemm_tiles *gemm_tiles_here(void)
{
#if CPU_HAS_CLONES
    const uint32_t most = atomic_load_explicit(&most_lanes, memory_order_relaxed);
    if (most >= 16 && __builtin_cpu_supports("x86-64-v4")) {
        return &avx512_tiles;
    }
    if (most >= 8 && __builtin_cpu_supports("x86-64-v3")) {
        return &avx2_tiles;
    }
#endif
    return &plain_tiles;
}

// A tile that is narrower than whole registers goes through a small square, so that nothing is written beside
// C.
static void run_ragged_tile(const gemm_tiles *tiles, const gemm_tile *t, int64_t rows, int64_t columns)
{
    float square[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS], bias[GEMM_MAX_COLUMNS] = {0};
    gemm_tile inner = *t;
    int64_t vectors = (columns + tiles->lanes - 1) / tiles->lanes;
    inner.c = square;
    inner.c_row = GEMM_MAX_COLUMNS;
    for (int64_t r = 0; t->add && r < rows; r++) {
        memset(square + r * GEMM_MAX_COLUMNS, 0, sizeof(float) * GEMM_MAX_COLUMNS);
        memcpy(square + r * GEMM_MAX_COLUMNS, t->c + r * t->c_row, sizeof(float) * (size_t)columns);
    }
    if (t->bias != NULL) {
        memcpy(bias, t->bias, sizeof(float) * (size_t)columns);
        inner.bias = bias;
    }
    tiles->run[rows][vectors](&inner);
    for (int64_t r = 0; r < rows; r++) {
        memcpy(t->c + r * t->c_row, square + r * GEMM_MAX_COLUMNS, sizeof(float) * (size_t)columns);
    }
}

void gemm_tile_run(const gemm_tiles *tiles, const gemm_tile *t, int64_t rows, int64_t columns)
{
    if (columns % tiles->lanes != 0) {
        run_ragged_tile(tiles, t, rows, columns);
    } else {
        tiles->run[rows][columns / tiles->lanes](t);
    }
}
