// SPDX-License-Identifier: Apache-2.0
// Batch normalisation: statistics of blocks, their join, and the pass that normalises, which is also that of evaluation
// and of a repetition from saved statistics: one kernel, the same bits.
#include <math.h>
#include <stdio.h>

#include "headroom/units.h"

#include "batch_norm_shape.h"
#include "cuda_device.h"
#include "kernels/batch_norm_args.h"

enum { BLOCKS_PER_PROCESSOR = 16 }; // of the passes behind the statistics

enum { STAGE_SUMS, STAGE_FINISH, STAGE_APPLY, STAGES };
enum { DY = 1, SUMMAND = 5, OPTIONAL = 5, BETA = 5, GATE = 5, INDEX = 5, MORE = 6 }; // operands
enum { SUMMAND_GAMMA = 6, SUMMAND_BETA, SUMMAND_MEAN, SUMMAND_VARIANCE };
enum { GATED = 3 }; // result, with operands GATE and MORE

// What the optional operands make of the operation.
typedef enum variant { ALONE, ADDED, NORMALISED, MASKED, GATED_BY_Y, POOLED } variant;

static variant variant_of(const op_query *q)
{
    if (q->in_count <= OPTIONAL) {
        return ALONE;
    }
    if (q->op != HR_OP_BATCH_NORM_BWD) {
        return q->in_count > SUMMAND_GAMMA ? NORMALISED : ADDED;
    }
    return q->out_count > GATED ? GATED_BY_Y : q->in[INDEX].dtype == HR_U8 ? POOLED : MASKED;
}

static bool is_gated(const op_query *q)
{
    return variant_of(q) == GATED_BY_Y;
}

static bool makes_statistics(const op_query *q)
{
    return q->op == HR_OP_BATCH_NORM || q->op == HR_OP_BATCH_NORM_STATISTICS;
}

static bool fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    const bool backward = q->op == HR_OP_BATCH_NORM_BWD;
    for (uint32_t k = 1; k < q->in_count; k++) {
        const bool image = k == (backward ? DY : SUMMAND) || (is_gated(q) && k >= GATE);
        const bool index = variant_of(q) == POOLED && k == INDEX;
        if (q->in[k].dtype != (image ? q->in[0].dtype : index ? HR_U8 : HR_F32)) {
            return false;
        }
    }
    if (q->op == HR_OP_BATCH_NORM_STATISTICS) {
        return q->out[0].dtype == HR_F32 && q->out[1].dtype == HR_F32;
    }
    for (uint32_t k = 1; k < q->out_count; k++) {
        if (q->out[k].dtype != (k == GATED ? q->in[0].dtype : HR_F32)) {
            return false;
        }
    }
    return q->out[0].dtype == q->in[0].dtype && q->attr.act != HR_ACT_GELU;
}

// ---- how a tensor is divided ----------------------------------------------------------------------------------

typedef batch_norm_division division;

static batch_norm_parts parts_of(const cuda_device *device, const op_query *q, const division *d)
{
    return batch_norm_parts_of(d, cuda_device_traits(device)->multiprocessors,
                               makes_statistics(q) ? BATCH_NORM_STEPS : BATCH_NORM_FLIGHT);
}

// Three numbers of a channel and part forward, and its first value; two backward.
static uint64_t parts_bytes(const cuda_device *device, const op_query *q)
{
    const division d = batch_norm_divide(&q->in[0]);
    const uint64_t parts = parts_of(device, q, &d).count,
                   numbers = makes_statistics(q) ? 3 * parts + 1 : 2 * parts;
    uint64_t bytes = 0;
    (void)hr_mul_bytes((uint64_t)d.walk.channels * sizeof(float), numbers, &bytes);
    return bytes;
}

// ---- stages ---------------------------------------------------------------------------------------------------

static hr_status run_sums(const cuda_run *r, const division *d, batch_norm_args *a, hr_err *err)
{
    const batch_norm_parts parts = parts_of(r->device, r->query, d);
    a->walk.chunk = parts.chunk;
    const uint32_t arrays = 2 * d->values + (makes_statistics(r->query) ? (uint32_t)d->walk.width : 0);
    const cuda_grid grid = {.blocks_x = parts.count,
                            .blocks_y = d->tiles,
                            .blocks_z = 1,
                            .threads = d->threads,
                            .shared_bytes = arrays * (uint32_t)sizeof(float)};
    return cuda_launch(r, r->stage[STAGE_SUMS], grid, a, sizeof *a, err);
}

