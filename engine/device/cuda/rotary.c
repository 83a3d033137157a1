// SPDX-License-Identifier: Apache-2.0
// Rotary positions (kernels/rotary.cu): one kernel for both ways.
#include <math.h>
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/rotary_args.h"

static int64_t half_of(const op_query *q)
{
    return q->in[0].shape.dim[2] / q->attr.heads / 2;
}

static bool fits(const cuda_device *device, const op_query *q)
{
    return cuda_one_type(device, q) && half_of(q) <= ROTARY_PAIRS_MAX;
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "rotary_%s", cuda_suffix(cuda_type(q)));
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    static const double turn = 6.28318530717958647692;
    const op_query *q = r->query;
    const int64_t half = half_of(q);
    rotary_args a = {.x = (const void *)r->in[0],
                     .out = (void *)r->out[0],
                     .pairs = (int64_t)cuda_elements(&q->in[0]) / 2,
                     .half = divisor_of(half),
                     .heads = divisor_of(q->attr.heads),
                     .length = divisor_of(q->in[0].shape.dim[1]),
                     .direction = q->op == HR_OP_ROTARY ? 1.0f : -1.0f};
    for (int64_t k = 0; k < half; k++) {
        const double turns = pow(q->attr.base, -(double)k / (double)half) / turn;
        a.turns[k] = (float)turns;
        a.rest[k] = (float)(turns - (double)a.turns[k]);
    }
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.pairs, 1, ROTARY_THREADS), &a,
                       sizeof a, err);
}

#define ROW(OP)                                                                                              \
    {                                                                                                        \
        .op = HR_OP_##OP, .types = CUDA_REAL, .name = "by pairs", .fits = fits, .module = "rotary",          \
        .kernel = name_of, .run = run                                                                        \
    }

static const cuda_impl impls[] = {ROW(ROTARY), ROW(ROTARY_BWD)};

const cuda_family cuda_family_rotary = CUDA_FAMILY(impls);
