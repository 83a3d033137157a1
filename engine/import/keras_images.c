// SPDX-License-Identifier: Apache-2.0
// Keras' layers of images: sizes as keras/src/ops/operation_utils.py and backend/common/backend_utils.py (Keras 3.15) have them.
#include <string.h>

#include "keras_rows.h"

typedef struct window {
    int64_t kernel[2], stride[2], dilation[2];
    bool same;
} window;

static void take_window(keras_walk *w, const char *kernel, window *out)
{
    const char *padding = keras_word(w, "padding", "valid");
    keras_pair(w, kernel, 2, 1, out->kernel);
    keras_pair(w, "strides", 1, 1, out->stride);
    keras_pair(w, "dilation_rate", 1, 1, out->dilation);
    out->same = strcmp(padding, "same") == 0;
    if (!out->same && strcmp(padding, "valid") != 0) {
        (void)keras_refuse(w, "a padding called %.20s", padding);
    }
}

// An image with its channels last; false: refused.
static bool is_image(keras_walk *w)
{
    const char *format = keras_word(w, "data_format", "channels_last");
    if (strcmp(format, "channels_last") != 0) {
        (void)keras_refuse(w, "images with their channels first");
    } else if (keras_input(w, 0)->shape.rank != 3) {
        (void)keras_refuse(w, "needs an image, height and width and channels");
    }
    return w->why[0] == '\0';
}

static keras_shape slid(const keras_shape *in, const window *v, int64_t channels)
{
    keras_shape out = {.rank = 3, .side = {0, 0, channels}};
    for (int k = 0; k < 2; k++) {
        const int64_t reach = (v->kernel[k] - 1) * v->dilation[k] + 1;
        out.side[k] = v->same               ? (in->side[k] + v->stride[k] - 1) / v->stride[k]
                      : in->side[k] < reach ? 0
                                            : (in->side[k] - reach) / v->stride[k] + 1;
    }
    return out;
}

static keras_shape spread(const keras_shape *in, const window *v, int64_t channels)
{
    keras_shape out = {.rank = 3, .side = {0, 0, channels}};
    for (int k = 0; k < 2; k++) {
        const int64_t more = v->kernel[k] > v->stride[k] ? v->kernel[k] - v->stride[k] : 0;
        out.side[k] = in->side[k] * v->stride[k] + (v->same ? 0 : more);
    }
    return out;
}

static void say_window(keras_walk *w, uint32_t line, const window *v, bool bias)
{
    keras_say_pair(w, line, "kernel", v->kernel, 0);
    keras_say_pair(w, line, "stride", v->stride, 1);
    keras_say_pair(w, line, "dilation", v->dilation, 1);
    keras_say(w, line, "%s%s", v->same ? ", padding: same" : "", bias ? "" : ", bias: false");
}

// The kinds of convolution. A group for every channel is a depthwise one.
uint32_t keras_convolution(keras_walk *w)
{
    const char *of = w->layer->class_name;
    const bool plain = strcmp(of, "Conv2D") == 0, separable = strcmp(of, "SeparableConv2D") == 0;
    window v;
    if (!is_image(w)) {
        return KERAS_NONE;
    }
    take_window(w, "kernel_size", &v);
    const bool bias = keras_flag(w, "use_bias", true);
    const int64_t channels = keras_input(w, 0)->shape.side[2];
    const int64_t filters = keras_int(w, "filters", plain || separable ? 0 : 1, 1, MODEL_TEXT_COUNT);
    const int64_t groups = plain ? keras_int(w, "groups", 1, 1, MODEL_TEXT_COUNT) : 1;
    const bool each = plain && groups == channels && channels > 1;
    const int64_t multiplier =
        each ? filters / groups : keras_int(w, "depth_multiplier", 1, 1, KERAS_WINDOW_MAX);
    const bool depthwise = each || strcmp(of, "DepthwiseConv2D") == 0;
    if (filters < 1 || channels % groups != 0 || filters % groups != 0) {
        return keras_refuse(w, "filters and groups that do not share the channels out");
    }
    const int64_t deep = channels * multiplier, results = depthwise ? deep : filters;
    const keras_shape shape = slid(&keras_input(w, 0)->shape, &v, results);
    const uint32_t line = keras_emit(w,
                                     depthwise   ? "depthwise_conv2d"
                                     : separable ? "separable_conv2d"
                                                 : "conv2d",
                                     &shape);
    if (!depthwise) {
        keras_say(w, line, ", filters: %lld", (long long)filters);
    }
    say_window(w, line, &v, bias);
    if (groups > 1 && !each) {
        keras_say(w, line, ", groups: %lld", (long long)groups);
    }
    if (multiplier > 1 && (depthwise || separable)) {
        keras_say(w, line, ", multiplier: %lld", (long long)multiplier);
    }
    const int64_t taps[] = {v.kernel[0], v.kernel[1], depthwise || separable ? deep : channels / groups,
                            depthwise || separable ? 1 : filters};
    const int64_t points[] = {deep, filters};
    keras_own(w, line,
              keras_weights(taps, 4) + (separable ? keras_weights(points, 2) : 0) +
                  (bias ? (uint64_t)results : 0));
    return keras_activated(w, line, keras_function(keras_value(w, "activation"), "linear"));
}

