// SPDX-License-Identifier: Apache-2.0
// Softmax, and attention row by row: every score is computed where it is needed, none is kept.
#include "ops/attention.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "ops/dropout.h"

static bool is_causal(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_CAUSAL) != 0;
}

// Columns that row i of [...,rows,columns] sees.
static int64_t seen(const op_query *q, int64_t i, int64_t columns)
{
    return is_causal(q) && i + 1 < columns ? i + 1 : columns;
}

typedef struct rows {
    int64_t count, per_matrix, columns;
} rows;

static rows rows_of(const hr_shape *s, uint64_t elements)
{
    const int64_t columns = s->dim[s->rank - 1];
    return (rows){(int64_t)elements / columns, s->rank > 1 ? s->dim[s->rank - 2] : 1, columns};
}

static void softmax_row(const double *x, double *y, int64_t visible, int64_t columns)
{
    double largest = x[0], sum = 0.0;
    for (int64_t k = 1; k < visible; k++) {
        largest = x[k] > largest ? x[k] : largest;
    }
    for (int64_t k = 0; k < visible; k++) {
        y[k] = exp(x[k] - largest);
        sum += y[k];
    }
    for (int64_t k = 0; k < columns; k++) {
        y[k] = k < visible ? y[k] / sum : 0.0;
    }
}

void reference_softmax(const reference_call *call)
{
    const rows r = rows_of(&call->query->in[0].shape, call->in_count[0]);
    for (int64_t i = 0; i < r.count; i++) {
        softmax_row((const double *)call->in[0] + i * r.columns, (double *)call->out[0] + i * r.columns,
                    seen(call->query, i % r.per_matrix, r.columns), r.columns);
    }
}

void reference_softmax_bwd(const reference_call *call)
{
    const rows r = rows_of(&call->query->in[0].shape, call->in_count[0]);
    for (int64_t i = 0; i < r.count; i++) {
        const double *y = (const double *)call->in[0] + i * r.columns;
        const double *dy = (const double *)call->in[1] + i * r.columns;
        double *dx = (double *)call->out[0] + i * r.columns, sum = 0.0;
        for (int64_t k = 0; k < r.columns; k++) {
            sum += y[k] * dy[k];
        }
        for (int64_t k = 0; k < r.columns; k++) {
            dx[k] = y[k] * (dy[k] - sum);
        }
    }
}

// ---- streaming attention ----------------------------------------------------------------------------------

typedef struct sizes {
    op_attention of;
    double scale;
} sizes;

static sizes sizes_of(const op_query *q)
{
    const op_attention a = op_attention_of(q);
    return (sizes){a, op_attention_scale(&q->attr, a.features)};
}

// Where row i of head h of sample n begins in [N,length,…], whose rows are `row` apart.
static int64_t place(const sizes *s, int64_t row, int64_t length, int64_t n, int64_t h, int64_t i)
{
    return (n * length + i) * row + h * s->of.features;
}

// Sequence k of queries, keys and values, or of their gradients.
static double *sequence(const sizes *s, void *const *operands, int64_t k)
{
    return s->of.joined ? (double *)operands[0] + k * s->of.width : operands[k];
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) {
        sum += a[k] * b[k];
    }
    return sum;
}

static void add_scaled(double scale, const double *from, double *to, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        to[k] += scale * from[k];
    }
}

// Which weights of a query are kept, and what they are multiplied with.
typedef struct dropping {
    dropout_draw draw;
    bool drops;
    uint64_t sample, first; // of key 0
} dropping;

static dropping dropping_of(const reference_call *call, const sizes *s, int64_t n, int64_t h, int64_t i)
{
    const bool drops = call->query->attr.rate > 0.0;
    return (dropping){.drops = drops,
                      .draw = drops ? dropout_begin(&call->query->attr, call->io->seed, call->io->update)
                                    : (dropout_draw){.threshold = 0},
                      .sample = drops ? call->io->first_sample + (uint64_t)n : 0,
                      .first = (uint64_t)((h * s->of.queries + i) * s->of.keys)};
}

static double factor_of(const dropping *d, int64_t key)
{
    return !d->drops                                                      ? 1.0
           : dropout_keeps(&d->draw, d->sample, d->first + (uint64_t)key) ? d->draw.scale
                                                                          : 0.0;
}

