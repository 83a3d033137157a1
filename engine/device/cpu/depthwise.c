// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution (one filter per channel), bound by memory: every pass reads its images once, row by row.
//
// Two ways to fill registers. With channels in multiples of 16 a register holds 16 channels of one pixel. With few
// channels (a colour image) and a stride of 1 it holds neighbouring pixels: a row of the image is one long vector,
// in which tap (kh, kw) of output float j reads input float j + kw * C, and weights are repeated along the row.
#include <string.h>

#include "cpu.h"
#include "simd.h"
#include "workers.h"

enum { TAPS_MAX = 49 };

typedef int32_t i32x16 __attribute__((vector_size(64)));

typedef struct job {
    cpu_image x, y;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    int64_t channels; // of a whole pixel, all blocks
    const float *x_data, *w, *bias, *dy;
    float *out;
    float *room; // workspace, per worker `room_floats`
    int64_t room_floats;
    bool relu;
} job;

static int64_t taps_of(const op_query *q)
{
    return (int64_t)q->attr.kernel_h * q->attr.kernel_w;
}

static job job_of(const cpu_run *r, const op_operand *x, const op_operand *y)
{
    const op_attr *a = &r->query->attr;
    return (job){.x = cpu_image_of(x),
                 .y = cpu_image_of(y),
                 .kernel_h = a->kernel_h,
                 .kernel_w = a->kernel_w,
                 .stride_h = a->stride_h,
                 .stride_w = a->stride_w,
                 .pad_top = a->pad_top,
                 .pad_left = a->pad_left,
                 .channels = x->shape.dim[3],
                 .room = r->workspace};
}

CPU_INLINE int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

CPU_INLINE int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up_16(int64_t floats)
{
    return (floats + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
}

// First channel of an image's block within the weights.
CPU_INLINE int64_t first_channel(const job *j, int64_t image)
{
    return image % j->x.blocks * CPU_LANES;
}

CPU_INLINE const float *pixel(const float *data, const cpu_image *v, int64_t image, int64_t h, int64_t w)
{
    return data + ((image * v->height + h) * v->width + w) * v->channels;
}

// ---- 16 channels at a time ----------------------------------------------------------------------------------------

CPU_INLINE void store(const job *j, float *to, f32x16 value, int64_t channel)
{
    if (j->bias != NULL) {
        value += F32X16(j->bias + channel);
    }
    if (j->relu) {
        value = (f32x16)((i32x16)value & ~(value < 0.0f));
    }
    F32X16W(to) = value;
}

// 3x3, stride 1, nothing cut off by an edge: `count` outputs of one row, the weights in registers.
CPU_INLINE void wide_row_3x3(const job *j, const float *x, int64_t x_row, int64_t step, const float *weights,
                             int64_t tap, float *to, int64_t count, int64_t channel)
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

CPU_INLINE void wide_forward_pixel(const job *j, int64_t image, int64_t oh, int64_t ow, int64_t base)
{
    const int64_t h = oh * j->stride_h - j->pad_top, w = ow * j->stride_w - j->pad_left;
    const int64_t kh0 = max_of(0, -h), kh1 = min_of(j->kernel_h, j->x.height - h);
    const int64_t kw0 = max_of(0, -w), kw1 = min_of(j->kernel_w, j->x.width - w);
    float *to = j->out + ((image * j->y.height + oh) * j->y.width + ow) * j->y.channels;
    for (int64_t c = 0; c < j->y.channels; c += CPU_LANES) {
        f32x16 sum = {0};
        for (int64_t kh = kh0; kh < kh1; kh++) {
            const float *x = pixel(j->x_data, &j->x, image, h + kh, w) + c;
            const float *weights = j->w + kh * j->kernel_w * j->channels + base + c;
            for (int64_t kw = kw0; kw < kw1; kw++) {
                sum += F32X16(x + kw * j->x.channels) * F32X16(weights + kw * j->channels);
            }
        }
        store(j, to + c, sum, base + c);
    }
}

static bool is_3x3(const job *j)
{
    return j->kernel_h == 3 && j->kernel_w == 3 && j->stride_h == 1 && j->stride_w == 1;
}

CPU_HOT static void wide_forward_rows(const job *shared, int64_t begin, int64_t end)
{
    const job j = *shared;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / j.y.height, oh = row % j.y.height, base = first_channel(&j, image);
        const int64_t h = oh - j.pad_top;
        int64_t ow = 0;
        if (is_3x3(&j) && h >= 0 && h + 3 <= j.x.height) {
            const int64_t last = min_of(j.y.width, j.x.width + j.pad_left - 2);
            for (; ow < min_of(j.pad_left, last); ow++) {
                wide_forward_pixel(&j, image, oh, ow, base);
            }
            const float *x = pixel(j.x_data, &j.x, image, h, ow - j.pad_left);
            float *to = j.out + (row * j.y.width + ow) * j.y.channels;
            for (int64_t c = 0; c < j.y.channels && ow < last; c += CPU_LANES) {
                wide_row_3x3(&j, x + c, j.x.width * j.x.channels, j.x.channels, j.w + base + c, j.channels,
                             to + c, last - ow, base + c);
            }
            ow = max_of(ow, last);
        }
        for (; ow < j.y.width; ow++) {
            wide_forward_pixel(&j, image, oh, ow, base);
        }
    }
}

