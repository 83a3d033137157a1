// SPDX-License-Identifier: Apache-2.0
#include "products_shape.h"

#include "ops/attention.h"

static int64_t last(const op_operand *t, uint32_t from_end)
{
    return t->shape.dim[t->shape.rank - 1 - from_end];
}

static int64_t rows_of(const op_operand *t)
{
    return (int64_t)cuda_elements(t) / last(t, 0);
}

static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

static product_shape plain(const op_query *q, int64_t m, int64_t n, int64_t k)
{
    const uint32_t dtype = cuda_type(q);
    return (product_shape){
        .dtype = dtype, .out_dtype = q->out[0].dtype, .m = m, .n = n, .k = k, .alpha = 1.0f};
}

// ---- dense layers and pointwise convolutions --------------------------------------------------------------------

static bool is_added(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_ADDED) != 0;
}

static void add_last(const op_query *q, product_use *u)
{
    u->added = is_added(q) ? (int8_t)(q->in_count - 1) : -1;
    u->shape.beta = is_added(q) ? 1.0f : 0.0f;
}

// y[rows,O] = x[rows,I] · w[I,O]
static product_use forward(const op_query *q)
{
    product_use u = {.shape = plain(q, rows_of(&q->in[0]), last(&q->out[0], 0), last(&q->in[0], 0)),
                     .a = 0,
                     .b = 1,
                     .vector = q->in_count - is_added(q) > 2 ? 2 : -1,
                     .aux = q->out_count > 1 ? 1 : -1,
                     .six = q->attr.act == HR_ACT_RELU6};
    u.shape.stride_y = operand_pitch(&q->out[0]);
    u.shape.transpose_b = is_turned(q);
    u.shape.bias = u.vector >= 0;
    u.shape.act = u.six ? HR_ACT_NONE : q->attr.act;
    u.shape.aux = u.aux < 0 ? PRODUCT_AUX_NONE : PRODUCT_AUX_WRITTEN;
    add_last(q, &u);
    return u;
}

// dx[rows,I] = dy[rows,O] · w[I,O]ᵀ
static product_use backward_data(const op_query *q)
{
    product_use u = {.shape = plain(q, rows_of(&q->in[0]), last(&q->out[0], 0), last(&q->in[0], 0)),
                     .a = 0,
                     .b = 1,
                     .vector = -1,
                     .aux = q->attr.act == HR_ACT_GELU ? 2 : -1};
    u.shape.stride_a = operand_pitch(&q->in[0]);
    u.shape.transpose_b = !is_turned(q);
    u.shape.act = u.aux < 0 ? HR_ACT_NONE : HR_ACT_GELU;
    u.shape.aux = u.aux < 0 ? PRODUCT_AUX_NONE : PRODUCT_AUX_READ;
    add_last(q, &u);
    return u;
}

// dw[I,O] = x[rows,I]ᵀ · dy[rows,O]; turned dw[O,I] = dyᵀ · x. db sums dy.
static product_use backward_weights(const op_query *q)
{
    const bool turned = is_turned(q);
    product_use u = {.shape = plain(q, last(&q->in[turned ? 1 : 0], 0), last(&q->in[turned ? 0 : 1], 0),
                                    rows_of(&q->in[0])),
                     .a = turned ? 1 : 0,
                     .b = turned ? 0 : 1,
                     .vector = q->out_count > 1 ? 1 : -1,
                     .added = -1,
                     .aux = -1};
    u.shape.stride_a = operand_pitch(&q->in[u.a]);
    u.shape.stride_b = operand_pitch(&q->in[u.b]);
    u.shape.transpose_a = true;
    u.shape.sums = u.vector < 0 ? PRODUCT_SUMS_NONE : turned ? PRODUCT_SUMS_A : PRODUCT_SUMS_B;
    return u;
}

bool product_is_pointwise(const op_query *q)
{
    const op_attr *a = &q->attr;
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride_h == 1 && a->stride_w == 1 && a->groups == 1 &&
           (a->pad_top | a->pad_left | a->pad_bottom | a->pad_right) == 0;
}

