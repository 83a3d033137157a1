// SPDX-License-Identifier: Apache-2.0
// Biases by where a query and a key stand to one another (kernels/relative.cu).
#include "ops/relative.h"

#include <stdio.h>

#include "cuda_device.h"
#include "kernels/relative_args.h"

_Static_assert((int)RELATIVE_BUCKETS_MOST == (int)RELATIVE_MAX_BUCKETS, "a kernel has room for every bucket");

static bool is_gradient(const op_query *q)
{
    return q->op == HR_OP_RELATIVE_BIAS_BWD;
}

static const hr_shape *table_of(const op_query *q)
{
    return is_gradient(q) ? &q->out[0].shape : &q->in[0].shape;
}

// Places, rows and numbers are counted in 32 bits.
static bool fits(const cuda_device *device, const op_query *q)
{
    const hr_shape *table = table_of(q);
    const relative_shape s = relative_shape_of(&q->attr, table);
    return cuda_one_type(device, q) && table->dim[0] <= INT32_MAX / 4 && s.queries <= INT32_MAX / 4 &&
           s.keys <= INT32_MAX / 4;
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(cuda_type(q)));
}

static relative_args args_of(const cuda_run *r)
{
    const op_query *q = r->query;
    const op_attr *attr = &q->attr;
    const relative_shape s = relative_shape_of(attr, table_of(q));
    const bool window = attr->rule == OP_RELATIVE_WINDOW;
    relative_args a = {.in = (const void *)r->in[0],
                       .out = (void *)r->out[0],
                       .count = (int64_t)cuda_elements(&q->out[0]),
                       .keys = divisor_of(s.keys),
                       .queries = divisor_of(s.queries),
                       .heads = divisor_of(s.heads),
                       .windows = s.windows,
                       .window_h = window ? attr->kernel_h : 0,
                       .window_w = window ? attr->kernel_w : 0,
                       .across = attr->stride_w,
                       .down = attr->stride_h,
                       .shift_h = attr->pad_top,
                       .shift_w = attr->pad_left,
                       .causal = (attr->flags & OP_FLAG_CAUSAL) != 0,
                       .hidden = (float)RELATIVE_HIDDEN};
    a.buckets = window ? 0 : relative_buckets(attr, table_of(q)->dim[0], a.from);
    return a;
}

static hr_status run_bias(const cuda_run *r, hr_err *err)
{
    const relative_args a = args_of(r);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, 1, RELATIVE_THREADS), &a,
                       sizeof a, err);
}

// A block a number of the table.
static hr_status run_bias_bwd(const cuda_run *r, hr_err *err)
{
    const relative_args a = args_of(r);
    const cuda_grid grid =
        cuda_grid_over(r->device, (uint64_t)a.count * RELATIVE_THREADS, 1, RELATIVE_THREADS);
    return cuda_launch(r, r->function, grid, &a, sizeof a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_RELATIVE_BIAS,
     .types = CUDA_REAL,
     .name = "relative_bias",
     .fits = fits,
     .module = "relative",
     .kernel = name_of,
     .run = run_bias},
    {.op = HR_OP_RELATIVE_BIAS_BWD,
     .types = CUDA_REAL,
     .name = "relative_bias_bwd",
     .fits = fits,
     .module = "relative",
     .kernel = name_of,
     .run = run_bias_bwd},
};

const cuda_family cuda_family_relative = CUDA_FAMILY(impls);
