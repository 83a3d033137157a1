// SPDX-License-Identifier: Apache-2.0
// Attention. Heads lie side by side in the last dimension: head h of q[N,L,D] is q[:, :, h*D/heads ...], so that
// nothing is turned between a dense layer and its attention. Two forms:
//
//     materialised   scores → softmax → values, three operations; the scores [N,heads,Lq,Lk] are tensors
//     streaming      one operation that keeps q, k, v, y and one number per row, log Σ exp of its scores
//
// With OP_FLAG_CAUSAL query i sees keys 0 to i, also where Lq and Lk differ.
#include "ops/attention.h"

#include <math.h>

#include "ops/dropout.h"
#include "ops/rows.h"

enum { SIDE_BY_SIDE = 3, APART = 3 };

static hr_status check_heads(const op_attr *attr, const hr_shape *s, hr_err *err)
{
    const int64_t width = s->dim[s->rank - 1];
    if (attr->heads < 1 || width % attr->heads != 0) {
        return HR_FAIL(err, MODEL, "attention over %lld features needs heads that divide them, had %d",
                       (long long)width, attr->heads);
    }
    return HR_OK;
}

static hr_status check_sequence(const char *name, const hr_shape *s, hr_err *err)
{
    if (s->rank != 3) {
        return HR_FAIL(err, MODEL, "attention needs %s as [N,length,features], had %u dimensions", name,
                       s->rank);
    }
    return HR_OK;
}

// q against keys (or values): as many samples and features.
static hr_status check_match(const char *name, const hr_shape *q, const hr_shape *k, hr_err *err)
{
    HR_TRY(check_sequence(name, k, err));
    if (k->dim[0] != q->dim[0] || k->dim[2] != q->dim[2]) {
        return HR_FAIL(err, MODEL,
                       "attention needs %s of as many samples and features as its queries: %lld of %lld, had "
                       "%lld of %lld",
                       name, (long long)q->dim[0], (long long)q->dim[2], (long long)k->dim[0],
                       (long long)k->dim[2]);
    }
    return HR_OK;
}

static hr_status scores_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *q = &in[0].shape, *k = &in[1].shape;
    HR_TRY(check_sequence("queries", q, err));
    HR_TRY(check_match("keys", q, k, err));
    HR_TRY(check_heads(attr, q, err));
    out[0] = in[0];
    out[0].shape = shape_of(4, (const int64_t[]){q->dim[0], attr->heads, q->dim[1], k->dim[1]});
    return HR_OK;
}

static hr_status values_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *p = &in[0].shape, *v = &in[1].shape;
    HR_TRY(check_sequence("values", v, err));
    HR_TRY(check_heads(attr, v, err));
    if (p->rank != 4 || p->dim[0] != v->dim[0] || p->dim[1] != attr->heads || p->dim[3] != v->dim[1]) {
        char had[96];
        return HR_FAIL(
            err, MODEL,
            "attention over %lld values in %d heads needs weights [N,heads,queries,values], had %s",
            (long long)v->dim[1], attr->heads, shape_text(p, had, sizeof had));
    }
    out[0] = in[0];
    out[0].shape = shape_of(3, (const int64_t[]){v->dim[0], p->dim[2], v->dim[2]});
    return HR_OK;
}

static void attention_results(const op_attr *attr, const op_operand *q, int64_t width, op_operand *out)
{
    out[0] = out[1] = *q;
    out[0].shape.dim[2] = width;
    out[1].shape = shape_of(3, (const int64_t[]){q->shape.dim[0], attr->heads, q->shape.dim[1]});
    out[1].dtype = q->dtype == HR_F64 ? HR_F64 : HR_F32;
}

static hr_status joined_shape(const op_attr *attr, const op_operand *qkv, op_operand *out, hr_err *err)
{
    HR_TRY(check_sequence("queries", &qkv->shape, err));
    hr_shape one = qkv->shape;
    one.dim[2] /= SIDE_BY_SIDE;
    if (qkv->shape.dim[2] % SIDE_BY_SIDE != 0) {
        return HR_FAIL(err, MODEL,
                       "queries, keys and values side by side have 3 times the features, had %lld",
                       (long long)qkv->shape.dim[2]);
    }
    HR_TRY(check_heads(attr, &one, err));
    attention_results(attr, qkv, one.dim[2], out);
    return HR_OK;
}

static hr_status attention_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                                 size_t out_count, hr_err *err)
{
    (void)out_count;
    HR_TRY(dropout_check_rate(attr, err));
    if (in_count < APART) {
        return joined_shape(attr, &in[0], out, err);
    }
    const hr_shape *q = &in[0].shape, *k = &in[1].shape, *v = &in[2].shape;
    HR_TRY(check_sequence("queries", q, err));
    HR_TRY(check_match("keys", q, k, err));
    HR_TRY(check_match("values", q, v, err));
    HR_TRY(check_heads(attr, q, err));
    if (k->dim[1] != v->dim[1]) {
        return HR_FAIL(err, MODEL, "attention needs a value for every key: %lld, had %lld",
                       (long long)k->dim[1], (long long)v->dim[1]);
    }
    attention_results(attr, &in[0], q->dim[2], out);
    return HR_OK;
}

double op_attention_scale(const op_attr *attr, int64_t features)
{
    return attr->scale != 0 ? attr->scale : 1.0 / sqrt((double)features);
}

