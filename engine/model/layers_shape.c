// SPDX-License-Identifier: Apache-2.0
// Layers that rearrange: views, and joining, cutting, copying and summing along an axis.
#include <string.h>

#include "model/layer_expand.h"

// ---- views ----------------------------------------------------------------------------------------------------

static uint32_t expand_flatten(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    uint64_t elements = 0; // fits: every value is at most MODEL_MAX_ELEMENTS
    (void)shape_elements(&x, &elements);
    const hr_shape flat = shape_of(2, (const int64_t[]){1, (int64_t)elements});
    return builder_reshape(b, s->input[0], &flat, "out");
}

const layer_kind layer_kind_flatten = {"flatten", 1, 1, LAYER_NEEDS_ANY, {ATTR_NONE}, expand_flatten};

static uint32_t expand_reshape(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
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

const layer_kind layer_kind_reshape = {"reshape", 1, 1, LAYER_NEEDS_ANY, {ATTR_SHAPE}, expand_reshape};

// ---- along an axis --------------------------------------------------------------------------------------------

// The shapes must agree but for the axis; says which input does not.
static bool joins(model_builder *b, const layer_spec *s, int32_t axis)
{
    const hr_shape first = spec_shape(b, s, 0);
    for (uint32_t k = 1; k < s->input_count; k++) {
        hr_shape other = spec_shape(b, s, k);
        const hr_shape written = other;
        if (other.rank == first.rank) {
            other.dim[axis] = first.dim[axis];
        }
        if (!shape_equal(&first, &other)) {
            char a[SHAPE_TEXT_MAX], c[SHAPE_TEXT_MAX];
            builder_problem(b, "needs inputs that differ in axis %d only, had %s and, as input %u, %s", axis,
                            sample_shape_text(&first, a), k + 1, sample_shape_text(&written, c));
            return false;
        }
    }
    return true;
}

static uint32_t expand_concat(model_builder *b, const layer_spec *s)
{
    model_node node = {.op = HR_OP_CONCAT, .in_count = s->input_count};
    if (!expand_axis(b, s, spec_shape(b, s, 0).rank, &node.attr.axis) || !joins(b, s, node.attr.axis)) {
        return HR_NO_ID;
    }
    for (uint32_t k = 0; k < s->input_count; k++) {
        node.in[k] = ref_value(s->input[k]);
    }
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_concat = {"concat",        2,           LAYER_MAX_INPUTS,
                                      LAYER_NEEDS_ANY, {ATTR_AXIS}, expand_concat};

static uint32_t expand_slice(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    model_node node = {.op = HR_OP_SLICE, .in_count = 1, .in = {ref_value(s->input[0])}};
    if (!expand_axis(b, s, x.rank, &node.attr.axis)) {
        return HR_NO_ID;
    }
    const int64_t size = x.dim[node.attr.axis];
    const int64_t from = spec_integer(s, ATTR_FROM);
    const int64_t count = spec_integer(s, ATTR_COUNT) != 0 ? spec_integer(s, ATTR_COUNT) : size - from;
    if (from >= size || count > size - from) {
        builder_problem(b, "needs a piece of axis %d, which has %lld places, had %lld from place %lld",
                        node.attr.axis, (long long)size, (long long)count, (long long)from);
        return HR_NO_ID;
    }
    node.attr.offset = (int32_t)from;
    node.attr.count = (int32_t)count;
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_slice = {"slice",     1, 1, LAYER_NEEDS_ANY, {ATTR_AXIS, ATTR_FROM, ATTR_COUNT},
                                     expand_slice};

static uint32_t expand_stack(model_builder *b, const layer_spec *s)
{
    const uint32_t rank = spec_shape(b, s, 0).rank;
    model_node node = {.op = HR_OP_STACK, .in_count = 1, .in = {ref_value(s->input[0])}};
    if (rank == OP_MAX_RANK) {
        builder_problem(b, "cannot add a dimension to a value that has %u, the batch included", rank);
        return HR_NO_ID;
    }
    if (!expand_axis(b, s, rank + 1, &node.attr.axis)) {
        return HR_NO_ID;
    }
    node.attr.count = (int32_t)spec_integer(s, ATTR_COPIES);
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_stack = {"stack", 1, 1, LAYER_NEEDS_ANY, {ATTR_AXIS, ATTR_COPIES}, expand_stack};

static uint32_t expand_reduce(model_builder *b, const layer_spec *s)
{
    const uint32_t rank = spec_shape(b, s, 0).rank;
    model_node node = {.op = HR_OP_REDUCE, .in_count = 1, .in = {ref_value(s->input[0])}};
    if (rank < 3) {
        builder_problem(b, "needs at least two dimensions beside the batch, and leaves one");
        return HR_NO_ID;
    }
    if (!expand_axis(b, s, rank, &node.attr.axis)) {
        return HR_NO_ID;
    }
    node.attr.count = 1;
    node.attr.flags = spec_integer(s, ATTR_OF) == 1 ? OP_FLAG_MEAN : 0;
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_reduce = {"reduce", 1, 1, LAYER_NEEDS_ANY, {ATTR_AXIS, ATTR_OF}, expand_reduce};