CPU_INLINE void wide_bwd_data_pixel(const job *j, int64_t image, int64_t h, int64_t w, int64_t base,
                                    float *to)
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
                           F32X16(j->w + (kh * j->kernel_w + kw) * j->channels + base + c);
                }
            }
        }
        F32X16W(to + c) = sum;
    }
}

// Stride 1: taps [kh0, kh1) x [kw0, kw1) without a test inside.
CPU_INLINE void wide_bwd_data_pixel_dense(const job *j, int64_t image, int64_t h, int64_t w, int64_t base,
                                          float *to)
{
    const int64_t top = h + j->pad_top, left = w + j->pad_left;
    const int64_t kh0 = max_of(0, top - j->y.height + 1), kh1 = min_of(j->kernel_h, top + 1);
    const int64_t kw0 = max_of(0, left - j->y.width + 1), kw1 = min_of(j->kernel_w, left + 1);
    for (int64_t c = 0; c < j->x.channels; c += CPU_LANES) {
        f32x16 sum = {0};
        for (int64_t kh = kh0; kh < kh1; kh++) {
            const float *dy = pixel(j->dy, &j->y, image, top - kh, left) + c;
            const float *weights = j->w + kh * j->kernel_w * j->channels + base + c;
            for (int64_t kw = kw0; kw < kw1; kw++) {
                sum += F32X16(dy - kw * j->y.channels) * F32X16(weights + kw * j->channels);
            }
        }
        F32X16W(to + c) = sum;
    }
}

// The gradient of a 3x3 convolution of stride 1 is one over dy with the kernel turned round: tap t is weight 8 - t,
// which a negative distance between taps says. Inputs [first, last) of row h see three whole columns of dy.
CPU_INLINE int64_t wide_bwd_data_3x3(const job *j, int64_t image, int64_t h, int64_t base, int64_t first,
                                     int64_t last)
{
    const float *dy = pixel(j->dy, &j->y, image, h + j->pad_top - 2, first + j->pad_left - 2);
    float *to = j->out + ((image * j->x.height + h) * j->x.width + first) * j->x.channels;
    for (int64_t c = 0; c < j->x.channels; c += CPU_LANES) {
        wide_row_3x3(j, dy + c, j->y.width * j->y.channels, j->y.channels, j->w + 8 * j->channels + base + c,
                     -j->channels, to + c, last - first, 0);
    }
    return last;
}

