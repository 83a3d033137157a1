// SPDX-License-Identifier: Apache-2.0
#include "onnx_walk.h"

bool walk_has(const walk *w, uint32_t k)
{
    return k < w->node->input_count && w->node->inputs[k] != ONNX_NOTHING;
}

value walk_value(walk *w, uint32_t k)
{
    return walk_has(w, k) ? w->values[w->node->inputs[k]] : (value){0};
}

static tensor *parameter(walk *w, const onnx_tensor *t)
{
    for (uint32_t k = 0; k < t->rank; k++) {
        if (t->dims[k] < 1) {
            return walk_refuse(w, "the weight '%.60s' has no elements", t->name);
        }
    }
    layer *l = layer_new(w, "a parameter", t->rank, t->dims);
    if (l == NULL) {
        return NULL;
    }
    l->open = OPEN_PARAMETER;
    layer_param(w, l, t);
    return tensor_plain(w, l, NULL);
}

tensor *walk_tensor_of(walk *w, const value *v)
{
    return v->tensor != NULL   ? v->tensor
           : v->weight != NULL ? parameter(w, v->weight)
                               : walk_refuse(w, "it reads %s, where a tensor of the model is needed",
                                             v->numbers != NULL ? "a table of constant numbers" : "nothing");
}

tensor *walk_tensor(walk *w, uint32_t k)
{
    const value v = walk_value(w, k);
    return walk_tensor_of(w, &v);
}

static bool is_number_type(int32_t type)
{
    return type != ONNX_FLOAT && type != ONNX_DOUBLE && type != ONNX_FLOAT16 && type != ONNX_BFLOAT16;
}

bool onnx_is_single(const onnx_tensor *t)
{
    int64_t count = 1;
    for (uint32_t k = 0; k < t->rank; k++) {
        count *= t->dims[k]; // counted by the reader
    }
    return count == 1;
}

const numbers *walk_numbers(walk *w, uint32_t k)
{
    const value v = walk_value(w, k);
    if (v.numbers == NULL && v.weight != NULL &&
        (is_number_type(v.weight->type) || onnx_is_single(v.weight))) {
        value *kept = &w->values[w->node->inputs[k]];
        kept->numbers = numbers_of(w->g, v.weight);
        return kept->numbers;
    }
    return v.numbers;
}

const numbers *walk_needs_numbers(walk *w, uint32_t k)
{
    const value v = walk_value(w, k);
    const numbers *n = walk_numbers(w, k);
    if (n == NULL && w->g->status == HR_OK && v.weight != NULL && v.weight->rank < 2) {
        n = w->values[w->node->inputs[k]].numbers = numbers_of(w->g, v.weight);
    }
    if (n == NULL) {
        return walk_refuse(w, "its operand %u depends on the input of the model, where numbers are needed",
                           k);
    }
    return walk_is_known(w, n, w->takes_missing) ? n : NULL;
}

bool walk_is_known(walk *w, const numbers *n, bool otherwise)
{
    return n->missing == NULL || otherwise ||
           walk_refuse(w, "the values of '%.60s' are needed here, and lie in another file, which is not read",
                       n->missing) != NULL;
}

bool walk_number(walk *w, const value *v, double *out)
{
    const numbers *n = v->numbers;
    if (n == NULL && v->weight != NULL && onnx_is_single(v->weight)) {
        n = numbers_of(w->g, v->weight);
    }
    if (n == NULL || n->missing != NULL || !numbers_alike(w->g, n)) {
        return false;
    }
    *out = numbers_first(n);
    return true;
}

bool walk_give(walk *w, uint32_t k, tensor *t)
{
    if (t != NULL && k < w->node->output_count && w->node->outputs[k] != ONNX_NOTHING) {
        w->values[w->node->outputs[k]] = (value){.tensor = t};
    }
    return t != NULL;
}

bool walk_give_numbers(walk *w, uint32_t k, const numbers *n)
{
    if (n != NULL && k < w->node->output_count && w->node->outputs[k] != ONNX_NOTHING) {
        w->values[w->node->outputs[k]] = (value){.numbers = n};
    }
    return n != NULL;
}
