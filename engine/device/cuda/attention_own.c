// SPDX-License-Identifier: Apache-2.0
// Streaming attention by our own kernels: every type, every head size, every card.
//
// Work is that of ordinary multiply-add units: forward 2 products of queries × keys × features, backward 7 (5 are the
// least; the scores and their gradients are computed once for each side). At 64 features a head a tile of 64 × 64
// scores costs 16 Ki multiply-adds of a thread block for 32 KiB that it reads, so memory is not what it waits for.
#include <stdio.h>

#include "attention_places.h"
#include "kernels/attention_own_args.h"
#include "ops/attention.h"
#include "ops/dropout.h"

enum { NARROW = 64, WIDE = 128, BLOCKS_MAX = INT32_MAX };

static int32_t features_of(const op_query *q)
{
    return (int32_t)op_attention_of(q).features;
}

// Features of a block's result.
static bool drops(const op_query *q)
{
    return q->attr.rate > 0.0;
}

static int32_t window_of(const op_query *q)
{
    return drops(q) || features_of(q) <= NARROW ? NARROW : WIDE;
}

static bool fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    return !drops(q) && op_attention_of(q).row <= INT32_MAX / ATTENTION_TILE;
}

static bool fits_dropping(const cuda_device *device, const op_query *q)
{
    (void)device;
    return drops(q) && op_attention_of(q).row <= INT32_MAX / ATTENTION_TILE;
}

static void kernel_name(const op_query *q, const char *family, char name[CUDA_NAME_MAX])
{
    const char *const form = drops(q) ? "drop" : window_of(q) == NARROW ? "64" : "128";
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s_%s", family, form, cuda_suffix(cuda_type(q)));
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    kernel_name(q, op_name((hr_op)q->op), name);
}

static attention_own_args arguments_of(const cuda_run *r)
{
    const op_query *q = r->query;
    const op_attention s = op_attention_of(q);
    const dropout_draw d = dropout_begin(&q->attr, 0, 0); // rate and scale are any step's
    const int32_t features = features_of(q), window = window_of(q);
    return (attention_own_args){.samples = s.samples,
                                .heads = s.heads,
                                .queries = s.queries,
                                .keys = s.keys,
                                .row = (int32_t)s.row,
                                .width = (int32_t)s.width,
                                .features = features,
                                .causal = (q->attr.flags & OP_FLAG_CAUSAL) != 0,
                                .scale = (float)op_attention_scale(&q->attr, features),
                                .windows = (features + window - 1) / window,
                                .scalars = (const dropout_scalars *)r->scalars,
                                .threshold = d.threshold,
                                .kept_scale = (float)d.scale};
}

// A block for each tile of `rows` of each head and window.
static hr_status launch(const cuda_run *r, CUfunction function, const attention_own_args *a, int64_t rows,
                        hr_err *err)
{
    const int64_t tiles = (rows + ATTENTION_TILE - 1) / ATTENTION_TILE;
    const int64_t blocks = a->samples * a->heads * tiles * a->windows;
    const cuda_grid grid = {.blocks_x = (uint32_t)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX),
                            .blocks_y = 1,
                            .blocks_z = 1,
                            .threads = ATTENTION_THREADS};
    return cuda_launch(r, function, grid, a, sizeof *a, err);
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    const attention_places at = attention_places_of(r->query, r->in, r->out);
    attention_own_args a = arguments_of(r);
    a.q = (const void *)at.q;
    a.k = (const void *)at.k;
    a.v = (const void *)at.v;
    a.out = (void *)r->out[0];
    a.lse = (float *)r->out[1];
    return launch(r, r->function, &a, a.queries, err);
}

// ---- backward: a kernel for dq, then one for dk and dv ---------------------------------------------------------

// One sum of dy·y per query and head, as many as log-sum-exps.
static uint64_t workspace_backward(const cuda_device *device, const op_query *q)
{
    (void)device;
    return cuda_elements(&q->in[op_attention_of(q).lse]) * sizeof(float);
}

enum { STAGE_QUERIES, STAGE_KEYS, STAGES };

static uint32_t name_backward(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    name_of(q, name[STAGE_QUERIES]);
    kernel_name(q, "attention_bwd_keys", name[STAGE_KEYS]);
    return STAGES;
}

static hr_status run_backward(const cuda_run *r, hr_err *err)
{
    const attention_places at = attention_places_of(r->query, r->in, r->out);
    attention_own_args a = arguments_of(r);
    a.q = (const void *)at.q;
    a.k = (const void *)at.k;
    a.v = (const void *)at.v;
    a.y = (const void *)at.y;
    a.dy = (const void *)at.dy;
    a.lse = (float *)at.lse;
    a.delta = (float *)r->workspace;
    a.out = (void *)at.dq;
    a.dk = (void *)at.dk;
    a.dv = (void *)at.dv;
    HR_TRY(launch(r, r->stage[STAGE_QUERIES], &a, a.queries, err));
    return launch(r, r->stage[STAGE_KEYS], &a, a.keys, err);
}

// The second of each drops weights, and needs the scalars of its step.
static const cuda_impl impls[] = {
    {.op = HR_OP_ATTENTION,
     .types = CUDA_REAL,
     .name = "tiles",
     .fits = fits,
     .module = "attention_own",
     .kernel = name_of,
     .run = run_forward},
    {.op = HR_OP_ATTENTION,
     .types = CUDA_REAL,
     .name = "tiles",
     .fits = fits_dropping,
     .module = "attention_own",
     .kernel = name_of,
     .scalars = cuda_dropout_scalars,
     .run = run_forward},
    {.op = HR_OP_ATTENTION_BWD,
     .types = CUDA_REAL,
     .name = "tiles",
     .fits = fits,
     .workspace = workspace_backward,
     .module = "attention_own",
     .stages = name_backward,
     .run = run_backward},
    {.op = HR_OP_ATTENTION_BWD,
     .types = CUDA_REAL,
     .name = "tiles",
     .fits = fits_dropping,
     .workspace = workspace_backward,
     .module = "attention_own",
     .stages = name_backward,
     .scalars = cuda_dropout_scalars,
     .run = run_backward},
};

const cuda_family cuda_family_attention_own = CUDA_FAMILY(impls);
