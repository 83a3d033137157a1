// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy without probabilities, and accuracy, over rows of logits of any type. Of a row its largest logit
// and one over the sum of its exponentials are kept; backward makes the probabilities again, with the bits that loss.c
// gives them, and may write its gradient over the logits. A row is taken a chunk at a time, and two bytes are widened in
// a scratch of the near cache.
#include <math.h>

#include "cast.h"
#include "rows.h"

typedef struct job {
    logits l;
    labels labels;
    hr_dtype dtype; // of logits and gradient
    const char *z;
    char *dz;
    float *most, *rsum; // one of every row
    double *partial;    // one per range
    float share;        // of one row in the gradient
    bool keeps;         // exponentials wait where the gradient will be, which is float32
} job;

// `count` logits of a row from `first` on.
typedef struct chunk {
    int64_t first, count, byte;
} chunk;

static job job_of(const cpu_run *r)
{
    return (job){.l = logits_of(&r->query->in[0]),
                 .labels = labels_of(r),
                 .dtype = (hr_dtype)r->query->in[0].dtype,
                 .z = r->in[0],
                 .partial = r->workspace};
}

static chunk chunk_of(const job *j, int64_t row, int64_t first)
{
    const int64_t left = j->l.classes - first;
    return (chunk){.first = first,
                   .count = left < ROWS_CHUNK ? left : ROWS_CHUNK,
                   .byte = (row * j->l.classes + first) * (int64_t)dtype_bytes(j->dtype)};
}

// As floats: where they lie, or in `scratch`.
static const float *values_of(const job *j, const chunk *c, float scratch[ROWS_CHUNK])
{
    const char *at = j->z + c->byte;
    if (j->dtype == HR_F32) {
        return (const float *)at;
    }
    cast_widen(scratch, at, j->dtype, c->count);
    return scratch;
}

CPU_HOT static float chunk_max(const float *z, int64_t count)
{
    return row_max(z, count);
}

// Sum of the exponentials, left in p unless that is NULL; p may be z.
CPU_HOT static double chunk_sum(const float *z, float *p, int64_t count, float largest)
{
    return exponentials(z, p, count, largest);
}

static float largest_of(const job *j, int64_t row, float scratch[ROWS_CHUNK])
{
    float most = -INFINITY;
    for (int64_t first = 0; first < j->l.classes; first += ROWS_CHUNK) {
        const chunk c = chunk_of(j, row, first);
        const float here = chunk_max(values_of(j, &c, scratch), c.count);
        most = first == 0 || here > most ? here : most;
    }
    return most;
}

static float logit_of(const job *j, int64_t row, int64_t k, float scratch[ROWS_CHUNK])
{
    chunk c = chunk_of(j, row, k);
    c.count = 1;
    return *values_of(j, &c, scratch);
}

// What stands for a row's probabilities.
typedef struct row_stats {
    float most, rsum;
} row_stats;

// The loss of one row, log sum exp(z - max) - (z_label - max): never the logarithm of a rounded probability.
static double stream_row(const job *j, int64_t row, float scratch[ROWS_CHUNK], row_stats *stats)
{
    const float largest = largest_of(j, row, scratch);
    const double chosen = (double)logit_of(j, row, label_at(&j->labels, row), scratch);
    double sum = 0.0;
    for (int64_t first = 0; first < j->l.classes; first += ROWS_CHUNK) {
        const chunk c = chunk_of(j, row, first);
        float *left = j->keeps ? (float *)(j->dz + c.byte) : NULL;
        sum += chunk_sum(values_of(j, &c, scratch), left, c.count, largest);
    }
    *stats = (row_stats){largest, (float)(1.0 / sum)};
    return log(sum) - (chosen - (double)largest);
}

static void stream_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float scratch[ROWS_CHUNK];
    double total = 0.0;
    for (int64_t n = begin; n < end; n++) {
        row_stats stats;
        total += stream_row(j, n, scratch, &stats);
        j->most[n] = stats.most;
        j->rsum[n] = stats.rsum;
    }
    j->partial[worker] = total;
}

static void run_stream(const cpu_run *r)
{
    job j = job_of(r);
    j.most = r->out[0];
    j.rsum = r->out[1];
    const double total = sum_ranges(r, j.l.rows, logits_grain(&j.l), stream_body, &j, j.partial);
    *(float *)r->out[2] = (float)(total / (double)j.l.rows);
}

CPU_HOT static void chunk_scale(float *p, int64_t count, float factor)
{
    for (int64_t k = 0; k < count; k++) {
        p[k] *= factor;
    }
}

