// SPDX-License-Identifier: Apache-2.0
// Private to depthwise*.c: convolution with one filter per channel, bound by memory.
//
// Two ways to fill registers. Wide: channels in multiples of 16, a register holds 16 channels of one pixel.
// Narrow: few channels (a colour image) and a stride of 1, a register holds neighbouring pixels of a row.
#ifndef DEVICE_CPU_DEPTHWISE_H
#define DEVICE_CPU_DEPTHWISE_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"
#include "simd.h"

enum { DEPTHWISE_TAPS_MAX = 49 };

// `x` is the input or its gradient, `y` the output or its gradient; weights are [tap][channels].
typedef struct depthwise {
    cpu_image x, y;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    int64_t channels;
    const float *x_data, *w, *bias, *dy;
    float *out;
    float *scratch; // workspace, per worker `scratch_floats`
    int64_t scratch_floats;
    bool relu;
    float ceiling; // of relu
} depthwise;

CPU_INLINE int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

CPU_INLINE int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t round_up_16(int64_t floats)
{
    return (floats + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
}

CPU_INLINE const float *pixel(const float *data, const cpu_image *v, int64_t image, int64_t h, int64_t w)
{
    return data + ((image * v->height + h) * v->width + w) * v->channels;
}

// Rows [begin, end) of y, of dx, over all images.
void depthwise_wide_forward(const depthwise *shared, int64_t begin, int64_t end);
void depthwise_wide_bwd_data(const depthwise *shared, int64_t begin, int64_t end);
// Adds dw of the images, and db behind the last tap, to total[tap][channels]; `sums` is scratch of the same
// size.
void depthwise_wide_bwd_weights(const depthwise *shared, float *restrict total, int64_t begin, int64_t end,
                                float *restrict sums);

int64_t depthwise_narrow_scratch(const depthwise *j); // floats of scratch that the next two need
void depthwise_narrow_forward(const depthwise *j, int64_t begin, int64_t end, float *scratch);
void depthwise_narrow_bwd_weights(const depthwise *j, float *total, int64_t begin, int64_t end,
                                  float *scratch);

#endif
