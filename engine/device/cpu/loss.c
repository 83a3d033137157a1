// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy and accuracy over [N,K] logits. Sums run in double, per range in order, then over
// ranges.
#include <math.h>

#include "cpu.h"
#include "simd.h"
#include "workers.h"

enum { GRAIN_ELEMENTS = 4096 };

typedef struct job {
    const float *logits;
    const int32_t *labels;
    float *probs;
    double *partial; // one per range
    int64_t classes;
    float share; // 1/N
} job;

static int64_t row_grain(int64_t classes)
{
    int64_t rows = GRAIN_ELEMENTS / classes;
    return rows < 1 ? 1 : rows;
}

static int64_t arg_max(const float *row, int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++) {
        best = row[k] > row[best] ? k : best;
    }
    return best;
}

// The loss of one sample, log sum exp(z - max) - (z_label - max): never the logarithm of a rounded
// probability.
static double softmax_row(const float *z, float *p, int64_t classes, int32_t label)
{
    const float largest = z[arg_max(z, classes)];
    double sum = 0.0;
    const double chosen = (double)z[label];
    for (int64_t k = 0; k < classes; k++) {
        p[k] = expf(z[k] - largest);
        sum += (double)p[k];
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
    double total = 0.0;
    for (int64_t n = begin; n < end; n++) {
        total += softmax_row(j->logits + n * j->classes, j->probs + n * j->classes, j->classes, j->labels[n]);
    }
    j->partial[worker] = total;
}

static uint64_t softmax_workspace(const cpu_device *device, const op_query *q)
{
    (void)q;
    return device->threads * sizeof(double);
}

static void run_softmax(const cpu_run *r)
{
    const int64_t samples = r->query->in[0].shape.dim[0], classes = r->query->in[0].shape.dim[1];
    const int64_t grain = row_grain(classes);
    job j = {.logits = r->in[0],
             .labels = r->in[1],
             .probs = r->out[0],
             .partial = r->workspace,
             .classes = classes};
    cpu_for(r->device->workers, samples, grain, softmax_body, &j);
    double total = 0.0;
    for (uint32_t k = 0; k < cpu_for_ranges(r->device->workers, samples, grain); k++) {
        total += j.partial[k];
    }
    *(float *)r->out[1] = (float)(total / (double)samples);
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
    (void)worker;
    for (int64_t n = begin; n < end; n++) {
        const int64_t at = n * j->classes + j->labels[n];
        const float chosen = (j->logits[at] - 1.0f) * j->share;
        scale_range(j->probs, j->logits, j->share, n * j->classes, (n + 1) * j->classes);
        j->probs[at] = chosen;
    }
}

static void run_softmax_bwd(const cpu_run *r)
{
    const int64_t samples = r->query->in[0].shape.dim[0], classes = r->query->in[0].shape.dim[1];
    job j = {.logits = r->in[0],
             .labels = r->in[1],
             .probs = r->out[0],
             .classes = classes,
             .share = 1.0f / (float)samples};
    j.share *= r->query->attr.scale == 0 ? 1.0f : (float)r->query->attr.scale;
    j.share *= r->query->in_count > 2 ? *(const float *)r->in[2] : 1.0f; // loss scale
    cpu_for(r->device->workers, samples, row_grain(classes), softmax_bwd_body, &j);
}

static void run_accuracy(const cpu_run *r)
{
    const int64_t samples = r->query->in[0].shape.dim[0], classes = r->query->in[0].shape.dim[1];
    const float *logits = r->in[0];
    const int32_t *labels = r->in[1];
    int32_t correct = 0;
    for (int64_t n = 0; n < samples; n++) {
        correct += arg_max(logits + n * classes, classes) == labels[n];
    }
    *(int32_t *)r->out[0] = correct;
}

const cpu_impl cpu_softmax_xent = {.name = "loops", .workspace = softmax_workspace, .run = run_softmax};
const cpu_impl cpu_softmax_xent_bwd = {.name = "loops", .run = run_softmax_bwd};
const cpu_impl cpu_accuracy = {.name = "loops", .run = run_accuracy};
