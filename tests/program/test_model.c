// SPDX-License-Identifier: Apache-2.0
// Promises of model/model.h: what presets become, and what is said about bad ones.
#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "base/philox.h"
#include "base/text.h"
#include "program/model_checks.h"

// Layers begin on line 5.
#define HEAD "model:\n  input: {shape: [8, 8, 3]}\n  classes: 10\n  layers:\n"
#define TAIL "    - {name: flat, kind: flatten}\n    - {name: last, kind: dense, units: 10}\n"

// ---- the shipped models ---------------------------------------------------------------------------------------

static hr_model *shipped(const char *path)
{
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    char *problems = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(path, false, &preset, &problems, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, &problems, &err) == HR_OK, "%s",
                  err.sentence);
    hr_preset_close(preset);
    assert_consistent(model);
    return model;
}

START_TEST(separable_cnn_has_the_counts_of_keras)
{
    hr_model *m = shipped("presets/models/cifar10_separable_cnn.yaml");
    static const uint64_t expected[] = {155, 0, 2400, 0, 692288, 650};
    ck_assert_uint_eq(m->layer_count, COUNT(expected));
    for (uint32_t i = 0; i < m->layer_count; i++) {
        ck_assert_uint_eq(m->layers[i].parameters, expected[i]);
    }
    ck_assert_uint_eq(m->parameters, 695493);
    ck_assert_uint_eq(m->trainable_parameters, 695493);
    ck_assert_uint_eq(m->param_count, 10);
    model_destroy(m);
}
END_TEST

START_TEST(resnet18_has_the_counts_of_torch)
{
    hr_model *m = shipped("presets/models/resnet18_cifar.yaml");
    ck_assert_uint_eq(m->trainable_parameters, 11173962);
    ck_assert_uint_eq(m->parameters - m->trainable_parameters, 9600);
    model_destroy(m);
}
END_TEST

START_TEST(mlp_counts_weights_and_biases)
{
    hr_model *m = shipped("presets/models/mlp.yaml");
    ck_assert_uint_eq(m->parameters, 3072 * 2048 + 2048 + 2048 * 2048 + 2048 + 2048 * 10 + 10);
    model_destroy(m);
}
END_TEST

// ---- expansion ------------------------------------------------------------------------------------------------

START_TEST(separable_conv_is_depthwise_pointwise_relu)
{
    hr_model *m =
        model_from_text(HEAD "    - {name: s, kind: separable_conv2d, filters: 5, kernel: 3, multiplier: 2,"
                             " activation: relu}\n" TAIL);
    assert_consistent(m);
    static const hr_op ops[] = {HR_OP_CONV2D,  HR_OP_CONV2D, HR_OP_RELU,
                                HR_OP_RESHAPE, HR_OP_DENSE,  HR_OP_SOFTMAX_XENT};
    ck_assert_uint_eq(m->node_count, COUNT(ops));
    for (uint32_t i = 0; i < m->node_count; i++) {
        ck_assert_int_eq(m->nodes[i].op, ops[i]);
    }
    ck_assert_int_eq(m->nodes[0].attr.groups, 3);
    ck_assert_uint_eq(m->nodes[0].in_count, 2);
    ck_assert_uint_eq(m->nodes[1].in_count, 3);
    static const char *const params[] = {"s/depthwise_weights", "s/pointwise_weights", "s/bias",
                                         "last/weights", "last/bias"};
    for (uint32_t i = 0; i < COUNT(params); i++) {
        ck_assert_str_eq(m->params[i].name, params[i]);
    }
    assert_shape(&m->params[0].shape, "3x3x1x6");
    assert_shape(&m->params[1].shape, "1x1x6x5");
    assert_value(m, "s/depthwise", "1x6x6x6");
    assert_value(m, "s/pointwise", "1x6x6x5");
    assert_value(m, "s/out", "1x6x6x5");
    assert_value(m, "flat/out", "1x180");
    model_destroy(m);
}
END_TEST

