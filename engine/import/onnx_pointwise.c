// SPDX-License-Identifier: Apache-2.0
// Operators on two tensors.
#include <math.h>
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

static bool same_dims(const tensor *x, const tensor *y)
{
    bool same = x->rank == y->rank;
    for (uint32_t d = 0; same && d < x->rank; d++) {
        same = dim_size(x, d) == dim_size(y, d);
    }
    return same;
}

static tensor *both(walk *w, const char *kind, const tensor *x, const tensor *y)
{
    if (!same_dims(x, y)) {
        return walk_refuse(w, "needs two tensors of one shape");
    }
    if (!walk_is_closed(w, x) || !walk_is_closed(w, y)) {
        return NULL;
    }
    if (tensor_is_expanded(x) || tensor_is_expanded(y)) {
        return walk_refuse(w, "works on an expanded tensor, which our layers would have to copy");
    }
    if (!tensor_align(w, &x, &y)) {
        return NULL;
    }
    layer *other = walk_reshaped(w, y->layer, x->layer->rank, x->layer->shape);
    layer *l = other == NULL ? NULL : walk_emit(w, kind, x->layer, x->layer->rank, x->layer->shape);
    tensor *out = l == NULL ? NULL : tensor_again(w, x);
    if (out != NULL) {
        l->inputs[l->input_count++] = other;
        out->layer = l;
    }
    return out;
}

static int64_t elements_of(const layer *l)
{
    int64_t count = 1;
    for (uint32_t k = 1; k < l->rank; k++) {
        count *= l->shape[k]; // counted as it was made
    }
    return count;
}

// Squeeze and excite: a factor for each channel of each sample, [batch, channels] against the last axis in memory.
static tensor *gated(walk *w, tensor *x, tensor *gate)
{
    uint32_t channels = 0;
    if (x->rank != gate->rank || x->rank < 3) {
        return walk_refuse(w, "a product of tensors of different shapes");
    }
    if (!walk_is_closed(w, x) || !walk_is_closed(w, gate)) {
        return NULL;
    }
    for (uint32_t d = 1; d < x->rank; d++) {
        const axes *own = &x->dims[d];
        const bool last =
            own->count > 0 && own->count <= x->axes.count &&
            memcmp(&x->axes.at[x->axes.count - own->count], own->at, own->count * sizeof own->at[0]) == 0;
        channels = last && channels == 0 ? d : channels;
    }
    bool fits = channels > 0 && dim_size(gate, 0) == dim_size(x, 0);
    for (uint32_t d = 1; fits && d < x->rank; d++) {
        fits = dim_size(gate, d) == (d == channels ? dim_size(x, d) : 1);
    }
    if (!fits || x->layer->shape[x->layer->rank - 1] != dim_size(x, channels)) {
        return walk_refuse(w,
                           "a product of tensors of different shapes, which is no factor for each channel");
    }
    layer *factors = gate->layer;
    if (factors->shape[factors->rank - 1] != dim_size(x, channels) ||
        elements_of(factors) != dim_size(x, channels)) {
        const axes groups[2] = {gate->dims[0], gate->dims[channels]};
        factors = walk_arrange(w, gate, groups, 2);
    }
    layer *l = factors == NULL ? NULL : walk_emit(w, "multiply", x->layer, x->layer->rank, x->layer->shape);
    tensor *out = l == NULL ? NULL : tensor_again(w, x);
    if (out != NULL) {
        l->inputs[l->input_count++] = factors;
        out->layer = l;
    }
    return out;
}

