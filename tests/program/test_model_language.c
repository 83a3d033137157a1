// SPDX-License-Identifier: Apache-2.0
// What a person may say in a model: repeats, references, shared parameters, defaults, several inputs and losses,
// every kind of layer; and what is said when it is wrong.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "model/layer_kind.h"
#include "program/model_checks.h"

static const model_layer *layer_of(const hr_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->layer_count; i++) {
        if (strcmp(m->layers[i].name, name) == 0) {
            return &m->layers[i];
        }
    }
    ck_abort_msg("no layer '%s'", name);
}

// The n-th node of the layer.
static const model_node *node_of(const hr_model *m, const char *layer, uint32_t nth)
{
    for (uint32_t i = 0; i < m->node_count; i++) {
        const uint32_t owner = m->nodes[i].layer;
        if (owner != HR_NO_ID && strcmp(m->layers[owner].name, layer) == 0 && nth-- == 0) {
            return &m->nodes[i];
        }
    }
    ck_abort_msg("layer '%s' has fewer nodes", layer);
}

static const char *input_name(const hr_model *m, const char *layer, uint32_t input)
{
    return m->values[node_of(m, layer, 0)->in[input].index].name;
}

// ---- repeats --------------------------------------------------------------------------------------------------

#define FEATURES(classes) "model:\n  input: {shape: [6]}\n  classes: " classes "\n  layers:\n"

START_TEST(rounds_are_numbered_and_know_what_stood_before)
{
    hr_model *m = model_from_text(FEATURES("6") // line 5 on
                                  "    - {name: first, kind: dense, units: 6}\n"
                                  "    - repeat: 3\n"
                                  "      index: i\n"
                                  "      layers:\n"
                                  "        - {name: \"d{i}\", kind: dense, units: 6}\n"
                                  "        - {name: \"r{i+1}\", kind: relu}\n"
                                  "        - {name: \"a{i}\", kind: add, inputs: [before, previous]}\n"
                                  "    - {name: last, kind: add, inputs: [a2, \"d0\"]}\n");
    assert_consistent(m);
    ck_assert_uint_eq(m->layer_count, 11);
    ck_assert_str_eq(input_name(m, "d0", 0), "first/out");
    ck_assert_str_eq(input_name(m, "a0", 0), "first/out");
    ck_assert_str_eq(input_name(m, "a0", 1), "r1/out");
    ck_assert_str_eq(input_name(m, "d2", 0), "a1/out");
    ck_assert_str_eq(input_name(m, "a2", 0), "a1/out");
    ck_assert_str_eq(input_name(m, "last", 1), "d0/out");
    model_destroy(m);
}
END_TEST

START_TEST(nested_rounds_use_the_nearest_index)
{
    hr_model *m =
        model_from_text(FEATURES("6") "    - repeat: 2\n"
                                      "      index: s\n"
                                      "      layers:\n"
                                      "        - repeat: 2\n"
                                      "          index: i\n"
                                      "          layers:\n"
                                      "            - {name: \"s{s}_d{i}\", kind: dense, units: 6}\n"
                                      "            - {kind: relu}\n"
                                      "        - {name: \"s{s}\", kind: add, inputs: [before, previous]}\n");
    assert_consistent(m);
    ck_assert_uint_eq(m->layer_count, 10);
    ck_assert_str_eq(input_name(m, "s0", 0), "input");
    ck_assert_str_eq(input_name(m, "s0", 1), "relu_1/out");
    ck_assert_str_eq(input_name(m, "s1", 0), "s0/out");
    ck_assert_str_eq(input_name(m, "s1_d1", 0), "relu_2/out");
    model_destroy(m);
}
END_TEST

START_TEST(as_many_rounds_as_a_model_may_have_layers_are_read)
{
    hr_model *m =
        model_from_text(FEATURES("6") "    - repeat: 32768\n      layers:\n        - {kind: relu}\n");
    ck_assert_uint_eq(m->layer_count, 32768);
    ck_assert_str_eq(m->layers[32767].name, "relu_32767");
    model_destroy(m);
}
END_TEST

// ---- shared parameters ----------------------------------------------------------------------------------------

START_TEST(shared_parameters_stand_once)
{
    hr_model *m =
        model_from_text(FEATURES("6") "    - {name: a, kind: dense, units: 6}\n"
                                      "    - repeat: 4\n"
                                      "      index: i\n"
                                      "      layers:\n"
                                      "        - {name: \"b{i}\", kind: dense, units: 6, share: a}\n"
                                      "    - {name: c, kind: dense, units: 6, share: b2}\n");
    assert_consistent(m);
    ck_assert_uint_eq(m->param_count, 2);
    ck_assert_uint_eq(m->parameters, 42);
    ck_assert_uint_eq(layer_of(m, "a")->parameters, 42);
    ck_assert_uint_eq(layer_of(m, "c")->parameters, 0);
    for (uint32_t k = 1; k < 3; k++) {
        ck_assert(node_of(m, "c", 0)->in[k].is_param);
        ck_assert_uint_eq(node_of(m, "c", 0)->in[k].index, node_of(m, "a", 0)->in[k].index);
    }
    model_destroy(m);
}
END_TEST

#define IDS "model:\n  input: {type: int32, classes: 9, shape: [5]}\n  classes: 9\n  layers:\n"

START_TEST(an_embedding_serves_as_the_output_layer)
{
    hr_model *m = model_from_text(IDS "    - {name: table, kind: embedding, units: 4}\n"
                                      "    - {name: out, kind: dense, units: 9, bias: false, transpose: true,"
                                      " share: table}\n");
    assert_consistent(m);
    ck_assert_uint_eq(m->parameters, 36);
    assert_shape(&param_of(m, "table/weights")->shape, "9x4");
    ck_assert_int_eq(node_of(m, "out", 0)->attr.flags, OP_FLAG_TRANSPOSE);
    assert_value(m, "out/out", "1x5x9");
    assert_value(m, "labels", "1x5");
    ck_assert_int_eq(m->values[m->slots[0].value].dtype, HR_I32);
    ck_assert_uint_eq(m->slots[0].classes, 9);
    model_destroy(m);
}
END_TEST

