// SPDX-License-Identifier: Apache-2.0
// An image file of a stranger as the bytes a model wants: height x width x channels of uint8, whatever the file's own size.
// What a file is say its first bytes, never its name. Thread-safe: nothing is kept between calls but the opened libraries
// (libturbojpeg, libspng).
//
//   JPEG  decoded at the smallest of 1/8, 1/4, 1/2 and 1 of its size that covers the wanted size (or at the largest of these
//         that fits in scratch, where that one does not), then resized. Baseline, progressive, 1 component, 3, or 4.
//   PNG   decoded row by row (interlaced: whole, in scratch), then resized. 1 to 16 bits (the high byte counts), palette,
//         grey, colour; alpha is dropped, as tf.io.decode_png(channels=3) does.
//
// EXIF's orientation is not applied, as in tf.io.decode_jpeg. Colour becomes grey by BT.601, grey becomes colour by repeating it.
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum {
    IMAGE_SIDE_MOST = 65500,     // of a file; JPEG's own limit
    IMAGE_PIXELS_MOST = 1 << 26, // of a file
    IMAGE_WANT_SIDE_MOST = 8192, // of what is wanted
    IMAGE_LIBRARY_MOST_BYTES =
        72 << 20, // that a library takes of its own during one image_decode, beside scratch
};

// As tf.image.resize(method=…, antialias=False) and, for `area`, the mean of the source's area under each pixel; pixels have
// half-pixel centres. Rounded to the nearest level.
typedef enum image_filter { IMAGE_BILINEAR, IMAGE_NEAREST, IMAGE_AREA } image_filter;

typedef struct image_want {
    uint32_t height, width; // 1 .. IMAGE_WANT_SIDE_MOST
    uint8_t channels;       // 1 or 3
    image_filter filter;
} image_want;

typedef struct image_file {
    const uint8_t *bytes;
    uint64_t size_bytes;
    const char *name; // for sentences
} image_file;

typedef enum image_kind { IMAGE_JPEG, IMAGE_PNG } image_kind;

typedef struct image_facts {
    image_kind kind;
    uint32_t width, height;
    uint8_t
        components; // of a pixel: 1 grey, 2 grey and alpha, 3 colour (a palette too), 4 with alpha or CMYK
    bool whole;     // comes in passes (progressive, interlaced): a decoder has to hold all of it
} image_facts;

// Whether these look like the first bytes of an image: worth an image_probe.
bool image_is_likely(const uint8_t *bytes, uint64_t size_bytes);

// What the header says, without the libraries. DATA error when this is no image that image_decode would try.
HR_MUST_CHECK hr_status image_probe(const image_file *file, image_facts *facts, hr_err *err);

// What one thread needs as scratch: a function of `want` alone, 4 MiB and 2 lines up to about 500 x 500. Multiple of 64.
uint64_t image_scratch_bytes(const image_want *want);

// Writes want->height x want->width x want->channels bytes to out. scratch: image_scratch_bytes, aligned as hr_calloc does.
// DATA error, out undefined, when the file is not one whole image within the limits above; DEPENDENCY error when the library
// is missing; NOMEM when it got no memory.
HR_MUST_CHECK hr_status image_decode(const image_file *file, const image_want *want, uint8_t *scratch,
                                     uint8_t *out, hr_err *err);

#endif
