// SPDX-License-Identifier: Apache-2.0
// Whole-number products: C[rows, units] = A[rows, depth] · B[depth, units] in int32, of int8 numbers that are held as int16, two of the
// depth side by side, so that one instruction multiplies and adds a pair (vpmaddwd; vpmaddubsw would want one side unsigned, and its
// sums of pairs end at 2^15). A panel is INT8_COLUMNS columns of B.
#ifndef DEVICE_CPU_INT8_H
#define DEVICE_CPU_INT8_H

#include <stdint.h>

enum { INT8_COLUMNS = 16, INT8_ROWS = 4, INT8_DEPTH_MAX = 1 << 17 }; // beyond which a sum may leave int32

typedef struct int8_tiles {
    const char *name;
    // b[depth][units] from its column on, `columns` of them (the others are 0), into a panel [depth pairs][INT8_COLUMNS][2].
    void (*pack)(const int8_t *b, int64_t depth, int64_t units, int64_t columns, int16_t *panel);
    // sums[rows][INT8_COLUMNS] of a[rows][a_row], `rows` at most INT8_ROWS, over so many pairs.
    void (*run)(const int16_t *a, int64_t a_row, const int16_t *panel, int64_t pairs, int64_t rows,
                int32_t *sums);
} int8_tiles;

const int8_tiles *int8_tiles_here(void); // as far as gemm_keep_to lets it

#endif