START_TEST(a_layer_that_shares_may_have_a_bias_of_its_own)
{
    hr_model *m = model_from_text(IDS "    - {name: table, kind: embedding, units: 4}\n"
                                      "    - {name: out, kind: dense, units: 9, bias: own, transpose: true,"
                                      " share: table}\n");
    assert_consistent(m);
    ck_assert_uint_eq(m->parameters, 36 + 9);
    ck_assert_uint_eq(layer_of(m, "out")->parameters, 9);
    assert_shape(&param_of(m, "out/bias")->shape, "9");
    ck_assert_uint_eq(node_of(m, "out", 0)->in_count, 3);
    model_destroy(m);
    m = model_from_text(FEATURES("6") "    - {name: a, kind: dense, units: 6, bias: own}\n");
    ck_assert_uint_eq(m->parameters, 42);
    model_destroy(m);
}
END_TEST

START_TEST(the_output_of_attention_has_a_bias_as_the_others_or_as_it_says)
{
    static const struct {
        const char *words;
        uint64_t parameters;
    } rows[] = {{"", 4 * 20},
                {", bias: false", 4 * 16},
                {", output_bias: false", 3 * 20 + 16},
                {", bias: false, output_bias: true", 3 * 16 + 20},
                {", output_bias: as_bias", 4 * 20}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char words[512];
        (void)snprintf(words, sizeof words,
                       IDS "    - {name: table, kind: embedding, units: 4}\n"
                           "    - {name: mix, kind: attention, heads: 2%s}\n"
                           "    - {name: out, kind: dense, units: 9}\n",
                       rows[k].words);
        hr_model *m = model_from_text(words);
        assert_consistent(m);
        ck_assert_uint_eq(layer_of(m, "mix")->parameters, rows[k].parameters);
        model_destroy(m);
    }
}
END_TEST

START_TEST(places_take_rows_of_a_larger_table)
{
    hr_model *m = model_from_text(IDS "    - {name: table, kind: embedding, units: 4}\n"
                                      "    - {name: places, kind: position_embedding, rows: 9, from: 2}\n"
                                      "    - {name: out, kind: dense, units: 9}\n");
    assert_consistent(m);
    assert_shape(&param_of(m, "places/weights")->shape, "9x4");
    ck_assert_int_eq(node_of(m, "places", 0)->op, HR_OP_SLICE);
    ck_assert_int_eq(node_of(m, "places", 0)->attr.offset, 2);
    assert_value(m, "places/rows", "5x4");
    model_destroy(m);
    m = model_from_text(IDS "    - {name: table, kind: embedding, units: 4}\n"
                            "    - {name: places, kind: position_embedding, rows: 5}\n"
                            "    - {name: out, kind: dense, units: 9}\n");
    ck_assert_int_eq(node_of(m, "places", 0)->op, HR_OP_ADD_BROADCAST);
    model_destroy(m);
}
END_TEST

// ---- defaults -------------------------------------------------------------------------------------------------

START_TEST(defaults_hold_until_a_layer_says_otherwise)
{
    hr_model *m = model_from_text("model:\n  input: {shape: [8, 8, 3]}\n  classes: 2\n"
                                  "  defaults:\n"
                                  "    conv2d: {filters: 2, kernel: 3, bias: false, padding: 1}\n"
                                  "    batch_norm: {epsilon: 0.5}\n"
                                  "  layers:\n"
                                  "    - {name: a, kind: conv2d}\n"
                                  "    - {name: b, kind: conv2d, kernel: 1, bias: true, padding: valid}\n"
                                  "    - {name: n, kind: batch_norm}\n"
                                  "    - {kind: global_avg_pool}\n");
    assert_consistent(m);
    assert_shape(&param_of(m, "a/weights")->shape, "3x3x3x2");
    assert_shape(&param_of(m, "b/weights")->shape, "1x1x2x2");
    ck_assert_uint_eq(node_of(m, "a", 0)->in_count, 2);
    ck_assert_uint_eq(node_of(m, "b", 0)->in_count, 3);
    ck_assert_int_eq(node_of(m, "b", 0)->attr.pad_top, 0);
    ck_assert_double_eq(node_of(m, "n", 0)->attr.epsilon, 0.5);
    model_destroy(m);
}
END_TEST

// ---- inputs and losses ----------------------------------------------------------------------------------------

START_TEST(several_inputs_labels_and_losses_are_told_apart)
{
    hr_model *m =
        model_from_text("model:\n"
                        "  inputs:\n"
                        "    - {name: words, type: int32, classes: 7, shape: [4]}\n"
                        "    - {name: picture, shape: [4, 6]}\n"
                        "  labels:\n"
                        "    - {name: teacher, type: float32, shape: [4, 3]}\n"
                        "    - {name: mask, type: uint8, classes: 3}\n"
                        "  losses:\n"
                        "    - {kind: softmax_cross_entropy, prediction: head, labels: mask}\n"
                        "    - {kind: kl, prediction: head, labels: teacher, temperature: 3, weight: 0.25}\n"
                        "  layers:\n"
                        "    - {name: e, kind: embedding, units: 6, input: words}\n"
                        "    - {name: both, kind: concat, inputs: [e, picture]}\n"
                        "    - {name: head, kind: dense, units: 3}\n");
    assert_consistent(m);
    static const char *const slots[] = {"words", "picture", "teacher", "mask"};
    static const hr_dtype types[] = {HR_I32, HR_F32, HR_F32, HR_U8};
    static const uint32_t classes[] = {7, 0, 0, 3};
    ck_assert_uint_eq(m->slot_count, 4);
    for (uint32_t k = 0; k < 4; k++) {
        ck_assert_str_eq(m->values[m->slots[k].value].name, slots[k]);
        ck_assert_int_eq(m->values[m->slots[k].value].dtype, types[k]);
        ck_assert_uint_eq(m->slots[k].classes, classes[k]);
        ck_assert_int_eq(m->slots[k].is_label, k >= 2);
    }
    ck_assert_uint_eq(m->loss_count, 2);
    const model_node *kl = &m->nodes[m->node_count - 1];
    ck_assert_int_eq(kl->op, HR_OP_KL);
    ck_assert_double_eq(kl->attr.epsilon, 3);
    ck_assert_double_eq(kl->attr.scale, 0.25);
    ck_assert_double_eq(m->losses[1].weight, 0.25);
    ck_assert_double_eq(m->nodes[m->node_count - 2].attr.scale, 0);
    assert_value(m, "loss_1", "1");
    model_destroy(m);
}
END_TEST

