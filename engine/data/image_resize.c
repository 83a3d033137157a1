// SPDX-License-Identifier: Apache-2.0
// Resizing with integers: the same bytes on every processor. Columns first, a source row at a time, then the pixels of the
// resulting line.
#include <string.h>

#include "data/image_rows.h"

// Compiled once per instruction set, chosen when the program starts (see base/narrow.c for the sanitizers).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&     \
    !defined(__SANITIZE_THREAD__)
#define IMAGE_HOT                                                                                            \
    __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define IMAGE_HOT
#endif

enum {
    WEIGHT_BITS = 14, // of the share of the second of two neighbours
    WEIGHT_ONE = 1 << WEIGHT_BITS,
    LINE_BITS = 8, // of a level's fraction in the line between
    LINE_DROPS = WEIGHT_BITS - LINE_BITS,
    OUT_DROPS = WEIGHT_BITS + LINE_BITS,
};

hr_status image_row(image_rows *rows, uint32_t y, const uint8_t **row, hr_err *err)
{
    if (rows->whole != NULL) {
        *row = rows->whole + (uint64_t)y * rows->width * rows->channels;
        return HR_OK;
    }
    while (rows->count <= y) {
        HR_TRY(rows->next(rows->context, rows->count, &rows->last[rows->count & 1], err));
        rows->count++;
    }
    *row = rows->last[y & 1];
    return HR_OK;
}

// Rows that nobody needed are still part of the file, and may be missing.
static hr_status finish_rows(image_rows *rows, hr_err *err)
{
    const uint8_t *row;
    return image_row(rows, rows->height - 1, &row, err);
}

void image_grey_of_rgb(uint8_t *to, const uint8_t *from, uint64_t pixels)
{
    for (uint64_t k = 0; k < pixels; k++, from += 3) {
        const uint32_t sum = 19595u * from[0] + 38470u * from[1] + 7471u * from[2]; // 0.299, 0.587, 0.114
        to[k] = (uint8_t)((sum + 32768) >> 16);
    }
}

// Where pixel k of `wanted` lies among `had`: between *at and the next, *weight of WEIGHT_ONE towards the next.
static void find_neighbours(uint32_t k, uint32_t wanted, uint32_t had, uint32_t *at, uint32_t *weight)
{
    const int64_t two_wanted = 2 * (int64_t)wanted;
    const int64_t place = (2 * (int64_t)k + 1) * had - wanted; // (k + 0.5) had / wanted - 0.5, times 2 wanted
    if (place <= 0) {
        *at = *weight = 0;
        return;
    }
    *at = (uint32_t)(place / two_wanted);
    *weight = (uint32_t)((place % two_wanted * WEIGHT_ONE + wanted) / two_wanted);
    if (*at >= had - 1) {
        *at = had - 1;
        *weight = 0;
    }
}

// ---- bilinear -----------------------------------------------------------------------------------------------------

IMAGE_HOT static void blend_rows(uint16_t *restrict line, const uint8_t *top, const uint8_t *bottom,
                                 uint32_t weight, uint32_t count)
{
    const uint32_t first = WEIGHT_ONE - weight;
    for (uint32_t k = 0; k < count; k++) {
        line[k] = (uint16_t)((top[k] * first + bottom[k] * weight + (1u << (LINE_DROPS - 1))) >> LINE_DROPS);
    }
}

static uint8_t between(uint32_t left, uint32_t right, uint32_t weight)
{
    return (uint8_t)((left * (WEIGHT_ONE - weight) + right * weight + (1u << (OUT_DROPS - 1))) >> OUT_DROPS);
}

// line has one pixel more than the source: a weight of 0 still multiplies it.
static void blend_pixels(uint8_t *restrict out, const uint16_t *restrict line, const image_scratch *scratch,
                         uint32_t width, uint32_t channels)
{
    if (channels == 1) {
        for (uint32_t x = 0; x < width; x++) {
            const uint16_t *from = line + scratch->at[x];
            out[x] = between(from[0], from[1], scratch->weight[x]);
        }
        return;
    }
    for (uint32_t x = 0; x < width; x++, out += 3) {
        const uint16_t *from = line + 3 * scratch->at[x];
        const uint32_t weight = scratch->weight[x];
        out[0] = between(from[0], from[3], weight);
        out[1] = between(from[1], from[4], weight);
        out[2] = between(from[2], from[5], weight);
    }
}

static hr_status resize_bilinear(image_rows *rows, const image_want *want, const image_scratch *scratch,
                                 uint8_t *out, hr_err *err)
{
    const uint32_t count = rows->width * rows->channels;
    uint16_t *line = scratch->line;
    for (uint32_t x = 0; x < want->width; x++) {
        find_neighbours(x, want->width, rows->width, &scratch->at[x], &scratch->weight[x]);
    }
    memset(line + count, 0, sizeof *line * rows->channels);
    for (uint32_t y = 0; y < want->height; y++) {
        uint32_t at, weight;
        const uint8_t *top, *bottom;
        find_neighbours(y, want->height, rows->height, &at, &weight);
        HR_TRY(image_row(rows, weight > 0 ? at + 1 : at, &bottom, err));
        HR_TRY(image_row(rows, at, &top, err));
        blend_rows(line, top, bottom, weight, count);
        blend_pixels(out, line, scratch, want->width, rows->channels);
        out += (uint64_t)want->width * rows->channels;
    }
    return finish_rows(rows, err);
}

