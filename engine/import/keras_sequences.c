// SPDX-License-Identifier: Apache-2.0
// Keras' layers of sequences.
#include <string.h>

#include "keras_rows.h"

uint32_t keras_embedding(keras_walk *w)
{
    const int64_t vocabulary = keras_int(w, "input_dim", 0, 1, MODEL_TEXT_COUNT);
    const int64_t units = keras_int(w, "output_dim", 0, 1, MODEL_TEXT_COUNT);
    keras_shape shape = keras_input(w, 0)->shape;
    if (strcmp(keras_input(w, 0)->kind, "input") != 0) {
        return keras_refuse(w, "ids that are no input of the model");
    }
    if (vocabulary < 1 || units < 1 || shape.rank >= KERAS_DIMS) {
        return keras_refuse(w, "a table without rows or columns");
    }
    if (keras_flag(w, "mask_zero", false)) {
        keras_note(w, "The mask of padding that an embedding makes is left out.");
    }
    keras_line *ids = &w->lines.data[w->inputs[0]];
    ids->classes = ids->classes > vocabulary ? ids->classes : vocabulary;
    shape.side[shape.rank++] = units;
    const uint32_t line = keras_emit(w, "embedding", &shape);
    keras_say(w, line, ", units: %lld", (long long)units);
    if (line != KERAS_NONE) {
        w->lines.data[line].classes = vocabulary;
    }
    const int64_t sides[] = {vocabulary, units};
    keras_own(w, line, keras_weights(sides, 2));
    return line;
}

// Whether it is the LSTM, or GRU, that ours is.
static bool is_plain_recurrence(keras_walk *w)
{
    static const char *const off[] = {"go_backwards", "return_state", "stateful", "time_major"};
    bool plain = keras_flag(w, "use_bias", true) && keras_real(w, "dropout", 0, 0, 1) == 0 &&
                 keras_real(w, "recurrent_dropout", 0, 0, 1) == 0 &&
                 strcmp(keras_function(keras_value(w, "activation"), "tanh"), "tanh") == 0 &&
                 strcmp(keras_function(keras_value(w, "recurrent_activation"), "sigmoid"), "sigmoid") == 0;
    for (size_t k = 0; k < sizeof off / sizeof *off; k++) {
        plain = plain && !keras_flag(w, off[k], false);
    }
    return plain;
}

// LSTM and GRU.
uint32_t keras_recurrence(keras_walk *w)
{
    const bool gru = strcmp(w->layer->class_name, "GRU") == 0;
    const keras_shape in = keras_input(w, 0)->shape;
    const int64_t units = keras_int(w, "units", 0, 1, MODEL_TEXT_COUNT);
    if (gru && !keras_flag(w, "reset_after", true)) {
        return keras_refuse(w, "a GRU that resets before its product; try: reset_after=True");
    }
    if (!is_plain_recurrence(w)) {
        return keras_refuse(w,
                            "%s with other gates, dropout, states, time before the batch or no biases; "
                            "try: keras.layers.%s(units, return_sequences=True)",
                            gru ? "a GRU" : "an LSTM", gru ? "GRU" : "LSTM");
    }
    if (in.rank != 2 || units < 1) {
        return keras_refuse(w, "needs a sequence, places and features");
    }
    const bool all = keras_flag(w, "return_sequences", false);
    const keras_shape shape = {.rank = 2, .side = {in.side[0], units}}, one = {.rank = 2, .side = {1, units}},
                      flat = {.rank = 1, .side = {units}};
    const uint32_t line = keras_emit(w, gru ? "gru" : "lstm", &shape);
    keras_say(w, line, ", units: %lld", (long long)units);
    const int64_t sides[] = {gru ? 3 : 4, units, in.side[1] + units + (gru ? 2 : 1)};
    keras_own(w, line, keras_weights(sides, 3));
    if (all || line == KERAS_NONE) {
        return line;
    }
    const uint32_t last = keras_emit_of(w, "slice", &line, 1, &one, "_last");
    keras_say(w, last, ", axis: 1, from: %lld, count: 1", (long long)in.side[0] - 1);
    return keras_reshaped(w, last, &flat, "_reshape");
}

