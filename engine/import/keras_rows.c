// SPDX-License-Identifier: Apache-2.0
// The table of Keras' layers, and those of any tensor.
#include "keras_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"

enum { ANY = 1 << 16 };

static uint32_t left_as_it_is(keras_walk *w)
{
    return w->inputs[0];
}

static uint32_t noise(keras_walk *w)
{
    return keras_refuse(w, "random noise other than dropout");
}

// What is done to samples before the first weight is left to the pipeline.
static uint32_t prepared(keras_walk *w)
{
    const json_t *scale = keras_value(w, "scale"), *offset = keras_value(w, "offset");
    if (strcmp(keras_input(w, 0)->kind, "input") == 0) {
        keras_note(
            w, w->layer->class_name[0] == 'R'
                   ? "The preparation of samples (Rescaling) is left out: it belongs to the input pipeline."
                   : "The preparation of samples (Normalization) is left out: it belongs to the input "
                     "pipeline.");
        return w->inputs[0];
    }
    if (!json_is_number(scale) || json_number_value(offset) != 0 ||
        (offset != NULL && !json_is_number(offset))) {
        return keras_refuse(w, "a normalisation inside the model");
    }
    const keras_shape shape = keras_input(w, 0)->shape;
    const uint32_t line = keras_emit(w, "scale", &shape);
    keras_say_real(w, line, "factor", json_number_value(scale), (double)NAN);
    return line;
}

static uint32_t dense(keras_walk *w)
{
    keras_shape shape = keras_input(w, 0)->shape;
    const int64_t units = keras_int(w, "units", 0, 1, MODEL_TEXT_COUNT);
    const bool bias = keras_flag(w, "use_bias", true);
    if (units < 1 || shape.rank < 1) {
        return keras_refuse(w, "a dense layer without units");
    }
    const int64_t sides[] = {shape.side[shape.rank - 1], units};
    shape.side[shape.rank - 1] = units;
    const uint32_t line = keras_emit(w, "dense", &shape);
    keras_say(w, line, ", units: %lld%s", (long long)units, bias ? "" : ", bias: false");
    keras_own(w, line, keras_weights(sides, 2) + (bias ? (uint64_t)units : 0));
    return keras_activated(w, line, keras_function(keras_value(w, "activation"), "linear"));
}

// Whether `axis` is the last one: missing, a number, or a list of one.
static bool is_over_last(const keras_walk *w, uint32_t rank)
{
    const json_t *axis = keras_value(w, "axis");
    const json_t *items =
        json_is_object(axis) ? json_object_get(json_object_get(axis, "config"), "items") : NULL;
    axis = items != NULL ? items : json_is_object(axis) ? json_object_get(axis, "items") : axis;
    const json_t *one = json_array_size(axis) == 1 ? json_array_get(axis, 0) : axis;
    return axis == NULL || (json_is_integer(one) &&
                            (json_integer_value(one) == -1 || json_integer_value(one) == (json_int_t)rank));
}

static uint32_t norm(keras_walk *w)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    const char *of = w->layer->class_name;
    const bool batch = of[0] == 'B', rms = of[0] == 'R';
    if (!rms && (!keras_flag(w, "scale", true) || !keras_flag(w, "center", true))) {
        return keras_refuse(w, "a %s norm without gamma or beta; try: scale=True, center=True",
                            batch ? "batch" : "layer");
    }
    if (keras_flag(w, "rms_scaling", false) || shape.rank < 1 || !is_over_last(w, shape.rank)) {
        return keras_refuse(w, "a norm over other axes than the last");
    }
    const uint32_t line = keras_emit(w, batch ? "batch_norm" : rms ? "rms_norm" : "layer_norm", &shape);
    keras_say_real(w, line, "epsilon", keras_real(w, "epsilon", rms ? 1e-6 : 1e-3, 1e-12, 1),
                   batch || !rms ? 1e-3 : (double)NAN);
    if (batch) {
        const double kept = keras_real(w, "momentum", 0.99, 0, 1);
        keras_say_real(w, line, "momentum", round((1 - kept) * 1e9) / 1e9, 0.01);
    }
    keras_own(w, line, (rms ? 1 : 2) * (uint64_t)shape.side[shape.rank - 1]);
    return line;
}

static uint32_t layer_scale(keras_walk *w)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    const uint32_t line = keras_emit(w, "layer_scale", &shape);
    keras_own(w, line, shape.rank > 0 ? (uint64_t)shape.side[shape.rank - 1] : 1);
    return line;
}

