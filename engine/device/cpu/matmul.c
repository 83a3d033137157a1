// SPDX-License-Identifier: Apache-2.0
// Batches of products: matmul, experts, and the scores and values of attention. Heads that lie side by side are read and
// written where they lie.
#include "cpu.h"
#include "gemm.h"
#include "half_product.h"
#include "ops/attention.h"

// How an operation is a batch: y = left · right, from inputs that may change places.
typedef struct setup {
    gemm_batch batch;
    uint8_t left, right; // inputs
} setup;

// ---- matmul -----------------------------------------------------------------------------------------------

static int64_t last(const op_operand *t, uint32_t from_end)
{
    return t->shape.dim[t->shape.rank - 1 - from_end];
}

static gemm_steps step_over(const op_operand *t)
{
    return (gemm_steps){last(t, 1) * last(t, 0), 0};
}

static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

// Output 0 = left · right; `a_turned` and `b_turned` say how they are stored.
static setup matrices(const cpu_device *device, const op_query *q, uint8_t left, bool a_turned, bool b_turned)
{
    const op_operand *a = &q->in[left], *b = &q->in[1 - left], *c = &q->out[0];
    const int64_t items = cpu_elements_of(c) / (last(c, 0) * last(c, 1));
    return (setup){.batch = {.each = {.m = last(c, 1),
                                      .n = last(c, 0),
                                      .k = a_turned ? last(a, 1) : last(a, 0),
                                      .a_transposed = a_turned,
                                      .b_transposed = b_turned,
                                      .scale = (float)q->attr.scale,
                                      .workers = device->workers},
                             .outer = items,
                             .inner = 1,
                             .a = step_over(a),
                             .b = step_over(b),
                             .c = step_over(c)},
                   .left = left,
                   .right = 1 - left};
}

// ---- attention, materialised ------------------------------------------------------------------------------

// A sequence [N,L,D] is N x heads matrices [L,D/heads] with rows of D; scores [N,heads,Lq,Lk] lie close.
static gemm_steps head_steps(const op_operand *t, int32_t heads, int64_t *row)
{
    *row = last(t, 0);
    if (t->shape.rank == 4) {
        return (gemm_steps){t->shape.dim[1] * last(t, 1) * last(t, 0), last(t, 1) * last(t, 0)};
    }
    return (gemm_steps){last(t, 1) * last(t, 0), last(t, 0) / heads};
}

static int64_t columns_of(const op_operand *t, int32_t heads)
{
    return t->shape.rank == 4 ? last(t, 0) : last(t, 0) / heads;
}

static setup heads_of(const cpu_device *device, const op_query *q, uint8_t left, bool a_turned, bool b_turned)
{
    const int32_t heads = q->attr.heads;
    const op_operand *a = &q->in[left], *b = &q->in[1 - left], *c = &q->out[0];
    setup s = {.batch = {.each = {.m = last(c, 1),
                                  .n = columns_of(c, heads),
                                  .k = a_turned ? last(a, 1) : columns_of(a, heads),
                                  .a_transposed = a_turned,
                                  .b_transposed = b_turned,
                                  .workers = device->workers},
                         .outer = c->shape.dim[0],
                         .inner = heads},
               .left = left,
               .right = 1 - left};
    s.batch.a = head_steps(a, heads, &s.batch.each.a_row);
    s.batch.b = head_steps(b, heads, &s.batch.each.b_row);
    s.batch.c = head_steps(c, heads, &s.batch.each.c_row);
    return s;
}

static setup scaled(setup s, const op_query *q)
{
    const op_operand *sequence = q->in[0].shape.rank == 3 ? &q->in[0] : &q->in[1];
    s.batch.each.scale = (float)op_attention_scale(&q->attr, last(sequence, 0) / q->attr.heads);
    return s;
}

// ---- experts ----------------------------------------------------------------------------------------------

// Slots [N,C,E,D] are E matrices of N x C rows that lie E x D apart; weights [E,I,O] lie close.
static int64_t expert_steps(const op_operand *t, gemm_steps *steps)
{
    const bool slots = t->shape.rank == 4;
    *steps = (gemm_steps){0, slots ? last(t, 0) : last(t, 1) * last(t, 0)};
    return slots ? last(t, 1) * last(t, 0) : 0;
}

static setup experts(const cpu_device *device, const op_query *q, bool a_turned, bool b_turned)
{
    const op_operand *a = &q->in[0], *b = &q->in[1], *c = &q->out[0];
    const bool slots = c->shape.rank == 4;
    const int64_t rows = a->shape.dim[0] * a->shape.dim[1];
    setup s = {.batch = {.each = {.m = slots ? rows : last(c, 1),
                                  .n = last(c, 0),
                                  .k = a_turned ? rows : last(a, 0),
                                  .a_transposed = a_turned,
                                  .b_transposed = b_turned,
                                  .workers = device->workers},
                         .outer = 1,
                         .inner = slots ? last(c, 1) : last(c, 2)},
               .left = 0,
               .right = 1};
    s.batch.each.a_row = expert_steps(a, &s.batch.a);
    s.batch.each.b_row = expert_steps(b, &s.batch.b);
    s.batch.each.c_row = expert_steps(c, &s.batch.c);
    return s;
}

