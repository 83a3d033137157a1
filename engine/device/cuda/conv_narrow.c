// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions by our own kernels. There is little to multiply (9 or 25 products a result), so what counts is
// bytes: these read each image from memory once, sixteen bytes at a time, and write each result once, which is the least
// there is. Forward and data gradient need no workspace; the weight gradient's is sums of parts, k² + 1 lines of channels
// each. That this beats cuDNN is counted, not measured.
//
// Not here: the first layer of an image net. By the count its 3 channels are not worth a kernel: 7×7 over 64 images of
// 224×224 are 15 GFLOP beside 122 MB, 0.25 ms of an H200's float32 units (60 TFLOP/s) against 0.03 ms of its memory; on tensor
// cores, with channels padded to 8 and that copy (25.7 to 51 MB) written and read, it is 0.12 ms at 400 TFLOP/s.
#include <stdio.h>

#include "headroom/units.h"

#include "conv_places.h"
#include "kernels/conv_narrow_args.h"

enum { PACK_BYTES = 16, BLOCKS = 512, WIDE_MAX = 32, WIDE_MIN = 8, SUM_THREADS = 256 };

// ---- shapes ----------------------------------------------------------------------------------------------------

static int32_t pieces(int32_t all, int32_t each)
{
    return (all + each - 1) / each;
}

static int32_t channels_at_once(const op_query *q)
{
    return PACK_BYTES / (int32_t)dtype_bytes((hr_dtype)cuda_type(q));
}

// Strips in a row of the image that is made. In a data gradient the first one may begin before the image, so that
// strips begin where a column of dy does.
static int32_t strips_of(const op_query *q)
{
    const int32_t width = (int32_t)q->out[0].shape.dim[2];
    const bool data = q->op == HR_OP_CONV2D_BWD_DATA;
    return pieces(width + (data ? q->attr.pad_left % q->attr.stride_w : 0), NARROW_STRIP);
}

static int32_t blocks_per_row(const op_query *q)
{
    const int32_t packs = (int32_t)q->out[0].shape.dim[3] / channels_at_once(q);
    return pieces(strips_of(q) * packs, NARROW_THREADS);
}

// Products and sums of what is indexed with 32 bits: a row's channels, all rows, all blocks.
static bool is_countable(const op_query *q)
{
    const int64_t *x = conv_operand_of(q, CONV_X)->shape.dim, *y = conv_operand_of(q, CONV_Y)->shape.dim;
    uint64_t row = 0, rows = 0, blocks = 0;
    return hr_mul_bytes((uint64_t)(x[2] > y[2] ? x[2] : y[2]), (uint64_t)x[3], &row) && row < INT32_MAX / 2 &&
           hr_mul_bytes((uint64_t)x[0], (uint64_t)(x[1] > y[1] ? x[1] : y[1]), &rows) &&
           hr_mul_bytes(rows, row / NARROW_THREADS + 1, &blocks) && blocks < INT32_MAX;
}

static bool fits(const cuda_device *device, const op_query *q)
{
    const op_attr *a = &q->attr;
    const int64_t *x = conv_operand_of(q, CONV_X)->shape.dim;
    const int64_t *w = conv_operand_of(q, CONV_WEIGHTS)->shape.dim;
    return cuda_one_type(device, q) && w[2] == 1 && x[3] == w[3] && x[3] > 1 && w[0] == w[1] &&
           a->gap_h == 0 && a->gap_w == 0 && (w[0] == 3 || w[0] == 5) && a->stride_h == a->stride_w &&
           (a->stride_h == 1 || a->stride_h == 2) && a->pad_top < w[0] && a->pad_left < w[0] &&
           a->pad_bottom < w[0] && a->pad_right < w[0] && x[3] % channels_at_once(q) == 0 && is_countable(q);
}

static conv_narrow_args arguments_of(const op_query *q)
{
    const int64_t *x = conv_operand_of(q, CONV_X)->shape.dim, *y = conv_operand_of(q, CONV_Y)->shape.dim;
    return (conv_narrow_args){.samples = x[0],
                              .x_h = (int32_t)x[1],
                              .x_w = (int32_t)x[2],
                              .y_h = (int32_t)y[1],
                              .y_w = (int32_t)y[2],
                              .channels = (int32_t)x[3],
                              .pad_top = q->attr.pad_top,
                              .pad_left = q->attr.pad_left,
                              .act = q->attr.act};
}

static void name_of(const char *what, const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "narrow_%s_%d_%d_%s", what,
                   (int)conv_operand_of(q, CONV_WEIGHTS)->shape.dim[0], q->attr.stride_h,
                   cuda_suffix(cuda_type(q)));
}

// ---- forward and data gradient ---------------------------------------------------------------------------------

static void name_forward(const op_query *q, char name[CUDA_NAME_MAX])
{
    name_of("forward", q, name);
}

static void name_data(const op_query *q, char name[CUDA_NAME_MAX])
{
    name_of("data", q, name);
}