// ---- activations ----------------------------------------------------------------------------------------------

// Keras' word for the activation that a layer or an operation is; NULL: refused.
static const char *word_of_layer(keras_walk *w)
{
    static const char *const rows[][2] = {
        {"Softmax", "softmax"},    {"Gelu", "gelu"},
        {"GELU", "gelu"},          {"Relu", "relu"},
        {"Relu6", "relu6"},        {"Silu", "silu"},
        {"Sigmoid", "sigmoid"},    {"Tanh", "tanh"},
        {"HardSilu", "hard_silu"}, {"HardSigmoid", "hard_sigmoid"},
    };
    const char *of = w->layer->class_name;
    if (strcmp(of, "Activation") == 0) {
        return keras_function(keras_value(w, "activation"), "linear");
    }
    if (strcmp(of, "ReLU") == 0) {
        const double threshold = keras_real(w, "threshold", 0, 0, 1e9),
                     most = keras_real(w, "max_value", 0, 0, 1e9);
        if (threshold != 0 || (keras_value(w, "max_value") != NULL && most != 6)) {
            (void)keras_refuse(w, "a ReLU with a threshold of %g and a largest value of %g", threshold, most);
        }
        return most != 0 ? "relu6" : "relu";
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k][0], of) == 0) {
            return rows[k][1];
        }
    }
    return of;
}

static uint32_t leaky(keras_walk *w, double slope)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    const uint32_t line = keras_emit(w, "leaky_relu", &shape);
    keras_say_real(w, line, "slope", slope, 0.01);
    return line;
}

static uint32_t activation(keras_walk *w)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    const bool is_leaky = strcmp(w->layer->class_name, "LeakyReLU") == 0;
    const char *key = keras_value(w, "alpha") != NULL ? "alpha" : "negative_slope";
    const double slope = keras_real(w, key, is_leaky ? 0.3 : 0, 0, 1e6);
    if (!is_leaky && slope != 0 &&
        (keras_value(w, "max_value") != NULL || keras_real(w, "threshold", 0, 0, 1e9) != 0)) {
        return keras_refuse(w, "a ReLU with a slope of %g, and a threshold or a largest value", slope);
    }
    if (is_leaky || slope != 0) {
        return leaky(w, slope);
    }
    if (strcmp(w->layer->class_name, "Softmax") == 0 && !is_over_last(w, shape.rank)) {
        return keras_refuse(w, "a softmax over other axes than the last");
    }
    const char *word = word_of_layer(w);
    if (strcmp(word, "relu6") == 0 && strcmp(keras_input(w, 0)->kind, "plus3") == 0) {
        w->lines.data[w->inputs[0]].kind = "plus3_relu6";
        return w->inputs[0];
    }
    if (strcmp(word, "linear") == 0) {
        return w->inputs[0];
    }
    if (strcmp(word, "softmax") == 0) {
        return keras_activated(w, w->inputs[0], word);
    }
    const char *ours = keras_activation_of(word);
    return ours == NULL ? keras_refuse(w, "the activation %.60s", word) : keras_emit(w, ours, &shape);
}

static uint32_t dropout(keras_walk *w)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    const json_t *noise_shape = keras_value(w, "noise_shape");
    bool ones = json_is_array(noise_shape) && json_array_size(noise_shape) <= KERAS_DIMS + 1;
    for (size_t k = 0; ones && k < json_array_size(noise_shape); k++) {
        const json_t *side = json_array_get(noise_shape, k);
        ones = ones && (json_is_null(side) || json_integer_value(side) == 1);
    }
    if (strcmp(w->layer->class_name, "StochasticDepth") == 0 || ones) {
        keras_note(w, "Stochastic depth is left out: branches that Keras drops at random always count.");
        return w->inputs[0];
    }
    if (noise_shape != NULL || strcmp(w->layer->class_name, "Dropout") != 0) {
        return keras_refuse(w, "a dropout of whole channels");
    }
    const double rate = keras_real(w, "rate", 0, 0, 0.999);
    if (rate == 0) {
        return w->inputs[0];
    }
    const uint32_t line = keras_emit(w, "dropout", &shape);
    keras_say_real(w, line, "rate", rate, (double)NAN);
    return line;
}

// ---- of several tensors ---------------------------------------------------------------------------------------