// ---- nearest ------------------------------------------------------------------------------------------------------

// floor((k + 0.5) had / wanted)
static uint32_t nearest(uint32_t k, uint32_t wanted, uint32_t had)
{
    return (uint32_t)((2 * (uint64_t)k + 1) * had / (2 * (uint64_t)wanted));
}

static hr_status resize_nearest(image_rows *rows, const image_want *want, const image_scratch *scratch,
                                uint8_t *out, hr_err *err)
{
    for (uint32_t x = 0; x < want->width; x++) {
        scratch->at[x] = nearest(x, want->width, rows->width) * rows->channels;
    }
    for (uint32_t y = 0; y < want->height; y++) {
        const uint8_t *row;
        HR_TRY(image_row(rows, nearest(y, want->height, rows->height), &row, err));
        for (uint32_t x = 0; x < want->width; x++, out += rows->channels) {
            memcpy(out, row + scratch->at[x], rows->channels);
        }
    }
    return finish_rows(rows, err);
}

// ---- area ---------------------------------------------------------------------------------------------------------
// In units of 1 / (wanted * had) of a side, row r of the source covers r * wanted .. (r + 1) * wanted and pixel y of what is
// wanted y * had .. (y + 1) * had: all shares are integers, and those of a pixel are `had` together.

IMAGE_HOT static void add_row(uint32_t *restrict sums, const uint8_t *restrict row, uint32_t share,
                              uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        sums[k] += share * row[k];
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// What source place r of `had` gives to pixel k of `wanted`.
static uint32_t share_of(uint64_t r, uint64_t k, uint64_t wanted, uint64_t had)
{
    return (uint32_t)(smaller((r + 1) * wanted, (k + 1) * had) - larger(r * wanted, k * had));
}

// The last source place that gives something to pixel k.
static uint32_t last_place(uint64_t k, uint64_t wanted, uint64_t had)
{
    return (uint32_t)(((k + 1) * had - 1) / wanted);
}

static void mean_pixels(uint8_t *out, const uint32_t *sums, const image_rows *rows, uint32_t width)
{
    const uint32_t channels = rows->channels;
    const uint64_t area = (uint64_t)rows->width * rows->height;
    for (uint32_t x = 0; x < width; x++) {
        uint64_t sum[3] = {0};
        const uint32_t last = last_place(x, width, rows->width);
        for (uint32_t r = (uint32_t)((uint64_t)x * rows->width / width); r <= last; r++) {
            const uint64_t share = share_of(r, x, width, rows->width);
            for (uint32_t c = 0; c < channels; c++) {
                sum[c] += share * sums[r * channels + c];
            }
        }
        for (uint32_t c = 0; c < channels; c++) {
            *out++ = (uint8_t)((sum[c] + area / 2) / area);
        }
    }
}

static hr_status resize_area(image_rows *rows, const image_want *want, const image_scratch *scratch,
                             uint8_t *out, hr_err *err)
{
    const uint32_t count = rows->width * rows->channels;
    uint32_t *sums = scratch->line;
    for (uint32_t y = 0; y < want->height; y++) {
        const uint32_t last = last_place(y, want->height, rows->height);
        memset(sums, 0, sizeof *sums * count);
        for (uint32_t r = (uint32_t)((uint64_t)y * rows->height / want->height); r <= last; r++) {
            const uint8_t *row;
            HR_TRY(image_row(rows, r, &row, err));
            add_row(sums, row, share_of(r, y, want->height, rows->height), count);
        }
        mean_pixels(out, sums, rows, want->width);
        out += (uint64_t)want->width * rows->channels;
    }
    return HR_OK;
}

// ---- one of them ----------------------------------------------------------------------------------------------------

static hr_status copy_rows(image_rows *rows, uint8_t *out, hr_err *err)
{
    const uint64_t row_bytes = (uint64_t)rows->width * rows->channels;
    for (uint32_t y = 0; y < rows->height; y++, out += row_bytes) {
        const uint8_t *row;
        HR_TRY(image_row(rows, y, &row, err));
        memcpy(out, row, row_bytes);
    }
    return HR_OK;
}

hr_status image_resize(image_rows *rows, const image_want *want, const image_scratch *scratch, uint8_t *out,
                       hr_err *err)
{
    if (rows->width == want->width && rows->height == want->height) {
        return copy_rows(rows, out, err);
    }
    switch (want->filter) {
    case IMAGE_NEAREST:
        return resize_nearest(rows, want, scratch, out, err);
    case IMAGE_AREA:
        return resize_area(rows, want, scratch, out, err);
    case IMAGE_BILINEAR:
        break;
    }
    return resize_bilinear(rows, want, scratch, out, err);
}
