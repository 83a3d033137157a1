// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of Keras' files: the parameters that Keras counts (tests/data/keras/make.py prints them), the layers of Keras
// 3 and 2 alike, knobs of what was compiled, what cannot be held refused by name, and no file of a stranger does more than be
// refused.
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "model/model.h"

static char folder[64];
static hr_preset *preset;
static hr_err err;

static const char *put(const char *leaf, const char *data, size_t bytes)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, leaf);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static void setup(void)
{
    (void)strcpy(folder, "/tmp/headroom-keras-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    memset(&err, 0, sizeof err);
}

static void close_preset(void)
{
    hr_preset_close(preset);
    preset = NULL;
}

static void teardown(void)
{
    char command[128];
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0); // NOLINT(cert-env33-c): a folder of its own
}

static const char *open_good(const char *path)
{
    char *problems = NULL;
    const hr_status status = hr_preset_open(path, false, &preset, &problems, &err);
    ck_assert_msg(status == HR_OK, "%s: %s", path, problems != NULL ? problems : err.sentence);
    return hr_preset_imported(preset);
}

// Opened, or refused in a sentence; so is its model.
static void open_any(const char *path)
{
    char *problems = NULL;
    hr_model *model = NULL;
    memset(&err, 0, sizeof err);
    const hr_status status = hr_preset_open(path, false, &preset, &problems, &err);
    ck_assert_msg(status == HR_OK || err.sentence[0] != '\0', "refused without a sentence");
    ck_assert_msg(problems == NULL, "what was written is no preset: %s", problems);
    if (status == HR_OK) {
        const hr_status built = model_create(preset, hr_preset_knobs(preset), &model, NULL, &err);
        ck_assert_msg(built == HR_OK || err.sentence[0] != '\0', "a model refused without a sentence");
        model_destroy(model);
    }
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
}

// ---- what Keras writes ----------------------------------------------------------------------------------------

static const struct {
    const char *file;
    uint64_t parameters;
    const char *says; // a line of it
} files[] = {
    {"separable.json", 99213, "{name: zero_padding2d, kind: zero_pad, padding: [0, 1, 2, 3]}"},
    {"separable_2.json", 99213, "{name: batch_normalization, kind: batch_norm, momentum: 0.1}"},
    {"segment.keras", 112, "{name: up_sampling2d_1, kind: upsample, size: [2, 1], mode: bilinear}"},
    {"segment.keras", 112, "activation: sigmoid}"}, // its results are mixed: it is no loss's
    {"gates.json", 1821, "{name: multiply, kind: multiply, inputs: [batch_normalization_1, dense_1]}"},
    {"shared.json", 1087, "{name: once_2, kind: conv2d, filters: 4, kernel: 3, padding: same, share: once}"},
    {"shared_2.json", 1087,
     "{name: once_2, kind: conv2d, filters: 4, kernel: 3, padding: same, share: once}"},
    {"words.json", 3714, "input: {type: int32, classes: 50, shape: [12]}"},
    {"words_2.json", 3714, "{name: lstm_1_last, kind: slice, axis: 1, from: 11, count: 1}"},
    {"compiled.keras", 705, "loss: mean_squared_error"},
    {"tagged.keras", 870, "{name: dense_1, kind: dense, units: 6}\n"}, // its sigmoid is the loss's
    {"tagged.keras", 870, "loss: binary_cross_entropy\n"},
    {"waves.json", 292,
     "{name: conv1d, kind: conv1d, filters: 8, kernel: 3, dilation: 2, padding: causal, activation: relu}"},
    {"gated.json", 1747, "{name: gru, kind: gru, units: 8}"},
    {"waves.json", 292, "{name: average_pooling1d, kind: avg_pool1d, size: 3, stride: 2, padding: same}"},
    {"focal.keras", 175, "- {kind: focal, gamma: 1.5, alpha: 0.3, prediction: conv2d_1}"},
};

