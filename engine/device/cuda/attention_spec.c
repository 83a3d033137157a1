// SPDX-License-Identifier: Apache-2.0
#include "attention_spec.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cudnn.h"
#include "ops/attention.h"

enum { RANK = 4, ROWS_AXIS = 2, COLUMNS_AXIS = 3 };

typedef struct builder {
    graph_spec *spec;
    int64_t samples, heads, queries, keys, features;
    int64_t row, width; // from row to row: of q, k, v and their gradients; of y and dy
    uint32_t dtype;
    bool causal;
    float factor;  // of scores
    float rate;    // of weights that are dropped
    uint8_t scale; // a tensor by value
    uint8_t kept;  // where weights are dropped: the mask, and what is kept is multiplied with
    uint8_t kept_scale;
} builder;

static builder begin(const op_query *q, graph_spec *spec)
{
    const op_attention a = op_attention_of(q);
    *spec = (graph_spec){0};
    return (builder){.spec = spec,
                     .samples = a.samples,
                     .heads = a.heads,
                     .queries = a.queries,
                     .keys = a.keys,
                     .features = a.features,
                     .row = a.row,
                     .width = a.width,
                     .dtype = q->in[0].dtype,
                     .causal = (q->attr.flags & OP_FLAG_CAUSAL) != 0,
                     .factor = (float)op_attention_scale(&q->attr, a.features),
                     .rate = (float)q->attr.rate};
}

// ---- tensors ---------------------------------------------------------------------------------------------------

static uint8_t add_tensor(builder *b, graph_tensor t)
{
    t.rank = RANK;
    b->spec->tensor[b->spec->tensor_count] = t;
    return (uint8_t)b->spec->tensor_count++;
}

static uint8_t add_value(builder *b, float value)
{
    return add_tensor(
        b,
        (graph_tensor){
            .dtype = HR_F32, .by_value = true, .value = value, .dim = {1, 1, 1, 1}, .stride = {1, 1, 1, 1}});
}

// Heads of [N,length,heads·d], in memory, rows `row` apart; `turned`: as [d,length].
static graph_tensor heads_in(const builder *b, int64_t length, int64_t row, bool turned)
{
    graph_tensor t = {.dtype = b->dtype, .dim = {b->samples, b->heads, length, b->features}};
    const int64_t stride[RANK] = {length * row, b->features, row, 1};
    memcpy(t.stride, stride, sizeof stride);
    if (turned) {
        t.dim[ROWS_AXIS] = b->features;
        t.dim[COLUMNS_AXIS] = length;
        t.stride[ROWS_AXIS] = 1;
        t.stride[COLUMNS_AXIS] = row;
    }
    return t;
}

// Of q, k, v and their gradients.
static graph_tensor heads_of(const builder *b, int64_t length, bool turned)
{
    return heads_in(b, length, b->row, turned);
}

// Of y and dy.
static graph_tensor heads_of_result(const builder *b)
{
    return heads_in(b, b->queries, b->width, false);
}

// [N,heads,Lq,columns], dense.
static graph_tensor dense(const builder *b, uint32_t dtype, int64_t columns)
{
    return (graph_tensor){.dtype = dtype,
                          .dim = {b->samples, b->heads, b->queries, columns},
                          .stride = {b->heads * b->queries * columns, b->queries * columns, columns, 1}};
}

static uint8_t add_inside(builder *b, graph_tensor t)
{
    t.inside = true;
    return add_tensor(b, t);
}

static uint8_t add_scores(builder *b, uint32_t dtype)
{
    return add_inside(b, dense(b, dtype, b->keys));
}

// One number a row.
static uint8_t add_column(builder *b)
{
    return add_inside(b, dense(b, HR_F32, 1));
}

// ---- nodes -----------------------------------------------------------------------------------------------------

static uint8_t add_node(builder *b, graph_node n)
{
    b->spec->node[b->spec->node_count++] = n;
    return n.out;
}

static uint8_t multiply(builder *b, uint8_t left, uint8_t right, uint8_t out)
{
    return add_node(b, (graph_node){.kind = GRAPH_MATMUL, .in = {left, right}, .in_count = 2, .out = out});
}

static uint8_t map_one(builder *b, cudnnPointwiseMode_t mode, uint8_t x, uint8_t out)
{
    return add_node(
        b,
        (graph_node){.kind = GRAPH_POINTWISE, .mode = (int32_t)mode, .in = {x}, .in_count = 1, .out = out});
}

static uint8_t map_two(builder *b, cudnnPointwiseMode_t mode, uint8_t x, uint8_t y, uint8_t out)
{
    return add_node(
        b, (graph_node){
               .kind = GRAPH_POINTWISE, .mode = (int32_t)mode, .in = {x, y}, .in_count = 2, .out = out});
}

static uint8_t reduce(builder *b, cudnnReduceTensorOp_t mode, uint8_t x, uint8_t out)
{
    return add_node(
        b, (graph_node){.kind = GRAPH_REDUCE, .mode = (int32_t)mode, .in = {x}, .in_count = 1, .out = out});
}

