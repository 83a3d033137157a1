// SPDX-License-Identifier: Apache-2.0
// Private to half*.c: matrices of two-byte elements as they lie in memory, and their product in float32, a tile at a time.
//
// What one worker holds of the operands in float32 is a tile of each, in the near caches: elements are widened where a
// library would copy them into panels, and a tile of the result is rounded once, when its sum is complete. A
// convolution is such a product too: its rows are pixels, its columns the places of the window that a pixel sees.
#ifndef DEVICE_CPU_HALF_MATRIX_H
#define DEVICE_CPU_HALF_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"

typedef enum half_kind {
    HALF_MATRIX, // element (r, c) lies at r * row + c
    HALF_TAPS,   // columns are (a, b, c): first + a * step_a + b * step_b + r * row + c
    HALF_IMAGE, // rows are (image, i, j), columns (a, b, c): pixel first + step * (i, j) + apart * (a, b), zeros outside
} half_kind;

// Columns (a, b, c): `across` values of b, `depth` of c.
typedef struct half_taps {
    int64_t across, depth;
    int64_t first, step_a, step_b; // elements
} half_taps;

typedef struct half_window {
    int64_t height, width, channels; // of the image in memory
    int64_t rows_h, rows_w;          // how many i, j
    int64_t first_h, first_w, step_h, step_w;
    int64_t apart_h, apart_w; // from tap to tap
} half_window;

// Float32, float16 or bfloat16.
typedef struct half_matrix {
    half_kind kind;
    hr_dtype type;
    void *data; // at run time
    int64_t row;
    half_taps taps;     // TAPS, IMAGE
    half_window window; // IMAGE
} half_matrix;

// Rows [row, row + rows) and columns [column, column + columns) as floats, `to_row` apart.
void half_gather(const half_matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns, float *to,
                 int64_t to_row);
// Of an IMAGE: `rows` rows of its image number `image` from `h` on, `width` elements each from the first pixel that the
// window sees, zeros outside. They follow one another.
void half_gather_rows(const half_matrix *m, int64_t image, int64_t h, int64_t rows, int64_t width, float *to);
// Back into a MATRIX, or an IMAGE of one tap. What `from` holds is gone then.
void half_scatter(const half_matrix *m, int64_t row, int64_t rows, int64_t column, int64_t columns,
                  float *from, int64_t from_row);

// C[m,n] = scale * A[m,k] · B[k,n] (+ bias[n]) (then relu), `outer` x `inner` times.
typedef struct half_multiply {
    int64_t m, n, k;
    half_matrix a, b, c;
    bool a_turned, b_turned; // rows of `a` are k, rows of `b` are n
    const void *bias; // at run time; NULL: none. Of the type of `bias_type`, the next n for every inner one
    hr_dtype bias_type;
    float scale; // 0 stands for 1
    bool relu;
    float ceiling;                  // of relu
    int64_t outer, inner;           // 0 stands for 1
    product_steps a_at, b_at, c_at; // elements from one product to the next; `row` is not looked at
} half_multiply;

uint64_t half_multiply_bytes(const cpu_device *device, const half_multiply *p);
// Sums over k have one order for given sizes and threads.
void half_multiply_run(const cpu_device *device, const half_multiply *p, void *workspace);

#endif