static hr_status run_finish(const cuda_run *r, const division *d, batch_norm_finish_args *f, hr_err *err)
{
    f->partial = (const float *)r->workspace;
    f->parts = parts_of(r->device, r->query, d).count;
    f->channels = d->walk.channels;
    f->rows = d->walk.rows;
    f->momentum = r->query->attr.momentum;
    f->epsilon = r->query->attr.epsilon;
    const batch_norm_join join =
        batch_norm_join_of(d, (uint32_t)f->parts, cuda_device_traits(r->device)->multiprocessors);
    f->across = (int32_t)join.across;
    const cuda_grid grid = {.blocks_x = join.blocks, .blocks_y = 1, .blocks_z = 1, .threads = join.threads};
    return cuda_launch(r, r->stage[STAGE_FINISH], grid, f, sizeof *f, err);
}

static hr_status run_pass(const cuda_run *r, CUfunction function, const division *d, const batch_norm_args *a,
                          hr_err *err)
{
    const int64_t processors = cuda_device_traits(r->device)->multiprocessors;
    const int64_t most = (processors * BLOCKS_PER_PROCESSOR + d->tiles - 1) / d->tiles,
                  needed = (d->walk.steps + BATCH_NORM_FLIGHT - 1) / BATCH_NORM_FLIGHT;
    const cuda_grid grid = {.blocks_x = (uint32_t)(needed < most ? needed : most),
                            .blocks_y = d->tiles,
                            .blocks_z = 1,
                            .threads = d->threads};
    return cuda_launch(r, function, grid, a, sizeof *a, err);
}

static void name_stage(char name[CUDA_NAME_MAX], const char *stem, const char *end, const char *suffix)
{
    (void)snprintf(name, CUDA_NAME_MAX, "batch_norm_%s%s%s%s", stem, end, suffix[0] == 0 ? "" : "_", suffix);
}

static uint32_t name_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    static const struct {
        const char *sums, *pass; // ends of names
    } ends[] = {[ALONE] = {"", ""},
                [ADDED] = {"", "_add"},
                [NORMALISED] = {"", "_add_normalised"},
                [MASKED] = {"_masked", "_masked"},
                [GATED_BY_Y] = {"_gated", ""},
                [POOLED] = {"_pooled", "_pooled"}};
    const bool backward = q->op == HR_OP_BATCH_NORM_BWD;
    const variant v = variant_of(q);
    const char *suffix = cuda_suffix(cuda_type(q));
    name_stage(name[STAGE_SUMS], backward ? "bwd_sums" : "statistics", ends[v].sums, suffix);
    name_stage(name[STAGE_FINISH], backward ? "bwd_finish" : "finish", "", "");
    if (q->op == HR_OP_BATCH_NORM_STATISTICS) {
        return STAGE_APPLY;
    }
    name_stage(name[STAGE_APPLY], backward ? "bwd" : "apply", ends[v].pass, suffix);
    return STAGES;
}

// ---- operations -----------------------------------------------------------------------------------------------

static batch_norm_args forward_args(const cuda_run *r, const division *d, CUdeviceptr mean,
                                    CUdeviceptr variance)
{
    const int32_t act = r->query->attr.act;
    return (batch_norm_args){.walk = d->walk,
                             .x = (const void *)r->in[0],
                             .summand = (const void *)r->in[SUMMAND],
                             .summand_gamma = (const float *)r->in[SUMMAND_GAMMA],
                             .summand_beta = (const float *)r->in[SUMMAND_BETA],
                             .summand_mean = (const float *)r->in[SUMMAND_MEAN],
                             .summand_variance = (const float *)r->in[SUMMAND_VARIANCE],
                             .y = (void *)r->out[0],
                             .gamma = (const float *)r->in[1],
                             .beta = (const float *)r->in[2],
                             .mean = (const float *)mean,
                             .variance = (const float *)variance,
                             .partial = (float *)r->workspace,
                             .epsilon = (float)r->query->attr.epsilon,
                             .floor = act == HR_ACT_NONE ? -INFINITY : 0.0f,
                             .ceiling = act == HR_ACT_RELU6 ? 6.0f : INFINITY};
}

static hr_status run_batch_norm(const cuda_run *r, hr_err *err)
{
    const division d = batch_norm_divide(&r->query->in[0]);
    batch_norm_args a = forward_args(r, &d, r->out[1], r->out[2]);
    batch_norm_finish_args f = {.mean_out = (float *)r->out[1],
                                .variance_out = (float *)r->out[2],
                                .running_mean = (float *)r->in[3],
                                .running_variance = (float *)r->in[4]};
    HR_TRY(run_sums(r, &d, &a, err));
    HR_TRY(run_finish(r, &d, &f, err));
    return run_pass(r, r->stage[STAGE_APPLY], &d, &a, err);
}

