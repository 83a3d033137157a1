// SPDX-License-Identifier: Apache-2.0
// Products with whole numbers. What is rounded is rounded as the definition has it, in float32 (base/quantize.h); all else is double.
#include <math.h>
#include <string.h>

#include "base/quantize.h"
#include "device/reference/kernels.h"

void reference_quantize_int8(const reference_call *call)
{
    const int64_t rows = call->query->in[0].shape.dim[0], columns = call->query->in[0].shape.dim[1];
    const double *w = call->in[0];
    double *scale = call->out[1];
    int8_t *q = call->out[0];
    for (int64_t c = 0; c < columns; c++) {
        float largest = 0;
        for (int64_t r = 0; r < rows; r++) {
            largest = quantize_larger(largest, (float)w[r * columns + c]);
        }
        const float to = quantize_int8_scale(largest);
        for (int64_t r = 0; r < rows; r++) {
            q[r * columns + c] = quantize_int8_at((float)w[r * columns + c], to);
        }
        scale[c] = (double)to;
    }
}

// A column of a group at a time.
void reference_quantize_int4(const reference_call *call)
{
    const int64_t rows = call->query->in[0].shape.dim[0], columns = call->query->in[0].shape.dim[1];
    const int64_t pitch = (int64_t)quantize_int4_pitch((uint64_t)columns);
    const double *w = call->in[0];
    uint8_t *q = call->out[0];
    memset(q, 0, (size_t)(rows * pitch));
    for (int64_t first = 0; first < rows; first += QUANTIZE_BLOCK) {
        const int64_t count = rows - first < QUANTIZE_BLOCK ? rows - first : QUANTIZE_BLOCK;
        for (int64_t c = 0; c < columns; c++) {
            float column[QUANTIZE_BLOCK], scale;
            uint8_t halves[QUANTIZE_BLOCK];
            int8_t zero;
            for (int64_t r = 0; r < count; r++) {
                column[r] = (float)w[(first + r) * columns + c];
            }
            quantize_int4(column, (uint64_t)count, 1, halves, &scale, &zero);
            for (int64_t r = 0; r < count; r++) {
                q[(first + r) * pitch + c / 2] |= (uint8_t)(halves[r] << c % 2 * 4);
            }
            const int64_t at = first / QUANTIZE_BLOCK * columns + c;
            ((double *)call->out[1])[at] = (double)scale;
            ((int8_t *)call->out[2])[at] = zero;
        }
    }
}

typedef struct sums {
    int64_t rows, depth, units;
} sums;

static sums sums_of(const reference_call *call)
{
    const int64_t depth = call->query->in[1].shape.dim[0];
    const hr_shape *y = &call->query->out[0].shape;
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
                y[n] += (double)(q * w[k * s.units + n]);
            }
        }
        for (int64_t n = 0; n < s.units; n++) {
            y[n] /= scale[n] * (double)to;
        }
    }
    add_bias(call, 3);
}

// Weight [k, n] as a real number.
static double weight_at(const reference_call *call, int64_t k, int64_t n, int64_t units)
{
    if (call->query->op == HR_OP_DENSE_INT8_WEIGHTS) {
        return ((const int8_t *)call->in[1])[k * units + n] / ((const double *)call->in[2])[n];
    }
    const uint8_t *row = (const uint8_t *)call->in[1] + k * call->query->in[1].shape.dim[1];
    const int64_t at = k / QUANTIZE_BLOCK * units + n;
    const int step = quantize_int4_at(row, (uint64_t)n) - ((const int8_t *)call->in[3])[at];
    return step * ((const double *)call->in[2])[at];
}

void reference_dense_weights(const reference_call *call)
{
    const sums s = sums_of(call);
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    for (int64_t k = 0; k < s.depth; k++) {
        for (int64_t n = 0; n < s.units; n++) {
            const double w = weight_at(call, k, n, s.units);
            for (int64_t r = 0; r < s.rows; r++) {
                ((double *)call->out[0])[r * s.units + n] +=
                    ((const double *)call->in[0])[r * s.depth + k] * w;
            }
        }
    }
    add_bias(call, call->query->op == HR_OP_DENSE_INT8_WEIGHTS ? 3 : 4);
}
