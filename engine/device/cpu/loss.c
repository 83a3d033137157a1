// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over rows of logits, with its probabilities. A row is read for its maximum, again for exponentials and
// their sum, and its result once more to divide by it, all while it lies in a near cache. Sums run in double over
// chunks of float, then over rows and ranges, in order.
#include <math.h>

#include "base/workers.h"
#include "rows.h"

typedef struct job {
    logits l;
    const float *logits;
    labels labels;
    float *probs;
    double *partial; // one per range
    float share;     // of one row in the gradient
} job;

// The loss of one row, log sum exp(z - max) - (z_label - max): never the logarithm of a rounded probability.
CPU_HOT static double softmax_row(const float *z, float *p, int64_t classes, int64_t label)
{
    const float largest = row_max(z, classes);
    const double chosen = (double)z[label];
    double sum = 0.0;
    for (int64_t k = 0; k < classes; k += ROWS_CHUNK) {
        sum += exponentials(z + k, p + k, classes - k < ROWS_CHUNK ? classes - k : ROWS_CHUNK, largest);
    }
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
        total +=
            softmax_row(j->logits + n * classes, j->probs + n * classes, classes, label_at(&j->labels, n));
    }
    j->partial[worker] = total;
}

static job job_of(const cpu_run *r)
{
    return (job){.l = logits_of(&r->query->in[0]),
                 .logits = r->in[0],
                 .labels = labels_of(r),
                 .partial = r->workspace};
}

static void run_softmax(const cpu_run *r)
{
    job j = job_of(r);
    j.probs = r->out[0];
    const double total = sum_ranges(r, j.l.rows, logits_grain(&j.l), softmax_body, &j, j.partial);
    *(float *)r->out[1] = (float)(total / (double)j.l.rows);
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
        const int64_t at = n * classes + label_at(&j->labels, n);
        const float chosen = (j->logits[at] - 1.0f) * j->share;
        scale_range(j->probs, j->logits, j->share, n * classes, (n + 1) * classes);
        j->probs[at] = chosen;
    }
}

static void run_softmax_bwd(const cpu_run *r)
{
    job j = job_of(r);
    j.probs = r->out[0];
    j.share = (float)(gradient_weight(r, 2) / (double)j.l.rows);
    workers_for(r->device->workers, j.l.rows, logits_grain(&j.l), softmax_bwd_body, &j);
}

const cpu_impl cpu_softmax_xent = {.name = "rows", .workspace = partial_bytes, .run = run_softmax};
const cpu_impl cpu_softmax_xent_bwd = {.name = "rows", .run = run_softmax_bwd};