// One query: y and log Σ exp of its scores over the first `visible` keys.
static double attend(const sizes *s, const double *q, const double *k, const double *v, int64_t visible,
                     const dropping *d, double *y)
{
    double largest = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < visible; j++) {
        const double score = s->scale * dot(q, k + j * s->of.row, s->of.features);
        largest = score > largest ? score : largest;
    }
    memset(y, 0, (size_t)s->of.features * sizeof *y);
    for (int64_t j = 0; j < visible; j++) {
        const double weight = exp(s->scale * dot(q, k + j * s->of.row, s->of.features) - largest);
        sum += weight;
        add_scaled(weight * factor_of(d, j), v + j * s->of.row, y, s->of.features);
    }
    for (int64_t f = 0; f < s->of.features; f++) {
        y[f] /= sum;
    }
    return largest + log(sum);
}

void reference_attention(const reference_call *call)
{
    const sizes s = sizes_of(call->query);
    double *lse = call->out[1];
    for (int64_t row = 0; row < s.of.samples * s.of.heads * s.of.queries; row++) {
        const int64_t i = row % s.of.queries, h = row / s.of.queries % s.of.heads,
                      n = row / s.of.queries / s.of.heads;
        const int64_t at = place(&s, s.of.row, s.of.queries, n, h, i),
                      first = place(&s, s.of.row, s.of.keys, n, h, 0);
        const dropping d = dropping_of(call, &s, n, h, i);
        lse[row] = attend(&s, sequence(&s, call->in, 0) + at, sequence(&s, call->in, 1) + first,
                          sequence(&s, call->in, 2) + first, seen(call->query, i, s.of.keys), &d,
                          (double *)call->out[0] + place(&s, s.of.width, s.of.queries, n, h, i));
    }
}

// What query i of one head gives to dq, dk and dv. `at` is its place, `first` that of key 0, `at_y` its place in y.
static void attend_bwd(const reference_call *call, const sizes *s, int64_t at, int64_t first, int64_t at_y,
                       int64_t visible, const dropping *d, double lse)
{
    const double *q = sequence(s, call->in, 0) + at, *k = sequence(s, call->in, 1) + first;
    const double *v = sequence(s, call->in, 2) + first, *y = (const double *)call->in[s->of.y] + at_y;
    const double *dy = (const double *)call->in[s->of.dy] + at_y;
    double *dq = sequence(s, call->out, 0) + at, *dk = sequence(s, call->out, 1) + first;
    double *dv = sequence(s, call->out, 2) + first;
    const double mean = dot(dy, y, s->of.features); // Σ over keys of weight * dweight
    for (int64_t j = 0; j < visible; j++) {
        const int64_t key = j * s->of.row;
        const double weight = exp(s->scale * dot(q, k + key, s->of.features) - lse), factor = factor_of(d, j);
        const double ds = s->scale * weight * (factor * dot(dy, v + key, s->of.features) - mean);
        add_scaled(weight * factor, dy, dv + key, s->of.features);
        add_scaled(ds, q, dk + key, s->of.features);
        add_scaled(ds, k + key, dq, s->of.features);
    }
}

void reference_attention_bwd(const reference_call *call)
{
    const sizes s = sizes_of(call->query);
    const double *lse = call->in[s.of.lse];
    for (uint32_t k = 0; k < call->query->out_count; k++) {
        memset(call->out[k], 0, call->out_count[k] * sizeof(double));
    }
    for (int64_t row = 0; row < s.of.samples * s.of.heads * s.of.queries; row++) {
        const int64_t i = row % s.of.queries, h = row / s.of.queries % s.of.heads,
                      n = row / s.of.queries / s.of.heads;
        const dropping d = dropping_of(call, &s, n, h, i);
        attend_bwd(call, &s, place(&s, s.of.row, s.of.queries, n, h, i),
                   place(&s, s.of.row, s.of.keys, n, h, 0), place(&s, s.of.width, s.of.queries, n, h, i),
                   seen(call->query, i, s.of.keys), &d, lse[row]);
    }
}

void reference_rotary(const reference_call *call)
{
    const op_query *q = call->query;
    const hr_shape *s = &q->in[0].shape;
    const int64_t features = s->dim[2] / q->attr.heads, half = features / 2;
    const double *x = call->in[0], direction = q->op == HR_OP_ROTARY ? 1.0 : -1.0;
    double *y = call->out[0];
    for (int64_t i = 0; i < (int64_t)call->out_count[0] / 2; i++) {
        const int64_t head = i / half, pair = i % half, at = head * features + pair;
        const double place = (double)(head / q->attr.heads % s->dim[1]);
        const double angle = direction * place * pow(q->attr.base, -2.0 * (double)pair / (double)features);
        const double low = x[at], high = x[at + half];
        y[at] = low * cos(angle) - high * sin(angle);
        y[at + half] = high * cos(angle) + low * sin(angle);
    }
}
