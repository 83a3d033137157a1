// SPDX-License-Identifier: Apache-2.0
// Resizing to the mean of the area under each pixel. In units of 1 / (wanted * had) of a side, row r of the source covers
// r * wanted .. (r + 1) * wanted and pixel y of what is wanted y * had .. (y + 1) * had: all shares are integers, and those of
// a pixel are `had` together.
#include <string.h>

#include "data/image_rows.h"

// Division by an area as a multiplication: sums are at most 255.5 areas, so that the product stays below 2^64.
enum { AREA_BITS = 55 };
_Static_assert(IMAGE_PIXELS_MOST <= 1 << 26, "the reciprocal has enough bits");

IMAGE_HOT static void add_row(uint32_t *restrict sums, const uint8_t *restrict row, uint32_t share,
                              uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        sums[k] += share * row[k];
    }
}

// The first and the last source place that give something to pixel k.
static void find_places(uint64_t k, uint64_t wanted, uint64_t had, uint32_t *first, uint32_t *last)
{
    *first = (uint32_t)(k * had / wanted);
    *last = (uint32_t)(((k + 1) * had - 1) / wanted);
}

// What place r gives to pixel k.
static uint32_t share_of(uint64_t r, uint64_t k, uint64_t wanted, uint64_t had)
{
    const uint64_t begin = r * wanted > k * had ? r * wanted : k * had;
    const uint64_t end = (r + 1) * wanted < (k + 1) * had ? (r + 1) * wanted : (k + 1) * had;
    return (uint32_t)(end - begin);
}

// Sums of a line over what lies under pixel x: the first and the last place give a share of their own, those between
// `wanted` each.
typedef struct column {
    uint32_t first, last;
    uint64_t first_share, last_share;
} column;

static column find_column(const image_scratch *scratch, uint32_t x, uint32_t wanted, uint32_t had)
{
    column c = {.first = scratch->at[x], .last = scratch->weight[x]};
    c.first_share = share_of(c.first, x, wanted, had);
    c.last_share = c.last > c.first ? share_of(c.last, x, wanted, had) : 0;
    return c;
}

static void mean_pixels(uint8_t *restrict out, const uint32_t *restrict sums, const image_rows *rows,
                        const image_scratch *scratch, uint32_t width)
{
    const uint64_t area = (uint64_t)rows->width * rows->height;
    const uint64_t reciprocal = (UINT64_C(1) << AREA_BITS) / area + 1;
    for (uint32_t x = 0; x < width; x++, out += 3) {
        const column c = find_column(scratch, x, width, rows->width);
        const uint32_t *first = sums + 3 * c.first, *last = sums + 3 * c.last;
        uint64_t sum[3] = {0};
        for (const uint32_t *place = first + 3; place < last; place += 3) {
            sum[0] += place[0];
            sum[1] += place[1];
            sum[2] += place[2];
        }
        for (int k = 0; k < 3; k++) {
            sum[k] = sum[k] * width + c.first_share * first[k] + c.last_share * last[k];
            out[k] = (uint8_t)((sum[k] + area / 2) * reciprocal >> AREA_BITS);
        }
    }
}

static void mean_grey_pixels(uint8_t *restrict out, const uint32_t *restrict sums, const image_rows *rows,
                             const image_scratch *scratch, uint32_t width)
{
    const uint64_t area = (uint64_t)rows->width * rows->height;
    const uint64_t reciprocal = (UINT64_C(1) << AREA_BITS) / area + 1;
    for (uint32_t x = 0; x < width; x++) {
        const column c = find_column(scratch, x, width, rows->width);
        uint64_t sum = 0;
        for (uint32_t place = c.first + 1; place < c.last; place++) {
            sum += sums[place];
        }
        sum = sum * width + c.first_share * sums[c.first] + c.last_share * sums[c.last];
        out[x] = (uint8_t)((sum + area / 2) * reciprocal >> AREA_BITS);
    }
}

hr_status image_area(image_rows *rows, const image_want *want, const image_scratch *scratch, uint8_t *out,
                     hr_err *err)
{
    const uint32_t count = rows->width * rows->channels;
    uint32_t *sums = scratch->line;
    for (uint32_t x = 0; x < want->width; x++) {
        find_places(x, want->width, rows->width, &scratch->at[x], &scratch->weight[x]);
    }
    for (uint32_t y = 0; y < want->height; y++) {
        uint32_t first, last;
        find_places(y, want->height, rows->height, &first, &last);
        memset(sums, 0, sizeof *sums * count);
        for (uint32_t r = first; r <= last; r++) {
            const uint8_t *row;
            HR_TRY(image_row(rows, r, &row, err));
            add_row(sums, row, share_of(r, y, want->height, rows->height), count);
        }
        (rows->channels == 1 ? mean_grey_pixels : mean_pixels)(out, sums, rows, scratch, want->width);
        out += (uint64_t)want->width * rows->channels;
    }
    return HR_OK;
}