START_TEST(parameters_are_those_that_keras_counts)
{
    char path[128];
    char *problems = NULL;
    hr_model *model = NULL;
    (void)snprintf(path, sizeof path, "tests/data/keras/%s", files[_i].file);
    const char *words = open_good(path);
    ck_assert_msg(strstr(words, files[_i].says) != NULL, "%s", words);
    ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, &problems, &err) == HR_OK, "%s",
                  problems);
    ck_assert_uint_eq(model->trainable_parameters, files[_i].parameters);
    model_destroy(model);
}
END_TEST

START_TEST(what_was_compiled_is_knobs)
{
    (void)open_good("tests/data/keras/compiled.keras");
    const hr_knobs *k = hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knob_int(k, HR_KNOB_BATCH_SIZE), 16);
    ck_assert(hr_knob_is(k, HR_KNOB_OPTIMIZER_KIND, "adamw"));
    ck_assert(hr_knob_is(k, HR_KNOB_EXECUTION_MODE, "graph"));
    ck_assert_double_eq(hr_knob_real(k, HR_KNOB_OPTIMIZER_LEARNING_RATE), 1e-4);
    ck_assert_double_eq(hr_knob_real(k, HR_KNOB_OPTIMIZER_WEIGHT_DECAY), 0.01);
    ck_assert_double_eq(hr_knob_real(k, HR_KNOB_OPTIMIZER_CLIP_NORM), 1);
}
END_TEST

// ---- what is refused ------------------------------------------------------------------------------------------

#define CHAIN(input, layers)                                                                                 \
    "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["    \
    "{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"in\", \"batch_shape\": " input "}}, " layers  \
    "]}}"
