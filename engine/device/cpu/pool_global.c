// SPDX-License-Identifier: Apache-2.0
// The mean of an image over all of its pixels, in any type: a few channels at a time, summed in float32 in the order of
// the pixels and rounded once.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { LANES = 64 }; // channels that are summed together

typedef struct job {
    int64_t pixels, channels;
    hr_dtype type;
    const char *from;
    char *to;
    float share; // 1 / pixels
} job;

CPU_HOT static void add_to(float *restrict sum, const float *restrict x, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        sum[c] += x[c];
    }
}

CPU_HOT static void scale(float *restrict to, const float *restrict from, float factor, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        to[c] = from[c] * factor;
    }
}

static int64_t lanes_from(const job *j, int64_t first)
{
    return j->channels - first < LANES ? j->channels - first : LANES;
}

static void average_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float sum[LANES], scratch[LANES];
    (void)worker;
    for (int64_t image = begin; image < end; image++) {
        for (int64_t first = 0; first < j->channels; first += LANES) {
            const int64_t count = lanes_from(j, first);
            memset(sum, 0, sizeof sum);
            for (int64_t p = 0; p < j->pixels; p++) {
                add_to(sum,
                       cast_load(j->from, j->type, (image * j->pixels + p) * j->channels + first, count,
                                 scratch),
                       count);
            }
            scale(scratch, sum, j->share, count);
            cast_store(j->to, j->type, image * j->channels + first, scratch, count);
        }
    }
}

// Every pixel has the bits of the first one.
static void spread_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t bytes = (int64_t)dtype_bytes(j->type);
    float scratch[LANES], share[LANES];
    (void)worker;
    for (int64_t image = begin; image < end; image++) {
        for (int64_t first = 0; first < j->channels; first += LANES) {
            const int64_t count = lanes_from(j, first), at = image * j->pixels * j->channels + first;
            scale(share, cast_load(j->from, j->type, image * j->channels + first, count, scratch), j->share,
                  count);
            cast_store(j->to, j->type, at, share, count);
            for (int64_t p = 1; p < j->pixels; p++) {
                memcpy(j->to + (at + p * j->channels) * bytes, j->to + at * bytes, (size_t)(count * bytes));
            }
        }
    }
}

static void run(const cpu_run *r)
{
    const bool forward = r->query->op == HR_OP_GLOBAL_AVG_POOL;
    const op_operand *of = forward ? &r->query->in[0] : &r->query->out[0];
    const cpu_image image = cpu_image_of(of);
    job j = {image.height * image.width, image.channels, (hr_dtype)of->dtype, r->in[0], r->out[0], 0};
    j.share = 1.0F / (float)j.pixels;
    workers_for(r->device->workers, image.images, 1, forward ? average_body : spread_body, &j);
}

const cpu_impl cpu_global_avg_pool = {.name = "loops", .types = CPU_ANY_TYPE, .run = run};
