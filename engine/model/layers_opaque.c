// SPDX-License-Identifier: Apache-2.0
// A layer of which only shapes are known: it can be planned, and nothing computes it.
#include "model/layer_expand.h"

// Its parameters are one vector, behind its inputs.
static uint32_t expand_opaque(model_builder *b, const layer_spec *s)
{
    const hr_shape *shape = &s->value[ATTR_SHAPE].shape;
    model_node node = {.op = HR_OP_OPAQUE, .in_count = s->input_count};
    int32_t *const dims[] = {&node.attr.kernel_h, &node.attr.kernel_w, &node.attr.stride_h,
                             &node.attr.stride_w};
    for (uint32_t k = 0; k < s->input_count; k++) {
        node.in[k] = ref_value(s->input[k]);
    }
    for (uint32_t k = 0; k < shape->rank; k++) {
        *dims[k] = (int32_t)shape->dim[k];
    }
    node.attr.count = (int32_t)shape->rank + 1;
    const int64_t parameters = spec_integer(s, ATTR_PARAMETERS);
    if (parameters > 0) {
        node.in[node.in_count++] = ref_param(expand_vector(b, "weights", parameters, MODEL_INIT_ZEROS));
    }
    return expand_node(b, &node, "out");
}

const layer_kind layer_kind_opaque = {
    "opaque", 1, LAYER_MAX_INPUTS - 1, LAYER_NEEDS_ANY, {ATTR_SHAPE, ATTR_PARAMETERS}, expand_opaque};
