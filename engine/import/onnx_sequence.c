// SPDX-License-Identifier: Apache-2.0
// Layers of sequences: windows that slide over [places, features], which ONNX has as [batch, features, places], and recurrent
// ones, which it has as [places, batch, features].
#include <inttypes.h>
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

typedef struct steps {
    int64_t kernel, stride, dilation, before, behind, out, have;
    bool same, causal; // as our paddings of these names
} steps;

// ---- windows --------------------------------------------------------------------------------------------------

static bool whole_of(walk *w, const char *key, int64_t otherwise, uint32_t wanted, int64_t *out)
{
    const onnx_attribute *a = onnx_find(w->node, key);
    for (uint32_t k = 0; k < wanted; k++) {
        out[k] = a == NULL || a->count == 0 ? otherwise : k < a->count ? a->wholes[k] : -1;
        if (out[k] < 0 || out[k] > 65535 || (a != NULL && a->count > wanted)) {
            return walk_refuse(w, "needs %u of %s from 0 to 65535 for a sequence", wanted, key);
        }
    }
    return true;
}

static bool refuse_behind(walk *w)
{
    return walk_refuse(w, "windows that reach further behind the sequence than its padding") != NULL;
}

// causal: the padding before it that is causal; 0: none is.
static bool refuse_before(walk *w, const steps *v, int64_t causal)
{
    const char *or_causal = causal > 0 ? onnx_print(w->g, ", or, causal, %" PRId64 " before it", causal) : "";
    return or_causal != NULL &&
           walk_refuse(w,
                       "a padding of %" PRId64 " before the sequence and %" PRId64
                       " behind it, where our layers have as many places on both sides%s",
                       v->before, v->behind > 0 ? v->behind : 0, or_causal) != NULL;
}

static bool read_steps(walk *w, const tensor *x, const onnx_tensor *weight, steps *v)
{
    int64_t pads[2];
    const onnx_attribute *by = onnx_find(w->node, "auto_pad");
    if (!whole_of(w, "kernel_shape", 1, 1, &v->kernel) || !whole_of(w, "strides", 1, 1, &v->stride) ||
        !whole_of(w, "dilations", 1, 1, &v->dilation) || !whole_of(w, "pads", 0, 2, pads)) {
        return false;
    }
    v->kernel = weight != NULL ? weight->dims[2] : v->kernel;
    v->have = dim_size(x, 2);
    v->before = pads[0];
    v->behind = pads[1];
    if (v->kernel < 1 || v->kernel > 65535 || v->stride < 1 || v->dilation < 1 ||
        (weight == NULL && v->dilation > 1) ||
        (by != NULL && by->word != NULL && strcmp(by->word, "NOTSET") != 0) ||
        onnx_whole(w->node, "ceil_mode", 0) != 0) {
        return walk_refuse(
            w, "needs windows and strides of 1 or more over a sequence, with their padding in numbers");
    }
    v->dilation = v->kernel > 1 ? v->dilation : 1;
    const int64_t reach = (v->kernel - 1) * v->dilation + 1, room = v->have + v->before + v->behind - reach;
    if (room < 0) {
        return walk_refuse(w, "windows of %" PRId64 " over a sequence of %" PRId64, reach, v->have);
    }
    v->out = room / v->stride + 1;
    v->behind =
        (v->out - 1) * v->stride + reach - v->have - v->before; // negative: places that no window reaches
    const int64_t most = (v->have + v->stride - 1) / v->stride,
                  total = (most - 1) * v->stride + reach - v->have;
    const int64_t all = total > 0 ? total : 0, behind = v->behind > 0 ? v->behind : 0;
    v->same = most == v->out && all / 2 == v->before && all - all / 2 == behind;
    const bool amount = v->behind > v->before - v->stride && v->behind <= v->before;
    v->same = v->same && !amount;
    v->causal = weight != NULL && !amount && !v->same && pads[0] == reach - 1 && pads[1] == 0;
    return amount || v->same || v->causal ||
           (v->behind > v->before ? refuse_behind(w) : refuse_before(w, v, weight != NULL ? reach - 1 : 0));
}

static void put_ends(walk *w, layer *l, const steps *v)
{
    if (v->same) {
        layer_word(w, l, "padding", "same");
    } else if (v->causal) {
        layer_word(w, l, "padding", "causal");
    } else if (v->before > 0) {
        layer_whole(w, l, "padding", v->before);
    }
}

