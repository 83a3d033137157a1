// SPDX-License-Identifier: Apache-2.0
// Layers over images [height, width, channels]: convolutions, pooling, padding, upsampling; and over sequences
// [places, features], which are images of one row.
#include "model/layer_expand.h"

// TensorFlow's "same": ceil(size / stride) outputs, and the odd pixel of padding behind.
static void pad_same(int64_t size, int64_t reach, int32_t stride, int32_t *before, int32_t *behind)
{
    const int64_t outputs = (size + stride - 1) / stride;
    const int64_t missing = (outputs - 1) * stride + reach - size;
    const int32_t total = missing > 0 ? (int32_t)missing : 0; // < reach
    *before = total / 2;
    *behind = total - *before;
}

static void pad_window(const hr_shape *image, attr_padding padding, op_attr *a)
{
    if (padding.same) {
        pad_same(image->dim[1], op_reach(a->kernel_h, a->gap_h), a->stride_h, &a->pad_top, &a->pad_bottom);
        pad_same(image->dim[2], op_reach(a->kernel_w, a->gap_w), a->stride_w, &a->pad_left, &a->pad_right);
    } else {
        a->pad_top = a->pad_left = a->pad_bottom = a->pad_right = padding.amount;
    }
}

static op_attr window_of(const hr_shape *image, attr_pair kernel, attr_pair stride, attr_padding padding)
{
    op_attr a = {.kernel_h = kernel.h, .kernel_w = kernel.w, .stride_h = stride.h, .stride_w = stride.w};
    pad_window(image, padding, &a);
    return a;
}

// ---- convolutions ---------------------------------------------------------------------------------------------

enum { REACH_MAX = 1 << 24 };

// The layer's own window with kernel, stride, dilation and padding as written. One tap has no gap.
static bool kernel_window(model_builder *b, const layer_spec *s, const hr_shape *image, op_attr *out)
{
    const attr_pair kernel = s->value[ATTR_KERNEL].pair, stride = s->value[ATTR_STRIDE].pair;
    const attr_pair dilation = s->value[ATTR_DILATION].pair;
    op_attr a = {.kernel_h = kernel.h,
                 .kernel_w = kernel.w,
                 .stride_h = stride.h,
                 .stride_w = stride.w,
                 .gap_h = kernel.h > 1 ? dilation.h - 1 : 0,
                 .gap_w = kernel.w > 1 ? dilation.w - 1 : 0};
    const int64_t high = op_reach(a.kernel_h, a.gap_h), wide = op_reach(a.kernel_w, a.gap_w);
    if (high > REACH_MAX || wide > REACH_MAX) {
        builder_problem(b, "needs a kernel that reaches over at most %d pixels, had %lldx%lld", REACH_MAX,
                        (long long)high, (long long)wide);
        return false;
    }
    pad_window(image, s->value[ATTR_PADDING].padding, &a);
    *out = a;
    return true;
}

// Kernel of a convolution in groups, [kh, kw, channels / groups, filters].
static uint32_t add_kernel(model_builder *b, const layer_spec *s, const char *suffix, attr_pair kernel,
                           int64_t depth, int64_t filters)
{
    const int64_t area = (int64_t)kernel.h * kernel.w;
    const hr_shape shape = shape_of(4, (const int64_t[]){kernel.h, kernel.w, depth, filters});
    return expand_weights(b, s, suffix, &shape, (uint64_t)(area * depth), (uint64_t)(area * filters));
}

// Kernel of a depthwise convolution, [kh, kw, 1, channels * multiplier]. Keras takes the fans from its own shape
// [kh, kw, channels, multiplier], and so do we: the numbers are what people compare with.
static uint32_t add_depthwise_kernel(model_builder *b, const layer_spec *s, const char *suffix,
                                     int64_t channels)
{
    const attr_pair kernel = s->value[ATTR_KERNEL].pair;
    const int64_t multiplier = spec_integer(s, ATTR_MULTIPLIER);
    const int64_t area = (int64_t)kernel.h * kernel.w;
    const hr_shape shape = shape_of(4, (const int64_t[]){kernel.h, kernel.w, 1, channels * multiplier});
    return expand_weights(b, s, suffix, &shape, (uint64_t)(area * channels), (uint64_t)(area * multiplier));
}

