// SPDX-License-Identifier: Apache-2.0
// Convolutions through cuDNN, with what the library leaves out: weights from HWIO to the library's order and back, as
// instructions of their own; a bias or an activation that it does not fuse, in place behind it; and the gradient of a bias.
//
// Images of few channels are not padded here: the engines that want it pad inside their workspace, which is what a copy
// of ours would take (batch 64, 224×224: 51,430,416 bytes with three channels as with four in bfloat16, 38,572,816 and
// 51,430,416 in float32), and a limit below it gets an engine that needs none.
#include <math.h>
#include <stdio.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "conv_spec.h"
#include "gates.h"
#include "kernels/conv_args.h"

enum {
    SUM_PARTS_MAX = 512,
    SUM_ROWS = 64, // that a block adds up at least
    SUM_HEIGHT = CONV_TILE_THREADS / CONV_SUM_COLUMNS,
    PARTS_ALIGNMENT = 256,
    PACK_BYTES = 16,
};

// ---- the gradient of a bias -----------------------------------------------------------------------------------

typedef struct bias_sum {
    int64_t rows, columns, parts;
    uint64_t bytes; // of the parts' sums; 0 when there is one part
} bias_sum;

// A gradient of weights then has the bias's beside it: the sums of dy's channels, dy being its second operand.
static bool sums_bias(const op_query *q)
{
    return q->out_count > 1;
}

// Parts depend on the shape alone: the bits of a sum are those of every card.
static bias_sum bias_sum_of(const op_query *q, bool in_parts)
{
    const op_operand *dy = &q->in[1];
    const int64_t columns = dy->shape.dim[3], rows = (int64_t)cuda_elements(dy) / columns;
    int64_t parts = in_parts ? (rows + SUM_ROWS - 1) / SUM_ROWS : 1;
    parts = parts > SUM_PARTS_MAX ? SUM_PARTS_MAX : parts;
    bias_sum s = {.rows = rows, .columns = columns, .parts = parts};
    if (parts > 1) {
        const uint64_t bytes = (uint64_t)(parts * columns) * sizeof(float); // below rows * columns
        s.bytes = (bytes + PARTS_ALIGNMENT - 1) / PARTS_ALIGNMENT * PARTS_ALIGNMENT;
    }
    return s;
}

// ---- the choice -----------------------------------------------------------------------------------------------

// What an instruction's workspace holds: sums of parts first, the library's behind them. Its bytes, taken as the limit,
// give the same again.
typedef struct conv_choice {
    graph_spec spec;
    graph_choice library;
    uint8_t result; // tensor of spec
    bias_sum sum;
} conv_choice;

static hr_status choose(cuda_device *device, const op_query *q, uint64_t limit, conv_choice *c, hr_err *err)
{
    HR_TRY(cudnn_gate_query(device, q, err));
    conv_spec(q, &c->spec, &c->result);
    c->sum = (bias_sum){0};
    if (sums_bias(q)) {
        c->sum = bias_sum_of(q, true);
        if (c->sum.bytes > 0 && c->sum.bytes <= limit) {
            const hr_status status = graph_choose(device, &c->spec, limit - c->sum.bytes, &c->library, err);
            if (status != HR_DEVICE) {
                return status;
            }
        }
        c->sum = bias_sum_of(q, false);
    }
    return graph_choose(device, &c->spec, limit, &c->library, err);
}

static bool has_graph(const cuda_device *device, const op_query *q)
{
    (void)device;
    const op_attr *a = &q->attr;
    return a->pad_top >= 0 && a->pad_left >= 0 && a->pad_bottom >= 0 && a->pad_right >= 0;
}

static hr_status ask_conv(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out,
                          hr_err *err)
{
    int64_t rows = 0, columns = 0;
    conv_choice c;
    HR_TRY(choose(device, q, limit, &c, err));
    if (!hr_add_bytes(c.sum.bytes, c.library.workspace_bytes, &out->workspace_bytes)) {
        return HR_FAIL(err, DEVICE, "%s needs more workspace than can be counted", op_name((hr_op)q->op));
    }
    conv_weights_matrix(q, &rows, &columns);
    if (rows > 1 && columns > 1) {
        const uint8_t place = conv_places_of(q).place[CONV_WEIGHTS];
        out->reorder[out->reorder_count].operand = place;
        out->reorder[out->reorder_count++].bytes = cuda_bytes(conv_operand_of(q, CONV_WEIGHTS));
    }
    out->impl = target_impl_name(CUDA_CUDNN, c.library.name);
    out->behind = c.library.behind;
    return HR_OK;
}

