// SPDX-License-Identifier: Apache-2.0
// Matrix products with strides, and what is made of them: matmul, and attention's scores and values over heads
// that lie side by side.
#include "kernels.h"
#include "ops/attention.h"

// c[m,n] = scale * Σ over k of a·b. Each matrix by the places between its rows and between its columns.
typedef struct matrix {
    double *at;
    int64_t row, column;
} matrix;

typedef struct product {
    int64_t m, n, k;
    double scale;
} product;

static void multiply(const product *p, matrix a, matrix b, matrix c)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < p->k; k++) {
                sum += a.at[i * a.row + k * a.column] * b.at[k * b.row + j * b.column];
            }
            c.at[i * c.row + j * c.column] = p->scale * sum;
        }
    }
}

static matrix turned(matrix m)
{
    return (matrix){m.at, m.column, m.row};
}

// ---- matmul -----------------------------------------------------------------------------------------------

static int64_t last(const op_operand *t, uint32_t from_end)
{
    return t->shape.dim[t->shape.rank - 1 - from_end];
}

// Matrix number `item` of an operand.
static matrix matrix_of(void *values, const op_operand *t, int64_t item)
{
    const int64_t rows = last(t, 1), columns = last(t, 0);
    return (matrix){(double *)values + item * rows * columns, columns, 1};
}

static double scale_of(const op_query *q)
{
    return q->attr.scale == 0 ? 1.0 : q->attr.scale;
}

static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

static int64_t item_count(const op_operand *t)
{
    int64_t items = 1;
    for (uint32_t k = 0; k + 2 < t->shape.rank; k++) {
        items *= t->shape.dim[k];
    }
    return items;
}

void reference_matmul(const reference_call *call)
{
    const op_query *q = call->query;
    const product p = {last(&q->out[0], 1), last(&q->out[0], 0), last(&q->in[0], 0), scale_of(q)};
    for (int64_t i = 0; i < item_count(&q->in[0]); i++) {
        const matrix b = matrix_of(call->in[1], &q->in[1], i);
        multiply(&p, matrix_of(call->in[0], &q->in[0], i), is_turned(q) ? turned(b) : b,
                 matrix_of(call->out[0], &q->out[0], i));
    }
}

void reference_matmul_bwd_a(const reference_call *call)
{
    const op_query *q = call->query;
    const product p = {last(&q->out[0], 1), last(&q->out[0], 0), last(&q->in[0], 0), scale_of(q)};
    for (int64_t i = 0; i < item_count(&q->in[0]); i++) {
        const matrix b = matrix_of(call->in[1], &q->in[1], i);
        multiply(&p, matrix_of(call->in[0], &q->in[0], i), is_turned(q) ? b : turned(b),
                 matrix_of(call->out[0], &q->out[0], i));
    }
}

// db = aᵀ·dy, and its transpose where b is stored turned.
void reference_matmul_bwd_b(const reference_call *call)
{
    const op_query *q = call->query;
    const product p = {last(&q->in[0], 0), last(&q->in[1], 0), last(&q->in[0], 1), scale_of(q)};
    for (int64_t i = 0; i < item_count(&q->in[0]); i++) {
        const matrix db = matrix_of(call->out[0], &q->out[0], i);
        multiply(&p, turned(matrix_of(call->in[0], &q->in[0], i)), matrix_of(call->in[1], &q->in[1], i),
                 is_turned(q) ? turned(db) : db);
    }
}

// ---- experts ----------------------------------------------------------------------------------------------

// Of expert e: the rows of slots [N,C,E,D] that are its own, or its matrix of weights [E,I,O].
static matrix expert_of(void *values, const op_operand *t, int64_t e)
{
    const int64_t columns = last(t, 0), experts = t->shape.rank == 4 ? last(t, 1) : 1;
    const int64_t step = t->shape.rank == 4 ? columns : last(t, 1) * columns;
    return (matrix){(double *)values + e * step, experts * columns, 1};
}

