// SPDX-License-Identifier: Apache-2.0
// Optimizers: one pass over weights, gradient and slots, bound by memory.
#include "update.h"

#include <math.h>

#include "base/workers.h"
#include "cast.h"
#include "ops/prune.h"
#include "simd.h"

enum { LINE_DOUBLES = 8, SQUARES_CHUNK = 4096, MASKED_CHUNK = 256 };

typedef struct job {
    float *w, *m, *v;
    const float *g;
    float rate, momentum;
    float kept;         // of a weight, behind its decay
    float beta1, beta2; // LION, RMSPROP
    float keep1, keep2; // 1 - beta
    float epsilon;
} job;

bool update_is_skipped(const cpu_run *r)
{
    const uint32_t finite = update_finite_operand(r->query);
    return finite != 0 && *(const int32_t *)r->in[finite] == 0;
}

float update_kept(const cpu_run *r)
{
    return (float)(1.0 - r->io->learning_rate * r->query->attr.rate);
}

adam_step update_adam_step(const cpu_run *r)
{
    return adam_step_of(&r->query->attr, r->io->learning_rate, r->io->update);
}

CPU_HOT static void sgd_range(float *restrict w, const float *restrict g, const job *j, int64_t begin,
                              int64_t end)
{
    const float rate = j->rate, kept = j->kept;
    for (int64_t i = begin; i < end; i++) {
        w[i] = kept * w[i] - rate * g[i];
    }
}

CPU_HOT static void momentum_range(float *restrict w, float *restrict v, const float *restrict g,
                                   const job *j, int64_t begin, int64_t end)
{
    const float rate = j->rate, momentum = j->momentum, kept = j->kept;
    for (int64_t i = begin; i < end; i++) {
        v[i] = momentum * v[i] - rate * g[i];
        w[i] = kept * w[i] + v[i];
    }
}

CPU_HOT static void rmsprop_range(float *restrict w, float *restrict v, const float *restrict g, const job *j,
                                  int64_t begin, int64_t end)
{
    const float rate = j->rate, beta = j->beta1, keep = j->keep1, epsilon = j->epsilon, kept = j->kept;
    for (int64_t i = begin; i < end; i++) {
        const float second = beta * v[i] + keep * (g[i] * g[i]);
        v[i] = second;
        w[i] = kept * w[i] - rate * g[i] / sqrtf(second + epsilon);
    }
}

CPU_HOT static void adam_range(float *restrict w, float *restrict m, float *restrict v,
                               const float *restrict g, const job *j, int64_t begin, int64_t end)
{
    const float rate = j->rate, keep1 = j->keep1, keep2 = j->keep2, epsilon = j->epsilon, kept = j->kept;
    for (int64_t i = begin; i < end; i++) {
        float first = m[i] + (g[i] - m[i]) * keep1;
        float second = v[i] + (g[i] * g[i] - v[i]) * keep2;
        m[i] = first;
        v[i] = second;
        w[i] = kept * w[i] - rate * first / (sqrtf(second) + epsilon);
    }
}

CPU_HOT static void lion_range(float *restrict w, float *restrict m, const float *restrict g, const job *j,
                               int64_t begin, int64_t end)
{
    const float rate = j->rate, beta1 = j->beta1, beta2 = j->beta2, kept = j->kept;
    const float keep1 = j->keep1, keep2 = j->keep2;
    for (int64_t i = begin; i < end; i++) {
        const float direction = beta1 * m[i] + keep1 * g[i];
        const float step = direction > 0.0f ? rate : direction < 0.0f ? -rate : 0.0f;
        w[i] = kept * w[i] - step;
        m[i] = beta2 * m[i] + keep2 * g[i];
    }
}

CPU_HOT static void ema_range(float *restrict e, const float *restrict w, const job *j, int64_t begin,
                              int64_t end)
{
    const float momentum = j->momentum, keep = j->keep1;
    for (int64_t i = begin; i < end; i++) {
        e[i] = momentum * e[i] + keep * w[i];
    }
}

// clipped and g may be one.
CPU_HOT static void clip_range(float *clipped, const float *g, float factor, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        clipped[i] = g[i] * factor;
    }
}