// ---- of one dimension -----------------------------------------------------------------------------------------

// "kernel_size": [3], or 3.
static int64_t only(keras_walk *w, const char *key, int64_t fallback)
{
    const json_t *value = keras_value(w, key);
    value = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    if (value == NULL) {
        return fallback;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > KERAS_WINDOW_MAX) {
        (void)keras_refuse(w, "its %s is no whole number from 1 to %d", key, KERAS_WINDOW_MAX);
        return 1;
    }
    return json_integer_value(value);
}

typedef struct step_window {
    int64_t kernel, stride, dilation;
    const char *padding;
} step_window;

// A sequence with its features last, and a padding of those that are given; false: refused.
static bool take_steps(keras_walk *w, const char *kernel, bool may_be_causal, step_window *out)
{
    *out = (step_window){.kernel = only(w, kernel, 2),
                         .dilation = only(w, "dilation_rate", 1),
                         .padding = keras_word(w, "padding", "valid")};
    out->stride = only(w, "strides", may_be_causal ? 1 : out->kernel);
    const bool causal = strcmp(out->padding, "causal") == 0;
    if (strcmp(keras_word(w, "data_format", "channels_last"), "channels_last") != 0) {
        (void)keras_refuse(w, "sequences with their channels first");
    } else if (keras_input(w, 0)->shape.rank != 2) {
        (void)keras_refuse(w, "needs a sequence, places and features");
    } else if (strcmp(out->padding, "same") != 0 && strcmp(out->padding, "valid") != 0 &&
               !(causal && may_be_causal)) {
        (void)keras_refuse(w, "a padding called %.20s", out->padding);
    }
    return w->why[0] == '\0';
}

static keras_shape stepped(const keras_shape *in, const step_window *v, int64_t features)
{
    const int64_t reach = (v->kernel - 1) * v->dilation + 1, places = in->side[0];
    const int64_t out = strcmp(v->padding, "valid") != 0 ? (places + v->stride - 1) / v->stride
                        : places < reach                 ? 0
                                                         : (places - reach) / v->stride + 1;
    return (keras_shape){.rank = 2, .side = {out, features}};
}

static void say_steps(keras_walk *w, uint32_t line, const char *kernel, const step_window *v, int64_t usual)
{
    keras_say(w, line, ", %s: %lld", kernel, (long long)v->kernel);
    if (v->stride != usual) {
        keras_say(w, line, ", stride: %lld", (long long)v->stride);
    }
    if (v->dilation != 1) {
        keras_say(w, line, ", dilation: %lld", (long long)v->dilation);
    }
    if (strcmp(v->padding, "valid") != 0) {
        keras_say(w, line, ", padding: %s", v->padding);
    }
}

uint32_t keras_steps(keras_walk *w)
{
    step_window v;
    if (!take_steps(w, "kernel_size", true, &v)) {
        return KERAS_NONE;
    }
    const bool bias = keras_flag(w, "use_bias", true);
    const int64_t features = keras_input(w, 0)->shape.side[1];
    const int64_t filters = keras_int(w, "filters", 0, 1, MODEL_TEXT_COUNT);
    const int64_t groups = keras_int(w, "groups", 1, 1, MODEL_TEXT_COUNT);
    if (filters < 1 || features % groups != 0 || filters % groups != 0) {
        return keras_refuse(w, "filters and groups that do not share the features out");
    }
    const keras_shape shape = stepped(&keras_input(w, 0)->shape, &v, filters);
    const uint32_t line = keras_emit(w, "conv1d", &shape);
    keras_say(w, line, ", filters: %lld", (long long)filters);
    say_steps(w, line, "kernel", &v, 1);
    if (groups > 1) {
        keras_say(w, line, ", groups: %lld", (long long)groups);
    }
    keras_say(w, line, "%s", bias ? "" : ", bias: false");
    const int64_t taps[] = {v.kernel, features / groups, filters};
    keras_own(w, line, keras_weights(taps, 3) + (bias ? (uint64_t)filters : 0));
    return keras_activated(w, line, keras_function(keras_value(w, "activation"), "linear"));
}

uint32_t keras_pool_of_steps(keras_walk *w)
{
    step_window v;
    if (!take_steps(w, "pool_size", false, &v)) {
        return KERAS_NONE;
    }
    const keras_shape shape = stepped(&keras_input(w, 0)->shape, &v, keras_input(w, 0)->shape.side[1]);
    const bool most = strncmp(w->layer->class_name, "Max", 3) == 0;
    const uint32_t line = keras_emit(w, most ? "max_pool1d" : "avg_pool1d", &shape);
    say_steps(w, line, "size", &v, v.kernel);
    return line;
}

// ---- transposed, pools and padding ----------------------------------------------------------------------------