static hr_status run_statistics(const cuda_run *r, hr_err *err)
{
    const division d = batch_norm_divide(&r->query->in[0]);
    batch_norm_args a = {.walk = d.walk, .x = (const void *)r->in[0], .partial = (float *)r->workspace};
    batch_norm_finish_args f = {.mean_out = (float *)r->out[0],
                                .variance_out = (float *)r->out[1],
                                .running_mean = (float *)r->in[1],
                                .running_variance = (float *)r->in[2]};
    HR_TRY(run_sums(r, &d, &a, err));
    return run_finish(r, &d, &f, err);
}

static void apply_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    char stage[CUDA_STAGES_MAX][CUDA_NAME_MAX];
    (void)name_stages(q, stage);
    (void)snprintf(name, CUDA_NAME_MAX, "%s", stage[STAGE_APPLY]);
}

static hr_status run_apply(const cuda_run *r, hr_err *err)
{
    const division d = batch_norm_divide(&r->query->in[0]);
    const batch_norm_args a = forward_args(r, &d, r->in[3], r->in[4]);
    return run_pass(r, r->function, &d, &a, err);
}

// What the kernels need of the pooling whose gradient is in the place of dy.
static pool_args pooled_args(const cuda_run *r)
{
    const op_query *q = r->query;
    return (pool_args){.dy = (const void *)r->in[DY],
                       .index = (const uint8_t *)r->in[INDEX],
                       .height = (int32_t)q->in[0].shape.dim[1],
                       .width = (int32_t)q->in[0].shape.dim[2],
                       .channels = (int32_t)q->in[0].shape.dim[3],
                       .pooled_height = (int32_t)q->in[DY].shape.dim[1],
                       .pooled_width = (int32_t)q->in[DY].shape.dim[2],
                       .kernel_h = q->attr.kernel_h,
                       .kernel_w = q->attr.kernel_w,
                       .stride_h = q->attr.stride_h,
                       .stride_w = q->attr.stride_w,
                       .pad_top = q->attr.pad_top,
                       .pad_left = q->attr.pad_left};
}

static hr_status run_bwd(const cuda_run *r, hr_err *err)
{
    const division d = batch_norm_divide(&r->query->in[0]);
    const bool gated = is_gated(r->query);
    batch_norm_args a = {.walk = d.walk,
                         .x = (const void *)r->in[0],
                         .dy = (const void *)r->in[1],
                         .gate = gated ? (const void *)r->in[GATE] : NULL,
                         .more = gated && r->query->in_count > MORE ? (const void *)r->in[MORE] : NULL,
                         .gated = gated ? (void *)r->out[GATED] : NULL,
                         .y = (void *)r->out[0],
                         .gamma = (const float *)r->in[2],
                         .beta = variant_of(r->query) == MASKED ? (const float *)r->in[BETA] : NULL,
                         .mean = (const float *)r->in[3],
                         .variance = (const float *)r->in[4],
                         .dgamma = (const float *)r->out[1],
                         .dbeta = (const float *)r->out[2],
                         .partial = (float *)r->workspace,
                         .epsilon = (float)r->query->attr.epsilon,
                         .ceiling = r->query->attr.act == HR_ACT_RELU6 ? 6.0f : INFINITY};
    if (variant_of(r->query) == POOLED) {
        a.pooled = pooled_args(r);
    }
    batch_norm_finish_args f = {
        .variance = a.variance, .dgamma = (float *)r->out[1], .dbeta = (float *)r->out[2]};
    HR_TRY(run_sums(r, &d, &a, err));
    HR_TRY(run_finish(r, &d, &f, err));
    a.dy = gated ? a.gated : a.dy;
    return run_pass(r, r->stage[STAGE_APPLY], &d, &a, err);
}

#define STAGED(id, runs)                                                                                     \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "channels", .fits = fits, .workspace = parts_bytes,    \
        .module = "batch_norm", .stages = name_stages, .run = (runs)                                         \
    }
#define APPLY(id)                                                                                            \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "channels", .fits = fits, .module = "batch_norm",      \
        .kernel = apply_name, .run = run_apply                                                               \
    }

static const cuda_impl impls[] = {STAGED(BATCH_NORM, run_batch_norm), STAGED(BATCH_NORM_BWD, run_bwd),
                                  STAGED(BATCH_NORM_STATISTICS, run_statistics), APPLY(BATCH_NORM_EVAL),
                                  APPLY(BATCH_NORM_APPLY)};

const cuda_family cuda_family_batch_norm = CUDA_FAMILY(impls);
