// SPDX-License-Identifier: Apache-2.0
// The generated image set: one of ten figures at a random place, size and colour on a random ground, under
// noise. Record i is drawn when it is asked for, in CIFAR-10's binary form, from Philox(i) and with integers
// only: the same bytes on every machine, in any order, on any thread, and nothing is held.
#include "data/generated.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/draws.h"
#include "data/record.h"
#include "data/source.h"

enum {
    GENERATED_SEED = 10,       // of the data set itself; train.seed only orders it
    SUBPIXELS = 8,             // coordinates are in eighths of a pixel
    NOISE_PER_DRAW = 16,       // a byte each
    GENERATED_MAX_SIDE = 4096, // keeps the square of a coordinate within an int
    GENERATED_MAX_VALUES = 1 << 28,
};

// Whether the figure of radius r around the origin covers the point (x, y); |x| and |y| are at most about r.
typedef bool figure(int x, int y, int r);

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static bool disc(int x, int y, int r)
{
    return x * x + y * y < r * r;
}

static bool ring(int x, int y, int r)
{
    int d = x * x + y * y;
    return d < r * r && 3 * d > r * r;
}

static bool square(int x, int y, int r)
{
    return larger(abs(x), abs(y)) < r * 7 / 8;
}

static bool frame(int x, int y, int r)
{
    int d = larger(abs(x), abs(y));
    return d < r * 7 / 8 && d > r / 2;
}

static bool triangle(int x, int y, int r)
{
    return y < r * 3 / 4 && 2 * abs(x) < y + r;
}

static bool plus(int x, int y, int r)
{
    return smaller(abs(x), abs(y)) < r * 2 / 7 && larger(abs(x), abs(y)) < r;
}

static bool cross(int x, int y, int r)
{
    return plus((x + y) * 5 / 7, (x - y) * 5 / 7, r);
}

static bool rows(int x, int y, int r)
{
    return larger(abs(x), abs(y)) < r && (y + r) * 5 / (2 * r) % 2 == 0;
}

static bool columns(int x, int y, int r)
{
    return rows(y, x, r);
}

static bool chequers(int x, int y, int r)
{
    return larger(abs(x), abs(y)) < r && ((x + r) * 2 / r + (y + r) * 2 / r) % 2 == 0;
}

static figure *const figures[] = {disc, ring, square, frame, triangle, plus, cross, rows, columns, chequers};

enum { FIGURE_COUNT = sizeof figures / sizeof figures[0] };
_Static_assert((int)FIGURE_COUNT == (int)GENERATED_FIGURES, "the header counts them");

// mask[height × width] becomes 1 where the figure is.
static void draw_mask(draws *d, figure *covers, uint32_t height, uint32_t width, uint8_t *mask)
{
    int h = (int)height * SUBPIXELS, w = (int)width * SUBPIXELS;
    int side = smaller(h, w);
    int r = larger(draw_between(d, side * 2 / 7, side * 3 / 7), 1);
    int centre_x = draw_between(d, smaller(r, w / 2), larger(w - r, w / 2));
    int centre_y = draw_between(d, smaller(r, h / 2), larger(h - r, h / 2));
    int left = larger(centre_x - r, 0) / SUBPIXELS,
        right = smaller((centre_x + r) / SUBPIXELS + 1, (int)width);
    int top = larger(centre_y - r, 0) / SUBPIXELS,
        bottom = smaller((centre_y + r) / SUBPIXELS + 1, (int)height);
    memset(mask, 0, (size_t)height * width);
    for (int y = top; y < bottom; y++) {
        for (int x = left; x < right; x++) {
            mask[(size_t)y * width + (size_t)x] =
                covers(x * SUBPIXELS - centre_x, y * SUBPIXELS - centre_y, r);
        }
    }
}

// Colours one plane: the ground, the figure 32 to 144 levels from it, and 32 levels of noise either way. `noise` has
// room for the pixels in whole draws.
static void draw_plane(draws *d, const uint8_t *mask, size_t pixels, bool dark_ground, uint8_t *noise,
                       uint8_t *plane)
{
    int ground = dark_ground ? draw_between(d, 16, 96) : draw_between(d, 160, 240);
    int contrast = draw_between(d, 32, 144) * (dark_ground ? 1 : -1);
    for (size_t p = 0; p < pixels; p += NOISE_PER_DRAW) {
        uint32_t words[WORDS_PER_DRAW];
        philox(d->key, d->block++, d->record, words);
        for (size_t i = 0; i < WORDS_PER_DRAW; i++) {
            words[i] = htole32(words[i]);
        }
        memcpy(noise + p, words, sizeof words);
    }
    for (size_t p = 0; p < pixels; p++) {
        int16_t level = (int16_t)(ground + contrast * mask[p] + noise[p] / 4 - 32);
        level = level < 0 ? 0 : level;
        plane[p] = (uint8_t)(level > 255 ? 255 : level);
    }
}

