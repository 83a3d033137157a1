// SPDX-License-Identifier: Apache-2.0
// What keeps gradients in range: finite check with its counts, unscaling, loss scale, clipping by the norm of all. The
// host never waits for a verdict: loss scale and updates read it in device memory.
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/precision_args.h"
#include "ops/loss_scale.h"

enum { THREADS = 256, PACK_BYTES = 16 };

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(cuda_type(q)));
}

static bool is_float(const op_operand *t)
{
    return t->dtype == HR_F32;
}

static int64_t elements_of(const cuda_run *r)
{
    return (int64_t)cuda_elements(&r->query->in[0]);
}

// ---- sums in two stages -----------------------------------------------------------------------------------

static uint32_t sum_blocks(const op_query *q)
{
    const uint64_t elements = cuda_elements(&q->in[0]);
    const uint64_t blocks = elements / SUM_BLOCK_ELEMENTS + (elements % SUM_BLOCK_ELEMENTS != 0);
    return blocks > SUM_BLOCKS_MAX ? SUM_BLOCKS_MAX : (uint32_t)blocks;
}

static uint64_t parts_bytes(const op_query *q, uint64_t each)
{
    const uint32_t blocks = sum_blocks(q);
    return blocks == 1 ? 0 : blocks * each;
}

static uint64_t finite_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    return parts_bytes(q, COUNT_KINDS * sizeof(uint32_t));
}

static uint64_t square_sum_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    return parts_bytes(q, sizeof(float));
}

enum { STAGE_PARTS, STAGE_FINISH, STAGES };

static uint32_t name_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    name_of(q, name[STAGE_PARTS]);
    (void)snprintf(name[STAGE_FINISH], CUDA_NAME_MAX, "%s_finish", op_name((hr_op)q->op));
    return STAGES;
}

static hr_status launch_both(const cuda_run *r, const void *arguments, uint32_t bytes, hr_err *err)
{
    const uint32_t blocks = sum_blocks(r->query);
    HR_TRY(cuda_launch(r, r->stage[STAGE_PARTS], (cuda_grid){blocks, 1, 1, SUM_THREADS, 0}, arguments, bytes,
                       err));
    return blocks == 1 ? HR_OK
                       : cuda_launch(r, r->stage[STAGE_FINISH], (cuda_grid){1, 1, 1, SUM_THREADS, 0},
                                     arguments, bytes, err);
}

static bool finite_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return is_float(&q->out[1]);
}

// Without the verdict among the operands, both results begin here.
static hr_status run_finite(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const finite_args a = {.g = (const void *)r->in[0],
                           .finite = (int32_t *)r->out[0],
                           .health = (float *)r->out[1],
                           .counts = (uint32_t *)r->workspace,
                           .elements = elements_of(r),
                           .health_floats = (int64_t)cuda_elements(&q->out[1]),
                           .row = q->attr.slot,
                           .blocks = (int32_t)sum_blocks(q),
                           .begins = q->in_count == 1,
                           .flushed = (float)OP_HALF_FLUSHED,
                           .largest = (float)OP_HALF_LARGEST};
    return launch_both(r, &a, sizeof a, err);
}

static bool square_sum_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return is_float(&q->out[0]);
}

static hr_status run_square_sum(const cuda_run *r, hr_err *err)
{
    const square_sum_args a = {.g = (const void *)r->in[0],
                               .before = r->query->in_count > 1 ? (const float *)r->in[1] : NULL,
                               .out = (float *)r->out[0],
                               .parts = (float *)r->workspace,
                               .elements = elements_of(r),
                               .blocks = (int32_t)sum_blocks(r->query)};
    return launch_both(r, &a, sizeof a, err);
}

// ---- element by element -----------------------------------------------------------------------------------

static hr_status launch_over(const cuda_run *r, const void *arguments, uint32_t bytes, hr_err *err)
{
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)r->query->in[0].dtype);
    return cuda_launch(r, r->function,
                       cuda_grid_over(r->device, (uint64_t)elements_of(r), per_thread, THREADS), arguments,
                       bytes, err);
}

static bool clip_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return is_float(&q->in[1]) && q->out[0].dtype == q->in[0].dtype;
}

static hr_status run_clip(const cuda_run *r, hr_err *err)
{
    const clip_args a = {.g = (const void *)r->in[0],
                         .sum = (const float *)r->in[1],
                         .out = (void *)r->out[0],
                         .elements = elements_of(r),
                         .largest_norm = (float)r->query->attr.epsilon};
    return launch_over(r, &a, sizeof a, err);
}

static bool unscale_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->in_count == 1 || is_float(&q->in[1]);
}

static hr_status run_unscale(const cuda_run *r, hr_err *err)
{
    const op_attr *attr = &r->query->attr;
    const unscale_args a = {.g = (void *)r->in[0],
                            .given = r->query->in_count > 1 ? (const float *)r->in[1] : NULL,
                            .elements = elements_of(r),
                            .scale = attr->scale == 0 ? 1.0F : (float)attr->scale};
    return launch_over(r, &a, sizeof a, err);
}

static void name_scale_update(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)q;
    (void)snprintf(name, CUDA_NAME_MAX, "scale_update");
}

static hr_status run_scale_update(const cuda_run *r, hr_err *err)
{
    const op_attr *attr = &r->query->attr;
    const scale_update_args a = {.scale = (float *)r->in[0],
                                 .clean = (int32_t *)r->in[1],
                                 .finite = (const int32_t *)r->in[2],
                                 .steps = attr->count,
                                 .floor_scale = (float)attr->epsilon};
    return cuda_launch(r, r->function, (cuda_grid){1, 1, 1, 32, 0}, &a, sizeof a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_FINITE,
     .types = CUDA_REAL,
     .name = "counts",
     .fits = finite_fits,
     .workspace = finite_workspace,
     .module = "precision",
     .stages = name_stages,
     .run = run_finite},
    {.op = HR_OP_SQUARE_SUM,
     .types = CUDA_REAL,
     .name = "two stages",
     .fits = square_sum_fits,
     .workspace = square_sum_workspace,
     .module = "precision",
     .stages = name_stages,
     .run = run_square_sum},
    {.op = HR_OP_CLIP,
     .types = CUDA_REAL,
     .name = "vectors",
     .fits = clip_fits,
     .module = "precision",
     .kernel = name_of,
     .run = run_clip},
    {.op = HR_OP_UNSCALE,
     .types = CUDA_REAL,
     .name = "vectors",
     .fits = unscale_fits,
     .module = "precision",
     .kernel = name_of,
     .run = run_unscale},
    {.op = HR_OP_SCALE_UPDATE,
     .types = CUDA_F32,
     .name = "one thread",
     .module = "precision",
     .kernel = name_scale_update,
     .run = run_scale_update},
};

const cuda_family cuda_family_precision = CUDA_FAMILY(impls);
