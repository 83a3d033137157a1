// SPDX-License-Identifier: Apache-2.0
#include "model/layer_expand.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

int64_t spec_integer(const layer_spec *s, attr_id id)
{
    return s->value[id].integer;
}

hr_shape spec_shape(const model_builder *b, const layer_spec *s, uint32_t input)
{
    return b->values.data[s->input[input]].shape;
}

uint32_t expand_node(model_builder *b, const model_node *node, const char *result)
{
    model_node complete = *node;
    complete.out_count = 1;
    return builder_node(b, &complete, &(node_out){result, true});
}

uint32_t expand_activation(model_builder *b, layer_act act, uint32_t x, const char *result)
{
    static const struct {
        hr_op op;
        int32_t flags;
        double rate;
    } rows[] = {
        [LAYER_ACT_RELU] = {HR_OP_RELU, 0, 0},
        [LAYER_ACT_RELU6] = {HR_OP_RELU6, 0, 0},
        [LAYER_ACT_GELU] = {HR_OP_GELU, 0, 0},
        [LAYER_ACT_GELU_TANH] = {HR_OP_GELU, OP_FLAG_TANH, 0},
        [LAYER_ACT_SILU] = {HR_OP_SILU, 0, 0},
        [LAYER_ACT_TANH] = {HR_OP_TANH, 0, 0},
        [LAYER_ACT_SIGMOID] = {HR_OP_SIGMOID, 0, 0},
        [LAYER_ACT_HARD_SIGMOID] = {HR_OP_HARD_SIGMOID, 0, 0},
        [LAYER_ACT_HARD_SWISH] = {HR_OP_HARD_SWISH, 0, 0},
        [LAYER_ACT_LEAKY_RELU] = {HR_OP_LEAKY_RELU, 0, LAYER_LEAKY_SLOPE},
        [LAYER_ACT_SOFTPLUS] = {HR_OP_SOFTPLUS, 0, 0},
        [LAYER_ACT_MISH] = {HR_OP_MISH, 0, 0},
    };
    if (act == LAYER_ACT_NONE) {
        return x;
    }
    const model_node node = {.op = rows[act].op,
                             .attr = {.flags = rows[act].flags, .rate = rows[act].rate},
                             .in_count = 1,
                             .in = {ref_value(x)}};
    return expand_node(b, &node, result);
}

static layer_act activation_of(const layer_spec *s)
{
    return (layer_act)spec_integer(s, ATTR_ACTIVATION);
}

const char *expand_result_name(const layer_spec *s, const char *inner)
{
    return activation_of(s) == LAYER_ACT_NONE ? "out" : inner;
}

uint32_t expand_activate(model_builder *b, const layer_spec *s, uint32_t x)
{
    return expand_activation(b, activation_of(s), x, "out");
}

// The words of ATTR_INIT. Deviation and limit come from `init_scale`, or from what `fan` names.
typedef enum fan_rule { FAN_NONE, FAN_IN, FAN_OUT, FAN_BOTH } fan_rule;

static const struct {
    model_init init;
    fan_rule fan;
    double variance; // of NORMAL over the fan
} inits[] = {
    {MODEL_INIT_GLOROT_UNIFORM, FAN_NONE, 0},
    {MODEL_INIT_HE_UNIFORM, FAN_NONE, 0},
    {MODEL_INIT_NORMAL, FAN_BOTH, 2},
    {MODEL_INIT_NORMAL, FAN_IN, 2},
    {MODEL_INIT_NORMAL, FAN_OUT, 2},
    {MODEL_INIT_NORMAL, FAN_NONE, 0},
    {MODEL_INIT_TRUNCATED_NORMAL, FAN_NONE, 0},
    {MODEL_INIT_UNIFORM, FAN_NONE, 0},
};

