// SPDX-License-Identifier: Apache-2.0
// Axes in another order, and images turned around their edges: where each element of the result comes from.
#include "ops/permute.h"

#include "kernels.h"

void reference_permute(const reference_call *call)
{
    const op_query *q = call->query;
    const hr_shape *y = &q->out[0].shape;
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        uint64_t rest = i;
        int64_t from = 0;
        for (uint32_t k = y->rank; k-- > 0;) {
            from += (int64_t)(rest % (uint64_t)y->dim[k]) * permute_stride(&q->attr, &q->in[0].shape, k);
            rest /= (uint64_t)y->dim[k];
        }
        ((double *)call->out[0])[i] = ((const double *)call->in[0])[from];
    }
}

void reference_roll(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    const hr_shape *x = &call->query->in[0].shape;
    const int64_t height = x->dim[1], width = x->dim[2];
    const int64_t inner = (int64_t)call->out_count[0] / (x->dim[0] * height * width);
    for (int64_t i = 0; i < (int64_t)call->out_count[0]; i++) {
        const int64_t pixel = i / inner, w = pixel % width, h = pixel / width % height;
        const int64_t row = pixel / width - h + (h + a->pad_top) % height;
        const int64_t from = row * width + (w + a->pad_left) % width;
        ((double *)call->out[0])[i] = ((const double *)call->in[0])[from * inner + i % inner];
    }
}
