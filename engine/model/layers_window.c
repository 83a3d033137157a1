// SPDX-License-Identifier: Apache-2.0
// Attention within windows of an image, as Swin has it (Liu et al. 2021): every window counts as a sample, scores get a
// bias by where two pixels stand to one another, and in an image that was rolled before, pixels that were no neighbours do
// not see one another.
#include "model/layer_expand.h"
#include "ops/relative.h"

typedef struct window_form {
    int64_t height, width, channels; // of the image
    int64_t h, w, down, across;      // of a window; how many
    int64_t heads;
    attr_pair shift;
} window_form;

static bool read_windows(model_builder *b, const layer_spec *s, window_form *out)
{
    const hr_shape x = spec_shape(b, s, 0);
    const attr_pair size = s->value[ATTR_SIZE].pair, shift = s->value[ATTR_SHIFTED].pair;
    *out = (window_form){x.dim[1], x.dim[2],          x.dim[3],          size.h,
                         size.w,   x.dim[1] / size.h, x.dim[2] / size.w, spec_integer(s, ATTR_HEADS),
                         shift};
    if (out->down * size.h != x.dim[1] || out->across * size.w != x.dim[2]) {
        builder_problem(b, "needs an image in windows of %dx%d, had %lldx%lld", size.h, size.w,
                        (long long)x.dim[1], (long long)x.dim[2]);
        return false;
    }
    if (shift.h >= size.h || shift.w >= size.w) {
        builder_problem(b, "needs a shift below its windows of %dx%d, had %dx%d", size.h, size.w, shift.h,
                        shift.w);
        return false;
    }
    if (x.dim[3] % out->heads != 0) {
        builder_problem(b, "needs heads that divide its %lld features, had %lld", (long long)x.dim[3],
                        (long long)out->heads);
        return false;
    }
    return true;
}

static const uint32_t middle_changed[OP_MAX_RANK] = {0, 2, 1, 3, 4};

// [1,H,W,C] as [windows, places, C].
static uint32_t to_windows(model_builder *b, uint32_t x, const window_form *f)
{
    const hr_shape apart = shape_of(5, (const int64_t[]){f->down, f->h, f->across, f->w, f->channels});
    const hr_shape windows = shape_of(3, (const int64_t[]){f->down * f->across, f->h * f->w, f->channels});
    const uint32_t rows = builder_reshape(b, x, &apart, "rows");
    return builder_reshape(b, expand_permute(b, rows, middle_changed, "gathered"), &windows, "windows");
}

static uint32_t to_image(model_builder *b, uint32_t x, const window_form *f)
{
    const hr_shape apart = shape_of(5, (const int64_t[]){f->down, f->across, f->h, f->w, f->channels});
    const hr_shape image = shape_of(4, (const int64_t[]){1, f->height, f->width, f->channels});
    const uint32_t places = builder_reshape(b, x, &apart, "places");
    return builder_reshape(b, expand_permute(b, places, middle_changed, "spread"), &image, "out");
}

// Scores and the biases of their window: all windows of an image side by side where these differ.
static uint32_t biased(model_builder *b, const layer_spec *s, const window_form *f, uint32_t scores)
{
    const int64_t rows = (2 * f->h - 1) * (2 * f->w - 1), area = f->h * f->w;
    const bool torn = f->shift.h > 0 || f->shift.w > 0;
    const hr_shape table = shape_of(2, (const int64_t[]){rows, f->heads});
    const op_attr attr = {.rule = OP_RELATIVE_WINDOW,
                          .kernel_h = (int32_t)f->h,
                          .kernel_w = (int32_t)f->w,
                          .stride_h = (int32_t)f->down,
                          .stride_w = (int32_t)f->across,
                          .pad_top = f->shift.h,
                          .pad_left = f->shift.w};
    const uint32_t bias = expand_relative(
        b, &attr, expand_weights(b, s, "bias_table", &table, (uint64_t)rows, (uint64_t)f->heads));
    if (!torn) {
        return expand_biased(b, scores, bias);
    }
    const hr_shape beside = shape_of(4, (const int64_t[]){1, f->down * f->across * f->heads, area, area});
    const hr_shape apart = shape_of(4, (const int64_t[]){f->down * f->across, f->heads, area, area});
    const uint32_t all = builder_reshape(b, scores, &beside, "scores_beside");
    return builder_reshape(b, expand_biased(b, all, bias), &apart, "biased_apart");
}

static uint32_t expand_window_attention(model_builder *b, const layer_spec *s)
{
    window_form f;
    if (!read_windows(b, s, &f)) {
        return HR_NO_ID;
    }
    const uint32_t x = to_windows(b, s->input[0], &f);
    const uint32_t q = expand_project(b, s, x, f.channels, "query", "query");
    const uint32_t k = expand_project(b, s, x, f.channels, "key", "key");
    const uint32_t v = expand_project(b, s, x, f.channels, "value", "value");
    const op_attr attr = {.heads = (int32_t)f.heads};
    const model_node scores = {
        .op = HR_OP_ATTENTION_SCORES, .attr = attr, .in_count = 2, .in = {ref_value(q), ref_value(k)}};
    const model_node softmax = {.op = HR_OP_SOFTMAX,
                                .in_count = 1,
                                .in = {ref_value(biased(b, s, &f, expand_node(b, &scores, "scores")))}};
    const uint32_t p = expand_dropout(b, s->value[ATTR_DROPOUT].real, 0,
                                      expand_node(b, &softmax, "probabilities"), "dropped");
    const model_node values = {
        .op = HR_OP_ATTENTION_VALUES, .attr = attr, .in_count = 2, .in = {ref_value(p), ref_value(v)}};
    const uint32_t mixed = expand_node(b, &values, "mixed");
    return to_image(b, expand_project(b, s, mixed, f.channels, "output", "output"), &f);
}

const layer_kind layer_kind_window_attention = {
    "window_attention",
    1,
    1,
    LAYER_NEEDS_IMAGE,
    {ATTR_HEADS, ATTR_SIZE, ATTR_SHIFTED, ATTR_DROPOUT, ATTR_BIAS, ATTR_INIT, ATTR_INIT_SCALE},
    expand_window_attention};
