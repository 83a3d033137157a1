// SPDX-License-Identifier: Apache-2.0
// Losses, their gradients and accuracy. What is summed over rows is summed in two stages: every block leaves a double
// in the workspace.
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/loss_args.h"
#include "rows.h"

enum { THREADS = 256, FINISH_THREADS = 512, PACK_BYTES = 16 };
enum { STAGE_PARTS, STAGE_FINISH, STAGES };

// A mean over elements, each beside its target.
static bool by_elements(const op_query *q)
{
    return q->op == HR_OP_MSE || q->op == HR_OP_MSE_BWD || q->op == HR_OP_BINARY_XENT ||
           q->op == HR_OP_BINARY_XENT_BWD || q->op == HR_OP_FOCAL || q->op == HR_OP_FOCAL_BWD;
}

static bool is_flat(const op_query *q)
{
    return by_elements(q) || q->op == HR_OP_SOFTMAX_XENT_BWD || q->op == HR_OP_SOFTMAX_XENT_STREAM_BWD;
}

static bool has_labels(const op_query *q)
{
    return !by_elements(q) && q->op != HR_OP_KL && q->op != HR_OP_KL_BWD;
}

// Type of logits, predictions, students and their gradients, which may be a two-byte one; the rest is float32.
static uint32_t type_of(const op_query *q)
{
    return q->op == HR_OP_KL_BWD ? q->out[0].dtype : q->in[0].dtype;
}

static bool are_float32(const op_operand *from, const op_operand *end)
{
    while (from < end && from->dtype == HR_F32) {
        from++;
    }
    return from >= end;
}

static bool fits_forward(const cuda_device *device, const op_query *q)
{
    (void)device;
    if (q->op == HR_OP_SOFTMAX_XENT_GRADIENT) {
        return q->out[0].dtype == q->in[0].dtype && q->out[1].dtype == HR_F32 &&
               are_float32(q->in + 2, q->in + q->in_count);
    }
    return (has_labels(q) || q->in[1].dtype == q->in[0].dtype) &&
           (q->op == HR_OP_ACCURACY ? q->out[0].dtype == HR_I32 : are_float32(q->out, q->out + q->out_count));
}

static bool fits_backward(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->out[0].dtype == type_of(q) && (q->op != HR_OP_KL_BWD || q->in[0].dtype == HR_F32) &&
           (has_labels(q) || q->in[1].dtype == type_of(q)) && are_float32(q->in + 2, q->in + q->in_count);
}

// ---- launches -------------------------------------------------------------------------------------------------

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    if (is_flat(q)) {
        (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(cuda_type(q)));
    } else {
        cuda_rows_kernel(q, name);
    }
}

static cuda_rows rows_of(const cuda_device *device, const op_query *q)
{
    cuda_rows rows = cuda_rows_of(device, &q->in[0], type_of(q));
    if (is_flat(q)) {
        rows.grid = cuda_grid_over(device, (uint64_t)(rows.rows * rows.pitch),
                                   PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)type_of(q)), THREADS);
    }
    return rows;
}

static uint64_t parts_bytes(const cuda_device *device, const op_query *q)
{
    return rows_of(device, q).grid.blocks_x * sizeof(double);
}

static loss_args args_of(const cuda_run *r, const cuda_rows *rows)
{
    const op_query *q = r->query;
    return (loss_args){.x = (const void *)r->in[0],
                       .other = has_labels(q) ? NULL : (const void *)r->in[1],
                       .labels = has_labels(q) ? (const void *)r->in[1] : NULL,
                       .rows = rows->rows,
                       .classes = rows->columns,
                       .pitch = rows->pitch,
                       .cold = q->attr.epsilon > 0.0 ? (float)(1.0 / q->attr.epsilon) : 1.0f,
                       .gamma = (float)q->attr.rate,
                       .alpha = (float)q->attr.momentum,
                       .byte_labels = q->in[1].dtype == HR_U8,
                       .vectors = rows->vectors};
}

static uint32_t name_forward(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    name_of(q, name[STAGE_PARTS]);
    (void)snprintf(name[STAGE_FINISH], CUDA_NAME_MAX, "loss_finish");
    return STAGES;
}

// What the sum over rows or elements is multiplied with.
static double mean_factor(const op_query *q, const cuda_rows *rows)
{
    const double t = q->attr.epsilon;
    return q->op == HR_OP_ACCURACY ? 1.0
           : by_elements(q)        ? 1.0 / (double)cuda_elements(&q->in[0])
           : q->op == HR_OP_KL     ? t * t / (double)rows->rows
                                   : 1.0 / (double)rows->rows;
}

