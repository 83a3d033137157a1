// SPDX-License-Identifier: Apache-2.0
// Every convolution by our own kernels: what is taken where cuDNN has no engine within workspace.limit, or none at all.
//
// Forward and data gradients take no workspace. A weight gradient whose result is too small for enough blocks is made
// in parts, as many as the limit allows, which are then summed up in their order.
#include <stdio.h>

#include "conv_places.h"
#include "kernels/conv_direct_args.h"

enum { SUM_THREADS = 256, BLOCKS_PER_PROCESSOR = 4, PIXELS_PER_PART = 16 * CONV_TILE_DEPTH };

// ---- shapes ----------------------------------------------------------------------------------------------------

static conv_direct_args arguments_of(const op_query *q)
{
    const int64_t *x = conv_operand_of(q, CONV_X)->shape.dim, *y = conv_operand_of(q, CONV_Y)->shape.dim;
    const int64_t *w = conv_operand_of(q, CONV_WEIGHTS)->shape.dim;
    const int64_t groups = x[3] / w[2];
    return (conv_direct_args){.samples = x[0],
                              .x_h = (int32_t)x[1],
                              .x_w = (int32_t)x[2],
                              .x_c = (int32_t)x[3],
                              .y_h = (int32_t)y[1],
                              .y_w = (int32_t)y[2],
                              .y_c = (int32_t)y[3],
                              .group_c = (int32_t)w[2],
                              .group_f = (int32_t)(y[3] / groups),
                              .groups = (int32_t)groups,
                              .kernel_h = (int32_t)w[0],
                              .kernel_w = (int32_t)w[1],
                              .stride_h = q->attr.stride_h,
                              .stride_w = q->attr.stride_w,
                              .apart_h = q->attr.gap_h + 1,
                              .apart_w = q->attr.gap_w + 1,
                              .pad_top = q->attr.pad_top,
                              .pad_left = q->attr.pad_left,
                              .act = q->attr.act,
                              .splits = 1};
}

static int64_t pieces(int64_t all, int64_t each)
{
    return (all + each - 1) / each;
}

static int64_t columns_blocks(int64_t group_channels, int64_t groups)
{
    return pieces(group_channels, CONV_TILE_COLUMNS) * groups;
}

static int64_t forward_blocks(const conv_direct_args *a)
{
    return pieces(a->samples * a->y_h * a->y_w, CONV_TILE_ROWS) * columns_blocks(a->group_f, a->groups);
}

// As many as the largest of the strides' parts needs, for each of them.
static int64_t data_blocks(const conv_direct_args *a)
{
    const int64_t pixels = a->samples * pieces(a->x_h, a->stride_h) * pieces(a->x_w, a->stride_w);
    return pieces(pixels, CONV_TILE_ROWS) * a->stride_h * a->stride_w * columns_blocks(a->group_c, a->groups);
}

static int64_t weights_blocks(const conv_direct_args *a)
{
    const int64_t rows = (int64_t)a->kernel_h * a->kernel_w * a->group_c;
    return pieces(rows, CONV_TILE_ROWS) * columns_blocks(a->group_f, a->groups);
}

static bool fits(const cuda_device *device, const op_query *q)
{
    const op_operand *x = conv_operand_of(q, CONV_X), *y = conv_operand_of(q, CONV_Y);
    for (uint32_t k = 0; k < 4; k++) {
        if (x->shape.dim[k] > INT32_MAX || y->shape.dim[k] > INT32_MAX) {
            return false;
        }
    }
    const conv_direct_args a = arguments_of(q);
    return cuda_one_type(device, q) && forward_blocks(&a) <= INT32_MAX && data_blocks(&a) <= INT32_MAX;
}

// ---- pixels ----------------------------------------------------------------------------------------------------

static void name_forward(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "conv_forward_%s", cuda_suffix(cuda_type(q)));
}

static void name_data(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "conv_data_%s", cuda_suffix(cuda_type(q)));
}

static hr_status launch(const cuda_run *r, CUfunction function, int64_t blocks, const void *arguments,
                        uint32_t bytes, hr_err *err)
{
    const cuda_grid grid = {
        .blocks_x = (uint32_t)blocks, .blocks_y = 1, .blocks_z = 1, .threads = CONV_THREADS};
    return cuda_launch(r, function, grid, arguments, bytes, err);
}

static const void *bias_of(const cuda_run *r)
{
    return r->query->in_count > 2 ? (const void *)r->in[2] : NULL;
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    conv_direct_args a = arguments_of(r->query);
    a.x = (const void *)r->in[0];
    a.w = (const void *)r->in[1];
    a.bias = bias_of(r);
    a.out = (void *)r->out[0];
    return launch(r, r->function, forward_blocks(&a), &a, sizeof a, err);
}

static hr_status run_data(const cuda_run *r, hr_err *err)
{
    conv_direct_args a = arguments_of(r->query);
    a.y = (const void *)r->in[0];
    a.w = (const void *)r->in[1];
    a.bias = bias_of(r);
    a.out = (void *)r->out[0];
    return launch(r, r->function, data_blocks(&a), &a, sizeof a, err);
}