static uint8_t index_on(builder *b, int32_t axis, uint8_t like)
{
    const uint8_t out = add_scores(b, HR_I32);
    return add_node(b,
                    (graph_node){.kind = GRAPH_INDEX, .axis = axis, .in = {like}, .in_count = 1, .out = out});
}

// Scores [Lq,Lk] as [Lk,Lq], of the operands' type.
static uint8_t turn_scores(builder *b, uint8_t scores)
{
    graph_tensor t = dense(b, b->dtype, b->keys);
    t.dim[ROWS_AXIS] = b->keys;
    t.dim[COLUMNS_AXIS] = b->queries;
    t.stride[ROWS_AXIS] = 1;
    t.stride[COLUMNS_AXIS] = b->keys;
    const uint8_t out = add_inside(b, t);
    return add_node(b, (graph_node){.kind = GRAPH_TRANSPOSE, .in = {scores}, .in_count = 1, .out = out});
}

// What a query does not see weighs nothing: the lowest number there is, from 9.10 on minus infinity, as NVIDIA's own
// front end has it (cudnn-frontend, attn_score_modifiers.h).
static float masked_score(void)
{
    enum { TAKES_INFINITY = 91000 };
    return cudnn.cudnnGetVersion != NULL && cudnn.cudnnGetVersion() >= TAKES_INFINITY ? -INFINITY : -FLT_MAX;
}

// scale·q·kᵀ
static uint8_t add_products(builder *b, uint8_t q, uint8_t k_turned)
{
    const uint8_t s = multiply(b, q, k_turned, add_scores(b, HR_F32));
    return map_two(b, CUDNN_POINTWISE_MUL, s, b->scale, add_scores(b, HR_F32));
}

static uint8_t add_mask(builder *b, uint8_t s)
{
    if (!b->causal) {
        return s;
    }
    const uint8_t row = index_on(b, ROWS_AXIS, s), column = index_on(b, COLUMNS_AXIS, s);
    const uint8_t seen = map_two(b, CUDNN_POINTWISE_CMP_GE, row, column, add_scores(b, HR_U8));
    const uint8_t lowest = add_value(b, masked_score()), out = add_scores(b, HR_F32);
    return add_node(b, (graph_node){.kind = GRAPH_POINTWISE,
                                    .mode = CUDNN_POINTWISE_BINARY_SELECT,
                                    .in = {s, lowest, seen},
                                    .in_count = 3,
                                    .out = out});
}

static void add_scale(builder *b)
{
    b->scale = add_value(b, b->factor);
}

// ---- dropout ---------------------------------------------------------------------------------------------------

static attention_seed add_seed(builder *b)
{
    const graph_tensor one = {.dtype = GRAPH_I64, .dim = {1, 1, 1, 1}, .stride = {1, 1, 1, 1}};
    if (b->rate == 0.0f) {
        return (attention_seed){0, 0};
    }
    const uint8_t seed = add_tensor(b, one);
    return (attention_seed){seed, add_tensor(b, one)};
}

static void add_kept(builder *b, attention_seed seed)
{
    if (b->rate > 0.0f) {
        b->kept_scale = add_value(b, 1.0f / (1.0f - b->rate));
        b->kept = add_node(b, (graph_node){.kind = GRAPH_RANDOM,
                                           .ones = 1.0f - b->rate,
                                           .in = {seed.seed, seed.offset},
                                           .in_count = 2,
                                           .out = add_scores(b, HR_F32)});
    }
}

// Weights, or their gradients, where the mask keeps them.
static uint8_t add_cut(builder *b, uint8_t p)
{
    return b->rate == 0.0f ? p : map_two(b, CUDNN_POINTWISE_MUL, p, b->kept, add_scores(b, HR_F32));
}

static uint8_t add_kept_scale(builder *b, uint8_t p, uint32_t dtype)
{
    return b->rate == 0.0f ? p : map_two(b, CUDNN_POINTWISE_MUL, p, b->kept_scale, add_scores(b, dtype));
}

// ---- graphs ----------------------------------------------------------------------------------------------------

void attention_spec(const op_query *q, graph_spec *out, attention_seed *seed)
{
    builder b = begin(q, out);
    (void)add_tensor(&b, heads_of(&b, b.queries, false)); // in the order of ATTENTION_Q …
    (void)add_tensor(&b, heads_of(&b, b.keys, true));
    (void)add_tensor(&b, heads_of(&b, b.keys, false));
    (void)add_tensor(&b, heads_of_result(&b));
    (void)add_tensor(&b, dense(&b, HR_F32, 1));
    *seed = add_seed(&b);
    add_scale(&b);
    add_kept(&b, *seed);
    const uint8_t s = add_mask(&b, add_products(&b, ATTENTION_Q, ATTENTION_K));
    const uint8_t largest = reduce(&b, CUDNN_REDUCE_TENSOR_MAX, s, add_column(&b));
    const uint8_t less = map_two(&b, CUDNN_POINTWISE_SUB, s, largest, add_scores(&b, HR_F32));
    const uint8_t e = map_one(&b, CUDNN_POINTWISE_EXP, less, add_scores(&b, HR_F32));
    const uint8_t sum = reduce(&b, CUDNN_REDUCE_TENSOR_ADD, e, add_column(&b));
    const uint8_t log_sum = map_one(&b, CUDNN_POINTWISE_LOG, sum, add_column(&b));
    (void)map_two(&b, CUDNN_POINTWISE_ADD, largest, log_sum, ATTENTION_LSE);
    const uint8_t p =
        map_two(&b, CUDNN_POINTWISE_DIV, e, sum, add_scores(&b, b.rate == 0.0f ? b.dtype : HR_F32));
    (void)multiply(&b, add_kept_scale(&b, add_cut(&b, p), b.dtype), ATTENTION_V, ATTENTION_Y);
}

