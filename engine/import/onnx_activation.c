// SPDX-License-Identifier: Apache-2.0
// Operators on single elements.
#include <math.h>
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

enum { OUTPUTS_LOOKED = 64 }; // of a graph, for one that a log-softmax gives

static bool give_alike(walk *w, const char *kind)
{
    tensor *x = walk_tensor(w, 0);
    return x != NULL && walk_give(w, 0, walk_alike(w, kind, x));
}

bool take_activation(walk *w)
{
    static const char *const rows[][2] = {
        {"Relu", "relu"}, {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"}, {"HardSwish", "hard_swish"},
        {"Mish", "mish"}, {"Swish", "silu"},
    };
    tensor *x = walk_tensor(w, 0);
    tensor *t = x == NULL || w->node->op[0] != 'T' ? NULL : step_alone(w, x);
    if (t != NULL || x == NULL || w->g->status != HR_OK) {
        return walk_give(w, 0, t);
    }
    if (w->node->op[1] == 'w' && onnx_real(w->node, "alpha", 1) != 1) {
        return walk_refuse(w, "a SiLU with alpha %g", onnx_real(w->node, "alpha", 1));
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k][0], w->node->op) == 0) {
            return walk_give(w, 0, walk_alike(w, rows[k][1], x));
        }
    }
    return walk_refuse(w, "no layer of ours does this");
}

bool take_leaky_relu(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    tensor *out = x == NULL ? NULL : walk_alike(w, "leaky_relu", x);
    if (out != NULL) {
        layer_real(w, out->layer, "slope", onnx_real(w->node, "alpha", 0.01));
    }
    return walk_give(w, 0, out);
}

bool take_hard_sigmoid(walk *w)
{
    if (fabs(onnx_real(w->node, "alpha", 0.2) - 1.0 / 6) > 1e-6 || onnx_real(w->node, "beta", 0.5) != 0.5) {
        return walk_refuse(w, "a hard sigmoid with alpha %g and beta %g, where ours has 1/6 and 1/2",
                           onnx_real(w->node, "alpha", 0.2), onnx_real(w->node, "beta", 0.5));
    }
    return give_alike(w, "hard_sigmoid");
}

bool take_gelu(walk *w)
{
    const onnx_attribute *a = onnx_find(w->node, "approximate");
    tensor *x = walk_tensor(w, 0);
    tensor *out = x == NULL ? NULL : walk_alike(w, "gelu", x);
    if (out != NULL && a != NULL && strcmp(a->word, "tanh") == 0) {
        layer_word(w, out->layer, "approximate", "true");
    }
    return walk_give(w, 0, out);
}

bool take_softplus(walk *w)
{
    return give_alike(w, "softplus");
}

// An end of Clip: an operand since opset 11.
static bool clip_end(walk *w, uint32_t k, double otherwise, double *out)
{
    const value v = walk_value(w, k);
    *out = otherwise;
    return !walk_has(w, k) || walk_number(w, &v, out);
}

bool take_clip(walk *w)
{
    double low = 0, high = 0;
    if (!clip_end(w, 1, -HUGE_VAL, &low) || !clip_end(w, 2, HUGE_VAL, &high)) {
        return walk_refuse(w, "needs its ends as constant numbers");
    }
    if (low != 0 || (high != 6 && high < 3e38)) {
        return walk_refuse(w, "a clip from %g to %g, where our layers have 0 to 6 and 0 upwards", low, high);
    }
    return give_alike(w, high == 6 ? "relu6" : "relu");
}

bool take_dropout(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const value rate_of = walk_value(w, 1), trains = walk_value(w, 2);
    double rate = onnx_real(w->node, "ratio", 0.5), training = 0;
    if (x == NULL) {
        return false;
    }
    if ((walk_has(w, 1) && !walk_number(w, &rate_of, &rate)) ||
        (walk_has(w, 2) && !walk_number(w, &trains, &training))) {
        return walk_refuse(w, "needs its rate as a constant number");
    }
    if (training == 0 || rate == 0) {
        return walk_give(w, 0, x);
    }
    if (!(rate > 0 && rate < 1)) {
        return walk_refuse(w, "a dropout of %g", rate);
    }
    if (x->layer->open == OPEN_SCORES) {
        return walk_give(w, 0, attention_dropped(w, x, rate));
    }
    tensor *out = walk_alike(w, "dropout", x);
    if (out != NULL) {
        layer_real(w, out->layer, "rate", rate);
    }
    return walk_give(w, 0, out);
}

bool take_softmax(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    uint32_t axis = 0;
    if (x == NULL || !node_axis(w, onnx_whole(w->node, "axis", -1), x->rank, &axis)) {
        return false;
    }
    const axes *last = &x->dims[x->rank - 1];
    if (axis + 1 != x->rank) {
        return walk_refuse(w, "a softmax over another dimension than the last");
    }
    if (x->layer->open == OPEN_SCORES) {
        return walk_give(w, 0, attention_softmax(w, x));
    }
    if (last->count > x->axes.count ||
        memcmp(&x->axes.at[x->axes.count - last->count], last->at, last->count * sizeof last->at[0]) != 0) {
        return walk_refuse(w, "a softmax over a dimension that is not the last in memory");
    }
    return walk_give(w, 0, walk_alike(w, "softmax", x));
}

bool take_log_softmax(walk *w)
{
    uint32_t looked = 0;
    for (const onnx_value *o = w->g->outputs; o != NULL && looked++ < OUTPUTS_LOOKED; o = o->next) {
        if (w->node->output_count > 0 && o->value == w->node->outputs[0]) {
            walk_note(w, "The last log_softmax is left out: our cross entropy has its own.");
            return take_identity(w);
        }
    }
    return walk_refuse(w, "a log-softmax inside the network, which no layer is");
}

bool take_step(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    tensor *out = x == NULL ? NULL : step_alone(w, x);
    if (out == NULL && w->g->status == HR_OK) {
        return walk_refuse(w, "no layer of ours does this, and it is no step of a norm, of a GELU or of "
                              "attention that is known");
    }
    return walk_give(w, 0, out);
}
