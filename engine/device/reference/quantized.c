// SPDX-License-Identifier: Apache-2.0
// Products with whole numbers, and lookups of them. What is rounded is rounded as the definition has it, in float32 (base/quantize.h); all else is double.
#include <math.h>
#include <string.h>

#include "base/quantize.h"
#include "device/reference/kernels.h"

static bool is_turned(const reference_call *call)
{
    return (call->query->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

// A matrix as columns that have scales of their own: of a table they are its rows.
typedef struct columns {
    int64_t count, depth, step, next; // from one number of a column to the next; from a column to the next
} columns;

static columns columns_of(const reference_call *call)
{
    const int64_t rows = call->query->in[0].shape.dim[0], places = call->query->in[0].shape.dim[1];
    return is_turned(call) ? (columns){rows, places, 1, places} : (columns){places, rows, places, 1};
}

void reference_quantize_int8(const reference_call *call)
{
    const columns o = columns_of(call);
    const double *w = call->in[0];
    double *scale = call->out[1];
    int8_t *q = call->out[0];
    for (int64_t c = 0; c < o.count; c++) {
        float largest = 0;
        for (int64_t k = 0; k < o.depth; k++) {
            largest = quantize_larger(largest, (float)w[c * o.next + k * o.step]);
        }
        const float to = quantize_int8_scale(largest);
        for (int64_t k = 0; k < o.depth; k++) {
            q[c * o.next + k * o.step] = quantize_int8_at((float)w[c * o.next + k * o.step], to);
        }
        scale[c] = (double)to;
    }
}

// The half byte of a number of the matrix.
static void put_half(const reference_call *call, int64_t at, uint8_t half)
{
    const int64_t places = call->query->in[0].shape.dim[1];
    const int64_t pitch = (int64_t)quantize_int4_pitch((uint64_t)places);
    uint8_t *q = call->out[0];
    q[at / places * pitch + at % places / 2] |= (uint8_t)(half << at % places % 2 * 4);
}

// A group of a column at a time.
void reference_quantize_int4(const reference_call *call)
{
    const columns o = columns_of(call);
    const double *w = call->in[0];
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)o.depth);
    memset(call->out[0], 0, call->out_count[0]);
    for (int64_t g = 0; g < groups * o.count; g++) {
        const int64_t c = g / groups, first = g % groups * QUANTIZE_BLOCK;
        const int64_t count = o.depth - first < QUANTIZE_BLOCK ? o.depth - first : QUANTIZE_BLOCK;
        float column[QUANTIZE_BLOCK], scale;
        uint8_t halves[QUANTIZE_BLOCK];
        int8_t zero;
        for (int64_t k = 0; k < count; k++) {
            column[k] = (float)w[c * o.next + (first + k) * o.step];
        }
        quantize_int4(column, (uint64_t)count, 1, halves, &scale, &zero);
        for (int64_t k = 0; k < count; k++) {
            put_half(call, c * o.next + (first + k) * o.step, halves[k]);
        }
        const int64_t at = is_turned(call) ? g : g % groups * o.count + c;
        ((double *)call->out[1])[at] = (double)scale;
        ((int8_t *)call->out[2])[at] = zero;
    }
}

typedef struct sums {
    int64_t rows, depth, units;
} sums;

static sums sums_of(const reference_call *call)
{
    const hr_shape *x = &call->query->in[0].shape, *y = &call->query->out[0].shape;
    const int64_t depth = x->dim[x->rank - 1];
    return (sums){(int64_t)call->in_count[0] / depth, depth, y->dim[y->rank - 1]};
}

static void add_bias(const reference_call *call, uint32_t k)
{
    const sums s = sums_of(call);
    for (int64_t n = 0; call->query->in_count > k && n < s.rows * s.units; n++) {
        ((double *)call->out[0])[n] += ((const double *)call->in[k])[n % s.units];
    }
    reference_act(call);
}

void reference_dense_int8(const reference_call *call)
{
    const sums s = sums_of(call);
    const int8_t *w = call->in[1];
    const double *scale = call->in[2];
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = (const double *)call->in[0] + r * s.depth;
        double *y = (double *)call->out[0] + r * s.units;
        float largest = 0;
        for (int64_t k = 0; k < s.depth; k++) {
            largest = quantize_larger(largest, (float)x[k]);
        }
        const float to = quantize_int8_scale(largest);
        memset(y, 0, (size_t)s.units * sizeof *y);
        for (int64_t k = 0; k < s.depth; k++) {
            const int8_t q = quantize_int8_at((float)x[k], to);
            for (int64_t n = 0; n < s.units; n++) {
                y[n] += (double)(q * w[is_turned(call) ? n * s.depth + k : k * s.units + n]);
            }
        }
        for (int64_t n = 0; n < s.units; n++) {
            y[n] /= scale[n] * (double)to;
        }
    }
    add_bias(call, 3);
}

// Place [row, place] of a packed matrix, and the group of its scale.
static double four_at(const reference_call *call, int64_t row, int64_t place, int64_t group)
{
    const uint8_t *bytes = (const uint8_t *)call->in[1] + row * call->query->in[1].shape.dim[1];
    const int step = quantize_int4_at(bytes, (uint64_t)place) - ((const int8_t *)call->in[3])[group];
    return step * ((const double *)call->in[2])[group];
}

// Weight [k, n] as a real number.
static double weight_at(const reference_call *call, const sums *s, int64_t k, int64_t n)
{
    const bool turned = is_turned(call);
    if (call->query->op == HR_OP_DENSE_INT8_WEIGHTS) {
        const int64_t at = turned ? n * s->depth + k : k * s->units + n;
        return ((const int8_t *)call->in[1])[at] / ((const double *)call->in[2])[n];
    }
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)s->depth), of = k / QUANTIZE_BLOCK;
    return turned ? four_at(call, n, k, n * groups + of) : four_at(call, k, n, of * s->units + n);
}

void reference_dense_weights(const reference_call *call)
{
    const sums s = sums_of(call);
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    for (int64_t k = 0; k < s.depth; k++) {
        for (int64_t n = 0; n < s.units; n++) {
            const double w = weight_at(call, &s, k, n);
            for (int64_t r = 0; r < s.rows; r++) {
                ((double *)call->out[0])[r * s.units + n] +=
                    ((const double *)call->in[0])[r * s.depth + k] * w;
            }
        }
    }
    add_bias(call, call->query->op == HR_OP_DENSE_INT8_WEIGHTS ? 3 : 4);
}

// A number outside the table reads as zeros.
void reference_embedding_int8(const reference_call *call)
{
    const int32_t *ids = call->in[0];
    const int64_t entries = call->query->in[1].shape.dim[0], features = call->query->in[1].shape.dim[1];
    for (int64_t n = 0; n < (int64_t)call->out_count[0]; n++) {
        const int64_t row = ids[n / features];
        const bool found = row >= 0 && row < entries;
        const double number = found ? ((const int8_t *)call->in[1])[row * features + n % features] : 0;
        ((double *)call->out[0])[n] = found ? number / ((const double *)call->in[2])[row] : 0;
    }
}

void reference_embedding_int4(const reference_call *call)
{
    const int32_t *ids = call->in[0];
    const int64_t entries = call->query->in[1].shape.dim[0], features = call->query->attr.count;
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)features);
    for (int64_t n = 0; n < (int64_t)call->out_count[0]; n++) {
        const int64_t row = ids[n / features], place = n % features;
        const bool found = row >= 0 && row < entries;
        ((double *)call->out[0])[n] =
            found ? four_at(call, row, place, row * groups + place / QUANTIZE_BLOCK) : 0;
    }
}
