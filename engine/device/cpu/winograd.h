// SPDX-License-Identifier: Apache-2.0
// Private to winograd*.c: 3x3 convolutions of stride 1 over plain images with 16 products where the
// definition has 36.
//
// Algorithm: Lavin, Gray: "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, F(2x2, 3x3): a tile
// of 2x2 outputs sees 4x4 inputs; both are changed into 16 places, and each place is one matrix product over
// the channels, [tiles, c] x [c, f]. The factors are 0, 1 and 1/2, so that hardly a digit is lost.
//
// The data gradient is the same convolution of dy with turned weights. The gradient of the weights goes the
// way back: of each place the product [c, tiles] x [tiles, f].
//
// Places are stored one after the other, `place` floats apart. Matrices on the right side of a product lie in
// panels of 32 columns, [panel][row][32], as the tiles of gemm.h read them best.
#ifndef DEVICE_CPU_WINOGRAD_H
#define DEVICE_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"
#include "simd.h"

enum { WINOGRAD_PLACES = 16, WINOGRAD_PANEL = 32 };

// The convolution in -> out; for the data gradient that is dy -> dx.
typedef struct winograd {
    cpu_image in, out; // channels in multiples of 16
    hr_dtype type;     // of images and weights
    int64_t pad_top, pad_left;
    int64_t tiles_h, tiles_w, tiles; // of an image in each direction; in all
    bool turned;                     // weights are [3, 3, out, in] and lie the other way round
} winograd;

// Matrices of all places.
typedef struct winograd_scratch {
    float *data;
    int64_t place, row; // floats from one place, one row to the next
} winograd_scratch;

// What lies behind the sum.
typedef struct winograd_end {
    const float *bias; // NULL: none
    bool relu;
    float ceiling; // of relu
} winograd_end;

// Rows [begin, end) of the weights' matrices, columns [f, f_end): panels of `rows` rows.
void winograd_weights(const winograd *w, const void *weights, int64_t begin, int64_t end, int64_t f,
                      int64_t f_end, const winograd_scratch *to);
// Tiles [begin, end) and channels [c, c_end) of the input; one tile a row.
void winograd_input(const winograd *w, const void *x, int64_t begin, int64_t end, int64_t c, int64_t c_end,
                    const winograd_scratch *to);
// Tiles [begin, end) and channels [f, f_end) of the output from the products.
void winograd_output(const winograd *w, const winograd_scratch *from, int64_t begin, int64_t end, int64_t f,
                     int64_t f_end, const winograd_end *ending, void *y);
// Tiles [begin, end) and channels [f, f_end) of the output's gradient: panels of end - begin rows.
void winograd_gradient(const winograd *w, const void *dy, int64_t begin, int64_t end, int64_t f,
                       int64_t f_end, const winograd_scratch *to);
// dw[3, 3, c..c_end, f..f_end] from the products.
void winograd_weights_back(const winograd *w, const winograd_scratch *from, int64_t c, int64_t c_end,
                           int64_t f, int64_t f_end, void *dw);

#endif