// As a mask beside a picture: floats of the prediction's shape; a focal loss has torchvision's numbers unless it says others.
START_TEST(binary_losses_have_float_labels_of_zeros_and_ones)
{
    hr_model *m = model_from_text("model:\n"
                                  "  input: {shape: [6]}\n"
                                  "  labels: [{name: tags}, {name: more}]\n"
                                  "  losses:\n"
                                  "    - {kind: binary_cross_entropy, prediction: code, labels: tags}\n"
                                  "    - {kind: focal, labels: more}\n"
                                  "    - {kind: focal, labels: more, gamma: 0.5, alpha: 0, weight: 3}\n"
                                  "  layers:\n"
                                  "    - {name: code, kind: dense, units: 6}\n"
                                  "    - {name: again, kind: dense, units: 4}\n");
    assert_consistent(m);
    for (uint32_t k = 1; k < 3; k++) {
        ck_assert(m->slots[k].is_label && m->slots[k].binary);
        ck_assert_int_eq(m->values[m->slots[k].value].dtype, HR_F32);
    }
    ck_assert(!m->slots[0].binary && !m->losses[0].classifies && !m->losses[1].classifies);
    assert_value(m, "more", "1x4");
    const model_node *focal = &m->nodes[m->node_count - 1];
    ck_assert_int_eq(focal[-2].op, HR_OP_BINARY_XENT);
    ck_assert_int_eq(focal->op, HR_OP_FOCAL);
    ck_assert_double_eq(focal[-1].attr.rate, 2);
    ck_assert_double_eq(focal[-1].attr.momentum, 0.25);
    ck_assert_double_eq(focal->attr.rate, 0.5);
    ck_assert_double_eq(focal->attr.momentum, 0);
    ck_assert_double_eq(focal->attr.scale, 3);
    model_destroy(m);
}
END_TEST

// Whichever of a label's losses is written first.
START_TEST(a_label_of_two_losses_is_binary_where_one_of_them_takes_logits)
{
    static const char *const losses[] = {"{kind: mean_squared_error}, {kind: focal}",
                                         "{kind: focal}, {kind: mean_squared_error}",
                                         "{kind: mean_squared_error}, {kind: binary_cross_entropy}",
                                         "{kind: mean_squared_error}, {kind: mean_squared_error}"};
    for (size_t k = 0; k < COUNT(losses); k++) {
        char model[512];
        (void)snprintf(model, sizeof model,
                       "model:\n  input: {shape: [6]}\n  labels: {type: float32}\n  losses: [%s]\n"
                       "  layers: [{kind: dense, units: 4}]\n",
                       losses[k]);
        hr_model *m = model_from_text(model);
        ck_assert_int_eq(m->slots[1].binary, k < 3);
        model_destroy(m);
    }
}
END_TEST

START_TEST(a_prediction_need_not_be_the_last_layer)
{
    hr_model *m = model_from_text("model:\n"
                                  "  input: {shape: [6]}\n"
                                  "  labels: {type: float32}\n"
                                  "  losses:\n"
                                  "    - {kind: mean_squared_error, prediction: code}\n"
                                  "    - {kind: mean_squared_error, weight: 2}\n"
                                  "  layers:\n"
                                  "    - {name: code, kind: dense, units: 6, activation: tanh}\n"
                                  "    - {name: again, kind: dense, units: 6}\n");
    assert_consistent(m);
    ck_assert_uint_eq(m->losses[0].prediction, layer_of(m, "code")->output);
    ck_assert_uint_eq(m->losses[1].prediction, layer_of(m, "again")->output);
    ck_assert_uint_eq(m->losses[0].labels, m->losses[1].labels);
    ck_assert_uint_eq(m->slot_count, 2);
    model_destroy(m);
}
END_TEST

// ---- kinds ----------------------------------------------------------------------------------------------------

