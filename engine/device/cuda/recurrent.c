// SPDX-License-Identifier: Apache-2.0
// LSTM and GRU: for every step one product by cuBLASLt and one launch of ours; the gradient of the recurrent weights is one
// product over all steps behind them.
#include <stdio.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "cuda_device.h"
#include "kernels/recurrent_args.h"
#include "product.h"

enum { ALIGNMENT = 256, PACK_BYTES = 16, VECTOR_THREADS = 1 << 15 };

typedef struct sizes {
    int64_t samples, steps, units;
    int64_t gates; // that the product makes: 4, of a GRU 3
    uint32_t dtype;
} sizes;

typedef struct lstm_state {
    product *step, *weights; // weights: backward only
    CUfunction gates, move;  // move: backward only
    CUfunction bias;         // of a GRU, backward
} lstm_state;

static bool is_forward(const op_query *q)
{
    return q->op == HR_OP_LSTM || q->op == HR_OP_GRU;
}

static bool is_gru(const op_query *q)
{
    return q->op == HR_OP_GRU || q->op == HR_OP_GRU_BWD;
}

static sizes sizes_of(const op_query *q)
{
    const op_operand *h = is_forward(q) ? &q->out[0] : &q->in[1];
    const int64_t *d = h->shape.dim;
    return (sizes){d[0], d[1], d[2], is_gru(q) ? 3 : 4, h->dtype};
}

static bool fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    bool uniform = true;
    for (uint32_t k = 1; k < q->in_count; k++) {
        uniform = uniform && q->in[k].dtype == q->in[0].dtype;
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        uniform = uniform && q->out[k].dtype == q->in[0].dtype;
    }
    return uniform;
}

static int64_t lanes_of(const sizes *s)
{
    return PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)s->dtype);
}

// Rows of whole vectors, and enough of them to keep a card busy: a short step is quicker with a thread for each unit.
static bool takes_vectors(const sizes *s)
{
    return s->units % lanes_of(s) == 0 && s->samples * s->units / lanes_of(s) >= VECTOR_THREADS;
}

// ---- products ---------------------------------------------------------------------------------------------

// h(t-1)[N, H] · Wh[H, 4H], or dg(t)[N, 4H] · Whᵀ; of a GRU 3H, and dq for dg.
static product_shape step_shape(const op_query *q)
{
    const sizes s = sizes_of(q);
    const bool forward = is_forward(q);
    return (product_shape){.dtype = s.dtype,
                           .out_dtype = HR_F32,
                           .m = s.samples,
                           .n = forward ? s.gates * s.units : s.units,
                           .k = forward ? s.units : s.gates * s.units,
                           .transpose_b = !forward,
                           .alpha = 1.0F};
}

// Of h of the steps before, [N*T, H]ᵀ, with dg [N*T, 4H].
static product_shape weights_shape(const op_query *q)
{
    const sizes s = sizes_of(q);
    return (product_shape){.dtype = s.dtype,
                           .out_dtype = s.dtype,
                           .m = s.units,
                           .n = s.gates * s.units,
                           .k = s.samples * s.steps,
                           .transpose_a = true,
                           .alpha = 1.0F};
}

// ---- rooms ------------------------------------------------------------------------------------------------

// Of the workspace. The products' scratch stands behind.
typedef struct rooms {
    CUdeviceptr product, state, left, moved, all, scratch;
} rooms;

static CUdeviceptr take(CUdeviceptr *at, int64_t elements, uint64_t each)
{
    const CUdeviceptr room = *at;
    *at += ((uint64_t)elements * each + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return room;
}

static rooms rooms_of(const op_query *q, CUdeviceptr workspace)
{
    const sizes s = sizes_of(q);
    const bool forward = is_forward(q);
    const int64_t one = s.samples * s.units;
    const uint64_t each = dtype_bytes((hr_dtype)s.dtype);
    rooms r = {.scratch = workspace};
    r.product = take(&r.scratch, forward ? s.gates * one : one, sizeof(float));
    r.state = take(&r.scratch, one, sizeof(float));
    r.left = take(&r.scratch, forward ? one : s.gates * one, each);
    r.moved = take(&r.scratch, forward ? 0 : s.steps * one, each);
    r.all = take(&r.scratch, !forward && is_gru(q) ? 3 * s.steps * one : 0, each);
    return r;
}

static uint64_t own_bytes(const op_query *q)
{
    return rooms_of(q, 0).scratch;
}

static hr_status refuse(const op_query *q, uint64_t needed_bytes, uint64_t limit_bytes, hr_err *err)
{
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    (void)HR_FAIL(err, DEVICE, "%s needs %s of workspace, workspace.limit is %s", op_name((hr_op)q->op),
                  hr_bytes_human(needed_bytes, needed), hr_bytes_human(limit_bytes, had));
    hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(needed_bytes, needed));
    return HR_DEVICE;
}