// A learned factor for each channel.
static tensor *channel_scale(walk *w, const tensor *x, const tensor *scale)
{
    uint32_t channels = 0;
    axes head;
    if (scale->rank > x->rank || scale->axes.count != 1) {
        return walk_refuse(w, "a product with a parameter other than a factor for each channel");
    }
    const uint32_t shift = x->rank - scale->rank;
    for (uint32_t d = 0; d < scale->rank; d++) {
        channels = scale->dims[d].count > 0 ? d + shift : channels;
    }
    const axes *own = &x->dims[channels];
    if (channels == 0 || dim_size(x, channels) != scale->axes.at[0]->size || own->count > x->axes.count ||
        memcmp(&x->axes.at[x->axes.count - own->count], own->at, own->count * sizeof own->at[0]) != 0) {
        return walk_refuse(w, "a product with a parameter other than a factor for each channel");
    }
    layer *l = walk_rows(w, &x, own, &head);
    layer *made = l == NULL ? NULL : walk_emit(w, "layer_scale", l, l->rank, l->shape);
    tensor *out = made == NULL ? NULL : tensor_again(w, x);
    if (out != NULL) {
        layer_param(w, made, scale->layer->params[0]);
        out->layer = made;
    }
    return out;
}

// x + table, a row for each place of a sequence.
static tensor *position_embedding(walk *w, const tensor *x, const tensor *table)
{
    axes rows = {.count = 0};
    for (uint32_t d = 0; d < table->rank; d++) {
        for (uint32_t k = 0; k < table->dims[d].count; k++) {
            if (!table->dims[d].at[k]->copied) {
                axes_add(&rows, table->dims[d].at[k]);
            }
        }
    }
    bool fits = table->axes.count == 2 && axes_equal(&rows, &table->axes) && x->rank == 3;
    for (uint32_t k = 0; fits && k < 2; k++) {
        fits = dim_size(x, 1 + k) == rows.at[k]->size;
    }
    if (!fits) {
        return walk_refuse(
            w, "a sum with a parameter that is neither a bias behind a product nor a row for each place");
    }
    layer *l = walk_arrange_dims(w, x);
    layer *made = l == NULL ? NULL : walk_emit(w, "position_embedding", l, l->rank, l->shape);
    tensor *out = made == NULL ? NULL : tensor_again(w, x);
    if (out != NULL) {
        layer_param(w, made, table->layer->params[0]);
        out->layer = made;
    }
    return out;
}

static tensor *add_parameter(walk *w, const tensor *x, const tensor *parameter)
{
    tensor *out = dense_biased(w, x, parameter);
    return out != NULL || w->g->status != HR_OK ? out : position_embedding(w, x, parameter);
}

typedef struct operands {
    value a, b; // a is a tensor that depends on an input
    bool turned;
} operands;

static bool read_operands(walk *w, operands *o)
{
    o->a = walk_value(w, 0);
    o->b = walk_value(w, 1);
    o->turned = o->a.tensor == NULL || (o->a.tensor->layer->open == OPEN_PARAMETER && o->b.tensor != NULL);
    if (o->turned) {
        const value first = o->a;
        o->a = o->b;
        o->b = first;
    }
    return o->a.tensor != NULL || walk_refuse(w, "it reads nothing that depends on the input") != NULL;
}

static tensor *add_numbers(walk *w, const tensor *x, const value *v)
{
    double number = 0;
    if (walk_number(w, v, &number)) {
        return number == 0 ? tensor_again(w, x)
                           : walk_refuse(w, "a sum with the number %g, which no layer is", number);
    }
    if (x->layer->open == OPEN_SCORES && v->numbers != NULL) {
        return attention_masked(w, x, v->numbers);
    }
    return walk_refuse(w, "a sum with a table of constant numbers, which no layer is");
}

static tensor *add_pair(walk *w, tensor *x, const value *v)
{
    tensor *y = walk_tensor_of(w, v);
    if (y == NULL) {
        return NULL;
    }
    if (y->layer->open == OPEN_PARAMETER) {
        return add_parameter(w, x, y);
    }
    tensor *turned = rotary_sum(w, x, y);
    turned = turned == NULL && w->g->status == HR_OK ? rotary_sum(w, y, x) : turned;
    return turned != NULL || w->g->status != HR_OK ? turned : both(w, "add", x, y);
}

// A mask that the exporter has computed, or that is a weight under a view, becomes numbers.
static bool read_mask(walk *w, operands *o)
{
    const numbers *mask = NULL;
    if (o->a.tensor->layer->open != OPEN_SCORES) {
        return true;
    }
    if (o->b.weight != NULL) {
        mask = numbers_of(w->g, o->b.weight);
    } else if (o->b.tensor != NULL) {
        mask = parameter_numbers(w, o->b.tensor);
    }
    o->b = mask != NULL ? (value){.numbers = mask} : o->b;
    return w->g->status == HR_OK;
}

