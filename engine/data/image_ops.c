// SPDX-License-Identifier: Apache-2.0
#include "data/image_ops.h"

#include <string.h>

#include "data/image_rows.h"

enum { COLOURS = 3, FACTOR_BITS = 16 };
_Static_assert(1 << FACTOR_BITS == IMAGE_FACTOR_ONE, "a factor's parts");

uint64_t image_bytes(const image_size *size)
{
    return (uint64_t)size->height * size->width * size->channels;
}

// ---- places ---------------------------------------------------------------------------------------------------

// Pixels of three bytes move as four: the fourth is the next one's, which is written behind it.
static void mirror_colours(uint8_t *to, const uint8_t *from, uint32_t width)
{
    const uint8_t *last = from + (uint64_t)(width - 1) * COLOURS;
    memcpy(to, last, COLOURS);
    for (uint32_t x = 1; x + 1 < width; x++) {
        memcpy(to + (uint64_t)x * COLOURS, last - (uint64_t)x * COLOURS, COLOURS + 1);
    }
    memcpy(to + (uint64_t)(width - 1) * COLOURS, from, COLOURS);
}

IMAGE_HOT static void mirror_bytes(uint8_t *restrict to, const uint8_t *restrict from, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++) {
        to[x] = from[width - 1 - x];
    }
}

static void mirror_pixels(uint8_t *to, const uint8_t *from, uint32_t width, uint32_t channels)
{
    for (uint32_t x = 0; x < width; x++) {
        memcpy(to + (uint64_t)x * channels, from + (uint64_t)(width - 1 - x) * channels, channels);
    }
}

void image_mirror(uint8_t *to, const uint8_t *from, const image_size *size)
{
    const uint64_t row_bytes = (uint64_t)size->width * size->channels;
    for (uint32_t y = 0; y < size->height; y++, to += row_bytes, from += row_bytes) {
        if (size->channels == COLOURS && size->width > 1) {
            mirror_colours(to, from, size->width);
        } else if (size->channels == 1) {
            mirror_bytes(to, from, size->width);
        } else {
            mirror_pixels(to, from, size->width, size->channels);
        }
    }
}

static int64_t within(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

void image_shift(uint8_t *to, const uint8_t *from, const image_size *size, int32_t down, int32_t right)
{
    const uint64_t row_bytes = (uint64_t)size->width * size->channels;
    // Of the row that is written: [begin, end) comes from the image.
    const uint64_t begin = (uint64_t)within(-(int64_t)right, size->width) * size->channels;
    const uint64_t end = (uint64_t)within((int64_t)size->width - right, size->width) * size->channels;
    for (int64_t y = 0; y < size->height; y++, to += row_bytes) {
        const int64_t source = y + down;
        if (source < 0 || source >= size->height || begin >= end) {
            memset(to, 0, row_bytes);
            continue;
        }
        const uint8_t *row = from + (uint64_t)source * row_bytes;
        memset(to, 0, begin);
        memcpy(to + begin, row + (int64_t)begin + (int64_t)right * size->channels, end - begin);
        memset(to + end, 0, row_bytes - end);
    }
}

void image_blacken(uint8_t *image, const image_size *size, const image_box *box)
{
    const uint64_t row_bytes = (uint64_t)size->width * size->channels;
    for (uint32_t y = box->top; y < box->top + box->height; y++) {
        memset(image + y * row_bytes + (uint64_t)box->left * size->channels, 0,
               (uint64_t)box->width * size->channels);
    }
}

// ---- colour ---------------------------------------------------------------------------------------------------

// `sum` is below 2^26 either way.
static inline uint8_t byte_of(int32_t sum)
{
    const int32_t whole = (sum < 0 ? 0 : sum) >> FACTOR_BITS;
    return (uint8_t)(whole > 255 ? 255 : whole);
}

static inline int32_t grey_of(const uint8_t *pixel)
{
    return (19595 * pixel[0] + 38470 * pixel[1] + 7471 * pixel[2] + 32768) >> 16; // image_grey_of_rgb
}

IMAGE_HOT static void blend_level(uint8_t *image, uint64_t count, int32_t factor, int32_t level)
{
    const int32_t rest = (IMAGE_FACTOR_ONE - factor) * level;
    for (uint64_t k = 0; k < count; k++) {
        image[k] = byte_of(factor * image[k] + rest);
    }
}

IMAGE_HOT static void blend_grey(uint8_t *image, uint64_t pixels, int32_t factor)
{
    const int32_t rest = IMAGE_FACTOR_ONE - factor;
    for (uint64_t p = 0; p < pixels; p++) {
        uint8_t *pixel = image + p * COLOURS;
        const int32_t grey = rest * grey_of(pixel);
        pixel[0] = byte_of(factor * pixel[0] + grey);
        pixel[1] = byte_of(factor * pixel[1] + grey);
        pixel[2] = byte_of(factor * pixel[2] + grey);
    }
}

enum { SUMMED_AT_ONCE = 1 << 20 }; // values, so that 32 bits hold their sum

IMAGE_HOT static uint32_t sum_of_bytes(const uint8_t *image, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        sum += image[k];
    }
    return sum;
}