// A query, and keys and values of one tensor; a mask or other keys would be a third one.
static bool is_plain_attention(keras_walk *w, int64_t width)
{
    const json_t *shape = keras_value(w, "output_shape"), *axes = keras_value(w, "attention_axes");
    const json_t *words = w->node->kwargs;
    for (uint32_t k = 2; k < w->input_count; k++) {
        if (w->inputs[k] != w->inputs[1]) {
            (void)keras_refuse(w, "attention with a mask, or with keys and values of different tensors");
        }
    }
    const json_t *mask = json_object_get(words, "attention_mask");
    if ((mask != NULL && !json_is_null(mask)) || keras_told(w, "return_attention_scores") ||
        keras_flag(w, "use_gate", false) || keras_value(w, "sliding_window") != NULL) {
        (void)keras_refuse(w, "attention with a mask, or with keys and values of different tensors");
    }
    const keras_line *query = keras_input(w, 0), *key = keras_input(w, w->input_count - 1);
    const json_t *last = json_is_array(shape) ? json_array_get(shape, json_array_size(shape) - 1) : shape;
    if (query->shape.rank != 2 || key->shape.rank != 2 || key->shape.side[1] != width ||
        json_array_size(axes) > 1 || (shape != NULL && json_integer_value(last) != width)) {
        (void)keras_refuse(w, "attention whose heads or output have sizes of their own");
    }
    return w->why[0] == '\0';
}

uint32_t keras_attention(keras_walk *w)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    const int64_t width = shape.rank > 0 ? shape.side[shape.rank - 1] : 1;
    const int64_t heads = keras_int(w, "num_heads", 0, 1, MODEL_TEXT_HEADS);
    const int64_t features = keras_int(w, "key_dim", 0, 1, MODEL_TEXT_COUNT);
    const bool bias = keras_flag(w, "use_bias", true);
    const double rate = keras_real(w, "dropout", 0, 0, 0.999);
    if (keras_int(w, "value_dim", features, 1, MODEL_TEXT_COUNT) != features || heads < 1 || features < 1) {
        return keras_refuse(w, "attention whose heads or output have sizes of their own");
    }
    if (!is_plain_attention(w, width)) {
        return KERAS_NONE;
    }
    const uint32_t sources[2] = {w->inputs[0], w->inputs[w->input_count - 1]};
    const uint32_t line =
        keras_emit_of(w, "attention", sources, sources[0] == sources[1] ? 1 : 2, &shape, "");
    keras_say(w, line, ", heads: %lld%s", (long long)heads,
              keras_told(w, "use_causal_mask") ? ", causal: true" : "");
    keras_say_real(w, line, "dropout", rate, 0);
    keras_say(w, line, "%s", bias ? "" : ", bias: false");
    if (heads * features != width) {
        keras_say(w, line, ", head_dim: %lld", (long long)features);
    }
    const int64_t sides[] = {4, width, heads, features};
    keras_own(w, line,
              keras_weights(sides, 4) + (bias ? 3 * (uint64_t)(heads * features) + (uint64_t)width : 0));
    return line;
}

uint32_t keras_mean_of_places(keras_walk *w)
{
    const keras_shape in = keras_input(w, 0)->shape;
    const char *format = keras_word(w, "data_format", "channels_last");
    if (in.rank != 2 || strcmp(format, "channels_last") != 0) {
        return keras_refuse(w, "needs a sequence, places and features");
    }
    const keras_shape flat = {.rank = 1, .side = {in.side[1]}}, kept = {.rank = 2, .side = {1, in.side[1]}};
    const bool keeps = keras_flag(w, "keepdims", false);
    const uint32_t line = keras_emit(w, "reduce", &flat);
    keras_say(w, line, ", axis: 1, of: mean");
    return keras_reshaped(w, line, keeps ? &kept : &flat, "_reshape");
}
