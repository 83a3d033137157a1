// SPDX-License-Identifier: Apache-2.0
// Which operations are cut, and how.
#include <string.h>

#include "half.h"

enum { TILE_ELEMENTS = 2048, TILE_ROW_ELEMENTS = 4096 };

typedef enum way { UNCUT, BY_ELEMENT, BY_ROW, BY_PERIOD, BY_HEAD } way;

// Bit k of `whole`: input k is seen by every item; of `sum`: output k is a sum; of `repeated`: input k is repeated.
typedef struct manner {
    uint8_t way, whole, sum, repeated;
} manner;

static const manner manners[HR_OP_COUNT] = {
    [HR_OP_RELU] = {BY_ELEMENT},
    [HR_OP_RELU_BWD] = {BY_ELEMENT},
    [HR_OP_ADD] = {BY_ELEMENT},
    [HR_OP_RELU6] = {BY_ELEMENT},
    [HR_OP_RELU6_BWD] = {BY_ELEMENT},
    [HR_OP_MULTIPLY] = {BY_ELEMENT},
    [HR_OP_MULTIPLY_BWD] = {BY_ELEMENT},
    [HR_OP_SCALE] = {BY_ELEMENT, .whole = 0x2},
    [HR_OP_GELU] = {BY_ELEMENT},
    [HR_OP_GELU_BWD] = {BY_ELEMENT},
    [HR_OP_SILU] = {BY_ELEMENT},
    [HR_OP_SILU_BWD] = {BY_ELEMENT},
    [HR_OP_TANH] = {BY_ELEMENT},
    [HR_OP_TANH_BWD] = {BY_ELEMENT},
    [HR_OP_SIGMOID] = {BY_ELEMENT},
    [HR_OP_SIGMOID_BWD] = {BY_ELEMENT},
    [HR_OP_DROPOUT_BWD_MASK] = {BY_ELEMENT},
    [HR_OP_SGD] = {BY_ELEMENT},
    [HR_OP_MOMENTUM] = {BY_ELEMENT},
    [HR_OP_RMSPROP] = {BY_ELEMENT},
    [HR_OP_ADAM] = {BY_ELEMENT},
    [HR_OP_LION] = {BY_ELEMENT},
    [HR_OP_EMA] = {BY_ELEMENT},
    [HR_OP_ACCUMULATE] = {BY_ELEMENT},
    [HR_OP_CLIP] = {BY_ELEMENT, .whole = 0x2},
    [HR_OP_LAYER_NORM] = {BY_ROW, .whole = 0x6},
    [HR_OP_LAYER_NORM_BWD] = {BY_ROW, .whole = 0x4, .sum = 0x6},
    [HR_OP_RMS_NORM] = {BY_ROW, .whole = 0x2},
    [HR_OP_RMS_NORM_BWD] = {BY_ROW, .whole = 0x4, .sum = 0x2},
    [HR_OP_SOFTMAX] = {BY_ROW},
    [HR_OP_SOFTMAX_BWD] = {BY_ROW},
    [HR_OP_ADD_BROADCAST] = {BY_PERIOD, .repeated = 0x2},
    [HR_OP_BROADCAST] = {BY_PERIOD, .repeated = 0x1},
    [HR_OP_ATTENTION] = {BY_HEAD},
    [HR_OP_ATTENTION_BWD] = {BY_HEAD},
};

static int64_t at_least_one(int64_t count)
{
    return count < 1 ? 1 : count;
}

static bool is_repeated(const manner *m, uint32_t input)
{
    return (m->repeated >> input & 1) != 0;
}

static void cut_rows(const op_query *q, half_cut *cut)
{
    const hr_shape *x = &q->in[0].shape;
    const int64_t columns = x->dim[x->rank - 1];
    cut->items = cpu_elements_of(&q->in[0]) / columns;
    cut->most = at_least_one(TILE_ROW_ELEMENTS / columns);
    if ((q->attr.flags & OP_FLAG_CAUSAL) != 0 && x->rank > 1) {
        cut->group = x->dim[x->rank - 2]; // where a row's number in its matrix begins anew
    }
}

