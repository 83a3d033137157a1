// SPDX-License-Identifier: Apache-2.0
// Biases of attention's scores by where a query and a key stand to one another: one for all samples, of every head.
#include "model/layer_expand.h"
#include "ops/relative.h"

uint32_t expand_relative(model_builder *b, const op_attr *attr, uint32_t table)
{
    const model_node node = {
        .op = HR_OP_RELATIVE_BIAS, .attr = *attr, .in_count = 1, .out_count = 1, .in = {ref_param(table)}};
    return builder_node(b, &node, &(node_out){"bias", false});
}

// Queries are the places of the first input, keys those of the last.
static uint32_t expand_relative_bias(model_builder *b, const layer_spec *s)
{
    const bool causal = spec_integer(s, ATTR_CAUSAL) != 0;
    const int64_t queries = spec_shape(b, s, 0).dim[1], keys = spec_shape(b, s, s->input_count - 1).dim[1];
    const hr_shape shape =
        shape_of(2, (const int64_t[]){spec_integer(s, ATTR_BUCKETS), spec_integer(s, ATTR_HEADS)});
    const op_attr attr = {.rule = OP_RELATIVE_BUCKETS,
                          .kernel_h = (int32_t)queries,
                          .kernel_w = (int32_t)keys,
                          .flags = causal ? OP_FLAG_CAUSAL : 0,
                          .base = (double)spec_integer(s, ATTR_DISTANCE)};
    return expand_relative(b, &attr, expand_table(b, s, &shape));
}

const layer_kind layer_kind_relative_bias = {
    "relative_bias",
    1,
    2,
    LAYER_NEEDS_SEQUENCE,
    {ATTR_HEADS, ATTR_BUCKETS, ATTR_DISTANCE, ATTR_CAUSAL, ATTR_TABLE_INIT, ATTR_INIT_SCALE},
    expand_relative_bias};