// ---- weights ---------------------------------------------------------------------------------------------------

enum { STAGE_WEIGHTS, STAGE_COLUMNS, STAGE_SUM, STAGES };

static uint32_t name_weights(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    static const char *const stages[STAGES] = {"weights", "columns", "sum"};
    for (uint32_t k = 0; k < STAGES; k++) {
        (void)snprintf(name[k], CUDA_NAME_MAX, "conv_%s_%s", stages[k], cuda_suffix(cuda_type(q)));
    }
    return STAGES;
}

// Elements of dw, and of db where there is one.
static uint64_t sums_of(const op_query *q)
{
    return cuda_elements(&q->out[0]) + (q->out_count > 1 ? cuda_elements(&q->out[1]) : 0);
}

static hr_status ask_weights(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)err;
    const conv_direct_args a = arguments_of(q);
    const int64_t pixels = a.samples * a.y_h * a.y_w, blocks = weights_blocks(&a);
    const uint64_t part_bytes = sums_of(q) * sizeof(float), allowed = limit / part_bytes;
    int64_t parts = (int64_t)cuda_device_traits(device)->multiprocessors * BLOCKS_PER_PROCESSOR /
                    (blocks > 0 ? blocks : 1);
    parts = parts < pieces(pixels, PIXELS_PER_PART) ? parts : pieces(pixels, PIXELS_PER_PART);
    parts = (uint64_t)parts < allowed ? parts : (int64_t)allowed;
    out->workspace_bytes = parts > 1 ? (uint64_t)parts * part_bytes : 0;
    out->impl = "own direct";
    return HR_OK;
}

static hr_status sum_up(const cuda_run *r, const float *partial, CUdeviceptr out, uint64_t count,
                        int32_t splits, hr_err *err)
{
    const conv_sum_args a = {
        .partial = partial, .out = (void *)out, .count = (int64_t)count, .splits = splits};
    return cuda_launch(r, r->stage[STAGE_SUM], cuda_grid_over(r->device, count, 1, SUM_THREADS), &a, sizeof a,
                       err);
}

// db: the columns of dy, one part each of `partial`, which lies behind those of dw.
static hr_status sum_bias(const cuda_run *r, const op_operand *dy, CUdeviceptr address, float *partial,
                          int32_t splits, hr_err *err)
{
    const int64_t channels = dy->shape.dim[3];
    const conv_columns_args a = {.x = (const void *)address,
                                 .out = (void *)r->out[1],
                                 .partial = partial,
                                 .rows = (int64_t)cuda_elements(dy) / channels,
                                 .columns = (int32_t)channels,
                                 .splits = splits};
    HR_TRY(
        launch(r, r->stage[STAGE_COLUMNS], pieces(channels, CONV_SUM_COLUMNS) * splits, &a, sizeof a, err));
    return partial == NULL ? HR_OK : sum_up(r, partial, r->out[1], (uint64_t)channels, splits, err);
}

static hr_status run_weights(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const uint64_t count = cuda_elements(&q->out[0]),
                   parts = r->workspace_bytes / (sums_of(q) * sizeof(float));
    conv_direct_args a = arguments_of(q);
    a.x = (const void *)conv_address_of(r, CONV_X);
    a.y = (const void *)conv_address_of(r, CONV_Y);
    a.out = (void *)r->out[0];
    a.splits = parts > 1 ? (int32_t)parts : 1;
    a.partial = parts > 1 ? (float *)r->workspace : NULL;
    HR_TRY(launch(r, r->stage[STAGE_WEIGHTS], weights_blocks(&a) * a.splits, &a, sizeof a, err));
    if (a.partial != NULL) {
        HR_TRY(sum_up(r, a.partial, r->out[0], count, a.splits, err));
    }
    float *behind = a.partial == NULL ? NULL : a.partial + (uint64_t)a.splits * count;
    return q->out_count > 1 ? sum_bias(r, &q->in[1], r->in[1], behind, a.splits, err) : HR_OK;
}

#define PIXELS(OP, name_of, run_of)                                                                          \
    {                                                                                                        \
        .op = (OP), .types = CUDA_REAL, .name = "direct", .fits = fits, .module = "conv_direct",             \
        .kernel = (name_of), .run = (run_of)                                                                 \
    }
#define WEIGHTS(OP)                                                                                          \
    {                                                                                                        \
        .op = (OP), .types = CUDA_REAL, .name = "direct", .fits = fits, .ask = ask_weights,                  \
        .module = "conv_direct", .stages = name_weights, .run = run_weights                                  \
    }

static const cuda_impl impls[] = {
    PIXELS(HR_OP_CONV2D, name_forward, run_forward),
    PIXELS(HR_OP_CONV2D_BWD_DATA, name_data, run_data),
    WEIGHTS(HR_OP_CONV2D_BWD_WEIGHTS),
    PIXELS(HR_OP_CONV2D_TRANSPOSE, name_data, run_data),
    PIXELS(HR_OP_CONV2D_TRANSPOSE_BWD_DATA, name_forward, run_forward),
    WEIGHTS(HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS),
};

const cuda_family cuda_family_conv_direct = CUDA_FAMILY(impls);