static uint32_t expand_conv2d(model_builder *b, const layer_spec *s)
{
    const hr_shape image = spec_shape(b, s, 0);
    const int64_t channels = image.dim[3];
    const int64_t filters = spec_integer(s, ATTR_FILTERS);
    const int64_t groups = spec_integer(s, ATTR_GROUPS);
    if (channels % groups != 0 || filters % groups != 0) {
        builder_problem(b, "needs groups that divide %lld channels and %lld filters, had %lld",
                        (long long)channels, (long long)filters, (long long)groups);
        return HR_NO_ID;
    }
    op_attr attr;
    if (!kernel_window(b, s, &image, &attr)) {
        return HR_NO_ID;
    }
    attr.groups = (int32_t)groups;
    const uint32_t w = add_kernel(b, s, "weights", s->value[ATTR_KERNEL].pair, channels / groups, filters);
    const uint32_t bias = expand_bias(b, s, filters);
    const model_node node = expand_weighted(HR_OP_CONV2D, &attr, s->input[0], w, bias);
    return expand_activate(b, s, expand_node(b, &node, expand_result_name(s, "conv")));
}

const layer_kind layer_kind_conv2d = {"conv2d",
                                      1,
                                      1,
                                      LAYER_NEEDS_IMAGE,
                                      {ATTR_FILTERS, ATTR_KERNEL, ATTR_STRIDE, ATTR_DILATION, ATTR_PADDING,
                                       ATTR_GROUPS, ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT, ATTR_INIT_SCALE},
                                      expand_conv2d};

static uint32_t expand_depthwise_conv2d(model_builder *b, const layer_spec *s)
{
    const hr_shape image = spec_shape(b, s, 0);
    op_attr attr;
    if (!kernel_window(b, s, &image, &attr)) {
        return HR_NO_ID;
    }
    attr.groups = (int32_t)image.dim[3];
    const uint32_t w = add_depthwise_kernel(b, s, "weights", image.dim[3]);
    const uint32_t bias = expand_bias(b, s, image.dim[3] * spec_integer(s, ATTR_MULTIPLIER));
    const model_node node = expand_weighted(HR_OP_CONV2D, &attr, s->input[0], w, bias);
    return expand_activate(b, s, expand_node(b, &node, expand_result_name(s, "conv")));
}

const layer_kind layer_kind_depthwise_conv2d = {"depthwise_conv2d",
                                                1,
                                                1,
                                                LAYER_NEEDS_IMAGE,
                                                {ATTR_KERNEL, ATTR_STRIDE, ATTR_DILATION, ATTR_PADDING,
                                                 ATTR_MULTIPLIER, ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT,
                                                 ATTR_INIT_SCALE},
                                                expand_depthwise_conv2d};

// As in Keras: no bias in the depthwise part, a 1x1 convolution behind it.
static uint32_t expand_separable_conv2d(model_builder *b, const layer_spec *s)
{
    const hr_shape image = spec_shape(b, s, 0);
    const int64_t depth = image.dim[3] * spec_integer(s, ATTR_MULTIPLIER);
    const int64_t filters = spec_integer(s, ATTR_FILTERS);
    op_attr attr;
    if (!kernel_window(b, s, &image, &attr)) {
        return HR_NO_ID;
    }
    attr.groups = (int32_t)image.dim[3];
    const attr_pair one = {1, 1};
    op_attr pointwise = window_of(&image, one, one, (attr_padding){0});
    pointwise.groups = 1;

    const uint32_t dw = add_depthwise_kernel(b, s, "depthwise_weights", image.dim[3]);
    const uint32_t pw = add_kernel(b, s, "pointwise_weights", one, depth, filters);
    const uint32_t bias = expand_bias(b, s, filters);
    const model_node first = expand_weighted(HR_OP_CONV2D, &attr, s->input[0], dw, HR_NO_ID);
    const uint32_t middle = expand_node(b, &first, "depthwise");
    const model_node second = expand_weighted(HR_OP_CONV2D, &pointwise, middle, pw, bias);
    return expand_activate(b, s, expand_node(b, &second, expand_result_name(s, "pointwise")));
}