static hr_status ask(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    const uint64_t own = own_bytes(q);
    if (own > limit) {
        return refuse(q, own, limit, err);
    }
    const product_shape step = step_shape(q), weights = weights_shape(q);
    const uint64_t a = product_workspace_bytes(device, &step, limit - own);
    const uint64_t b = is_forward(q) ? 0 : product_workspace_bytes(device, &weights, limit - own);
    out->workspace_bytes = own + (a > b ? a : b);
    out->impl = "own steps, cublaslt";
    return HR_OK;
}

// ---- prepare ----------------------------------------------------------------------------------------------

static void release(cuda_device *device, void *state)
{
    lstm_state *made = state;
    (void)device;
    product_destroy(made->step);
    product_destroy(made->weights);
    hr_free(made);
}

static hr_status find_kernel(cuda_device *device, const op_query *q, const char *name, CUfunction *out,
                             hr_err *err)
{
    const sizes s = sizes_of(q);
    char full[CUDA_NAME_MAX];
    (void)snprintf(full, sizeof full, "%s_%s_%s", name, takes_vectors(&s) ? "vectors" : "units",
                   cuda_suffix(s.dtype));
    return cuda_function(device, "recurrent", full, out, err);
}

static hr_status make(cuda_device *device, const op_query *q, uint64_t scratch_bytes, lstm_state *out,
                      hr_err *err)
{
    const product_shape step = step_shape(q), weights = weights_shape(q);
    HR_TRY(find_kernel(device, q, op_name((hr_op)q->op), &out->gates, err));
    HR_TRY(product_prepare(device, &step, scratch_bytes, &out->step, err));
    if (is_forward(q)) {
        return HR_OK;
    }
    HR_TRY(find_kernel(device, q, "lstm_move", &out->move, err));
    if (is_gru(q)) {
        char bias[CUDA_NAME_MAX];
        (void)snprintf(bias, sizeof bias, "gru_bias_%s", cuda_suffix(weights.dtype));
        HR_TRY(cuda_function(device, "recurrent", bias, &out->bias, err));
    }
    return product_prepare(device, &weights, scratch_bytes, &out->weights, err);
}

static hr_status prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                         uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i;
    lstm_state *made = hr_calloc(1, sizeof *made);
    if (made == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the products of %s", op_name((hr_op)q->op));
    }
    const hr_status status = make(device, q, workspace_bytes - own_bytes(q), made, err);
    if (status != HR_OK) {
        release(device, made);
        return status;
    }
    *state = made;
    return HR_OK;
}

// ---- run --------------------------------------------------------------------------------------------------

static cuda_grid grid_of(const cuda_run *r, const sizes *s, int64_t rows)
{
    return cuda_grid_over(r->device, (uint64_t)(rows * s->units),
                          takes_vectors(s) ? (uint32_t)lanes_of(s) : 1, LSTM_THREADS);
}

static hr_status run_step(const cuda_run *r, const rooms *room, CUdeviceptr weights, hr_err *err)
{
    const lstm_state *made = r->state;
    const product_places at = {.a = room->left, .b = weights, .y = room->product, .workspace = room->scratch};
    return product_run(made->step, r->stream, &at, err);
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    const lstm_state *made = r->state;
    const sizes s = sizes_of(r->query);
    const rooms room = rooms_of(r->query, r->workspace);
    lstm_args a = {.g = (const void *)r->in[0],
                   .h = (void *)r->out[0],
                   .c = (void *)r->out[1],
                   .a = (void *)r->out[2],
                   .product = (const float *)room.product,
                   .state = (float *)room.state,
                   .left = (void *)room.left,
                   .samples = s.samples,
                   .steps = s.steps,
                   .units = s.units};
    for (; a.step < s.steps; a.step++) {
        if (a.step > 0) {
            HR_TRY(run_step(r, &room, r->in[1], err));
        }
        HR_TRY(cuda_launch(r, made->gates, grid_of(r, &s, s.samples), &a, sizeof a, err));
    }
    return HR_OK;
}