CPU_HOT static void wide_bwd_data_rows(const job *shared, int64_t begin, int64_t end)
{
    const job j = *shared;
    const bool dense = j.stride_h == 1 && j.stride_w == 1;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / j.x.height, h = row % j.x.height, base = first_channel(&j, image);
        const int64_t top = h + j.pad_top - 2;
        const bool whole = is_3x3(&j) && top >= 0 && top + 3 <= j.y.height;
        const int64_t first = max_of(0, 2 - j.pad_left), last = min_of(j.x.width, j.y.width - j.pad_left);
        for (int64_t w = 0; w < j.x.width; w++) {
            if (whole && w == first && first < last) {
                w = wide_bwd_data_3x3(&j, image, h, base, first, last);
                if (w == j.x.width) {
                    break;
                }
            }
            float *to = j.out + (row * j.x.width + w) * j.x.channels;
            if (dense) {
                wide_bwd_data_pixel_dense(&j, image, h, w, base, to);
            } else {
                wide_bwd_data_pixel(&j, image, h, w, base, to);
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

// sums[tap] += dy * x over the outputs of one row, then dy, for 16 channels; rows of `sums` are `channels` apart.
CPU_INLINE void wide_bwd_weights_row(const job *j, int64_t image, int64_t oh, int64_t c, float *sums)
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
CPU_INLINE void wide_bwd_weights_row_3x3(const job *j, const float *x, const float *dy, float *sums)
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
CPU_INLINE void wide_bwd_weights_image(const job *j, int64_t image, float *sums)
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
CPU_HOT static void wide_bwd_weights_images(const job *shared, float *restrict total, int64_t begin,
                                            int64_t end, float *restrict sums)
{
    const job j = *shared;
    const int64_t rows = j.kernel_h * j.kernel_w + 1;
    for (int64_t image = begin; image < end; image++) {
        const int64_t base = first_channel(&j, image);
        for (int64_t t = 0; t < rows; t++) {
            memset(sums + t * j.channels + base, 0, (size_t)j.x.channels * sizeof *sums);
        }
        wide_bwd_weights_image(&j, image, sums + base);
        for (int64_t t = 0; t < rows; t++) {
            for (int64_t c = base; c < base + j.x.channels; c++) {
                total[t * j.channels + c] += sums[t * j.channels + c];
            }
        }
    }
}

// ---- few channels: a row is one vector ----------------------------------------------------------------------------
// A strip is sixteen neighbouring floats of every output row. It is followed down the image, so that what belongs to
// its lanes (nine weights, or nine sums) stays in registers. The last strip of a row overlaps the one before it.

// An image with its padding around it: rows of `row` floats.
typedef struct narrow_image {
    const float *x;
    int64_t row;
} narrow_image;

static int64_t padded_rows(const job *j)
{
    return (j->y.height - 1) * j->stride_h + j->kernel_h;
}

static int64_t padded_row_floats(const job *j)
{
    return (j->y.width + j->kernel_w - 1) * j->x.channels;
}

static int64_t strip_floats(const job *j)
{
    return j->y.width * j->x.channels;
}

// Room of a worker: the padded image; per tap a row of weights or sums, and one for db.
static int64_t narrow_room(const job *j)
{
    return round_up_16(padded_rows(j) * padded_row_floats(j)) +
           round_up_16((j->kernel_h * j->kernel_w + 1) * strip_floats(j));
}

static float *narrow_tile_of(const job *j, float *room)
{
    return room + round_up_16(padded_rows(j) * padded_row_floats(j));
}

// The image itself where nothing pads it.
static narrow_image narrow_image_of(const job *j, int64_t image, float *room)
{
    const int64_t c = j->x.channels, row = padded_row_floats(j), own_row = j->x.width * c;
    const float *x = pixel(j->x_data, &j->x, image, 0, 0);
    if (j->pad_top == 0 && j->pad_left == 0 && padded_rows(j) <= j->x.height && row <= own_row) {
        return (narrow_image){x, own_row};
    }
    const int64_t rows = min_of(j->x.height, padded_rows(j) - j->pad_top);
    const int64_t floats = min_of(own_row, row - j->pad_left * c);
    memset(room, 0, (size_t)(padded_rows(j) * row) * sizeof *room);
    for (int64_t h = 0; h < rows; h++) {
        memcpy(room + (h + j->pad_top) * row + j->pad_left * c, x + h * own_row,
               (size_t)floats * sizeof *room);
    }
    return (narrow_image){room, row};
}

// Weights repeated along a row: tile[tap][strip floats].
static void narrow_tile(const job *j, float *tile)
{
    const int64_t c = j->x.channels, floats = strip_floats(j);
    for (int64_t t = 0; t < j->kernel_h * j->kernel_w; t++) {
        for (int64_t i = 0; i < floats; i++) {
            tile[t * floats + i] = j->w[t * c + i % c];
        }
    }
}

CPU_INLINE void narrow_forward_strip(const job *j, narrow_image v, const float *tile, float *to,
                                     const int64_t kernel_h, const int64_t kernel_w)
{
    const int64_t c = j->x.channels, floats = strip_floats(j);
    f32x16 w[TAPS_MAX];
#pragma GCC unroll 9
    for (int64_t t = 0; t < kernel_h * kernel_w; t++) {
        w[t] = F32X16(tile + t * floats);
    }
    for (int64_t oh = 0; oh < j->y.height; oh++) {
        const float *x = v.x + oh * j->stride_h * v.row;
        f32x16 sum = {0};
#pragma GCC unroll 9
        for (int64_t t = 0; t < kernel_h * kernel_w; t++) {
            sum += F32X16(x + t / kernel_w * v.row + t % kernel_w * c) * w[t];
        }
        F32X16W(to + oh * floats) = sum;
    }
}

CPU_HOT static void narrow_forward_image(const job *shared, narrow_image v, const float *tile, float *to)
{
    const job j = *shared;
    const int64_t floats = strip_floats(&j);
    for (int64_t i = 0; i < floats; i += CPU_LANES) {
        const int64_t at = min_of(i, floats - CPU_LANES);
        const narrow_image here = {v.x + at, v.row};
        if (j.kernel_h == 3 && j.kernel_w == 3) {
            narrow_forward_strip(&j, here, tile + at, to + at, 3, 3);
        } else {
            narrow_forward_strip(&j, here, tile + at, to + at, j.kernel_h, j.kernel_w);
        }
    }
}

// Bias and activation behind it, where few channels repeat too fast for a register.
static void narrow_finish_image(const job *j, float *to)
{
    const int64_t c = j->x.channels, floats = strip_floats(j) * j->y.height;
    for (int64_t i = 0; i < floats && (j->bias != NULL || j->relu); i++) {
        const float value = to[i] + (j->bias != NULL ? j->bias[i % c] : 0.0f);
        to[i] = j->relu && value < 0.0f ? 0.0f : value;
    }
}

static void narrow_forward_images(const job *j, int64_t begin, int64_t end, float *room)
{
    float *tile = narrow_tile_of(j, room);
    narrow_tile(j, tile);
    for (int64_t image = begin; image < end; image++) {
        float *to = j->out + image * j->y.height * strip_floats(j);
        narrow_forward_image(j, narrow_image_of(j, image, room), tile, to);
        narrow_finish_image(j, to);
    }
}

// sums[tap][strip floats] += x · dy down the strip; behind the last tap, dy. Lanes below `first` were in the strip
// before.
CPU_INLINE void narrow_bwd_weights_strip(const job *j, narrow_image v, const float *dy, float *sums,
                                         int32_t first, const int64_t kernel_h, const int64_t kernel_w)
{
    const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const i32x16 fresh = lane >= first;
    const int64_t c = j->x.channels, floats = strip_floats(j);
    f32x16 sum[TAPS_MAX], all = {0};
#pragma GCC unroll 9
    for (int64_t t = 0; t < kernel_h * kernel_w; t++) {
        sum[t] = (f32x16){0};
    }
    for (int64_t oh = 0; oh < j->y.height; oh++) {
        const f32x16 here = (f32x16)((i32x16)F32X16(dy + oh * floats) & fresh);
        const float *x = v.x + oh * j->stride_h * v.row;
        all += here;
#pragma GCC unroll 9
        for (int64_t t = 0; t < kernel_h * kernel_w; t++) {
            sum[t] += here * F32X16(x + t / kernel_w * v.row + t % kernel_w * c);
        }
    }
#pragma GCC unroll 9
    for (int64_t t = 0; t < kernel_h * kernel_w; t++) {
        F32X16W(sums + t * floats) += sum[t];
    }
    F32X16W(sums + kernel_h * kernel_w * floats) += all;
}

CPU_HOT static void narrow_bwd_weights_image(const job *shared, narrow_image v, const float *dy, float *sums)
{
    const job j = *shared;
    const int64_t floats = strip_floats(&j);
    for (int64_t i = 0; i < floats; i += CPU_LANES) {
        const int64_t at = min_of(i, floats - CPU_LANES);
        const narrow_image here = {v.x + at, v.row};
        const int32_t first = (int32_t)(i - at);
        if (j.kernel_h == 3 && j.kernel_w == 3) {
            narrow_bwd_weights_strip(&j, here, dy + at, sums + at, first, 3, 3);
        } else {
            narrow_bwd_weights_strip(&j, here, dy + at, sums + at, first, j.kernel_h, j.kernel_w);
        }
    }
}

static void narrow_clear(const job *j, float *sums)
{
    memset(sums, 0, (size_t)((j->kernel_h * j->kernel_w + 1) * strip_floats(j)) * sizeof *sums);
}

// Folds the sums along the row into total[tap][C] and empties them.
static void narrow_fold(const job *j, float *sums, float *total)
{
    const int64_t c = j->x.channels, floats = strip_floats(j);
    for (int64_t t = 0; t <= j->kernel_h * j->kernel_w; t++) {
        for (int64_t i = 0; i < floats; i++) {
            total[t * c + i % c] += sums[t * floats + i];
        }
    }
    narrow_clear(j, sums);
}

enum { FOLD_IMAGES = 8 }; // short sums keep their digits

static void narrow_bwd_weights_images(const job *j, float *total, int64_t begin, int64_t end, float *room)
{
    float *sums = narrow_tile_of(j, room);
    narrow_clear(j, sums);
    for (int64_t image = begin; image < end; image++) {
        narrow_bwd_weights_image(j, narrow_image_of(j, image, room), pixel(j->dy, &j->y, image, 0, 0), sums);
        if ((image - begin + 1) % FOLD_IMAGES == 0 || image + 1 == end) {
            narrow_fold(j, sums, total);
        }
    }
}

// ---- which way, and running ---------------------------------------------------------------------------------------

static bool is_wide(const op_operand *x)
{
    return x->shape.dim[3] % CPU_LANES == 0;
}

static bool is_depthwise(const op_query *q, const op_operand *x, const op_operand *y)
{
    return q->attr.groups == x->shape.dim[3] && q->attr.groups == y->shape.dim[3] && q->attr.groups > 1 &&
           taps_of(q) <= TAPS_MAX && x->layout == y->layout && x->layout != HR_LAYOUT_LIBRARY;
}

static bool suits_narrow(const op_query *q, const op_operand *x, const op_operand *y)
{
    return x->layout == HR_LAYOUT_PLAIN && q->attr.stride_w == 1 &&
           y->shape.dim[2] * y->shape.dim[3] >= CPU_LANES;
}

static bool forward_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].layout == HR_LAYOUT_PLAIN && is_depthwise(q, &q->in[0], &q->out[0]) &&
           (is_wide(&q->in[0]) || suits_narrow(q, &q->in[0], &q->out[0]));
}

static bool bwd_data_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].layout == HR_LAYOUT_PLAIN && is_depthwise(q, &q->out[0], &q->in[0]) &&
           is_wide(&q->out[0]);
}