// ---- which is which ---------------------------------------------------------------------------------------

static setup setup_of(const cpu_device *d, const op_query *q)
{
    switch ((int)q->op) {
    case HR_OP_MATMUL:
        return matrices(d, q, 0, false, is_turned(q));
    case HR_OP_MATMUL_BWD_A: // da = dy·bᵀ
        return matrices(d, q, 0, false, !is_turned(q));
    case HR_OP_MATMUL_BWD_B: // db = aᵀ·dy; stored turned it is dyᵀ·a
        return matrices(d, q, is_turned(q) ? 1 : 0, true, false);
    case HR_OP_ATTENTION_SCORES: // s = q·kᵀ
        return scaled(heads_of(d, q, 0, false, true), q);
    case HR_OP_ATTENTION_SCORES_BWD_Q: // dq = ds·k
        return scaled(heads_of(d, q, 0, false, false), q);
    case HR_OP_ATTENTION_SCORES_BWD_K: // dk = dsᵀ·q
        return scaled(heads_of(d, q, 1, true, false), q);
    case HR_OP_ATTENTION_VALUES_BWD_P: // dp = dy·vᵀ
        return heads_of(d, q, 0, false, true);
    case HR_OP_ATTENTION_VALUES_BWD_V: // dv = pᵀ·dy
        return heads_of(d, q, 0, true, false);
    case HR_OP_EXPERT_DENSE: // y = x·w
        return experts(d, q, false, false);
    case HR_OP_EXPERT_DENSE_BWD_DATA: // dx = dy·wᵀ
        return experts(d, q, false, true);
    case HR_OP_EXPERT_DENSE_BWD_WEIGHTS: // dw = xᵀ·dy
        return experts(d, q, true, false);
    default: // y = p·v
        return heads_of(d, q, 0, false, false);
    }
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const setup s = setup_of(device, q);
    return gemm_batch_scratch_bytes(&s.batch);
}

static void run(const cpu_run *r)
{
    const setup s = setup_of(r->device, r->query);
    gemm_batch_run(&s.batch, r->in[s.left], r->in[s.right], r->out[0], r->workspace);
}

const cpu_impl cpu_matmul = {.name = "tiles", .workspace = workspace, .run = run};

// ---- two bytes ------------------------------------------------------------------------------------------------

static product_shape product_of(const cpu_device *device, const op_query *q)
{
    const gemm_batch batch = setup_of(device, q).batch;
    const gemm *g = &batch.each;
    return (product_shape){.m = g->m,
                           .n = g->n,
                           .k = g->k,
                           .a_transposed = g->a_transposed,
                           .b_transposed = g->b_transposed,
                           .scale = g->scale,
                           .outer = batch.outer,
                           .inner = batch.inner,
                           .a = {batch.a.outer, batch.a.inner, g->a_row},
                           .b = {batch.b.outer, batch.b.inner, g->b_row},
                           .c = {batch.c.outer, batch.c.inner, g->c_row}};
}

static hr_status choose(const cpu_device *device, const op_query *q, uint64_t limit, half_product **out,
                        hr_err *err)
{
    const product_shape shape = product_of(device, q);
    return half_product_choose(device, &shape, (hr_dtype)q->in[0].dtype, limit, out, err);
}

static bool fits_half(const cpu_device *device, const op_query *q)
{
    half_product *product = NULL;
    const bool found = choose(device, q, UINT64_MAX, &product, NULL) != HR_DEVICE;
    half_product_destroy(product);
    return found;
}

static hr_status ask_half(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                          hr_err *err)
{
    half_product *product = NULL;
    HR_TRY(choose(device, q, limit, &product, err));
    out->workspace_bytes = half_product_scratch_bytes(product);
    out->impl = half_product_impl(product);
    half_product_destroy(product);
    return HR_OK;
}

static hr_status prepare_half(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                              void **state, hr_err *err)
{
    half_product *product = NULL;
    HR_TRY(choose(device, q, cpu_temporary_bytes(p, i), &product, err));
    const hr_status status = half_product_prepare(product, err);
    if (status != HR_OK) {
        half_product_destroy(product);
        return status;
    }
    *state = product;
    return HR_OK;
}

static void release_half(void *state)
{
    half_product_destroy(state);
}

static hr_status run_half(const cpu_run *r, hr_err *err)
{
    const setup s = setup_of(r->device, r->query);
    return half_product_run(r->device, r->state, r->in[s.left], r->in[s.right], NULL, r->out[0], r->workspace,
                            err);
}

const cpu_impl cpu_matmul_half = {.name = CPU_LIBRARY,
                                  .types = CPU_HALF,
                                  .fits = fits_half,
                                  .ask = ask_half,
                                  .prepare = prepare_half,
                                  .release = release_half,
                                  .call = run_half};