CPU_HOT static void accumulate_range(float *restrict sum, const float *restrict g, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        sum[i] += g[i];
    }
}

#define BODY(name, call)                                                                                     \
    static void name(const void *argument, int64_t begin, int64_t end, uint32_t worker)                      \
    {                                                                                                        \
        const job *j = argument;                                                                             \
        (void)worker;                                                                                        \
        call;                                                                                                \
    }

BODY(sgd_body, sgd_range(j->w, j->g, j, begin, end))
BODY(momentum_body, momentum_range(j->w, j->v, j->g, j, begin, end))
BODY(rmsprop_body, rmsprop_range(j->w, j->v, j->g, j, begin, end))
BODY(adam_body, adam_range(j->w, j->m, j->v, j->g, j, begin, end))
BODY(lion_body, lion_range(j->w, j->m, j->g, j, begin, end))
BODY(ema_body, ema_range(j->w, j->g, j, begin, end))
BODY(clip_body, clip_range(j->w, j->g, j->rate, begin, end))
BODY(accumulate_body, accumulate_range(j->w, j->g, begin, end))

static job job_of(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    return (job){.w = r->in[0],
                 .g = r->in[1],
                 .rate = (float)r->io->learning_rate,
                 .momentum = (float)a->momentum,
                 .kept = update_kept(r),
                 .beta1 = (float)a->beta1,
                 .beta2 = (float)a->beta2,
                 .keep1 = (float)(1.0 - a->beta1),
                 .keep2 = (float)(1.0 - a->beta2),
                 .epsilon = (float)a->epsilon};
}

typedef struct masked_job {
    const job *update;
    workers_body body;
    const uint32_t *mask;
} masked_job;

// What was updated is masked while it is near: in short parts, so that the mask comes as evenly as what is updated.
static void masked_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const masked_job *j = argument;
    for (int64_t first = begin; first < end; first += MASKED_CHUNK) {
        const int64_t last = end - first < MASKED_CHUNK ? end : first + MASKED_CHUNK;
        j->body(j->update, first, last, worker);
        update_zero_masked((uint32_t *)j->update->w, j->mask, first, last);
    }
}

static void run(const cpu_run *r, const job *j, workers_body body)
{
    const op_query *q = r->query;
    const bool masks = update_masks_at(&q->attr, prune_update(r->io));
    const masked_job m = {j, body, masks ? r->in[update_mask_operand(q)] : NULL};
    workers_for_pieces(r->device->workers, cpu_elements_of(&q->in[0]), UPDATE_GRAIN,
                       masks ? masked_body : body, masks ? (const void *)&m : j);
}

static void run_sgd(const cpu_run *r)
{
    const job j = job_of(r);
    if (!update_is_skipped(r)) {
        run(r, &j, sgd_body);
    }
}

static void run_momentum(const cpu_run *r)
{
    job j = job_of(r);
    j.v = r->in[2];
    if (!update_is_skipped(r)) {
        run(r, &j, momentum_body);
    }
}

static void run_rmsprop(const cpu_run *r)
{
    job j = job_of(r);
    j.v = r->in[2];
    if (!update_is_skipped(r)) {
        run(r, &j, rmsprop_body);
    }
}

static void run_adam(const cpu_run *r)
{
    const adam_step step = update_adam_step(r);
    job j = job_of(r);
    j.m = r->in[2];
    j.v = r->in[3];
    j.rate = (float)step.rate;
    j.epsilon = (float)step.epsilon;
    if (!update_is_skipped(r)) {
        run(r, &j, adam_body);
    }
}

static void run_lion(const cpu_run *r)
{
    job j = job_of(r);
    j.m = r->in[2];
    if (!update_is_skipped(r)) {
        run(r, &j, lion_body);
    }
}

// The first average is the variable itself.
static void run_ema(const cpu_run *r)
{
    job j = job_of(r);
    const double momentum = r->io->update > 1 ? r->query->attr.momentum : 0.0;
    j.momentum = (float)momentum;
    j.keep1 = (float)(1.0 - momentum);
    if (!update_is_skipped(r)) {
        run(r, &j, ema_body);
    }
}

