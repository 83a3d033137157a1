// SPDX-License-Identifier: Apache-2.0
// Rotary positions: places are shared out, so that the sine and cosine of a place are taken once for all samples and heads. Angles are
// in double: p * base^(-2i/F) of a long sequence has no digits behind the point in float. A result may lie over x.
#include <math.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { PAIRS_AT_ONCE = 64, GRAIN_ELEMENTS = 4096 };

typedef struct job {
    const float *x;
    float *y;
    int64_t samples, length, heads, half; // half: features of a head / 2
    double base, direction;
} job;

// Of pairs [first, first + count) at a place.
static void turn_of(const job *j, int64_t place, int64_t first, int64_t count, float *sines, float *cosines)
{
    for (int64_t k = 0; k < count; k++) {
        const double angle = (double)place * pow(j->base, -(double)(first + k) / (double)j->half);
        sines[k] = (float)(j->direction * sin(angle));
        cosines[k] = (float)cos(angle);
    }
}

CPU_HOT static void turn_pairs(const float *x, float *y, int64_t half, const float *sines,
                               const float *cosines, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const float a = x[k], b = x[k + half];
        y[k] = a * cosines[k] - b * sines[k];
        y[k + half] = b * cosines[k] + a * sines[k];
    }
}

static void turn_places(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float sines[PAIRS_AT_ONCE], cosines[PAIRS_AT_ONCE];
    const int64_t width = 2 * j->half * j->heads;
    (void)worker;
    for (int64_t place = begin; place < end; place++) {
        for (int64_t first = 0; first < j->half; first += PAIRS_AT_ONCE) {
            const int64_t left = j->half - first, count = left < PAIRS_AT_ONCE ? left : PAIRS_AT_ONCE;
            turn_of(j, place, first, count, sines, cosines);
            for (int64_t n = 0; n < j->samples * j->heads; n++) {
                const int64_t row = n / j->heads * j->length + place;
                const int64_t at = row * width + n % j->heads * 2 * j->half + first;
                turn_pairs(j->x + at, j->y + at, j->half, sines, cosines, count);
            }
        }
    }
}

static void run(const cpu_run *r)
{
    const op_query *q = r->query;
    const int64_t *d = q->in[0].shape.dim;
    const job j = {.x = r->in[0],
                   .y = r->out[0],
                   .samples = d[0],
                   .length = d[1],
                   .heads = q->attr.heads,
                   .half = d[2] / q->attr.heads / 2,
                   .base = q->attr.base,
                   .direction = q->op == HR_OP_ROTARY ? 1.0 : -1.0};
    const int64_t row = d[0] * d[2];
    workers_for(r->device->workers, d[1], row < GRAIN_ELEMENTS ? GRAIN_ELEMENTS / row : 1, turn_places, &j);
}

const cpu_impl cpu_rotary = {.name = "by places", .run = run};
