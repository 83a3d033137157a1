// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows and softmax: a kernel per length of row; gradients of scales are summed in two stages.
#include <stdio.h>

#include "headroom/units.h"

#include "cuda_device.h"
#include "kernels/norm_args.h"
#include "rows.h"

enum {
    WARP = 32,
    COLUMN_ROWS = 8, // of a block of column sums, see kernels/rows.cuh
    COLUMN_THREADS = WARP * COLUMN_ROWS,
    PART_ROWS = 32, // at least, of every partial sum
    PARTS_PER_PROCESSOR = 2,
};

// Which input of a gradient is added to dx, where there is one.
static uint32_t added_to(const op_query *q)
{
    return q->op == HR_OP_LAYER_NORM_BWD ? 5 : q->op == HR_OP_RMS_NORM_BWD ? 4 : OP_MAX_IN;
}

// What normalises is float32 whatever x is; two-byte types are of x, dy, dx and what is added to it alike.
static bool norm_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    const uint32_t gamma = q->op == HR_OP_LAYER_NORM || q->op == HR_OP_RMS_NORM ? 1 : 2;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const bool in = k < q->in_count, wide = in ? k >= gamma && k != added_to(q) : k > q->in_count;
        const op_operand *t = in ? &q->in[k] : &q->out[k - q->in_count];
        if (t->dtype != (wide ? HR_F32 : cuda_type(q))) {
            return false;
        }
    }
    return true;
}

// ---- forward --------------------------------------------------------------------------------------------------

static hr_status run_norm(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const bool centred = q->op == HR_OP_LAYER_NORM;
    cuda_rows rows = cuda_rows_of(r->device, &q->in[0], q->in[0].dtype);
    const norm_args a = {.x = (const void *)r->in[0],
                         .gamma = (const float *)r->in[1],
                         .beta = centred ? (const float *)r->in[2] : NULL,
                         .y = (void *)r->out[0],
                         .mean_out = centred ? (float *)r->out[1] : NULL,
                         .rstd_out = (float *)r->out[centred ? 2 : 1],
                         .rows = rows.rows,
                         .features = rows.columns,
                         .epsilon = (float)q->attr.epsilon,
                         .vectors = rows.vectors,
                         .cached = cuda_rows_cache(r->device, &rows, q->in[0].dtype)};
    return cuda_launch(r, r->function, rows.grid, &a, sizeof a, err);
}

// ---- backward -------------------------------------------------------------------------------------------------

// Blocks that sum columns: every one leaves its sums in the workspace.
static uint32_t parts_of(const cuda_device *device, const cuda_rows *rows)
{
    const int64_t most = (int64_t)cuda_device_traits(device)->multiprocessors * PARTS_PER_PROCESSOR,
                  parts = (rows->rows + PART_ROWS - 1) / PART_ROWS;
    return (uint32_t)(parts < most ? parts : most);
}

static uint64_t bwd_workspace(const cuda_device *device, const op_query *q)
{
    const cuda_rows rows = cuda_rows_of(device, &q->in[0], q->in[0].dtype);
    const uint64_t sums = q->op == HR_OP_LAYER_NORM_BWD ? 2 : 1;
    uint64_t bytes = 0;
    (void)hr_mul_bytes((uint64_t)rows.columns * sums * sizeof(float), parts_of(device, &rows), &bytes);
    return bytes;
}

enum { STAGE_ROWS, STAGE_FINISH, STAGE_COLUMNS, STAGES };

static uint32_t name_bwd(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    cuda_rows_kernel(q, name[STAGE_ROWS]);
    (void)snprintf(name[STAGE_FINISH], CUDA_NAME_MAX, "norm_finish");
    (void)snprintf(name[STAGE_COLUMNS], CUDA_NAME_MAX, "%s_columns_%s", op_name((hr_op)q->op),
                   cuda_suffix(cuda_type(q)));
    return STAGES;
}

static uint32_t column_blocks(int64_t columns)
{
    return (uint32_t)((columns + WARP - 1) / WARP);
}

