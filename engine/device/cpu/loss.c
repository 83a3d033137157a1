// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy and accuracy over rows of logits. A row is read for its maximum, again for exponentials and
// their sum, and its result once more to divide by it, all while it lies in a near cache. Sums run in double over
// chunks of float, then over rows and ranges, in order.
#include <math.h>

#include "rows.h"
#include "workers.h"

typedef struct job {
    logits l;
    const float *logits;
    const void *labels;
    bool bytes; // labels are uint8
    float *probs;
    double *partial; // one per range
    float share;     // of one row in the gradient
} job;

CPU_INLINE int64_t label_at(const job *j, int64_t row)
{
    return j->bytes ? ((const uint8_t *)j->labels)[row] : ((const int32_t *)j->labels)[row];
}

// p = exp(z - largest), which may be z itself; returns the sum.
CPU_INLINE double exponentials(const float *z, float *p, int64_t count, float largest)
{
    double total = 0.0;
    for (int64_t first = 0; first < count; first += ROWS_CHUNK) {
        const int64_t end = count - first < ROWS_CHUNK ? count : first + ROWS_CHUNK;
        f32x16 sum = {0};
        int64_t k = first;
        for (; k + CPU_LANES <= end; k += CPU_LANES) {
            f32x16 x = F32X16(z + k) - largest;
            exp_lanes(&x);
            F32X16W(p + k) = x;
            sum += x;
        }
        if (k < end) {
            f32x16 x;
            load_tail(&x, z + k, end - k, -INFINITY);
            x -= largest;
            exp_lanes(&x);
            store_tail(&x, p + k, end - k);
            sum += x;
        }
        total += sum_lanes(&sum);
    }
    return total;
}

// The loss of one row, log sum exp(z - max) - (z_label - max): never the logarithm of a rounded probability.
CPU_HOT static double softmax_row(const float *z, float *p, int64_t classes, int64_t label)
{
    const float largest = row_max(z, classes);
    const double chosen = (double)z[label];
    const double sum = exponentials(z, p, classes, largest);
    const float inverse = (float)(1.0 / sum);
    for (int64_t k = 0; k < classes; k++) {
        p[k] *= inverse;
    }
    return log(sum) - (chosen - (double)largest);
}

static void softmax_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t classes = j->l.classes;
    double total = 0.0;
    for (int64_t n = begin; n < end; n++) {
        total += softmax_row(j->logits + n * classes, j->probs + n * classes, classes, label_at(j, n));
    }
    j->partial[worker] = total;
}

static uint64_t partial_bytes(const cpu_device *device, const op_query *q)
{
    (void)q;
    return device->threads * sizeof(double);
}

static job job_of(const cpu_run *r)
{
    return (job){.l = logits_of(&r->query->in[0]),
                 .logits = r->in[0],
                 .labels = r->in[1],
                 .bytes = r->query->in[1].dtype == HR_U8,
                 .partial = r->workspace};
}

// Runs `body` over the rows; the sum of the ranges' parts.
static double sum_rows(const cpu_run *r, const job *j, cpu_body body)
{
    const int64_t grain = logits_grain(&j->l);
    double total = 0.0;
    cpu_for(r->device->workers, j->l.rows, grain, body, j);
    for (uint32_t k = 0; k < cpu_for_ranges(r->device->workers, j->l.rows, grain); k++) {
        total += j->partial[k];
    }
    return total;
}

static void run_softmax(const cpu_run *r)
{
    job j = job_of(r);
    j.probs = r->out[0];
    *(float *)r->out[1] = (float)(sum_rows(r, &j, softmax_body) / (double)j.l.rows);
}

CPU_HOT static void scale_range(float *to, const float *from, float share, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        to[i] = from[i] * share;
    }
}

// May run in place: dlogits over probs.
static void softmax_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t classes = j->l.classes;
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        const int64_t at = n * classes + label_at(j, n);
        const float chosen = (j->logits[at] - 1.0f) * j->share;
        scale_range(j->probs, j->logits, j->share, n * classes, (n + 1) * classes);
        j->probs[at] = chosen;
    }
}

static void run_softmax_bwd(const cpu_run *r)
{
    job j = job_of(r);
    j.probs = r->out[0];
    j.share = (float)(gradient_weight(r) / (double)j.l.rows);
    cpu_for(r->device->workers, j.l.rows, logits_grain(&j.l), softmax_bwd_body, &j);
}

// Is the first of the row's largest values at `label`?
CPU_HOT static bool is_largest(const float *z, int64_t classes, int64_t label)
{
    const float most = row_max(z, classes);
    int64_t first = 0;
    while (first < label && z[first] != most) {
        first++;
    }
    return first == label && z[label] == most;
}

static void accuracy_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    double correct = 0.0;
    for (int64_t n = begin; n < end; n++) {
        correct += is_largest(j->logits + n * j->l.classes, j->l.classes, label_at(j, n)) ? 1.0 : 0.0;
    }
    j->partial[worker] = correct;
}

static void run_accuracy(const cpu_run *r)
{
    const job j = job_of(r);
    *(int32_t *)r->out[0] = (int32_t)sum_rows(r, &j, accuracy_body);
}

const cpu_impl cpu_softmax_xent = {.name = "rows", .workspace = partial_bytes, .run = run_softmax};
const cpu_impl cpu_softmax_xent_bwd = {.name = "rows", .run = run_softmax_bwd};
const cpu_impl cpu_accuracy = {.name = "rows", .workspace = partial_bytes, .run = run_accuracy};