// relu6(x + 3) / 6 is how Keras writes a hard sigmoid; a factor is a scale.
static uint32_t with_number(keras_walk *w, bool sum)
{
    const keras_shape shape = keras_input(w, 0)->shape;
    double number = 0;
    for (size_t k = 0; k < json_array_size(w->node->args); k++) {
        const json_t *value = json_array_get(w->node->args, k);
        number = json_is_number(value) ? json_number_value(value) : number;
    }
    if (sum && number == 3) {
        const uint32_t of = w->inputs[0];
        keras_line *line = NULL;
        if (w->lines.count >= KERAS_LINES || (line = vec_push(&w->lines)) == NULL) {
            w->nomem = w->nomem || w->lines.count < KERAS_LINES;
            return keras_refuse(w, "beyond the %d layers of a model", KERAS_LINES);
        }
        *line = (keras_line){
            .kind = "plus3", .shape = shape, .inputs = {of}, .input_count = 1, .name = KERAS_NONE};
        return w->lines.count - 1;
    }
    if (!sum && strcmp(keras_input(w, 0)->kind, "plus3_relu6") == 0 && fabs(number - 1.0 / 6) < 1e-3 / 6) {
        const uint32_t of = keras_input(w, 0)->inputs[0];
        return keras_emit_of(w, "hard_sigmoid", &of, 1, &shape, "");
    }
    if (!sum && number != 0) {
        const uint32_t line = keras_emit(w, "scale", &shape);
        keras_say_real(w, line, "factor", number, (double)NAN);
        return line;
    }
    return keras_refuse(w, "a %s with a number or a constant", sum ? "sum" : "product");
}

// A factor for each channel.
static bool is_gate(const keras_shape *of, const keras_shape *gate)
{
    bool is = gate->rank == of->rank && of->rank > 0 && gate->side[of->rank - 1] == of->side[of->rank - 1];
    for (uint32_t k = 0; is && k + 1 < of->rank; k++) {
        is = gate->side[k] == 1;
    }
    return is;
}

static uint32_t pointwise(keras_walk *w)
{
    const bool sum = w->layer->class_name[0] == 'A';
    char suffix[16] = "";
    if (w->input_count < 2) {
        return with_number(w, sum);
    }
    uint32_t line = w->inputs[0];
    for (uint32_t k = 1; k < w->input_count && line != KERAS_NONE; k++) {
        uint32_t pair[2] = {line, w->inputs[k]};
        const keras_shape *a = &w->lines.data[pair[0]].shape, *b = &w->lines.data[pair[1]].shape;
        if (keras_product(a) < keras_product(b)) {
            pair[0] = w->inputs[k];
            pair[1] = line;
            a = &w->lines.data[pair[0]].shape;
            b = &w->lines.data[pair[1]].shape;
        }
        if (!keras_same_shape(a, b) && (sum || !is_gate(a, b))) {
            return keras_refuse(w, "of tensors of different shapes");
        }
        const keras_shape shape = *a;
        line = keras_emit_of(w, sum ? "add" : "multiply", pair, 2, &shape, suffix);
        (void)snprintf(suffix, sizeof suffix, "_%u", k);
    }
    return line;
}

static uint32_t concat(keras_walk *w)
{
    const keras_shape first = keras_input(w, 0)->shape;
    const int64_t told = keras_int(w, "axis", -1, -KERAS_DIMS, KERAS_DIMS);
    const int64_t axis = told < 0 ? told + (int64_t)first.rank + 1 : told;
    if (axis < 1 || axis > (int64_t)first.rank) {
        return keras_refuse(w, "an axis that is none of a sample");
    }
    uint32_t line = w->inputs[0];
    for (uint32_t from = 1; from < w->input_count && line != KERAS_NONE;) {
        uint32_t part[KERAS_INPUTS] = {line}, count = 1;
        keras_shape shape = w->lines.data[line].shape;
        for (; count < KERAS_INPUTS && from < w->input_count; from++) {
            keras_shape other = keras_input(w, from)->shape;
            part[count++] = w->inputs[from];
            const int64_t more = other.rank == shape.rank ? other.side[axis - 1] : 0;
            other.side[axis - 1] = shape.side[axis - 1];
            if (!keras_same_shape(&other, &shape)) {
                return keras_refuse(w, "of tensors of different shapes");
            }
            shape.side[axis - 1] += more;
        }
        line = keras_emit_of(w, "concat", part, count, &shape, from < w->input_count ? "_part" : "");
        keras_say(w, line, ", axis: %lld", (long long)axis);
    }
    return line;
}

