// SPDX-License-Identifier: Apache-2.0
// Optimizers: one pass over weights, gradient and slots, bound by memory.
#include <math.h>

#include "cpu.h"
#include "simd.h"
#include "workers.h"

enum { GRAIN = 16384 };

typedef struct job {
    float *w, *m, *v;
    const float *g;
    float rate, momentum;
    float keep1, keep2; // 1 - beta
    float epsilon;
} job;

CPU_HOT static void sgd_range(float *restrict w, const float *restrict g, float rate, int64_t begin,
                              int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        w[i] -= rate * g[i];
    }
}

CPU_HOT static void momentum_range(float *restrict w, float *restrict v, const float *restrict g, float rate,
                                   float momentum, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        v[i] = momentum * v[i] - rate * g[i];
        w[i] += v[i];
    }
}

CPU_HOT static void adam_range(float *restrict w, float *restrict m, float *restrict v,
                               const float *restrict g, const job *j, int64_t begin, int64_t end)
{
    const float rate = j->rate, keep1 = j->keep1, keep2 = j->keep2, epsilon = j->epsilon;
    for (int64_t i = begin; i < end; i++) {
        float first = m[i] + (g[i] - m[i]) * keep1;
        float second = v[i] + (g[i] * g[i] - v[i]) * keep2;
        m[i] = first;
        v[i] = second;
        w[i] -= rate * first / (sqrtf(second) + epsilon);
    }
}

static void sgd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    sgd_range(j->w, j->g, j->rate, begin, end);
}

static void momentum_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    momentum_range(j->w, j->v, j->g, j->rate, j->momentum, begin, end);
}

static void adam_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    adam_range(j->w, j->m, j->v, j->g, j, begin, end);
}

static void run(const cpu_run *r, const job *j, cpu_body body)
{
    cpu_for(r->device->workers, cpu_elements_of(&r->query->in[0]), GRAIN, body, j);
}

static void run_sgd(const cpu_run *r)
{
    job j = {.w = r->in[0], .g = r->in[1], .rate = (float)r->io->learning_rate};
    run(r, &j, sgd_body);
}

static void run_momentum(const cpu_run *r)
{
    job j = {.w = r->in[0],
             .g = r->in[1],
             .v = r->in[2],
             .rate = (float)r->io->learning_rate,
             .momentum = (float)r->query->attr.momentum};
    run(r, &j, momentum_body);
}

static void run_adam(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    double t = (double)r->io->update;
    double rate = r->io->learning_rate * sqrt(1.0 - pow(a->beta2, t)) / (1.0 - pow(a->beta1, t));
    job j = {.w = r->in[0],
             .g = r->in[1],
             .m = r->in[2],
             .v = r->in[3],
             .rate = (float)rate,
             .keep1 = (float)(1.0 - a->beta1),
             .keep2 = (float)(1.0 - a->beta2),
             .epsilon = (float)a->epsilon};
    run(r, &j, adam_body);
}

const cpu_impl cpu_sgd = {.name = "fused", .run = run_sgd};
const cpu_impl cpu_momentum = {.name = "fused", .run = run_momentum};
const cpu_impl cpu_adam = {.name = "fused", .run = run_adam};