const layer_kind layer_kind_separable_conv2d = {"separable_conv2d",
                                                1,
                                                1,
                                                LAYER_NEEDS_IMAGE,
                                                {ATTR_FILTERS, ATTR_KERNEL, ATTR_STRIDE, ATTR_DILATION,
                                                 ATTR_PADDING, ATTR_MULTIPLIER, ATTR_BIAS, ATTR_ACTIVATION,
                                                 ATTR_INIT, ATTR_INIT_SCALE},
                                                expand_separable_conv2d};

// ---- of one dimension: kernels are [1, taps, features / groups, filters] ---------------------------------------

// Windows over the places of x [1, places, features].
static bool step_window(model_builder *b, const hr_shape *x, int64_t taps, int64_t stride, int64_t dilation,
                        attr_padding padding, op_attr *out)
{
    op_attr a = {.kernel_h = 1,
                 .kernel_w = (int32_t)taps,
                 .stride_h = 1,
                 .stride_w = (int32_t)stride,
                 .gap_w = taps > 1 ? (int32_t)dilation - 1 : 0};
    const int64_t reach = op_reach(a.kernel_w, a.gap_w);
    if (reach > REACH_MAX) {
        builder_problem(b, "needs a kernel that reaches over at most %d places, had %lld", REACH_MAX,
                        (long long)reach);
        return false;
    }
    if (padding.same) {
        pad_same(x->dim[1], reach, a.stride_w, &a.pad_left, &a.pad_right);
    } else {
        a.pad_left = padding.causal ? (int32_t)reach - 1 : padding.amount;
        a.pad_right = padding.causal ? 0 : padding.amount;
    }
    *out = a;
    return true;
}

static uint32_t as_row(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const hr_shape row = shape_of(4, (const int64_t[]){1, 1, x.dim[1], x.dim[2]});
    return builder_reshape(b, s->input[0], &row, "row");
}

static uint32_t as_places(model_builder *b, uint32_t row)
{
    if (row == HR_NO_ID) {
        return HR_NO_ID;
    }
    const int64_t *dim = b->values.data[row].shape.dim;
    const hr_shape places = shape_of(3, (const int64_t[]){1, dim[2], dim[3]});
    return builder_reshape(b, row, &places, "out");
}

static uint32_t expand_conv1d(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t features = x.dim[2], filters = spec_integer(s, ATTR_FILTERS);
    const int64_t groups = spec_integer(s, ATTR_GROUPS), taps = spec_integer(s, ATTR_TAPS);
    op_attr attr;
    if (features % groups != 0 || filters % groups != 0) {
        builder_problem(b, "needs groups that divide %lld features and %lld filters, had %lld",
                        (long long)features, (long long)filters, (long long)groups);
        return HR_NO_ID;
    }
    if (!step_window(b, &x, taps, spec_integer(s, ATTR_STEP), spec_integer(s, ATTR_SPREAD),
                     s->value[ATTR_ENDS].padding, &attr)) {
        return HR_NO_ID;
    }
    attr.groups = (int32_t)groups;
    const attr_pair kernel = {1, (int32_t)taps};
    const uint32_t w = add_kernel(b, s, "weights", kernel, features / groups, filters);
    const uint32_t bias = expand_bias(b, s, filters);
    const model_node node = expand_weighted(HR_OP_CONV2D, &attr, as_row(b, s), w, bias);
    const layer_act act = (layer_act)spec_integer(s, ATTR_ACTIVATION);
    return as_places(b, expand_activation(b, act, expand_node(b, &node, "conv"), "active"));
}