// [batch, places, features] of [batch, features, places]
static layer *places_of(walk *w, const tensor *x)
{
    const axes groups[3] = {x->dims[0], x->dims[2], x->dims[1]};
    return walk_arrange(w, x, groups, 3);
}

static tensor *features_first(walk *w, layer *l)
{
    static const uint32_t order[3] = {0, 2, 1};
    return l == NULL ? NULL : tensor_plain(w, l, order);
}

// The same of what a batch norm behind it gives, which has it as an image of one row.
static tensor *normed_first(walk *w, layer *conv)
{
    tensor *t = features_first(w, conv);
    layer *norm = t == NULL ? NULL : conv_unfolded_norm(w, conv);
    if (norm == NULL) {
        return NULL;
    }
    t->layer = norm;
    return t;
}

bool take_conv_steps(walk *w, const tensor *x)
{
    steps v;
    const onnx_tensor *weight = conv_weight(w, 1, 3);
    const onnx_tensor *bias = weight == NULL || !walk_has(w, 2) ? NULL : conv_weight(w, 2, 1);
    if (weight == NULL || w->g->status != HR_OK || !read_steps(w, x, weight, &v)) {
        return false;
    }
    const int64_t groups = onnx_whole(w->node, "group", 1), filters = weight->dims[0],
                  features = dim_size(x, 1);
    if (groups < 1 || features % groups != 0 || filters % groups != 0 ||
        weight->dims[1] != features / groups) {
        return walk_refuse(
            w, "%" PRId64 " filters of %" PRId64 " features in %" PRId64 " groups, over %" PRId64 " features",
            filters, weight->dims[1], groups, features);
    }
    const bool folded = conv_has_folded_norm(w, weight);
    const int64_t shape[3] = {ONNX_BATCH, v.out, filters};
    layer *out = walk_emit(w, "conv1d", places_of(w, x), 3, shape);
    if (out == NULL) {
        return false;
    }
    layer_whole(w, out, "filters", filters);
    layer_whole(w, out, "kernel", v.kernel);
    layer_whole(w, out, "stride", v.stride);
    if (v.dilation > 1) {
        layer_whole(w, out, "dilation", v.dilation);
    }
    put_ends(w, out, &v);
    layer_whole(w, out, "groups", groups);
    const onnx_tensor *own = bias == NULL || (folded && !conv_has_own_bias(bias)) ? NULL : bias;
    layer_word(w, out, "bias", own != NULL ? "true" : "false");
    layer_param(w, out, weight);
    layer_param(w, out, own);
    return walk_give(w, 0, folded ? normed_first(w, out) : features_first(w, out));
}

bool take_pool_steps(walk *w, const tensor *x, const char *kind, bool counts_padding)
{
    steps v;
    if (!read_steps(w, x, NULL, &v)) {
        return false;
    }
    const bool counted = counts_padding && v.before > 0;
    if ((counted || v.same) && v.behind > v.before) {
        return refuse_behind(w);
    }
    if (!v.same && v.before >= v.kernel) {
        return walk_refuse(w, "needs padding below its windows of %" PRId64 " places, had %" PRId64, v.kernel,
                           v.before);
    }
    layer *l = places_of(w, x);
    const int64_t shape[3] = {ONNX_BATCH, v.out, dim_size(x, 1)};
    layer *out = walk_emit(w, strcmp(kind, "max_pool") == 0 ? "max_pool1d" : "avg_pool1d", l, 3, shape);
    if (out == NULL) {
        return false;
    }
    layer_whole(w, out, "size", v.kernel);
    if (v.stride != v.kernel) {
        layer_whole(w, out, "stride", v.stride);
    }
    put_ends(w, out, &v);
    if (counted) {
        layer_word(w, out, "count_padding", "true");
    }
    return walk_give(w, 0, features_first(w, out));
}

// ---- recurrence -----------------------------------------------------------------------------------------------

// Whether operand k is left out, or is 0 all over.
static bool is_nothing(walk *w, uint32_t k)
{
    const value v = walk_value(w, k);
    const numbers *n = v.numbers != NULL || v.weight == NULL ? v.numbers : numbers_of(w->g, v.weight);
    return !walk_has(w, k) ||
           (n != NULL && n->missing == NULL && numbers_alike(w->g, n) && numbers_first(n) == 0);
}