// Of h of the steps before with `gates`, the gradient of what they were multiplied into.
static hr_status weights_gradient(const cuda_run *r, const rooms *room, CUdeviceptr gates, hr_err *err)
{
    const lstm_state *made = r->state;
    const sizes s = sizes_of(r->query);
    const lstm_move_args a = {(const void *)r->in[1], (void *)room->moved, s.samples, s.steps, s.units};
    HR_TRY(cuda_launch(r, made->move, grid_of(r, &s, s.samples * s.steps), &a, sizeof a, err));
    const product_places at = {.a = room->moved, .b = gates, .y = r->out[1], .workspace = room->scratch};
    return product_run(made->weights, r->stream, &at, err);
}

static hr_status run_backward(const cuda_run *r, hr_err *err)
{
    const lstm_state *made = r->state;
    const sizes s = sizes_of(r->query);
    const rooms room = rooms_of(r->query, r->workspace);
    lstm_bwd_args a = {.c = (const void *)r->in[2],
                       .a = (const void *)r->in[3],
                       .dy = (const void *)r->in[4],
                       .dg = (void *)r->out[0],
                       .product = (const float *)room.product,
                       .state = (float *)room.state,
                       .left = (void *)room.left,
                       .samples = s.samples,
                       .steps = s.steps,
                       .units = s.units};
    for (a.step = s.steps - 1; a.step >= 0; a.step--) {
        HR_TRY(cuda_launch(r, made->gates, grid_of(r, &s, s.samples), &a, sizeof a, err));
        if (a.step > 0) {
            HR_TRY(run_step(r, &room, r->in[0], err));
        }
    }
    return weights_gradient(r, &room, r->out[0], err);
}

// ---- GRU ------------------------------------------------------------------------------------------------------

static hr_status run_gru(const cuda_run *r, hr_err *err)
{
    const lstm_state *made = r->state;
    const sizes s = sizes_of(r->query);
    const rooms room = rooms_of(r->query, r->workspace);
    gru_args a = {.g = (const void *)r->in[0],
                  .bias = (const void *)r->in[2],
                  .h = (void *)r->out[0],
                  .a = (void *)r->out[1],
                  .product = (const float *)room.product,
                  .state = (float *)room.state,
                  .left = (void *)room.left,
                  .samples = s.samples,
                  .steps = s.steps,
                  .units = s.units};
    for (; a.step < s.steps; a.step++) {
        if (a.step > 0) {
            HR_TRY(run_step(r, &room, r->in[1], err));
        }
        HR_TRY(cuda_launch(r, made->gates, grid_of(r, &s, s.samples), &a, sizeof a, err));
    }
    return HR_OK;
}

static hr_status bias_gradient(const cuda_run *r, const rooms *room, hr_err *err)
{
    const lstm_state *made = r->state;
    const sizes s = sizes_of(r->query);
    const gru_bias_args a = {(const void *)room->all, (void *)r->out[2], s.samples * s.steps, 3 * s.units};
    const cuda_grid grid = {.blocks_x = (uint32_t)((a.columns + GRU_BIAS_COLUMNS - 1) / GRU_BIAS_COLUMNS),
                            .blocks_y = 1,
                            .blocks_z = 1,
                            .threads = GRU_BIAS_THREADS};
    return cuda_launch(r, made->bias, grid, &a, sizeof a, err);
}

static hr_status run_gru_backward(const cuda_run *r, hr_err *err)
{
    const lstm_state *made = r->state;
    const sizes s = sizes_of(r->query);
    const rooms room = rooms_of(r->query, r->workspace);
    gru_bwd_args a = {.h = (const void *)r->in[1],
                      .a = (const void *)r->in[2],
                      .dy = (const void *)r->in[3],
                      .dg = (void *)r->out[0],
                      .product = (const float *)room.product,
                      .state = (float *)room.state,
                      .left = (void *)room.left,
                      .all = (void *)room.all,
                      .samples = s.samples,
                      .steps = s.steps,
                      .units = s.units};
    for (a.step = s.steps - 1; a.step >= 0; a.step--) {
        HR_TRY(cuda_launch(r, made->gates, grid_of(r, &s, s.samples), &a, sizeof a, err));
        if (a.step > 0) {
            HR_TRY(run_step(r, &room, r->in[0], err));
        }
    }
    HR_TRY(bias_gradient(r, &room, err));
    return weights_gradient(r, &room, room.all, err);
}

#define STEPS(id, runs)                                                                                      \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "steps", .fits = fits, .ask = ask, .prepare = prepare, \
        .release = release, .run = (runs)                                                                    \
    }

static const cuda_impl impls[] = {STEPS(LSTM, run_forward), STEPS(LSTM_BWD, run_backward),
                                  STEPS(GRU, run_gru), STEPS(GRU_BWD, run_gru_backward)};

const cuda_family cuda_family_recurrent = CUDA_FAMILY(impls);
