// SPDX-License-Identifier: Apache-2.0
// Values of a layer's config and of a call's keywords, under limits, and Keras' words for activations.
#include <string.h>

#include "keras.h"

const json_t *keras_value(const keras_walk *w, const char *key)
{
    const json_t *value = json_object_get(w->layer->config, key);
    return json_is_null(value) ? NULL : value;
}

int64_t keras_int(keras_walk *w, const char *key, int64_t fallback, int64_t min, int64_t max)
{
    const json_t *value = keras_value(w, key);
    if (value == NULL) {
        return fallback;
    }
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        (void)keras_refuse(w, "its %s is no whole number from %lld to %lld", key, (long long)min,
                           (long long)max);
        return min;
    }
    return json_integer_value(value);
}

// A number that was an array or a tensor in Python stands as an object of one value.
static const json_t *bare(const json_t *value)
{
    const char *of = json_string_value(json_object_get(value, "class_name"));
    const bool boxed = of != NULL && (strcmp(of, "__tensor__") == 0 || strcmp(of, "__numpy__") == 0);
    return boxed ? json_object_get(json_object_get(value, "config"), "value") : value;
}

double keras_real(keras_walk *w, const char *key, double fallback, double min, double max)
{
    const json_t *value = bare(keras_value(w, key));
    if (value == NULL && keras_value(w, key) == NULL) {
        return fallback;
    }
    if (!json_is_number(value) || !(json_number_value(value) >= min && json_number_value(value) <= max)) {
        (void)keras_refuse(w, "its %s is no number from %g to %g", key, min, max);
        return min;
    }
    return json_number_value(value);
}

bool keras_flag(keras_walk *w, const char *key, bool fallback)
{
    const json_t *value = keras_value(w, key);
    if (value != NULL && !json_is_boolean(value)) {
        (void)keras_refuse(w, "its %s is neither true nor false", key);
    }
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

const char *keras_word(keras_walk *w, const char *key, const char *fallback)
{
    const json_t *value = keras_value(w, key);
    if (value != NULL && !json_is_string(value)) {
        (void)keras_refuse(w, "its %s is no text", key);
    }
    return json_is_string(value) ? json_string_value(value) : fallback;
}

void keras_pair(keras_walk *w, const char *key, int64_t fallback, int64_t min, int64_t out[2])
{
    const json_t *value = keras_value(w, key);
    out[0] = out[1] = fallback;
    if (value == NULL) {
        return;
    }
    for (size_t k = 0; k < 2; k++) {
        const json_t *side = json_array_size(value) == 2 ? json_array_get(value, k) : value;
        const bool good = json_is_integer(side) && json_integer_value(side) >= min &&
                          json_integer_value(side) <= KERAS_WINDOW_MAX;
        out[k] = good ? json_integer_value(side) : 1;
        if (!good) {
            (void)keras_refuse(w, "its %s is no pair of whole numbers from %lld to %d", key, (long long)min,
                               KERAS_WINDOW_MAX);
        }
    }
}

void keras_note(keras_walk *w, const char *sentence)
{
    if (w->t->notes.length == 0 || strstr(w->t->notes.data, sentence) == NULL) {
        model_note(w->t, "%s", sentence);
    }
}

bool keras_told(const keras_walk *w, const char *key)
{
    return json_is_true(json_object_get(w->node->kwargs, key));
}

const char *keras_function(const json_t *value, const char *fallback)
{
    const json_t *said = json_object_get(value, "config");
    const char *word = json_string_value(value);
    word = word == NULL ? json_string_value(said) : word; // a function of the user's
    word = word == NULL ? json_string_value(json_object_get(said, "name")) : word;
    word = word == NULL ? json_string_value(json_object_get(value, "class_name")) : word;
    return word != NULL ? word : value != NULL && !json_is_null(value) ? "of another kind" : fallback;
}

const char *keras_activation_of(const char *word)
{
    static const char *const rows[][2] = {
        {"relu", "relu"},       {"relu6", "relu6"},          {"gelu", "gelu"},
        {"silu", "silu"},       {"swish", "silu"},           {"tanh", "tanh"},
        {"sigmoid", "sigmoid"}, {"hard_silu", "hard_swish"}, {"hard_swish", "hard_swish"},
        {"mish", "mish"},       {"softplus", "softplus"},    {"hard_sigmoid", "hard_sigmoid"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k][0], word) == 0) {
            return rows[k][1];
        }
    }
    return NULL;
}

// Whether the call gives a result of the model itself: not one of a model within it, nor another call of the same layer.
static bool is_last(const keras_walk *w)
{
    for (uint32_t k = 0; w->depth == 0 && k < w->top->outputs.count; k++) {
        if (w->node == &w->top->nodes.data[w->top->outputs.data[k].node]) {
            return true;
        }
    }
    return false;
}

uint32_t keras_activated(keras_walk *w, uint32_t line, const char *word)
{
    if (line == KERAS_NONE || strcmp(word, "linear") == 0) {
        return line;
    }
    const bool binary = w->loss.kind == KERAS_LOSS_BINARY || w->loss.kind == KERAS_LOSS_FOCAL;
    if (strcmp(word, "sigmoid") == 0 && binary) { // a line of its own, which may be the loss's: keras_write
        const keras_shape shape = w->lines.data[line].shape;
        return keras_emit_of(w, "sigmoid", &line, 1, &shape, "_sigmoid");
    }
    if (strcmp(word, "softmax") == 0 && is_last(w) && w->loss.kind != KERAS_LOSS_SQUARED && !binary) {
        keras_note(w, "The last softmax is left out: the cross entropy has its own.");
        return line;
    }
    if (strcmp(word, "softmax") == 0) {
        const keras_shape shape = w->lines.data[line].shape;
        return keras_emit_of(w, "softmax", &line, 1, &shape, "_softmax");
    }
    const char *ours = keras_activation_of(word);
    if (ours == NULL) {
        return keras_refuse(w, "the activation %.60s", word);
    }
    w->lines.data[line].activation = ours;
    return line;
}
