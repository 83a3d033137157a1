// SPDX-License-Identifier: Apache-2.0
// Nodes that no layer of ours computes, let pass as layers of which only shapes are known: those that the file says of their
// outputs. A step of what would have been one layer, which such a node reads, becomes such a layer itself: its node is
// marked, and the walk made again.
#include "onnx_opaque.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = LAYER_INPUTS - 1, LAYER_RANK = 5 }; // one more input are the parameters

// ---- what it reads --------------------------------------------------------------------------------------------

typedef struct operands {
    layer *inputs[INPUTS];
    uint32_t count;
    const tensor *first;
    int64_t parameters;
} operands;

static onnx_node *open_before(const walk *w, const onnx_node *n)
{
    for (uint32_t k = 0; k < n->input_count; k++) {
        const tensor *t = n->inputs[k] == ONNX_NOTHING ? NULL : w->values[n->inputs[k]].tensor;
        if (t != NULL && t->layer->open != OPEN_NOT && t->layer->open != OPEN_PARAMETER) {
            return w->makers[n->inputs[k]];
        }
    }
    return NULL;
}

// The steps that led to an open tensor. Each lies before the one that reads it.
static void mark_steps(walk *w)
{
    for (onnx_node *n = open_before(w, w->node); n != NULL && !n->opaque; n = open_before(w, n)) {
        n->opaque = w->walk_again = true;
    }
}

static bool add_parameters(walk *w, operands *o, const onnx_tensor *t)
{
    int64_t count = 1;
    for (uint32_t k = 0; k < t->rank; k++) {
        count *= t->dims[k]; // counted by the reader
    }
    const bool learns = t->type == ONNX_FLOAT || t->type == ONNX_FLOAT16 || t->type == ONNX_BFLOAT16 ||
                        t->type == ONNX_DOUBLE;
    o->parameters += learns && count > 1 ? count : 0;
    return o->parameters <= ONNX_DIM_MAX || walk_refuse(w, "it learns more than 2^40 elements") != NULL;
}

static bool add_input(walk *w, operands *o, layer *l)
{
    for (uint32_t k = 0; k < o->count; k++) {
        if (o->inputs[k] == l) {
            return true;
        }
    }
    if (l->classes > 0 || l->shape[0] != ONNX_BATCH) {
        return walk_refuse(w, "cannot be opaque: it reads %s",
                           l->classes > 0 ? "ids" : "a tensor without the batch as its first dimension");
    }
    if (o->count == INPUTS) {
        return walk_refuse(w, "cannot be opaque: it reads more than %d tensors", INPUTS);
    }
    o->inputs[o->count++] = l;
    return true;
}

static bool read_tensor(walk *w, operands *o, const tensor *t)
{
    layer *l = t->layer;
    if (l->open == OPEN_PARAMETER) {
        return l->param_count == 0 || add_parameters(w, o, l->params[0]);
    }
    while (l->open != OPEN_NOT && l->input_count > 0) { // the walk is made again
        l = l->inputs[0];
    }
    o->first = o->first == NULL ? t : o->first;
    return l->open != OPEN_NOT || add_input(w, o, l);
}

static bool read_operands(walk *w, operands *o)
{
    for (uint32_t k = 0; k < w->node->input_count; k++) {
        const value v = walk_value(w, k);
        if (walk_has(w, k) && v.tensor == NULL && v.weight == NULL && v.numbers == NULL) {
            return walk_refuse(w, "it reads what nothing before it gives: a circle, or nodes out of order");
        }
        if (v.tensor != NULL ? !read_tensor(w, o, v.tensor)
                             : v.weight != NULL && v.numbers == NULL && !add_parameters(w, o, v.weight)) {
            return false;
        }
    }
    return o->count > 0 || walk_refuse(w, "cannot be opaque: it reads no tensor of the model") != NULL;
}

// ---- what it gives --------------------------------------------------------------------------------------------

// "batch" or "64*batch", as exporters write what they know of a dimension; 0: another.
static int64_t samples_of(const char *symbol, const char *batch)
{
    char *rest = NULL;
    const size_t length = strlen(batch), whole = strlen(symbol);
    if (strcmp(symbol, batch) == 0) {
        return 1;
    }
    if (length == 0 || whole < length + 2) {
        return 0;
    }
    const int64_t before = strtoll(symbol, &rest, 10);
    if (before > 0 && *rest == '*' && strcmp(rest + 1, batch) == 0) {
        return before;
    }
    if (strncmp(symbol, batch, length) != 0 || symbol[length] != '*') {
        return 0;
    }
    const int64_t behind = strtoll(symbol + length + 1, &rest, 10);
    return behind > 0 && *rest == '\0' ? behind : 0;
}

static bool refuse_shape(walk *w, const char *name, const char *why)
{
    (void)walk_refuse(w, "cannot be opaque: %s of its output '%.60s'", why, name);
    hr_err_try(
        w->g->err,
        "python3 -c \"import onnx; "
        "onnx.save(onnx.shape_inference.infer_shapes(onnx.load('%.200s')), 'shapes.onnx')\", and then that",
        w->g->path);
    return false;
}

// Of a dimension 0: how many times the batch; of others: how many places. 0: it is not said.
static int64_t dim_of(const walk *w, const onnx_value *v, uint32_t k)
{
    const int64_t dim = v->dims[k];
    if (k > 0) {
        const bool open = w->open_sequence != NULL && dim < 0 && strcmp(v->symbols[k], w->open_sequence) == 0;
        return open ? w->sequence : dim > 0 ? dim : 0;
    }
    if (dim < 0) {
        return samples_of(v->symbols[0], w->batch_symbol);
    }
    return w->fixed_batch > 0 && dim % w->fixed_batch == 0 ? dim / w->fixed_batch : 0;
}

