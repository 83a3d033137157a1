// SPDX-License-Identifier: Apache-2.0
// Element by element, in any layout: padding is zero and stays zero.
#include "cpu.h"
#include "simd.h"
#include "workers.h"

enum { GRAIN = 16384 };

typedef struct job {
    const float *a, *b;
    float *y;
    bool relu;
} job;

// Not-a-number stays: a diverging run must be seen in its loss.
CPU_HOT static void relu_range(float *y, const float *x, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

CPU_HOT static void relu_bwd_range(float *dx, const float *y, const float *dy, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

CPU_HOT static void add_range(float *y, const float *a, const float *b, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        y[i] = a[i] + b[i];
    }
}

CPU_HOT static void add_relu_range(float *y, const float *a, const float *b, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        float sum = a[i] + b[i];
        y[i] = sum < 0.0f ? 0.0f : sum;
    }
}

static void relu_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu_range(j->y, j->a, begin, end);
}

static void relu_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu_bwd_range(j->y, j->a, j->b, begin, end);
}

static void add_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    if (j->relu) {
        add_relu_range(j->y, j->a, j->b, begin, end);
    } else {
        add_range(j->y, j->a, j->b, begin, end);
    }
}

static void run(const cpu_run *r, cpu_body body)
{
    job j = {r->in[0], r->query->in_count > 1 ? r->in[1] : NULL, r->out[0],
             r->query->attr.act == HR_ACT_RELU};
    cpu_for(r->device->workers, cpu_floats_of(&r->query->out[0]), GRAIN, body, &j);
}

static void run_relu(const cpu_run *r)
{
    run(r, relu_body);
}

static void run_relu_bwd(const cpu_run *r)
{
    run(r, relu_bwd_body);
}

static void run_add(const cpu_run *r)
{
    run(r, add_body);
}

const cpu_impl cpu_relu = {.name = "loops", .run = run_relu};
const cpu_impl cpu_relu_bwd = {.name = "loops", .run = run_relu_bwd};
const cpu_impl cpu_add = {.name = "loops", .run = run_add};
