// SPDX-License-Identifier: Apache-2.0
// Binary cross-entropy of logits, every element for itself, and the focal loss, which weighs it. Sums run in double over
// chunks of float, then over ranges, in order.
#include <math.h>

#include "base/workers.h"
#include "rows.h"
#include "smooth.h"

typedef struct job {
    const float *z, *t; // logits and targets
    float *out;
    double *partial; // one per range
    float share;     // of one element in the gradient
    float gamma, alpha;
} job;

// Of sixteen elements: p, 1 - p, -t log p - (1-t) log(1-p), and what is amiss of p_t.
typedef struct binary {
    f32x16 p, rest, entropy, amiss;
} binary;

CPU_INLINE void binary_lanes(const f32x16 *z, const f32x16 *t, binary *b)
{
    f32x16 e, above = {0};
    magnitude(z, &e);
    e = -e;
    exp_lanes(&e);
    const f32x16 near = 1.0f / (1.0f + e), far = e * near;
    b->p = far;
    b->rest = near;
    unless_negative(z, &b->p, &near);
    unless_negative(z, &b->rest, &far);
    log1p_lanes(&e);
    unless_negative(z, &above, z);
    b->entropy = above - *z * *t + e;
    b->amiss = b->p * (1.0f - *t) + b->rest * *t;
}

// What the focal loss multiplies an element with.
CPU_INLINE void weight_lanes(const job *j, const binary *b, const f32x16 *t, f32x16 *weight)
{
    const f32x16 amiss = b->amiss;
    *weight = amiss * amiss;
    for (int lane = 0; lane < CPU_LANES && j->gamma != 2.0f; lane++) {
        (*weight)[lane] = powf(amiss[lane], j->gamma);
    }
    if (j->alpha != 0.0f) {
        *weight *= j->alpha * *t + (1.0f - j->alpha) * (1.0f - *t);
    }
}

CPU_INLINE double loss_sum(const job *j, int64_t begin, int64_t end, bool focal)
{
    double total = 0.0;
    for (int64_t first = begin; first < end; first += ROWS_CHUNK) {
        const int64_t stop = end - first < ROWS_CHUNK ? end : first + ROWS_CHUNK;
        f32x16 sum = {0};
        for (int64_t i = first; i < stop; i += CPU_LANES) {
            f32x16 z, t, weight;
            binary b;
            load_tail(&z, j->z + i, stop - i, 0.0f);
            load_tail(&t, j->t + i, stop - i, 0.0f);
            binary_lanes(&z, &t, &b);
            if (focal) {
                weight_lanes(j, &b, &t, &weight);
                b.entropy *= weight;
            }
            for (int lane = 0; lane < CPU_LANES && stop - i < CPU_LANES; lane++) {
                b.entropy[lane] = lane < stop - i ? b.entropy[lane] : 0.0f;
            }
            sum += b.entropy;
        }
        total += sum_lanes(&sum);
    }
    return total;
}

// d entropy = p - t = p(1-t) - (1-p)t; d amiss^g = g amiss^g (1-2t) p (1-p) / amiss. May lie on the logits.
CPU_INLINE void gradient(const job *j, int64_t begin, int64_t end, bool focal)
{
    for (int64_t i = begin; i < end; i += CPU_LANES) {
        f32x16 z, t, weight;
        binary b;
        load_tail(&z, j->z + i, end - i, 0.0f);
        load_tail(&t, j->t + i, end - i, 0.0f);
        binary_lanes(&z, &t, &b);
        f32x16 dz = b.p * (1.0f - t) - b.rest * t;
        if (focal) {
            weight_lanes(j, &b, &t, &weight);
            const f32x16 product = b.p * b.rest;
            for (int lane = 0; lane < CPU_LANES; lane++) {
                const float slope = b.amiss[lane] > 0.0f ? product[lane] / b.amiss[lane] : 0.0f;
                dz[lane] += j->gamma * (1.0f - 2.0f * t[lane]) * slope * b.entropy[lane];
            }
            dz *= weight;
        }
        dz *= j->share;
        store_tail(&dz, j->out + i, end - i);
    }
}

CPU_HOT static double entropy_sum(const job *j, int64_t begin, int64_t end)
{
    return loss_sum(j, begin, end, false);
}

CPU_HOT static double focal_sum(const job *j, int64_t begin, int64_t end)
{
    return loss_sum(j, begin, end, true);
}

CPU_HOT static void entropy_gradient(const job *j, int64_t begin, int64_t end)
{
    gradient(j, begin, end, false);
}

CPU_HOT static void focal_gradient(const job *j, int64_t begin, int64_t end)
{
    gradient(j, begin, end, true);
}

static void entropy_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    j->partial[worker] = entropy_sum(j, begin, end);
}

static void focal_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    j->partial[worker] = focal_sum(j, begin, end);
}

static void entropy_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    entropy_gradient(argument, begin, end);
}

static void focal_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    focal_gradient(argument, begin, end);
}

static job job_of(const cpu_run *r)
{
    return (job){.z = r->in[0],
                 .t = r->in[1],
                 .out = r->out[0],
                 .partial = r->workspace,
                 .gamma = (float)r->query->attr.rate,
                 .alpha = (float)r->query->attr.momentum};
}

static void run_binary(const cpu_run *r)
{
    const job j = job_of(r);
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    const workers_body body = r->query->op == HR_OP_FOCAL ? focal_body : entropy_body;
    *j.out = (float)(sum_ranges(r, count, ROWS_GRAIN_FLOATS, body, &j, j.partial) / (double)count);
}

static void run_binary_bwd(const cpu_run *r)
{
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    job j = job_of(r);
    j.share = (float)(gradient_weight(r, 2) / (double)count);
    workers_for(r->device->workers, count, ROWS_GRAIN_FLOATS,
                r->query->op == HR_OP_FOCAL_BWD ? focal_bwd_body : entropy_bwd_body, &j);
}

const cpu_impl cpu_binary_xent = {.name = "lanes", .workspace = partial_bytes, .run = run_binary};
const cpu_impl cpu_binary_xent_bwd = {.name = "lanes", .run = run_binary_bwd};