// Of one element: the loss's weight, and how the mean is made.
static double share_of(const op_query *q, const cuda_rows *rows)
{
    const double weight = q->attr.scale == 0.0 ? 1.0 : q->attr.scale;
    return q->op == HR_OP_MSE_BWD  ? 2.0 * weight / (double)cuda_elements(&q->in[0])
           : by_elements(q)        ? weight / (double)cuda_elements(&q->in[0])
           : q->op == HR_OP_KL_BWD ? weight * q->attr.epsilon / (double)rows->rows
                                   : weight / (double)rows->rows;
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const bool streams = q->op == HR_OP_SOFTMAX_XENT_STREAM;
    const bool reads_once = streams || is_flat(q) || q->op == HR_OP_KL;
    cuda_rows rows = rows_of(r->device, q);
    loss_args a = args_of(r, &rows);
    a.out = (void *)r->out[0];
    a.most = streams ? (float *)r->out[0] : NULL;
    a.rsum = streams ? (float *)r->out[1] : NULL;
    a.scale = q->op == HR_OP_SOFTMAX_XENT_GRADIENT && q->in_count > 2 ? (const float *)r->in[2] : NULL;
    a.share = (float)share_of(q, &rows);
    a.partial = (double *)r->workspace;
    a.cached = reads_once ? 0 : cuda_rows_cache(r->device, &rows, type_of(q));
    HR_TRY(cuda_launch(r, r->stage[STAGE_PARTS], rows.grid, &a, sizeof a, err));
    const loss_finish_args f = {.partial = a.partial,
                                .out = (void *)r->out[q->out_count - 1],
                                .parts = rows.grid.blocks_x,
                                .factor = mean_factor(q, &rows),
                                .counts = q->op == HR_OP_ACCURACY};
    const cuda_grid one = {.blocks_x = 1, .blocks_y = 1, .blocks_z = 1, .threads = FINISH_THREADS};
    return cuda_launch(r, r->stage[STAGE_FINISH], one, &f, sizeof f, err);
}

static hr_status run_backward(const cuda_run *r, hr_err *err)
{
    const bool streams = r->query->op == HR_OP_SOFTMAX_XENT_STREAM_BWD;
    const uint32_t scale = streams ? 4 : 2; // the input that is the loss scale
    cuda_rows rows = rows_of(r->device, r->query);
    loss_args a = args_of(r, &rows);
    a.out = (void *)r->out[0];
    a.most = streams ? (float *)r->in[2] : NULL;
    a.rsum = streams ? (float *)r->in[3] : NULL;
    a.scale = r->query->in_count > scale ? (const float *)r->in[scale] : NULL;
    a.share = (float)share_of(r->query, &rows);
    a.cached = is_flat(r->query) ? 0 : cuda_rows_cache(r->device, &rows, type_of(r->query));
    return cuda_launch(r, r->function, rows.grid, &a, sizeof a, err);
}

#define FORWARD(id, taken)                                                                                   \
    {                                                                                                        \
        .op = HR_OP_##id, .types = (taken), .name = "parts", .fits = fits_forward, .workspace = parts_bytes, \
        .module = "loss", .stages = name_forward, .run = run_forward                                         \
    }
#define BACKWARD(id, taken)                                                                                  \
    {                                                                                                        \
        .op = HR_OP_##id, .types = (taken), .name = "once", .fits = fits_backward, .module = "loss",         \
        .kernel = name_of, .run = run_backward                                                               \
    }

static const cuda_impl impls[] = {FORWARD(SOFTMAX_XENT, CUDA_F32),
                                  BACKWARD(SOFTMAX_XENT_BWD, CUDA_F32),
                                  FORWARD(SOFTMAX_XENT_STREAM, CUDA_REAL),
                                  BACKWARD(SOFTMAX_XENT_STREAM_BWD, CUDA_REAL),
                                  FORWARD(SOFTMAX_XENT_GRADIENT, CUDA_REAL),
                                  FORWARD(MSE, CUDA_REAL),
                                  BACKWARD(MSE_BWD, CUDA_REAL),
                                  FORWARD(BINARY_XENT, CUDA_REAL),
                                  BACKWARD(BINARY_XENT_BWD, CUDA_REAL),
                                  FORWARD(FOCAL, CUDA_REAL),
                                  BACKWARD(FOCAL_BWD, CUDA_REAL),
                                  FORWARD(KL, CUDA_REAL),
                                  BACKWARD(KL_BWD, CUDA_REAL),
                                  FORWARD(ACCURACY, CUDA_REAL)};

const cuda_family cuda_family_loss = CUDA_FAMILY(impls);