bool take_add(walk *w)
{
    operands o;
    if (!read_operands(w, &o)) {
        return false;
    }
    const value a = {.tensor = o.a.tensor};
    tensor *out = o.a.tensor->layer->open == OPEN_SCORES ? windows_biased(w, o.a.tensor, &o.b) : NULL;
    if (out != NULL || w->g->status != HR_OK) {
        return walk_give(w, 0, out);
    }
    out = step_add(w, o.a.tensor, &o.b);
    out = out == NULL && w->g->status == HR_OK && o.b.tensor != NULL ? step_add(w, o.b.tensor, &a) : out;
    double number = 0;
    if (!read_mask(w, &o)) {
        return false;
    }
    const bool bias = o.b.weight != NULL && o.b.weight->rank > 0 && o.a.tensor->layer->units == 1;
    const bool constant =
        o.b.numbers != NULL || (o.b.weight != NULL && !bias && walk_number(w, &o.b, &number));
    if (out == NULL && w->g->status == HR_OK) {
        out = constant ? add_numbers(w, o.a.tensor, &o.b) : add_pair(w, o.a.tensor, &o.b);
    }
    return walk_give(w, 0, out);
}

bool take_subtract(walk *w)
{
    const value a = walk_value(w, 0), b = walk_value(w, 1);
    double number = 0;
    tensor *out = a.tensor != NULL && b.tensor != NULL ? step_subtract(w, a.tensor, b.tensor) : NULL;
    if (out == NULL && w->g->status == HR_OK && a.tensor != NULL && walk_number(w, &b, &number) &&
        number == 0) {
        out = tensor_again(w, a.tensor);
    }
    return out != NULL || w->g->status != HR_OK
               ? walk_give(w, 0, out)
               : walk_refuse(
                     w, "a difference, which no layer is; only of a layer norm in steps it is known") != NULL;
}

// x · sigmoid(x), x · hard_sigmoid(x)
static tensor *self_gated(walk *w, const tensor *x, const tensor *gate)
{
    const layer *l = gate->layer;
    const bool soft = strcmp(l->kind, "sigmoid") == 0, hard = strcmp(l->kind, "hard_sigmoid") == 0;
    return (soft || hard) && l->inputs[0] == x->layer ? walk_alike(w, soft ? "silu" : "hard_swish", x) : NULL;
}

static tensor *scaled(walk *w, const tensor *x, double factor)
{
    if (x->layer->open == OPEN_SCORES) {
        return attention_scaled(w, x, factor);
    }
    tensor *out = factor == 1 ? tensor_again(w, x) : NULL;
    if (factor == 0 || !isfinite(factor)) {
        return walk_refuse(w, "a product with %g", factor);
    }
    if (out == NULL && x->layer->open == OPEN_ROTARY) { // on its way to attention
        out = walk_open(w, x, OPEN_ROTARY, x->layer->of);
        if (out != NULL) {
            out->layer->epsilon = factor;
        }
        return out;
    }
    out = out == NULL ? walk_alike(w, "scale", x) : out;
    if (out != NULL && factor != 1) {
        layer_real(w, out->layer, "factor", factor);
        out->layer->factor = factor;
    }
    return out;
}

static tensor *multiply_pair(walk *w, tensor *x, const value *v)
{
    tensor *y = walk_tensor_of(w, v);
    tensor *out = y == NULL ? NULL : self_gated(w, x, y);
    out = out == NULL && y != NULL && w->g->status == HR_OK ? self_gated(w, y, x) : out;
    if (out != NULL || y == NULL || w->g->status != HR_OK) {
        return out;
    }
    if (y->layer->open == OPEN_PARAMETER) {
        return channel_scale(w, x, y);
    }
    if (!same_dims(x, y)) {
        const bool larger = elements_of(x->layer) >= elements_of(y->layer);
        return gated(w, larger ? x : y, larger ? y : x);
    }
    return both(w, "multiply", x, y);
}

