// SPDX-License-Identifier: Apache-2.0
// Element by element, in any layout: padding is zero and stays zero.
#include <math.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN = 16384 };

typedef struct job {
    const float *a, *b, *c;
    float *y, *z;
    bool relu;
    float ceiling; // of what a rectifier lets through
    float factor;
} job;

// Not-a-number stays: a diverging run must be seen in its loss.
CPU_HOT static void relu_range(float *y, const float *x, float ceiling, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const float value = x[i] < 0.0f ? 0.0f : x[i];
        y[i] = value > ceiling ? ceiling : value;
    }
}

CPU_HOT static void relu_bwd_range(float *dx, const float *y, const float *dy, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

CPU_HOT static void relu6_bwd_range(float *dx, const float *y, const float *dy, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const float below = y[i] < 6.0f ? dy[i] : 0.0f;
        dx[i] = y[i] > 0.0f ? below : 0.0f;
    }
}

CPU_HOT static void add_range(float *y, const float *a, const float *b, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        y[i] = a[i] + b[i];
    }
}

CPU_HOT static void add_relu_range(float *y, const float *a, const float *b, float ceiling, int64_t begin,
                                   int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const float sum = a[i] + b[i], value = sum < 0.0f ? 0.0f : sum;
        y[i] = value > ceiling ? ceiling : value;
    }
}

CPU_HOT static void multiply_range(float *y, const float *a, const float *b, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        y[i] = a[i] * b[i];
    }
}

// da may lie over dy, which no compiler can turn into vectors by itself.
CPU_HOT static void multiply_bwd_range(const job *j, int64_t begin, int64_t end)
{
    int64_t i = begin;
    for (; i + CPU_LANES <= end; i += CPU_LANES) {
        const f32x16 dy = F32X16(j->c + i), da = dy * F32X16(j->b + i), db = dy * F32X16(j->a + i);
        F32X16W(j->y + i) = da;
        F32X16W(j->z + i) = db;
    }
    for (; i < end; i++) {
        const float dy = j->c[i];
        j->y[i] = dy * j->b[i];
        j->z[i] = dy * j->a[i];
    }
}

CPU_HOT static void scale_range(float *y, const float *x, float factor, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        y[i] = factor * x[i];
    }
}

float cpu_ceiling(int32_t act)
{
    return act == HR_ACT_RELU6 ? 6.0f : INFINITY;
}

static void relu_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu_range(j->y, j->a, j->ceiling, begin, end);
}

static void relu_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu_bwd_range(j->y, j->a, j->b, begin, end);
}

static void relu6_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu6_bwd_range(j->y, j->a, j->b, begin, end);
}

static void add_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    if (j->relu) {
        add_relu_range(j->y, j->a, j->b, j->ceiling, begin, end);
    } else {
        add_range(j->y, j->a, j->b, begin, end);
    }
}

static void multiply_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    multiply_range(j->y, j->a, j->b, begin, end);
}

static void multiply_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    multiply_bwd_range(argument, begin, end);
}

static void scale_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    scale_range(j->y, j->a, j->factor, begin, end);
}

// Operands in their order, split over the elements of the result.
static void run(const cpu_run *r, int32_t act, workers_body body)
{
    const op_query *q = r->query;
    const job j = {.a = r->in[0],
                   .b = q->in_count > 1 ? r->in[1] : NULL,
                   .c = q->in_count > 2 ? r->in[2] : NULL,
                   .y = r->out[0],
                   .z = q->out_count > 1 ? r->out[1] : NULL,
                   .relu = act != HR_ACT_NONE,
                   .ceiling = cpu_ceiling(act)};
    workers_for_pieces(r->device->workers, cpu_elements_of(&q->out[0]), GRAIN, body, &j);
}

static void run_relu(const cpu_run *r)
{
    run(r, HR_ACT_RELU, relu_body);
}

static void run_relu_bwd(const cpu_run *r)
{
    run(r, HR_ACT_NONE, relu_bwd_body);
}

static void run_relu6(const cpu_run *r)
{
    run(r, HR_ACT_RELU6, relu_body);
}

static void run_relu6_bwd(const cpu_run *r)
{
    run(r, HR_ACT_NONE, relu6_bwd_body);
}

static void run_add(const cpu_run *r)
{
    run(r, r->query->attr.act, add_body);
}

static void run_multiply(const cpu_run *r)
{
    run(r, HR_ACT_NONE, multiply_body);
}

static void run_multiply_bwd(const cpu_run *r)
{
    run(r, HR_ACT_NONE, multiply_bwd_body);
}

static void run_scale(const cpu_run *r)
{
    const double scale = r->query->attr.scale == 0.0 ? 1.0 : r->query->attr.scale;
    const double factor = r->query->in_count > 1 ? (double)*(const float *)r->in[1] : 1.0;
    const job j = {.a = r->in[0], .y = r->out[0], .factor = (float)(scale * factor)};
    workers_for_pieces(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN, scale_body, &j);
}

void cpu_rectify(const cpu_device *device, float *y, int64_t count, float ceiling)
{
    const job j = {.a = y, .y = y, .ceiling = ceiling};
    workers_for_pieces(device->workers, count, GRAIN, relu_body, &j);
}

const cpu_impl cpu_relu = {.name = "loops", .run = run_relu};
const cpu_impl cpu_relu_bwd = {.name = "loops", .run = run_relu_bwd};
const cpu_impl cpu_relu6 = {.name = "loops", .run = run_relu6};
const cpu_impl cpu_relu6_bwd = {.name = "loops", .run = run_relu6_bwd};
const cpu_impl cpu_add = {.name = "loops", .run = run_add};
const cpu_impl cpu_multiply = {.name = "loops", .run = run_multiply};
const cpu_impl cpu_multiply_bwd = {.name = "loops", .run = run_multiply_bwd};
const cpu_impl cpu_scale = {.name = "loops", .run = run_scale};
