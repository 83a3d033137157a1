// SPDX-License-Identifier: Apache-2.0
#include "gemm_pack.h"

#include <string.h>

#include "simd.h"

enum { A_PANELS = 8 }; // panels of A that are copied at once: long runs of a row are read at full speed

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

#define LOAD8(p)         (*(const f32x8 *)(p))
#define STORE8(p, v)     (*(f32x8 *)(p) = (v))
#define PICK8(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

// Eight rows of eight: pairs of elements, pairs of pairs, then halves.
CPU_INLINE void transpose_8x8(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    f32x8 row[8], pair[8], four[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        row[i] = LOAD8(from + i * from_row);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        pair[i] = PICK8(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[i + 1] = PICK8(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        four[i] = PICK8(pair[i], pair[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        four[i + 1] = PICK8(pair[i], pair[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        four[i + 2] = PICK8(pair[i + 1], pair[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        four[i + 3] = PICK8(pair[i + 1], pair[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        STORE8(to + i * to_row, PICK8(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        STORE8(to + (i + 4) * to_row, PICK8(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
}

CPU_HOT void gemm_transpose(float *restrict to, int64_t to_row, const float *restrict from, int64_t from_row,
                            int64_t rows, int64_t columns)
{
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        int64_t c = 0;
        for (; c + 8 <= columns; c += 8) {
            transpose_8x8(to + c * to_row + r, to_row, from + r * from_row + c, from_row);
        }
        for (; c < columns; c++) {
            for (int64_t i = r; i < r + 8; i++) {
                to[c * to_row + i] = from[i * from_row + c];
            }
        }
    }
    for (; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[c * to_row + r] = from[r * from_row + c];
        }
    }
}

// to[r * to_row + c] = from[r * from_row + c], zeros from `columns` to `width`.
CPU_HOT static void copy_padded(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                                int64_t columns, int64_t width)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[r * to_row + c] = from[r * from_row + c];
        }
        for (int64_t c = columns; c < width; c++) {
            to[r * to_row + c] = 0.0f;
        }
    }
}

// One row of a panel; the widths of full tiles are told apart so that they become plain moves.
CPU_INLINE void copy_row(float *restrict to, const float *restrict from, int64_t width)
{
    if (width == 32) {
        F32X16W(to) = F32X16(from);
        F32X16W(to + 16) = F32X16(from + 16);
    } else if (width == 8) {
        STORE8(to, LOAD8(from));
    } else {
        for (int64_t c = 0; c < width; c++) {
            to[c] = from[c];
        }
    }
}

// Whole panels of `width` columns: to[panel][r][c]. Row by row over all panels, so that memory is read in
// long runs.
CPU_HOT static void copy_panels(float *restrict to, int64_t width, const float *restrict from,
                                int64_t from_row, int64_t rows, int64_t panels)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t panel = 0; panel < panels; panel++) {
            copy_row(to + (panel * rows + r) * width, from + r * from_row + panel * width, width);
        }
    }
}

gemm gemm_with_rows(const gemm *g)
{
    gemm full = *g;
    full.a_row = g->a_row != 0 ? g->a_row : g->a_transposed ? g->m : g->k;
    full.b_row = g->b_row != 0 ? g->b_row : g->b_transposed ? g->k : g->n;
    full.c_row = g->c_row != 0 ? g->c_row : g->n;
    return full;
}

void gemm_pack_a(const gemm *g, int64_t tile, const float *a, int64_t m, int64_t rows, int64_t k,
                 int64_t depth, float *to)
{
    int64_t r = 0;
    if (g->a_transposed) {
        for (const int64_t run = tile * A_PANELS; r + run <= rows; r += run, to += run * depth) {
            copy_panels(to, tile, a + k * g->a_row + m + r, g->a_row, depth, A_PANELS);
        }
    }
    for (; r < rows; r += tile, to += tile * depth) {
        const int64_t count = min_of(tile, rows - r);
        if (g->a_transposed) {
            copy_padded(to, tile, a + k * g->a_row + m + r, g->a_row, depth, count, count);
        } else {
            gemm_transpose(to, tile, a + (m + r) * g->a_row + k, g->a_row, count, depth);
        }
    }
}

void gemm_pack_b(const gemm *g, int64_t width, const float *b, int64_t n, int64_t n_end, int64_t k,
                 int64_t depth, float *to)
{
    int64_t panel_floats = depth * width;
    for (int64_t c = n; c < n_end && g->b_transposed; c += width, to += panel_floats) {
        int64_t columns = min_of(width, n_end - c);
        if (columns < width) {
            memset(to, 0, (size_t)panel_floats * sizeof *to);
        }
        gemm_transpose(to, width, b + c * g->b_row + k, g->b_row, columns, depth);
    }
    if (!g->b_transposed) {
        int64_t whole = (n_end - n) / width, rest = n + whole * width;
        copy_panels(to, width, b + k * g->b_row + n, g->b_row, depth, whole);
        copy_padded(to + whole * panel_floats, width, b + k * g->b_row + rest, g->b_row, depth, n_end - rest,
                    rest < n_end ? width : 0);
    }
}