// In two parts: a literal has at most 4,095 characters.
static const char image_kinds[] =
    "model:\n"
    "  inputs:\n"
    "    - {name: image, shape: [9, 9, 4]}\n"
    "    - {name: ids, type: int32, classes: 11, shape: [6]}\n"
    "  labels:\n"
    "    - {name: picture}\n"
    "    - {name: words, type: int32, classes: 11}\n"
    "  losses:\n"
    "    - {kind: mean_squared_error, prediction: back, labels: picture}\n"
    "    - {kind: softmax_cross_entropy, prediction: words_out, labels: words}\n"
    "  layers:\n"
    "    - {name: pad, kind: zero_pad, padding: [0, 1, 0, 1], input: image}\n"
    "    - {name: conv, kind: conv2d, filters: 8, kernel: 3, padding: same, groups: 2, activation: silu}\n"
    "    - {kind: batch_norm, activation: relu6}\n"
    "    - {kind: depthwise_conv2d, kernel: 3, padding: 1, multiplier: 2, bias: false}\n"
    "    - {name: pooled, kind: max_pool, size: 2}\n"
    "    - {name: mean, kind: avg_pool, size: 2, input: conv, count_padding: true}\n"
    "    - {name: thin, kind: separable_conv2d, filters: 8, kernel: 3, padding: same, input: pooled}\n"
    "    - {name: squeezed, kind: global_avg_pool, input: thin}\n"
    "    - {name: gate, kind: reshape, shape: [1, 1, 8]}\n"
    "    - {kind: multiply, inputs: [thin, mean], activation: sigmoid}\n"
    "    - {name: gated, kind: multiply, inputs: [previous, gate]}\n"
    "    - {kind: upsample, size: 2}\n"
    "    - {kind: upsample, to: [5, 12], mode: bilinear}\n"
    "    - {kind: avg_pool, to: [3, 7]}\n"
    "    - {kind: avg_pool, to: [3, 1]}\n"
    "    - {kind: upsample, to: 10, mode: bilinear, align_corners: true}\n"
    "    - {name: wide, kind: conv2d_transpose, filters: 3, kernel: 3, stride: 2, padding: same}\n"
    "    - {name: cut, kind: slice, axis: 1, from: 2, count: 5}\n"
    "    - {kind: layer_norm}\n"
    "    - {name: grouped_norm, kind: group_norm, groups: 3, activation: silu}\n"
    "    - {kind: rms_norm}\n"
    "    - {kind: relu}\n"
    "    - {kind: relu6}\n"
    "    - {kind: silu}\n"
    "    - {kind: gelu}\n"
    "    - {kind: gelu, approximate: true}\n"
    "    - {kind: tanh}\n"
    "    - {kind: sigmoid}\n"
    "    - {kind: hard_sigmoid}\n"
    "    - {kind: hard_swish}\n"
    "    - {kind: leaky_relu, slope: 0.2}\n"
    "    - {kind: softplus}\n"
    "    - {kind: mish}\n"
    "    - {kind: scale, factor: -0.5}\n"
    "    - {name: gains, kind: layer_scale, initial: 1e-6}\n"
    "    - {name: turned, kind: permute, axes: [3, 1, 2]}\n"
    "    - {kind: permute, axes: [2, 3, 1]}\n"
    "    - {name: rolled, kind: roll, shift: [-2, 3]}\n"
    "    - {name: patches, kind: pixel_unshuffle, size: [1, 2]}\n"
    "    - {name: shuffled, kind: channel_shuffle, groups: 3}\n"
    "    - {name: pixels, kind: pixel_shuffle, size: [1, 2]}\n"
    "    - {name: paths, kind: stochastic_depth, rate: 0.2}\n"
    "    - {kind: stochastic_depth, rate: 0}\n"
    "    - {name: windows, kind: window_attention, heads: 3, size: [5, 4], shift: [2, 1], dropout: 0.1}\n"
    "    - {kind: window_attention, heads: 1, size: [1, 5], bias: false}\n"
    "    - {name: merged, kind: patch_merging, size: [5, 2]}\n"
    "    - {kind: stack, axis: 1, count: 3}\n"
    "    - {kind: reduce, axis: 1, of: mean}\n"
    "    - {name: image_features, kind: global_avg_pool}\n"
    "    - {kind: dense, units: 24}\n"
    "    - {name: memory, kind: reshape, shape: [6, 4]}\n";
static const char sequence_kinds[] =
    "    - {kind: embedding, units: 4, vocabulary: 20, input: ids, init: normal, init_scale: 0.02}\n"
    "    - {kind: position_embedding}\n"
    "    - {name: steps, kind: conv1d, filters: 4, kernel: 3, padding: causal, dilation: 2}\n"
    "    - {kind: max_pool1d, size: 1}\n"
    "    - {kind: avg_pool1d, size: 1}\n"
    "    - {name: self, kind: attention, heads: 2, causal: true}\n"
    "    - {name: cross, kind: attention, heads: 2, form: materialised, dropout: 0.1, inputs: [self, "
    "memory]}\n"
    "    - {name: grouped, kind: attention, heads: 4, kv_heads: 2, head_dim: 6, rotary: 10000, bias: false,\n"
    "       qk_norm_epsilon: 1e-6, causal: true}\n"
    "    - {name: near, kind: relative_bias, heads: 2, buckets: 6, distance: 20, causal: true}\n"
    "    - {name: biased, kind: attention, heads: 2, form: materialised, scale: 0.5, inputs: [grouped, "
    "near]}\n"
    "    - {name: drop, kind: dropout, rate: 0.25}\n"
    "    - {name: memories, kind: lstm, units: 4}\n"
    "    - {name: remembered, kind: gru, units: 4}\n"
    "    - {name: experts, kind: mixture_of_experts, experts: 3, units: 5, capacity_factor: 1, balance: "
    "0.1}\n"
    "    - {name: products, kind: matmul, transpose: true, inputs: [experts, cross]}\n"
    "    - {name: shares, kind: softmax, causal: true}\n"
    "    - {name: mixed, kind: matmul, inputs: [shares, memories]}\n"
    "    - {name: joined, kind: concat, axis: 1, inputs: [mixed, memories]}\n"
    "    - {name: token, kind: class_token}\n"
    "    - {name: words_out, kind: dense, units: 11}\n"
    "    - {name: flat, kind: flatten, input: memories}\n"
    "    - {name: back_features, kind: dense, units: 24}\n"
    "    - {name: back, kind: add, inputs: [previous, flat]}\n";

static const char *every_kind(void)
{
    static char whole[sizeof image_kinds + sizeof sequence_kinds];
    (void)snprintf(whole, sizeof whole, "%s%s", image_kinds, sequence_kinds);
    return whole;
}

// Its own shape behind the batch of its first input, and its parameters as one vector.
START_TEST(an_opaque_layer_is_what_is_written)
{
    hr_model *m = model_from_text(
        "model:\n"
        "  input: {shape: [6, 4]}\n"
        "  classes: 3\n"
        "  loss: softmax_cross_entropy\n"
        "  layers:\n"
        "    - {name: left, kind: dense, units: 2}\n"
        "    - {name: odd, kind: opaque, inputs: [left, input], shape: [5, 1, 2, 3], parameters: 7}\n"
        "    - {kind: flatten}\n"
        "    - {kind: dense, units: 3}\n");
    assert_consistent(m);
    assert_value(m, "odd/out", "1x5x1x2x3");
    ck_assert_uint_eq(node_of(m, "odd", 0)->in_count, 3);
    ck_assert_uint_eq(m->parameters, 4 * 2 + 2 + 7 + 30 * 3 + 3);
    model_destroy(m);
}
END_TEST

