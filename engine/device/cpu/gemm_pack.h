// SPDX-License-Identifier: Apache-2.0
// Private to gemm*.c and winograd*.c: blocks of A and B copied into the order in which the tiles read them.
#ifndef DEVICE_CPU_GEMM_PACK_H
#define DEVICE_CPU_GEMM_PACK_H

#include <stdint.h>

#include "gemm.h"

// g with the rows that were left 0 filled in: everything below wants it so.
gemm gemm_with_rows(const gemm *g);

// Rows [m, m + rows) and depth [k, k + depth) of A as panels of `tile` rows: [row / tile][k][row % tile].
void gemm_pack_a(const gemm *g, int64_t tile, const float *a, int64_t m, int64_t rows, int64_t k,
                 int64_t depth, float *to);
// Columns [n, n_end) and depth [k, k + depth) of B as panels [panel][k][width], zeros behind the last column.
void gemm_pack_b(const gemm *g, int64_t width, const float *b, int64_t n, int64_t n_end, int64_t k,
                 int64_t depth, float *to);

// to[c * to_row + r] = from[r * from_row + c]
void gemm_transpose(float *restrict to, int64_t to_row, const float *restrict from, int64_t from_row,
                    int64_t rows, int64_t columns);

#endif