START_TEST(fans_are_those_of_keras)
{
    hr_model *m = model_from_text(
        HEAD "    - {name: s, kind: separable_conv2d, filters: 5, kernel: [3, 2], multiplier: 2}\n"
             "    - {name: c, kind: conv2d, filters: 10, kernel: 3, groups: 5, init: he_uniform}\n" TAIL);
    ck_assert_uint_eq(param_of(m, "s/depthwise_weights")->fan_in, 3 * 2 * 3);
    ck_assert_uint_eq(param_of(m, "s/depthwise_weights")->fan_out, 3 * 2 * 2);
    ck_assert_uint_eq(param_of(m, "s/pointwise_weights")->fan_in, 6);
    ck_assert_uint_eq(param_of(m, "s/pointwise_weights")->fan_out, 5);
    ck_assert_uint_eq(param_of(m, "c/weights")->fan_in, 9);
    ck_assert_uint_eq(param_of(m, "c/weights")->fan_out, 90);
    ck_assert_int_eq(param_of(m, "c/weights")->init, MODEL_INIT_HE_UNIFORM);
    ck_assert_int_eq(param_of(m, "last/weights")->init, MODEL_INIT_GLOROT_UNIFORM);
    ck_assert_uint_eq(param_of(m, "last/weights")->fan_out, 10);
    model_destroy(m);
}
END_TEST

START_TEST(batch_norm_keeps_statistics_as_state)
{
    hr_model *m = model_from_text(HEAD "    - {name: n, kind: batch_norm, activation: relu}\n" TAIL);
    assert_consistent(m);
    const model_node *n = &m->nodes[0];
    ck_assert_int_eq(n->op, HR_OP_BATCH_NORM);
    ck_assert_uint_eq(n->in_count, 5);
    ck_assert_uint_eq(n->out_count, 3);
    ck_assert_double_eq(n->attr.epsilon, 1e-3);
    ck_assert_double_eq(n->attr.momentum, 0.01);
    static const char *const params[] = {"n/gamma", "n/beta", "n/moving_mean", "n/moving_variance"};
    static const model_init inits[] = {MODEL_INIT_ONES, MODEL_INIT_ZEROS, MODEL_INIT_ZEROS, MODEL_INIT_ONES};
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_str_eq(m->params[i].name, params[i]);
        ck_assert_int_eq(m->params[i].init, inits[i]);
        ck_assert_int_eq(m->params[i].trainable, i < 2);
    }
    ck_assert(value_of(m, "n/norm")->batched);
    ck_assert(!value_of(m, "n/saved_mean")->batched);
    assert_value(m, "n/saved_variance", "3");
    ck_assert_uint_eq(layer_parameters(m, "n"), 12);
    ck_assert_uint_eq(m->parameters - m->trainable_parameters, 6);
    model_destroy(m);
}
END_TEST

START_TEST(same_padding_puts_the_odd_pixel_behind)
{
    hr_model *m = model_from_text(
        HEAD "    - {name: c, kind: conv2d, filters: 4, kernel: 3, stride: 2, padding: same}\n"
             "    - {name: n, kind: conv2d, filters: 4, kernel: [3, 1], padding: 1}\n"
             "    - {name: p, kind: max_pool, size: 3, stride: 2, padding: same}\n" TAIL);
    const op_attr *a = &m->nodes[0].attr;
    ck_assert_int_eq(a->pad_top, 0);
    ck_assert_int_eq(a->pad_bottom, 1);
    ck_assert_int_eq(a->pad_left, 0);
    ck_assert_int_eq(a->pad_right, 1);
    assert_value(m, "c/out", "1x4x4x4");
    assert_value(m, "n/out", "1x4x6x4");
    assert_value(m, "p/out", "1x2x3x4");
    model_destroy(m);
}
END_TEST

