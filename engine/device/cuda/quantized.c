// SPDX-License-Identifier: Apache-2.0
// Dense layers and lookups with whole-number weights, and what makes the numbers (kernels/quantized.cu). A table's weights lie
// [units,depth] (OP_FLAG_TRANSPOSE): a row has a scale where else a column has one.
//
//     dense_int8          rows of x become int8, w is turned, cuBLASLt makes int32 sums, a kernel scales, adds the bias, activates
//     dense_int*_weights  of few rows one kernel reads each number once; else the weights become float32 in the workspace, and
//                         cuBLASLt's product of float32 follows (products.c)
//
// The library's whole-number kernels have shapes of their own (product.h): rows, depth and units are filled up with zeros in the
// workspace, so that every shape is theirs. Where that, or the float32 weights, is more than workspace.limit, and where the library has no
// algorithm, kernels of our own multiply: of int8 with the rows of x as workspace, of weights alone without any.
#include <math.h>
#include <stdio.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "kernels/quantized_args.h"
#include "products_shape.h"

enum { FIRST, SECOND, THIRD, ALIGNMENT = 256, DEPTH_MAX = INT32_MAX / (127 * 127) };

typedef struct shape3 {
    int64_t rows, depth, units;
} shape3;

static shape3 shape_of_product(const op_query *q)
{
    const hr_shape *x = &q->in[0].shape, *y = &q->out[0].shape;
    const int64_t depth = x->dim[x->rank - 1];
    return (shape3){(int64_t)cuda_elements(&q->in[0]) / depth, depth, y->dim[y->rank - 1]};
}

static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

static uint64_t aligned(int64_t bytes)
{
    return ((uint64_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t filled(int64_t count, int64_t step)
{
    return (count + step - 1) / step * step;
}

static float floor_of(int32_t act)
{
    return act == HR_ACT_NONE ? -INFINITY : 0.0F;
}

static float ceiling_of(int32_t act)
{
    return act == HR_ACT_RELU6 ? 6.0F : INFINITY;
}

static bool has_four(const op_query *q)
{
    return q->op == HR_OP_DENSE_INT4_WEIGHTS;
}

static uint32_t bias_at(const op_query *q)
{
    return has_four(q) ? 4 : 3;
}

static const float *bias_of(const cuda_run *r)
{
    const uint32_t k = bias_at(r->query);
    return r->query->in_count > k ? (const float *)r->in[k] : NULL;
}

static cuda_grid grid_over(const cuda_run *r, int64_t elements)
{
    return cuda_grid_over(r->device, (uint64_t)elements, 1, QUANTIZED_THREADS);
}

// A block for each of them.
static cuda_grid grid_of_blocks(const cuda_run *r, int64_t blocks)
{
    return grid_over(r, blocks * QUANTIZED_THREADS);
}

static int64_t tiles_of(int64_t rows, int64_t columns, int64_t side)
{
    return ((rows + side - 1) / side) * ((columns + side - 1) / side);
}

// ---- weights to whole numbers -----------------------------------------------------------------------------------

static quantize_args quantize_args_of(const cuda_run *r)
{
    const hr_shape *w = &r->query->in[0].shape;
    return (quantize_args){.w = (const float *)r->in[0],
                           .q = (void *)r->out[0],
                           .scale = (float *)r->out[1],
                           .rows = w->dim[0],
                           .columns = w->dim[1]};
}

static uint64_t largest_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    return is_turned(q) ? 0 : (uint64_t)q->in[0].shape.dim[1] * sizeof(uint32_t);
}

static uint32_t int8_numbers_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    if (is_turned(q)) {
        (void)snprintf(name[FIRST], CUDA_NAME_MAX, "quantize_int8_rows");
        return 1;
    }
    (void)snprintf(name[FIRST], CUDA_NAME_MAX, "quantize_int8_largest");
    (void)snprintf(name[SECOND], CUDA_NAME_MAX, "quantize_int8_numbers");
    return 2;
}

static hr_status run_quantize_int8(const cuda_run *r, hr_err *err)
{
    quantize_args a = quantize_args_of(r);
    const cuda_grid grid = cuda_grid_over(r->device, (uint64_t)(a.rows * a.columns), 4, QUANTIZED_THREADS);
    if (is_turned(r->query)) {
        return cuda_launch(r, r->stage[FIRST], grid_of_blocks(r, a.rows), &a, sizeof a, err);
    }
    a.largest = (uint32_t *)r->workspace;
    HR_TRY(
        CUDA_CALL(err, cuMemsetD8Async, r->workspace, 0, largest_workspace(r->device, r->query), r->stream));
    HR_TRY(cuda_launch(r, r->stage[FIRST], grid, &a, sizeof a, err));
    return cuda_launch(r, r->stage[SECOND], grid, &a, sizeof a, err);
}

static void int4_numbers_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, is_turned(q) ? "quantize_int4_rows" : "quantize_int4_groups");
}

