// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of few channels: a row of the image is one long vector, in which tap (kh, kw) of
// output float j reads input float j + kw * C, and weights are repeated along the row.
//
// A strip is sixteen neighbouring floats of every output row. It is followed down the image, so that what
// belongs to its lanes (nine weights, or nine sums) stays in registers. The last strip of a row overlaps the
// one before it.
#include <string.h>

#include "depthwise.h"

// An image with its padding around it: rows of `row` floats.
typedef struct narrow_image {
    const float *x;
    int64_t row;
} narrow_image;

static int64_t padded_rows(const depthwise *j)
{
    return (j->y.height - 1) * j->stride_h + j->kernel_h;
}

static int64_t padded_row_floats(const depthwise *j)
{
    return (j->y.width + j->kernel_w - 1) * j->x.channels;
}

static int64_t strip_floats(const depthwise *j)
{
    return j->y.width * j->x.channels;
}

// Room of a worker: the padded image; per tap a row of weights or sums, and one for db.
int64_t depthwise_narrow_scratch(const depthwise *j)
{
    return round_up_16(padded_rows(j) * padded_row_floats(j)) +
           round_up_16((j->kernel_h * j->kernel_w + 1) * strip_floats(j));
}

static float *narrow_tile_of(const depthwise *j, float *scratch)
{
    return scratch + round_up_16(padded_rows(j) * padded_row_floats(j));
}

// The image itself where nothing pads it.
static narrow_image narrow_image_of(const depthwise *j, int64_t image, float *scratch)
{
    const int64_t c = j->x.channels, row = padded_row_floats(j), own_row = j->x.width * c;
    const float *x = pixel(j->x_data, &j->x, image, 0, 0);
    if (j->pad_top == 0 && j->pad_left == 0 && padded_rows(j) <= j->x.height && row <= own_row) {
        return (narrow_image){x, own_row};
    }
    const int64_t rows = min_of(j->x.height, padded_rows(j) - j->pad_top);
    const int64_t floats = min_of(own_row, row - j->pad_left * c);
    memset(scratch, 0, (size_t)(padded_rows(j) * row) * sizeof *scratch);
    for (int64_t h = 0; h < rows; h++) {
        memcpy(scratch + (h + j->pad_top) * row + j->pad_left * c, x + h * own_row,
               (size_t)floats * sizeof *scratch);
    }
    return (narrow_image){scratch, row};
}

// Weights repeated along a row: tile[tap][strip floats].
static void narrow_tile(const depthwise *j, float *tile)
{
    const int64_t c = j->x.channels, floats = strip_floats(j);
    for (int64_t t = 0; t < j->kernel_h * j->kernel_w; t++) {
        for (int64_t i = 0; i < floats; i++) {
            tile[t * floats + i] = j->w[t * c + i % c];
        }
    }
}

CPU_INLINE void narrow_forward_strip(const depthwise *j, narrow_image v, const float *tile, float *to,
                                     const int64_t kernel_h, const int64_t kernel_w)
{
    const int64_t c = j->x.channels, floats = strip_floats(j);
    f32x16 w[DEPTHWISE_TAPS_MAX];
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

CPU_HOT static void narrow_forward_image(const depthwise *shared, narrow_image v, const float *tile,
                                         float *to)
{
    const depthwise j = *shared;
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
static void narrow_finish_image(const depthwise *j, float *to)
{
    const int64_t c = j->x.channels, floats = strip_floats(j) * j->y.height;
    for (int64_t i = 0; i < floats && (j->bias != NULL || j->relu); i++) {
        const float value = to[i] + (j->bias != NULL ? j->bias[i % c] : 0.0f);
        const float positive = j->relu && value < 0.0f ? 0.0f : value;
        to[i] = j->relu && positive > j->ceiling ? j->ceiling : positive;
    }
}

void depthwise_narrow_forward(const depthwise *j, int64_t begin, int64_t end, float *scratch)
{
    float *tile = narrow_tile_of(j, scratch);
    narrow_tile(j, tile);
    for (int64_t image = begin; image < end; image++) {
        float *to = j->out + image * j->y.height * strip_floats(j);
        narrow_forward_image(j, narrow_image_of(j, image, scratch), tile, to);
        narrow_finish_image(j, to);
    }
}

// sums[tap][strip floats] += x · dy down the strip; behind the last tap, dy. Lanes below `first` were in the
// strip before.
CPU_INLINE void narrow_bwd_weights_strip(const depthwise *j, narrow_image v, const float *dy, float *sums,
                                         int32_t first, const int64_t kernel_h, const int64_t kernel_w)
{
    const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const i32x16 fresh = lane >= first;
    const int64_t c = j->x.channels, floats = strip_floats(j);
    f32x16 sum[DEPTHWISE_TAPS_MAX], all = {0};
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

CPU_HOT static void narrow_bwd_weights_image(const depthwise *shared, narrow_image v, const float *dy,
                                             float *sums)
{
    const depthwise j = *shared;
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

static void narrow_clear(const depthwise *j, float *sums)
{
    memset(sums, 0, (size_t)((j->kernel_h * j->kernel_w + 1) * strip_floats(j)) * sizeof *sums);
}

// Folds the sums along the row into total[tap][C] and empties them.
static void narrow_fold(const depthwise *j, float *sums, float *total)
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

void depthwise_narrow_bwd_weights(const depthwise *j, float *total, int64_t begin, int64_t end,
                                  float *scratch)
{
    float *sums = narrow_tile_of(j, scratch);
    narrow_clear(j, sums);
    for (int64_t image = begin; image < end; image++) {
        narrow_bwd_weights_image(j, narrow_image_of(j, image, scratch), pixel(j->dy, &j->y, image, 0, 0),
                                 sums);
        if ((image - begin + 1) % FOLD_IMAGES == 0 || image + 1 == end) {
            narrow_fold(j, sums, total);
        }
    }
}
