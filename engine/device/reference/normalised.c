// SPDX-License-Identifier: Apache-2.0
// One element behind its normalisation, for operations that read it through one.
#include <math.h>

#include "kernels.h"

double reference_normalised(const reference_call *call, uint32_t x, uint64_t i, const uint32_t operand[4])
{
    const uint64_t c = i % call->in_count[operand[0]];
    const double *gamma = call->in[operand[0]], *beta = call->in[operand[1]];
    const double *mean = call->in[operand[2]], *variance = call->in[operand[3]];
    const double inverse = 1.0 / sqrt(variance[c] + call->query->attr.epsilon);
    return (((const double *)call->in[x])[i] - mean[c]) * inverse * gamma[c] + beta[c];
}