static hr_status run_quantize_int4(const cuda_run *r, hr_err *err)
{
    quantize_args a = quantize_args_of(r);
    a.zero = (int8_t *)r->out[2];
    return cuda_launch(r, r->function, grid_over(r, (int64_t)cuda_elements(&r->query->out[0])), &a, sizeof a,
                       err);
}

// ---- int8 products ----------------------------------------------------------------------------------------------

static bool is_exact(const cuda_device *device, const op_query *q)
{
    (void)device;
    return shape_of_product(q).depth <= DEPTH_MAX;
}

// What the library multiplies: product.h.
static shape3 filled_for_library(const op_query *q)
{
    const shape3 s = shape_of_product(q);
    const int64_t rows = s.rows > PRODUCT_INT8_ROWS ? s.rows : PRODUCT_INT8_ROWS;
    return (shape3){filled(rows, PRODUCT_INT8_STEP), filled(s.depth, PRODUCT_INT8_STEP),
                    filled(s.units, PRODUCT_INT8_STEP)};
}

// Our own kernel reads words.
static shape3 filled_for_own(const op_query *q)
{
    const shape3 s = shape_of_product(q);
    return (shape3){s.rows, filled(s.depth, QUANTIZED_WORD), s.units};
}

// Offsets in the workspace. What lies behind `turned` is the library's alone.
typedef struct int8_places {
    uint64_t row_inverse, turned, sums, end;
} int8_places;

static int8_places int8_places_of(shape3 whole)
{
    int8_places at;
    at.row_inverse = aligned(whole.rows * whole.depth);
    at.turned = at.row_inverse + aligned(whole.rows * (int64_t)sizeof(float));
    at.sums = at.turned + aligned(whole.units * whole.depth);
    at.end = at.sums + aligned(whole.rows * whole.units * (int64_t)sizeof(int32_t));
    return at;
}

// A library's row whose own part of the workspace is `bytes`, and what is left of the limit its product's.
static hr_status need(const op_query *q, uint64_t bytes, uint64_t limit, hr_err *err)
{
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    return bytes <= limit
               ? HR_OK
               : HR_FAIL(err, DEVICE, "%s needs %s of workspace for cuBLASLt, workspace.limit is %s",
                         op_name((hr_op)q->op), hr_bytes_human(bytes, needed), hr_bytes_human(limit, had));
}

static hr_status ask_int8(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out,
                          hr_err *err)
{
    (void)device;
    out->workspace_bytes = int8_places_of(filled_for_library(q)).end;
    HR_TRY(need(q, out->workspace_bytes, limit, err));
    out->impl = target_impl_name(CUDA_CUBLASLT, "int8");
    return HR_OK;
}

static uint32_t int8_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    (void)q;
    (void)snprintf(name[FIRST], CUDA_NAME_MAX, "int8_rows");
    (void)snprintf(name[SECOND], CUDA_NAME_MAX, "int8_turn");
    (void)snprintf(name[THIRD], CUDA_NAME_MAX, "int8_finish");
    return 3;
}

