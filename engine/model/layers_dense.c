// SPDX-License-Identifier: Apache-2.0
// Dense: y = x·w + b over the last dimension.
#include "model/layer_expand.h"

// Weights stored [units, features] serve where an embedding's table is shared as the output layer.
static uint32_t expand_dense(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t features = x.dim[x.rank - 1];
    const int64_t units = spec_integer(s, ATTR_UNITS);
    const bool transposed = spec_integer(s, ATTR_TRANSPOSE) != 0;
    const hr_shape shape = transposed ? shape_of(2, (const int64_t[]){units, features})
                                      : shape_of(2, (const int64_t[]){features, units});
    const uint32_t w = expand_weights(b, s, "weights", &shape, (uint64_t)features, (uint64_t)units);
    const uint32_t bias = expand_bias(b, s, units);
    const op_attr attr = {.flags = transposed ? OP_FLAG_TRANSPOSE : 0};
    const model_node node = expand_weighted(HR_OP_DENSE, &attr, s->input[0], w, bias);
    return expand_activate(b, s, expand_node(b, &node, expand_result_name(s, "dense")));
}

const layer_kind layer_kind_dense = {
    "dense",
    1,
    1,
    LAYER_NEEDS_ANY,
    {ATTR_UNITS, ATTR_BIAS, ATTR_ACTIVATION, ATTR_INIT, ATTR_INIT_SCALE, ATTR_TRANSPOSE},
    expand_dense};