static bool bwd_weights_fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->out[0].layout == HR_LAYOUT_PLAIN && is_depthwise(q, &q->in[0], &q->in[1]) &&
           (is_wide(&q->in[0]) || suits_narrow(q, &q->in[0], &q->in[1]));
}

static void wide_forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    wide_forward_rows(argument, begin, end);
}

static void narrow_forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    narrow_forward_images(j, begin, end, j->room + (int64_t)worker * j->room_floats);
}

static void run_forward(const cpu_run *r)
{
    job j = job_of(r, &r->query->in[0], &r->query->out[0]);
    j.x_data = r->in[0];
    j.w = r->in[1];
    j.bias = r->query->in_count > 2 ? r->in[2] : NULL;
    j.relu = r->query->attr.act == HR_ACT_RELU;
    j.out = r->out[0];
    j.room_floats = narrow_room(&j);
    if (is_wide(&r->query->in[0])) {
        cpu_for(r->device->workers, j.y.images * j.y.height, 1, wide_forward_body, &j);
    } else {
        cpu_for(r->device->workers, j.y.images, 1, narrow_forward_body, &j);
    }
}

static void bwd_data_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    wide_bwd_data_rows(argument, begin, end);
}

static void run_bwd_data(const cpu_run *r)
{
    job j = job_of(r, &r->query->out[0], &r->query->in[0]);
    j.dy = r->in[0];
    j.w = r->in[1];
    j.out = r->out[0];
    cpu_for(r->device->workers, j.x.images * j.x.height, 1, bwd_data_body, &j);
}

