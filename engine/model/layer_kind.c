// SPDX-License-Identifier: Apache-2.0
// How each kind of layer becomes operations and parameters. Parameters are declared in canonical order. An
// activation is a node of its own behind the operation; fusing it is a pass's business.
#include "model/layer_kind.h"

#include <string.h>

#include "headroom/event.h"

static int64_t integer_of(const layer_spec *s, attr_id id)
{
    return s->value[id].integer;
}

static hr_shape shape_in(const model_builder *b, const layer_spec *s)
{
    return b->values.data[s->input[0]].shape;
}

static hr_act activation_of(const layer_spec *s)
{
    return (hr_act)integer_of(s, ATTR_ACTIVATION);
}

// The name of the operation's own result: it is the layer's unless an activation follows.
static const char *result_name(const layer_spec *s, const char *inner)
{
    return activation_of(s) == HR_ACT_NONE ? "out" : inner;
}

// A node with one output of samples.
static uint32_t add_node(model_builder *b, const model_node *node, const char *result)
{
    model_node complete = *node;
    complete.out_count = 1;
    return builder_node(b, &complete, &(node_out){result, true});
}

static uint32_t add_relu(model_builder *b, uint32_t x)
{
    return add_node(b, &(model_node){.op = HR_OP_RELU, .in_count = 1, .in = {ref_value(x)}}, "out");
}

static uint32_t activate(model_builder *b, const layer_spec *s, uint32_t x)
{
    return activation_of(s) == HR_ACT_RELU ? add_relu(b, x) : x;
}

static uint32_t add_bias(model_builder *b, const layer_spec *s, int64_t features)
{
    if (!integer_of(s, ATTR_BIAS)) {
        return HR_NO_ID;
    }
    const model_param bias = {.shape = shape_of(1, &features),
                              .category = HR_CATEGORY_WEIGHTS,
                              .trainable = true,
                              .init = MODEL_INIT_ZEROS};
    return builder_param(b, "bias", &bias);
}

// The node over x, weights and, where there is one, bias.
static model_node weighted(hr_op op, const op_attr *attr, uint32_t x, uint32_t weights, uint32_t bias)
{
    return (model_node){.op = op,
                        .attr = *attr,
                        .in_count = bias == HR_NO_ID ? 2 : 3,
                        .in = {ref_value(x), ref_param(weights), ref_param(bias)}};
}

static uint32_t add_weights(model_builder *b, const layer_spec *s, const char *suffix, hr_shape shape,
                            int64_t fan_in, int64_t fan_out)
{
    const model_param weights = {.shape = shape,
                                 .category = HR_CATEGORY_WEIGHTS,
                                 .trainable = true,
                                 .init = integer_of(s, ATTR_INIT) == 0 ? MODEL_INIT_GLOROT_UNIFORM
                                                                       : MODEL_INIT_HE_UNIFORM,
                                 .fan_in = (uint64_t)fan_in,
                                 .fan_out = (uint64_t)fan_out};
    return builder_param(b, suffix, &weights);
}

// ---- dense ------------------------------------------------------------------------------------------------------

static uint32_t expand_dense(model_builder *b, const layer_spec *s)
{
    const int64_t features = shape_in(b, s).dim[1];
    const int64_t units = integer_of(s, ATTR_UNITS);
    const hr_shape shape = shape_of(2, (const int64_t[]){features, units});
    const uint32_t w = add_weights(b, s, "weights", shape, features, units);
    const uint32_t bias = add_bias(b, s, units);
    const model_node node = weighted(HR_OP_DENSE, &(op_attr){0}, s->input[0], w, bias);
    return activate(b, s, add_node(b, &node, result_name(s, "dense")));
}

// ---- windows: convolution and pooling -------------------------------------------------------------------------

// TensorFlow's "same": ceil(size / stride) outputs, and the odd pixel of padding behind.
static void pad_same(int64_t size, int32_t kernel, int32_t stride, int32_t *before, int32_t *behind)
{
    const int64_t outputs = (size + stride - 1) / stride;
    const int64_t missing = (outputs - 1) * stride + kernel - size;
    const int32_t total = missing > 0 ? (int32_t)missing : 0; // < kernel
    *before = total / 2;
    *behind = total - *before;
}

static op_attr window_of(const hr_shape *image, attr_pair kernel, attr_pair stride, attr_padding padding)
{
    op_attr a = {.kernel_h = kernel.h, .kernel_w = kernel.w, .stride_h = stride.h, .stride_w = stride.w};
    if (padding.same) {
        pad_same(image->dim[1], kernel.h, stride.h, &a.pad_top, &a.pad_bottom);
        pad_same(image->dim[2], kernel.w, stride.w, &a.pad_left, &a.pad_right);
    } else {
        a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = padding.amount;
    }
    return a;
}

