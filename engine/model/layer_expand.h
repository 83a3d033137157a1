// SPDX-License-Identifier: Apache-2.0
// What the expand functions of all families share. Parameters are declared in canonical order. An activation is a
// node of its own behind the operation; fusing it is a pass's business.
#ifndef MODEL_LAYER_EXPAND_H
#define MODEL_LAYER_EXPAND_H

#include "headroom/event.h"

#include "model/layer_kind.h"

typedef enum layer_act {
    LAYER_ACT_NONE,
    LAYER_ACT_RELU,
    LAYER_ACT_RELU6,
    LAYER_ACT_GELU,
    LAYER_ACT_GELU_TANH,
    LAYER_ACT_SILU,
    LAYER_ACT_TANH,
    LAYER_ACT_SIGMOID,
    LAYER_ACT_HARD_SIGMOID,
    LAYER_ACT_HARD_SWISH,
    LAYER_ACT_LEAKY_RELU,
    LAYER_ACT_SOFTPLUS,
    LAYER_ACT_MISH,
} layer_act;

typedef enum layer_bias { LAYER_BIAS_NONE, LAYER_BIAS, LAYER_BIAS_OWN } layer_bias;
#define LAYER_LEAKY_SLOPE 0.01 // unless it is written

#define X(name) extern const layer_kind layer_kind_##name;
LAYER_KIND_MAP(X)
#undef X

int64_t spec_integer(const layer_spec *s, attr_id id);
hr_shape spec_shape(const model_builder *b, const layer_spec *s, uint32_t input);

// A node with one output of samples.
uint32_t expand_node(model_builder *b, const model_node *node, const char *result);
// The activation `act` over x; x itself without one.
uint32_t expand_activation(model_builder *b, layer_act act, uint32_t x, const char *result);

// The name of the operation's own result: it is the layer's unless an activation follows.
const char *expand_result_name(const layer_spec *s, const char *inner);
// The layer's own activation over x, as its output.
uint32_t expand_activate(model_builder *b, const layer_spec *s, uint32_t x);

// A trainable parameter under the layer's `init`.
uint32_t expand_weights(model_builder *b, const layer_spec *s, const char *suffix, const hr_shape *shape,
                        uint64_t fan_in, uint64_t fan_out);
// A table of learned rows [rows, features] under the layer's `init`.
uint32_t expand_table(model_builder *b, const layer_spec *s, const hr_shape *shape);
// One value per feature, trainable.
uint32_t expand_vector(model_builder *b, const char *suffix, int64_t features, model_init init);
// The layer's bias, HR_NO_ID when it has none.
uint32_t expand_bias(model_builder *b, const layer_spec *s, int64_t features);
// The node over x, weights and, where there is one, bias.
model_node expand_weighted(hr_op op, const op_attr *attr, uint32_t x, uint32_t weights, uint32_t bias);

// A dense layer of its own inside another: NAME_weights, and NAME_bias where the layer has biases.
uint32_t expand_project(model_builder *b, const layer_spec *s, uint32_t x, int64_t units, const char *name,
                        const char *result);

// Dropout over x; x itself at rate 0.
uint32_t expand_dropout(model_builder *b, double rate, int32_t flags, uint32_t x, const char *result);
// The rate, and a salt of the present layer, where there is a rate.
void expand_rate(const model_builder *b, double rate, op_attr *attr);

// The axes of x in another order, the first stays: axes[k] is the axis of x that axis k of the result is.
uint32_t expand_permute(model_builder *b, uint32_t x, const uint32_t axes[OP_MAX_RANK], const char *result);
// An image whose pixels went so many places down and to the right, around its edges.
uint32_t expand_rolled(model_builder *b, uint32_t x, attr_pair shift, const char *result);

// The biases that learned rows of `table` make, [..*heads, queries, keys] for all samples (ops/relative.h).
uint32_t expand_relative(model_builder *b, const op_attr *attr, uint32_t table);
// scores + bias.
uint32_t expand_biased(model_builder *b, uint32_t scores, uint32_t bias);

// Resolves an axis as Keras counts it among `axes`; false, with a problem said, when it is none or the batch.
bool expand_axis(model_builder *b, const layer_spec *s, uint32_t axes, int32_t *axis);

#endif