static hr_status run_finish(const cuda_run *r, const norm_args *a, int64_t parts, hr_err *err)
{
    const bool centred = r->query->op == HR_OP_LAYER_NORM_BWD;
    const norm_finish_args f = {.partial = a->partial,
                                .dgamma = (float *)r->out[1],
                                .dbeta = centred ? (float *)r->out[2] : NULL,
                                .features = a->features,
                                .parts = parts};
    const cuda_grid grid = {.blocks_x = column_blocks(centred ? 2 * a->features : a->features),
                            .threads = COLUMN_THREADS};
    return cuda_launch(r, r->stage[STAGE_FINISH], grid, &f, sizeof f, err);
}

// Long rows: the sums first, because dx may lie on dy.
static hr_status run_bwd(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const bool centred = q->op == HR_OP_LAYER_NORM_BWD;
    const uint32_t added = added_to(q);
    cuda_rows rows = cuda_rows_of(r->device, &q->in[0], q->in[0].dtype);
    const uint32_t parts = parts_of(r->device, &rows);
    const norm_args a = {.x = (const void *)r->in[0],
                         .dy = (const void *)r->in[1],
                         .more = q->in_count > added ? (const void *)r->in[added] : NULL,
                         .gamma = (const float *)r->in[2],
                         .mean = centred ? (const float *)r->in[3] : NULL,
                         .rstd = (const float *)r->in[centred ? 4 : 3],
                         .y = (void *)r->out[0],
                         .partial = (float *)r->workspace,
                         .rows = rows.rows,
                         .features = rows.columns,
                         .vectors = rows.vectors};
    if (rows.mode == CUDA_ROWS_LONG) {
        const cuda_grid columns = {
            .blocks_x = column_blocks(a.features), .blocks_y = parts, .threads = COLUMN_THREADS};
        HR_TRY(cuda_launch(r, r->stage[STAGE_COLUMNS], columns, &a, sizeof a, err));
    } else {
        rows.grid.blocks_x = parts;
        rows.grid.shared_bytes =
            rows.mode == CUDA_ROWS_WARP ? (uint32_t)(2 * a.features) * (uint32_t)sizeof(float) : 0;
    }
    HR_TRY(cuda_launch(r, r->stage[STAGE_ROWS], rows.grid, &a, sizeof a, err));
    return run_finish(r, &a, parts, err);
}

// ---- softmax --------------------------------------------------------------------------------------------------

static hr_status run_softmax(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const hr_shape *s = &q->in[0].shape;
    const bool backward = q->op == HR_OP_SOFTMAX_BWD;
    cuda_rows rows = cuda_rows_of(r->device, &q->in[0], q->in[0].dtype);
    const softmax_args a = {.x = (const void *)r->in[0],
                            .dy = backward ? (const void *)r->in[1] : NULL,
                            .out = (void *)r->out[0],
                            .rows = rows.rows,
                            .columns = rows.columns,
                            .height = s->rank > 1 ? s->dim[s->rank - 2] : 1,
                            .causal = (q->attr.flags & OP_FLAG_CAUSAL) != 0,
                            .vectors = rows.vectors,
                            .cached = backward ? 0 : cuda_rows_cache(r->device, &rows, q->in[0].dtype)};
    return cuda_launch(r, r->function, rows.grid, &a, sizeof a, err);
}

#define NORM(id)                                                                                             \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "rows", .fits = norm_fits, .module = "norm",           \
        .kernel = cuda_rows_kernel, .run = run_norm                                                          \
    }
#define NORM_BWD(id)                                                                                         \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "rows", .fits = norm_fits, .workspace = bwd_workspace, \
        .module = "norm", .stages = name_bwd, .run = run_bwd                                                 \
    }
#define SOFTMAX(id)                                                                                          \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "rows", .module = "softmax",                           \
        .kernel = cuda_rows_kernel, .run = run_softmax                                                       \
    }

static const cuda_impl impls[] = {NORM(LAYER_NORM),       NORM(RMS_NORM),   NORM_BWD(LAYER_NORM_BWD),
                                  NORM_BWD(RMS_NORM_BWD), SOFTMAX(SOFTMAX), SOFTMAX(SOFTMAX_BWD)};

const cuda_family cuda_family_norm = CUDA_FAMILY(impls);
