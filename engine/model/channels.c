// SPDX-License-Identifier: Apache-2.0
// One walk along the nodes. A value's channels are pieces of its last dimension, each of one kernel's filters, repeated with a
// pitch where images were flattened.
#include "model/channels.h"

#include "headroom/event.h"

#include "base/host_mem.h"
#include "model/layer_kind.h"

typedef struct piece {
    uint32_t kernel;
    int64_t offset, each;
} piece;

// Pieces [first, first + count) of a value; none: of no kernel.
typedef struct span {
    uint32_t first, count;
    int64_t pitch;
} span;

typedef struct walk {
    const hr_model *m;
    model_channels *out;
    span *of;        // [value_count]
    uint32_t *reads; // [param_count] nodes that read a parameter
    VEC(piece) pieces;
    bool nomem;
} walk;

static int64_t last_dim(const hr_shape *shape)
{
    return shape->dim[shape->rank - 1];
}

static void keep(walk *w, uint32_t value)
{
    const span s = w->of[value];
    for (uint32_t k = 0; k < s.count; k++) {
        w->out->may_go[w->pieces.data[s.first + k].kernel] = false;
    }
}

static void keep_inputs(walk *w, const model_node *node, uint32_t from)
{
    for (uint32_t k = from; k < node->in_count; k++) {
        if (!node->in[k].is_param) {
            keep(w, node->in[k].index);
        }
    }
}

static void add_piece(walk *w, piece p)
{
    piece *to = vec_push(&w->pieces);
    w->nomem = w->nomem || to == NULL;
    if (to != NULL) {
        *to = p;
    }
}

static void add_part(walk *w, const channel_part *part)
{
    channel_part *to = vec_push(&w->out->parts);
    w->nomem = w->nomem || to == NULL;
    if (to != NULL) {
        *to = *part;
    }
}

// Adds what `param` has along `axis` of each channel of the value, whose places are `each` times as many there. A parameter with another
// reader, or of another's making, keeps them.
static void add_parts(walk *w, uint32_t value, model_ref param, channel_role role, uint32_t axis,
                      int64_t each)
{
    const span s = w->of[value];
    const model_param *p = &w->m->params[param.index];
    if (!param.is_param || w->reads[param.index] != 1 || p->adapter || p->factor != MODEL_FACTOR_NONE) {
        keep(w, value);
        return;
    }
    for (uint32_t k = 0; k < s.count && !w->nomem; k++) {
        const piece from = w->pieces.data[s.first + k];
        const channel_part part = {.kernel = from.kernel,
                                   .param = param.index,
                                   .role = role,
                                   .axis = (int32_t)axis,
                                   .offset = from.offset * each,
                                   .each = from.each * each,
                                   .pitch = s.pitch * each};
        add_part(w, &part);
    }
}

// ---- products -------------------------------------------------------------------------------------------------------

static layer_kind_id kind_of(const walk *w, uint32_t layer)
{
    return layer_kind_find(w->m->layers[layer].kind);
}

// As many groups as channels, however many there are: groups that were written do not follow a width.
static bool may_be_depthwise(const walk *w, const model_node *node)
{
    const layer_kind_id kind = kind_of(w, node->layer);
    return node->op == HR_OP_CONV2D && (kind == LAYER_depthwise_conv2d || kind == LAYER_separable_conv2d) &&
           node->in[1].is_param && w->m->params[node->in[1].index].shape.dim[2] == 1;
}

static bool is_product(const model_node *node)
{
    return node->op == HR_OP_DENSE || node->op == HR_OP_CONV2D_TRANSPOSE ||
           (node->op == HR_OP_CONV2D && node->attr.groups == 1);
}

// [O, I] of a transposed product, [kh, kw, O, I] of a transposed convolution.
static bool is_turned(const model_node *node)
{
    return node->op == HR_OP_CONV2D_TRANSPOSE ||
           (node->op == HR_OP_DENSE && (node->attr.flags & OP_FLAG_TRANSPOSE) != 0);
}

// Of such a layer nothing but its width says how many places its result has.
static bool has_width(const walk *w, uint32_t layer)
{
    const layer_kind_id kind = kind_of(w, layer);
    return kind != LAYER_KIND_COUNT && layer_kind_width(layer_kind_at(kind)) != ATTR_NONE;
}