#define TENSOR(name, call)                                                                                   \
    "{\"args\": [{\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": [\"" name            \
    "\", " call ", 0]}}], \"kwargs\": {}}"
#define GRAPH(calls_of_a, calls_of_b)                                                                        \
    "{\"class_name\": \"Functional\", \"config\": {\"name\": \"g\", \"layers\": ["                           \
    "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {\"name\": \"x\", \"batch_shape\": "      \
    "[null, 4]}}, "                                                                                          \
    "{\"class_name\": \"Dense\", \"name\": \"a\", \"config\": {\"name\": \"a\", \"units\": 4}, "             \
    "\"inbound_nodes\": [" calls_of_a "]}, "                                                                 \
    "{\"class_name\": \"Dense\", \"name\": \"b\", \"config\": {\"name\": \"b\", \"units\": 4}, "             \
    "\"inbound_nodes\": [" calls_of_b "]}], "                                                                \
    "\"input_layers\": [\"x\", 0, 0], \"output_layers\": [\"b\", 0, 0]}}"
#define INPUT(name, shape)                                                                                   \
    "{\"class_name\": \"InputLayer\", \"name\": \"" name "\", \"config\": {\"name\": \"" name                \
    "\", \"batch_shape\": " shape "}}"
#define LAYER(of, name, config, calls)                                                                       \
    "{\"class_name\": \"" of "\", \"name\": \"" name "\", \"config\": {\"name\": \"" name "\"" config        \
    "}, \"inbound_nodes\": [" calls "]}"
#define BODY(layers, inputs, outputs)                                                                        \
    ", \"layers\": [" layers "], \"input_layers\": [" inputs "], \"output_layers\": [" outputs "]"
#define FUNCTIONAL(layers, inputs, outputs)                                                                  \
    "{\"class_name\": \"Functional\", \"config\": {\"name\": \"f\"" BODY(layers, inputs, outputs) "}}"
#define CALLED_WITH(keyword, name)                                                                           \
    "\"" keyword "\": {\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": [\"" name       \
    "\", 0, 0]}}"
#define DENSE(more) "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", " more "}}"

static const struct {
    const char *words, *sentence;
} refused[] = {
    {"{\"class_name\": \"Mine\", \"config\": {}}", "class_name needs Sequential or Functional, had 'Mine'"},
    {"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\"}}",
     "is a model without a list of layers"},
    {"{\"class_name\": \"Sequential\", \"config\": 5}", "is a model without a list of layers"},
    {CHAIN("[null, null, 3]", DENSE("\"units\": 5")),
     "InputLayer 'in': a size that is not fixed; try: an Input with every size"},
    {CHAIN("[null]", DENSE("\"units\": 5")), "an input without a shape of 1 to 8 sizes"},
    {CHAIN("[null, 4]", DENSE("\"units\": 1000000000000000000")),
     "Dense 'd': its units is no whole number from 1 to 16777216"},
    {CHAIN("[null, 4]", DENSE("\"units\": 5, \"activation\": \"selu\"")), "Dense 'd': the activation selu"},
    {CHAIN("[null, 16777216, 16777216]", DENSE("\"units\": 2")),
     "InputLayer 'in': a tensor beyond the largest of 2^40 elements"},
    {CHAIN("[null, 4]", "{\"class_name\": \"Dense\", \"module\": \"mine\", \"config\": {\"units\": 3}}"),
     "Dense '': a class of mine, which no file describes"},
    {CHAIN("[null, 4, 4, 2]",
           "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 2, \"kernel_size\": 5}}"),
     "Conv2D 'c': leaves nothing of what it is given"},
    {CHAIN("[null, 4, 4, 2]",
           "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 2, \"kernel_size\": 0}}"),
     "Conv2D 'c': its kernel_size is no pair of whole numbers from 1 to 65535"},
    {CHAIN("[null, 4, 4, 2]", "{\"class_name\": \"MaxPooling2D\", \"config\": {\"name\": \"p\", "
                              "\"data_format\": \"channels_first\"}}"),
     "MaxPooling2D 'p': images with their channels first"},
    {CHAIN("[null, 4]",
           "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [3, -1]}}"),
     "Reshape 'r': a shape of another number of elements"},
    {CHAIN("[null, 3, 4]", "{\"class_name\": \"Softmax\", \"config\": {\"name\": \"s\", \"axis\": 1}}"),
     "Softmax 's': a softmax over other axes than the last"},
    {CHAIN("[null, 4]", "{\"class_name\": \"ReLU\", \"config\": {\"name\": \"r\", \"max_value\": 6.0, "
                        "\"negative_slope\": 0.1}}"),
     "ReLU 'r': a ReLU with a slope of 0.1, and a threshold or a largest value"},
    {CHAIN("[null, 3, 4]", "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 2, "
                           "\"time_major\": true, \"return_sequences\": true}}"),
     "LSTM 'l': an LSTM with other gates, dropout, states, time before the batch or no biases"},
    {GRAPH(TENSOR("b", "0"), TENSOR("a", "0")), "has calls that go round in a circle"},
    {GRAPH(TENSOR("x", "0"), TENSOR("nobody", "0")), "the layer 'nobody' is named, and there is none"},
    {GRAPH(TENSOR("x", "0"), TENSOR("a", "7")), "the layer 'a' is named with a call that is not in the file"},
    {GRAPH(TENSOR("x", "0"), "{\"args\": [], \"kwargs\": {}}"), "Dense 'b': is given 0 tensors"},
    {GRAPH("", TENSOR("a", "0")), "the layer 'a' is named with a call that is not in the file"},
};

START_TEST(what_cannot_be_held_is_refused_by_name)
{
    const char *path = put("x.json", refused[_i].words, strlen(refused[_i].words));
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, refused[_i].sentence) != NULL, "%s", err.sentence);
    ck_assert_str_ne(err.hint, "");
}
END_TEST

#define SOFTMAX ", \"units\": 4, \"activation\": \"softmax\""
#define FROZEN  ", \"units\": 4, \"trainable\": false"

#define RESHAPE     ", {\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [2, 2]}}"
#define BINARY_LOSS "{\"class_name\": \"BinaryCrossentropy\", \"config\": {\"from_logits\": false}}"
#define FOCAL_LOSS(more)                                                                                     \
    "{\"class_name\": \"BinaryFocalCrossentropy\", \"config\": {\"name\": \"b\"" more "}}"
