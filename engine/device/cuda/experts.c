// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts (kernels/experts.cu). Logits, gates and their gradients are float32; rows move as they are.
#include "ops/experts.h"

#include <stdio.h>

#include "cuda_device.h"
#include "kernels/experts_args.h"

enum { PACK_BYTES = 16, WARP_THREADS = 32, STAGE_FIRST = 0, STAGE_SECOND, STAGES };

_Static_assert((int)EXPERTS_MOST == (int)OP_MAX_EXPERTS && (int)EXPERTS_CHOICES == (int)OP_MAX_CHOICES,
               "kernels have room for as many as operations take");

// ---- choice and balance ---------------------------------------------------------------------------------------

static route_args route_of(const cuda_run *r, const op_operand *slots)
{
    const op_query *q = r->query;
    const int64_t *d = q->in[0].shape.dim;
    const double mean = (double)d[2] / ((double)d[1] * (double)d[1] * (double)d[0]);
    const double weight = q->attr.scale == 0.0 ? 1.0 : q->attr.scale;
    return (route_args){.logits = (const float *)r->in[0],
                        .samples = d[0],
                        .length = d[1],
                        .tokens = d[0] * d[1],
                        .experts = (int32_t)d[2],
                        .chosen = (int32_t)slots->shape.dim[2],
                        .capacity = q->attr.slots,
                        .shares = (q->attr.flags & OP_FLAG_SHARES) != 0,
                        .factor = mean,
                        .share = (float)(weight * mean)};
}

static cuda_grid by_samples(const route_args *a)
{
    const int64_t most = 65535;
    return (cuda_grid){.blocks_x = (uint32_t)(a->samples < most ? a->samples : most),
                       .blocks_y = 1,
                       .blocks_z = 1,
                       .threads = EXPERTS_THREADS};
}

static cuda_grid by_tokens(const cuda_run *r, const route_args *a)
{
    return cuda_grid_over(r->device, (uint64_t)a->tokens, 1, EXPERTS_THREADS);
}

static uint32_t route_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    const bool routes = q->op == HR_OP_ROUTE;
    (void)snprintf(name[STAGE_FIRST], CUDA_NAME_MAX, "%s", routes ? "route_choose" : "balance_parts");
    (void)snprintf(name[STAGE_SECOND], CUDA_NAME_MAX, "%s", routes ? "route_place" : "balance_finish");
    return STAGES;
}

static hr_status run_route(const cuda_run *r, hr_err *err)
{
    route_args a = route_of(r, &r->query->out[1]);
    a.gates = (float *)r->out[0];
    a.slots = (int32_t *)r->out[1];
    HR_TRY(cuda_launch(r, r->stage[STAGE_FIRST], by_tokens(r, &a), &a, sizeof a, err));
    return cuda_launch(r, r->stage[STAGE_SECOND], by_samples(&a), &a, sizeof a, err);
}

static void name_gradient(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s", q->op == HR_OP_ROUTE_BWD ? "route_bwd" : "balance_bwd");
}

static hr_status run_route_bwd(const cuda_run *r, hr_err *err)
{
    route_args a = route_of(r, &r->query->in[1]);
    a.slots = (int32_t *)r->in[1];
    a.dgates = (const float *)r->in[2];
    a.dlogits = (float *)r->out[0];
    return cuda_launch(r, r->function, by_tokens(r, &a), &a, sizeof a, err);
}

static uint64_t sample_bytes(const cuda_device *device, const op_query *q)
{
    (void)device;
    return (uint64_t)q->in[0].shape.dim[0] * sizeof(double);
}

static hr_status run_balance(const cuda_run *r, hr_err *err)
{
    route_args a = route_of(r, &r->query->in[1]);
    const cuda_grid one = {.blocks_x = 1, .blocks_y = 1, .blocks_z = 1, .threads = WARP_THREADS};
    a.slots = (int32_t *)r->in[1];
    a.partial = (double *)r->workspace;
    a.loss = (float *)r->out[0];
    HR_TRY(cuda_launch(r, r->stage[STAGE_FIRST], by_samples(&a), &a, sizeof a, err));
    return cuda_launch(r, r->stage[STAGE_SECOND], one, &a, sizeof a, err);
}

static hr_status run_balance_bwd(const cuda_run *r, hr_err *err)
{
    route_args a = route_of(r, &r->query->in[1]);
    a.slots = (int32_t *)r->in[1];
    a.scale = r->query->in_count > 2 ? (const float *)r->in[2] : NULL;
    a.dlogits = (float *)r->out[0];
    return cuda_launch(r, r->function, by_samples(&a), &a, sizeof a, err);
}

// ---- there and back -------------------------------------------------------------------------------------------

// The tensor of slots, and which input says who has them.
static const op_operand *slots_of(const op_query *q)
{
    return q->op == HR_OP_DISPATCH ? &q->out[0] : &q->in[0];
}

static uint32_t who_of(const op_query *q)
{
    return q->op == HR_OP_GATHER || q->op == HR_OP_GATHER_BWD ? 2 : 1;
}

static int64_t features_of(const op_query *q)
{
    return slots_of(q)->shape.dim[3];
}

static int64_t feature_bytes(const op_query *q)
{
    return (int64_t)dtype_bytes((hr_dtype)slots_of(q)->dtype);
}