const layer_kind layer_kind_conv1d = {"conv1d",
                                      1,
                                      1,
                                      LAYER_NEEDS_SEQUENCE,
                                      {ATTR_FILTERS, ATTR_TAPS, ATTR_STEP, ATTR_SPREAD, ATTR_ENDS,
                                       ATTR_GROUPS, ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT, ATTR_INIT_SCALE},
                                      expand_conv1d};

static uint32_t expand_pool1d(model_builder *b, const layer_spec *s, hr_op op, int32_t flags)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t size = spec_integer(s, ATTR_PLACES), stride = spec_integer(s, ATTR_POOL_STEP);
    const attr_padding padding = s->value[ATTR_PADDING].padding;
    model_node node = {.op = op, .in_count = 1};
    if (padding.amount >= size) {
        builder_problem(b, "needs padding below its size %lld, had %d: such a window would see no place",
                        (long long)size, padding.amount);
        return HR_NO_ID;
    }
    if (!step_window(b, &x, size, stride == 0 ? size : stride, 1, padding, &node.attr)) {
        return HR_NO_ID;
    }
    node.attr.flags = flags;
    node.in[0] = ref_value(as_row(b, s));
    return as_places(b, expand_node(b, &node, "pool"));
}

static uint32_t expand_max_pool1d(model_builder *b, const layer_spec *s)
{
    return expand_pool1d(b, s, HR_OP_MAX_POOL, 0);
}

const layer_kind layer_kind_max_pool1d = {
    "max_pool1d", 1, 1, LAYER_NEEDS_SEQUENCE, {ATTR_PLACES, ATTR_POOL_STEP, ATTR_PADDING}, expand_max_pool1d};

static uint32_t expand_avg_pool1d(model_builder *b, const layer_spec *s)
{
    return expand_pool1d(b, s, HR_OP_AVG_POOL, spec_integer(s, ATTR_COUNT_PADDING) ? OP_FLAG_PADDING : 0);
}

const layer_kind layer_kind_avg_pool1d = {"avg_pool1d",
                                          1,
                                          1,
                                          LAYER_NEEDS_SEQUENCE,
                                          {ATTR_PLACES, ATTR_POOL_STEP, ATTR_PADDING, ATTR_COUNT_PADDING},
                                          expand_avg_pool1d};

// ---- transposed -----------------------------------------------------------------------------------------------

// One side of a transposed convolution: "same" makes size * stride outputs, as in Keras; behind the image that can
// mean a negative padding, which are zeros of the result that no window reaches.
static void pad_transposed(int32_t kernel, int32_t stride, const attr_padding *padding, int32_t *before,
                           int32_t *behind)
{
    const int32_t total = kernel - stride;
    *before = !padding->same ? padding->amount : total > 0 ? total / 2 : 0;
    *behind = !padding->same ? padding->amount : total - *before;
}

static uint32_t expand_conv2d_transpose(model_builder *b, const layer_spec *s)
{
    const int64_t channels = spec_shape(b, s, 0).dim[3];
    const int64_t filters = spec_integer(s, ATTR_FILTERS);
    const attr_pair kernel = s->value[ATTR_KERNEL].pair;
    const attr_pair stride = s->value[ATTR_STRIDE].pair;
    const int64_t area = (int64_t)kernel.h * kernel.w;
    op_attr attr = {.kernel_h = kernel.h, .kernel_w = kernel.w, .stride_h = stride.h, .stride_w = stride.w};
    attr.groups = 1;
    pad_transposed(kernel.h, stride.h, &s->value[ATTR_PADDING].padding, &attr.pad_top, &attr.pad_bottom);
    pad_transposed(kernel.w, stride.w, &s->value[ATTR_PADDING].padding, &attr.pad_left, &attr.pad_right);
    const hr_shape shape = shape_of(4, (const int64_t[]){kernel.h, kernel.w, filters, channels});
    const uint32_t w =
        expand_weights(b, s, "weights", &shape, (uint64_t)(area * channels), (uint64_t)(area * filters));
    const uint32_t bias = expand_bias(b, s, filters);
    const model_node node = expand_weighted(HR_OP_CONV2D_TRANSPOSE, &attr, s->input[0], w, bias);
    return expand_activate(b, s, expand_node(b, &node, expand_result_name(s, "conv")));
}

