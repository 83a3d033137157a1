// SPDX-License-Identifier: Apache-2.0
// What augmentation does to the bytes of one image, height × width × channels. With integers alone: the same bytes on every
// processor. `to` and `from` do not overlap, and nothing beyond the image is touched. Any thread.
#ifndef DATA_IMAGE_OPS_H
#define DATA_IMAGE_OPS_H

#include <stdint.h>

typedef struct image_size {
    uint32_t height, width, channels;
} image_size;

typedef struct image_box {
    uint32_t top, left, height, width; // within the image
} image_box;

uint64_t image_bytes(const image_size *size);

// Left and right change places.
void image_mirror(uint8_t *to, const uint8_t *from, const image_size *size);
// to[y][x] = from[y + down][x + right], black where that lies outside.
void image_shift(uint8_t *to, const uint8_t *from, const image_size *size, int32_t down, int32_t right);

// Factors are in 65536ths, 0 … 2. A value v becomes factor · v + (1 - factor) · level, cut to a byte: rounded down and held
// within 0 … 255, as torchvision and Pillow do it.
enum { IMAGE_FACTOR_ONE = 1 << 16 };
void image_brightness(uint8_t *image, const image_size *size, int32_t factor); // the level is black
void image_contrast(uint8_t *image, const image_size *size, int32_t factor); // … the mean of the image's grey
void image_saturation(uint8_t *image, const image_size *size, int32_t factor); // … the pixel's grey
// Grey is BT.601's of images of three channels, and every value itself of others, which saturation leaves as they are.

// Turned about the centre, counted against the clock, by an angle in 65536ths of a degree, -180 … 180 degrees: each pixel takes the
// nearest one of where it comes from, black where that lies outside.
enum { IMAGE_DEGREE = 1 << 16 };
void image_rotate(uint8_t *to, const uint8_t *from, const image_size *size, int32_t angle);
// The box becomes black.
void image_blacken(uint8_t *image, const image_size *size, const image_box *box);

#endif