// Four numbers of eight, then an activation and more.
#define BINARY(loss, activation, more)                                                                       \
    "{\"class_name\": \"Sequential\", \"compile_config\": {\"loss\": " loss                                  \
    "}, \"config\": {\"name\": \"n\", \"layers\": [{\"class_name\": \"InputLayer\", \"config\": "            \
    "{\"batch_shape\": [null, 8], \"name\": \"i\"}}, {\"class_name\": \"Dense\", \"config\": {\"name\": "    \
    "\"d\", \"units\": 4, \"activation\": \"" activation "\"}}" more "]}}"

// What the text has, and what it has not; NULL: nothing is asked.
static const struct {
    const char *words, *has, *has_not;
} meant[] = {
    // The softmax of the result is the loss's. That of another layer of its name is not, nor that of its first call.
    {FUNCTIONAL(INPUT("x", "[null, 4]") ", " LAYER(
                    "Functional", "inner",
                    BODY(INPUT("i", "[null, 4]") ", " LAYER("Dense", "out", SOFTMAX, TENSOR("i", "0")),
                         "[\"i\", 0, 0]", "[\"out\", 0, 0]"),
                    TENSOR("x", "0")) ", " LAYER("Dense", "out", SOFTMAX, TENSOR("inner", "0")),
                "[\"x\", 0, 0]", "[\"out\", 0, 0]"),
     "{name: out_softmax, kind: softmax}", "out_1_softmax"},
    {FUNCTIONAL(INPUT("x", "[null, 4]") ", " LAYER("Dense", "out", SOFTMAX,
                                                   TENSOR("x", "0") ", " TENSOR("out", "0")),
                "[\"x\", 0, 0]", "[\"out\", 1, 0]"),
     "{name: out_softmax, kind: softmax}", "out_1_softmax"},
    {FUNCTIONAL(INPUT("x", "[null, 4]") ", " LAYER("Dense", "out", SOFTMAX, TENSOR("x", "0")),
                "[\"x\", 0, 0]", "[\"out\", 0, 0]"),
     "{name: out, kind: dense, units: 4}", "kind: softmax"},
    // Binary losses take logits: of a sigmoid that only a reshape parts from the result, or it is said.
    {BINARY(BINARY_LOSS, "sigmoid", RESHAPE), "{name: d, kind: dense, units: 4}\n", "sigmoid}"},
    {BINARY(BINARY_LOSS, "sigmoid", RESHAPE), "The last sigmoid is left out", "as logits"},
    {BINARY(BINARY_LOSS, "linear", ""),
     "no sigmoid before it can be left out: the outputs are taken as logits", "is left out:"},
    {BINARY(BINARY_LOSS, "relu", ""), "the outputs are taken as logits", NULL},
    {BINARY(BINARY_LOSS, "softmax", ""), "the outputs are taken as logits", NULL},
    {BINARY(FOCAL_LOSS(", \"from_logits\": true"), "sigmoid", ""), "activation: sigmoid", "as logits"},
    {BINARY(FOCAL_LOSS(", \"label_smoothing\": 0.2"), "sigmoid", ""),
     "label_smoothing of the loss is left out", NULL},
    {BINARY(FOCAL_LOSS(", \"label_smoothing\": 0"), "sigmoid", ""), "gamma: 2, alpha: 0,", "label_smoothing"},
    {BINARY(FOCAL_LOSS(", \"gamma\": \"two\""), "sigmoid", ""),
     "gamma of the loss is no number from 0 to 100", "gamma: 0"},
    {BINARY(FOCAL_LOSS(", \"gamma\": -1"), "sigmoid", ""), "gamma of the loss is no number from 0 to 100",
     NULL},
    {BINARY(FOCAL_LOSS(", \"gamma\": 1e300"), "sigmoid", ""), "gamma: 2, alpha: 0,", NULL},
    {BINARY(FOCAL_LOSS(", \"apply_class_balancing\": true, \"alpha\": 1"), "sigmoid", ""),
     "alpha of the loss is no number from 1e-06 to 0.999999", NULL},
    {BINARY(FOCAL_LOSS(", \"apply_class_balancing\": true, \"alpha\": 0"), "sigmoid", ""),
     "gamma: 2, alpha: 0.25,", NULL},
    // Keywords in another order than that of the arguments.
    {FUNCTIONAL(INPUT("a", "[null, 5, 4]") ", " INPUT("b", "[null, 7, 4]") ", " LAYER(
                    "MultiHeadAttention", "att", ", \"num_heads\": 2, \"key_dim\": 2",
                    "{\"args\": [], \"kwargs\": {" CALLED_WITH("key", "b") ", " CALLED_WITH(
                        "value", "b") ", " CALLED_WITH("query", "a") "}}"),
                "[\"a\", 0, 0], [\"b\", 0, 0]", "[\"att\", 0, 0]"),
     "{name: att, kind: attention, inputs: [a, b], heads: 2}", NULL},
    {CHAIN(
         "[null, 3, 4]",
         "{\"class_name\": \"Softmax\", \"config\": {\"name\": \"s\", \"axis\": 2}}, " DENSE("\"units\": 5")),
     "{name: s_softmax, kind: softmax}", NULL},
    {CHAIN("[null, 4]", "{\"class_name\": \"ReLU\", \"config\": {\"name\": \"r\", \"max_value\": null, "
                        "\"threshold\": 0.0, \"negative_slope\": 0.1}}, " DENSE("\"units\": 5")),
     "{name: r, kind: leaky_relu, slope: 0.1}", NULL},
    // A slope that was a tensor, as Keras 3 writes it.
    {CHAIN(
         "[null, 4]",
         "{\"class_name\": \"LeakyReLU\", \"config\": {\"name\": \"r\", \"negative_slope\": {\"class_name\": "
         "\"__tensor__\", \"config\": {\"value\": 0.25, \"dtype\": \"float32\"}}}}, " DENSE("\"units\": 5")),
     "{name: r, kind: leaky_relu, slope: 0.25}", NULL},
    // A window of 5 over 9 pixels.
    {CHAIN("[null, 9, 9, 3]",
           "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 4, "
           "\"kernel_size\": [3, 3], \"dilation_rate\": [2, 2]}}, {\"class_name\": \"Flatten\", "
           "\"config\": {\"name\": \"f\"}}, " DENSE("\"units\": 5")),
     "{name: c, kind: conv2d, filters: 4, kernel: 3, dilation: 2}", "505 layers"},
    {FUNCTIONAL(INPUT("x", "[null, 4]") ", " LAYER(
                    "Rescaling", "r", ", \"scale\": 0.5",
                    TENSOR("x", "0")) ", " LAYER("Rescaling", "s", ", \"scale\": 0.5",
                                                 TENSOR("r", "0")) ", " LAYER("Dense", "o", ", \"units\": 4",
                                                                              TENSOR("s", "0")),
                "[\"x\", 0, 0]", "[\"o\", 0, 0]"),
     "The preparation of samples (Rescaling) is left out", "pipeline. The preparation"},
    // A label has one shape: outputs of the same last size are not alike.
    {FUNCTIONAL(
         INPUT("x", "[null, 16]") ", " LAYER("Dense", "o", ", \"units\": 4", TENSOR("x", "0")) ", " LAYER(
             "Reshape", "r", ", \"target_shape\": [4, 4]", TENSOR("x", "0")),
         "[\"x\", 0, 0]", "[\"o\", 0, 0], [\"r\", 0, 0]"),
     "Outputs of another shape than the first (1) have no loss", "kind: reshape"},
    {CHAIN("[null, 4]",
           DENSE("\"units\": 4, \"trainable\": true") ", " DENSE("\"units\": 3, \"trainable\": false")),
     "\"1 layer is frozen in Keras, and is written as it trains.\"", NULL},
    {FUNCTIONAL(
         INPUT("x", "[null, 4]") ", " LAYER(
             "Dense", "a", FROZEN, TENSOR("x", "0") ", " TENSOR("a", "0")) ", " LAYER("Dense", "b", FROZEN,
                                                                                      TENSOR("a", "1")),
         "[\"x\", 0, 0]", "[\"b\", 0, 0]"),
     "\"2 layers are frozen in Keras, and are written as they train.\"", NULL},
};