static bool shape_of_output(walk *w, uint32_t id, uint32_t *rank, int64_t dims[ONNX_RANK])
{
    const onnx_value *v = w->shapes[id];
    const char *known = intern_text(&w->g->values, id), *name = known == NULL ? "" : known;
    if (v == NULL || !v->has_shape || v->rank == 0) {
        return refuse_shape(w, name, "the file says no shape");
    }
    if (v->type != ONNX_FLOAT && v->type != ONNX_FLOAT16 && v->type != ONNX_BFLOAT16 &&
        v->type != ONNX_DOUBLE) {
        return walk_refuse(w, "cannot be opaque: its output '%.60s' is of no floats but of ONNX's type %d",
                           name, (int)v->type);
    }
    *rank = v->rank;
    for (uint32_t k = 0; k < v->rank; k++) {
        dims[k] = dim_of(w, v, k);
        if (dims[k] == 0) {
            return refuse_shape(w, name,
                                k == 0 ? "the file says no batch first" : "the file leaves a dimension open");
        }
    }
    return true;
}

// Whether an image of these channels lies as our layers have one: so does what follows it.
static bool lies_as_image(const tensor *t)
{
    axes order;
    if (t == NULL || t->rank != 4) {
        return false;
    }
    order = t->dims[0];
    axes_join(&order, &t->dims[2]);
    axes_join(&order, &t->dims[3]);
    return order.count <= t->axes.count &&
           memcmp(order.at, t->axes.at, order.count * sizeof order.at[0]) == 0;
}

// Dimensions behind the batch, at most four: the first of them are joined.
static uint32_t layer_shape(uint32_t rank, const int64_t *dims, bool image, int64_t shape[ONNX_RANK + 1])
{
    uint32_t count = 1;
    shape[0] = ONNX_BATCH;
    if (image) {
        shape[1] = dims[2];
        shape[2] = dims[3];
        shape[3] = dims[1];
        return 4;
    }
    if (dims[0] > 1 || rank == 1) {
        shape[count++] = dims[0];
    }
    for (uint32_t k = 1; k < rank; k++) {
        if (count > 1 && rank - k > (uint32_t)LAYER_RANK - count) {
            shape[count - 1] *= dims[k];
        } else {
            shape[count++] = dims[k];
        }
    }
    return count;
}

static void put_shape(walk *w, layer *l)
{
    char words[160] = "";
    for (uint32_t k = 1, used = 0; k < l->rank; k++) {
        const char *between = k > 1 ? ", " : "[";
        const bool open = w->open_sequence != NULL && l->shape[k] == w->sequence;
        used += (uint32_t)(open ? snprintf(words + used, sizeof words - used, "%s$sequence", between)
                                : snprintf(words + used, sizeof words - used, "%s%" PRId64, between,
                                           l->shape[k]));
    }
    layer_word(w, l, "shape", onnx_print(w->g, "%s]", words));
}

static layer *emit(walk *w, const operands *o, uint32_t rank, const int64_t *shape, int64_t parameters)
{
    for (uint32_t k = 1; k < rank; k++) {
        if (shape[k] > INT32_MAX) {
            return walk_refuse(w, "cannot be opaque: %" PRId64 " places in one dimension of its output",
                               shape[k]);
        }
    }
    layer *l = walk_emit(w, "opaque", o->inputs[0], rank, shape);
    if (l == NULL) {
        return NULL;
    }
    l->path = w->node->name[0] != '\0' ? w->node->name : w->node->op;
    l->op = w->node->op;
    for (l->input_count = 0; l->input_count < o->count; l->input_count++) {
        l->inputs[l->input_count] = o->inputs[l->input_count];
    }
    put_shape(w, l);
    l->count = parameters;
    if (parameters > 0) {
        layer_whole(w, l, "parameters", parameters);
    }
    return l;
}

static bool give(walk *w, const operands *o, uint32_t k, int64_t parameters)
{
    static const uint32_t as_image[4] = {0, 3, 1, 2};
    int64_t dims[ONNX_RANK], shape[ONNX_RANK + 1], product = ONNX_BATCH;
    uint32_t rank = 0;
    if (!shape_of_output(w, w->node->outputs[k], &rank, dims)) {
        return false;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (__builtin_mul_overflow(product, dims[d], &product)) {
            return walk_refuse(w, "a tensor that is beyond the largest");
        }
    }
    const bool image = rank == 4 && dims[0] == 1 && lies_as_image(o->first);
    layer *l = emit(w, o, layer_shape(rank, dims, image, shape), shape, parameters);
    tensor *t = l == NULL ? NULL : tensor_plain(w, l, image ? as_image : NULL);
    if (t != NULL && !image) {
        dims[0] *= ONNX_BATCH;
        t = tensor_pieces(w, t, rank, dims);
    }
    return walk_give(w, k, t);
}

bool onnx_take_opaque(walk *w)
{
    operands o = {.count = 0};
    mark_steps(w);
    if (!read_operands(w, &o)) {
        return false;
    }
    bool first = true;
    for (uint32_t k = 0; k < w->node->output_count; k++) {
        const uint32_t id = w->node->outputs[k];
        if (id != ONNX_NOTHING && w->reads[id] > 0) {
            if (!give(w, &o, k, first ? o.parameters : 0)) {
                return false;
            }
            first = false;
        }
    }
    return true;
}

bool onnx_let_pass(walk *w)
{
    onnx_graph *g = w->g;
    if (!g->lets_pass || g->status != HR_PRESET) {
        return false;
    }
    g->status = HR_OK;
    *g->err = (hr_err){.status = HR_OK};
    return onnx_take_opaque(w);
}