START_TEST(every_kind_of_layer_expands)
{
    hr_model *m = model_from_text(every_kind());
    assert_consistent(m);
    for (layer_kind_id id = 0; id < LAYER_KIND_COUNT; id++) {
        bool used = id == LAYER_opaque; // above
        for (uint32_t k = 0; k < m->layer_count && !used; k++) {
            used = strcmp(m->layers[k].kind, layer_kind_at(id)->name) == 0;
        }
        ck_assert_msg(used, "no layer is a %s", layer_kind_at(id)->name);
    }
    assert_value(m, "pad/out", "1x10x10x4");
    assert_value(m, "wide/out", "1x20x20x3");
    assert_value(m, "cut/out", "1x5x20x3");
    assert_value(m, "turned/out", "1x3x5x20");
    assert_value(m, "patches/apart", "5x1x10x2x3");
    assert_value(m, "patches/permuted", "5x10x3x1x2");
    assert_value(m, "patches/out", "1x5x10x6");
    assert_value(m, "pixels/out", "1x5x20x3");
    assert_value(m, "paths/factors", "1");
    assert_value(m, "windows/windows", "5x20x3");
    assert_value(m, "windows/bias", "15x20x20");
    assert_value(m, "windows/scores_beside", "1x15x20x20");
    assert_value(m, "windows/probabilities", "5x3x20x20");
    assert_value(m, "windows/out", "1x5x20x3");
    ck_assert_uint_eq(layer_of(m, "windows")->parameters, 4 * (9 + 3) + 9 * 7 * 3);
    assert_value(m, "merged/out", "1x1x10x30");
    assert_value(m, "self/lse", "1x2x6");
    assert_value(m, "cross/probabilities", "1x2x6x6");
    assert_value(m, "grouped/query_rotary", "1x6x24");
    assert_value(m, "grouped/key_rotary", "1x6x12");
    assert_value(m, "grouped/key_copies", "1x6x2x2x6");
    assert_value(m, "grouped/value_repeated", "1x6x24");
    assert_value(m, "near/bias", "2x6x6");
    assert_value(m, "biased/biased", "1x2x6x6");
    ck_assert_double_eq(node_of(m, "biased", 3)->attr.scale, 0.5);
    assert_value(m, "experts/slots", "1x6x2");
    assert_value(m, "experts/dispatched", "1x4x3x4");
    assert_value(m, "experts/gated", "1x4x3x5");
    assert_value(m, "joined/out", "1x12x4");
    assert_value(m, "token/out", "1x13x4");
    assert_value(m, "words", "1x13");
    model_destroy(m);
}
END_TEST

START_TEST(parameters_of_attention_and_lstm_are_those_of_keras)
{
    hr_model *m = model_from_text(every_kind());
    ck_assert_uint_eq(layer_of(m, "self")->parameters, 4 * (4 * 4 + 4));
    ck_assert_uint_eq(layer_of(m, "grouped")->parameters, 4 * 24 + 2 * 4 * 12 + 24 * 4 + 2 * 6);
    ck_assert_uint_eq(layer_of(m, "memories")->parameters, 4 * 16 + 4 * 16 + 16);
    ck_assert_int_eq(param_of(m, "memories/bias")->init, MODEL_INIT_FORGET_BIAS);
    ck_assert_uint_eq(layer_of(m, "remembered")->parameters, 3 * 16 + 3 * 16 + 2 * 12);
    ck_assert_int_eq(param_of(m, "remembered/recurrent_bias")->init, MODEL_INIT_ZEROS);
    static const char *const names[] = {"self/query_weights",  "self/query_bias",    "self/key_weights",
                                        "self/key_bias",       "self/value_weights", "self/value_bias",
                                        "self/output_weights", "self/output_bias"};
    uint32_t first = 0;
    while (strcmp(m->params[first].name, names[0]) != 0) {
        first++;
    }
    for (uint32_t k = 0; k < COUNT(names); k++) {
        ck_assert_str_eq(m->params[first + k].name, names[k]);
    }
    model_destroy(m);
}
END_TEST

START_TEST(dropout_is_known_by_its_layer_and_vanishes_at_rate_zero)
{
    hr_model *m = model_from_text(FEATURES("6") "    - {name: one, kind: dropout, rate: 0.5}\n"
                                                "    - {name: none, kind: dropout, rate: 0}\n"
                                                "    - {name: two, kind: dropout, rate: 0.5}\n");
    assert_consistent(m);
    ck_assert_uint_eq(node_of(m, "one", 0)->attr.salt, hash64("one", 3, 0));
    ck_assert_uint_eq(node_of(m, "two", 0)->attr.salt, hash64("two", 3, 0));
    ck_assert_uint_eq(layer_of(m, "none")->output, layer_of(m, "one")->output);
    ck_assert_uint_eq(m->node_count, 3);
    model_destroy(m);
}
END_TEST

// ---- bad models -----------------------------------------------------------------------------------------------

#define OUT "    - {name: out, kind: dense, units: 6}\n"
#define REPEAT(count, layer)                                                                                 \
    FEATURES("6") "    - repeat: " count "\n      index: i\n      layers:\n        - " layer "\n" OUT
#define TWO(layer) FEATURES("6") "    - {name: a, kind: dense, units: 6}\n    - " layer "\n" OUT
#define BIAS(layer)                                                                                          \
    FEATURES("6")                                                                                            \
    "    - {name: r, kind: reshape, shape: [3, 2]}\n    - {name: b, kind: relative_bias, heads: 3}\n"        \
    "    - " layer "\n    - {kind: flatten}\n" OUT
#define PIXELS(layer)                                                                                        \
    FEATURES("6")                                                                                            \
    "    - {name: r, kind: reshape, shape: [1, 2, 3]}\n    - " layer "\n    - {kind: flatten}\n" OUT