// A window of 3 taps with 2 pixels between them lies over 7.
START_TEST(dilation_widens_the_window_and_what_same_pads)
{
    hr_model *m = model_from_text(
        HEAD "    - {name: c, kind: conv2d, filters: 4, kernel: 3, dilation: 2, padding: same}\n"
             "    - {name: n, kind: conv2d, filters: 4, kernel: [1, 3], dilation: 2, padding: 1}\n"
             "    - {name: d, kind: depthwise_conv2d, kernel: 2, stride: 2, dilation: [1, 3]}\n" TAIL);
    const op_attr *a = &m->nodes[0].attr, *b = &m->nodes[1].attr;
    ck_assert_int_eq(a->gap_h, 1);
    ck_assert_int_eq(a->pad_top + a->pad_bottom, 4);
    ck_assert_int_eq(b->gap_h, 0); // one tap has none beside it
    ck_assert_int_eq(b->gap_w, 1);
    assert_value(m, "c/out", "1x8x8x4");
    assert_value(m, "n/out", "1x10x6x4");
    assert_value(m, "d/out", "1x5x2x4");
    model_destroy(m);
}
END_TEST

START_TEST(max_pool_strides_by_its_size_and_declares_one_output)
{
    hr_model *m = model_from_text(HEAD "    - {name: p, kind: max_pool, size: [2, 4]}\n" TAIL);
    ck_assert_uint_eq(m->nodes[0].out_count, 1);
    assert_value(m, "p/out", "1x4x2x3");
    model_destroy(m);
}
END_TEST

START_TEST(residual_block_joins_named_layers)
{
    hr_model *m =
        model_from_text(HEAD "    - {name: a, kind: conv2d, filters: 3, kernel: 3, padding: same}\n"
                             "    - {name: b, kind: depthwise_conv2d, kernel: 3, padding: same, input: a}\n"
                             "    - {name: j, kind: add, inputs: [input, b], activation: relu}\n"
                             "    - {name: k, kind: add, inputs: [j, a]}\n"
                             "    - {name: g, kind: global_avg_pool}\n"
                             "    - {name: last, kind: dense, units: 10, bias: false}\n");
    assert_consistent(m);
    const model_node *join = &m->nodes[2];
    ck_assert_int_eq(join->op, HR_OP_ADD);
    ck_assert_uint_eq(join->in[0].index, m->slots[0].value);
    ck_assert_str_eq(m->values[join->in[1].index].name, "b/out");
    ck_assert_uint_eq(layer_parameters(m, "b"), 9 * 3 + 3);
    ck_assert_uint_eq(layer_parameters(m, "last"), 30);
    assert_value(m, "j/add", "1x8x8x3");
    assert_value(m, "g/out", "1x3");
    model_destroy(m);
}
END_TEST

START_TEST(unnamed_layers_are_named_as_keras_does)
{
    hr_model *m =
        model_from_text(HEAD "    - {kind: relu}\n    - {name: relu_1, kind: relu}\n    - {kind: relu}\n"
                             "    - {kind: flatten}\n    - {kind: reshape, shape: [16, 12]}\n"
                             "    - {kind: flatten}\n    - {kind: dense, units: 10}\n");
    static const char *const names[] = {"relu",    "relu_1",    "relu_2", "flatten",
                                        "reshape", "flatten_1", "dense"};
    for (uint32_t i = 0; i < m->layer_count; i++) {
        ck_assert_str_eq(m->layers[i].name, names[i]);
    }
    model_destroy(m);
}
END_TEST

START_TEST(a_model_of_very_many_layers_is_read)
{
    enum { LAYERS = 24000 };
    text t = {0};
    text_append(&t, "model: {input: {shape: [1, 1, 10]}, classes: 10, layers: [{kind: flatten},\n");
    for (int i = 0; i < LAYERS; i++) {
        text_append(&t, "{kind: relu},\n");
    }
    text_append(&t, "]}\n");
    hr_model *m = model_from_text(t.data);
    ck_assert_uint_eq(m->layer_count, LAYERS + 1);
    ck_assert_str_eq(m->layers[LAYERS].name, "relu_23999");
    model_destroy(m);
    text_deinit(&t);
}
END_TEST

