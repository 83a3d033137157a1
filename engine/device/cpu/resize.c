// SPDX-License-Identifier: Apache-2.0
// Images of another size, bilinear or by adaptive pooling, in any type: a strip of channels at a time, summed in float32 and
// rounded once. A pixel of a gradient gathers what it was part of, in the order of those pixels.
#include "ops/resize.h"

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "ops/adaptive.h"
#include "simd.h"

enum { STRIP = 128, GRAIN_FLOATS = 16384, SHARES = 64 };

typedef struct job {
    cpu_image from_image, to_image;
    resize_axis h, w; // of RESIZE and its gradient
    uint32_t op;
    hr_dtype type;
    const char *from;
    char *to;
} job;

CPU_HOT static void set_share(float *restrict sum, const float *restrict x, float share, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        sum[c] = share * x[c];
    }
}

CPU_HOT static void add_share(float *restrict sum, const float *restrict x, float share, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        sum[c] += share * x[c];
    }
}

static int64_t strip_of(int64_t channels, int64_t first)
{
    return channels - first < STRIP ? channels - first : STRIP;
}

// The four neighbours of one pixel, and what each counts.
typedef struct corners {
    int64_t at[4];
    float share[4];
} corners;

static void mix(const job *j, const corners *four, int64_t to)
{
    float sum[STRIP], scratch[STRIP];
    for (int64_t first = 0; first < j->from_image.channels; first += STRIP) {
        const int64_t count = strip_of(j->from_image.channels, first);
        set_share(sum, cast_load(j->from, j->type, four->at[0] + first, count, scratch), four->share[0],
                  count);
        for (int k = 1; k < 4; k++) {
            add_share(sum, cast_load(j->from, j->type, four->at[k] + first, count, scratch), four->share[k],
                      count);
        }
        cast_store(j->to, j->type, to + first, sum, count);
    }
}

// ---- bilinear forward -----------------------------------------------------------------------------------------

// Rows of y.
static void forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t channels = j->from_image.channels, row = j->from_image.width * channels;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        const resize_tap h = resize_tap_of(&j->h, at % j->to_image.height);
        const int64_t image = at / j->to_image.height * j->from_image.height * row;
        const float down = (float)h.part / (float)j->h.per;
        for (int64_t o = 0; o < j->to_image.width; o++) {
            const resize_tap w = resize_tap_of(&j->w, o);
            const float right = (float)w.part / (float)j->w.per;
            const int64_t upper = image + h.at * row, lower = image + h.next * row;
            const int64_t left = w.at * channels, other = w.next * channels;
            const corners four = {
                {upper + left, upper + other, lower + left, lower + other},
                {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right}};
            mix(j, &four, (at * j->to_image.width + o) * channels);
        }
    }
}

// ---- what gathers: pooling, and both gradients ----------------------------------------------------------------

// The pixels of what is read that a pixel of the result is made of: rows [h, h_end), columns [w, w_end) of one image.
typedef struct span {
    int64_t h, h_end, w, w_end;
} span;

typedef struct places {
    int64_t begin, end;
} places;

// On one side: what place `at` of `to` places is made of, of `from` places.
static places made_of(const job *j, const resize_axis *axis, int64_t at, const int64_t from_to[2])
{
    if (j->op == HR_OP_RESIZE_BWD) {
        return (places){resize_first(axis, at - 1), resize_first(axis, at + 1)};
    }
    return (places){adaptive_begin(at, from_to[0], from_to[1]), adaptive_end(at, from_to[0], from_to[1])};
}

// What place `o` of what is read counts there. A gradient is shared out over the window that it came from.
static float share_of(const job *j, const resize_axis *axis, int64_t o, int64_t at, const int64_t from_to[2])
{
    if (j->op == HR_OP_RESIZE_BWD) {
        return (float)resize_share(axis, o, at) / (float)axis->per;
    }
    return 1.0F / (float)(j->op == HR_OP_ADAPTIVE_POOL ? adaptive_places(at, from_to[0], from_to[1])
                                                       : adaptive_places(o, from_to[1], from_to[0]));
}

// Adds those pixels, for place h and w of the result, from element `image` on: of the image's first pixel, or of a strip of it.
static void gather(const job *j, const span *of, const int64_t at[2], int64_t image, float *sum,
                   int64_t count)
{
    const int64_t high[] = {j->from_image.height, j->to_image.height};
    const int64_t wide[] = {j->from_image.width, j->to_image.width};
    float share[SHARES], scratch[STRIP];
    for (int64_t w = of->w; w < of->w_end; w += SHARES) {
        const int64_t some = of->w_end - w < SHARES ? of->w_end - w : SHARES;
        for (int64_t k = 0; k < some; k++) {
            share[k] = share_of(j, &j->w, w + k, at[1], wide);
        }
        for (int64_t h = of->h; h < of->h_end; h++) {
            const float down = share_of(j, &j->h, h, at[0], high);
            for (int64_t k = 0; k < some; k++) {
                const int64_t pixel = image + (h * wide[0] + w + k) * j->from_image.channels;
                add_share(sum, cast_load(j->from, j->type, pixel, count, scratch), down * share[k], count);
            }
        }
    }
}

// Rows of the result.
static void gather_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t channels = j->to_image.channels;
    const int64_t high[] = {j->from_image.height, j->to_image.height};
    const int64_t wide[] = {j->from_image.width, j->to_image.width};
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const int64_t h = row % high[1], image = row / high[1] * high[0] * wide[0] * channels;
        const places down = made_of(j, &j->h, h, high);
        for (int64_t w = 0; w < wide[1]; w++) {
            const places across = made_of(j, &j->w, w, wide);
            const span of = {down.begin, down.end, across.begin, across.end};
            for (int64_t first = 0; first < channels; first += STRIP) {
                const int64_t count = strip_of(channels, first);
                float sum[STRIP] = {0};
                gather(j, &of, (const int64_t[]){h, w}, image + first, sum, count);
                cast_store(j->to, j->type, (row * wide[1] + w) * channels + first, sum, count);
            }
        }
    }
}

static bool has_one_type(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].dtype == q->out[0].dtype;
}

static void run(const cpu_run *r)
{
    const op_query *q = r->query;
    const bool back = q->op == HR_OP_RESIZE_BWD, mixes = q->op == HR_OP_RESIZE;
    const cpu_image from = cpu_image_of(&q->in[0]), to = cpu_image_of(&q->out[0]);
    const cpu_image *x = back ? &to : &from, *y = back ? &from : &to;
    const job j = {.from_image = from,
                   .to_image = to,
                   .h = resize_axis_of(&q->attr, x->height, y->height),
                   .w = resize_axis_of(&q->attr, x->width, y->width),
                   .op = q->op,
                   .type = (hr_dtype)q->out[0].dtype,
                   .from = r->in[0],
                   .to = r->out[0]};
    const int64_t rows = to.images * to.height,
                  all = cpu_elements_of(&q->in[0]) + cpu_elements_of(&q->out[0]);
    const int64_t floats = all / rows + 1;
    workers_for(r->device->workers, rows, floats >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / floats,
                mixes ? forward_body : gather_body, &j);
}

const cpu_impl cpu_resize = {.name = "loops", .types = CPU_ANY_TYPE, .fits = has_one_type, .run = run};