// ---- matmul -----------------------------------------------------------------------------------------------------

static void set_items(const op_query *q, product_use *u)
{
    product_shape *s = &u->shape;
    s->alpha = q->attr.scale == 0 ? 1.0f : (float)q->attr.scale;
    s->batch = rows_of(&q->in[0]) / last(&q->in[0], 1);
    s->batch_a = s->m * s->k;
    s->batch_b = s->k * s->n;
    s->batch_y = s->m * s->n;
}

static product_use matmul(const op_query *q)
{
    product_use u = {.shape = plain(q, last(&q->out[0], 1), last(&q->out[0], 0), last(&q->in[0], 0)),
                     .a = 0,
                     .b = 1,
                     .vector = -1,
                     .added = -1,
                     .aux = -1};
    u.shape.transpose_b = (q->op == HR_OP_MATMUL) == is_turned(q);
    set_items(q, &u);
    return u;
}

// db = aᵀ · dy; turned dbᵀ = dyᵀ · a
static product_use matmul_bwd_b(const op_query *q)
{
    const bool turned = is_turned(q);
    product_use u = {.shape = plain(q, last(&q->out[0], 1), last(&q->out[0], 0), last(&q->in[0], 1)),
                     .a = turned ? 1 : 0,
                     .b = turned ? 0 : 1,
                     .vector = -1,
                     .added = -1,
                     .aux = -1};
    u.shape.transpose_a = true;
    set_items(q, &u);
    return u;
}

// ---- experts ----------------------------------------------------------------------------------------------------

// Slots [N,C,E,D] are E matrices of N x C rows that lie E x D apart; weights [E,I,O] lie close.
static int64_t expert_steps(const op_operand *t, int64_t *step)
{
    const bool slots = t->shape.rank == 4;
    *step = slots ? last(t, 0) : last(t, 1) * last(t, 0);
    return slots ? last(t, 1) * last(t, 0) : last(t, 0);
}

static product_use experts(const op_query *q)
{
    const op_operand *c = &q->out[0];
    const bool weights = q->op == HR_OP_EXPERT_DENSE_BWD_WEIGHTS;
    const int64_t rows = q->in[0].shape.dim[0] * q->in[0].shape.dim[1];
    product_use u = {
        .shape = plain(q, weights ? last(c, 1) : rows, last(c, 0), weights ? rows : last(&q->in[0], 0)),
        .a = 0,
        .b = 1,
        .vector = -1,
        .added = -1,
        .aux = -1};
    product_shape *s = &u.shape;
    s->transpose_a = weights;
    s->transpose_b = q->op == HR_OP_EXPERT_DENSE_BWD_DATA;
    s->batch = weights ? last(c, 2) : last(c, 1);
    s->stride_a = expert_steps(&q->in[0], &s->batch_a);
    s->stride_b = expert_steps(&q->in[1], &s->batch_b);
    s->stride_y = expert_steps(c, &s->batch_y);
    return u;
}

// ---- attention --------------------------------------------------------------------------------------------------

// Steps of an operand: of a sequence [N,L,D], heads lie inside the rows; scores are [N,heads,Lq,Lk].
typedef struct head_steps {
    int64_t row, head, sample;
} head_steps;

static head_steps steps_of(const op_operand *t, int32_t heads)
{
    const int64_t rows = last(t, 1), columns = last(t, 0);
    return t->shape.rank == 4 ? (head_steps){columns, rows * columns, heads * rows * columns}
                              : (head_steps){columns, columns / heads, rows * columns};
}