START_TEST(what_is_written_is_what_keras_means)
{
    const char *words = open_good(put("x.json", meant[_i].words, strlen(meant[_i].words)));
    ck_assert_msg(strstr(words, meant[_i].has) != NULL, "%s", words);
    ck_assert_msg(meant[_i].has_not == NULL || strstr(words, meant[_i].has_not) == NULL, "%s", words);
}
END_TEST

START_TEST(a_layer_that_we_lack_is_named)
{
    ck_assert_int_eq(hr_preset_open("tests/data/keras/cropped.json", false, &preset, NULL, &err), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "Cropping2D 'cropping2d': no layer of headroom does this") != NULL,
                  "%s", err.sentence);
}
END_TEST

START_TEST(models_in_one_another_are_bounded)
{
    enum { DEEP = 40, ROOM = 1 << 16 };
    char *words = calloc(ROOM, 1);
    for (int k = 0; k < DEEP; k++) {
        (void)strcat(words, "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", "
                            "\"batch_input_shape\": [null, 4], "
                            "\"layers\": [");
    }
    for (int k = 0; k < DEEP; k++) {
        (void)strcat(words, "]}}");
    }
    ck_assert_int_eq(hr_preset_open(put("x.json", words, strlen(words)), false, &preset, NULL, &err),
                     HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "models in one another, more than 12 deep") != NULL, "%s",
                  err.sentence);
    free(words);
}
END_TEST