static uint32_t flatten(keras_walk *w)
{
    const keras_shape in = keras_input(w, 0)->shape;
    const keras_shape flat = {.rank = 1, .side = {keras_product(&in)}};
    return keras_same_shape(&in, &flat) ? w->inputs[0] : keras_emit(w, "flatten", &flat);
}

static uint32_t reshape(keras_walk *w)
{
    const json_t *target = keras_value(w, "target_shape");
    target = json_is_object(target) ? json_object_get(target, "items") : target;
    const keras_shape in = keras_input(w, 0)->shape;
    keras_shape out = {.rank = (uint32_t)json_array_size(target)};
    int64_t known = 1;
    if (out.rank < 1 || out.rank > KERAS_DIMS) {
        return keras_refuse(w, "a shape that is not 1 to %d sizes", KERAS_DIMS);
    }
    for (uint32_t k = 0; k < out.rank; k++) {
        const json_t *side = json_array_get(target, k);
        out.side[k] = json_is_integer(side) ? json_integer_value(side) : 0;
        if (out.side[k] != -1 && (out.side[k] < 1 || out.side[k] > MODEL_TEXT_ELEMENTS / known)) {
            return keras_refuse(w, "a shape with a size that cannot be");
        }
        known *= out.side[k] > 0 ? out.side[k] : 1;
    }
    for (uint32_t k = 0; k < out.rank; k++) {
        if (out.side[k] == -1) {
            out.side[k] = keras_product(&in) / known;
            known *= out.side[k] > 0 ? out.side[k] : 1;
        }
    }
    if (keras_product(&in) != known) {
        return keras_refuse(w, "a shape of another number of elements");
    }
    if (keras_same_shape(&in, &out)) {
        return w->inputs[0];
    }
    return out.rank == 1 ? keras_emit(w, "flatten", &out) : keras_reshaped(w, w->inputs[0], &out, "");
}

// ---- the table ------------------------------------------------------------------------------------------------

static const struct {
    const char *class_name;
    keras_row row;
    uint32_t most_inputs;
} rows[] = {
    {"Identity", left_as_it_is, 1},
    {"ActivityRegularization", left_as_it_is, 1},
    {"GaussianNoise", noise, 1},
    {"GaussianDropout", noise, 1},
    {"Rescaling", prepared, 1},
    {"Normalization", prepared, 1},
    {"Dense", dense, 1},
    {"Conv2D", keras_convolution, 1},
    {"Conv1D", keras_steps, 1},
    {"DepthwiseConv2D", keras_convolution, 1},
    {"SeparableConv2D", keras_convolution, 1},
    {"Conv2DTranspose", keras_transposed, 1},
    {"BatchNormalization", norm, 1},
    {"LayerNormalization", norm, 1},
    {"RMSNormalization", norm, 1},
    {"LayerScale", layer_scale, 1},
    {"Activation", activation, 1},
    {"ReLU", activation, 1},
    {"LeakyReLU", activation, 1},
    {"Softmax", activation, 1},
    {"Gelu", activation, 1},
    {"Relu", activation, 1},
    {"Relu6", activation, 1},
    {"Silu", activation, 1},
    {"Sigmoid", activation, 1},
    {"Tanh", activation, 1},
    {"HardSilu", activation, 1},
    {"HardSigmoid", activation, 1},
    {"Dropout", dropout, 1},
    {"SpatialDropout2D", dropout, 1},
    {"StochasticDepth", dropout, 1},
    {"MaxPooling2D", keras_pool, 1},
    {"AveragePooling2D", keras_pool, 1},
    {"MaxPooling1D", keras_pool_of_steps, 1},
    {"AveragePooling1D", keras_pool_of_steps, 1},
    {"GlobalAveragePooling2D", keras_global_pool, 1},
    {"GlobalAveragePooling1D", keras_mean_of_places, 1},
    {"ZeroPadding2D", keras_zero_pad, 1},
    {"UpSampling2D", keras_upsample, 1},
    {"Add", pointwise, ANY},
    {"Multiply", pointwise, ANY},
    {"Concatenate", concat, ANY},
    {"Flatten", flatten, 1},
    {"Reshape", reshape, 1},
    {"Embedding", keras_embedding, 1},
    {"LSTM", keras_recurrence, 1},
    {"GRU", keras_recurrence, 1},
    {"MultiHeadAttention", keras_attention, 4},
};

keras_row keras_row_of(const char *class_name, uint32_t *most_inputs)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k].class_name, class_name) == 0) {
            *most_inputs = rows[k].most_inputs;
            return rows[k].row;
        }
    }
    return NULL;
}
