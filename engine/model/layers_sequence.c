// SPDX-License-Identifier: Apache-2.0
// Layers over sequences [places, features]: embeddings, attention, recurrence, and the products they are made of.
#include <stdio.h>

#include "model/layer_expand.h"

// ---- embeddings -----------------------------------------------------------------------------------------------

// How many ids the input may hold; 0 when it is no input of the model.
static int64_t classes_of(const model_builder *b, uint32_t value)
{
    for (uint32_t k = 0; k < b->model.slot_count; k++) {
        if (b->model.slots[k].value == value) {
            return b->model.slots[k].classes;
        }
    }
    return 0;
}

static uint32_t expand_embedding(model_builder *b, const layer_spec *s)
{
    const int64_t classes = classes_of(b, s->input[0]);
    const int64_t written = spec_integer(s, ATTR_VOCABULARY);
    const int64_t entries = written != 0 ? written : classes;
    if (entries < classes) {
        builder_problem(b, "needs a vocabulary for the %lld ids of its input, had %lld", (long long)classes,
                        (long long)entries);
        return HR_NO_ID;
    }
    const hr_shape shape = shape_of(2, (const int64_t[]){entries, spec_integer(s, ATTR_UNITS)});
    const uint32_t table = expand_table(b, s, &shape);
    const model_node node = {
        .op = HR_OP_EMBEDDING, .in_count = 2, .in = {ref_value(s->input[0]), ref_param(table)}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_embedding = {
    "embedding",     1, 1, LAYER_NEEDS_IDS, {ATTR_UNITS, ATTR_VOCABULARY, ATTR_TABLE_INIT, ATTR_INIT_SCALE},
    expand_embedding};

// One learned row for every place, added to what stands there.
static uint32_t expand_position_embedding(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const hr_shape shape = shape_of(2, &x.dim[1]);
    const uint32_t table = expand_table(b, s, &shape);
    const model_node node = {
        .op = HR_OP_ADD_BROADCAST, .in_count = 2, .in = {ref_value(s->input[0]), ref_param(table)}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_position_embedding = {
    "position_embedding",     1, 1, LAYER_NEEDS_SEQUENCE, {ATTR_TABLE_INIT, ATTR_INIT_SCALE},
    expand_position_embedding};

// One learned row before the first place of every sample.
static uint32_t expand_class_token(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const hr_shape shape = shape_of(2, (const int64_t[]){1, x.dim[2]});
    const uint32_t row = expand_table(b, s, &shape);
    const model_node token = {.op = HR_OP_BROADCAST, .in_count = 1, .in = {ref_param(row)}};
    const uint32_t rows = expand_node(b, &token, "token");
    const model_node node = {.op = HR_OP_CONCAT,
                             .attr = {.axis = 1},
                             .in_count = 2,
                             .in = {ref_value(rows), ref_value(s->input[0])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_class_token = {
    "class_token", 1, 1, LAYER_NEEDS_SEQUENCE, {ATTR_TABLE_INIT, ATTR_INIT_SCALE}, expand_class_token};

// ---- products -------------------------------------------------------------------------------------------------

static uint32_t expand_matmul(model_builder *b, const layer_spec *s)
{
    const model_node node = {.op = HR_OP_MATMUL,
                             .attr = {.flags = spec_integer(s, ATTR_TRANSPOSE) ? OP_FLAG_TRANSPOSE : 0},
                             .in_count = 2,
                             .in = {ref_value(s->input[0]), ref_value(s->input[1])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_matmul = {"matmul", 2, 2, LAYER_NEEDS_ANY, {ATTR_TRANSPOSE}, expand_matmul};

static uint32_t softmax_of(model_builder *b, const layer_spec *s, uint32_t x, const char *result)
{
    const model_node node = {.op = HR_OP_SOFTMAX,
                             .attr = {.flags = spec_integer(s, ATTR_CAUSAL) ? OP_FLAG_CAUSAL : 0},
                             .in_count = 1,
                             .in = {ref_value(x)}};
    return expand_node(b, &node, result);
}

static uint32_t expand_softmax(model_builder *b, const layer_spec *s)
{
    return softmax_of(b, s, s->input[0], "out");
}

const layer_kind layer_kind_softmax = {"softmax", 1, 1, LAYER_NEEDS_ANY, {ATTR_CAUSAL}, expand_softmax};

// ---- attention ------------------------------------------------------------------------------------------------

// A dense layer of its own inside another: NAME_weights, and NAME_bias where the layer has biases.
static uint32_t project(model_builder *b, const layer_spec *s, uint32_t x, int64_t units, const char *name,
                        const char *result)
{
    char suffix[32];
    if (b->broken) {
        return HR_NO_ID;
    }
    const hr_shape in = b->values.data[x].shape;
    const int64_t features = in.dim[in.rank - 1];
    const hr_shape shape = shape_of(2, (const int64_t[]){features, units});
    (void)snprintf(suffix, sizeof suffix, "%s_weights", name);
    const uint32_t w = expand_weights(b, s, suffix, &shape, (uint64_t)features, (uint64_t)units);
    (void)snprintf(suffix, sizeof suffix, "%s_bias", name);
    const uint32_t bias =
        spec_integer(s, ATTR_BIAS) ? expand_vector(b, suffix, units, MODEL_INIT_ZEROS) : HR_NO_ID;
    const model_node node = expand_weighted(HR_OP_DENSE, &(op_attr){0}, x, w, bias);
    return expand_node(b, &node, result);
}

// scores → softmax → dropout → values: the scores are tensors that live until backward.
static uint32_t attend_materialised(model_builder *b, const layer_spec *s, const uint32_t qkv[3])
{
    const op_attr attr = {.heads = (int32_t)spec_integer(s, ATTR_HEADS)};
    const model_node scores = {.op = HR_OP_ATTENTION_SCORES,
                               .attr = attr,
                               .in_count = 2,
                               .in = {ref_value(qkv[0]), ref_value(qkv[1])}};
    uint32_t p = softmax_of(b, s, expand_node(b, &scores, "scores"), "probabilities");
    p = expand_dropout(b, s->value[ATTR_DROPOUT].real, p, "dropped");
    const model_node values = {
        .op = HR_OP_ATTENTION_VALUES, .attr = attr, .in_count = 2, .in = {ref_value(p), ref_value(qkv[2])}};
    return expand_node(b, &values, "mixed");
}

static uint32_t attend_streaming(model_builder *b, const layer_spec *s, const uint32_t qkv[3])
{
    op_attr attr = {.heads = (int32_t)spec_integer(s, ATTR_HEADS),
                    .flags = spec_integer(s, ATTR_CAUSAL) ? OP_FLAG_CAUSAL : 0};
    expand_rate(b, s->value[ATTR_DROPOUT].real, &attr);
    const model_node node = {.op = HR_OP_ATTENTION,
                             .attr = attr,
                             .in_count = 3,
                             .out_count = 2,
                             .in = {ref_value(qkv[0]), ref_value(qkv[1]), ref_value(qkv[2])}};
    return builder_node(b, &node, (const node_out[]){{"mixed", true}, {"lse", true}});
}

// Queries from the first input; keys and values from the second where there is one.
static uint32_t expand_attention(model_builder *b, const layer_spec *s)
{
    const int64_t width = spec_shape(b, s, 0).dim[2];
    const int64_t heads = spec_integer(s, ATTR_HEADS);
    const bool streams = spec_integer(s, ATTR_FORM) == 0;
    const uint32_t source = s->input[s->input_count - 1];
    if (width % heads != 0) {
        builder_problem(b, "needs heads that divide its %lld features, had %lld", (long long)width,
                        (long long)heads);
        return HR_NO_ID;
    }
    const uint32_t qkv[] = {project(b, s, s->input[0], width, "query", "query"),
                            project(b, s, source, width, "key", "key"),
                            project(b, s, source, width, "value", "value")};
    const uint32_t mixed = (streams ? attend_streaming : attend_materialised)(b, s, qkv);
    layer_spec output = *s;
    if (s->value[ATTR_OUTPUT_SCALE].real > 0) {
        output.value[ATTR_INIT_SCALE] = s->value[ATTR_OUTPUT_SCALE];
    }
    return project(b, &output, mixed, width, "output", "out");
}

const layer_kind layer_kind_attention = {"attention",
                                         1,
                                         2,
                                         LAYER_NEEDS_SEQUENCE,
                                         {ATTR_HEADS, ATTR_FORM, ATTR_CAUSAL, ATTR_DROPOUT, ATTR_BIAS,
                                          ATTR_INIT, ATTR_INIT_SCALE, ATTR_OUTPUT_SCALE},
                                         expand_attention};

// ---- recurrence -----------------------------------------------------------------------------------------------

// The product with the inputs of all places is a dense layer; the gates stand in Keras's order i, f, c, o.
static uint32_t expand_lstm(model_builder *b, const layer_spec *s)
{
    const int64_t features = spec_shape(b, s, 0).dim[2];
    const int64_t units = spec_integer(s, ATTR_UNITS);
    const hr_shape inner = shape_of(2, (const int64_t[]){features, 4 * units});
    const hr_shape across = shape_of(2, (const int64_t[]){units, 4 * units});
    const uint32_t w = expand_weights(b, s, "weights", &inner, (uint64_t)features, (uint64_t)(4 * units));
    const uint32_t wh =
        expand_weights(b, s, "recurrent_weights", &across, (uint64_t)units, (uint64_t)(4 * units));
    const uint32_t bias = expand_vector(b, "bias", 4 * units, MODEL_INIT_FORGET_BIAS);
    const model_node dense = expand_weighted(HR_OP_DENSE, &(op_attr){0}, s->input[0], w, bias);
    const uint32_t gates = expand_node(b, &dense, "gates");
    const model_node node = {
        .op = HR_OP_LSTM, .in_count = 2, .out_count = 3, .in = {ref_value(gates), ref_param(wh)}};
    const node_out out[] = {{"out", true}, {"cells", true}, {"activated", true}};
    return builder_node(b, &node, out);
}

const layer_kind layer_kind_lstm = {
    "lstm", 1, 1, LAYER_NEEDS_SEQUENCE, {ATTR_UNITS, ATTR_INIT, ATTR_INIT_SCALE}, expand_lstm};
