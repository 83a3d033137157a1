// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution with 16 channels of a pixel in a register.
#include <string.h>

#include "depthwise.h"

CPU_INLINE void store(const depthwise *j, float *to, f32x16 value, int64_t channel)
{
    if (j->bias != NULL) {
        value += F32X16(j->bias + channel);
    }
    if (j->relu) {
        const f32x16 ceiling = (f32x16){0} + j->ceiling;
        const i32x16 above = value > ceiling;
        value = (f32x16)((i32x16)value & ~(value < 0.0f));
        value = (f32x16)(((i32x16)value & ~above) | ((i32x16)ceiling & above));
    }
    F32X16W(to) = value;
}

// 3x3, stride 1, nothing cut off by an edge: `count` outputs of one row, the weights in registers.
CPU_INLINE void wide_row_3x3(const depthwise *j, const float *x, int64_t x_row, int64_t step,
                             const float *weights, int64_t tap, float *to, int64_t count, int64_t channel)
{
    f32x16 w[9];
#pragma GCC unroll 9
    for (int t = 0; t < 9; t++) {
        w[t] = F32X16(weights + t * tap);
    }
    for (int64_t i = 0; i < count; i++) {
        const float *at = x + i * step;
        f32x16 sum = F32X16(at) * w[0], other = F32X16(at + x_row) * w[3];
        sum += F32X16(at + step) * w[1];
        other += F32X16(at + x_row + step) * w[4];
        sum += F32X16(at + 2 * step) * w[2];
        other += F32X16(at + x_row + 2 * step) * w[5];
        sum += F32X16(at + 2 * x_row) * w[6];
        other += F32X16(at + 2 * x_row + step) * w[7];
        sum += F32X16(at + 2 * x_row + 2 * step) * w[8];
        store(j, to + i * step, sum + other, channel);
    }
}

CPU_INLINE void wide_forward_pixel(const depthwise *j, int64_t image, int64_t oh, int64_t ow)
{
    const int64_t h = oh * j->stride_h - j->pad_top, w = ow * j->stride_w - j->pad_left;
    const int64_t kh0 = max_of(0, -h), kh1 = min_of(j->kernel_h, j->x.height - h);
    const int64_t kw0 = max_of(0, -w), kw1 = min_of(j->kernel_w, j->x.width - w);
    float *to = j->out + ((image * j->y.height + oh) * j->y.width + ow) * j->y.channels;
    for (int64_t c = 0; c < j->y.channels; c += CPU_LANES) {
        f32x16 sum = {0};
        for (int64_t kh = kh0; kh < kh1; kh++) {
            const float *x = pixel(j->x_data, &j->x, image, h + kh, w) + c;
            const float *weights = j->w + kh * j->kernel_w * j->channels + c;
            for (int64_t kw = kw0; kw < kw1; kw++) {
                sum += F32X16(x + kw * j->x.channels) * F32X16(weights + kw * j->channels);
            }
        }
        store(j, to + c, sum, c);
    }
}

static bool is_3x3(const depthwise *j)
{
    return j->kernel_h == 3 && j->kernel_w == 3 && j->stride_h == 1 && j->stride_w == 1;
}

CPU_HOT void depthwise_wide_forward(const depthwise *shared, int64_t begin, int64_t end)
{
    const depthwise j = *shared;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / j.y.height, oh = row % j.y.height;
        const int64_t h = oh - j.pad_top;
        int64_t ow = 0;
        if (is_3x3(&j) && h >= 0 && h + 3 <= j.x.height) {
            const int64_t last = min_of(j.y.width, j.x.width + j.pad_left - 2);
            for (; ow < min_of(j.pad_left, last); ow++) {
                wide_forward_pixel(&j, image, oh, ow);
            }
            const float *x = pixel(j.x_data, &j.x, image, h, ow - j.pad_left);
            float *to = j.out + (row * j.y.width + ow) * j.y.channels;
            for (int64_t c = 0; c < j.y.channels && ow < last; c += CPU_LANES) {
                wide_row_3x3(&j, x + c, j.x.width * j.x.channels, j.x.channels, j.w + c, j.channels, to + c,
                             last - ow, c);
            }
            ow = max_of(ow, last);
        }
        for (; ow < j.y.width; ow++) {
            wide_forward_pixel(&j, image, oh, ow);
        }
    }
}