// Numbers that differ along two dimensions: no layer learns such factors.
static bool is_table(const onnx_tensor *t)
{
    uint32_t wide = 0;
    for (uint32_t k = 0; t != NULL && k < t->rank; k++) {
        wide += t->dims[k] > 1 ? 1 : 0;
    }
    return wide > 1;
}

bool take_multiply(walk *w)
{
    operands o;
    double factor = 0;
    if (!read_operands(w, &o)) {
        return false;
    }
    const value a = {.tensor = o.a.tensor};
    tensor *out = step_multiply(w, o.a.tensor, &o.b);
    out = out == NULL && w->g->status == HR_OK && o.b.tensor != NULL ? step_multiply(w, o.b.tensor, &a) : out;
    if (out != NULL || w->g->status != HR_OK) {
        return walk_give(w, 0, out);
    }
    if (walk_number(w, &o.b, &factor)) {
        return walk_give(w, 0, scaled(w, o.a.tensor, factor));
    }
    if (o.b.numbers != NULL || is_table(o.b.weight)) {
        const numbers *table = o.b.numbers != NULL ? o.b.numbers : numbers_of(w->g, o.b.weight);
        out = table == NULL ? NULL : walk_open(w, o.a.tensor, OPEN_TABLE, o.a.tensor);
        if (out != NULL) {
            out->layer->table = table;
        }
        return walk_give(w, 0, out);
    }
    return walk_give(w, 0, multiply_pair(w, o.a.tensor, &o.b));
}

bool take_divide(walk *w)
{
    const value a = walk_value(w, 0), b = walk_value(w, 1);
    double number = 0;
    if (a.tensor != NULL && walk_number(w, &b, &number) && number != 0) {
        return walk_give(w, 0, scaled(w, a.tensor, 1 / number));
    }
    if (a.tensor == NULL && b.tensor != NULL && b.tensor->layer->open == OPEN_ROOT &&
        walk_number(w, &a, &number) && number == 1) {
        tensor *out = walk_open(w, b.tensor, OPEN_INVERSE, b.tensor->layer->of);
        return walk_give(w, 0, out);
    }
    tensor *out = a.tensor != NULL && b.tensor != NULL ? step_divide(w, a.tensor, b.tensor) : NULL;
    return out != NULL || w->g->status != HR_OK ? walk_give(w, 0, out)
                                                : walk_refuse(w, "a quotient, which no layer is") != NULL;
}

static double hidden_where_no(double a)
{
    return a == 0 ? -(double)INFINITY : 0;
}

static double hidden_where_yes(double a)
{
    return a == 0 ? 0 : -(double)INFINITY;
}

// A mask, or what takes the place of a softmax over nothing.
bool take_where(walk *w)
{
    const value c = walk_value(w, 0), a = walk_value(w, 1), b = walk_value(w, 2);
    double number = 0;
    if (c.tensor != NULL && c.tensor->layer->open == OPEN_IS_NAN && b.tensor != NULL &&
        b.tensor->layer->open == OPEN_SCORES && walk_number(w, &a, &number) && number == 0) {
        return walk_give(w, 0, b.tensor);
    }
    const bool first = a.tensor != NULL && a.tensor->layer->open == OPEN_SCORES;
    const tensor *scores = first ? a.tensor : b.tensor;
    const numbers *mask = walk_numbers(w, 0);
    if (mask != NULL && !walk_is_known(w, mask, false)) {
        return false;
    }
    if (mask == NULL || scores == NULL || scores->layer->open != OPEN_SCORES ||
        !walk_number(w, first ? &b : &a, &number) || number > ONNX_HIDDEN) {
        return w->g->status == HR_OK ? walk_refuse(w, "a choice outside of a mask of attention") != NULL
                                     : false;
    }
    // Where a place is not seen the sum is lowered, as by an added mask.
    const numbers *lowered = numbers_each(w->g, mask, first ? hidden_where_no : hidden_where_yes, true);
    return lowered != NULL && walk_give(w, 0, attention_masked(w, scores, lowered));
}
