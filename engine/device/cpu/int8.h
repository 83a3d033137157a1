// SPDX-License-Identifier: Apache-2.0
// Whole-number products: C[rows, units] = A[rows, depth] · B[depth, units] in int32, of int8 numbers that are held as int16, two of the
// depth side by side, so that one instruction multiplies and adds a pair (vpmaddwd; vpmaddubsw would want one side unsigned, and its
// sums of pairs end at 2^15). A panel is INT8_COLUMNS columns of a part of B's depth; INT8_PANELS of them, whose bytes of a row of B are
// one line of a cache, are packed at once.
#ifndef DEVICE_CPU_INT8_H
#define DEVICE_CPU_INT8_H

#include <stdbool.h>
#include <stdint.h>

enum {
    INT8_COLUMNS = 16,
    INT8_PANELS = 4,
    INT8_GROUP = INT8_PANELS * INT8_COLUMNS,
    INT8_ROWS = 4,
    INT8_DEPTH = 512,        // of a panel: 16 KiB, and half of the nearest cache is left
    INT8_DEPTH_STEP = 16,    // rows of A are filled with zeros up to a multiple of it
    INT8_DEPTH_MAX = 1 << 17 // beyond which a sum may leave int32
};

// sums[rows][sums_row] of a[rows][a_row], `rows` at most INT8_ROWS, times a panel of so many pairs.
typedef struct int8_tile {
    const int16_t *a, *panel;
    int32_t *sums;
    int64_t a_row, sums_row, pairs, rows;
    bool add; // to what the sums are
} int8_tile;

// What becomes of the sums of a tile: y = sum * (inverse of the column * inverse of the row) + bias, rounded twice, and not below floor
// nor above ceiling.
typedef struct int8_finish {
    const float *inverse, *bias; // [INT8_COLUMNS] each
    const float *row_inverse;    // [rows]
    float *y;                    // [rows][y_row], `columns` of INT8_COLUMNS are written
    int64_t y_row, columns;
    float floor, ceiling;
} int8_finish;

typedef struct int8_tiles {
    const char *name;
    // A row of `depth` float32 as whole numbers, zeros up to a multiple of INT8_DEPTH_STEP; returns the inverse of its scale.
    float (*quantize)(const float *x, int64_t depth, int16_t *a);
    // b[depth][units] from its column on, `columns` of them (the others of INT8_GROUP are 0), into panels that lie `panel_step`
    // numbers apart, each [depth pairs][INT8_COLUMNS][2].
    void (*pack)(const int8_t *b, int64_t depth, int64_t units, int64_t columns, int16_t *panels,
                 int64_t panel_step);
    // The same of b[units][pitch] from its unit and its place of the depth on.
    void (*pack_turned)(const int8_t *b, int64_t depth, int64_t pitch, int64_t columns, int16_t *panels,
                        int64_t panel_step);
    void (*run)(const int8_tile *t);
    void (*finish)(const int8_tile *t, const int8_finish *f);
} int8_tiles;

const int8_tiles *int8_tiles_here(void); // as far as gemm_keep_to lets it

#endif