// ---- prepare --------------------------------------------------------------------------------------------------

typedef struct conv_state {
    graph *graph;
    uint8_t result;
    bias_sum sum;
    CUfunction tail, sum_parts, sum_all; // NULL: not needed
} conv_state;

static bool has_tail(const op_query *q)
{
    const bool bias = (q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_TRANSPOSE) && q->in_count > 2;
    return (bias && !conv_fuses_bias(q)) || (q->attr.act != HR_ACT_NONE && !conv_fuses_act(q));
}

static bool is_forward(const op_query *q)
{
    return q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_TRANSPOSE;
}

static hr_status find_sum(cuda_device *device, uint32_t from, uint32_t to, CUfunction *out, hr_err *err)
{
    char name[CUDA_NAME_MAX];
    (void)snprintf(name, sizeof name, "conv_sum_%s_%s", cuda_suffix(from), cuda_suffix(to));
    return cuda_function(device, "conv", name, out, err);
}

static hr_status find_kernels(cuda_device *device, const op_query *q, conv_state *s, hr_err *err)
{
    char name[CUDA_NAME_MAX];
    if (is_forward(q) && has_tail(q)) {
        (void)snprintf(name, sizeof name, "conv_tail_%s", cuda_suffix(q->out[0].dtype));
        HR_TRY(cuda_function(device, "conv", name, &s->tail, err));
    }
    if (sums_bias(q)) {
        const uint32_t from = q->in[1].dtype, to = q->out[1].dtype;
        const bool parts = s->sum.parts > 1;
        if (parts) {
            HR_TRY(find_sum(device, from, HR_F32, &s->sum_parts, err));
        }
        HR_TRY(find_sum(device, parts ? HR_F32 : from, to, &s->sum_all, err));
    }
    return HR_OK;
}

static hr_status prepare_conv(cuda_device *device, const program *p, const instr *i, const op_query *q,
                              uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p;
    (void)i;
    conv_choice c;
    HR_TRY(choose(device, q, workspace_bytes, &c, err));
    conv_state *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a convolution");
    }
    s->result = c.result;
    s->sum = c.sum;
    hr_status status = find_kernels(device, q, s, err);
    if (status == HR_OK) {
        status = graph_prepare(device, &c.spec, workspace_bytes - c.sum.bytes, &s->graph, err);
    }
    if (status != HR_OK) {
        hr_free(s);
        return status;
    }
    *state = s;
    return HR_OK;
}

static void release_conv(cuda_device *device, void *state)
{
    (void)device;
    conv_state *s = state;
    if (s != NULL) {
        graph_destroy(s->graph);
        hr_free(s);
    }
}

static const char *chosen(const void *state)
{
    return graph_name(((const conv_state *)state)->graph);
}

// ---- run ------------------------------------------------------------------------------------------------------

static hr_status run_tail(const cuda_run *r, const conv_state *s, hr_err *err)
{
    const op_query *q = r->query;
    const op_operand *y = &q->out[0];
    const int32_t act = conv_fuses_act(q) ? HR_ACT_NONE : q->attr.act;
    const tail_args a = {.y = (void *)r->out[0],
                         .bias = q->in_count > 2 && !conv_fuses_bias(q) ? (const void *)r->in[2] : NULL,
                         .count = (int64_t)cuda_elements(y),
                         .columns = y->shape.dim[3],
                         .low = act == HR_ACT_NONE ? -INFINITY : 0.0f,
                         .high = act == HR_ACT_RELU6 ? 6.0f : INFINITY};
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)y->dtype);
    return cuda_launch(r, s->tail,
                       cuda_grid_over(r->device, (uint64_t)a.count, per_thread, CONV_TILE_THREADS), &a,
                       sizeof a, err);
}