static hr_status prepare_int8(cuda_device *device, const program *p, const instr *i, const op_query *q,
                              uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i, (void)workspace_bytes; // none of it is the library's
    const shape3 whole = filled_for_library(q);
    const product_shape s = {.dtype = HR_I8,
                             .out_dtype = HR_I32,
                             .m = whole.rows,
                             .n = whole.units,
                             .k = whole.depth,
                             .transpose_b = true};
    product *made = NULL;
    *state = NULL;
    HR_TRY(product_prepare(device, &s, 0, &made, err));
    *state = made;
    return HR_OK;
}

static void release_int8(cuda_device *device, void *state)
{
    (void)device;
    product_destroy(state);
}

static int8_args int8_args_of(const cuda_run *r, shape3 whole)
{
    const shape3 s = shape_of_product(r->query);
    return (int8_args){.x = (const float *)r->in[0],
                       .w = (const int8_t *)r->in[1],
                       .scale = (const float *)r->in[2],
                       .bias = bias_of(r),
                       .y = (float *)r->out[0],
                       .numbers = (int8_t *)r->workspace,
                       .row_inverse = (float *)(r->workspace + int8_places_of(whole).row_inverse),
                       .rows = s.rows,
                       .depth = s.depth,
                       .units = s.units,
                       .rows_whole = whole.rows,
                       .depth_whole = whole.depth,
                       .units_whole = whole.units,
                       .w_depth = is_turned(r->query) ? 1 : s.units,
                       .w_unit = is_turned(r->query) ? s.depth : 1,
                       .floor = floor_of(r->query->attr.act),
                       .ceiling = ceiling_of(r->query->attr.act)};
}

static hr_status run_int8(const cuda_run *r, hr_err *err)
{
    const shape3 whole = filled_for_library(r->query);
    const int8_places at = int8_places_of(whole);
    const product_places places = {
        .a = r->workspace, .b = r->workspace + at.turned, .y = r->workspace + at.sums};
    int8_args a = int8_args_of(r, whole);
    a.turned = (int8_t *)places.b;
    a.sums = (const int32_t *)places.y;
    HR_TRY(cuda_launch(r, r->stage[FIRST], grid_of_blocks(r, a.rows_whole), &a, sizeof a, err));
    HR_TRY(cuda_launch(r, r->stage[SECOND],
                       grid_of_blocks(r, tiles_of(a.depth_whole, a.units_whole, QUANTIZED_TURN)), &a,
                       sizeof a, err));
    HR_TRY(product_run(r->state, r->stream, &places, err));
    return cuda_launch(r, r->stage[THIRD], grid_over(r, a.rows * a.units), &a, sizeof a, err);
}

static uint64_t int8_own_workspace(const cuda_device *device, const op_query *q)
{
    (void)device;
    return int8_places_of(filled_for_own(q)).turned;
}

static uint32_t int8_own_stages(const op_query *q, char name[CUDA_STAGES_MAX][CUDA_NAME_MAX])
{
    (void)q;
    (void)snprintf(name[FIRST], CUDA_NAME_MAX, "int8_rows");
    (void)snprintf(name[SECOND], CUDA_NAME_MAX, "int8_product");
    return 2;
}

static hr_status run_int8_own(const cuda_run *r, hr_err *err)
{
    const int8_args a = int8_args_of(r, filled_for_own(r->query));
    const cuda_grid tiles = grid_of_blocks(r, tiles_of(a.rows, a.units, QUANTIZED_TILE));
    HR_TRY(cuda_launch(r, r->stage[FIRST], grid_of_blocks(r, a.rows_whole), &a, sizeof a, err));
    return cuda_launch(r, r->stage[SECOND], tiles, &a, sizeof a, err);
}

// ---- whole-number weights alone ---------------------------------------------------------------------------------

typedef struct weights_state {
    op_query dense; // of the float32 weights
    void *product;  // what its row prepared
} weights_state;

