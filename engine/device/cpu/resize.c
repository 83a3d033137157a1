// SPDX-License-Identifier: Apache-2.0
// Images of another size, bilinear, in any type: a strip of channels at a time, summed in float32 and rounded once.
// Backward a pixel of dx gathers what it was part of, in the order of those pixels.
#include "ops/resize.h"

#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { STRIP = 128, GRAIN_FLOATS = 16384, SHARES = 64 };

typedef struct job {
    cpu_image x, y;
    resize_axis h, w;
    hr_dtype type;
    const char *from;
    char *to;
} job;

// `count` numbers of what is read, from element `at` on.
static const float *load(const job *j, int64_t at, int64_t count, float *scratch)
{
    if (j->type == HR_F32) {
        return (const float *)(const void *)j->from + at;
    }
    cast_widen(scratch, (const uint16_t *)(const void *)j->from + at, j->type, count);
    return scratch;
}

static void store(const job *j, int64_t at, int64_t count, const float *values)
{
    char *to = j->to + at * (int64_t)dtype_bytes(j->type);
    if (j->type == HR_F32) {
        memcpy(to, values, (size_t)count * sizeof *values);
    } else {
        cast_narrow(to, j->type, values, count);
    }
}

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
    for (int64_t first = 0; first < j->x.channels; first += STRIP) {
        const int64_t count = strip_of(j->x.channels, first);
        set_share(sum, load(j, four->at[0] + first, count, scratch), four->share[0], count);
        for (int k = 1; k < 4; k++) {
            add_share(sum, load(j, four->at[k] + first, count, scratch), four->share[k], count);
        }
        store(j, to + first, count, sum);
    }
}

// Rows of y.
static void forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t channels = j->x.channels, row = j->x.width * channels;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        const resize_tap h = resize_tap_of(&j->h, at % j->y.height);
        const int64_t image = at / j->y.height * j->x.height * row;
        const float down = (float)h.part / (float)j->h.per;
        for (int64_t o = 0; o < j->y.width; o++) {
            const resize_tap w = resize_tap_of(&j->w, o);
            const float right = (float)w.part / (float)j->w.per;
            const int64_t upper = image + h.at * row, lower = image + h.next * row;
            const int64_t left = w.at * channels, other = w.next * channels;
            const corners four = {
                {upper + left, upper + other, lower + left, lower + other},
                {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right}};
            mix(j, &four, (at * j->y.width + o) * channels);
        }
    }
}

// What pixels of y a pixel of x is part of: rows [h, h_end), columns [w, w_end) of one image.
typedef struct span {
    int64_t h, h_end, w, w_end;
} span;

// Adds the shares of `at`, place h and w of x, in those pixels; `image` is the first element of y's image, or of a strip of
// its first pixel.
static void gather(const job *j, const span *of, const int64_t at[2], int64_t image, float *sum,
                   int64_t count)
{
    float share[SHARES], scratch[STRIP];
    for (int64_t w = of->w; w < of->w_end; w += SHARES) {
        const int64_t some = of->w_end - w < SHARES ? of->w_end - w : SHARES;
        for (int64_t k = 0; k < some; k++) {
            share[k] = (float)resize_share(&j->w, w + k, at[1]) / (float)j->w.per;
        }
        for (int64_t h = of->h; h < of->h_end; h++) {
            const float down = (float)resize_share(&j->h, h, at[0]) / (float)j->h.per;
            for (int64_t k = 0; k < some; k++) {
                const int64_t pixel = image + (h * j->y.width + w + k) * j->y.channels;
                add_share(sum, load(j, pixel, count, scratch), down * share[k], count);
            }
        }
    }
}

// Rows of dx.
static void backward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t channels = j->x.channels;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const int64_t h = row % j->x.height, image = row / j->x.height * j->y.height * j->y.width * channels;
        span of = {.h = resize_first(&j->h, h - 1), .h_end = resize_first(&j->h, h + 1)};
        for (int64_t w = 0; w < j->x.width; w++) {
            of.w = resize_first(&j->w, w - 1);
            of.w_end = resize_first(&j->w, w + 1);
            for (int64_t first = 0; first < channels; first += STRIP) {
                const int64_t count = strip_of(channels, first);
                float sum[STRIP] = {0};
                gather(j, &of, (const int64_t[]){h, w}, image + first, sum, count);
                store(j, (row * j->x.width + w) * channels + first, count, sum);
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
    const bool forward = q->op == HR_OP_RESIZE;
    const op_operand *large = forward ? &q->out[0] : &q->in[0], *small = forward ? &q->in[0] : &q->out[0];
    job j = {.x = cpu_image_of(small),
             .y = cpu_image_of(large),
             .type = (hr_dtype)large->dtype,
             .from = r->in[0],
             .to = r->out[0]};
    j.h = resize_axis_of(&q->attr, j.x.height, j.y.height);
    j.w = resize_axis_of(&q->attr, j.x.width, j.y.width);
    const int64_t rows = j.x.images * (forward ? j.y.height : j.x.height);
    const int64_t floats = j.y.images * j.y.height * j.y.width * j.y.channels / rows + 1;
    workers_for(r->device->workers, rows, floats >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / floats,
                forward ? forward_body : backward_body, &j);
}

const cpu_impl cpu_resize = {.name = "loops", .types = CPU_ANY_TYPE, .fits = has_one_type, .run = run};