static double scale_of(const layer_spec *s, size_t row, uint64_t fan_in, uint64_t fan_out)
{
    const double in = (double)fan_in;
    const double out = (double)fan_out;
    switch (inits[row].fan) {
    case FAN_IN:
        return sqrt(inits[row].variance / in);
    case FAN_OUT:
        return sqrt(inits[row].variance / out);
    case FAN_BOTH:
        return sqrt(inits[row].variance / (in + out));
    case FAN_NONE:
        break;
    }
    return s->value[ATTR_INIT_SCALE].real;
}

static uint32_t add_weights(model_builder *b, const layer_spec *s, attr_id init, const char *suffix,
                            const hr_shape *shape, const uint64_t fan[2])
{
    const size_t row = (size_t)spec_integer(s, init);
    const model_param weights = {.shape = *shape,
                                 .category = HR_CATEGORY_WEIGHTS,
                                 .trainable = true,
                                 .init = inits[row].init,
                                 .init_scale = scale_of(s, row, fan[0], fan[1]),
                                 .fan_in = fan[0],
                                 .fan_out = fan[1]};
    return builder_param(b, suffix, &weights);
}

uint32_t expand_weights(model_builder *b, const layer_spec *s, const char *suffix, const hr_shape *shape,
                        uint64_t fan_in, uint64_t fan_out)
{
    return add_weights(b, s, ATTR_INIT, suffix, shape, (const uint64_t[]){fan_in, fan_out});
}

uint32_t expand_table(model_builder *b, const layer_spec *s, const hr_shape *shape)
{
    const uint64_t fan[] = {(uint64_t)shape->dim[0], (uint64_t)shape->dim[1]};
    return add_weights(b, s, ATTR_TABLE_INIT, "weights", shape, fan);
}

uint32_t expand_vector(model_builder *b, const char *suffix, int64_t features, model_init init)
{
    const model_param vector = {
        .shape = shape_of(1, &features), .category = HR_CATEGORY_WEIGHTS, .trainable = true, .init = init};
    return builder_param(b, suffix, &vector);
}

// One of its own is taken although the layer shares: an output layer over an embedding's table, which has none.
uint32_t expand_bias(model_builder *b, const layer_spec *s, int64_t features)
{
    const param_span shared = b->shared;
    if (spec_integer(s, ATTR_BIAS) == LAYER_BIAS_NONE) {
        return HR_NO_ID;
    }
    if (spec_integer(s, ATTR_BIAS) == LAYER_BIAS_OWN) {
        b->shared.layer = HR_NO_ID;
    }
    const uint32_t bias = expand_vector(b, "bias", features, MODEL_INIT_ZEROS);
    b->shared = shared;
    return bias;
}

model_node expand_weighted(hr_op op, const op_attr *attr, uint32_t x, uint32_t weights, uint32_t bias)
{
    return (model_node){.op = op,
                        .attr = *attr,
                        .in_count = bias == HR_NO_ID ? 2 : 3,
                        .in = {ref_value(x), ref_param(weights), ref_param(bias)}};
}

void expand_rate(const model_builder *b, double rate, op_attr *attr)
{
    if (rate > 0 && !b->broken) {
        const char *layer = b->layers.data[b->layer].name;
        attr->rate = rate;
        attr->salt = hash64(layer, strlen(layer), 0);
    }
}

uint32_t expand_dropout(model_builder *b, double rate, int32_t flags, uint32_t x, const char *result)
{
    if (rate == 0 || b->broken) {
        return x;
    }
    model_node node = {.op = HR_OP_DROPOUT, .attr = {.flags = flags}, .in_count = 1, .in = {ref_value(x)}};
    expand_rate(b, rate, &node.attr);
    return expand_node(b, &node, result);
}

bool expand_axis(model_builder *b, const layer_spec *s, uint32_t axes, int32_t *axis)
{
    const int64_t written = spec_integer(s, ATTR_AXIS);
    const int64_t from_front = written < 0 ? written + axes : written;
    if (from_front < 1 || from_front >= axes) {
        builder_problem(b, "needs an axis from 1 to %u (0 is the batch; -1 is the last), had %lld", axes - 1,
                        (long long)written);
        return false;
    }
    *axis = (int32_t)from_front;
    return true;
}
