// SPDX-License-Identifier: Apache-2.0
// What a Keras file says beside its layers: the batch of the input, the policy of types, and `compile_config`.
#include <stdio.h>
#include <string.h>

#include "keras.h"

enum { BATCH_MAX = 1 << 20, ACCUMULATE_MAX = 65536 };

static const json_t *of_config(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(json_object_get(object, "config"), key);
    return json_is_null(value) ? NULL : value;
}

static bool says(const json_t *object, const char *key)
{
    const json_t *value = of_config(object, key);
    return json_is_true(value);
}

// "SparseCategoricalCrossentropy" and "sparse_categorical_crossentropy" are one: letters alone, in small.
static void letters_of(const char *word, char out[64])
{
    size_t used = 0;
    for (; *word != '\0' && used < 63; word++) {
        if (*word != '_') {
            out[used++] = (char)(*word >= 'A' && *word <= 'Z' ? *word - 'A' + 'a' : *word);
        }
    }
    out[used] = '\0';
}

// A number of the loss within what headroom's has, or `usual` and a note.
static double number_of_loss(const json_t *loss, const char *key, double usual, const double range[2],
                             model_text *t)
{
    const json_t *value = of_config(loss, key);
    if (value == NULL) {
        return usual;
    }
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= range[0] && number <= range[1])) {
        model_note(t, "%s of the loss is no number from %g to %g, which headroom's takes: it is left at %g.",
                   key, range[0], range[1], usual);
        return usual;
    }
    return number;
}

static void note_smoothing(const json_t *loss, model_text *t)
{
    const json_t *value = of_config(loss, "label_smoothing");
    if (value != NULL && (!json_is_number(value) || json_number_value(value) != 0)) {
        model_note(t, "label_smoothing of the loss is left out.");
    }
}

static void read_focal(const json_t *loss, keras_compiled *c, model_text *t)
{
    static const double gammas[] = {0, 100}, alphas[] = {1e-6, 0.999999};
    c->gamma = number_of_loss(loss, "gamma", c->gamma, gammas, t);
    c->alpha = says(loss, "apply_class_balancing") ? number_of_loss(loss, "alpha", 0.25, alphas, t) : 0;
}

keras_compiled keras_loss(const json_t *model, model_text *t)
{
    static const struct {
        const char *word;
        keras_loss_kind kind;
    } rows[] = {{"sparsecategoricalcrossentropy", KERAS_LOSS_SOFTMAX},
                {"categoricalcrossentropy", KERAS_LOSS_SOFTMAX},
                {"meansquarederror", KERAS_LOSS_SQUARED},
                {"mse", KERAS_LOSS_SQUARED},
                {"binarycrossentropy", KERAS_LOSS_BINARY},
                {"binaryfocalcrossentropy", KERAS_LOSS_FOCAL}};
    char letters[64];
    const json_t *loss = json_object_get(json_object_get(model, "compile_config"), "loss");
    keras_compiled c = {.kind = KERAS_LOSS_UNSAID, .of_logits = says(loss, "from_logits"), .gamma = 2};
    if (loss == NULL || json_is_null(loss)) {
        return c;
    }
    const char *word = json_string_value(json_object_get(loss, "class_name"));
    word = word != NULL && strcmp(word, "function") != 0 ? word : keras_function(loss, "");
    letters_of(word, letters);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k].word, letters) == 0) {
            c.kind = rows[k].kind;
            note_smoothing(loss, t);
            if (c.kind == KERAS_LOSS_FOCAL) {
                read_focal(loss, &c, t);
            }
            return c;
        }
    }
    model_note(t,
               "The loss %.40s is none of headroom's: it is planned with the one that the outputs suggest.",
               word);
    return c;
}

// ---- the optimizer --------------------------------------------------------------------------------------------

static const struct {
    const char *class_name, *kind;
    const char *beta1, *beta2; // Keras' keys
    bool epsilon;
} optimizers[] = {
    {"SGD", "sgd", NULL, NULL, false},
    {"Adam", "adam", "beta_1", "beta_2", true},
    {"AdamW", "adamw", "beta_1", "beta_2", true},
    {"RMSprop", "rmsprop", "rho", NULL, true},
    {"Lion", "lion", "beta_1", "beta_2", false},
    {"Adafactor", "adafactor_keras", NULL, NULL, false},
};

// ", key: value" where it is a number within the knob's range.
static void put_real(text *out, const json_t *optimizer, const char *theirs, const char *ours, double min,
                     double max)
{
    char number[CONFIG_REAL_TEXT];
    const json_t *value = theirs != NULL ? of_config(optimizer, theirs) : NULL;
    if (json_is_number(value) && json_number_value(value) >= min && json_number_value(value) <= max) {
        // Keras keeps its learning rate as float32: 1e-4 is written 9.999999747378752e-05
        const double wide = json_number_value(value);
        for (int digits = 1; digits <= 9; digits++) {
            (void)snprintf(number, sizeof number, "%.*g", digits, wide);
            double back = 0;
            if (text_to_real(number, &back) && (float)back == (float)wide) {
                break;
            }
        }
        text_append(out, ", %s: %s", ours, number);
    }
}

static void note_what_is_left(const json_t *optimizer, model_text *t)
{
    static const char *const numbers[] = {"clipnorm", "clipvalue"};
    static const char *const flags[] = {"amsgrad", "nesterov", "centered"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const json_t *number = of_config(optimizer, numbers[k]);
        if (json_is_number(number)) {
            model_note(t,
                       "%s of the optimizer is left out: optimizer.clip_norm is of all gradients together.",
                       numbers[k]);
        }
    }
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        if (says(optimizer, flags[k])) {
            model_note(t, "%s of the optimizer is left out.", flags[k]);
        }
    }
    const json_t *rate = of_config(optimizer, "learning_rate");
    if (json_is_object(rate)) {
        model_note(t, "The schedule of the learning rate is left out: optimizer.schedule is a knob.");
    }
}