// The tensors in memory, in the order of ATTENTION_BWD_Q …: k and v as [d,Lk].
static attention_seed add_backward_tensors(builder *b, attention_dq dq)
{
    const graph_tensor queries = heads_of(b, b->queries, false), keys = heads_of(b, b->keys, false),
                       result = heads_of_result(b);
    const graph_tensor turned = heads_of(b, b->keys, true), column = dense(b, HR_F32, 1);
    const graph_tensor all[ATTENTION_BWD_REAL] = {queries, turned,  turned, result, result,
                                                  column,  queries, keys,   keys,   column};
    for (uint32_t k = 0; k < ATTENTION_BWD_REAL; k++) {
        (void)add_tensor(b, all[k]);
    }
    if (dq == ATTENTION_DQ_OURS) {
        (void)add_tensor(b, dense(b, HR_F32, b->features));
    }
    const attention_seed seed = add_seed(b);
    add_scale(b);
    add_kept(b, seed);
    return seed;
}

// Σ dy·y of every row. The library wants a factor behind the sum: what dropout has multiplied y with is taken back.
static void add_row_sums(builder *b)
{
    const uint8_t product = add_inside(b, dense(b, HR_F32, b->features));
    (void)map_two(b, CUDNN_POINTWISE_MUL, ATTENTION_BWD_DY, ATTENTION_BWD_Y, product);
    const uint8_t sum = reduce(b, CUDNN_REDUCE_TENSOR_ADD, product, add_column(b));
    (void)map_two(b, CUDNN_POINTWISE_MUL, sum, add_value(b, 1.0f - b->rate), ATTENTION_BWD_SUM);
}

static void add_dq(builder *b, uint8_t ds, attention_dq dq)
{
    const uint8_t k = add_inside(b, heads_of(b, b->keys, false));
    (void)add_node(b,
                   (graph_node){.kind = GRAPH_TRANSPOSE, .in = {ATTENTION_BWD_K}, .in_count = 1, .out = k});
    if (dq == ATTENTION_DQ_WHOLE) {
        (void)multiply(b, ds, k, ATTENTION_BWD_DQ);
        return;
    }
    const uint8_t sum =
        dq == ATTENTION_DQ_OURS ? (uint8_t)ATTENTION_BWD_REAL : add_inside(b, dense(b, HR_F32, b->features));
    (void)multiply(b, ds, k, sum);
    (void)map_one(b, CUDNN_POINTWISE_IDENTITY, sum, ATTENTION_BWD_DQ);
}

void attention_bwd_spec(const op_query *q, attention_dq dq, graph_spec *out, attention_seed *seed)
{
    builder b = begin(q, out);
    *seed = add_backward_tensors(&b, dq);
    add_row_sums(&b);
    const uint8_t s = add_products(&b, ATTENTION_BWD_Q, ATTENTION_BWD_K);
    const uint8_t less = map_two(&b, CUDNN_POINTWISE_SUB, s, ATTENTION_BWD_LSE, add_scores(&b, HR_F32));
    const uint8_t p = map_one(&b, CUDNN_POINTWISE_EXP, add_mask(&b, less), add_scores(&b, HR_F32));
    const uint8_t dropped = add_kept_scale(&b, add_cut(&b, p), HR_F32);
    (void)multiply(&b, turn_scores(&b, dropped), ATTENTION_BWD_DY, ATTENTION_BWD_DV);
    const uint8_t dp = multiply(&b, ATTENTION_BWD_DY, ATTENTION_BWD_V, add_scores(&b, HR_F32));
    const uint8_t apart =
        map_two(&b, CUDNN_POINTWISE_SUB, add_cut(&b, dp), ATTENTION_BWD_SUM, add_scores(&b, HR_F32));
    const uint8_t weighed = map_two(&b, CUDNN_POINTWISE_MUL, apart, p, add_scores(&b, HR_F32));
    const uint8_t ds = map_two(&b, CUDNN_POINTWISE_MUL, add_kept_scale(&b, weighed, HR_F32), b.scale,
                               add_scores(&b, HR_F32));
    (void)multiply(&b, turn_scores(&b, ds), ATTENTION_BWD_Q, ATTENTION_BWD_DK);
    add_dq(&b, ds, dq);
}
