// SPDX-License-Identifier: Apache-2.0
// One factor a channel, for all places or for those of each sample: rows of channels times a row of factors, in any type.
// A result may lie over what it is made of.
#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN_FLOATS = 16384, STRIP = 512 };

typedef struct job {
    const char *a, *factor;
    char *y;
    int64_t channels, places; // places: rows that have their factors in common
    hr_dtype type;
} job;

CPU_HOT static void multiply_range(float *y, const float *a, const float *factor, int64_t count)
{
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        F32X16W(y + i) = F32X16(a + i) * F32X16(factor + i);
    }
    for (; i < count; i++) {
        y[i] = a[i] * factor[i];
    }
}

static void multiply_halves(const job *j, int64_t row, int64_t first, int64_t count)
{
    float a[STRIP], factor[STRIP];
    const int64_t bytes = (int64_t)dtype_bytes(j->type), at = row * j->channels + first;
    cast_widen(a, j->a + at * bytes, j->type, count);
    cast_widen(factor, j->factor + (row / j->places * j->channels + first) * bytes, j->type, count);
    multiply_range(a, a, factor, count);
    cast_narrow(j->y + at * bytes, j->type, a, count);
}

static void multiply_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        if (j->type == HR_F32) {
            const float *a = (const float *)(const void *)j->a + row * j->channels;
            const float *factor = (const float *)(const void *)j->factor + row / j->places * j->channels;
            multiply_range((float *)(void *)j->y + row * j->channels, a, factor, j->channels);
            continue;
        }
        for (int64_t first = 0; first < j->channels; first += STRIP) {
            const int64_t left = j->channels - first;
            multiply_halves(j, row, first, left < STRIP ? left : STRIP);
        }
    }
}

static bool has_one_type(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].dtype == q->in[1].dtype && q->in[0].dtype == q->out[0].dtype;
}

static void run(const cpu_run *r)
{
    const op_query *q = r->query;
    const hr_shape *b = &q->in[1].shape;
    const int64_t channels = b->dim[b->rank - 1], rows = cpu_elements_of(&q->out[0]) / channels;
    const job j = {.a = r->in[0],
                   .factor = r->in[1],
                   .y = r->out[0],
                   .channels = channels,
                   .places = rows / (cpu_elements_of(&q->in[1]) / channels),
                   .type = (hr_dtype)q->out[0].dtype};
    workers_for(r->device->workers, rows, channels >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / channels,
                multiply_body, &j);
}

const cpu_impl cpu_multiply_broadcast = {
    .name = "loops", .types = CPU_ANY_TYPE, .fits = has_one_type, .run = run};