// Heads are the batch and samples the outer loop, or the other way round: fewer launches.
static void set_heads(const op_query *q, product_use *u)
{
    const int32_t heads = q->attr.heads;
    const int64_t samples = q->out[0].shape.dim[0];
    const head_steps a = steps_of(&q->in[u->a], heads), b = steps_of(&q->in[u->b], heads),
                     y = steps_of(&q->out[0], heads);
    const bool heads_first = heads >= samples;
    product_shape *s = &u->shape;
    if (q->op == HR_OP_ATTENTION_SCORES || q->op == HR_OP_ATTENTION_SCORES_BWD_Q ||
        q->op == HR_OP_ATTENTION_SCORES_BWD_K) {
        const op_operand *sequence = &q->in[q->in[0].shape.rank == 3 ? 0 : 1];
        const int64_t features = last(sequence, 0) / heads;
        s->alpha = (float)op_attention_scale(&q->attr, features);
    }
    s->stride_a = a.row;
    s->stride_b = b.row;
    s->stride_y = y.row;
    s->batch = heads_first ? heads : samples;
    s->outer = heads_first ? samples : heads;
    s->batch_a = heads_first ? a.head : a.sample;
    s->batch_b = heads_first ? b.head : b.sample;
    s->batch_y = heads_first ? y.head : y.sample;
    s->outer_a = heads_first ? a.sample : a.head;
    s->outer_b = heads_first ? b.sample : b.head;
    s->outer_y = heads_first ? y.sample : y.head;
}

// [Lq,features] · [Lk,features]ᵀ: scores of q and k, gradients of weights of dy and v
static product_use to_scores(const op_query *q)
{
    const int64_t features = last(&q->in[0], 0) / q->attr.heads;
    product_use u = {.shape = plain(q, last(&q->out[0], 1), last(&q->out[0], 0), features),
                     .a = 0,
                     .b = 1,
                     .vector = -1,
                     .added = -1,
                     .aux = -1};
    u.shape.transpose_b = true;
    set_heads(q, &u);
    return u;
}

// [Lq,Lk] · [Lk,features]: values of p and v, gradients of queries of ds and k
static product_use from_scores(const op_query *q)
{
    const int64_t features = last(&q->out[0], 0) / q->attr.heads;
    product_use u = {.shape = plain(q, last(&q->out[0], 1), features, last(&q->in[0], 0)),
                     .a = 0,
                     .b = 1,
                     .vector = -1,
                     .added = -1,
                     .aux = -1};
    set_heads(q, &u);
    return u;
}

// [Lq,Lk]ᵀ · [Lq,features]: gradients of values of p and dy, of keys of ds and q
static product_use from_turned_scores(const op_query *q)
{
    const uint8_t scores = q->in[0].shape.rank == 4 ? 0 : 1;
    const int64_t features = last(&q->out[0], 0) / q->attr.heads;
    product_use u = {.shape = plain(q, last(&q->out[0], 1), features, last(&q->in[scores], 1)),
                     .a = scores,
                     .b = (uint8_t)(1 - scores),
                     .vector = -1,
                     .added = -1,
                     .aux = -1};
    u.shape.transpose_a = true;
    set_heads(q, &u);
    return u;
}

product_use product_use_of(const op_query *q)
{
    static product_use (*const uses[HR_OP_COUNT])(const op_query *q) = {
        [HR_OP_DENSE] = forward,
        [HR_OP_DENSE_BWD_DATA] = backward_data,
        [HR_OP_DENSE_BWD_WEIGHTS] = backward_weights,
        [HR_OP_CONV2D] = forward,
        [HR_OP_CONV2D_BWD_DATA] = backward_data,
        [HR_OP_CONV2D_BWD_WEIGHTS] = backward_weights,
        [HR_OP_MATMUL] = matmul,
        [HR_OP_MATMUL_BWD_A] = matmul,
        [HR_OP_MATMUL_BWD_B] = matmul_bwd_b,
        [HR_OP_EXPERT_DENSE] = experts,
        [HR_OP_EXPERT_DENSE_BWD_DATA] = experts,
        [HR_OP_EXPERT_DENSE_BWD_WEIGHTS] = experts,
        [HR_OP_ATTENTION_SCORES] = to_scores,
        [HR_OP_ATTENTION_SCORES_BWD_Q] = from_scores,
        [HR_OP_ATTENTION_SCORES_BWD_K] = from_turned_scores,
        [HR_OP_ATTENTION_VALUES] = from_scores,
        [HR_OP_ATTENTION_VALUES_BWD_P] = to_scores,
        [HR_OP_ATTENTION_VALUES_BWD_V] = from_turned_scores,
    };
    return uses[q->op](q);
}
