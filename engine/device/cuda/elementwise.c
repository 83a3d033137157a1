// SPDX-License-Identifier: Apache-2.0
// Element by element: one kernel each (kernels/elementwise.cu), named after operation and type, after both types where
// there are two. Zeros are no kernel.
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/elementwise_args.h"

enum { THREADS = 256, PACK_BYTES = 16 };

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    const char *act = q->attr.act == HR_ACT_RELU ? "_relu" : q->attr.act == HR_ACT_RELU6 ? "_relu6" : "";
    (void)snprintf(name, CUDA_NAME_MAX, "%s%s_%s", op_name((hr_op)q->op), act, cuda_suffix(cuda_type(q)));
}

// From the type of what is read once to that of what is written.
static void name_of_two(const op_query *q, char name[CUDA_NAME_MAX])
{
    const uint32_t from = q->in[q->in_count - 1].dtype;
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s_%s", op_name((hr_op)q->op), cuda_suffix(from),
                   cuda_suffix(q->out[0].dtype));
}

static bool adds(const cuda_device *device, const op_query *q)
{
    return cuda_one_type(device, q) && q->attr.act >= HR_ACT_NONE && q->attr.act <= HR_ACT_RELU6;
}

// The factor is float32 beside any type.
static bool scales(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].dtype == q->out[0].dtype && (q->in_count == 1 || q->in[1].dtype == HR_F32);
}

static uint32_t widest_bytes(const op_query *q)
{
    const uint64_t in = dtype_bytes((hr_dtype)q->in[q->in_count - 1].dtype);
    const uint64_t out = dtype_bytes((hr_dtype)q->out[0].dtype);
    return (uint32_t)(in > out ? in : out);
}

static hr_status launch(const cuda_run *r, const elementwise_args *a, hr_err *err)
{
    const uint32_t per_thread = PACK_BYTES / widest_bytes(r->query);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a->count, per_thread, THREADS), a,
                       sizeof *a, err);
}

static elementwise_args args_of(const cuda_run *r)
{
    return (elementwise_args){.a = (const void *)r->in[0],
                              .b = (const void *)r->in[1],
                              .dy = (const void *)r->in[2],
                              .out = (void *)r->out[0],
                              .db = (void *)r->out[1],
                              .count = (int64_t)cuda_elements(&r->query->out[0])};
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    const elementwise_args a = args_of(r);
    return launch(r, &a, err);
}

static hr_status run_scale(const cuda_run *r, hr_err *err)
{
    elementwise_args a = args_of(r);
    const double scale = r->query->attr.scale;
    a.scale = scale == 0.0 ? 1.0 : scale;
    a.factor = r->query->in_count > 1 ? (const float *)r->in[1] : NULL;
    return launch(r, &a, err);
}

static hr_status run_casts(const cuda_run *runs, uint32_t count, hr_err *err)
{
    cast_args a = {0};
    cuda_grid grid = {0};
    for (uint32_t k = 0; k < count; k++) {
        a.item[k] = (cast_item){.source = (const void *)runs[k].in[0],
                                .result = (void *)runs[k].out[0],
                                .count = (int64_t)cuda_elements(&runs[k].query->out[0])};
        cuda_group_extend(runs->device, &a.blocks, &grid, (uint64_t)a.item[k].count,
                          PACK_BYTES / widest_bytes(runs->query), THREADS);
    }
    return cuda_launch(runs, runs->function, grid, &a, sizeof a, err);
}

static hr_status run_zeros(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuMemsetD8Async, r->out[0], 0, cuda_bytes(&r->query->out[0]), r->stream);
}

static bool from_bytes(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].dtype == HR_U8;
}

static const cuda_impl impls[] = {
    {.op = HR_OP_ADD,
     .types = CUDA_REAL,
     .name = "add",
     .fits = adds,
     .module = "elementwise",
     .kernel = name_of,
     .run = run},
    {.op = HR_OP_MULTIPLY,
     .types = CUDA_REAL,
     .name = "multiply",
     .fits = cuda_one_type,
     .module = "elementwise",
     .kernel = name_of,
     .run = run},
    {.op = HR_OP_MULTIPLY_BWD,
     .types = CUDA_REAL,
     .name = "multiply_bwd",
     .fits = cuda_one_type,
     .module = "elementwise",
     .kernel = name_of,
     .run = run},
    {.op = HR_OP_SCALE,
     .types = CUDA_REAL,
     .name = "scale",
     .fits = scales,
     .module = "elementwise",
     .kernel = name_of,
     .run = run_scale},
    {.op = HR_OP_ZEROS, .types = CUDA_REAL, .name = "memset", .run = run_zeros},
    {.op = HR_OP_CAST,
     .types = CUDA_REAL,
     .name = "cast",
     .module = "elementwise",
     .kernel = name_of_two,
     .run_group = run_casts},
    {.op = HR_OP_NORMALISE,
     .types = CUDA_REAL,
     .name = "normalise",
     .fits = from_bytes,
     .module = "elementwise",
     .kernel = name_of_two,
     .run = run},
    {.op = HR_OP_ACCUMULATE,
     .types = CUDA_REAL,
     .name = "accumulate",
     .module = "elementwise",
     .kernel = name_of_two,
     .run = run},
};

const cuda_family cuda_family_elementwise = CUDA_FAMILY(impls);
