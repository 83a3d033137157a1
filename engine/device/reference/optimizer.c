// SPDX-License-Identifier: Apache-2.0
// Updates of variables, and what happens to gradients and averages around them. Formulas are Keras 3's
// (keras/src/optimizers) but for the codes of ADAM8BIT.
#include <math.h>

#include "base/code8.h"
#include "kernels.h"
#include "ops/prune.h"

static const double adafactor_clip = 1.0;

// The last operand may say that the gradients of this step were not finite: then nothing changes.
static bool is_skipped(const reference_call *call)
{
    const uint32_t finite = update_finite_operand(call->query);
    return finite != 0 && *(const int32_t *)call->in[finite] == 0;
}

// The last of an update.
static void mask_weights(const reference_call *call)
{
    double *w = call->in[0];
    const double *mask = call->in[update_mask_operand(call->query)];
    const bool masks = update_masks_at(&call->query->attr, prune_update(call->io));
    for (uint64_t i = 0; masks && i < call->in_count[0]; i++) {
        w[i] = mask[i] == 0.0 ? 0.0 : w[i];
    }
}

// Decoupled weight decay: with the plain learning rate, before anything else.
static void decay(const reference_call *call)
{
    double *w = call->in[0];
    const double kept = 1.0 - call->io->learning_rate * call->query->attr.rate;
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        w[i] *= kept;
    }
}

void reference_sgd(const reference_call *call)
{
    double *w = call->in[0];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        w[i] -= call->io->learning_rate * g[i];
    }
    mask_weights(call);
}

void reference_momentum(const reference_call *call)
{
    double *w = call->in[0], *v = call->in[2];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        v[i] = call->query->attr.momentum * v[i] - call->io->learning_rate * g[i];
        w[i] += v[i];
    }
    mask_weights(call);
}

void reference_rmsprop(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    double *w = call->in[0], *v = call->in[2];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        v[i] = a->beta1 * v[i] + (1.0 - a->beta1) * g[i] * g[i];
        w[i] -= call->io->learning_rate * g[i] / sqrt(v[i] + a->epsilon);
    }
    mask_weights(call);
}

void reference_lion(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    double *w = call->in[0], *m = call->in[2];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        const double direction = a->beta1 * m[i] + (1.0 - a->beta1) * g[i];
        w[i] -= call->io->learning_rate * (double)((direction > 0.0) - (direction < 0.0));
        m[i] = a->beta2 * m[i] + (1.0 - a->beta2) * g[i];
    }
    mask_weights(call);
}

// ---- Adam -----------------------------------------------------------------------------------------------------

// What a weight with these moments loses: the textbook's corrected moments in PyTorch's form, the corrected rate in Keras'.
static double adam_change(const reference_call *call, double m, double v)
{
    const op_attr *a = &call->query->attr;
    const double t = (double)call->io->update, lr = call->io->learning_rate;
    const double left1 = 1.0 - pow(a->beta1, t), left2 = 1.0 - pow(a->beta2, t);
    return a->flags & OP_FLAG_TORCH ? lr * (m / left1) / (sqrt(v / left2) + a->epsilon)
                                    : lr * sqrt(left2) / left1 * m / (sqrt(v) + a->epsilon);
}

void reference_adam(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    double *w = call->in[0], *m = call->in[2], *v = call->in[3];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        m[i] += (g[i] - m[i]) * (1.0 - a->beta1);
        v[i] += (g[i] * g[i] - v[i]) * (1.0 - a->beta2);
        w[i] -= adam_change(call, m[i], v[i]);
    }
    mask_weights(call);
}

typedef struct coded_block {
    double m[CODE8_BLOCK], v[CODE8_BLOCK];
    double m_scale, v_scale;
    uint64_t first, count;
} coded_block;

static void decode(const reference_call *call, coded_block *b)
{
    float m_value[CODE8_VALUES], v_value[CODE8_VALUES];
    code8_table(CODE8_SIGNED, m_value);
    code8_table(CODE8_UNSIGNED, v_value);
    for (uint64_t i = 0; i < b->count; i++) {
        b->m[i] = (double)m_value[((const uint8_t *)call->in[2])[b->first + i]] * b->m_scale;
        b->v[i] = (double)v_value[((const uint8_t *)call->in[3])[b->first + i]] * b->v_scale;
    }
}

// A second moment that is not zero stays so: it divides.
static void encode(const reference_call *call, coded_block *b)
{
    float m_value[CODE8_VALUES], v_value[CODE8_VALUES];
    code8_table(CODE8_SIGNED, m_value);
    code8_table(CODE8_UNSIGNED, v_value);
    b->m_scale = b->v_scale = 0.0;
    for (uint64_t i = 0; i < b->count; i++) {
        b->m_scale = fmax(b->m_scale, fabs(b->m[i]));
        b->v_scale = fmax(b->v_scale, b->v[i]);
    }
    for (uint64_t i = 0; i < b->count; i++) {
        const double m = b->m_scale > 0.0 ? b->m[i] / b->m_scale : 0.0;
        const uint8_t v = code8_nearest(v_value, b->v_scale > 0.0 ? b->v[i] / b->v_scale : 0.0);
        ((uint8_t *)call->in[2])[b->first + i] = code8_nearest(m_value, m);
        ((uint8_t *)call->in[3])[b->first + i] = v == 0 && b->v[i] > 0.0 ? 1 : v;
    }
}