// ---- bad models -----------------------------------------------------------------------------------------------

#define ONE(layer) HEAD "    - " layer "\n" TAIL

static const bad_model bad_models[] = {
    // attributes
    {ONE("{name: c, kind: conv2d, filter: 8, kernel: 3}"),
     5,
     1,
     {"layer 'c' (conv2d)", "'filter'", "did you mean 'filters'?"}},
    {ONE("{name: c, kind: conv2d, kernel: 3}"), 5, 1, {"layer 'c' (conv2d)", "needs filters"}},
    {ONE("{name: c, kind: conv2d, filters: 0, kernel: 3}"), 5, 1, {"filters", "1 to 16777216", "'0'"}},
    {ONE("{name: c, kind: conv2d, filters: -4, kernel: 3}"), 5, 1, {"filters", "'-4'"}},
    {ONE("{name: c, kind: conv2d, filters: '8', kernel: 3}"), 5, 1, {"filters", "'8'"}},
    {ONE("{name: c, kind: conv2d, filters: 99999999999999999999, kernel: 3}"), 5, 1, {"filters", "16777216"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: [3, 3, 3]}"),
     5,
     1,
     {"kernel", "[height, width]", "a list"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 3, padding: smae}"),
     5,
     1,
     {"padding", "same, valid", "'smae'"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 3, dilation: 0}"),
     5,
     1,
     {"dilation", "1 to 65535", "'0'"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 3, dilation: 4}"),
     5,
     1,
     {"a 9x9 kernel does not fit into a 8x8 image"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 9999, dilation: 9999, padding: same}"),
     5,
     1,
     {"at most 16777216 pixels", "99970003"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 3, activation: rleu}"),
     5,
     1,
     {"activation", "none, relu", "did you mean 'relu'?"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 3, bias: 2}"), 5, 1, {"bias", "false, true", "'2'"}},
    {ONE("{name: n, kind: batch_norm, epsilon: nan}"), 5, 1, {"epsilon", "'nan'"}},
    {ONE("{name: n, kind: batch_norm, momentum: 1.5}"), 5, 1, {"momentum", "'1.5'"}},
    {ONE("{name: r, kind: reshape, shape: []}"), 5, 1, {"shape", "one to four"}},
    // kinds and names
    {ONE("{name: c, kind: conv2}"), 5, 1, {"layer 'c' (conv2)", "did you mean 'conv2d'?"}},
    {ONE("{name: c, kind: [relu]}"),
     5,
     1,
     {"layer 'c'", "needs a kind", "headroom manual headroom-presets.5"}},
    {ONE("{name: c}"), 5, 1, {"layer 'c'", "needs a kind"}},
    {ONE("relu"), 5, 1, {"layer '#1'", "a mapping such as"}},
    {ONE("{name: last, kind: relu}"), 7, 1, {"layer 'last' (dense)", "line 5"}},
    {ONE("{name: input, kind: relu}"), 5, 1, {"'input'", "another name"}},
    {ONE("{name: a/b, kind: relu}"), 5, 1, {"layer '#1' (relu)", "letters"}},
    {ONE("{name: [x], kind: relu}"), 5, 1, {"letters"}},
    // wiring
    {ONE("{name: r, kind: relu, input: last}"),
     5,
     1,
     {"layer 'r' (relu)", "no layer above it is called 'last'"}},
    {ONE("{name: r, kind: relu, input: r}"), 5, 1, {"no layer above it is called 'r'"}},
    {ONE("{name: r, kind: relu, input: inputt}"), 5, 1, {"did you mean 'input'?"}},
    {ONE("{name: r, kind: relu, inputs: [input]}"), 5, 1, {"takes one input"}},
    {ONE("{name: j, kind: add}"), 5, 1, {"needs two inputs"}},
    {ONE("{name: j, kind: add, inputs: [input, input, input]}"), 5, 1, {"needs two inputs"}},
    {ONE("{name: j, kind: add, input: input}"), 5, 1, {"needs two inputs"}},
    {HEAD "    - {name: x, kind: relu}\n    - {name: flat, kind: flatten, input: input}\n"
          "    - {name: last, kind: dense, units: 10}\n",
     5,
     1,
     {"layer 'x' (relu)", "feeds nothing"}},
    // shapes
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 9}"), 5, 1, {"layer 'c' (conv2d)", "8x8x3", "9x9"}},
    {ONE("{name: c, kind: conv2d, filters: 8, kernel: 3, groups: 2}"),
     5,
     1,
     {"groups", "3 channels", "8 filters"}},
    {ONE("{name: p, kind: max_pool, size: 2, padding: 2}"), 5, 1, {"padding below its size 2x2"}},
    {ONE("{name: r, kind: reshape, shape: [5, 5]}"), 5, 1, {"5x5", "8x8x3", "192 elements"}},
    {ONE("{name: f, kind: flatten}\n    - {name: c, kind: conv2d, filters: 1, kernel: 1}"),
     6,
     1,
     {"needs an image", "192"}},
    {ONE("{name: c, kind: conv2d, filters: 2, kernel: 1}\n    - {name: j, kind: add, inputs: [c, input]}"),
     6,
     1,
     {"8x8x2", "8x8x3"}},
    {ONE("{name: c, kind: conv2d, filters: 16777216, kernel: 60000, padding: same}"),
     5,
     1,
     {"'weights'", "60000x60000x3x16777216", "largest tensor"}},
    {HEAD "    - {name: flat, kind: flatten}\n    - {name: last, kind: dense, units: 12}\n",
     6,
     1,
     {"layer 'last' (dense)", "gives 12", "must give 10"}},
    {HEAD "    - {name: last, kind: relu}\n", 5, 1, {"gives 8x8x3", "must give 10"}},
    // the model around the layers
    {"model:\n  input: {shape: [8, 8, 3]}\n  classes: 10\n", 2, 1, {"needs layers"}},
    {"model:\n  input: {shape: [8, 8, 3]}\n  classes: 10\n  layers: []\n", 4, 1, {"needs layers"}},
    {"model:\n  input: {shape: 8}\n  classes: 10\n  layers:\n" TAIL, 2, 1, {"[height, width, channels]"}},
    {"model:\n  input: {shape: [8, 8, 0]}\n  classes: 10\n  layers:\n" TAIL, 2, 1, {"input shape"}},
    {"model:\n  input: [8, 8, 3]\n  classes: 10\n  layers:\n" TAIL, 2, 1, {"[height, width, channels]"}},
    {"model:\n  input: {shape: [16777216, 16777216, 16777216]}\n  classes: 10\n  layers:\n" TAIL,
     2,
     1,
     {"'input'", "largest tensor"}},
    {"model:\n  input: {shape: [8, 8, 3], size: 3}\n  classes: 10\n  layers:\n" TAIL,
     2,
     1,
     {"input has no key 'size'"}},
    {"model:\n  input: {shap: [8, 8, 3]}\n  classes: 10\n  layers:\n" TAIL,
     2,
     1,
     {"'shap'", "did you mean 'shape'?"}},
    {"model:\n  input: {shape: [8, 8, 3]}\n  clases: 10\n  layers:\n" TAIL,
     3,
     1,
     {"no key 'clases'", "did you mean 'classes'?"}},
    {"model:\n  input: {shape: [8, 8, 3]}\n  classes: 1\n  layers:\n" TAIL, 3, 1, {"classes", "'1'"}},
    {"model:\n  input: {shape: [8, 8, 3]}\n  classes: 10\n  loss: mse\n  layers:\n" TAIL,
     4,
     1,
     {"loss", "softmax_cross_entropy"}},
    {"model:\n  name: a b\n  input: {shape: [8, 8, 3]}\n  classes: 10\n  layers:\n" TAIL, 2, 1, {"letters"}},
    // several at once, each said once and none for what follows from another
    {HEAD "    - {name: c, kind: conv2d, kernel: 3}\n    - {name: p, kind: max_pool, size: 0}\n" TAIL,
     5,
     2,
     {"needs filters"}},
};