#define LOSSES(text) "model:\n  input: {shape: [6]}\n" text "  layers:\n" OUT

static const bad_model bad_models[] = {
    // repeats
    {REPEAT("0", "{kind: relu}"), 5, 1, {"repeat", "1 to 32768", "'0'"}},
    {REPEAT("100000", "{kind: relu}"), 5, 1, {"1 to 32768", "'100000'"}},
    {REPEAT("3", "{name: x, kind: relu}"), 8, 1, {"layer 'x' (relu)", "line 8", "its index"}},
    {REPEAT("3", "{name: \"x{j}\", kind: relu}"), 8, 2, {"'x{j}'", "index of a repeat", "{i-1}"}},
    {REPEAT("3", "{kind: relu, input: \"d{i}\"}"), 8, 1, {"no layer above it is called 'd0'"}},
    {REPEAT("3", "{name: \"d{i}\", kind: relu, input: \"d{i-1}\"}"), 8, 1, {"called 'd-1'"}},
    {REPEAT("3", "{kind: dense}"), 8, 1, {"layer 'dense' (dense)", "needs units"}},
    {FEATURES("6") "    - repeat: 2\n      layers: []\n" OUT, 6, 1, {"at least one layer"}},
    {FEATURES("6") "    - {repeat: 2}\n" OUT, 5, 1, {"a repeat needs layers"}},
    {FEATURES("6") "    - {repeat: 2, indx: i, layers: [{kind: relu}]}\n" OUT,
     5,
     1,
     {"a repeat has no key 'indx'", "did you mean 'index'?"}},
    {FEATURES("6") "    - {repeat: 2, index: [i], layers: [{kind: relu}]}\n" OUT, 5, 1, {"a plain name"}},
    {FEATURES("6") "    - repeat: 30000\n      layers:\n        - repeat: 30000\n          layers:\n"
                   "            - {kind: relu}\n" OUT,
     9,
     1,
     {"more than 32768 layers", "written out"}},
    // references
    {TWO("{name: b, kind: add, inputs: [a, out]}"),
     6,
     1,
     {"no layer above it is called 'out'", "line 7", "only read what stands above"}},
    {TWO("{name: b, kind: relu, input: b}"), 6, 1, {"called 'b'", "itself"}},
    {TWO("{name: before, kind: relu}"), 6, 1, {"'before' has a meaning of its own"}},
    {TWO("{name: b, kind: relu, input: before}"), 6, 1, {"no layer above it is called 'before'"}},
    {TWO("{name: b, kind: add, inputs: [a]}"), 6, 1, {"needs two inputs"}},
    {TWO("{name: b, kind: concat, inputs: [a]}"), 6, 1, {"needs 2 to 6 inputs"}},
    {TWO("{name: p, kind: permute, axes: [0]}"), 6, 1, {"axes must be", "from 1 to 4"}},
    {PIXELS("{name: p, kind: permute, axes: [1, 2]}"), 6, 1, {"axes that name each of 1 to 3 once"}},
    {PIXELS("{name: p, kind: permute, axes: [1, 3, 3]}"), 6, 1, {"axes that name each of 1 to 3 once"}},
    {PIXELS("{name: p, kind: channel_shuffle, groups: 2}"), 6, 1, {"divide its 3 channels, had 2"}},
    {PIXELS("{name: p, kind: pixel_shuffle, size: [1, 2]}"), 6, 1, {"in groups of 1x2, had 3"}},
    {PIXELS("{name: p, kind: patch_merging, size: 2}"), 6, 1, {"patches of 2x2, had 1x2", "zero_pad"}},
    {PIXELS("{name: p, kind: window_attention, heads: 1, size: 2}"), 6, 1, {"windows of 2x2, had 1x2"}},
    {PIXELS("{name: p, kind: window_attention, heads: 2, size: 1}"), 6, 1, {"divide its 3 features, had 2"}},
    {PIXELS("{name: p, kind: window_attention, heads: 1, size: 1, shift: [0, 1]}"),
     6,
     1,
     {"below its windows of 1x1, had 0x1"}},
    {PIXELS("{kind: avg_pool}"), 6, 1, {"needs size: of its windows, or to:"}},
    {PIXELS("{kind: avg_pool, to: 1, size: 1}"), 6, 1, {"needs to alone"}},
    {PIXELS("{kind: avg_pool, to: 1, count_padding: true}"), 6, 1, {"needs to alone", "and count_padding"}},
    {PIXELS("{kind: upsample}"), 6, 1, {"needs size", "or to: [height, width]"}},
    {PIXELS("{kind: upsample, size: 2, to: 4}"), 6, 1, {"needs size or to, had both"}},
    {PIXELS("{kind: upsample, to: [3, 3]}"), 6, 1, {"mode: bilinear", "had 1x2 to 3x3"}},
    {PIXELS("{kind: upsample, size: 2, align_corners: true}"), 6, 1, {"mode: bilinear for align_corners"}},
    {TWO("{kind: roll, shift: 1}"), 6, 1, {"image"}},
    {TWO("{kind: group_norm, groups: 2}"), 6, 1, {"[places", "had 6"}},
    {FEATURES("6") "    - {kind: reshape, shape: [2, 3]}\n    - {kind: group_norm, groups: 2}\n    - {kind: "
                   "flatten}\n" OUT,
     6,
     1,
     {"2 groups divide", "had 2x3"}},
    // biases
    {BIAS("{kind: attention, heads: 3, inputs: [r, b]}"), 7, 1, {"form: materialised"}},
    {BIAS("{kind: attention, heads: 1, form: materialised, inputs: [r, b]}"),
     7,
     1,
     {"a bias of 1x3x3", "had 3x3x3"}},
    {BIAS("{kind: attention, heads: 3, form: materialised, inputs: [b, r]}"),
     7,
     1,
     {"'b/bias'", "last input"}},
    {FEATURES("6") "    - {name: r, kind: reshape, shape: [3, 2]}\n"
                   "    - {kind: attention, heads: 1, form: materialised, inputs: [r, r, r]}\n"
                   "    - {kind: flatten}\n" OUT,
     6,
     1,
     {"needs a relative_bias layer"}},
    {BIAS("{kind: add, inputs: [r, b]}"), 7, 1, {"'b/bias'", "one bias for all samples"}},
    // sharing
    {TWO("{name: b, kind: dense, units: 6, share: c}"), 6, 1, {"called 'c'"}},
    {TWO("{name: b, kind: dense, units: 5, share: a}"), 6, 1, {"'a/weights'", "needed 6x5", "had 6x6"}},
    {TWO("{name: b, kind: layer_norm, share: a}"), 6, 1, {"'gamma' of layer 'a' (dense)", "has none"}},
    {IDS "    - {name: t, kind: embedding, units: 4}\n"
         "    - {name: out, kind: dense, units: 9, transpose: true, share: t}\n",
     6,
     1,
     {"'bias' of layer 't' (embedding)", "bias: false"}},
    // shapes and types
    {IDS "    - {name: out, kind: dense, units: 9}\n", 5, 1, {"'input' are ids", "embedding"}},
    {TWO("{kind: embedding, units: 3}"), 6, 1, {"needs ids", "type: int32"}},
    {IDS "    - {kind: embedding, units: 3, vocabulary: 8}\n    - {kind: dense, units: 9}\n",
     5,
     1,
     {"9 ids", "had 8"}},
    {TWO("{kind: attention, heads: 2}"), 6, 1, {"needs a sequence", "had 6"}},
    {IDS
     "    - {kind: embedding, units: 4}\n    - {kind: attention, heads: 3}\n    - {kind: dense, units: 9}\n",
     6,
     1,
     {"heads that divide its 4 features", "had 3"}},
    {TWO("{kind: slice, axis: 1, from: 4, count: 3}"), 6, 1, {"6 places", "had 3 from place 4"}},
    {TWO("{kind: slice, axis: 0}"), 6, 1, {"axis from 1 to 1", "0 is the batch"}},
    {TWO("{kind: slice, axis: -2}"), 6, 1, {"axis from 1 to 1", "had -2"}},
    {TWO("{kind: reduce}"), 6, 1, {"at least two dimensions"}},
    {TWO("{kind: scale, factor: 0}"), 6, 1, {"factor", "had 0"}},
    {TWO("{kind: dropout, rate: 1}"), 6, 1, {"rate", "0.999", "'1'"}},
    {TWO("{kind: zero_pad, padding: [1, 2, 3]}"), 6, 2, {"needs an image"}},
    {TWO("{kind: stack, count: 16777216}\n    - {kind: stack, count: 16777216}"), 7, 1, {"largest tensor"}},
    {FEATURES(
         "6") "    - {name: a, kind: dense, units: 5}\n    - {kind: concat, axis: 1, inputs: [a, input]}\n"
              "    - {kind: add, inputs: [previous, a]}\n" OUT,
     7,
     1,
     {"one shape", "11", "5"}},
    // inputs
    {"model:\n  inputs: []\n  classes: 6\n  layers:\n" OUT, 2, 1, {"inputs must be a list"}},
    {"model:\n  inputs:\n    - {name: a, shape: [6]}\n    - {name: a, shape: [6]}\n  classes: 6\n  "
     "layers:\n" OUT,
     4,
     1,
     {"two inputs are called 'a'"}},
    {"model:\n  inputs:\n    - {name: a, shape: [6]}\n    - {name: b, shape: [6]}\n  classes: 6\n  "
     "layers:\n" OUT,
     4,
     1,
     {"input 'b' feeds nothing"}},
    {"model:\n  inputs:\n    - {name: loss, shape: [6]}\n  classes: 6\n  layers:\n" OUT, 3, 1, {"'loss'"}},
    {"model:\n  inputs:\n    - {name: out, shape: [6]}\n  classes: 6\n  layers:\n" OUT,
     6,
     1,
     {"an input of the model has this name"}},
    {"model:\n  input: {type: int32, shape: [6]}\n  classes: 6\n  layers:\n" OUT,
     2,
     2,
     {"ids needs classes"}},
    {"model:\n  input: {shape: [6]}\n  inputs: [{shape: [6]}]\n  classes: 6\n  layers:\n" OUT,
     3,
     1,
     {"beside input"}},
    // labels and losses
    {LOSSES("  losses: []\n"), 3, 1, {"losses must be a list of 1 to 4"}},
    {LOSSES("  loss: kl\n  losses: [{kind: kl}]\n"), 3, 1, {"beside losses"}},
    {LOSSES("  losses: [{kind: kl, prediction: ouut}]\n"), 3, 1, {"'ouut'", "did you mean 'out'?"}},
    {LOSSES("  losses: [{kind: kl, labels: label}]\n"), 3, 1, {"did you mean 'labels'?"}},
    {LOSSES("  losses: [{kind: kl, labels: x}]\n"), 3, 1, {"no label is called 'x'"}},
    {LOSSES("  losses: [{kind: kl, weight: 0}]\n"), 3, 1, {"weight", "'0'"}},
    {LOSSES("  losses: [{kind: kl, weight: nan}]\n"), 3, 1, {"weight", "'nan'"}},
    {LOSSES("  losses: [{weight: 1}]\n"), 3, 1, {"a loss needs a kind"}},
    {LOSSES("  losses: [{kind: softmax_cross_entropy}]\n"), 3, 1, {"label 'labels' needs classes"}},
    {LOSSES("  losses: [{kind: mean_squared_error, temperature: 2}]\n"), 3, 1, {"temperature", "kl"}},
    {LOSSES("  losses: [{kind: binary_cross_entropy, gamma: 2}]\n"), 3, 1, {"gamma", "focal"}},
    {LOSSES("  losses: [{kind: focal, alpha: 1}]\n"), 3, 1, {"alpha", "'1'"}},
    {LOSSES("  loss: binary_crossentropy\n"), 3, 1, {"did you mean 'binary_cross_entropy'?"}},
    {LOSSES("  loss: {kind: focal}\n"), 3, 1, {"stands in a list: losses: [{kind"}},
    {LOSSES("  loss: focal\n  labels: {type: uint8}\n"), 4, 1, {"needs type float32", "uint8"}},
    {LOSSES("  loss: kl\n  labels: {type: int32}\n"), 4, 1, {"needs type float32", "int32"}},
    {LOSSES("  classes: 6\n  labels: {type: float32}\n"), 4, 1, {"needs type int32 or uint8"}},
    {LOSSES("  loss: kl\n  labels: {shape: [7]}\n"), 4, 1, {"must have the shape 6", "had 7"}},
    {LOSSES("  labels: [{name: a}, {name: b}]\n  losses: [{kind: kl, labels: b}]\n"),
     3,
     1,
     {"label 'a' is compared with nothing"}},
    {LOSSES("  labels: [{name: a}, {name: a}]\n  losses: [{kind: kl}]\n"), 3, 1, {"a name of its own"}},
    {"model:\n  input: {shape: [6]}\n  labels: {type: int32}\n  classes: 6\n", 2, 1, {"needs layers"}},
    {"model:\n  input: {shape: [4, 4, 3]}\n  classes: 6\n  layers:\n    - {name: d, kind: dense, units: 6}\n",
     5,
     1,
     {"'d'", "4x4x6", "flatten or global_avg_pool"}},
    {TWO("{kind: reshape, share: a}"), 6, 1, {"needs shape"}},
    // defaults
    {LOSSES("  classes: 6\n  defaults: {dens: {bias: false}}\n"), 4, 1, {"'dens'", "did you mean 'dense'?"}},
    {LOSSES("  classes: 6\n  defaults: {dense: {bais: false}}\n"), 4, 1, {"'bais'", "did you mean 'bias'?"}},
    {LOSSES("  classes: 6\n  defaults: {dense: false}\n"), 4, 1, {"a mapping of attributes"}},
    {LOSSES("  classes: 6\n  defaults: {dense: {units: x}}\n"), 4, 1, {"units must be a whole number"}},
    {"model:\n  input: {shape: [4, 8]}\n  classes: 8\n  defaults: {attention: {heads: x}}\n  layers:\n"
     "    - {kind: attention}\n",
     4,
     1,
     {"heads must be a whole number"}}, // a layer does not divide by what was not read
};