void reference_adam8bit(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    const uint64_t blocks = call->in_count[4] / 2, elements = call->in_count[0];
    double *w = call->in[0], *scales = call->in[4];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    for (uint64_t k = 0; k < blocks; k++) {
        coded_block b = {.m_scale = scales[k], .v_scale = scales[blocks + k], .first = k * CODE8_BLOCK};
        b.count = elements - b.first < CODE8_BLOCK ? elements - b.first : CODE8_BLOCK;
        decode(call, &b);
        for (uint64_t i = 0; i < b.count; i++) {
            b.m[i] += (g[b.first + i] - b.m[i]) * (1.0 - a->beta1);
            b.v[i] += (g[b.first + i] * g[b.first + i] - b.v[i]) * (1.0 - a->beta2);
            w[b.first + i] -= adam_change(call, b.m[i], b.v[i]);
        }
        encode(call, &b);
        scales[k] = b.m_scale;
        scales[blocks + k] = b.v_scale;
    }
}

// ---- Adafactor ------------------------------------------------------------------------------------------------

// The variable as matrices of its last two dimensions, and where the second moment of an element comes from.
typedef struct factored {
    uint64_t matrices, rows, columns;
    double *r, *c, *v; // v NULL: never held; r and c NULL: a vector
} factored;

static factored factored_of(const reference_call *call)
{
    const hr_shape *s = &call->query->in[0].shape;
    const bool is_vector = call->query->out_count == 2;
    factored f = {.rows = 1, .columns = (uint64_t)s->dim[s->rank - 1]};
    if (is_vector) {
        f.matrices = call->in_count[0] / f.columns;
        f.v = call->in[2];
        return f;
    }
    f.rows = (uint64_t)s->dim[s->rank - 2];
    f.matrices = call->in_count[0] / (f.rows * f.columns);
    f.r = call->in[2];
    f.c = call->in[3];
    f.v = call->query->out_count == 4 ? call->in[4] : NULL;
    return f;
}

static double mean_of(const double *values, uint64_t count)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

static double root_mean_square(const double *values, uint64_t count)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        sum += values[i] * values[i];
    }
    return sqrt(sum / (double)count);
}

static void update_factors(const factored *f, const double *g, double keep, double epsilon)
{
    for (uint64_t k = 0; k < f->matrices * f->rows; k++) {
        double sum = 0.0;
        for (uint64_t j = 0; j < f->columns; j++) {
            sum += g[k * f->columns + j] * g[k * f->columns + j] + epsilon;
        }
        f->r[k] = keep * f->r[k] + (1.0 - keep) * sum / (double)f->columns;
    }
    for (uint64_t k = 0; k < f->matrices * f->columns; k++) {
        const double *column = g + k / f->columns * f->rows * f->columns + k % f->columns;
        double sum = 0.0;
        for (uint64_t i = 0; i < f->rows; i++) {
            sum += column[i * f->columns] * column[i * f->columns] + epsilon;
        }
        f->c[k] = keep * f->c[k] + (1.0 - keep) * sum / (double)f->rows;
    }
}

// w -= rate * u, u = g / sqrt(second moment), which is written where it is held; the sum of u².
static double apply(const factored *f, const double *g, double *w, double rate)
{
    const uint64_t size = f->rows * f->columns;
    double squares = 0.0;
    for (uint64_t k = 0; k < f->matrices; k++) {
        const double mean = f->r != NULL ? mean_of(f->r + k * f->rows, f->rows) : 1.0;
        for (uint64_t i = k * size; i < (k + 1) * size; i++) {
            const double moment =
                f->r != NULL ? f->r[i / f->columns] / mean * f->c[k * f->columns + i % f->columns] : f->v[i];
            if (f->v != NULL) {
                f->v[i] = moment;
            }
            w[i] -= rate * g[i] / sqrt(moment);
            squares += g[i] * g[i] / moment;
        }
    }
    return squares;
}

void reference_adafactor(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    const factored f = factored_of(call);
    const uint64_t count = call->in_count[0];
    const double t = (double)call->io->update, keep = 1.0 - pow(t, a->beta2);
    double *w = call->in[0];
    const double *g = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    decay(call);
    const double rate =
        fmin(call->io->learning_rate, 1.0 / sqrt(t)) * fmax(a->beta1, root_mean_square(w, count));
    if (f.r != NULL) {
        update_factors(&f, g, keep, a->epsilon);
    }
    for (uint64_t i = 0; f.r == NULL && i < count; i++) {
        f.v[i] = keep * f.v[i] + (1.0 - keep) * (g[i] * g[i] + a->epsilon);
    }
    const double clip = fmax(1.0, sqrt(apply(&f, g, w, 0.0) / (double)count) / adafactor_clip);
    (void)apply(&f, g, w, rate / clip);
}

// ---- around the update ----------------------------------------------------------------------------------------

void reference_square_sum(const reference_call *call)
{
    const double *g = call->in[0];
    double *sum = call->out[0];
    *sum = call->query->in_count > 1 ? *sum : 0.0;
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        *sum += g[i] * g[i];
    }
}

void reference_clip(const reference_call *call)
{
    const double *g = call->in[0], norm = sqrt(*(const double *)call->in[1]);
    const double factor = fmin(1.0, call->query->attr.epsilon / (norm + 1e-6));
    double *clipped = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        clipped[i] = g[i] * factor;
    }
}

void reference_ema(const reference_call *call)
{
    const double momentum = call->io->update > 1 ? call->query->attr.momentum : 0.0;
    double *e = call->in[0];
    const double *w = call->in[1];
    if (is_skipped(call)) {
        return;
    }
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        e[i] = momentum * e[i] + (1.0 - momentum) * w[i];
    }
}

void reference_accumulate(const reference_call *call)
{
    double *sum = call->in[0];
    const double *g = call->in[1];
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        sum[i] += g[i];
    }
}
