// SPDX-License-Identifier: Apache-2.0
// Losses over rows of logits, and accuracy.
#include <math.h>

#include "kernels.h"

typedef struct logits {
    uint64_t rows, classes;
} logits;

static logits logits_of(const op_operand *operand)
{
    const hr_shape *s = &operand->shape;
    logits l = {1, (uint64_t)s->dim[s->rank - 1]};
    for (uint32_t k = 0; k + 1 < s->rank; k++) {
        l.rows *= (uint64_t)s->dim[k];
    }
    return l;
}

static uint64_t label_at(const reference_call *call, uint64_t row)
{
    return call->query->in[1].dtype == HR_U8 ? ((const uint8_t *)call->in[1])[row]
                                             : (uint64_t)((const int32_t *)call->in[1])[row];
}

static uint64_t arg_max(const double *values, uint64_t count)
{
    uint64_t best = 0;
    for (uint64_t k = 1; k < count; k++) {
        if (values[k] > values[best]) {
            best = k;
        }
    }
    return best;
}

// What every gradient of a loss is multiplied with: its weight, and the loss scale where there is one, behind `before`
// inputs.
static double gradient_weight(const reference_call *call, uint32_t before)
{
    const double weight = call->query->attr.scale == 0.0 ? 1.0 : call->query->attr.scale;
    return call->query->in_count > before ? weight * *(const double *)call->in[before] : weight;
}

// p = softmax(z / temperature), which may be z itself; returns log Σ exp(z/T − max) + max.
static double softmax(const double *z, double *p, uint64_t classes, double temperature)
{
    const double largest = z[arg_max(z, classes)] / temperature;
    double sum = 0.0;
    for (uint64_t k = 0; k < classes; k++) {
        p[k] = exp(z[k] / temperature - largest);
        sum += p[k];
    }
    for (uint64_t k = 0; k < classes; k++) {
        p[k] /= sum;
    }
    return log(sum) + largest;
}

// Σ exp(z − max)
static double exponential_sum(const double *z, uint64_t classes)
{
    const double largest = z[arg_max(z, classes)];
    double sum = 0.0;
    for (uint64_t k = 0; k < classes; k++) {
        sum += exp(z[k] - largest);
    }
    return sum;
}

// loss = mean of log Σ exp(z) − z_label: never the logarithm of a rounded probability.
void reference_softmax_xent(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    double *loss = call->out[1], total = 0.0;
    for (uint64_t n = 0; n < l.rows; n++) {
        const double *z = (const double *)call->in[0] + n * l.classes;
        const double chosen = z[label_at(call, n)];
        total += softmax(z, (double *)call->out[0] + n * l.classes, l.classes, 1.0) - chosen;
    }
    *loss = total / (double)l.rows;
}

void reference_softmax_xent_bwd(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    const double weight = gradient_weight(call, 2), *p = call->in[0];
    double *dz = call->out[0];
    for (uint64_t i = 0; i < l.rows * l.classes; i++) {
        const double target = i % l.classes == label_at(call, i / l.classes) ? 1.0 : 0.0;
        dz[i] = weight * (p[i] - target) / (double)l.rows;
    }
}

void reference_softmax_xent_stream(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    double *most = call->out[0], *rsum = call->out[1], *loss = call->out[2], total = 0.0;
    for (uint64_t n = 0; n < l.rows; n++) {
        const double *z = (const double *)call->in[0] + n * l.classes;
        const double sum = exponential_sum(z, l.classes);
        most[n] = z[arg_max(z, l.classes)];
        rsum[n] = 1.0 / sum;
        total += log(sum) + most[n] - z[label_at(call, n)];
    }
    *loss = total / (double)l.rows;
}

// What every row's gradient takes. `rounds`: probabilities are float32, as SOFTMAX_XENT keeps them.
typedef struct row_share {
    double weight, rows;
    bool rounds;
} row_share;

static row_share share_of(const reference_call *call, uint32_t before, bool rounds)
{
    return (row_share){.weight = gradient_weight(call, before),
                       .rows = (double)logits_of(&call->query->in[0]).rows,
                       .rounds = rounds};
}

// May lie on its logits.
static void gradient_row(const double *z, double *dz, uint64_t classes, uint64_t label, row_share s)
{
    const double largest = z[arg_max(z, classes)], sum = exponential_sum(z, classes);
    for (uint64_t k = 0; k < classes; k++) {
        const double p = exp(z[k] - largest) / sum;
        dz[k] = s.weight * ((s.rounds ? (double)(float)p : p) - (k == label ? 1.0 : 0.0)) / s.rows;
    }
}

// The rows' numbers are made again, and not read: with them probabilities would have other bits than SOFTMAX_XENT's.
void reference_softmax_xent_stream_bwd(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    const row_share share = share_of(call, 4, call->query->in[3].dtype == HR_F32);
    for (uint64_t n = 0; n < l.rows; n++) {
        const uint64_t at = n * l.classes;
        gradient_row((const double *)call->in[0] + at, (double *)call->out[0] + at, l.classes,
                     label_at(call, n), share);
    }
}

