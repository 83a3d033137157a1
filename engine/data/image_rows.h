// SPDX-License-Identifier: Apache-2.0
// Between image.c, the decoders and the resize: a decoded image, asked for row by row from the top.
#ifndef DATA_IMAGE_ROWS_H
#define DATA_IMAGE_ROWS_H

#include "data/image.h"

// Compiled once per instruction set, chosen when the program starts (see base/narrow.c for the sanitizers).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&     \
    !defined(__SANITIZE_THREAD__)
#define IMAGE_X86 1
#define IMAGE_HOT                                                                                            \
    __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define IMAGE_X86 0
#define IMAGE_HOT
#endif

enum {
    IMAGE_ALIGN = 64,
    IMAGE_LINE_BYTES = (IMAGE_SIDE_MOST + 1) * 3 * 4, // a row of 32-bit numbers, and one more pixel
    IMAGE_ROOM_LEAST_BYTES = 4 << 20,
};
_Static_assert(IMAGE_ROOM_LEAST_BYTES >= 2 * 3 * IMAGE_SIDE_MOST, "two rows of any PNG");

// The parts of scratch.
typedef struct image_scratch {
    uint8_t *room; // for decoded pixels
    uint64_t room_bytes;
    void *line;       // IMAGE_LINE_BYTES
    uint32_t *at;     // want.width
    uint32_t *weight; // want.width
} image_scratch;

// Decoded pixels, of 1 or 3 bytes. Either all of them or a source of rows.
typedef struct image_rows {
    uint32_t width, height;
    uint8_t channels;
    const uint8_t *whole; // rows without gaps; or NULL, and then:
    // Row y; asked for in ascending order, each at most once. The last two rows stay as they are.
    hr_status (*next)(void *context, uint32_t y, const uint8_t **row, hr_err *err);
    void *context;
    const uint8_t *last[2]; // what next gave, y and y - 1 by parity
    uint32_t count;         // rows asked for so far
} image_rows;

// Row y; y never falls by more than one.
HR_MUST_CHECK hr_status image_row(image_rows *rows, uint32_t y, const uint8_t **row, hr_err *err);

// The rest: rows that nobody needed are still part of the file, and may be missing.
HR_MUST_CHECK hr_status image_finish_rows(image_rows *rows, hr_err *err);

// ---- resizing, with integers: the same bytes on every processor ---------------------------------------------------
// out: want->height x want->width x rows->channels. They take every row, also those that they do not use.

HR_MUST_CHECK hr_status image_resize(image_rows *rows, const image_want *want, const image_scratch *scratch,
                                     uint8_t *out, hr_err *err); // by want->filter
HR_MUST_CHECK hr_status image_bilinear(image_rows *rows, const image_want *want, const image_scratch *scratch,
                                       uint8_t *out, hr_err *err);
HR_MUST_CHECK hr_status image_area(image_rows *rows, const image_want *want, const image_scratch *scratch,
                                   uint8_t *out, hr_err *err);

// RGB to grey by BT.601, as libjpeg rounds it; `to` may be `from`.
void image_grey_of_rgb(uint8_t *to, const uint8_t *from, uint64_t pixels);

// ---- JPEG -------------------------------------------------------------------------------------------------------

typedef struct jpeg_header {
    uint32_t width, height;
    uint8_t components;
    bool whole;            // more than one scan
    bool inverted;         // Adobe's: 255 is no ink
    uint64_t passes_bytes; // what a decoder holds of it when it has more than one scan
} jpeg_header;

HR_MUST_CHECK hr_status jpeg_read_header(const image_file *file, jpeg_header *header, hr_err *err);
HR_MUST_CHECK hr_status jpeg_decode(const image_file *file, const image_want *want,
                                    const image_scratch *scratch, uint8_t *out, hr_err *err);

// ---- PNG --------------------------------------------------------------------------------------------------------

typedef struct png_header {
    uint32_t width, height;
    uint8_t bits, components;
    bool interlaced;
} png_header;

HR_MUST_CHECK hr_status png_read_header(const image_file *file, png_header *header, hr_err *err);
HR_MUST_CHECK hr_status png_decode(const image_file *file, const image_want *want,
                                   const image_scratch *scratch, uint8_t *out, hr_err *err);

#endif