static hr_status run_sum(const cuda_run *r, CUfunction function, const column_sum_args *a, hr_err *err)
{
    const cuda_grid grid = {.blocks_x = (uint32_t)((a->columns + CONV_SUM_COLUMNS - 1) / CONV_SUM_COLUMNS),
                            .blocks_y = (uint32_t)a->parts,
                            .blocks_z = 1,
                            .threads = CONV_TILE_THREADS};
    return cuda_launch(r, function, grid, a, sizeof *a, err);
}

static hr_status run_bias_sum(const cuda_run *r, const conv_state *s, hr_err *err)
{
    column_sum_args a = {.x = (const void *)r->in[1],
                         .y = (void *)r->out[1],
                         .rows = s->sum.rows,
                         .columns = s->sum.columns,
                         .parts = s->sum.parts};
    if (s->sum_parts != NULL) {
        a.y = (void *)r->workspace;
        HR_TRY(run_sum(r, s->sum_parts, &a, err));
        a = (column_sum_args){.x = (const void *)r->workspace,
                              .y = (void *)r->out[1],
                              .rows = s->sum.parts,
                              .columns = s->sum.columns,
                              .parts = 1};
    }
    return run_sum(r, s->sum_all, &a, err);
}

static hr_status run_conv(const cuda_run *r, hr_err *err)
{
    const conv_state *s = r->state;
    CUdeviceptr address[GRAPH_TENSORS_MAX] = {0};
    for (conv_operand k = 0; k < CONV_OPERANDS; k++) {
        address[k] = conv_address_of(r, k);
    }
    if (s->result >= CONV_OPERANDS) {
        address[s->result] = r->out[0];
    }
    HR_TRY(graph_run(s->graph, r->stream, address, r->workspace + s->sum.bytes, err));
    if (s->tail != NULL) {
        HR_TRY(run_tail(r, s, err));
    }
    return s->sum_all == NULL ? HR_OK : run_bias_sum(r, s, err);
}

// ---- reorders -------------------------------------------------------------------------------------------------

static bool orders_weights(const cuda_device *device, const op_query *q)
{
    (void)device;
    return q->attr.peer != HR_NO_ID && q->in[0].shape.rank == 4;
}

static void name_transpose(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "conv_transpose_%u", (unsigned)dtype_bytes((hr_dtype)q->in[0].dtype));
}

static hr_status run_reorder(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t *dim = q->in[0].shape.dim;
    const bool to_library = (q->attr.peer_operand & CONV_OUTPUT) == 0;
    const int64_t window = dim[0] * dim[1] * dim[2], filters = dim[3];
    const int64_t rows = to_library ? window : filters;
    const transpose_args a = {.x = (const void *)r->in[0],
                              .y = (void *)r->out[0],
                              .rows = r->as_is ? 1 : rows,
                              .columns = r->as_is ? window * filters : window * filters / rows};
    const uint32_t per_thread = CONV_TILE * CONV_TILE / CONV_TILE_THREADS;
    return cuda_launch(r, r->function,
                       cuda_grid_over(r->device, (uint64_t)(window * filters), per_thread, CONV_TILE_THREADS),
                       &a, sizeof a, err);
}

#define CUDNN_CONV(id)                                                                                       \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = CUDA_CUDNN, .fits = has_graph, .ask = ask_conv,        \
        .prepare = prepare_conv, .release = release_conv, .chosen = chosen, .run = run_conv                  \
    }

static const cuda_impl impls[] = {
    CUDNN_CONV(CONV2D),
    CUDNN_CONV(CONV2D_BWD_DATA),
    CUDNN_CONV(CONV2D_BWD_WEIGHTS),
    CUDNN_CONV(CONV2D_TRANSPOSE),
    CUDNN_CONV(CONV2D_TRANSPOSE_BWD_DATA),
    CUDNN_CONV(CONV2D_TRANSPOSE_BWD_WEIGHTS),
    {.op = HR_OP_REORDER,
     .types = CUDA_REAL,
     .name = "transpose",
     .fits = orders_weights,
     .module = "conv",
     .kernel = name_transpose,
     .run = run_reorder},
};

const cuda_family cuda_family_conv = CUDA_FAMILY(impls);