void reference_softmax_xent_gradient(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    const row_share share = share_of(call, 2, false);
    double *loss = call->out[1], total = 0.0;
    for (uint64_t n = 0; n < l.rows; n++) {
        const double *z = (const double *)call->in[0] + n * l.classes;
        total += log(exponential_sum(z, l.classes)) + z[arg_max(z, l.classes)] - z[label_at(call, n)];
        gradient_row(z, (double *)call->out[0] + n * l.classes, l.classes, label_at(call, n), share);
    }
    *loss = total / (double)l.rows;
}

void reference_accuracy(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    int32_t *correct = call->out[0];
    *correct = 0;
    for (uint64_t n = 0; n < l.rows; n++) {
        *correct += arg_max((const double *)call->in[0] + n * l.classes, l.classes) == label_at(call, n);
    }
}

void reference_mse(const reference_call *call)
{
    const double *a = call->in[0], *b = call->in[1];
    double *loss = call->out[0], total = 0.0;
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        total += (a[i] - b[i]) * (a[i] - b[i]);
    }
    *loss = total / (double)call->in_count[0];
}

void reference_mse_bwd(const reference_call *call)
{
    const double weight = gradient_weight(call, 2), *a = call->in[0], *b = call->in[1];
    double *da = call->out[0];
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        da[i] = weight * 2.0 * (a[i] - b[i]) / (double)call->in_count[0];
    }
}

// T² · mean of Σ q (log q − log p), with q = softmax(teacher/T) and p = softmax(student/T).
void reference_kl(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    const double t = call->query->attr.epsilon;
    double *loss = call->out[1], total = 0.0;
    for (uint64_t n = 0; n < l.rows; n++) {
        const double *student = (const double *)call->in[0] + n * l.classes;
        const double *teacher = (const double *)call->in[1] + n * l.classes;
        double *p = (double *)call->out[0] + n * l.classes;
        double apart = 0.0, sum = 0.0;
        const double most = teacher[arg_max(teacher, l.classes)] / t;
        for (uint64_t k = 0; k < l.classes; k++) {
            const double weight = exp(teacher[k] / t - most);
            sum += weight;
            apart += weight * (teacher[k] - student[k]) / t;
        }
        const double student_lse = softmax(student, p, l.classes, t);
        total += apart / sum - (log(sum) + most) + student_lse;
    }
    *loss = t * t * total / (double)l.rows;
}

void reference_kl_bwd(const reference_call *call)
{
    const logits l = logits_of(&call->query->in[0]);
    const double t = call->query->attr.epsilon, weight = gradient_weight(call, 2) * t / (double)l.rows;
    for (uint64_t n = 0; n < l.rows; n++) {
        const double *p = (const double *)call->in[0] + n * l.classes;
        const double *teacher = (const double *)call->in[1] + n * l.classes;
        double *ds = (double *)call->out[0] + n * l.classes;
        double sum = 0.0;
        const double most = teacher[arg_max(teacher, l.classes)] / t;
        for (uint64_t k = 0; k < l.classes; k++) {
            sum += exp(teacher[k] / t - most);
        }
        for (uint64_t k = 0; k < l.classes; k++) {
            ds[k] = weight * (p[k] - exp(teacher[k] / t - most) / sum);
        }
    }
}

// Of one element: p, 1 − p, −t log p − (1−t) log(1−p), what is amiss of p_t, and what the element is multiplied with.
typedef struct binary {
    double p, rest, entropy, amiss, weight;
} binary;

static binary binary_of(const op_attr *a, double z, double t)
{
    const double e = exp(-fabs(z)), near = 1.0 / (1.0 + e), far = e / (1.0 + e);
    binary b = {.p = z < 0.0 ? far : near, .rest = z < 0.0 ? near : far};
    b.entropy = fmax(z, 0.0) - z * t + log1p(e);
    b.amiss = b.p * (1.0 - t) + b.rest * t;
    b.weight = a->momentum == 0.0 ? 1.0 : a->momentum * t + (1.0 - a->momentum) * (1.0 - t);
    b.weight *= a->rate == 0.0 ? 1.0 : pow(b.amiss, a->rate);
    return b;
}

void reference_binary(const reference_call *call)
{
    const double *z = call->in[0], *t = call->in[1];
    double *loss = call->out[0], total = 0.0;
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        const binary b = binary_of(&call->query->attr, z[i], t[i]);
        total += b.weight * b.entropy;
    }
    *loss = total / (double)call->in_count[0];
}

// d entropy = p − t = p(1−t) − (1−p)t; d amiss^r = r amiss^r (1−2t) p (1−p) / amiss.
void reference_binary_bwd(const reference_call *call)
{
    const double share = gradient_weight(call, 2) / (double)call->in_count[0], *z = call->in[0],
                 *t = call->in[1];
    double *dz = call->out[0];
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        const binary b = binary_of(&call->query->attr, z[i], t[i]);
        const double slope = b.amiss > 0.0 ? (1.0 - 2.0 * t[i]) * b.p * b.rest / b.amiss : 0.0;
        dz[i] = share * b.weight *
                (b.p * (1.0 - t[i]) - b.rest * t[i] + call->query->attr.rate * slope * b.entropy);
    }
}