// The layer's own window with kernel, stride and padding as written.
static op_attr kernel_window(const layer_spec *s, const hr_shape *image)
{
    return window_of(image, s->value[ATTR_KERNEL].pair, s->value[ATTR_STRIDE].pair,
                     s->value[ATTR_PADDING].padding);
}

// Kernel of a convolution in groups, [kh, kw, channels / groups, filters].
static uint32_t add_kernel(model_builder *b, const layer_spec *s, const char *suffix, attr_pair kernel,
                           int64_t depth, int64_t filters)
{
    const int64_t area = (int64_t)kernel.h * kernel.w;
    const hr_shape shape = shape_of(4, (const int64_t[]){kernel.h, kernel.w, depth, filters});
    return add_weights(b, s, suffix, shape, area * depth, area * filters);
}

// Kernel of a depthwise convolution, [kh, kw, 1, channels * multiplier]. Keras takes the fans from its own shape
// [kh, kw, channels, multiplier], and so do we: the numbers are what people compare with.
static uint32_t add_depthwise_kernel(model_builder *b, const layer_spec *s, const char *suffix,
                                     int64_t channels)
{
    const attr_pair kernel = s->value[ATTR_KERNEL].pair;
    const int64_t multiplier = integer_of(s, ATTR_MULTIPLIER);
    const int64_t area = (int64_t)kernel.h * kernel.w;
    const hr_shape shape = shape_of(4, (const int64_t[]){kernel.h, kernel.w, 1, channels * multiplier});
    return add_weights(b, s, suffix, shape, area * channels, area * multiplier);
}

static uint32_t expand_conv2d(model_builder *b, const layer_spec *s)
{
    const hr_shape image = shape_in(b, s);
    const int64_t channels = image.dim[3];
    const int64_t filters = integer_of(s, ATTR_FILTERS);
    const int64_t groups = integer_of(s, ATTR_GROUPS);
    if (channels % groups != 0 || filters % groups != 0) {
        builder_problem(b, "needs groups that divide %lld channels and %lld filters, had %lld",
                        (long long)channels, (long long)filters, (long long)groups);
        return HR_NO_ID;
    }
    op_attr attr = kernel_window(s, &image);
    attr.groups = (int32_t)groups;
    const uint32_t w = add_kernel(b, s, "weights", s->value[ATTR_KERNEL].pair, channels / groups, filters);
    const uint32_t bias = add_bias(b, s, filters);
    const model_node node = weighted(HR_OP_CONV2D, &attr, s->input[0], w, bias);
    return activate(b, s, add_node(b, &node, result_name(s, "conv")));
}

static uint32_t expand_depthwise_conv2d(model_builder *b, const layer_spec *s)
{
    const hr_shape image = shape_in(b, s);
    op_attr attr = kernel_window(s, &image);
    attr.groups = (int32_t)image.dim[3];
    const uint32_t w = add_depthwise_kernel(b, s, "weights", image.dim[3]);
    const uint32_t bias = add_bias(b, s, image.dim[3] * integer_of(s, ATTR_MULTIPLIER));
    const model_node node = weighted(HR_OP_CONV2D, &attr, s->input[0], w, bias);
    return activate(b, s, add_node(b, &node, result_name(s, "conv")));
}

// As in Keras: no bias in the depthwise part, a 1x1 convolution behind it.
static uint32_t expand_separable_conv2d(model_builder *b, const layer_spec *s)
{
    const hr_shape image = shape_in(b, s);
    const int64_t depth = image.dim[3] * integer_of(s, ATTR_MULTIPLIER);
    const int64_t filters = integer_of(s, ATTR_FILTERS);
    op_attr attr = kernel_window(s, &image);
    attr.groups = (int32_t)image.dim[3];
    const attr_pair one = {1, 1};
    op_attr pointwise = window_of(&image, one, one, (attr_padding){0});
    pointwise.groups = 1;

    const uint32_t dw = add_depthwise_kernel(b, s, "depthwise_weights", image.dim[3]);
    const uint32_t pw = add_kernel(b, s, "pointwise_weights", one, depth, filters);
    const uint32_t bias = add_bias(b, s, filters);
    const model_node first = weighted(HR_OP_CONV2D, &attr, s->input[0], dw, HR_NO_ID);
    const uint32_t middle = add_node(b, &first, "depthwise");
    const model_node second = weighted(HR_OP_CONV2D, &pointwise, middle, pw, bias);
    return activate(b, s, add_node(b, &second, result_name(s, "pointwise")));
}

