// SPDX-License-Identifier: Apache-2.0
// Layers that put elements in another order: axes, pixels into channels and back, channels of groups, images turned around
// their edges. What has more axes than a value may have counts rows of the image among its samples.
#include "model/layer_expand.h"
#include "ops/permute.h"

uint32_t expand_permute(model_builder *b, uint32_t x, const uint32_t axes[OP_MAX_RANK], const char *result)
{
    if (b->broken) {
        return HR_NO_ID;
    }
    const model_node node = {.op = HR_OP_PERMUTE,
                             .attr = {.rule = permute_rule(axes, b->values.data[x].shape.rank)},
                             .in_count = 1,
                             .in = {ref_value(x)}};
    return expand_node(b, &node, result);
}

static uint32_t expand_axes(model_builder *b, const layer_spec *s)
{
    const uint32_t rank = spec_shape(b, s, 0).rank;
    const hr_shape *written = &s->value[ATTR_AXES].shape;
    uint32_t axes[OP_MAX_RANK] = {0}, seen = 0;
    for (uint32_t k = 0; k < written->rank; k++) {
        axes[k + 1] = (uint32_t)written->dim[k];
        seen |= 1u << axes[k + 1];
    }
    if (written->rank + 1 != rank || seen != ((1u << rank) - 1) - 1) {
        builder_problem(b, "needs axes that name each of 1 to %u once (0 is the batch)", rank - 1);
        return HR_NO_ID;
    }
    return expand_permute(b, s->input[0], axes, "out");
}

const layer_kind layer_kind_permute = {"permute", 1, 1, LAYER_NEEDS_ANY, {ATTR_AXES}, expand_axes};

// ---- pixels and channels ----------------------------------------------------------------------------------------

// x seen as `apart`, its axes in another order, the result seen as `joined`.
typedef struct regrouping {
    hr_shape apart, joined;
    uint32_t axes[OP_MAX_RANK];
} regrouping;

static uint32_t regroup(model_builder *b, uint32_t x, const regrouping *g)
{
    const uint32_t apart = builder_reshape(b, x, &g->apart, "apart");
    return builder_reshape(b, expand_permute(b, apart, g->axes, "permuted"), &g->joined, "out");
}

static uint32_t expand_pixel_shuffle(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t h = x.dim[1], w = x.dim[2], down = s->value[ATTR_SIZE].pair.h,
                  right = s->value[ATTR_SIZE].pair.w;
    const int64_t channels = x.dim[3] / (down * right);
    if (channels * down * right != x.dim[3]) {
        builder_problem(b, "needs channels in groups of %lldx%lld, had %lld", (long long)down,
                        (long long)right, (long long)x.dim[3]);
        return HR_NO_ID;
    }
    const regrouping g = {shape_of(5, (const int64_t[]){h, w, channels, down, right}),
                          shape_of(4, (const int64_t[]){1, h * down, w * right, channels}),
                          {0, 3, 1, 4, 2}};
    return regroup(b, s->input[0], &g);
}

const layer_kind layer_kind_pixel_shuffle = {"pixel_shuffle",   1,           1,
                                             LAYER_NEEDS_IMAGE, {ATTR_SIZE}, expand_pixel_shuffle};

// Patches of `size` pixels become the channels of one, in an order of their rows, columns and channels.
static uint32_t expand_patches(model_builder *b, const layer_spec *s, const uint32_t axes[OP_MAX_RANK])
{
    const hr_shape x = spec_shape(b, s, 0);
    const attr_pair size = s->value[ATTR_SIZE].pair;
    const int64_t h = x.dim[1] / size.h, w = x.dim[2] / size.w;
    if (h * size.h != x.dim[1] || w * size.w != x.dim[2]) {
        builder_problem(b,
                        "needs an image in patches of %dx%d, had %lldx%lld: a zero_pad layer may fill it up",
                        size.h, size.w, (long long)x.dim[1], (long long)x.dim[2]);
        return HR_NO_ID;
    }
    regrouping g = {shape_of(5, (const int64_t[]){h, size.h, w, size.w, x.dim[3]}),
                    shape_of(4, (const int64_t[]){1, h, w, x.dim[3] * size.h * size.w}),
                    {0}};
    for (uint32_t k = 0; k < OP_MAX_RANK; k++) {
        g.axes[k] = axes[k];
    }
    return regroup(b, s->input[0], &g);
}

// As PyTorch: the pixels of a channel side by side.
static uint32_t expand_pixel_unshuffle(model_builder *b, const layer_spec *s)
{
    return expand_patches(b, s, (const uint32_t[]){0, 2, 4, 1, 3});
}

const layer_kind layer_kind_pixel_unshuffle = {"pixel_unshuffle", 1,           1,
                                               LAYER_NEEDS_IMAGE, {ATTR_SIZE}, expand_pixel_unshuffle};

// As Swin: the channels of a pixel side by side, pixels column by column.
static uint32_t expand_patch_merging(model_builder *b, const layer_spec *s)
{
    return expand_patches(b, s, (const uint32_t[]){0, 2, 3, 1, 4});
}

const layer_kind layer_kind_patch_merging = {"patch_merging",   1,           1,
                                             LAYER_NEEDS_IMAGE, {ATTR_SIZE}, expand_patch_merging};

// As ShuffleNet: channel i of group g becomes channel g of group i.
static uint32_t expand_channel_shuffle(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t groups = spec_integer(s, ATTR_NORM_GROUPS), channels = x.dim[3] / groups;
    if (channels * groups != x.dim[3]) {
        builder_problem(b, "needs groups that divide its %lld channels, had %lld", (long long)x.dim[3],
                        (long long)groups);
        return HR_NO_ID;
    }
    const regrouping g = {
        shape_of(4, (const int64_t[]){x.dim[1], x.dim[2], groups, channels}), x, {0, 1, 3, 2}};
    return regroup(b, s->input[0], &g);
}

const layer_kind layer_kind_channel_shuffle = {
    "channel_shuffle", 1, 1, LAYER_NEEDS_IMAGE, {ATTR_NORM_GROUPS}, expand_channel_shuffle};

// ---- roll -------------------------------------------------------------------------------------------------------

static int32_t turn_of(int64_t shift, int64_t side)
{
    return (int32_t)((side - shift % side) % side);
}

uint32_t expand_rolled(model_builder *b, uint32_t x, attr_pair shift, const char *result)
{
    if (b->broken) {
        return HR_NO_ID;
    }
    const int64_t *d = b->values.data[x].shape.dim;
    const model_node node = {.op = HR_OP_ROLL,
                             .attr = {.pad_top = turn_of(shift.h, d[1]), .pad_left = turn_of(shift.w, d[2])},
                             .in_count = 1,
                             .in = {ref_value(x)}};
    return expand_node(b, &node, result);
}

static uint32_t expand_roll(model_builder *b, const layer_spec *s)
{
    return expand_rolled(b, s->input[0], s->value[ATTR_SHIFT].pair, "out");
}

const layer_kind layer_kind_roll = {"roll", 1, 1, LAYER_NEEDS_IMAGE, {ATTR_SHIFT}, expand_roll};