// Every worker sums into its own copy of dw and db, which lie first in its room.
static int64_t weight_floats(const job *j)
{
    return round_up_16((j->kernel_h * j->kernel_w + 1) * j->channels);
}

static void bwd_weights_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *total = j->room + (int64_t)worker * j->room_floats;
    memset(total, 0, (size_t)weight_floats(j) * sizeof *total);
    if (j->channels % CPU_LANES == 0) {
        wide_bwd_weights_images(j, total, begin, end, total + weight_floats(j));
    } else {
        narrow_bwd_weights_images(j, total, begin, end, total + weight_floats(j));
    }
}

static int64_t bwd_weights_room(const job *j)
{
    return weight_floats(j) + (j->channels % CPU_LANES == 0 ? weight_floats(j) : narrow_room(j));
}

// Adds the workers' sums, in their order.
static void gather(const job *j, float *to, int64_t first, int64_t count, uint32_t ranges)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = j->room[first + i];
        for (uint32_t w = 1; w < ranges; w++) {
            sum += j->room[(int64_t)w * j->room_floats + first + i];
        }
        to[i] = sum;
    }
}

static void run_bwd_weights(const cpu_run *r)
{
    job j = job_of(r, &r->query->in[0], &r->query->in[1]);
    j.x_data = r->in[0];
    j.dy = r->in[1];
    j.room_floats = bwd_weights_room(&j);
    cpu_for(r->device->workers, j.x.images, j.x.blocks, bwd_weights_body, &j);
    const uint32_t ranges = cpu_for_ranges(r->device->workers, j.x.images, j.x.blocks);
    const int64_t weights = j.kernel_h * j.kernel_w * j.channels;
    gather(&j, r->out[0], 0, weights, ranges);
    if (r->query->out_count > 1) {
        gather(&j, r->out[1], weights, j.channels, ranges);
    }
}

static job job_of_query(const op_query *q, const op_operand *x, const op_operand *y)
{
    const cpu_run r = {.query = q};
    return job_of(&r, x, y);
}

static uint64_t forward_workspace(const cpu_device *device, const op_query *q)
{
    const job j = job_of_query(q, &q->in[0], &q->out[0]);
    return is_wide(&q->in[0]) ? 0 : (uint64_t)narrow_room(&j) * device->threads * sizeof(float);
}

static uint64_t bwd_weights_workspace(const cpu_device *device, const op_query *q)
{
    const job j = job_of_query(q, &q->in[0], &q->in[1]);
    return (uint64_t)bwd_weights_room(&j) * device->threads * sizeof(float);
}

const cpu_impl cpu_depthwise = {
    .name = "rows", .fits = forward_fits, .workspace = forward_workspace, .run = run_forward};
const cpu_impl cpu_depthwise_bwd_data = {.name = "rows", .fits = bwd_data_fits, .run = run_bwd_data};
const cpu_impl cpu_depthwise_bwd_weights = {
    .name = "rows", .fits = bwd_weights_fits, .workspace = bwd_weights_workspace, .run = run_bwd_weights};