static bool may_begin(const walk *w, const model_node *node, int64_t filters)
{
    const model_ref kernel = node->in[1];
    const model_param *p = &w->m->params[kernel.index];
    const model_value *result = &w->m->values[w->m->layers[node->layer].output];
    return kernel.index < w->m->own_params && w->reads[kernel.index] == 1 && !p->adapter &&
           p->factor == MODEL_FACTOR_NONE && p->layer == node->layer && !may_be_depthwise(w, node) &&
           has_width(w, node->layer) && last_dim(&result->shape) == filters;
}

static void begin(walk *w, const model_node *node)
{
    const uint32_t kernel = node->in[1].index, rank = w->m->params[kernel].shape.rank;
    const uint32_t axis = rank - (is_turned(node) ? 2 : 1), result = node->out[0];
    const int64_t filters = w->m->params[kernel].shape.dim[axis];
    if (!may_begin(w, node, filters)) {
        return;
    }
    w->out->may_go[kernel] = true;
    w->of[result] = (span){w->pieces.count, 1, filters};
    add_piece(w, (piece){.kernel = kernel, .each = 1});
    add_parts(w, result, node->in[1], CHANNEL_GIVES, axis, 1);
}

static void walk_product(walk *w, const model_node *node)
{
    if (!node->in[1].is_param || !has_width(w, node->layer)) {
        keep_inputs(w, node, 0);
        return;
    }
    const uint32_t rank = w->m->params[node->in[1].index].shape.rank;
    add_parts(w, node->in[0].index, node->in[1], CHANNEL_READS, rank - (is_turned(node) ? 1 : 2), 1);
    begin(w, node);
    if (node->in_count > 2) {
        add_parts(w, node->out[0], node->in[2], CHANNEL_FOLLOWS, 0, 1);
    }
    keep_inputs(w, node, 2);
    if (node->in_count > 3) {
        keep(w, node->out[0]);
    }
}

// ---- what passes channels on ----------------------------------------------------------------------------------------

static void pass_on(walk *w, const model_node *node)
{
    w->of[node->out[0]] = w->of[node->in[0].index];
}

static void walk_depthwise(walk *w, const model_node *node)
{
    const uint32_t x = node->in[0].index, y = node->out[0];
    const int64_t each = last_dim(&w->m->values[y].shape) / last_dim(&w->m->values[x].shape);
    const span from = w->of[x];
    add_parts(w, x, node->in[1], CHANNEL_FOLLOWS, 3, each);
    w->of[y] = (span){w->pieces.count, from.count, from.pitch * each};
    for (uint32_t k = 0; k < from.count && !w->nomem; k++) {
        const piece p = w->pieces.data[from.first + k];
        add_piece(w, (piece){p.kernel, p.offset * each, p.each * each});
    }
    if (node->in_count > 2 && !w->nomem) {
        add_parts(w, y, node->in[2], CHANNEL_FOLLOWS, 0, 1);
    }
}

static void walk_norm(walk *w, const model_node *node)
{
    enum { OWN = 5 }; // x, gamma, beta, mean, variance
    for (uint32_t k = 1; k < node->in_count && k < OWN; k++) {
        add_parts(w, node->in[0].index, node->in[k], CHANNEL_FOLLOWS, 0, 1);
    }
    if (node->in_count != OWN) { // without a gain and an offset 0 does not stay 0
        keep_inputs(w, node, 0);
    }
    pass_on(w, node);
}

// A shape that was written does not follow a width; others do.
static void walk_reshape(walk *w, const model_node *node)
{
    const span from = w->of[node->in[0].index];
    if (from.count > 0 && (kind_of(w, node->layer) == LAYER_reshape ||
                           last_dim(&w->m->values[node->out[0]].shape) % from.pitch != 0)) {
        keep_inputs(w, node, 0);
        return;
    }
    pass_on(w, node);
}

static bool joins_last(const walk *w, const model_node *node)
{
    bool joins = node->attr.axis == (int32_t)w->m->values[node->out[0]].shape.rank - 1;
    for (uint32_t k = 0; k < node->in_count; k++) {
        const uint32_t value = node->in[k].index;
        const bool param = node->in[k].is_param;
        joins = joins && !param &&
                (w->of[value].count == 0 || w->of[value].pitch == last_dim(&w->m->values[value].shape));
    }
    return joins;
}

