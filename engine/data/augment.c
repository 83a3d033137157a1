// SPDX-License-Identifier: Apache-2.0
#include "data/augment.h"

#include <stdio.h>

#include "data/draws.h"

enum {
    THOUSANDTHS = 1000,
    ORDERS = 6, // of three operations
    AREA_LEAST_PERCENT = 2,
    AREA_MOST_PERCENT = 33,
    RATIO_ONE = 1 << 8,
    RATIO_MOST = 845, // 3.3
};

// Where the result is, and the other buffer.
typedef struct canvas {
    const image_size *size;
    uint8_t *image, *spare;
} canvas;

static void exchange(canvas *c)
{
    uint8_t *image = c->image;
    c->image = c->spare;
    c->spare = image;
}

static bool half_of_all(draws *d)
{
    return draw(d) >> 31 != 0;
}

static void flip(canvas *c, draws *d, uint32_t amount)
{
    (void)amount;
    if (half_of_all(d)) {
        image_mirror(c->spare, c->image, c->size);
        exchange(c);
    }
}

static void crop(canvas *c, draws *d, uint32_t amount)
{
    const int pixels = (int)amount;
    const int down = draw_between(d, -pixels, pixels), right = draw_between(d, -pixels, pixels);
    if (down != 0 || right != 0) {
        image_shift(c->spare, c->image, c->size, down, right);
        exchange(c);
    }
}

static void colour(canvas *c, draws *d, uint32_t amount)
{
    typedef void change(uint8_t * image, const image_size *size, int32_t factor);
    static change *const changes[] = {image_brightness, image_contrast, image_saturation};
    static const uint8_t orders[ORDERS][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                              {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const uint8_t *order = orders[draw_between(d, 0, ORDERS - 1)];
    const int most = (int)(amount * IMAGE_FACTOR_ONE / THOUSANDTHS);
    for (int k = 0; k < 3; k++) {
        changes[order[k]](c->image, c->size, IMAGE_FACTOR_ONE + draw_between(d, -most, most));
    }
}

static void rotate(canvas *c, draws *d, uint32_t amount)
{
    const int most = (int)amount * IMAGE_DEGREE;
    image_rotate(c->spare, c->image, c->size, draw_between(d, -most, most));
    exchange(c);
}

static uint32_t root_of(uint64_t square)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1) {
        if ((root + bit) * (root + bit) <= square) {
            root += bit;
        }
    }
    return (uint32_t)root;
}

// At least 1 pixel, at most the image.
static uint32_t side_of(uint64_t square, uint32_t most)
{
    const uint32_t side = root_of(square);
    return side < 1 ? 1 : side > most ? most : side;
}

static void erase(canvas *c, draws *d, uint32_t amount)
{
    (void)amount;
    if (!half_of_all(d)) {
        return;
    }
    const image_size *size = c->size;
    const uint64_t pixels = (uint64_t)size->height * size->width;
    const uint64_t area = (uint64_t)draw_between(d, (int)(pixels * AREA_LEAST_PERCENT / 100),
                                                 (int)(pixels * AREA_MOST_PERCENT / 100));
    const uint64_t ratio = (uint64_t)draw_between(d, RATIO_ONE, RATIO_MOST);
    const uint64_t larger = area * ratio / RATIO_ONE, smaller = area * RATIO_ONE / ratio;
    const bool upright = half_of_all(d);
    image_box box = {.height = side_of(upright ? larger : smaller, size->height),
                     .width = side_of(upright ? smaller : larger, size->width)};
    box.top = (uint32_t)draw_between(d, 0, (int)(size->height - box.height));
    box.left = (uint32_t)draw_between(d, 0, (int)(size->width - box.width));
    image_blacken(c->image, size, &box);
}

static void (*const operations[AUGMENT_KINDS])(canvas *c, draws *d, uint32_t amount) = {
    [AUGMENT_FLIP] = flip,     [AUGMENT_CROP] = crop,   [AUGMENT_COLOUR] = colour,
    [AUGMENT_ROTATE] = rotate, [AUGMENT_ERASE] = erase,
};

data_augment data_augment_of(const hr_knobs *knobs)
{
    const uint64_t seed = (uint64_t)hr_knob_int(knobs, HR_KNOB_TRAIN_SEED);
    data_augment a = {.list = {0}};
    if (!augment_list_of(knobs, &a.list)) {
        return a; // refused before
    }
    for (augment_kind kind = 0; kind < AUGMENT_KINDS; kind++) {
        char purpose[32];
        (void)snprintf(purpose, sizeof purpose, "augment/%s", augment_word(kind));
        a.key[kind] = philox_key_of(seed, purpose);
    }
    return a;
}

uint8_t *data_augment_image(const data_augment *a, uint64_t epoch, uint32_t sample, const image_size *size,
                            uint8_t *image, uint8_t *spare)
{
    canvas c = {size, image, spare};
    for (uint32_t k = 0; k < a->list.count; k++) {
        const augment_step *step = &a->list.step[k];
        draws d = draws_of(a->key[step->kind], epoch);
        d.block = (uint64_t)sample << 32;
        operations[step->kind](&c, &d, step->amount);
    }
    return c.image;
}