static uint32_t expand_max_pool(model_builder *b, const layer_spec *s)
{
    const hr_shape image = shape_in(b, s);
    const attr_pair size = s->value[ATTR_SIZE].pair;
    attr_pair stride = s->value[ATTR_POOL_STRIDE].pair;
    const attr_padding padding = s->value[ATTR_PADDING].padding;
    if (stride.h == 0) {
        stride = size;
    }
    if (padding.amount >= size.h || padding.amount >= size.w) {
        builder_problem(b, "needs padding below its size %dx%d, had %d: such a window would see no pixel",
                        size.h, size.w, padding.amount);
        return HR_NO_ID;
    }
    const model_node node = {.op = HR_OP_MAX_POOL,
                             .attr = window_of(&image, size, stride, padding),
                             .in_count = 1,
                             .in = {ref_value(s->input[0])}};
    return add_node(b, &node, "out");
}

// ---- the others -----------------------------------------------------------------------------------------------

static uint32_t add_statistic(model_builder *b, const char *suffix, const hr_shape *shape, bool trainable,
                              model_init init)
{
    const model_param param = {.shape = *shape,
                               .category = trainable ? HR_CATEGORY_WEIGHTS : HR_CATEGORY_STATE,
                               .trainable = trainable,
                               .init = init};
    return builder_param(b, suffix, &param);
}

static uint32_t expand_batch_norm(model_builder *b, const layer_spec *s)
{
    const hr_shape x = shape_in(b, s);
    const hr_shape channels = shape_of(1, &x.dim[x.rank - 1]);
    const uint32_t gamma = add_statistic(b, "gamma", &channels, true, MODEL_INIT_ONES);
    const uint32_t beta = add_statistic(b, "beta", &channels, true, MODEL_INIT_ZEROS);
    const uint32_t mean = add_statistic(b, "moving_mean", &channels, false, MODEL_INIT_ZEROS);
    const uint32_t variance = add_statistic(b, "moving_variance", &channels, false, MODEL_INIT_ONES);
    const model_node node = {
        .op = HR_OP_BATCH_NORM,
        .attr = {.epsilon = s->value[ATTR_EPSILON].real, .momentum = s->value[ATTR_MOMENTUM].real},
        .in_count = 5,
        .out_count = 3,
        .in = {ref_value(s->input[0]), ref_param(gamma), ref_param(beta), ref_param(mean),
               ref_param(variance)},
    };
    const node_out out[] = {{result_name(s, "norm"), true}, {"saved_mean", false}, {"saved_variance", false}};
    return activate(b, s, builder_node(b, &node, out));
}

static uint32_t expand_relu(model_builder *b, const layer_spec *s)
{
    return add_relu(b, s->input[0]);
}

static uint32_t expand_global_avg_pool(model_builder *b, const layer_spec *s)
{
    const model_node node = {.op = HR_OP_GLOBAL_AVG_POOL, .in_count = 1, .in = {ref_value(s->input[0])}};
    return add_node(b, &node, "out");
}

static uint32_t expand_add(model_builder *b, const layer_spec *s)
{
    const hr_shape left = shape_in(b, s);
    const hr_shape right = b->values.data[s->input[1]].shape;
    if (!shape_equal(&left, &right)) {
        char a[SHAPE_TEXT_MAX], c[SHAPE_TEXT_MAX];
        builder_problem(b, "needs two inputs of one shape, had %s and %s", sample_shape_text(&left, a),
                        sample_shape_text(&right, c));
        return HR_NO_ID;
    }
    const model_node node = {
        .op = HR_OP_ADD, .in_count = 2, .in = {ref_value(s->input[0]), ref_value(s->input[1])}};
    return activate(b, s, add_node(b, &node, result_name(s, "add")));
}

static uint32_t expand_flatten(model_builder *b, const layer_spec *s)
{
    const hr_shape x = shape_in(b, s);
    uint64_t elements = 0; // fits: every value is at most MODEL_MAX_ELEMENTS
    (void)shape_elements(&x, &elements);
    const hr_shape flat = shape_of(2, (const int64_t[]){1, (int64_t)elements});
    return builder_reshape(b, s->input[0], &flat, "out");
}

static uint32_t expand_reshape(model_builder *b, const layer_spec *s)
{
    const hr_shape x = shape_in(b, s);
    hr_shape to = {.rank = s->value[ATTR_SHAPE].shape.rank + 1, .dim = {1}};
    memcpy(&to.dim[1], s->value[ATTR_SHAPE].shape.dim, (to.rank - 1) * sizeof to.dim[0]);
    uint64_t had = 0, wanted = 0;
    (void)shape_elements(&x, &had);
    if (!shape_elements(&to, &wanted) || wanted != had) {
        char from_text[SHAPE_TEXT_MAX], to_text[SHAPE_TEXT_MAX];
        builder_problem(b, "cannot make %s out of %s: it has %llu elements", sample_shape_text(&to, to_text),
                        sample_shape_text(&x, from_text), (unsigned long long)had);
        return HR_NO_ID;
    }
    return builder_reshape(b, s->input[0], &to, "out");
}