static void multiply_experts(const reference_call *call, bool a_turned, bool b_turned)
{
    const op_query *q = call->query;
    const op_operand *a = &q->in[0], *c = &q->out[0];
    const bool slots = c->shape.rank == 4;
    const int64_t rows = a->shape.dim[0] * a->shape.dim[1];
    const product p = {slots ? rows : last(c, 1), last(c, 0), a_turned ? rows : last(a, 0), 1.0};
    for (int64_t e = 0; e < (slots ? last(c, 1) : last(c, 2)); e++) {
        const matrix left = expert_of(call->in[0], a, e), right = expert_of(call->in[1], &q->in[1], e);
        multiply(&p, a_turned ? turned(left) : left, b_turned ? turned(right) : right,
                 expert_of(call->out[0], c, e));
    }
}

void reference_expert_dense(const reference_call *call) // y = x·w
{
    multiply_experts(call, false, false);
}

void reference_expert_dense_bwd_data(const reference_call *call) // dx = dy·wᵀ
{
    multiply_experts(call, false, true);
}

void reference_expert_dense_bwd_weights(const reference_call *call) // dw = xᵀ·dy
{
    multiply_experts(call, true, false);
}

// ---- attention, materialised ------------------------------------------------------------------------------

// Head h of sample n: of a sequence [N,L,D] a matrix [L,D/heads], of scores [N,heads,Lq,Lk] one [Lq,Lk].
static matrix head_of(void *values, const op_operand *t, int32_t heads, int64_t n, int64_t h)
{
    if (t->shape.rank == 4) {
        return matrix_of(values, t, n * heads + h);
    }
    const int64_t length = t->shape.dim[1], width = t->shape.dim[2];
    return (matrix){(double *)values + n * length * width + h * (width / heads), width, 1};
}

typedef enum turn { TURN_NONE, TURN_A, TURN_B } turn;

static void multiply_heads(const reference_call *call, turn turns, bool scaled)
{
    const op_query *q = call->query;
    const int32_t heads = q->attr.heads;
    const op_operand *sequence = q->in[0].shape.rank == 3 ? &q->in[0] : &q->in[1];
    const int64_t features = sequence->shape.dim[2] / heads;
    const op_operand *a = &q->in[0], *c = &q->out[0];
    const int64_t a_columns = a->shape.rank == 4 ? a->shape.dim[3] : features;
    const product p = {.m = c->shape.dim[c->shape.rank - 2],
                       .n = c->shape.rank == 4 ? c->shape.dim[3] : features,
                       .k = turns == TURN_A ? a->shape.dim[a->shape.rank - 2] : a_columns,
                       .scale = scaled ? op_attention_scale(&q->attr, features) : 1.0};
    for (int64_t n = 0; n < c->shape.dim[0]; n++) {
        for (int64_t h = 0; h < heads; h++) {
            const matrix left = head_of(call->in[0], &q->in[0], heads, n, h);
            const matrix right = head_of(call->in[1], &q->in[1], heads, n, h);
            multiply(&p, turns == TURN_A ? turned(left) : left, turns == TURN_B ? turned(right) : right,
                     head_of(call->out[0], c, heads, n, h));
        }
    }
}

void reference_attention_scores(const reference_call *call) // s = q·kᵀ
{
    multiply_heads(call, TURN_B, true);
}

void reference_attention_scores_bwd_q(const reference_call *call) // dq = ds·k
{
    multiply_heads(call, TURN_NONE, true);
}

// dk = dsᵀ·q: the operands come the other way round.
void reference_attention_scores_bwd_k(const reference_call *call)
{
    op_query query = *call->query;
    reference_call swapped = *call;
    swapped.query = &query;
    query.in[0] = call->query->in[1];
    query.in[1] = call->query->in[0];
    swapped.in[0] = call->in[1];
    swapped.in[1] = call->in[0];
    multiply_heads(&swapped, TURN_A, true);
}

void reference_attention_values(const reference_call *call) // y = p·v
{
    multiply_heads(call, TURN_NONE, false);
}

void reference_attention_values_bwd_p(const reference_call *call) // dp = dy·vᵀ
{
    multiply_heads(call, TURN_B, false);
}

void reference_attention_values_bwd_v(const reference_call *call) // dv = pᵀ·dy
{
    multiply_heads(call, TURN_A, false);
}