START_TEST(bad_models_are_refused_with_line_and_sentence)
{
    assert_refused(&bad_models[_i]);
}
END_TEST

START_TEST(a_hundred_thousand_layers_are_refused)
{
    text t = {0};
    text_append(&t, FEATURES("6"));
    for (int k = 0; k < 4; k++) {
        text_append(&t, "    - {repeat: 25000, layers: [{kind: relu}]}\n");
    }
    const bad_model bad = {t.data, 6, 1, {"more than 32768 layers"}};
    assert_refused(&bad);
    text_deinit(&t);
}
END_TEST

START_TEST(every_allocation_failing_once_loses_nothing)
{
    const int64_t live = hr_host_mem_live();
    fail_every_allocation(every_kind(), HR_OK);
    fail_every_allocation(REPEAT("3", "{kind: relu, input: \"d{i}\"}"), HR_MODEL);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// Cut anywhere, a good preset is refused, by the reader of presets or of models, or still is a whole model.
START_TEST(every_truncation_is_refused_or_consistent)
{
    char *preset_text = strdup(every_kind());
    for (size_t length = strlen(preset_text); length > 0; length -= length > 3 ? 3 : length) {
        preset_text[length] = '\0';
        hr_preset *preset = try_preset_from_text(preset_text, NULL);
        hr_model *model = NULL;
        if (preset != NULL && model_create(preset, hr_preset_knobs(preset), &model, NULL, NULL) == HR_OK) {
            assert_consistent(model);
        }
        model_destroy(model);
        hr_preset_close(preset);
    }
    free(preset_text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model language");
    TCase *said = tcase_create("said");
    tcase_add_test(said, rounds_are_numbered_and_know_what_stood_before);
    tcase_add_test(said, nested_rounds_use_the_nearest_index);
    tcase_add_test(said, as_many_rounds_as_a_model_may_have_layers_are_read);
    tcase_add_test(said, shared_parameters_stand_once);
    tcase_add_test(said, places_take_rows_of_a_larger_table);
    tcase_add_test(said, a_layer_that_shares_may_have_a_bias_of_its_own);
    tcase_add_test(said, the_output_of_attention_has_a_bias_as_the_others_or_as_it_says);
    tcase_add_test(said, an_embedding_serves_as_the_output_layer);
    tcase_add_test(said, defaults_hold_until_a_layer_says_otherwise);
    tcase_add_test(said, several_inputs_labels_and_losses_are_told_apart);
    tcase_add_test(said, binary_losses_have_float_labels_of_zeros_and_ones);
    tcase_add_test(said, a_label_of_two_losses_is_binary_where_one_of_them_takes_logits);
    tcase_add_test(said, a_prediction_need_not_be_the_last_layer);
    tcase_add_test(said, an_opaque_layer_is_what_is_written);
    tcase_add_test(said, every_kind_of_layer_expands);
    tcase_add_test(said, parameters_of_attention_and_lstm_are_those_of_keras);
    tcase_add_test(said, dropout_is_known_by_its_layer_and_vanishes_at_rate_zero);
    TCase *bad = tcase_create("bad");
    tcase_add_loop_test(bad, bad_models_are_refused_with_line_and_sentence, 0, COUNT(bad_models));
    tcase_add_test(bad, a_hundred_thousand_layers_are_refused);
    TCase *faults = tcase_create("faults");
    tcase_add_test(faults, every_allocation_failing_once_loses_nothing);
    tcase_add_test(faults, every_truncation_is_refused_or_consistent);
    suite_add_tcase(suite, said);
    suite_add_tcase(suite, bad);
    suite_add_tcase(suite, faults);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