op_attention op_attention_of(const op_query *q)
{
    const bool joined = q->in_count == 1 || (q->op == HR_OP_ATTENTION_BWD && q->out_count == 1);
    const int64_t *d = q->in[0].shape.dim;
    const int64_t width = joined ? d[2] / SIDE_BY_SIDE : d[2];
    const uint8_t y = joined ? 1 : APART;
    return (op_attention){.joined = joined,
                          .samples = d[0],
                          .heads = q->attr.heads,
                          .queries = d[1],
                          .keys = joined ? d[1] : q->in[1].shape.dim[1],
                          .features = width / q->attr.heads,
                          .width = width,
                          .row = d[2],
                          .y = y,
                          .dy = (uint8_t)(y + 1),
                          .lse = (uint8_t)(y + 2)};
}

// ---- costs ------------------------------------------------------------------------------------------------

// Two per product. In all six operations of the materialised form one operand or result is [N,heads,Lq,Lk], and
// each of its elements stands for D/heads products.
static uint64_t pairs_flops(uint64_t pairs, int64_t width, int32_t heads)
{
    return 2 * pairs * (uint64_t)(width / heads);
}

static uint64_t scores_flops(const op_query *q)
{
    return pairs_flops(op_out_elements(q, 0), q->in[0].shape.dim[2], q->attr.heads);
}

static uint64_t values_flops(const op_query *q)
{
    return pairs_flops(op_in_elements(q, 0), q->in[1].shape.dim[2], q->attr.heads);
}

static uint64_t scores_bwd_k_flops(const op_query *q)
{
    return pairs_flops(op_in_elements(q, 1), q->in[0].shape.dim[2], q->attr.heads);
}

static uint64_t values_bwd_p_flops(const op_query *q)
{
    return pairs_flops(op_out_elements(q, 0), q->in[1].shape.dim[2], q->attr.heads);
}

// Pairs of a query and a key that it sees, over all samples and heads.
static uint64_t seen_pairs(const op_query *q)
{
    const op_attention a = op_attention_of(q);
    const uint64_t n = (uint64_t)a.samples * (uint64_t)a.heads;
    const uint64_t queries = (uint64_t)a.queries, keys = (uint64_t)a.keys;
    if ((q->attr.flags & OP_FLAG_CAUSAL) == 0) {
        return n * queries * keys;
    }
    const uint64_t rising = queries < keys ? queries : keys;
    return n * (rising * (rising + 1) / 2 + (queries - rising) * keys);
}

// Forward two products and a softmax; backward five products (the scores once more) and the softmax's gradient.
static uint64_t attention_flops(const op_query *q)
{
    return 2 * pairs_flops(seen_pairs(q), op_attention_of(q).width, q->attr.heads) + 5 * seen_pairs(q);
}

static uint64_t attention_bwd_flops(const op_query *q)
{
    return 5 * pairs_flops(seen_pairs(q), op_attention_of(q).width, q->attr.heads) + 6 * seen_pairs(q);
}

// ---- rows -------------------------------------------------------------------------------------------------

const op_row op_row_ATTENTION_SCORES = {
    .name = "attention_scores",
    .traits = {COST_PRODUCT, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = scores_shape,
    .flops = scores_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_ATTENTION_SCORES_BWD_Q,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
            {.op = HR_OP_ATTENTION_SCORES_BWD_K,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {1}},
        },
};

const op_row op_row_ATTENTION_SCORES_BWD_Q = {
    .name = "attention_scores_bwd_q",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = values_flops,
    .in_place = -1,
};

const op_row op_row_ATTENTION_SCORES_BWD_K = {
    .name = "attention_scores_bwd_k",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = scores_bwd_k_flops,
    .in_place = -1,
};

const op_row op_row_ATTENTION_VALUES = {
    .name = "attention_values",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = values_shape,
    .flops = values_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_ATTENTION_VALUES_BWD_P,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
            {.op = HR_OP_ATTENTION_VALUES_BWD_V,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {1}},
        },
};

const op_row op_row_ATTENTION_VALUES_BWD_P = {
    .name = "attention_values_bwd_p",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = values_bwd_p_flops,
    .in_place = -1,
};

const op_row op_row_ATTENTION_VALUES_BWD_V = {
    .name = "attention_values_bwd_v",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = values_flops,
    .in_place = -1,
};

const op_row op_row_ATTENTION = {
    .name = "attention",
    .traits = {COST_ATTENTION, OP_COSTLY, OP_NO_ACT, OP_BY_HEAD},
    .min_in = 1,
    .max_in = 3,
    .min_out = 2,
    .max_out = 2,
    .shape = attention_shape,
    .flops = attention_flops,
    .in_place = -1,
    .wide_out = 0x2,
    .keep_in = 0x7,
    .keep_out = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_ATTENTION_BWD,
              .operand_count = 6,
              .operand = {{OP_SRC_IN, 0},
                          {OP_SRC_IN, 1},
                          {OP_SRC_IN, 2},
                          {OP_SRC_OUT, 0},
                          {OP_SRC_GRAD, 0},
                          {OP_SRC_OUT, 1}},
              .result_count = 3,
              .result = {0, 1, 2}}},
};

const op_row op_row_ATTENTION_BWD = {
    .name = "attention_bwd",
    .traits = {COST_ATTENTION, OP_COSTLY, OP_NO_ACT, OP_BY_HEAD},
    .min_in = 4,
    .max_in = 6,
    .min_out = 1,
    .max_out = 3,
    .flops = attention_bwd_flops,
    .in_place = -1,
};