// What is repeated is short, and a tile holds it several times, or long, and a tile is a part of it.
static void cut_periods(const op_query *q, const manner *m, half_cut *cut)
{
    const int64_t period = cpu_elements_of(&q->in[is_repeated(m, 1) ? 1 : 0]);
    const int64_t all = cpu_elements_of(&q->out[0]);
    if (period > TILE_ELEMENTS) {
        cut->items = all;
        cut->group = period;
        cut->most = TILE_ELEMENTS;
    } else {
        cut->items = all / period;
        cut->most = at_least_one(TILE_ELEMENTS / period);
    }
}

static void set_items(const op_query *q, const manner *m, half_cut *cut)
{
    switch ((int)m->way) {
    case BY_ROW:
        cut_rows(q, cut);
        break;
    case BY_PERIOD:
        cut_periods(q, m, cut);
        break;
    case BY_HEAD:
        cut->heads = attention_sizes_of(q);
        cut->items = cut->heads.samples * cut->heads.heads;
        cut->most = 1;
        break;
    default:
        cut->items = cpu_floats_of(&q->out[0]);
        cut->most = TILE_ELEMENTS;
    }
}

static half_operand operand_of(const half_cut *cut, const op_operand *t, half_role role)
{
    const int64_t all = cpu_floats_of(t);
    const int64_t each = role == HALF_WHOLE || role == HALF_SUM ? all
                         : role == HALF_PERIODIC                ? 1
                                                                : all / cut->items;
    return (half_operand){role, (hr_dtype)t->dtype, each};
}

static half_role in_role(const half_cut *cut, const manner *m, const op_query *q, uint32_t k)
{
    if (is_repeated(m, k)) {
        return cut->group > 0 ? HALF_PERIODIC : HALF_WHOLE;
    }
    // The flag that an update happens is the last operand of its rule.
    if ((m->whole >> k & 1) != 0 || q->in[k].dtype == HR_I32) {
        return HALF_WHOLE;
    }
    return m->way == BY_HEAD && q->in[k].shape.rank == 3 && q->in[k].dtype != HR_F32 ? HALF_HEAD : HALF_ROWS;
}

bool half_cut_of(const op_query *q, half_cut *out)
{
    const manner *m = &manners[q->op];
    *out = (half_cut){
        .in_count = q->in_count, .out_count = q->out_count, .updated = op_row_of((hr_op)q->op)->updates};
    if (m->way == UNCUT || (m->way != BY_ELEMENT && q->in[0].layout != HR_LAYOUT_PLAIN)) {
        return false;
    }
    set_items(q, m, out);
    out->most = out->most < out->items ? out->most : out->items;
    for (uint32_t k = 0; k < q->in_count; k++) {
        out->in[k] = operand_of(out, &q->in[k], in_role(out, m, q, k));
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        const bool head = m->way == BY_HEAD && q->out[k].dtype != HR_F32;
        const half_role role = (m->sum >> k & 1) != 0 ? HALF_SUM : head ? HALF_HEAD : HALF_ROWS;
        out->out[k] = operand_of(out, &q->out[k], role);
    }
    return true;
}

static void shape_tile(const half_cut *cut, const half_operand *o, int64_t count, op_operand *t)
{
    t->dtype = dtype_is_real(o->dtype) ? HR_F32 : (uint32_t)o->dtype;
    t->layout = HR_LAYOUT_PLAIN;
    if (o->role == HALF_HEAD) {
        const int64_t features = cut->heads.features;
        t->shape = shape_of(3, (const int64_t[]){1, o->each / features, features});
    } else if (o->role == HALF_ROWS || o->role == HALF_PERIODIC) {
        t->shape = shape_of(2, (const int64_t[]){count, o->each});
    }
}

void half_tile_query(const half_cut *cut, int64_t at, int64_t count, const op_query *q, op_query *tile)
{
    *tile = *q;
    tile->attr.heads = 1;
    tile->attr.offset = cut->group > 0 ? (int32_t)(at % cut->group) : 0;
    for (uint32_t k = 0; k < q->in_count; k++) {
        shape_tile(cut, &cut->in[k], count, &tile->in[k]);
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        shape_tile(cut, &cut->out[k], count, &tile->out[k]);
    }
}