const layer_kind layer_kind_conv2d_transpose = {"conv2d_transpose",
                                                1,
                                                1,
                                                LAYER_NEEDS_IMAGE,
                                                {ATTR_FILTERS, ATTR_KERNEL, ATTR_STRIDE, ATTR_PADDING,
                                                 ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT, ATTR_INIT_SCALE},
                                                expand_conv2d_transpose};

// ---- pooling --------------------------------------------------------------------------------------------------

static uint32_t expand_pool(model_builder *b, const layer_spec *s, hr_op op, attr_pair size, int32_t flags)
{
    const hr_shape image = spec_shape(b, s, 0);
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
    model_node node = {.op = op,
                       .attr = window_of(&image, size, stride, padding),
                       .in_count = 1,
                       .in = {ref_value(s->input[0])}};
    node.attr.flags = flags;
    return expand_node(b, &node, "out");
}

static uint32_t expand_max_pool(model_builder *b, const layer_spec *s)
{
    return expand_pool(b, s, HR_OP_MAX_POOL, s->value[ATTR_SIZE].pair, 0);
}

const layer_kind layer_kind_max_pool = {
    "max_pool", 1, 1, LAYER_NEEDS_IMAGE, {ATTR_SIZE, ATTR_POOL_STRIDE, ATTR_PADDING}, expand_max_pool};

// To `to` pixels. Where they divide the image its windows are those of a plain pooling.
static uint32_t expand_adaptive(model_builder *b, const layer_spec *s)
{
    const hr_shape image = spec_shape(b, s, 0);
    const attr_pair to = s->value[ATTR_TO].pair, stride = s->value[ATTR_POOL_STRIDE].pair;
    const attr_padding padding = s->value[ATTR_PADDING].padding;
    const bool even = image.dim[1] % to.h == 0 && image.dim[2] % to.w == 0 && image.dim[1] <= INT32_MAX &&
                      image.dim[2] <= INT32_MAX;
    if (s->value[ATTR_SIZE_OR_TO].pair.h > 0 || stride.h > 0 || padding.same || padding.amount > 0 ||
        spec_integer(s, ATTR_COUNT_PADDING) != 0) {
        builder_problem(b, "needs to alone, which makes its windows itself, or size, stride, padding and "
                           "count_padding");
        return HR_NO_ID;
    }
    model_node node = {.op = even ? HR_OP_AVG_POOL : HR_OP_ADAPTIVE_POOL,
                       .attr = {.kernel_h = to.h, .kernel_w = to.w},
                       .in_count = 1,
                       .in = {ref_value(s->input[0])}};
    if (even) {
        const attr_pair size = {(int32_t)(image.dim[1] / to.h), (int32_t)(image.dim[2] / to.w)};
        node.attr = window_of(&image, size, size, padding);
    }
    return expand_node(b, &node, "out");
}

static uint32_t expand_avg_pool(model_builder *b, const layer_spec *s)
{
    if (s->value[ATTR_TO].pair.h > 0) {
        return expand_adaptive(b, s);
    }
    const attr_pair size = s->value[ATTR_SIZE_OR_TO].pair;
    if (size.h == 0) {
        builder_problem(b, "needs size: of its windows, or to: [height, width] of the result");
        return HR_NO_ID;
    }
    return expand_pool(b, s, HR_OP_AVG_POOL, size, spec_integer(s, ATTR_COUNT_PADDING) ? OP_FLAG_PADDING : 0);
}

const layer_kind layer_kind_avg_pool = {
    "avg_pool",
    1,
    1,
    LAYER_NEEDS_IMAGE,
    {ATTR_SIZE_OR_TO, ATTR_TO, ATTR_POOL_STRIDE, ATTR_PADDING, ATTR_COUNT_PADDING},
    expand_avg_pool};