// A model with calls that nothing reads, CALLS times a layer of the model: reading it again and again would take minutes.
START_TEST(models_that_are_called_are_bounded_by_all_that_is_in_them)
{
    enum { CALLS = 200, IDLE = 20000, ROOM = 1 << 17 };
    char *words = calloc(ROOM, 1), *at = words;
    at = stpcpy(at, "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [" INPUT(
                        "x", "[null, 4]"));
    at = stpcpy(
        at,
        ", {\"class_name\": \"Functional\", \"name\": \"n\", \"config\": {\"name\": \"n\", \"layers\": "
        "[" INPUT(
            "i",
            "[null, 4]") ", {\"class_name\": \"Identity\", \"name\": \"z\", \"config\": {\"name\": \"z\"}, "
                         "\"inbound_nodes\": [[[\"i\", 0, 0, {}]]");
    for (int k = 0; k < IDLE; k++) {
        at = stpcpy(at, ",0");
    }
    at = stpcpy(
        at,
        "]}], \"input_layers\": [[\"i\", 0, 0]], \"output_layers\": [[\"z\", 0, 0]]}, \"inbound_nodes\": [");
    for (int k = 0; k < CALLS; k++) {
        at = stpcpy(at, k == 0 ? "[[\"x\", 0, 0, {}]]" : ", [[\"x\", 0, 0, {}]]");
    }
    at = stpcpy(at, "]}], \"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"n\", 1, 0]");
    for (int k = 1; k < CALLS; k++) {
        at += sprintf(at, ", [\"n\", %d, 0]", k + 1);
    }
    at = stpcpy(at, "]}}");
    ck_assert_int_eq(hr_preset_open(put("x.json", words, (size_t)(at - words)), false, &preset, NULL, &err),
                     HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "more than 524288") != NULL, "%s", err.sentence);
    free(words);
}
END_TEST

START_TEST(a_name_beyond_all_names_is_refused)
{
    enum { LONG = 5000 };
    char *words = calloc(LONG + 512, 1), *name = malloc(LONG + 1);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    (void)sprintf(
        words,
        CHAIN("[null, 4]", "{\"class_name\": \"Dense\", \"config\": {\"name\": \"%s\", \"units\": 5}}"),
        name);
    ck_assert_int_eq(hr_preset_open(put("x.json", words, strlen(words)), false, &preset, NULL, &err),
                     HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "has a longer name than a layer can have") != NULL, "%s",
                  err.sentence);
    free(name);
    free(words);
}
END_TEST