CPU_INLINE void wide_bwd_data_pixel(const depthwise *j, int64_t image, int64_t h, int64_t w, float *to)
{
    for (int64_t c = 0; c < j->x.channels; c += CPU_LANES) {
        f32x16 sum = {0};
        for (int64_t kh = 0; kh < j->kernel_h; kh++) {
            const int64_t oh = (h + j->pad_top - kh) / j->stride_h;
            if (h + j->pad_top < kh || oh >= j->y.height || oh * j->stride_h != h + j->pad_top - kh) {
                continue;
            }
            for (int64_t kw = 0; kw < j->kernel_w; kw++) {
                const int64_t ow = (w + j->pad_left - kw) / j->stride_w;
                if (w + j->pad_left >= kw && ow < j->y.width && ow * j->stride_w == w + j->pad_left - kw) {
                    sum += F32X16(pixel(j->dy, &j->y, image, oh, ow) + c) *
                           F32X16(j->w + (kh * j->kernel_w + kw) * j->channels + c);
                }
            }
        }
        F32X16W(to + c) = sum;
    }
}

// Stride 1: taps [kh0, kh1) x [kw0, kw1) without a test inside.
CPU_INLINE void wide_bwd_data_pixel_dense(const depthwise *j, int64_t image, int64_t h, int64_t w, float *to)
{
    const int64_t top = h + j->pad_top, left = w + j->pad_left;
    const int64_t kh0 = max_of(0, top - j->y.height + 1), kh1 = min_of(j->kernel_h, top + 1);
    const int64_t kw0 = max_of(0, left - j->y.width + 1), kw1 = min_of(j->kernel_w, left + 1);
    for (int64_t c = 0; c < j->x.channels; c += CPU_LANES) {
        f32x16 sum = {0};
        for (int64_t kh = kh0; kh < kh1; kh++) {
            const float *dy = pixel(j->dy, &j->y, image, top - kh, left) + c;
            const float *weights = j->w + kh * j->kernel_w * j->channels + c;
            for (int64_t kw = kw0; kw < kw1; kw++) {
                sum += F32X16(dy - kw * j->y.channels) * F32X16(weights + kw * j->channels);
            }
        }
        F32X16W(to + c) = sum;
    }
}

// The gradient of a 3x3 convolution of stride 1 is one over dy with the kernel turned round: tap t is weight
// 8 - t, which a negative distance between taps says. Inputs [first, last) of row h see three whole columns
// of dy.
CPU_INLINE int64_t wide_bwd_data_3x3(const depthwise *j, int64_t image, int64_t h, int64_t first,
                                     int64_t last)
{
    const float *dy = pixel(j->dy, &j->y, image, h + j->pad_top - 2, first + j->pad_left - 2);
    float *to = j->out + ((image * j->x.height + h) * j->x.width + first) * j->x.channels;
    for (int64_t c = 0; c < j->x.channels; c += CPU_LANES) {
        wide_row_3x3(j, dy + c, j->y.width * j->y.channels, j->y.channels, j->w + 8 * j->channels + c,
                     -j->channels, to + c, last - first, 0);
    }
    return last;
}

CPU_HOT void depthwise_wide_bwd_data(const depthwise *shared, int64_t begin, int64_t end)
{
    const depthwise j = *shared;
    const bool dense = j.stride_h == 1 && j.stride_w == 1;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / j.x.height, h = row % j.x.height;
        const int64_t top = h + j.pad_top - 2;
        const bool whole = is_3x3(&j) && top >= 0 && top + 3 <= j.y.height;
        const int64_t first = max_of(0, 2 - j.pad_left), last = min_of(j.x.width, j.y.width - j.pad_left);
        for (int64_t w = 0; w < j.x.width; w++) {
            if (whole && w == first && first < last) {
                w = wide_bwd_data_3x3(&j, image, h, first, last);
                if (w == j.x.width) {
                    break;
                }
            }
            float *to = j.out + (row * j.x.width + w) * j.x.channels;
            if (dense) {
                wide_bwd_data_pixel_dense(&j, image, h, w, to);
            } else {
                wide_bwd_data_pixel(&j, image, h, w, to);
            }
        }
    }
}

