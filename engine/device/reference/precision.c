// SPDX-License-Identifier: Apache-2.0
// Casts, and what keeps float16 gradients in range.
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "ops/loss_scale.h"

// The device widened the input; it rounds the output to its type.
void reference_cast(const reference_call *call)
{
    memcpy(call->out[0], call->in[0], call->out_count[0] * sizeof(double));
}

// A float32 rounded from this quotient is the float32 quotient: double has more than twice its digits.
void reference_normalise(const reference_call *call)
{
    const uint8_t *bytes = call->in[0];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = bytes[i] / 255.0;
    }
}

// Counts begin anew where the verdict is not among the operands.
void reference_finite(const reference_call *call)
{
    const double *g = call->in[0];
    int32_t *finite = call->out[0];
    double *row = (double *)call->out[1] + 3 * (uint64_t)call->query->attr.slot;
    if (call->query->in_count == 1) {
        memset(call->out[1], 0, call->out_count[1] * sizeof(double));
        *finite = 1;
    }
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        const double size = fabs(g[i]);
        row[0] += size > 0.0 && size < OP_HALF_FLUSHED;
        row[1] += !(size <= OP_HALF_LARGEST);
        *finite &= isfinite(g[i]) != 0;
    }
    row[2] += (double)call->in_count[0];
}

void reference_unscale(const reference_call *call)
{
    double *g = call->in[0];
    const double scale = (call->query->attr.scale == 0 ? 1.0 : call->query->attr.scale) *
                         (call->query->in_count > 1 ? *(const double *)call->in[1] : 1.0);
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        g[i] /= scale;
    }
}

void reference_scale_update(const reference_call *call)
{
    double *scale = call->in[0];
    int32_t *clean = call->in[1];
    float narrow = (float)*scale;
    op_scale_update(&call->query->attr, *(const int32_t *)call->in[2] != 0, &narrow, clean);
    *scale = (double)narrow;
}

void reference_read_finite(const reference_call *call)
{
    call->io->nonfinite = *(const int32_t *)call->in[0] == 0;
    call->io->loss_scale = call->query->in_count > 1 ? (float)*(const double *)call->in[1] : 1.0F;
}