IMAGE_HOT static uint32_t sum_of_greys(const uint8_t *image, uint32_t pixels)
{
    uint32_t sum = 0;
    for (uint32_t p = 0; p < pixels; p++) {
        sum += (uint32_t)grey_of(image + (uint64_t)p * COLOURS);
    }
    return sum;
}

static int32_t mean_grey(const uint8_t *image, const image_size *size)
{
    const bool colours = size->channels == COLOURS;
    const uint64_t count = image_bytes(size) / (colours ? COLOURS : 1);
    uint64_t sum = 0;
    for (uint64_t k = 0; k < count; k += SUMMED_AT_ONCE) {
        const uint32_t n = (uint32_t)(count - k < SUMMED_AT_ONCE ? count - k : SUMMED_AT_ONCE);
        sum += colours ? sum_of_greys(image + k * COLOURS, n) : sum_of_bytes(image + k, n);
    }
    return (int32_t)((sum + count / 2) / count);
}

void image_brightness(uint8_t *image, const image_size *size, int32_t factor)
{
    blend_level(image, image_bytes(size), factor, 0);
}

void image_contrast(uint8_t *image, const image_size *size, int32_t factor)
{
    blend_level(image, image_bytes(size), factor, mean_grey(image, size));
}

void image_saturation(uint8_t *image, const image_size *size, int32_t factor)
{
    if (size->channels == COLOURS) {
        blend_grey(image, image_bytes(size) / COLOURS, factor);
    }
}

// ---- turning --------------------------------------------------------------------------------------------------

enum { TURN_BITS = 30 };
#define TURN_ONE    (INT64_C(1) << TURN_BITS)
#define HALF_CIRCLE (180 * (int64_t)IMAGE_DEGREE)
#define PI_OF_TURNS INT64_C(3373259426) // π · 2^30

static int64_t product(int64_t a, int64_t b)
{
    return a * b >> TURN_BITS;
}

// Taylor's series of an angle x, 0 … 45 degrees, by x²: 1 - x²/a (1 - x²/b (1 - …)), within 2^-28.
static int64_t series(int64_t x, const uint8_t *divisors, uint32_t count)
{
    const int64_t square = product(x, x);
    int64_t sum = TURN_ONE;
    while (count > 0) {
        sum = TURN_ONE - product(square, sum) / divisors[--count];
    }
    return sum;
}

static int64_t small_sine(int64_t x)
{
    static const uint8_t divisors[] = {2 * 3, 4 * 5, 6 * 7, 8 * 9};
    return product(x, series(x, divisors, sizeof divisors));
}

static int64_t small_cosine(int64_t x)
{
    static const uint8_t divisors[] = {1 * 2, 3 * 4, 5 * 6, 7 * 8, 9 * 10};
    return series(x, divisors, sizeof divisors);
}

// Of an angle 0 … 180 degrees.
static int64_t sine_of(int64_t angle)
{
    const int64_t acute = angle > HALF_CIRCLE / 2 ? HALF_CIRCLE - angle : angle;
    const int64_t other = HALF_CIRCLE / 2 - acute;
    const int64_t least = acute < other ? acute : other;
    const int64_t x = least * PI_OF_TURNS / HALF_CIRCLE;
    return acute < other ? small_sine(x) : small_cosine(x);
}

static int64_t cosine_of(int64_t angle)
{
    return angle > HALF_CIRCLE / 2 ? -sine_of(angle - HALF_CIRCLE / 2) : sine_of(HALF_CIRCLE / 2 - angle);
}

void image_rotate(uint8_t *to, const uint8_t *from, const image_size *size, int32_t angle)
{
    const int64_t height = size->height, width = size->width;
    const int64_t cosine = cosine_of(angle < 0 ? -angle : angle);
    const int64_t sine = angle < 0 ? -sine_of(-angle) : sine_of(angle);
    const uint32_t channels = size->channels;
    // Twice a pixel's distance from the centre is whole.
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++, to += channels) {
            const int64_t right = 2 * x + 1 - width, down = 2 * y + 1 - height;
            const int64_t column = (cosine * right - sine * down + width * TURN_ONE) >> (TURN_BITS + 1);
            const int64_t row = (sine * right + cosine * down + height * TURN_ONE) >> (TURN_BITS + 1);
            if (column >= 0 && column < width && row >= 0 && row < height) {
                memcpy(to, from + (uint64_t)(row * width + column) * channels, channels);
            } else {
                memset(to, 0, channels);
            }
        }
    }
}