uint64_t generated_scratch_bytes(const data_shape *shape)
{
    uint64_t pixels = (uint64_t)shape->height * shape->width;
    return pixels * (2 + (uint64_t)shape->channels) + NOISE_PER_DRAW;
}

void generated_figure(draws *d, uint32_t kind, const data_shape *shape, uint8_t *scratch, uint8_t **planes)
{
    size_t pixels = (size_t)shape->height * shape->width;
    uint8_t *noise = scratch + pixels, *first = noise + pixels + NOISE_PER_DRAW;
    draw_mask(d, figures[kind % FIGURE_COUNT], shape->height, shape->width, scratch);
    bool dark_ground = draw(d) % 2 == 0;
    for (uint32_t c = 0; c < shape->channels; c++) {
        draw_plane(d, scratch, pixels, dark_ground, noise, first + c * pixels);
    }
    *planes = first;
}

static hr_status generated_fetch(const data_source *s, data_set set, uint32_t index, uint8_t *room,
                                 data_raw *out, hr_err *err)
{
    (void)err;
    const pipeline_info *info = &s->info;
    const data_shape shape = {info->height, info->width, info->channels, info->classes};
    draws d = draws_of(philox_key_of(GENERATED_SEED, "generated"), (uint64_t)set << 32 | index);
    uint8_t *planes = NULL;
    out->label = draw_between(&d, 0, (int)info->classes - 1);
    generated_figure(&d, (uint32_t)out->label, &shape, room, &planes);
    out->bytes = planes;
    out->size_bytes = s->raw_bytes;
    return HR_OK;
}

// What generated_fetch draws first.
static hr_status generated_label(const data_source *s, data_set set, uint32_t index, int32_t *out,
                                 hr_err *err)
{
    (void)err;
    draws d = draws_of(philox_key_of(GENERATED_SEED, "generated"), (uint64_t)set << 32 | index);
    *out = draw_between(&d, 0, (int)s->info.classes - 1);
    return HR_OK;
}

static void generated_close(data_source *s)
{
    hr_free(s);
}

static const data_source_ops generated_ops = {
    .fetch = generated_fetch, .label = generated_label, .decode = record_decode, .close = generated_close};

// Gives a model that takes its pixels flat an image to look at: colour if it can be square, else grey, else a
// single row.
static void unflatten(data_shape *shape)
{
    static const uint32_t colour_or_grey[] = {3, 1};
    uint32_t values = shape->channels;
    for (size_t i = 0; i < 2; i++) {
        uint32_t planes = colour_or_grey[i];
        for (uint32_t side = 2; side <= values / side / planes; side++) {
            if (values == side * side * planes) {
                *shape = (data_shape){side, side, planes, shape->classes};
                return;
            }
        }
    }
    *shape = (data_shape){1, values, 1, shape->classes};
}

hr_status generated_check(const data_shape *shape, hr_err *err)
{
    uint64_t pixels = (uint64_t)shape->height * shape->width;
    if (pixels > 0 && shape->channels > 0 && shape->classes > 0 && shape->height <= GENERATED_MAX_SIDE &&
        shape->width <= GENERATED_MAX_SIDE && pixels * shape->channels <= GENERATED_MAX_VALUES) {
        return HR_OK;
    }
    hr_status status = HR_FAIL(err, DATA,
                               "generated images: needed 1 to %u pixels a side and at most %u values, had "
                               "%ux%ux%u of %u classes",
                               GENERATED_MAX_SIDE, GENERATED_MAX_VALUES, shape->height, shape->width,
                               shape->channels, shape->classes);
    hr_err_try(err, "a preset whose input is 32x32x3: headroom run demo");
    return status;
}

hr_status source_generated_open(const data_shape *model, data_source **out, hr_err *err)
{
    *out = NULL;
    data_shape shape = *model;
    if (shape.height == 1 && shape.width == 1) {
        unflatten(&shape);
    }
    HR_TRY(generated_check(&shape, err));
    data_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "generated images: needed %zu bytes, had less", sizeof *s);
    }
    *s = (data_source){
        .ops = &generated_ops,
        .info = {.label = "generated",
                 .height = shape.height,
                 .width = shape.width,
                 .channels = shape.channels,
                 .classes = shape.classes < FIGURE_COUNT ? shape.classes : FIGURE_COUNT,
                 .train_samples = GENERATED_TRAIN_SAMPLES,
                 .eval_samples = GENERATED_EVAL_SAMPLES},
        .raw_bytes = shape.height * shape.width * shape.channels,
        .room_bytes = (uint32_t)generated_scratch_bytes(&shape),
        .is_endless = true,
        .cost = {.fetch_byte_ns = 2.1, .make_value_ns = 0.4},
    };
    *out = s;
    return HR_OK;
}
