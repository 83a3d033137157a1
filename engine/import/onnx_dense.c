// SPDX-License-Identifier: Apache-2.0
// Products with weights, and tables that are looked up.
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

// ---- dense ----------------------------------------------------------------------------------------------------

// The axis takes the place of the last dimension, behind all in memory.
static void put_last(tensor *t, mem_axis *made)
{
    t->dims[t->rank - 1] = (axes){.count = 0};
    if (made->size > 1) {
        axes_add(&t->axes, made);
        axes_add(&t->dims[t->rank - 1], made);
    }
}

// y: [features, units], a parameter as it is or turned.
static tensor *dense(walk *w, const tensor *x, const tensor *y)
{
    axes head;
    const onnx_tensor *weight = y->layer->params[0];
    if (x->rank < 2) {
        return walk_refuse(w, "needs a tensor of rows and features, had %u dimensions", x->rank);
    }
    const axes *features = &x->dims[x->rank - 1];
    if (y->layer->open != OPEN_PARAMETER || y->rank != 2 || weight->rank != 2) {
        return walk_refuse(w, "a product with a weight that is not as it lies in the file");
    }
    const int64_t units = dim_size(y, 1);
    if (dim_size(y, 0) != axes_size(features)) {
        return walk_refuse(w, "%lld features by a weight of %lld", (long long)axes_size(features),
                           (long long)dim_size(y, 0));
    }
    if (x->layer->open == OPEN_HEADS) {
        return attention_closed(w, x, units, weight);
    }
    layer *l = walk_rows(w, &x, features, &head);
    if (l == NULL) {
        return NULL;
    }
    int64_t shape[ONNX_RANK];
    memcpy(shape, l->shape, sizeof shape);
    shape[l->rank - 1] = units;
    layer *out = walk_emit(w, "dense", l, l->rank, shape);
    mem_axis *made = out == NULL ? NULL : axis_new(w, units, false);
    tensor *t = made == NULL ? NULL : tensor_again(w, x);
    if (t == NULL) {
        return NULL;
    }
    layer_whole(w, out, "units", units);
    layer_word(w, out, "bias", "false");
    layer_param(w, out, weight);
    out->units = units;
    out->stored = y->axes.count == 2 && y->dims[0].count == 1 && y->dims[0].at[0] == y->axes.at[1];
    t->layer = out;
    t->axes = head;
    put_last(t, made);
    return t;
}

static bool put_bias(walk *w, const tensor *x, const onnx_tensor *bias)
{
    layer *l = x->layer;
    if (strcmp(l->kind, "attention") == 0) {
        return attention_biased(w, x, bias);
    }
    if (strcmp(l->kind, "window_attention") == 0) {
        return windows_output_biased(w, l, bias);
    }
    l->bias = true;
    layer_word(w, l, "bias", "true");
    layer_param(w, l, bias);
    return true;
}

// How often the value is read that x stands for.
static bool is_read_once(walk *w, const tensor *x)
{
    for (uint32_t k = 0; k < w->node->input_count; k++) {
        const uint32_t v = w->node->inputs[k];
        if (v != ONNX_NOTHING && w->values[v].tensor == x) {
            return w->reads[v] == 1;
        }
    }
    return false;
}

tensor *dense_biased(walk *w, const tensor *x, const tensor *bias)
{
    const layer *l = x->layer;
    const bool product = strcmp(l->kind, "dense") == 0 || strcmp(l->kind, "attention") == 0 ||
                         strcmp(l->kind, "window_attention") == 0;
    if (!product || l->bias || bias->rank == 0 || bias->axes.count > 1 || bias->rank > x->rank ||
        dim_size(bias, bias->rank - 1) != dim_size(x, x->rank - 1) ||
        axes_size(&bias->axes) != l->shape[l->rank - 1] || !is_read_once(w, x)) {
        return NULL;
    }
    return put_bias(w, x, bias->layer->params[0]) ? tensor_again(w, x) : NULL;
}

bool take_gemm(walk *w)
{
    tensor *x = walk_tensor(w, 0), *y = x == NULL ? NULL : walk_tensor(w, 1);
    const value bias = walk_value(w, 2);
    if (y == NULL) {
        return false;
    }
    if (onnx_real(w->node, "alpha", 1) != 1 || (walk_has(w, 2) && onnx_real(w->node, "beta", 1) != 1) ||
        onnx_whole(w->node, "transA", 0) != 0 || x->rank != 2 || y->rank != 2) {
        return walk_refuse(w, "a product of matrices that are turned or multiplied by a number");
    }
    if (onnx_whole(w->node, "transB", 0) != 0) {
        y = tensor_again(w, y);
        if (y == NULL) {
            return false;
        }
        const axes first = y->dims[0];
        y->dims[0] = y->dims[1];
        y->dims[1] = first;
    }
    tensor *out = dense(w, x, y);
    if (out != NULL && walk_has(w, 2)) {
        if (bias.weight == NULL || bias.weight->rank != 1 || bias.weight->dims[0] != dim_size(y, 1)) {
            return walk_refuse(w, "a bias that is not one number for each unit");
        }
        if (!put_bias(w, out, bias.weight)) {
            return false;
        }
    }
    return walk_give(w, 0, out);
}