// ---- the tables -----------------------------------------------------------------------------------------------

// Largest counts: of units, filters and image sides; and of window sides, strides and padding.
#define MAX_COUNT  16777216
#define MAX_WINDOW 65535

static const attr_row attr_rows[ATTR_COUNT] = {
    [ATTR_UNITS] = {.name = "units", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_COUNT},
    [ATTR_FILTERS] = {.name = "filters", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_COUNT},
    [ATTR_KERNEL] = {.name = "kernel", .type = ATTR_TYPE_PAIR, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_SIZE] = {.name = "size", .type = ATTR_TYPE_PAIR, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_STRIDE] = {.name = "stride", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_POOL_STRIDE] =
        {.name = "stride", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_WINDOW, .fallback = 0},
    [ATTR_PADDING] = {.name = "padding", .type = ATTR_TYPE_PADDING, .min = 0, .max = MAX_WINDOW},
    [ATTR_GROUPS] = {.name = "groups", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_COUNT, .fallback = 1},
    [ATTR_MULTIPLIER] =
        {.name = "multiplier", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_BIAS] = {.name = "bias", .type = ATTR_TYPE_CHOICE, .fallback = 1, .choices = {"false", "true"}},
    [ATTR_ACTIVATION] = {.name = "activation", .type = ATTR_TYPE_CHOICE, .choices = {"none", "relu"}},
    [ATTR_INIT] = {.name = "init", .type = ATTR_TYPE_CHOICE, .choices = {"glorot_uniform", "he_uniform"}},
    [ATTR_EPSILON] = {.name = "epsilon", .type = ATTR_TYPE_REAL, .min = 1e-12, .max = 1, .fallback = 1e-3},
    [ATTR_MOMENTUM] = {.name = "momentum", .type = ATTR_TYPE_REAL, .min = 0, .max = 1, .fallback = 0.01},
    [ATTR_SHAPE] = {.name = "shape", .type = ATTR_TYPE_SHAPE, .required = true, .min = 1, .max = INT32_MAX},
};

static const layer_kind kinds[] = {
    {"dense", 1, LAYER_NEEDS_FEATURES, {ATTR_UNITS, ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT}, expand_dense},
    {"conv2d",
     1,
     LAYER_NEEDS_IMAGE,
     {ATTR_FILTERS, ATTR_KERNEL, ATTR_STRIDE, ATTR_PADDING, ATTR_GROUPS, ATTR_BIAS, ATTR_ACTIVATION,
      ATTR_INIT},
     expand_conv2d},
    {"depthwise_conv2d",
     1,
     LAYER_NEEDS_IMAGE,
     {ATTR_KERNEL, ATTR_STRIDE, ATTR_PADDING, ATTR_MULTIPLIER, ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT},
     expand_depthwise_conv2d},
    {"separable_conv2d",
     1,
     LAYER_NEEDS_IMAGE,
     {ATTR_FILTERS, ATTR_KERNEL, ATTR_STRIDE, ATTR_PADDING, ATTR_MULTIPLIER, ATTR_BIAS, ATTR_ACTIVATION,
      ATTR_INIT},
     expand_separable_conv2d},
    {"batch_norm", 1, LAYER_NEEDS_ANY, {ATTR_EPSILON, ATTR_MOMENTUM, ATTR_ACTIVATION}, expand_batch_norm},
    {"relu", 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_relu},
    {"max_pool", 1, LAYER_NEEDS_IMAGE, {ATTR_SIZE, ATTR_POOL_STRIDE, ATTR_PADDING}, expand_max_pool},
    {"global_avg_pool", 1, LAYER_NEEDS_IMAGE, {ATTR_NONE}, expand_global_avg_pool},
    {"add", 2, LAYER_NEEDS_ANY, {ATTR_ACTIVATION}, expand_add},
    {"flatten", 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_flatten},
    {"reshape", 1, LAYER_NEEDS_ANY, {ATTR_SHAPE}, expand_reshape},
};
_Static_assert(sizeof kinds / sizeof *kinds == LAYER_KIND_COUNT, "LAYER_KIND_COUNT counts the rows");

const layer_kind *layer_kind_at(size_t index)
{
    return &kinds[index];
}

const layer_kind *layer_kind_of(const char *name)
{
    for (size_t i = 0; i < LAYER_KIND_COUNT; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

const attr_row *attr_row_of(attr_id id)
{
    return &attr_rows[id];
}
