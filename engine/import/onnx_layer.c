// SPDX-License-Identifier: Apache-2.0
// Layers: their names, their attributes, and what they need to see of a tensor.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "onnx_walk.h"

enum { VIEWS_SHARED = 64 };

// ---- names ----------------------------------------------------------------------------------------------------

// "/layer1/layer1.0/conv1/Conv" is in layer1.0.conv1: an exporter of PyTorch's writes each module's scope.
static void path_of_scope(const char *name, char out[ONNX_NAME])
{
    char part[ONNX_NAME], last[ONNX_NAME] = "", more[2 * ONNX_NAME];
    out[0] = '\0';
    for (const char *at = name; *at == '/';) {
        const size_t length = strcspn(at + 1, "/");
        if (at[1 + length] != '/') {
            return; // the operator
        }
        (void)snprintf(part, sizeof part, "%.*s", (int)length, at + 1);
        const size_t known = strlen(last), used = strlen(out);
        const bool longer = known > 0 && strncmp(part, last, known) == 0 && part[known] == '.';
        (void)snprintf(more, sizeof more, "%s%s", used > 0 && !longer ? "." : "",
                       longer ? part + known : part);
        (void)text_copy(out + used, ONNX_NAME - used, more);
        (void)text_copy(last, sizeof last, part);
        at += 1 + length;
    }
}

// "layer1.0.conv1.weight" is layer1.0.conv1; "onnx::Conv_12" and "val_3" are of nobody.
static bool path_of_weight(const char *name, char out[ONNX_NAME])
{
    static const char *const ends[] = {".weight", ".bias", ".in_proj_weight", ".weight_fused",
                                       ".weight_bias"};
    const size_t length = strlen(name);
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        const size_t end = strlen(ends[k]);
        if (length > end && length - end < ONNX_NAME && strcmp(name + length - end, ends[k]) == 0) {
            (void)snprintf(out, ONNX_NAME, "%.*s", (int)(length - end), name);
            return true;
        }
    }
    return false;
}

void layer_param(walk *w, layer *l, const onnx_tensor *t)
{
    char path[ONNX_NAME];
    if (t == NULL || l->param_count == ONNX_PARAMS) {
        return;
    }
    l->params[l->param_count++] = t;
    if (l->path[0] == '\0' && path_of_weight(t->name, path)) {
        const char *kept = onnx_print(w->g, "%s", path);
        l->path = kept != NULL ? kept : "";
    }
}

// ---- layers ---------------------------------------------------------------------------------------------------

layer *layer_new(walk *w, const char *kind, uint32_t rank, const int64_t *shape)
{
    int64_t elements = 1;
    for (uint32_t k = 0; k < rank; k++) {
        if (shape[k] < 1 || __builtin_mul_overflow(elements, shape[k], &elements)) {
            return walk_refuse(w, "a tensor whose dimension %u is %" PRId64 ", or that is beyond the largest",
                               k, shape[k]);
        }
    }
    layer *l = onnx_take(w->g, 1, sizeof *l);
    if (l == NULL) {
        return NULL;
    }
    l->kind = kind;
    l->name = l->path = "";
    l->rank = rank;
    memcpy(l->shape, shape, rank * sizeof *shape);
    return l;
}

layer *walk_emit(walk *w, const char *kind, layer *input, uint32_t rank, const int64_t *shape)
{
    char scope[ONNX_NAME];
    layer *l = input == NULL ? NULL : layer_new(w, kind, rank, shape);
    if (l == NULL) {
        return NULL;
    }
    l->inputs[0] = input;
    l->input_count = 1;
    path_of_scope(w->node != NULL ? w->node->name : "", scope);
    if (scope[0] != '\0') {
        const char *kept = onnx_print(w->g, "%s", scope);
        l->name = kept != NULL ? kept : "";
    }
    *w->last = l;
    w->last = &l->next;
    return l;
}

void layer_word(walk *w, layer *l, const char *key, const char *what)
{
    if (l == NULL || what == NULL) {
        return;
    }
    for (uint32_t k = 0; k < l->attribute_count; k++) {
        if (strcmp(l->attributes[k].key, key) == 0) {
            l->attributes[k].text = what;
            return;
        }
    }
    if (l->attribute_count == LAYER_ATTRIBUTES) {
        (void)walk_refuse(w, "it needs more attributes than a layer of ours has");
        return;
    }
    l->attributes[l->attribute_count++] = (layer_attribute){key, what};
}

void layer_whole(walk *w, layer *l, const char *key, int64_t what)
{
    layer_word(w, l, key, onnx_print(w->g, "%" PRId64, what));
}

// A float of the file, as short as it tells it from its neighbours.
void layer_real(walk *w, layer *l, const char *key, double what)
{
    char words[CONFIG_REAL_TEXT];
    if (what == floor(what) && fabs(what) < 1e9) {
        layer_whole(w, l, key, (int64_t)what);
        return;
    }
    for (int digits = 2; digits <= 9; digits++) {
        (void)snprintf(words, sizeof words, "%.*g", digits, what);
        double back = 0;
        if (text_to_real(words, &back) && (float)back == (float)what) {
            break;
        }
    }
    layer_word(w, l, key, onnx_print(w->g, "%s", words));
}

