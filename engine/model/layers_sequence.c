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

// The rows of a larger table that the places take, from row `from` on.
static model_ref rows_of(model_builder *b, const layer_spec *s, const hr_shape *places)
{
    const int64_t written = spec_integer(s, ATTR_ROWS), from = spec_integer(s, ATTR_FROM);
    const int64_t rows = written != 0 ? written : places->dim[0] + from;
    if (rows - from < places->dim[0]) {
        builder_problem(b, "needs rows for its %lld places from row %lld on, had %lld",
                        (long long)places->dim[0], (long long)from, (long long)rows);
        return ref_value(HR_NO_ID);
    }
    const hr_shape shape = shape_of(2, (const int64_t[]){rows, places->dim[1]});
    const uint32_t table = expand_table(b, s, &shape);
    if (rows == places->dim[0]) {
        return ref_param(table);
    }
    const model_node slice = {.op = HR_OP_SLICE,
                              .attr = {.axis = 0, .offset = (int32_t)from, .count = (int32_t)places->dim[0]},
                              .in_count = 1,
                              .out_count = 1,
                              .in = {ref_param(table)}};
    return ref_value(builder_node(b, &slice, &(node_out){"rows", false}));
}

// One learned row for every place, added to what stands there.
static uint32_t expand_position_embedding(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const hr_shape places = shape_of(2, &x.dim[1]);
    const model_ref rows = rows_of(b, s, &places);
    const model_node node = {.op = HR_OP_ADD_BROADCAST, .in_count = 2, .in = {ref_value(s->input[0]), rows}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_position_embedding = {"position_embedding",
                                                  1,
                                                  1,
                                                  LAYER_NEEDS_SEQUENCE,
                                                  {ATTR_ROWS, ATTR_FROM, ATTR_TABLE_INIT, ATTR_INIT_SCALE},
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

uint32_t expand_project(model_builder *b, const layer_spec *s, uint32_t x, int64_t units, const char *name,
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
    const op_attr attr = {.flags = spec_integer(s, ATTR_PACKED) ? OP_FLAG_PACKED : 0};
    const model_node node = expand_weighted(HR_OP_DENSE, &attr, x, w, bias);
    return expand_node(b, &node, result);
}

uint32_t expand_biased(model_builder *b, uint32_t scores, uint32_t bias)
{
    const model_node node = {
        .op = HR_OP_ADD_BROADCAST, .in_count = 2, .in = {ref_value(scores), ref_value(bias)}};
    return expand_node(b, &node, "biased");
}

// The bias of all samples that the layer's last input is; HR_NO_ID when it is a sequence.
static uint32_t bias_of(const model_builder *b, const layer_spec *s)
{
    const uint32_t last = s->input[s->input_count - 1];
    return b->values.data[last].batched ? HR_NO_ID : last;
}

// scores → bias → softmax → dropout → values: the scores are tensors that live until backward.
static uint32_t attend_materialised(model_builder *b, const layer_spec *s, const uint32_t qkv[3])
{
    const op_attr attr = {.heads = (int32_t)spec_integer(s, ATTR_HEADS)};
    op_attr scaled = attr;
    scaled.scale = s->value[ATTR_SCALE].real;
    const model_node scores = {.op = HR_OP_ATTENTION_SCORES,
                               .attr = scaled,
                               .in_count = 2,
                               .in = {ref_value(qkv[0]), ref_value(qkv[1])}};
    const uint32_t made = expand_node(b, &scores, "scores"), bias = bias_of(b, s);
    const uint32_t biased = bias == HR_NO_ID ? made : expand_biased(b, made, bias);
    uint32_t p = softmax_of(b, s, biased, "probabilities");
    p = expand_dropout(b, s->value[ATTR_DROPOUT].real, 0, p, "dropped");
    const model_node values = {
        .op = HR_OP_ATTENTION_VALUES, .attr = attr, .in_count = 2, .in = {ref_value(p), ref_value(qkv[2])}};
    return expand_node(b, &values, "mixed");
}

// Whose module attention is, for execution.as=pytorch: queries, keys and values of three products, or of one and then copied as
// nn.MultiheadAttention does, or views of its result (GPT-2's c_attn).
typedef enum packed_form { PACKED_NOT, PACKED_COPIED, PACKED_VIEWS } packed_form;

static uint32_t attend_streaming(model_builder *b, const layer_spec *s, const uint32_t qkv[3])
{
    op_attr attr = {.heads = (int32_t)spec_integer(s, ATTR_HEADS),
                    .flags = (spec_integer(s, ATTR_CAUSAL) ? OP_FLAG_CAUSAL : 0) |
                             (spec_integer(s, ATTR_PACKED) == PACKED_COPIED ? OP_FLAG_PACKED : 0),
                    .scale = s->value[ATTR_SCALE].real};
    expand_rate(b, s->value[ATTR_DROPOUT].real, &attr);
    const model_node node = {.op = HR_OP_ATTENTION,
                             .attr = attr,
                             .in_count = 3,
                             .out_count = 2,
                             .in = {ref_value(qkv[0]), ref_value(qkv[1]), ref_value(qkv[2])}};
    return builder_node(b, &node, (const node_out[]){{"mixed", true}, {"lse", true}});
}

enum { LAYER_ATTENTION_INPUTS = 3 };

// What the heads of an attention layer are.
typedef struct head_form {
    int64_t heads, kv_heads, features; // features: of a head
} head_form;

static bool read_heads(model_builder *b, const layer_spec *s, head_form *out)
{
    const int64_t width = spec_shape(b, s, 0).dim[2], heads = spec_integer(s, ATTR_HEADS);
    const int64_t given = spec_integer(s, ATTR_KV_HEADS), kv_heads = given != 0 ? given : heads;
    const int64_t head_dim = spec_integer(s, ATTR_HEAD_DIM);
    *out = (head_form){heads, kv_heads, head_dim != 0 ? head_dim : width / heads};
    if (head_dim == 0 && width % heads != 0) {
        builder_problem(b, "needs heads that divide its %lld features, had %lld", (long long)width,
                        (long long)heads);
        return false;
    }
    if (heads % kv_heads != 0) {
        builder_problem(b, "needs kv_heads that divide its %lld heads, had %lld", (long long)heads,
                        (long long)kv_heads);
        return false;
    }
    if (s->value[ATTR_ROTARY].real > 0 && out->features % 2 != 0) {
        builder_problem(b, "needs heads of an even number of features for rotary, had %lld",
                        (long long)out->features);
        return false;
    }
    return true;
}

// [N,L,heads * F] as [N,L,heads,F], or with `copies` as [N,L,heads,copies,F], and back.
static uint32_t split_heads(model_builder *b, uint32_t x, int64_t heads, int64_t features, const char *result)
{
    if (b->broken) {
        return HR_NO_ID;
    }
    const hr_shape in = b->values.data[x].shape;
    const hr_shape apart = shape_of(4, (const int64_t[]){1, in.dim[1], heads, features});
    return builder_reshape(b, x, &apart, result);
}

static uint32_t join_heads(model_builder *b, uint32_t x, int64_t width, const char *result)
{
    if (b->broken) {
        return HR_NO_ID;
    }
    const hr_shape in = b->values.data[x].shape;
    const hr_shape joined = shape_of(3, (const int64_t[]){1, in.dim[1], width});
    return builder_reshape(b, x, &joined, result);
}

// Each head by itself, with gains that all heads share.
static uint32_t norm_heads(model_builder *b, const layer_spec *s, uint32_t x, int64_t heads, int64_t features,
                           const char *name)
{
    char gamma_name[32], apart_name[32], out_name[32], rstd_name[32], joined_name[32];
    (void)snprintf(gamma_name, sizeof gamma_name, "%s_gamma", name);
    (void)snprintf(apart_name, sizeof apart_name, "%s_heads", name);
    (void)snprintf(out_name, sizeof out_name, "%s_normed", name);
    (void)snprintf(rstd_name, sizeof rstd_name, "%s_rstd", name);
    (void)snprintf(joined_name, sizeof joined_name, "%s_joined", name);
    const uint32_t apart = split_heads(b, x, heads, features, apart_name);
    const uint32_t gamma = expand_vector(b, gamma_name, features, MODEL_INIT_ONES);
    const model_node node = {.op = HR_OP_RMS_NORM,
                             .attr = {.epsilon = s->value[ATTR_QK_EPSILON].real},
                             .in_count = 2,
                             .out_count = 2,
                             .in = {ref_value(apart), ref_param(gamma)}};
    const uint32_t normed = builder_node(b, &node, (const node_out[]){{out_name, true}, {rstd_name, true}});
    return join_heads(b, normed, heads * features, joined_name);
}

static uint32_t turn_heads(model_builder *b, const layer_spec *s, uint32_t x, int64_t heads, const char *name)
{
    char result[32];
    (void)snprintf(result, sizeof result, "%s_rotary", name);
    const model_node node = {.op = HR_OP_ROTARY,
                             .attr = {.heads = (int32_t)heads, .base = s->value[ATTR_ROTARY].real},
                             .in_count = 1,
                             .in = {ref_value(x)}};
    return expand_node(b, &node, result);
}

// Every head of keys or values once for each of the queries' heads that share it.
static uint32_t repeat_heads(model_builder *b, const head_form *h, uint32_t x, const char *name)
{
    char apart_name[32], copies_name[32], joined_name[32];
    if (h->kv_heads == h->heads) {
        return x;
    }
    (void)snprintf(apart_name, sizeof apart_name, "%s_apart", name);
    (void)snprintf(copies_name, sizeof copies_name, "%s_copies", name);
    (void)snprintf(joined_name, sizeof joined_name, "%s_repeated", name);
    const uint32_t apart = split_heads(b, x, h->kv_heads, h->features, apart_name);
    const model_node node = {.op = HR_OP_STACK,
                             .attr = {.axis = 3, .count = (int32_t)(h->heads / h->kv_heads)},
                             .in_count = 1,
                             .in = {ref_value(apart)}};
    return join_heads(b, expand_node(b, &node, copies_name), h->heads * h->features, joined_name);
}

// A projection of `heads` heads, normed and turned where the layer says so.
static uint32_t project_heads(model_builder *b, const layer_spec *s, uint32_t x, int64_t heads,
                              const head_form *h, const char *name)
{
    uint32_t y = expand_project(b, s, x, heads * h->features, name, name);
    y = s->value[ATTR_QK_EPSILON].real > 0 ? norm_heads(b, s, y, heads, h->features, name) : y;
    return s->value[ATTR_ROTARY].real > 0 ? turn_heads(b, s, y, heads, name) : y;
}

// One projection's bias, where the layer says something else of it than of all.
static void take_bias(layer_spec *of, attr_id attr)
{
    if (spec_integer(of, attr) != 0) {
        of->value[ATTR_BIAS].integer = spec_integer(of, attr) == 2 ? LAYER_BIAS : LAYER_BIAS_NONE;
    }
}

// A bias is the last input: [heads, queries, keys], of scores that are there.
static bool takes_bias(model_builder *b, const layer_spec *s, uint32_t source)
{
    char text[SHAPE_TEXT_MAX];
    if (bias_of(b, s) == HR_NO_ID) {
        if (s->input_count == LAYER_ATTENTION_INPUTS) {
            builder_problem(b, "needs a relative_bias layer as its third input");
        }
        return s->input_count < LAYER_ATTENTION_INPUTS;
    }
    const hr_shape bias = spec_shape(b, s, s->input_count - 1);
    const hr_shape wanted =
        shape_of(3, (const int64_t[]){spec_integer(s, ATTR_HEADS), spec_shape(b, s, 0).dim[1],
                                      b->values.data[source].shape.dim[1]});
    if (spec_integer(s, ATTR_FORM) == 0) {
        builder_problem(b, "adds its bias to scores: write form: materialised");
    } else if (!shape_equal(&bias, &wanted)) {
        char needed[SHAPE_TEXT_MAX];
        builder_problem(b, "needs a bias of %s (heads, queries, keys), had %s",
                        shape_text(&wanted, needed, sizeof needed), shape_text(&bias, text, sizeof text));
    }
    return !b->broken;
}

// Queries from the first input; keys and values from the second where there is one; a bias may stand last.
static uint32_t expand_attention(model_builder *b, const layer_spec *s)
{
    const int64_t width = spec_shape(b, s, 0).dim[2];
    const bool streams = spec_integer(s, ATTR_FORM) == 0;
    const uint32_t sequences = s->input_count - (bias_of(b, s) == HR_NO_ID ? 0 : 1);
    const uint32_t source = s->input[sequences - 1];
    if (!streams && spec_integer(s, ATTR_PACKED) == PACKED_COPIED) {
        builder_problem(b, "is packed, which needs form: streaming, had materialised");
    }
    head_form h;
    if (!takes_bias(b, s, source) || !read_heads(b, s, &h)) {
        return HR_NO_ID;
    }
    layer_spec keys = *s;
    take_bias(&keys, ATTR_KEY_BIAS);
    const uint32_t q = project_heads(b, s, s->input[0], h.heads, &h, "query");
    const uint32_t k = project_heads(b, &keys, source, h.kv_heads, &h, "key");
    const uint32_t v = expand_project(b, s, source, h.kv_heads * h.features, "value", "value");
    const uint32_t qkv[] = {q, repeat_heads(b, &h, k, "key"), repeat_heads(b, &h, v, "value")};
    const uint32_t mixed = (streams ? attend_streaming : attend_materialised)(b, s, qkv);
    layer_spec output = *s;
    if (s->value[ATTR_OUTPUT_SCALE].real > 0) {
        output.value[ATTR_INIT_SCALE] = s->value[ATTR_OUTPUT_SCALE];
    }
    take_bias(&output, ATTR_OUTPUT_BIAS);
    return expand_project(b, &output, mixed, width, "output", "out");
}

const layer_kind layer_kind_attention = {"attention",
                                         1,
                                         LAYER_ATTENTION_INPUTS,
                                         LAYER_NEEDS_BIASED,
                                         {ATTR_HEADS, ATTR_KV_HEADS, ATTR_HEAD_DIM, ATTR_ROTARY,
                                          ATTR_QK_EPSILON, ATTR_SCALE, ATTR_FORM, ATTR_CAUSAL, ATTR_PACKED,
                                          ATTR_DROPOUT, ATTR_BIAS, ATTR_KEY_BIAS, ATTR_OUTPUT_BIAS, ATTR_INIT,
                                          ATTR_INIT_SCALE, ATTR_OUTPUT_SCALE},
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

// Keras' with reset_after, which is PyTorch's: the gates stand in Keras's order z, r, n, and the product across has a bias.
static uint32_t expand_gru(model_builder *b, const layer_spec *s)
{
    const int64_t features = spec_shape(b, s, 0).dim[2];
    const int64_t units = spec_integer(s, ATTR_UNITS);
    const hr_shape inner = shape_of(2, (const int64_t[]){features, 3 * units});
    const hr_shape across = shape_of(2, (const int64_t[]){units, 3 * units});
    const uint32_t w = expand_weights(b, s, "weights", &inner, (uint64_t)features, (uint64_t)(3 * units));
    const uint32_t wh =
        expand_weights(b, s, "recurrent_weights", &across, (uint64_t)units, (uint64_t)(3 * units));
    const uint32_t bias = expand_vector(b, "bias", 3 * units, MODEL_INIT_ZEROS);
    const uint32_t bh = expand_vector(b, "recurrent_bias", 3 * units, MODEL_INIT_ZEROS);
    const model_node dense = expand_weighted(HR_OP_DENSE, &(op_attr){0}, s->input[0], w, bias);
    const uint32_t gates = expand_node(b, &dense, "gates");
    const model_node node = {.op = HR_OP_GRU,
                             .in_count = 3,
                             .out_count = 2,
                             .in = {ref_value(gates), ref_param(wh), ref_param(bh)}};
    const node_out out[] = {{"out", true}, {"activated", true}};
    return builder_node(b, &node, out);
}

const layer_kind layer_kind_gru = {
    "gru", 1, 1, LAYER_NEEDS_SEQUENCE, {ATTR_UNITS, ATTR_INIT, ATTR_INIT_SCALE}, expand_gru};
