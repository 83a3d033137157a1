// SPDX-License-Identifier: Apache-2.0
// Images of another size (kernels/resize.cu).
#include "ops/resize.h"

#include <stdio.h>

#include "cuda_device.h"
#include "kernels/resize_args.h"

enum { PACK_BYTES = 16 };

static int64_t lanes_of(const op_query *q)
{
    const int64_t lanes = PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)cuda_type(q));
    return q->out[0].shape.dim[3] % lanes == 0 ? lanes : 1;
}

static bool is_adaptive(const op_query *q)
{
    return q->op == HR_OP_ADAPTIVE_POOL || q->op == HR_OP_ADAPTIVE_POOL_BWD;
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s_%s", is_adaptive(q) ? "adaptive" : op_name((hr_op)q->op),
                   lanes_of(q) > 1 ? "wide" : "narrow", cuda_suffix(cuda_type(q)));
}

static resize_side side_of(const op_attr *attr, int64_t in, int64_t out)
{
    const resize_axis a = resize_axis_of(attr, in, out);
    return (resize_side){divisor_of(a.per), a.step, a.start, a.out, a.last};
}

static bool is_narrow(const resize_side *side)
{
    return side->out * side->step + side->per.by <= INT32_MAX;
}

static hr_status run_resize(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t *to = q->out[0].shape.dim, lanes = lanes_of(q);
    const int64_t *x = q->op == HR_OP_RESIZE ? q->in[0].shape.dim : to;
    const int64_t *y = q->op == HR_OP_RESIZE ? to : q->in[0].shape.dim;
    resize_args a = {.in = (const void *)r->in[0],
                     .out = (void *)r->out[0],
                     .count = (int64_t)cuda_elements(&q->out[0]) / lanes,
                     .height = divisor_of(to[1]),
                     .width = divisor_of(to[2]),
                     .channels = divisor_of(to[3] / lanes),
                     .h = side_of(&q->attr, x[1], y[1]),
                     .w = side_of(&q->attr, x[2], y[2])};
    a.narrow = a.count <= INT32_MAX && is_narrow(&a.h) && is_narrow(&a.w);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, 1, RESIZE_THREADS), &a,
                       sizeof a, err);
}

static hr_status run_adaptive(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t *from = q->in[0].shape.dim, *to = q->out[0].shape.dim, lanes = lanes_of(q);
    const adaptive_args a = {.in = (const void *)r->in[0],
                             .out = (void *)r->out[0],
                             .count = (int64_t)cuda_elements(&q->out[0]) / lanes,
                             .height = divisor_of(to[1]),
                             .width = divisor_of(to[2]),
                             .channels = divisor_of(to[3] / lanes),
                             .from_h = from[1],
                             .from_w = from[2],
                             .back = q->op == HR_OP_ADAPTIVE_POOL_BWD};
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, 1, RESIZE_THREADS), &a,
                       sizeof a, err);
}

#define RESIZE(OP, function)                                                                                 \
    {                                                                                                        \
        .op = HR_OP_##OP, .types = CUDA_REAL, .name = "resize", .fits = cuda_one_type, .module = "resize",   \
        .kernel = name_of, .run = (function)                                                                 \
    }

static const cuda_impl impls[] = {RESIZE(RESIZE, run_resize), RESIZE(RESIZE_BWD, run_resize),
                                  RESIZE(ADAPTIVE_POOL, run_adaptive),
                                  RESIZE(ADAPTIVE_POOL_BWD, run_adaptive)};

const cuda_family cuda_family_resize = CUDA_FAMILY(impls);