// Kernel places [first, last) at which output `o` sees the input.
CPU_INLINE void places_inside(int64_t o, int64_t stride, int64_t pad, int64_t kernel, int64_t size,
                              int64_t *first, int64_t *last)
{
    const int64_t begin = o * stride - pad;
    *first = max_of(0, -begin);
    *last = min_of(kernel, size - begin);
}

// sums[tap] += dy * x over the outputs of one row, then dy, for 16 channels; rows of `sums` are `channels`
// apart.
CPU_INLINE void wide_bwd_weights_row(const depthwise *j, int64_t image, int64_t oh, int64_t c, float *sums)
{
    const int64_t taps = j->kernel_h * j->kernel_w;
    int64_t kh0 = 0, kh1 = 0, kw0 = 0, kw1 = 0;
    places_inside(oh, j->stride_h, j->pad_top, j->kernel_h, j->x.height, &kh0, &kh1);
    for (int64_t ow = 0; ow < j->y.width; ow++) {
        places_inside(ow, j->stride_w, j->pad_left, j->kernel_w, j->x.width, &kw0, &kw1);
        const f32x16 dy = F32X16(pixel(j->dy, &j->y, image, oh, ow) + c);
        const float *x =
            pixel(j->x_data, &j->x, image, oh * j->stride_h - j->pad_top, ow * j->stride_w - j->pad_left) + c;
        F32X16W(sums + taps * j->channels) += dy;
        for (int64_t kh = kh0; kh < kh1; kh++) {
            for (int64_t kw = kw0; kw < kw1; kw++) {
                F32X16W(sums + (kh * j->kernel_w + kw) * j->channels) +=
                    dy * F32X16(x + (kh * j->x.width + kw) * j->x.channels);
            }
        }
    }
}

// The same for a 3x3 kernel that lies inside throughout: the sums stay in registers.
CPU_INLINE void wide_bwd_weights_row_3x3(const depthwise *j, const float *x, const float *dy, float *sums)
{
    const int64_t step = j->x.channels, row = j->x.width * step;
    f32x16 sum[10];
#pragma GCC unroll 10
    for (int t = 0; t < 10; t++) {
        sum[t] = F32X16(sums + t * j->channels);
    }
    for (int64_t ow = 0; ow < j->y.width; ow++) {
        const f32x16 here = F32X16(dy + ow * step);
#pragma GCC unroll 9
        for (int t = 0; t < 9; t++) {
            sum[t] += here * F32X16(x + ow * step + t / 3 * row + t % 3 * step);
        }
        sum[9] += here;
    }
#pragma GCC unroll 10
    for (int t = 0; t < 10; t++) {
        F32X16W(sums + t * j->channels) = sum[t];
    }
}

// dw of one image, and db behind the last tap, into sums[tap][channels].
CPU_INLINE void wide_bwd_weights_image(const depthwise *j, int64_t image, float *sums)
{
    const bool inside = is_3x3(j) && j->pad_left == 0 && j->y.width + 2 <= j->x.width;
    for (int64_t oh = 0; oh < j->y.height; oh++) {
        const int64_t h = oh - j->pad_top;
        const bool whole = inside && h >= 0 && h + 3 <= j->x.height;
        for (int64_t c = 0; c < j->x.channels; c += CPU_LANES) {
            if (whole) {
                wide_bwd_weights_row_3x3(j, pixel(j->x_data, &j->x, image, h, 0) + c,
                                         pixel(j->dy, &j->y, image, oh, 0) + c, sums + c);
            } else {
                wide_bwd_weights_row(j, image, oh, c, sums + c);
            }
        }
    }
}

// Sums of single images, then the sum of those: short sums keep their digits.
CPU_HOT void depthwise_wide_bwd_weights(const depthwise *shared, float *restrict total, int64_t begin,
                                        int64_t end, float *restrict sums)
{
    const depthwise j = *shared;
    const int64_t rows = j.kernel_h * j.kernel_w + 1;
    for (int64_t image = begin; image < end; image++) {
        memset(sums, 0, (size_t)(rows * j.channels) * sizeof *sums);
        wide_bwd_weights_image(&j, image, sums);
        for (int64_t k = 0; k < rows * j.channels; k++) {
            total[k] += sums[k];
        }
    }
}