static void walk_concat(walk *w, const model_node *node)
{
    const uint32_t y = node->out[0];
    int64_t offset = 0;
    if (!joins_last(w, node)) {
        keep_inputs(w, node, 0);
        return;
    }
    w->of[y] = (span){w->pieces.count, 0, last_dim(&w->m->values[y].shape)};
    for (uint32_t n = 0; n < node->in_count; n++) {
        const span from = w->of[node->in[n].index];
        for (uint32_t k = 0; k < from.count && !w->nomem; k++) {
            const piece p = w->pieces.data[from.first + k];
            add_piece(w, (piece){p.kernel, offset + p.offset, p.each});
        }
        w->of[y].count += from.count;
        offset += last_dim(&w->m->values[node->in[n].index].shape);
    }
}

static void walk_node(walk *w, const model_node *node)
{
    const bool of_value = node->in_count > 0 && !node->in[0].is_param;
    const bool passes = of_value && node->layer != HR_NO_ID && !node->teaches;
    if (passes && is_product(node)) {
        walk_product(w, node);
    } else if (passes && node->attr.groups > 1 && may_be_depthwise(w, node)) {
        walk_depthwise(w, node);
    } else if (passes && node->op == HR_OP_BATCH_NORM) {
        walk_norm(w, node);
    } else if (passes && node->op == HR_OP_RESHAPE) {
        walk_reshape(w, node);
    } else if (passes && node->op == HR_OP_CONCAT) {
        walk_concat(w, node);
    } else if (passes && op_row_of(node->op)->keeps_channels) {
        pass_on(w, node);
        keep_inputs(w, node, 1);
    } else {
        keep_inputs(w, node, 0);
    }
}

// ---- the whole ------------------------------------------------------------------------------------------------------

static void count_reads(walk *w)
{
    for (uint32_t n = 0; n < w->m->node_count; n++) {
        const model_node *node = &w->m->nodes[n];
        for (uint32_t k = 0; k < node->in_count; k++) {
            if (node->in[k].is_param) {
                w->reads[node->in[k].index]++;
            }
        }
    }
}

static void walk_all(walk *w)
{
    count_reads(w);
    for (uint32_t n = 0; n < w->m->node_count && !w->nomem; n++) {
        walk_node(w, &w->m->nodes[n]);
    }
    for (uint32_t k = 0; k < w->m->loss_count; k++) {
        keep(w, w->m->losses[k].prediction);
    }
}

hr_status model_channels_of(const hr_model *model, model_channels *out, hr_err *err)
{
    *out = (model_channels){.may_go = hr_calloc(model->param_count + 1, sizeof *out->may_go)};
    walk w = {.m = model,
              .out = out,
              .of = hr_calloc(model->value_count + 1, sizeof *w.of),
              .reads = hr_calloc(model->param_count + 1, sizeof *w.reads)};
    w.nomem = out->may_go == NULL || w.of == NULL || w.reads == NULL;
    if (!w.nomem) {
        walk_all(&w);
    }
    hr_free(w.of);
    hr_free(w.reads);
    vec_deinit(&w.pieces);
    return w.nomem ? HR_FAIL(err, NOMEM, "no host memory for the channels of model %.64s", model->name)
                   : HR_OK;
}

void model_channels_deinit(model_channels *c)
{
    hr_free(c->may_go);
    vec_deinit(&c->parts);
    c->may_go = NULL;
}

int32_t model_filter_axis(const model_channels *c, uint32_t param)
{
    for (uint32_t k = 0; k < c->parts.count && c->may_go[param]; k++) {
        if (c->parts.data[k].param == param && c->parts.data[k].role == CHANNEL_GIVES) {
            return c->parts.data[k].axis;
        }
    }
    return -1;
}

int64_t model_filters(const hr_model *model, const model_channels *c, uint32_t param)
{
    const int32_t axis = model_filter_axis(c, param);
    return axis < 0 ? 0 : model->params[param].shape.dim[axis];
}