static void put_optimizer(const json_t *optimizer, model_text *t, text *knobs)
{
    char letters[64], theirs[64];
    const char *word =
        keras_function(json_object_get(optimizer, "class_name"), keras_function(optimizer, ""));
    const json_t *inner = of_config(optimizer, "inner_optimizer");
    if (strcmp(word, "LossScaleOptimizer") == 0 && json_is_object(inner)) {
        optimizer = inner;
        word = keras_function(json_object_get(inner, "class_name"), "");
    }
    letters_of(word, letters);
    for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++) {
        letters_of(optimizers[k].class_name, theirs);
        if (strcmp(theirs, letters) != 0) {
            continue;
        }
        const bool momentum = k == 0 && json_number_value(of_config(optimizer, "momentum")) > 0;
        text_append(knobs, "optimizer: {kind: %s", momentum ? "momentum" : optimizers[k].kind);
        put_real(knobs, optimizer, "learning_rate", "learning_rate", 0, 1000);
        put_real(knobs, optimizer, momentum ? "momentum" : NULL, "momentum", 0, 0.999999);
        put_real(knobs, optimizer, optimizers[k].beta1, "beta1", 0, 0.999999);
        put_real(knobs, optimizer, optimizers[k].beta2, "beta2", 0, 0.999999);
        put_real(knobs, optimizer, optimizers[k].epsilon ? "epsilon" : NULL, "epsilon", 1e-30, 1);
        put_real(knobs, optimizer, "weight_decay", "weight_decay", 0, 1);
        put_real(knobs, optimizer, "global_clipnorm", "clip_norm", 1e-9, 1e9);
        if (says(optimizer, "use_ema")) {
            put_real(knobs, optimizer, "ema_momentum", "ema", 0, 0.999999);
        }
        text_append(knobs, "}\n");
        note_what_is_left(optimizer, t);
        return;
    }
    model_note(t, "The optimizer %.40s is none of headroom's: optimizer.kind stays as it is.", word);
}

// ---- types and the batch --------------------------------------------------------------------------------------

static const char *policy_of(const json_t *layer)
{
    const json_t *type = of_config(layer, "dtype");
    return json_is_object(type) ? keras_function(of_config(type, "name"), "float32")
                                : keras_function(type, "float32");
}

// The policy of the first layer that is no input; others are said.
static void put_policy(const keras_graph *g, model_text *t, text *knobs)
{
    static const char *const known[] = {"mixed_float16", "mixed_bfloat16", "float16", "bfloat16", "float64"};
    const char *first = NULL;
    uint32_t others = 0;
    for (uint32_t k = 0; k < g->layers.count; k++) {
        const keras_layer *layer = &g->layers.data[k];
        if (strcmp(layer->class_name, "InputLayer") == 0 || of_config(layer->whole, "dtype") == NULL) {
            continue;
        }
        first = first == NULL ? policy_of(layer->whole) : first;
        others += strcmp(first, policy_of(layer->whole)) != 0;
    }
    for (size_t k = 0; first != NULL && k < sizeof known / sizeof *known; k++) {
        if (strcmp(known[k], first) == 0) {
            text_append(knobs, "precision: {policy: %s}\n", first);
        }
    }
    if (others > 0) {
        model_note(t,
                   "%u layers have another policy of types than the first: precision.policy is the first's.",
                   others);
    }
}

static long long batch_of(const keras_graph *g)
{
    const keras_layer *layer = &g->layers.data[g->nodes.data[g->inputs.data[0].node].layer];
    const json_t *shape = json_object_get(layer->config, "batch_shape");
    shape = json_is_array(shape) ? shape : json_object_get(layer->config, "batch_input_shape");
    const json_t *batch = json_array_get(shape, 0);
    return json_is_integer(batch) && json_integer_value(batch) >= 1 && json_integer_value(batch) <= BATCH_MAX
               ? (long long)json_integer_value(batch)
               : 0;
}

void keras_knobs(const json_t *model, const keras_graph *g, model_text *t, text *knobs)
{
    const json_t *compiled = json_object_get(model, "compile_config");
    const json_t *optimizer = json_object_get(compiled, "optimizer");
    const json_t *more = of_config(optimizer, "gradient_accumulation_steps");
    const long long batch = batch_of(g);
    const long long steps =
        json_is_integer(more) && json_integer_value(more) > 1 && json_integer_value(more) <= ACCUMULATE_MAX
            ? (long long)json_integer_value(more)
            : 0;
    if (batch > 0 && steps > 0) {
        text_append(knobs, "batch: {size: %lld, accumulate: %lld}\n", batch, steps);
    } else if (batch > 0 || steps > 0) {
        text_append(knobs, "batch: {%s: %lld}\n", batch > 0 ? "size" : "accumulate",
                    batch > 0 ? batch : steps);
    }
    put_policy(g, t, knobs);
    if (json_is_boolean(json_object_get(compiled, "run_eagerly"))) {
        text_append(knobs, "execution: {mode: %s}\n",
                    json_is_true(json_object_get(compiled, "run_eagerly")) ? "eager" : "graph");
    }
    if (optimizer != NULL && !json_is_null(optimizer)) {
        put_optimizer(optimizer, t, knobs);
    }
}
