// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers, as real numbers (ops/held.h). A double holds every quotient and product well
// enough that rounding it is rounding the true one: float32 has the bits of base/quantize.c and base/nf4.c.
#include "ops/held.h"

#include "base/nf4.h"
#include "base/quantize.h"
#include "device/reference/kernels.h"

void reference_dequantize(const reference_call *call)
{
    const hr_shape *shape = &call->query->out[0].shape;
    const uint64_t columns = (uint64_t)shape->dim[shape->rank - 1], pitch = quantize_int4_pitch(columns);
    const double *scale = call->in[1];
    double *w = call->out[0];
    for (uint64_t k = 0; k < call->out_count[0]; k++) {
        const uint64_t row = k / columns, column = k % columns;
        const uint64_t group = row / QUANTIZE_BLOCK * columns + column;
        if (call->query->attr.rule == HELD_INT8) {
            w[k] = ((const int8_t *)call->in[0])[k] / scale[column];
        } else if (call->query->attr.rule == HELD_INT4) {
            w[k] = (quantize_int4_at((const uint8_t *)call->in[0] + row * pitch, column) -
                    ((const int8_t *)call->in[2])[group]) *
                   scale[group];
        } else {
            w[k] = (double)nf4_levels[nf4_at(call->in[0], k)] * scale[k / NF4_BLOCK];
        }
    }
}