static uint32_t expand_global_avg_pool(model_builder *b, const layer_spec *s)
{
    const model_node node = {.op = HR_OP_GLOBAL_AVG_POOL, .in_count = 1, .in = {ref_value(s->input[0])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_global_avg_pool = {"global_avg_pool", 1,           1,
                                               LAYER_NEEDS_IMAGE, {ATTR_NONE}, expand_global_avg_pool};

// ---- padding and upsampling -----------------------------------------------------------------------------------

static uint32_t expand_zero_pad(model_builder *b, const layer_spec *s)
{
    const attr_edges edges = s->value[ATTR_EDGES].edges;
    const model_node node = {.op = HR_OP_ZERO_PAD,
                             .attr = {.pad_top = edges.top,
                                      .pad_bottom = edges.bottom,
                                      .pad_left = edges.left,
                                      .pad_right = edges.right},
                             .in_count = 1,
                             .in = {ref_value(s->input[0])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_zero_pad = {"zero_pad", 1, 1, LAYER_NEEDS_IMAGE, {ATTR_EDGES}, expand_zero_pad};

enum { MODE_NEAREST, MODE_BILINEAR }; // as the words of ATTR_MODE

static bool enlarged_image(model_builder *b, const layer_spec *s, const hr_shape *image, int64_t out[2])
{
    const attr_pair times = s->value[ATTR_SIZE_OR_TO].pair, to = s->value[ATTR_TO].pair;
    const bool whole = spec_integer(s, ATTR_MODE) == MODE_NEAREST;
    if ((times.h > 0) == (to.h > 0)) {
        builder_problem(b, times.h > 0 ? "needs size or to, had both"
                                       : "needs size: how many times as large, or to: [height, width]");
        return false;
    }
    const int64_t high = image->dim[1], wide = image->dim[2];
    if (high > INT32_MAX || wide > INT32_MAX || high * times.h > INT32_MAX || wide * times.w > INT32_MAX) {
        builder_problem(b, "needs a result of at most 2147483647 pixels a side, had %lldx%lld times %dx%d",
                        (long long)high, (long long)wide, times.h, times.w);
        return false;
    }
    out[0] = times.h > 0 ? high * times.h : to.h;
    out[1] = times.w > 0 ? wide * times.w : to.w;
    if (whole && (out[0] % high != 0 || out[1] % wide != 0)) {
        builder_problem(b,
                        "needs mode: bilinear where no whole number of pixels is made of each, had %lldx%lld "
                        "to %lldx%lld",
                        (long long)high, (long long)wide, (long long)out[0], (long long)out[1]);
        return false;
    }
    return true;
}

static uint32_t expand_upsample(model_builder *b, const layer_spec *s)
{
    const hr_shape image = spec_shape(b, s, 0);
    const bool nearest = spec_integer(s, ATTR_MODE) == MODE_NEAREST;
    const bool corners = spec_integer(s, ATTR_CORNERS) != 0;
    int64_t to[2] = {0};
    if (nearest && corners) {
        builder_problem(b,
                        "needs mode: bilinear for align_corners: the nearest pixel has no corners to align");
        return HR_NO_ID;
    }
    if (!enlarged_image(b, s, &image, to)) {
        return HR_NO_ID;
    }
    const model_node node = {.op = nearest ? HR_OP_UPSAMPLE : HR_OP_RESIZE,
                             .attr = {.kernel_h = (int32_t)(nearest ? to[0] / image.dim[1] : to[0]),
                                      .kernel_w = (int32_t)(nearest ? to[1] / image.dim[2] : to[1]),
                                      .flags = corners ? OP_FLAG_CORNERS : 0},
                             .in_count = 1,
                             .in = {ref_value(s->input[0])}};
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_upsample = {
    "upsample",     1, 1, LAYER_NEEDS_IMAGE, {ATTR_SIZE_OR_TO, ATTR_TO, ATTR_MODE, ATTR_CORNERS},
    expand_upsample};