static op_query dense_of(const op_query *q)
{
    const shape3 s = shape_of_product(q);
    op_query dense = {.op = HR_OP_DENSE, .attr = q->attr, .in_count = 2, .out_count = 1};
    dense.in[0] = q->in[0];
    dense.in[1] = (op_operand){.shape = {.rank = 2, .dim = {s.depth, s.units}}, .dtype = HR_F32};
    if (is_turned(q)) {
        dense.in[1].shape = (hr_shape){.rank = 2, .dim = {s.units, s.depth}};
    }
    if (q->in_count > bias_at(q)) {
        dense.in[dense.in_count++] = q->in[bias_at(q)];
    }
    dense.out[0] = q->out[0];
    return dense;
}

static uint64_t widened_bytes(const op_query *q)
{
    const shape3 s = shape_of_product(q);
    return aligned(s.depth * s.units * (int64_t)sizeof(float));
}

static hr_status ask_weights(cuda_device *device, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    const uint64_t bytes = widened_bytes(q);
    const op_query dense = dense_of(q);
    HR_TRY(need(q, bytes, limit, err));
    HR_TRY(product_dense_row()->ask(device, &dense, limit - bytes, out, err));
    out->impl = target_impl_name(CUDA_CUBLASLT, "widened");
    out->workspace_bytes += bytes;
    return HR_OK;
}

static void widen_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "widen_%s", has_four(q) ? "int4" : "int8");
}

static void release_weights(cuda_device *device, void *state)
{
    weights_state *st = state;
    if (st != NULL) {
        product_dense_row()->release(device, st->product);
        hr_free(st);
    }
}

static hr_status prepare_weights(cuda_device *device, const program *p, const instr *i, const op_query *q,
                                 uint64_t workspace_bytes, void **state, hr_err *err)
{
    *state = NULL;
    weights_state *st = hr_calloc(1, sizeof *st);
    if (st == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %s", op_name((hr_op)q->op));
    }
    st->dense = dense_of(q);
    const hr_status status = product_dense_row()->prepare(
        device, p, i, &st->dense, workspace_bytes - widened_bytes(q), &st->product, err);
    if (status != HR_OK) {
        release_weights(device, st);
        return status;
    }
    *state = st;
    return HR_OK;
}

static widen_args widen_args_of(const cuda_run *r)
{
    const shape3 s = shape_of_product(r->query);
    return (widen_args){.x = (const float *)r->in[0],
                        .q = (const void *)r->in[1],
                        .scale = (const float *)r->in[2],
                        .zero = has_four(r->query) ? (const int8_t *)r->in[3] : NULL,
                        .bias = bias_of(r),
                        .y = (float *)r->out[0],
                        .rows = s.rows,
                        .depth = s.depth,
                        .units = s.units,
                        .turned = is_turned(r->query),
                        .floor = floor_of(r->query->attr.act),
                        .ceiling = ceiling_of(r->query->attr.act)};
}

static hr_status run_weights(const cuda_run *r, hr_err *err)
{
    const weights_state *st = r->state;
    const uint64_t bytes = widened_bytes(r->query);
    widen_args a = widen_args_of(r);
    cuda_run dense = *r;
    a.widened = (float *)r->workspace;
    HR_TRY(cuda_launch(r, r->function, grid_over(r, a.depth * a.units), &a, sizeof a, err));
    dense.query = &st->dense;
    dense.state = st->product;
    dense.in[1] = r->workspace;
    dense.in[2] = r->query->in_count > bias_at(r->query) ? r->in[bias_at(r->query)] : 0;
    dense.workspace = r->workspace + bytes;
    dense.workspace_bytes = r->workspace_bytes - bytes;
    return product_dense_row()->run(&dense, err);
}

static void weights_own_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "product_%s_weights", has_four(q) ? "int4" : "int8");
}