// The weights of one direction, [1, rows, columns]; 0 columns: a vector for it.
static const onnx_tensor *gates_of(walk *w, uint32_t k, int64_t rows, int64_t columns)
{
    const value v = walk_value(w, k);
    const bool fits = v.weight != NULL && v.weight->rank == (columns > 0 ? 3 : 2) && v.weight->dims[0] == 1 &&
                      v.weight->dims[1] == rows && (columns == 0 || v.weight->dims[2] == columns);
    return fits
               ? v.weight
               : walk_refuse(
                     w,
                     "needs weights of one direction and biases, as they are in the file, for its operand %u",
                     k);
}

// Y of [places, 1, batch, units], and of what comes after the last place, [1, batch, units].
static bool give_states(walk *w, layer *l)
{
    tensor *y = tensor_new(w, l, 4);
    const tensor *lies = y == NULL ? NULL : tensor_plain(w, l, NULL);
    if (lies == NULL) {
        return false;
    }
    y->axes = lies->axes;
    y->dims[0] = lies->dims[1];
    y->dims[2] = lies->dims[0];
    y->dims[3] = lies->dims[2];
    if (!walk_give(w, 0, y)) {
        return false;
    }
    const uint32_t id = w->node->output_count > 1 ? w->node->outputs[1] : ONNX_NOTHING;
    if (id == ONNX_NOTHING || w->reads[id] == 0) {
        return true;
    }
    tensor *last = tensor_piece(w, y, 0, l->shape[1] - 1, 1);
    tensor *out = tensor_again(w, last);
    if (out != NULL) {
        out->rank = 3;
        memcpy(out->dims, last->dims + 1, 3 * sizeof out->dims[0]);
    }
    return walk_give(w, 1, out);
}

static bool reads_cells(const walk *w)
{
    return w->node->output_count > 2 && w->node->outputs[2] != ONNX_NOTHING &&
           w->reads[w->node->outputs[2]] > 0;
}

static bool runs_forward(walk *w, const tensor *x, bool gru)
{
    const onnx_attribute *way = onnx_find(w->node, "direction");
    const bool forward = x->rank == 3 &&
                         (way == NULL || way->word == NULL || strcmp(way->word, "forward") == 0) &&
                         onnx_find(w->node, "activations") == NULL && onnx_find(w->node, "clip") == NULL &&
                         onnx_whole(w->node, "layout", 0) == 0 &&
                         (!gru || onnx_whole(w->node, "linear_before_reset", 0) == 1) &&
                         onnx_whole(w->node, "input_forget", 0) == 0 && !reads_cells(w);
    return forward ||
           walk_refuse(w, "needs to run forward over [places, batch, features], as PyTorch's, and give no "
                          "cells") != NULL;
}

bool take_recurrent(walk *w)
{
    const bool gru = w->node->op[0] == 'G';
    const tensor *x = walk_tensor(w, 0);
    const int64_t units = onnx_whole(w->node, "hidden_size", 0), gates = gru ? 3 : 4;
    if (x == NULL || !runs_forward(w, x, gru)) {
        return false;
    }
    if (units < 1 || units > INT32_MAX) {
        return walk_refuse(w, "needs a hidden_size from 1 to %d, had %" PRId64, INT32_MAX, units);
    }
    if (walk_has(w, 4) || !is_nothing(w, 5) || !is_nothing(w, 6) || walk_has(w, 7)) {
        return w->g->status == HR_OK && walk_refuse(w, "a carried state, lengths of sequences or peepholes");
    }
    const onnx_tensor *params[3] = {gates_of(w, 1, gates * units, dim_size(x, 2)), NULL, NULL};
    params[1] = params[0] == NULL ? NULL : gates_of(w, 2, gates * units, units);
    params[2] = params[1] == NULL ? NULL : gates_of(w, 3, 2 * gates * units, 0);
    const axes groups[3] = {x->dims[1], x->dims[0], x->dims[2]};
    layer *l = params[2] == NULL ? NULL : walk_arrange(w, x, groups, 3);
    const int64_t shape[3] = {ONNX_BATCH, dim_size(x, 0), units};
    layer *out = walk_emit(w, gru ? "gru" : "lstm", l, 3, shape);
    if (out == NULL) {
        return false;
    }
    layer_whole(w, out, "units", units);
    for (int k = 0; k < 3; k++) {
        layer_param(w, out, params[k]);
    }
    if (!gru) {
        walk_note(
            w, "An LSTM here has one bias of 4 * units where the file has two: %" PRId64 " parameters fewer.",
            4 * units);
    }
    return give_states(w, out);
}