void layer_pair(walk *w, layer *l, const char *key, const int64_t *two)
{
    layer_word(w, l, key,
               two[0] == two[1] ? onnx_print(w->g, "%" PRId64, two[0])
                                : onnx_print(w->g, "[%" PRId64 ", %" PRId64 "]", two[0], two[1]));
}

const char *layer_attribute_text(const layer *l, const char *key)
{
    for (uint32_t k = 0; k < l->attribute_count; k++) {
        if (strcmp(l->attributes[k].key, key) == 0) {
            return l->attributes[k].text;
        }
    }
    return NULL;
}

tensor *walk_open(walk *w, const tensor *x, layer_open open, const tensor *of)
{
    tensor *t = tensor_again(w, x);
    layer *l = t == NULL ? NULL : onnx_take(w->g, 1, sizeof *l);
    if (l == NULL) {
        return NULL;
    }
    *l = *x->layer;
    l->kind = "a step";
    l->open = open;
    l->next = NULL;
    l->inputs[0] = x->layer;
    l->input_count = 1;
    l->param_count = l->attribute_count = 0;
    l->of = of;
    t->layer = l;
    return t;
}

static const char *const open_words[] = {
    [OPEN_PARAMETER] = "a parameter by itself",
    [OPEN_SCORES] =
        "the product of two tensors, which is attention only between dense projections, with a softmax",
    [OPEN_HEADS] = "attention without an output projection",
    [OPEN_NEGATIVE] = "a negative",
    [OPEN_TURNED] = "halves of a head that changed places",
    [OPEN_TABLE] = "a product with a table of numbers",
    [OPEN_ROTARY] = "queries or keys with rotary positions",
    [OPEN_SQUARE] = "a square",
    [OPEN_MEAN] = "the mean of squares",
    [OPEN_ROOT] = "the root of a mean of squares",
    [OPEN_INVERSE] = "one by a root",
    [OPEN_CENTRED] = "a difference from a mean",
    [OPEN_NORMED] = "a norm without a weight",
    [OPEN_GAINED] = "a layer norm without a bias",
    [OPEN_GROUPED] = "a group or instance norm without a gain and a shift",
    [OPEN_GROUPED_GAIN] = "a group norm without a shift",
    [OPEN_CUBE] = "a third power",
    [OPEN_CUBIC] = "a sum with a third power",
    [OPEN_BELL] = "an error function or a hyperbolic tangent in steps",
    [OPEN_ONE_BELL] = "a part of a GELU",
    [OPEN_TWICE] = "twice a GELU",
    [OPEN_IS_NAN] = "a test for what is no number",
};

bool walk_is_closed(walk *w, const tensor *x)
{
    if (x->layer->open != OPEN_NOT) {
        return walk_refuse(w, "it reads %s, which is no layer of ours", open_words[x->layer->open]);
    }
    if (x->layer->classes > 0) {
        return walk_refuse(w, "it computes with ids, which only an embedding reads");
    }
    return true;
}

// ---- other shapes ---------------------------------------------------------------------------------------------

static bool same_shape(const layer *l, uint32_t rank, const int64_t *shape)
{
    return l->rank == rank && memcmp(l->shape, shape, rank * sizeof *shape) == 0;
}

static bool is_reshape(const layer *l)
{
    return strcmp(l->kind, "reshape") == 0 || strcmp(l->kind, "flatten") == 0;
}

layer *walk_reshaped(walk *w, layer *l, uint32_t rank, const int64_t *shape)
{
    char words[160] = "";
    if (l == NULL || same_shape(l, rank, shape)) {
        return l;
    }
    while (is_reshape(l)) {
        l = l->inputs[0];
    }
    if (same_shape(l, rank, shape)) {
        return l;
    }
    const char *kind = rank == 2 && l->rank > 2 ? "flatten" : "reshape";
    uint32_t looked = 0;
    for (layer *made = l->views; made != NULL && looked++ < VIEWS_SHARED; made = made->view) {
        if (same_shape(made, rank, shape)) {
            return made;
        }
    }
    layer *out = walk_emit(w, kind, l, rank, shape);
    if (out != NULL) {
        out->view = l->views;
        l->views = out;
    }
    if (out != NULL && kind[0] == 'r') {
        for (uint32_t k = 1, used = 0; k < rank; k++) {
            const bool open = w->open_sequence != NULL && shape[k] == w->sequence;
            used += (uint32_t)(open ? snprintf(words + used, sizeof words - used, "%s$sequence",
                                               k > 1 ? ", " : "[")
                                    : snprintf(words + used, sizeof words - used, "%s%" PRId64,
                                               k > 1 ? ", " : "[", shape[k]));
        }
        layer_word(w, out, "shape", onnx_print(w->g, "%s]", words));
    }
    return out;
}

tensor *walk_alike(walk *w, const char *kind, const tensor *x)
{
    if (!walk_is_closed(w, x)) {
        return NULL;
    }
    if (tensor_is_expanded(x)) {
        return walk_refuse(w, "works on an expanded tensor, which our layers would have to copy");
    }
    layer *l = walk_emit(w, kind, x->layer, x->layer->rank, x->layer->shape);
    tensor *t = l == NULL ? NULL : tensor_again(w, x);
    if (t != NULL) {
        t->layer = l;
    }
    return t;
}