static void chunk_bwd(const job *j, int64_t row, int64_t first, row_stats stats, float scratch[ROWS_CHUNK])
{
    const chunk c = chunk_of(j, row, first);
    const bool narrows = j->dtype != HR_F32;
    const int64_t at = label_at(&j->labels, row) - first;
    float *p = narrows ? scratch : (float *)(j->dz + c.byte);
    if (!j->keeps) {
        (void)chunk_sum(values_of(j, &c, scratch), p, c.count, stats.most);
    }
    chunk_scale(p, c.count, stats.rsum);
    const bool here = at >= 0 && at < c.count;
    const float chosen = here ? (p[at] - 1.0f) * j->share : 0.0f;
    chunk_scale(p, c.count, j->share);
    if (here) {
        p[at] = chosen;
    }
    if (narrows) {
        cast_narrow(j->dz + c.byte, j->dtype, p, c.count);
    }
}

static void row_bwd(const job *j, int64_t row, row_stats stats, float scratch[ROWS_CHUNK])
{
    for (int64_t first = 0; first < j->l.classes; first += ROWS_CHUNK) {
        chunk_bwd(j, row, first, stats, scratch);
    }
}

static void stream_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float scratch[ROWS_CHUNK];
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        row_bwd(j, n, (row_stats){j->most[n], j->rsum[n]}, scratch);
    }
}

static void run_stream_bwd(const cpu_run *r)
{
    job j = job_of(r);
    j.most = r->in[2];
    j.rsum = r->in[3];
    j.dz = r->out[0];
    j.share = (float)(gradient_weight(r, 4) / (double)j.l.rows);
    workers_for(r->device->workers, j.l.rows, logits_grain(&j.l), stream_bwd_body, &j);
}

// Both at once: a row's gradient is made while the row is near.
static void gradient_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float scratch[ROWS_CHUNK];
    double total = 0.0;
    for (int64_t n = begin; n < end; n++) {
        row_stats stats;
        total += stream_row(j, n, scratch, &stats);
        row_bwd(j, n, stats, scratch);
    }
    j->partial[worker] = total;
}

static void run_gradient(const cpu_run *r)
{
    job j = job_of(r);
    j.dz = r->out[0];
    j.keeps = j.dtype == HR_F32;
    j.share = (float)(gradient_weight(r, 2) / (double)j.l.rows);
    const double total = sum_ranges(r, j.l.rows, logits_grain(&j.l), gradient_body, &j, j.partial);
    *(float *)r->out[1] = (float)(total / (double)j.l.rows);
}

// ---- accuracy -------------------------------------------------------------------------------------------------

CPU_HOT static bool holds(const float *z, int64_t count, float value)
{
    bool found = false;
    for (int64_t k = 0; k < count && !found; k++) {
        found = z[k] == value;
    }
    return found;
}

// Is the first of the row's largest values at its label?
static bool is_correct(const job *j, int64_t row, float scratch[ROWS_CHUNK])
{
    const int64_t label = label_at(&j->labels, row);
    const float most = largest_of(j, row, scratch);
    bool correct = logit_of(j, row, label, scratch) == most;
    for (int64_t first = 0; first < label && correct; first += ROWS_CHUNK) {
        const chunk c = chunk_of(j, row, first);
        correct = !holds(values_of(j, &c, scratch), label - first < c.count ? label - first : c.count, most);
    }
    return correct;
}

static void accuracy_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float scratch[ROWS_CHUNK];
    double correct = 0.0;
    for (int64_t n = begin; n < end; n++) {
        correct += is_correct(j, n, scratch) ? 1.0 : 0.0;
    }
    j->partial[worker] = correct;
}

static void run_accuracy(const cpu_run *r)
{
    const job j = job_of(r);
    *(int32_t *)r->out[0] =
        (int32_t)sum_ranges(r, j.l.rows, logits_grain(&j.l), accuracy_body, &j, j.partial);
}

const cpu_impl cpu_softmax_xent_stream = {
    .name = "rows", .types = CPU_ANY_TYPE, .workspace = partial_bytes, .run = run_stream};
const cpu_impl cpu_softmax_xent_stream_bwd = {.name = "rows", .types = CPU_ANY_TYPE, .run = run_stream_bwd};
const cpu_impl cpu_softmax_xent_gradient = {
    .name = "rows", .types = CPU_ANY_TYPE, .workspace = partial_bytes, .run = run_gradient};
const cpu_impl cpu_accuracy = {
    .name = "rows", .types = CPU_ANY_TYPE, .workspace = partial_bytes, .run = run_accuracy};
