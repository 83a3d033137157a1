// SPDX-License-Identifier: Apache-2.0
// Layers that work element by element.
#include "model/layer_expand.h"

static uint32_t expand_one(model_builder *b, const layer_spec *s, layer_act act)
{
    return expand_activation(b, act, s->input[0], "out");
}

static uint32_t expand_relu(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_RELU);
}

static uint32_t expand_relu6(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_RELU6);
}

static uint32_t expand_gelu(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, spec_integer(s, ATTR_APPROXIMATE) ? LAYER_ACT_GELU_TANH : LAYER_ACT_GELU);
}

static uint32_t expand_silu(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_SILU);
}

static uint32_t expand_tanh(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_TANH);
}

static uint32_t expand_sigmoid(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_SIGMOID);
}

static uint32_t expand_hard_sigmoid(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_HARD_SIGMOID);
}

static uint32_t expand_hard_swish(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_HARD_SWISH);
}

static uint32_t expand_softplus(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_SOFTPLUS);
}

static uint32_t expand_mish(model_builder *b, const layer_spec *s)
{
    return expand_one(b, s, LAYER_ACT_MISH);
}

static uint32_t expand_leaky_relu(model_builder *b, const layer_spec *s)
{
    const model_node node = {.op = HR_OP_LEAKY_RELU,
                             .attr = {.rate = s->value[ATTR_SLOPE].real},
                             .in_count = 1,
                             .in = {ref_value(s->input[0])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_gelu = {"gelu", 1, 1, LAYER_NEEDS_ANY, {ATTR_APPROXIMATE}, expand_gelu};
const layer_kind layer_kind_silu = {"silu", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_silu};
const layer_kind layer_kind_tanh = {"tanh", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_tanh};
const layer_kind layer_kind_sigmoid = {"sigmoid", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_sigmoid};
const layer_kind layer_kind_hard_sigmoid = {"hard_sigmoid",  1,           1,
                                            LAYER_NEEDS_ANY, {ATTR_NONE}, expand_hard_sigmoid};
const layer_kind layer_kind_hard_swish = {"hard_swish",    1,           1,
                                          LAYER_NEEDS_ANY, {ATTR_NONE}, expand_hard_swish};
const layer_kind layer_kind_softplus = {"softplus", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_softplus};
const layer_kind layer_kind_mish = {"mish", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_mish};
const layer_kind layer_kind_leaky_relu = {"leaky_relu",     1, 1, LAYER_NEEDS_ANY, {ATTR_SLOPE},
                                          expand_leaky_relu};
const layer_kind layer_kind_relu = {"relu", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_relu};
const layer_kind layer_kind_relu6 = {"relu6", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_relu6};

static uint32_t expand_dropout_layer(model_builder *b, const layer_spec *s)
{
    const int32_t flags = spec_integer(s, ATTR_IN_PLACE) ? OP_FLAG_IN_PLACE : 0;
    return expand_dropout(b, s->value[ATTR_RATE].real, flags, s->input[0], "out");
}

static uint32_t expand_stochastic_depth(model_builder *b, const layer_spec *s)
{
    model_node node = {.op = HR_OP_DROP_PATH, .in_count = 1, .out_count = 2, .in = {ref_value(s->input[0])}};
    expand_rate(b, s->value[ATTR_RATE].real, &node.attr);
    return node.attr.rate == 0 ? s->input[0]
                               : builder_node(b, &node, (const node_out[]){{"out", true}, {"factors", true}});
}

const layer_kind layer_kind_stochastic_depth = {"stochastic_depth", 1,           1,
                                                LAYER_NEEDS_ANY,    {ATTR_RATE}, expand_stochastic_depth};

const layer_kind layer_kind_dropout = {"dropout",           1, 1, LAYER_NEEDS_ANY, {ATTR_RATE, ATTR_IN_PLACE},
                                       expand_dropout_layer};

// ---- two inputs -----------------------------------------------------------------------------------------------

static uint32_t expand_pair(model_builder *b, const layer_spec *s, hr_op op, int32_t flags, const char *inner)
{
    const hr_shape left = spec_shape(b, s, 0);
    const hr_shape right = spec_shape(b, s, 1);
    if (!shape_equal(&left, &right)) {
        char a[SHAPE_TEXT_MAX], c[SHAPE_TEXT_MAX];
        builder_problem(b, "needs two inputs of one shape, had %s and %s", sample_shape_text(&left, a),
                        sample_shape_text(&right, c));
        return HR_NO_ID;
    }
    const model_node node = {.op = op,
                             .attr = {.flags = flags},
                             .in_count = 2,
                             .in = {ref_value(s->input[0]), ref_value(s->input[1])}};
    return expand_activate(b, s, expand_node(b, &node, expand_result_name(s, inner)));
}

static uint32_t expand_add(model_builder *b, const layer_spec *s)
{
    return expand_pair(b, s, HR_OP_ADD, spec_integer(s, ATTR_IN_PLACE) ? OP_FLAG_IN_PLACE : 0, "add");
}

// Squeeze and excite: one factor a channel and sample, [C] or [1,1,C], times [H,W,C].
static bool is_gate(const hr_shape *gate, const hr_shape *image)
{
    const int64_t channels = image->dim[image->rank - 1];
    uint64_t elements = 0;
    (void)shape_elements(gate, &elements);
    return image->rank > 2 && gate->rank <= image->rank && gate->dim[gate->rank - 1] == channels &&
           elements == (uint64_t)channels;
}

static uint32_t expand_multiply(model_builder *b, const layer_spec *s)
{
    const hr_shape left = spec_shape(b, s, 0), right = spec_shape(b, s, 1);
    const bool gates = is_gate(&right, &left), gated = is_gate(&left, &right);
    if (gates == gated) { // neither, or both: of one pixel
        return expand_pair(b, s, HR_OP_MULTIPLY, 0, "multiply");
    }
    const model_node node = {.op = HR_OP_MULTIPLY_BROADCAST,
                             .in_count = 2,
                             .in = {ref_value(s->input[gates ? 0 : 1]), ref_value(s->input[gates ? 1 : 0])}};
    return expand_activate(b, s, expand_node(b, &node, expand_result_name(s, "multiply")));
}

const layer_kind layer_kind_add = {"add",     2, 2, LAYER_NEEDS_ANY, {ATTR_ACTIVATION, ATTR_IN_PLACE},
                                   expand_add};
const layer_kind layer_kind_multiply = {"multiply",     2, 2, LAYER_NEEDS_ANY, {ATTR_ACTIVATION},
                                        expand_multiply};

// ---- scale ----------------------------------------------------------------------------------------------------

static uint32_t expand_scale(model_builder *b, const layer_spec *s)
{
    const double factor = s->value[ATTR_FACTOR].real;
    if (factor == 0) {
        builder_problem(b, "needs a factor that leaves something, had 0");
        return HR_NO_ID;
    }
    const model_node node = {
        .op = HR_OP_SCALE, .attr = {.scale = factor}, .in_count = 1, .in = {ref_value(s->input[0])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_scale = {"scale", 1, 1, LAYER_NEEDS_ANY, {ATTR_FACTOR}, expand_scale};

// A learned gain a channel (Touvron et al., 2021).
static uint32_t expand_layer_scale(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const model_param gains = {.shape = shape_of(1, &x.dim[x.rank - 1]),
                               .category = HR_CATEGORY_WEIGHTS,
                               .trainable = true,
                               .init = MODEL_INIT_CONSTANT,
                               .init_scale = s->value[ATTR_INITIAL].real};
    const uint32_t gamma = builder_param(b, "gamma", &gains);
    const model_node node = {
        .op = HR_OP_MULTIPLY_BROADCAST, .in_count = 2, .in = {ref_value(s->input[0]), ref_param(gamma)}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_layer_scale = {"layer_scale",     1, 1, LAYER_NEEDS_ANY, {ATTR_INITIAL},
                                           expand_layer_scale};