static void run_clip(const cpu_run *r)
{
    const double norm = sqrt((double)*(const float *)r->in[1]);
    const job j = {
        .w = r->out[0], .g = r->in[0], .rate = (float)fmin(1.0, r->query->attr.epsilon / (norm + 1e-6))};
    run(r, &j, clip_body);
}

static void run_accumulate(const cpu_run *r)
{
    const job j = {.w = r->in[0], .g = r->in[1]};
    run(r, &j, accumulate_body);
}

// ---- sums of squares --------------------------------------------------------------------------------------

typedef struct squares_job {
    const void *x;
    hr_dtype type;
    double *partial; // [worker][LINE_DOUBLES]
} squares_job;

// Sixteen sums at a time, and every SQUARES_CHUNK elements they are added to one in double.
CPU_HOT static double squares_range(const float *x, int64_t begin, int64_t end)
{
    double total = 0.0;
    for (int64_t first = begin; first < end; first += SQUARES_CHUNK) {
        const int64_t last = end - first < SQUARES_CHUNK ? end : first + SQUARES_CHUNK;
        f32x16 lanes = {0};
        int64_t i = first;
        for (; i + CPU_LANES <= last; i += CPU_LANES) {
            const f32x16 value = F32X16(x + i);
            lanes += value * value;
        }
        float tail = 0.0f;
        for (; i < last; i++) {
            tail += x[i] * x[i];
        }
        for (int k = 0; k < CPU_LANES; k++) {
            total += (double)lanes[k];
        }
        total += (double)tail;
    }
    return total;
}

static void squares_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const squares_job *j = argument;
    double sum = 0.0;
    float piece[SQUARES_CHUNK];
    if (j->type == HR_F32) {
        j->partial[worker * LINE_DOUBLES] = squares_range(j->x, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i += SQUARES_CHUNK) {
        const int64_t count = end - i < SQUARES_CHUNK ? end - i : SQUARES_CHUNK;
        cast_widen(piece, (const uint16_t *)j->x + i, j->type, count);
        sum += squares_range(piece, 0, count);
    }
    j->partial[worker * LINE_DOUBLES] = sum;
}

uint64_t update_squares_scratch_bytes(const workers *w)
{
    return (uint64_t)workers_count(w) * LINE_DOUBLES * sizeof(double);
}

double update_squares(workers *w, const void *x, hr_dtype type, int64_t count, double *scratch)
{
    const squares_job j = {x, type, scratch};
    double sum = 0.0;
    workers_for(w, count, UPDATE_GRAIN, squares_body, &j);
    for (uint32_t k = 0; k < workers_for_ranges(w, count, UPDATE_GRAIN); k++) {
        sum += scratch[k * LINE_DOUBLES];
    }
    return sum;
}

static uint64_t squares_workspace(const cpu_device *device, const op_query *q)
{
    (void)q;
    return update_squares_scratch_bytes(device->workers);
}

static void run_square_sum(const cpu_run *r)
{
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    const float before = r->query->in_count > 1 ? *(const float *)r->in[1] : 0.0f;
    *(float *)r->out[0] =
        before + (float)update_squares(r->device->workers, r->in[0], (hr_dtype)r->query->in[0].dtype, count,
                                       r->workspace);
}

const cpu_impl cpu_sgd = {.name = "fused", .run = run_sgd};
const cpu_impl cpu_momentum = {.name = "fused", .run = run_momentum};
const cpu_impl cpu_rmsprop = {.name = "fused", .run = run_rmsprop};
const cpu_impl cpu_adam = {.name = "fused", .run = run_adam};
const cpu_impl cpu_lion = {.name = "fused", .run = run_lion};
const cpu_impl cpu_ema = {.name = "fused", .run = run_ema};
const cpu_impl cpu_clip = {.name = "fused", .run = run_clip};
const cpu_impl cpu_accumulate = {.name = "fused", .run = run_accumulate};
const cpu_impl cpu_square_sum = {
    .name = "fused", .types = CPU_ANY_TYPE, .workspace = squares_workspace, .run = run_square_sum};
