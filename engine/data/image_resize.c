// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "data/image_rows.h"

// ---- nearest ------------------------------------------------------------------------------------------------------

// floor((k + 0.5) had / wanted)
static uint32_t nearest(uint32_t k, uint32_t wanted, uint32_t had)
{
    return (uint32_t)((2 * (uint64_t)k + 1) * had / (2 * (uint64_t)wanted));
}

static void pick_pixels(uint8_t *restrict out, const uint8_t *restrict row, const uint32_t *at,
                        uint32_t width, uint32_t channels)
{
    if (channels == 1) {
        for (uint32_t x = 0; x < width; x++) {
            out[x] = row[at[x]];
        }
        return;
    }
    for (uint32_t x = 0; x < width; x++, out += 3) {
        const uint8_t *from = row + at[x];
        out[0] = from[0];
        out[1] = from[1];
        out[2] = from[2];
    }
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
        pick_pixels(out, row, scratch->at, want->width, rows->channels);
        out += (uint64_t)want->width * rows->channels;
    }
    return image_finish_rows(rows, err);
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
        return image_area(rows, want, scratch, out, err);
    case IMAGE_BILINEAR:
        break;
    }
    return image_bilinear(rows, want, scratch, out, err);
}