uint32_t keras_transposed(keras_walk *w)
{
    window v;
    if (!is_image(w)) {
        return KERAS_NONE;
    }
    take_window(w, "kernel_size", &v);
    if (v.dilation[0] != 1 || v.dilation[1] != 1) {
        return keras_refuse(w, "a transposed convolution with a dilation");
    }
    const bool bias = keras_flag(w, "use_bias", true);
    const int64_t filters = keras_int(w, "filters", 0, 1, MODEL_TEXT_COUNT);
    if (keras_value(w, "output_padding") != NULL || filters < 1) {
        return keras_refuse(w, "an output padding of its own, or no filters");
    }
    const keras_shape shape = spread(&keras_input(w, 0)->shape, &v, filters);
    const int64_t sides[] = {v.kernel[0], v.kernel[1], keras_input(w, 0)->shape.side[2], filters};
    const uint32_t line = keras_emit(w, "conv2d_transpose", &shape);
    keras_say(w, line, ", filters: %lld", (long long)filters);
    say_window(w, line, &v, bias);
    keras_own(w, line, keras_weights(sides, 4) + (bias ? (uint64_t)filters : 0));
    return keras_activated(w, line, keras_function(keras_value(w, "activation"), "linear"));
}

uint32_t keras_pool(keras_walk *w)
{
    window v;
    if (!is_image(w)) {
        return KERAS_NONE;
    }
    take_window(w, "pool_size", &v);
    if (keras_value(w, "strides") == NULL) {
        memcpy(v.stride, v.kernel, sizeof v.stride);
    }
    const bool most = strncmp(w->layer->class_name, "Max", 3) == 0;
    const keras_shape shape = slid(&keras_input(w, 0)->shape, &v, keras_input(w, 0)->shape.side[2]);
    const uint32_t line = keras_emit(w, most ? "max_pool" : "avg_pool", &shape);
    keras_say_pair(w, line, "size", v.kernel, 0);
    if (memcmp(v.kernel, v.stride, sizeof v.stride) != 0) {
        keras_say_pair(w, line, "stride", v.stride, 0);
    }
    keras_say(w, line, "%s", v.same ? ", padding: same" : "");
    return line;
}

uint32_t keras_global_pool(keras_walk *w)
{
    if (!is_image(w)) {
        return KERAS_NONE;
    }
    const int64_t channels = keras_input(w, 0)->shape.side[2];
    const keras_shape flat = {.rank = 1, .side = {channels}}, kept = {.rank = 3, .side = {1, 1, channels}};
    const bool keeps = keras_flag(w, "keepdims", false);
    return keras_reshaped(w, keras_emit(w, "global_avg_pool", &flat), keeps ? &kept : &flat, "_reshape");
}

// Keras writes [[top, bottom], [left, right]].
uint32_t keras_zero_pad(keras_walk *w)
{
    const json_t *sides = keras_value(w, "padding");
    int64_t edges[4] = {0};
    if (!is_image(w)) {
        return KERAS_NONE;
    }
    for (size_t k = 0; k < 4; k++) {
        const json_t *edge = json_array_get(json_array_get(sides, k / 2), k % 2);
        if (!json_is_integer(edge) || json_integer_value(edge) < 0 ||
            json_integer_value(edge) > KERAS_WINDOW_MAX) {
            return keras_refuse(w, "a padding that is not [[top, bottom], [left, right]]");
        }
        edges[k] = json_integer_value(edge);
    }
    keras_shape shape = keras_input(w, 0)->shape;
    shape.side[0] += edges[0] + edges[1];
    shape.side[1] += edges[2] + edges[3];
    if (edges[0] + edges[1] + edges[2] + edges[3] == 0) {
        return w->inputs[0];
    }
    const uint32_t line = keras_emit(w, "zero_pad", &shape);
    if (edges[0] == edges[1] && edges[0] == edges[2] && edges[0] == edges[3]) {
        keras_say(w, line, ", padding: %lld", (long long)edges[0]);
    } else {
        keras_say(w, line, ", padding: [%lld, %lld, %lld, %lld]", (long long)edges[0], (long long)edges[1],
                  (long long)edges[2], (long long)edges[3]);
    }
    return line;
}

uint32_t keras_upsample(keras_walk *w)
{
    const char *how = keras_word(w, "interpolation", "nearest");
    const bool bilinear = strcmp(how, "bilinear") == 0;
    int64_t size[2];
    if (!bilinear && strcmp(how, "nearest") != 0) {
        return keras_refuse(w, "an upsampling that is %.20s", how);
    }
    if (!is_image(w)) {
        return KERAS_NONE;
    }
    keras_pair(w, "size", 2, 1, size);
    keras_shape shape = keras_input(w, 0)->shape;
    shape.side[0] *= size[0];
    shape.side[1] *= size[1];
    const uint32_t line = keras_emit(w, "upsample", &shape);
    keras_say_pair(w, line, "size", size, 0);
    if (bilinear) {
        keras_say(w, line, ", mode: bilinear");
    }
    return line;
}