// Bytes that a thread moves at once, and elements that it computes.
static int64_t unit_of(const op_query *q)
{
    int64_t unit = PACK_BYTES;
    while (features_of(q) * feature_bytes(q) % unit != 0) {
        unit /= 2;
    }
    return unit;
}

static int64_t lanes_of(const op_query *q)
{
    return unit_of(q) == PACK_BYTES ? PACK_BYTES / feature_bytes(q) : 1;
}

static void name_dispatch(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "dispatch_%d", (int)unit_of(q));
}

static void name_gather(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "gather%s_%s_%s", q->op == HR_OP_GATHER_BWD ? "_bwd" : "",
                   lanes_of(q) > 1 ? "wide" : "narrow", cuda_suffix(cuda_type(q)));
}

// Gates are float32 beside rows of any one type.
static bool fits_way(const cuda_device *device, const op_query *q)
{
    op_query rows = *q;
    const bool gated = who_of(q) == 2;
    if (gated && (q->in[1].dtype != HR_F32 || (q->out_count > 1 && q->out[1].dtype != HR_F32))) {
        return false;
    }
    rows.in[1].dtype = gated ? q->in[0].dtype : q->in[1].dtype;
    rows.out[1].dtype = q->in[0].dtype;
    return cuda_one_type(device, &rows);
}

static way_args way_of(const cuda_run *r, int64_t unit)
{
    const op_query *q = r->query;
    const uint32_t who = who_of(q);
    const hr_shape *y = &slots_of(q)->shape, *s = &q->in[who].shape;
    return (way_args){.from = (const void *)r->in[0],
                      .gates = who == 2 ? (const float *)r->in[1] : NULL,
                      .slots = (const int32_t *)r->in[who],
                      .to = (void *)r->out[0],
                      .features = y->dim[3],
                      .row = divisor_of(y->dim[3] / unit),
                      .chosen = divisor_of(s->dim[2]),
                      .length = divisor_of(s->dim[1]),
                      .room = y->dim[1] * y->dim[2]};
}

static hr_status empty(const cuda_run *r, hr_err *err)
{
    return CUDA_CALL(err, cuMemsetD8Async, r->out[0], 0, cuda_bytes(&r->query->out[0]), r->stream);
}

static hr_status run_dispatch(const cuda_run *r, hr_err *err)
{
    way_args a = way_of(r, unit_of(r->query) / feature_bytes(r->query));
    a.count = (int64_t)cuda_elements(&r->query->in[1]) * a.row.by;
    HR_TRY(empty(r, err));
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, 1, EXPERTS_THREADS), &a,
                       sizeof a, err);
}

// The gradient of a dispatch is a gathering without gates.
static hr_status run_gather(const cuda_run *r, hr_err *err)
{
    way_args a = way_of(r, lanes_of(r->query));
    a.count = (int64_t)cuda_elements(&r->query->out[0]) / lanes_of(r->query);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, 1, EXPERTS_THREADS), &a,
                       sizeof a, err);
}

static hr_status run_gather_bwd(const cuda_run *r, hr_err *err)
{
    way_args a = way_of(r, lanes_of(r->query));
    a.dz = (const void *)r->in[3];
    a.dgates = (float *)r->out[1];
    a.count = (int64_t)cuda_elements(&r->query->in[2]);
    HR_TRY(empty(r, err));
    return cuda_launch(r, r->function,
                       cuda_grid_over(r->device, (uint64_t)a.count * WARP_THREADS, 1, EXPERTS_THREADS), &a,
                       sizeof a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_ROUTE,
     .types = CUDA_F32,
     .name = "choose and place",
     .module = "experts",
     .stages = route_stages,
     .run = run_route},
    {.op = HR_OP_ROUTE_BWD,
     .types = CUDA_F32,
     .name = "by tokens",
     .module = "experts",
     .kernel = name_gradient,
     .run = run_route_bwd},
    {.op = HR_OP_BALANCE,
     .types = CUDA_F32,
     .name = "by samples",
     .workspace = sample_bytes,
     .module = "experts",
     .stages = route_stages,
     .run = run_balance},
    {.op = HR_OP_BALANCE_BWD,
     .types = CUDA_F32,
     .name = "by samples",
     .module = "experts",
     .kernel = name_gradient,
     .run = run_balance_bwd},
    {.op = HR_OP_DISPATCH,
     .types = CUDA_REAL,
     .name = "by choices",
     .fits = fits_way,
     .module = "experts",
     .kernel = name_dispatch,
     .run = run_dispatch},
    {.op = HR_OP_DISPATCH_BWD,
     .types = CUDA_REAL,
     .name = "by tokens",
     .fits = fits_way,
     .module = "experts",
     .kernel = name_gather,
     .run = run_gather},
    {.op = HR_OP_GATHER,
     .types = CUDA_REAL,
     .name = "by tokens",
     .fits = fits_way,
     .module = "experts",
     .kernel = name_gather,
     .run = run_gather},
    {.op = HR_OP_GATHER_BWD,
     .types = CUDA_REAL,
     .name = "by choices",
     .fits = fits_way,
     .module = "experts",
     .kernel = name_gather,
     .run = run_gather_bwd},
};

const cuda_family cuda_family_experts = CUDA_FAMILY(impls);