START_TEST(bad_models_are_refused_with_line_and_sentence)
{
    assert_refused(&bad_models[_i]);
}
END_TEST

START_TEST(reading_stops_after_a_hundred_problems)
{
    text t = {0};
    text_append(&t, HEAD);
    for (int i = 0; i < 1000; i++) {
        text_append(&t, "    - {kind: max_pool, sise: 2}\n");
    }
    hr_preset *preset = preset_from_text(t.data);
    hr_model *model = NULL;
    char *problems = NULL;
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &model, &problems, NULL), HR_MODEL);
    ck_assert_uint_le(count_problems(problems), 102);
    hr_preset_problems_free(problems);
    hr_preset_close(preset);
    text_deinit(&t);
}
END_TEST

// ---- faults ---------------------------------------------------------------------------------------------------

START_TEST(every_allocation_failing_once_loses_nothing)
{
    const int64_t live = hr_host_mem_live();
    fail_every_allocation(HEAD "    - {kind: separable_conv2d, filters: 4, kernel: 3, activation: relu}\n"
                               "    - {kind: batch_norm}\n    - {kind: max_pool, size: 2}\n" TAIL,
                          HR_OK);
    fail_every_allocation(HEAD "    - {name: a, kind: conv2d, kernal: 3}\n" TAIL, HR_MODEL);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

// Cut anywhere, a good preset is refused, by the reader of presets or of models, or still is a whole model.
START_TEST(every_truncation_is_refused_or_consistent)
{
    char preset_text[] = HEAD "    - {name: a, kind: conv2d, filters: 4, kernel: [3, 3], padding: same}\n"
                              "    - {kind: add, inputs: [a, a], activation: relu}\n" TAIL;
    for (size_t length = strlen(preset_text); length > 0; length--) {
        preset_text[length] = '\0';
        hr_preset *preset = try_preset_from_text(preset_text, NULL);
        hr_model *model = NULL;
        if (preset != NULL && model_create(preset, hr_preset_knobs(preset), &model, NULL, NULL) == HR_OK) {
            assert_consistent(model);
        }
        model_destroy(model);
        hr_preset_close(preset);
    }
}
END_TEST

// ---- random models --------------------------------------------------------------------------------------------

typedef struct dice {
    philox_key key;
    uint64_t thrown;
} dice;

static uint32_t throw_die(dice *d, uint32_t sides)
{
    uint32_t word[4];
    philox(d->key, d->thrown++, 0, word);
    return word[0] % sides;
}

static void append_layer(text *t, dice *d, uint32_t index)
{
    static const char *const sizes[] = {"1", "2", "3", "[2, 3]", "[1, 5]", "9"};
    static const char *const paddings[] = {"same", "valid", "0", "1", "2"};
    static const char *const acts[] = {"none", "relu"};
#define ANY(list) (list)[throw_die(d, COUNT(list))]
    text_append(t, "    - {name: l%u, ", index);
    switch (throw_die(d, 9)) {
    case 0:
        text_append(
            t, "kind: conv2d, filters: %u, kernel: %s, stride: %s, padding: %s, groups: %u, activation: %s",
            1 + throw_die(d, 6), ANY(sizes), ANY(sizes), ANY(paddings), 1 + throw_die(d, 3), ANY(acts));
        break;
    case 1:
        text_append(t, "kind: depthwise_conv2d, kernel: %s, padding: %s, multiplier: %u", ANY(sizes),
                    ANY(paddings), 1 + throw_die(d, 2));
        break;
    case 2:
        text_append(t, "kind: separable_conv2d, filters: %u, kernel: %s, padding: %s, bias: false",
                    1 + throw_die(d, 9), ANY(sizes), ANY(paddings));
        break;
    case 3:
        text_append(t, "kind: batch_norm, activation: %s", ANY(acts));
        break;
    case 4:
        text_append(t, "kind: max_pool, size: %s, padding: %s", ANY(sizes), ANY(paddings));
        break;
    case 5:
        text_append(t, "kind: relu");
        break;
    case 6:
        text_append(t, "kind: reshape, shape: [4, 4, %u]", 1 + throw_die(d, 12));
        break;
    default: // joins the layer before it with any above
        text_append(t, index == 0 ? "kind: add, inputs: [input, input]" : "kind: add, inputs: [l%u, l%u]",
                    index - 1, index == 0 ? 0 : throw_die(d, index));
        break;
    }
#undef ANY
    text_append(t, "}\n");
}

START_TEST(random_models_are_refused_or_consistent)
{
    unsigned good = 0, refused = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        dice d = {.key = philox_key_of(seed, "model")};
        text t = {0};
        text_append(&t, HEAD);
        const uint32_t layers = throw_die(&d, 7);
        for (uint32_t i = 0; i < layers; i++) {
            append_layer(&t, &d, i);
        }
        text_append(&t, TAIL);
        hr_preset *preset = preset_from_text(t.data);
        hr_model *model = NULL;
        const hr_status status = model_create(preset, hr_preset_knobs(preset), &model, NULL, NULL);
        ck_assert(status == HR_OK || status == HR_MODEL);
        if (status == HR_OK) {
            assert_consistent(model);
            good++;
        } else {
            refused++;
        }
        model_destroy(model);
        hr_preset_close(preset);
        text_deinit(&t);
    }
    ck_assert_uint_gt(good, 50);
    ck_assert_uint_gt(refused, 50);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *shipped_models = tcase_create("shipped");
    tcase_add_test(shipped_models, separable_cnn_has_the_counts_of_keras);
    tcase_add_test(shipped_models, resnet18_has_the_counts_of_torch);
    tcase_add_test(shipped_models, mlp_counts_weights_and_biases);
    TCase *expansion = tcase_create("expansion");
    tcase_add_test(expansion, separable_conv_is_depthwise_pointwise_relu);
    tcase_add_test(expansion, fans_are_those_of_keras);
    tcase_add_test(expansion, batch_norm_keeps_statistics_as_state);
    tcase_add_test(expansion, same_padding_puts_the_odd_pixel_behind);
    tcase_add_test(expansion, dilation_widens_the_window_and_what_same_pads);
    tcase_add_test(expansion, max_pool_strides_by_its_size_and_declares_one_output);
    tcase_add_test(expansion, residual_block_joins_named_layers);
    tcase_add_test(expansion, unnamed_layers_are_named_as_keras_does);
    tcase_add_test(expansion, a_model_of_very_many_layers_is_read);
    TCase *bad = tcase_create("bad");
    tcase_add_loop_test(bad, bad_models_are_refused_with_line_and_sentence, 0, COUNT(bad_models));
    tcase_add_test(bad, reading_stops_after_a_hundred_problems);
    TCase *faults = tcase_create("faults");
    tcase_add_test(faults, every_allocation_failing_once_loses_nothing);
    tcase_add_test(faults, every_truncation_is_refused_or_consistent);
    tcase_add_test(faults, random_models_are_refused_or_consistent);
    suite_add_tcase(suite, shipped_models);
    suite_add_tcase(suite, expansion);
    suite_add_tcase(suite, bad);
    suite_add_tcase(suite, faults);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