bool take_matmul(walk *w)
{
    const value a = walk_value(w, 0), b = walk_value(w, 1);
    tensor *y = a.tensor == NULL || b.numbers != NULL ? NULL : walk_tensor_of(w, &b);
    if (y == NULL) {
        return w->g->status == HR_OK
                   ? walk_refuse(w, "a product with constant numbers, or of a weight by a tensor") != NULL
                   : false;
    }
    if (y->layer->open == OPEN_PARAMETER) {
        return walk_give(w, 0, dense(w, a.tensor, y));
    }
    return walk_give(w, 0,
                     a.tensor->layer->open == OPEN_SCORES ? attention_heads(w, a.tensor, y)
                                                          : attention_scores(w, a.tensor, y));
}

// ---- tables ---------------------------------------------------------------------------------------------------

// The rows of a table in their order: as many as the sequence has places.
static tensor *rows_in_order(walk *w, const onnx_tensor *table, const numbers *ids)
{
    numbers flat = *ids;
    if (ids->rank < 1 || table->rank != 2) {
        return walk_refuse(w, "a look-up of one row");
    }
    for (uint32_t k = 0; k + 1 < ids->rank; k++) {
        flat.dims[k] = ids->strides[k] == 0 ? 1 : ids->dims[k];
    }
    const int64_t places = ids->dims[ids->rank - 1], count = numbers_count(&flat);
    bool ordered = numbers_work(w->g, count);
    for (int64_t k = 0; ordered && k < count; k++) {
        ordered = numbers_at(&flat, k) == (double)(k % places);
    }
    const bool open = w->open_sequence != NULL && places == w->sequence;
    if (ordered && open && w->sequence_begins > table->dims[0]) {
        w->too_long = true;
        return walk_refuse(w,
                           "a table of %lld positions, where a sequence that is left open begins with %lld",
                           (long long)table->dims[0], (long long)w->sequence_begins);
    }
    if (!ordered || places > table->dims[0]) {
        return walk_refuse(w, "a look-up of ids that are no input and do not count 0, 1, …");
    }
    const int64_t shape[2] = {places, table->dims[1]};
    layer *l = layer_new(w, "a parameter", 2, shape);
    tensor *rows = l == NULL ? NULL : tensor_plain(w, l, NULL);
    tensor *out = rows == NULL ? NULL : tensor_new(w, l, ids->rank + 1);
    if (out == NULL) {
        return NULL;
    }
    l->open = OPEN_PARAMETER;
    layer_param(w, l, table);
    out->axes = rows->axes;
    for (uint32_t k = 0; k + 1 < ids->rank; k++) {
        mem_axis *copied = axis_new(w, ids->dims[k], true);
        if (copied == NULL) {
            return NULL;
        }
        if (copied->size > 1) {
            axes_add(&out->dims[k], copied);
        }
    }
    out->dims[ids->rank - 1] = rows->dims[0];
    out->dims[ids->rank] = rows->dims[1];
    return out;
}

bool take_embedding(walk *w)
{
    const value table = walk_value(w, 0), ids = walk_value(w, 1);
    if (table.weight == NULL || onnx_whole(w->node, "axis", 0) != 0) {
        return take_pick(w);
    }
    if (ids.tensor == NULL) {
        const numbers *n = walk_needs_numbers(w, 1);
        return n != NULL && walk_give(w, 0, rows_in_order(w, table.weight, n));
    }
    layer *l = ids.tensor->layer;
    if (table.weight->rank != 2 || l->classes < 1 || ids.tensor->rank + 1 > ONNX_RANK ||
        l->rank + 1 > ONNX_RANK) {
        return walk_refuse(w, "a look-up of ids that are no input of the model, or of more than rows");
    }
    int64_t shape[ONNX_RANK];
    memcpy(shape, l->shape, sizeof shape);
    shape[l->rank] = table.weight->dims[1];
    layer *out = walk_emit(w, "embedding", l, l->rank + 1, shape);
    mem_axis *units = out == NULL ? NULL : axis_new(w, table.weight->dims[1], false);
    tensor *t = units == NULL ? NULL : tensor_again(w, ids.tensor);
    if (t == NULL) {
        return false;
    }
    layer_param(w, out, table.weight);
    layer_whole(w, out, "units", units->size);

    out->units = units->size;
    l->classes = l->classes > table.weight->dims[0] ? l->classes : table.weight->dims[0];
    layer_whole(w, out, "vocabulary", table.weight->dims[0]);

    t->layer = out;
    t->rank++;
    axes_add(&t->axes, units);
    axes_add(&t->dims[t->rank - 1], units);
    return walk_give(w, 0, t);
}
