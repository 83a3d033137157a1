// SPDX-License-Identifier: Apache-2.0
// Group normalisation (kernels/group_norm.cu): a block a group of a sample; sums over samples are a second kernel.
#include <stdio.h>

#include "headroom/units.h"

#include "cuda_device.h"
#include "kernels/group_norm_args.h"

static bool is_gradient(const op_query *q)
{
    return q->op == HR_OP_GROUP_NORM_BWD;
}

// What normalises is float32 whatever x is.
static bool fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    const uint32_t gamma = is_gradient(q) ? 2 : 1;
    bool one = q->out[0].dtype == cuda_type(q) && q->out[1].dtype == HR_F32 && q->out[2].dtype == HR_F32;
    for (uint32_t k = 0; k < q->in_count; k++) {
        one = one && q->in[k].dtype == (k < gamma ? cuda_type(q) : (uint32_t)HR_F32);
    }
    return one;
}

static group_norm_args args_of(const cuda_run *r)
{
    const op_query *q = r->query;
    const hr_shape *x = &q->in[0].shape;
    const bool backward = is_gradient(q);
    group_norm_args a = {.x = (const void *)r->in[0],
                         .dy = backward ? (const void *)r->in[1] : NULL,
                         .gamma = (const float *)r->in[backward ? 2 : 1],
                         .beta = backward ? NULL : (const float *)r->in[2],
                         .out = (void *)r->out[0],
                         .mean = (float *)(backward ? r->in[3] : r->out[1]),
                         .rstd = (float *)(backward ? r->in[4] : r->out[2]),
                         .sums = backward ? (float *)r->workspace : NULL,
                         .samples = x->dim[0],
                         .channels = x->dim[x->rank - 1],
                         .groups = q->attr.groups,
                         .epsilon = (float)q->attr.epsilon};
    a.places = (int64_t)cuda_elements(&q->in[0]) / a.samples / a.channels;
    a.width = divisor_of(a.channels / a.groups);
    return a;
}

static cuda_grid a_block_each(const cuda_run *r, const group_norm_args *a)
{
    return cuda_grid_over(r->device, (uint64_t)(a->samples * a->groups) * GROUP_NORM_THREADS, 1,
                          GROUP_NORM_THREADS);
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "group_norm_%s", cuda_suffix(cuda_type(q)));
}

static hr_status run_norm(const cuda_run *r, hr_err *err)
{
    const group_norm_args a = args_of(r);
    return cuda_launch(r, r->function, a_block_each(r, &a), &a, sizeof a, err);
}

enum { STAGE_GROUPS, STAGE_FINISH, STAGES };

static uint32_t name_bwd(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    (void)snprintf(name[STAGE_GROUPS], CUDA_NAME_MAX, "group_norm_bwd_%s", cuda_suffix(cuda_type(q)));
    (void)snprintf(name[STAGE_FINISH], CUDA_NAME_MAX, "group_norm_finish");
    return STAGES;
}

static uint64_t bwd_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    const hr_shape *x = &q->in[0].shape;
    uint64_t bytes = 0;
    (void)hr_mul_bytes((uint64_t)x->dim[0] * 2 * sizeof(float), (uint64_t)x->dim[x->rank - 1], &bytes);
    return bytes;
}

static hr_status run_norm_bwd(const cuda_run *r, hr_err *err)
{
    const group_norm_args a = args_of(r);
    const group_norm_finish_args f = {.sums = a.sums,
                                      .dgamma = (float *)r->out[1],
                                      .dbeta = (float *)r->out[2],
                                      .samples = a.samples,
                                      .channels = a.channels};
    HR_TRY(cuda_launch(r, r->stage[STAGE_GROUPS], a_block_each(r, &a), &a, sizeof a, err));
    const cuda_grid grid = cuda_grid_over(r->device, (uint64_t)a.channels, 1, GROUP_NORM_THREADS);
    return cuda_launch(r, r->stage[STAGE_FINISH], grid, &f, sizeof f, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_GROUP_NORM,
     .types = CUDA_REAL,
     .name = "groups",
     .fits = fits,
     .module = "group_norm",
     .kernel = name_of,
     .run = run_norm},
    {.op = HR_OP_GROUP_NORM_BWD,
     .types = CUDA_REAL,
     .name = "groups",
     .fits = fits,
     .workspace = bwd_workspace,
     .module = "group_norm",
     .stages = name_bwd,
     .run = run_norm_bwd},
};

const cuda_family cuda_family_group_norm = CUDA_FAMILY(impls);