static hr_status run_weights_own(const cuda_run *r, hr_err *err)
{
    const widen_args a = widen_args_of(r);
    return cuda_launch(r, r->function, grid_of_blocks(r, tiles_of(a.rows, a.units, QUANTIZED_TILE)), &a,
                       sizeof a, err);
}

// ---- rows of tables ---------------------------------------------------------------------------------------------

static void whole_rows_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "embedding_%s", q->op == HR_OP_EMBEDDING_INT4 ? "int4" : "int8");
}

static hr_status run_whole_rows(const cuda_run *r, hr_err *err)
{
    const hr_shape *y = &r->query->out[0].shape;
    const whole_rows_args a = {.ids = (const int32_t *)r->in[0],
                               .q = (const void *)r->in[1],
                               .scale = (const float *)r->in[2],
                               .zero = r->query->in_count > 3 ? (const int8_t *)r->in[3] : NULL,
                               .y = (float *)r->out[0],
                               .count = (int64_t)cuda_elements(&r->query->in[0]),
                               .features = y->dim[y->rank - 1],
                               .entries = r->query->in[1].shape.dim[0]};
    return cuda_launch(r, r->function, grid_over(r, a.count * a.features), &a, sizeof a, err);
}

// ---- weights alone, few rows ---------------------------------------------------------------------------------------

static bool has_few_rows(const cuda_device *device, const op_query *q)
{
    (void)device;
    return shape_of_product(q).rows <= QUANTIZED_FEW_ROWS;
}

static void few_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "few_%s_weights", has_four(q) ? "int4" : "int8");
}

static hr_status run_few(const cuda_run *r, hr_err *err)
{
    const widen_args a = widen_args_of(r);
    const int64_t blocks = (a.units + QUANTIZED_FEW_UNITS - 1) / QUANTIZED_FEW_UNITS;
    const cuda_grid grid =
        cuda_grid_over(r->device, (uint64_t)blocks * QUANTIZED_FEW_THREADS, 1, QUANTIZED_FEW_THREADS);
    return cuda_launch(r, r->function, grid, &a, sizeof a, err);
}

// ---- implementations --------------------------------------------------------------------------------------------

#define OWN(operation, words)                                                                                \
    .op = HR_OP_##operation, .types = CUDA_F32, .name = (words), .module = "quantized"
#define WEIGHTS(operation)                                                                                   \
    {OWN(operation, "few rows"), .fits = has_few_rows, .kernel = few_name, .run = run_few},                  \
        {OWN(operation, CUDA_CUBLASLT), .ask = ask_weights,         .kernel = widen_name,                    \
         .prepare = prepare_weights,    .release = release_weights, .run = run_weights},                     \
    {                                                                                                        \
        OWN(operation, "widening"), .kernel = weights_own_name, .run = run_weights_own                       \
    }

static const cuda_impl impls[] = {
    {OWN(QUANTIZE_INT8, "quantized"), .workspace = largest_workspace, .stages = int8_numbers_stages,
     .run = run_quantize_int8},
    {OWN(QUANTIZE_INT4, "quantized"), .kernel = int4_numbers_name, .run = run_quantize_int4},
    {OWN(DENSE_INT8, CUDA_CUBLASLT), .fits = is_exact, .ask = ask_int8, .stages = int8_stages,
     .prepare = prepare_int8, .release = release_int8, .run = run_int8},
    {OWN(DENSE_INT8, "int8 tiles"), .fits = is_exact, .workspace = int8_own_workspace,
     .stages = int8_own_stages, .run = run_int8_own},
    WEIGHTS(DENSE_INT8_WEIGHTS),
    WEIGHTS(DENSE_INT4_WEIGHTS),
    {OWN(EMBEDDING_INT8, "widened rows"), .kernel = whole_rows_name, .run = run_whole_rows},
    {OWN(EMBEDDING_INT4, "widened rows"), .kernel = whole_rows_name, .run = run_whole_rows},
};

const cuda_family cuda_family_quantized = CUDA_FAMILY(impls);