static hr_status launch_rows(const cuda_run *r, conv_narrow_args *a, hr_err *err)
{
    const int64_t *made = r->query->out[0].shape.dim;
    a->out = (void *)r->out[0];
    a->w = (const void *)r->in[1];
    a->blocks_per_row = blocks_per_row(r->query);
    const cuda_grid grid = {.blocks_x = (uint32_t)(made[0] * made[1] * a->blocks_per_row),
                            .blocks_y = 1,
                            .blocks_z = 1,
                            .threads = NARROW_THREADS};
    return cuda_launch(r, r->function, grid, a, sizeof *a, err);
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    conv_narrow_args a = arguments_of(r->query);
    a.x = (const void *)r->in[0];
    a.bias = r->query->in_count > 2 ? (const void *)r->in[2] : NULL;
    return launch_rows(r, &a, err);
}

static hr_status run_data(const cuda_run *r, hr_err *err)
{
    conv_narrow_args a = arguments_of(r->query);
    a.y = (const void *)r->in[0];
    return launch_rows(r, &a, err);
}

// ---- weight gradient -------------------------------------------------------------------------------------------

enum { STAGE_PARTS, STAGE_SUM, STAGES };

static uint32_t name_weights(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    name_of("weights", q, name[STAGE_PARTS]);
    (void)snprintf(name[STAGE_SUM], CUDA_NAME_MAX, "narrow_sum_%s", cuda_suffix(cuda_type(q)));
    return STAGES;
}

// How a weight gradient is divided; of the shape alone, so that every card gets the same bits.
typedef struct division {
    int32_t wide, blocks,
        parts; // threads side by side over channels, blocks over channels, parts of the rows
} division;

static division division_of(const op_query *q)
{
    const int64_t *y = q->in[1].shape.dim, rows = y[0] * y[1];
    const int32_t at_once = q->out[0].shape.dim[0] == 3 ? 4 : 2; // as the kernel has them
    const int32_t packs = (int32_t)y[3] / at_once;
    division d = {.wide = WIDE_MAX};
    while (d.wide > WIDE_MIN && d.wide / 2 >= packs) {
        d.wide /= 2;
    }
    d.blocks = pieces(packs, d.wide);
    const int64_t most = (rows * d.wide + NARROW_WEIGHT_THREADS - 1) / NARROW_WEIGHT_THREADS;
    d.parts = pieces(BLOCKS, d.blocks);
    d.parts = d.parts < most ? d.parts : (int32_t)most;
    return d;
}

static uint64_t sums_of(const op_query *q)
{
    return cuda_elements(&q->out[0]) + (q->out_count > 1 ? cuda_elements(&q->out[1]) : 0);
}

static uint64_t workspace_weights(const cuda_device *device, const op_query *q)
{
    (void)device;
    return (uint64_t)division_of(q).parts * sums_of(q) * sizeof(float);
}

static hr_status run_weights(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const division d = division_of(q);
    const bool with_bias = q->out_count > 1;
    conv_narrow_args a = arguments_of(q);
    a.x = (const void *)r->in[0];
    a.y = (const void *)r->in[1];
    a.partial = (float *)r->workspace;
    a.wide = d.wide;
    a.parts = d.parts;
    a.with_bias = with_bias;
    const cuda_grid grid = {.blocks_x = (uint32_t)d.blocks * (uint32_t)d.parts,
                            .blocks_y = 1,
                            .blocks_z = 1,
                            .threads = NARROW_WEIGHT_THREADS};
    HR_TRY(cuda_launch(r, r->stage[STAGE_PARTS], grid, &a, sizeof a, err));
    const conv_narrow_sum_args sum = {.partial = a.partial,
                                      .weights = (void *)r->out[0],
                                      .biases = with_bias ? (void *)r->out[1] : NULL,
                                      .weight_count = (int64_t)cuda_elements(&q->out[0]),
                                      .bias_count = with_bias ? a.channels : 0,
                                      .parts = d.parts};
    return cuda_launch(r, r->stage[STAGE_SUM], cuda_grid_over(r->device, sums_of(q), 1, SUM_THREADS), &sum,
                       sizeof sum, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_CONV2D,
     .types = CUDA_REAL,
     .name = "depthwise",
     .fits = fits,
     .module = "conv_narrow",
     .kernel = name_forward,
     .run = run_forward},
    {.op = HR_OP_CONV2D_BWD_DATA,
     .types = CUDA_REAL,
     .name = "depthwise",
     .fits = fits,
     .module = "conv_narrow",
     .kernel = name_data,
     .run = run_data},
    {.op = HR_OP_CONV2D_BWD_WEIGHTS,
     .types = CUDA_REAL,
     .name = "depthwise",
     .fits = fits,
     .workspace = workspace_weights,
     .module = "conv_narrow",
     .stages = name_weights,
     .run = run_weights},
};

const cuda_family cuda_family_conv_narrow = CUDA_FAMILY(impls);