START_TEST(an_archive_without_a_model_is_told)
{
    static const char empty[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const char *path = put("x.keras", empty, sizeof empty - 1);
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), HR_DATA);
    ck_assert_msg(strstr(err.sentence, "which has a config.json, had none in it") != NULL, "%s",
                  err.sentence);
    path = put("y.keras", "weights", 7);
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), HR_DATA);
    ck_assert_msg(strstr(err.hint, "model.save('model.keras')") != NULL, "%s", err.hint);
    ck_assert(hr_preset_is_path("model.keras"));
}
END_TEST

// ---- files of strangers ---------------------------------------------------------------------------------------

// In memory of the test, which open_any does not count.
static char *bytes_of(const char *file, size_t *bytes)
{
    char path[128], *data = NULL;
    (void)snprintf(path, sizeof path, "tests/data/keras/%s", file);
    ck_assert_int_eq(file_read(path, 1 << 20, &data, bytes, &err), HR_OK);
    char *copy = malloc(*bytes);
    memcpy(copy, data, *bytes);
    hr_free(data);
    return copy;
}

static const char *ending_of(int file)
{
    return strstr(files[file].file, ".keras") != NULL ? "x.keras" : "x.json";
}

START_TEST(a_file_cut_anywhere_is_refused_or_read)
{
    size_t bytes = 0;
    char *data = bytes_of(files[_i].file, &bytes);
    for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 150) {
        open_any(put(ending_of(_i), data, cut));
    }
    free(data);
}
END_TEST

// Numbers that no layer has, words of others, and other bytes.
START_TEST(a_file_with_other_bytes_is_refused_or_read)
{
    static const char others[] = "0195-\"[]{},:\xff";
    size_t bytes = 0;
    uint32_t seed = 7;
    char *data = bytes_of(files[_i].file, &bytes);
    char *copy = malloc(bytes);
    for (int k = 0; k < 300; k++) {
        memcpy(copy, data, bytes);
        for (int n = 0; n < 1 + k % 3; n++) {
            seed = seed * 1664525U + 1013904223U;
            copy[(seed >> 8) % bytes] = others[(seed >> 4) % (sizeof others - 1)];
        }
        open_any(put(ending_of(_i), copy, bytes));
    }
    free(copy);
    free(data);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    char path[128];
    uint64_t asked = 1;
    (void)snprintf(path, sizeof path, "tests/data/keras/%s", files[_i].file);
    for (uint64_t nth = 1; asked >= nth; nth++) {
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = hr_preset_open(path, false, &preset, NULL, &err);
        asked = hr_host_mem_fail_at(0);
        ck_assert_msg(status == (asked >= nth ? HR_NOMEM : HR_OK), "%d: %s", (int)status, err.sentence);
        close_preset();
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("keras");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, parameters_are_those_that_keras_counts, 0, ROWS(files));
    tcase_add_test(tests, what_was_compiled_is_knobs);
    tcase_add_loop_test(tests, what_cannot_be_held_is_refused_by_name, 0, ROWS(refused));
    tcase_add_loop_test(tests, what_is_written_is_what_keras_means, 0, ROWS(meant));
    tcase_add_test(tests, a_layer_that_we_lack_is_named);
    tcase_add_test(tests, models_in_one_another_are_bounded);
    tcase_add_test(tests, models_that_are_called_are_bounded_by_all_that_is_in_them);
    tcase_add_test(tests, a_name_beyond_all_names_is_refused);
    tcase_add_test(tests, an_archive_without_a_model_is_told);
    tcase_add_loop_test(tests, a_file_cut_anywhere_is_refused_or_read, 0, ROWS(files));
    tcase_add_loop_test(tests, a_file_with_other_bytes_is_refused_or_read, 0, ROWS(files));
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, ROWS(files));
    Suite *suite = suite_create("keras");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
