// SPDX-License-Identifier: Apache-2.0
// Normalisations. Scales and shifts are weights; running statistics are state.
#include "model/layer_expand.h"

static uint32_t add_statistic(model_builder *b, const char *suffix, int64_t channels, model_init init)
{
    const model_param param = {
        .shape = shape_of(1, &channels), .category = HR_CATEGORY_STATE, .trainable = false, .init = init};
    return builder_param(b, suffix, &param);
}

static uint32_t expand_batch_norm(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t channels = x.dim[x.rank - 1];
    const uint32_t gamma = expand_vector(b, "gamma", channels, MODEL_INIT_ONES);
    const uint32_t beta = expand_vector(b, "beta", channels, MODEL_INIT_ZEROS);
    const uint32_t mean = add_statistic(b, "moving_mean", channels, MODEL_INIT_ZEROS);
    const uint32_t variance = add_statistic(b, "moving_variance", channels, MODEL_INIT_ONES);
    const model_node node = {
        .op = HR_OP_BATCH_NORM,
        .attr = {.epsilon = s->value[ATTR_EPSILON].real, .momentum = s->value[ATTR_MOMENTUM].real},
        .in_count = 5,
        .out_count = 3,
        .in = {ref_value(s->input[0]), ref_param(gamma), ref_param(beta), ref_param(mean),
               ref_param(variance)},
    };
    const node_out out[] = {
        {expand_result_name(s, "norm"), true}, {"saved_mean", false}, {"saved_variance", false}};
    return expand_activate(b, s, builder_node(b, &node, out));
}

const layer_kind layer_kind_batch_norm = {
    "batch_norm", 1, 1, LAYER_NEEDS_ANY, {ATTR_EPSILON, ATTR_MOMENTUM, ATTR_ACTIVATION}, expand_batch_norm};

static uint32_t expand_layer_norm(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t features = x.dim[x.rank - 1];
    const uint32_t gamma = expand_vector(b, "gamma", features, MODEL_INIT_ONES);
    const uint32_t beta = expand_vector(b, "beta", features, MODEL_INIT_ZEROS);
    const model_node node = {.op = HR_OP_LAYER_NORM,
                             .attr = {.epsilon = s->value[ATTR_EPSILON].real},
                             .in_count = 3,
                             .out_count = 3,
                             .in = {ref_value(s->input[0]), ref_param(gamma), ref_param(beta)}};
    const node_out out[] = {{"out", true}, {"mean", true}, {"rstd", true}};
    return builder_node(b, &node, out);
}

const layer_kind layer_kind_layer_norm = {"layer_norm",     1, 1, LAYER_NEEDS_ANY, {ATTR_EPSILON},
                                          expand_layer_norm};

static uint32_t expand_rms_norm(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const uint32_t gamma = expand_vector(b, "gamma", x.dim[x.rank - 1], MODEL_INIT_ONES);
    const model_node node = {.op = HR_OP_RMS_NORM,
                             .attr = {.epsilon = s->value[ATTR_EPSILON].real},
                             .in_count = 2,
                             .out_count = 2,
                             .in = {ref_value(s->input[0]), ref_param(gamma)}};
    const node_out out[] = {{"out", true}, {"rstd", true}};
    return builder_node(b, &node, out);
}

const layer_kind layer_kind_rms_norm = {"rms_norm", 1, 1, LAYER_NEEDS_ANY, {ATTR_EPSILON}, expand_rms_norm};

// As many groups as channels: instance normalisation.
static uint32_t expand_group_norm(model_builder *b, const layer_spec *s)
{
    const hr_shape x = spec_shape(b, s, 0);
    const int64_t channels = x.dim[x.rank - 1], groups = spec_integer(s, ATTR_NORM_GROUPS);
    if (x.rank < 3 || channels % groups != 0) {
        char had[SHAPE_TEXT_MAX];
        builder_problem(b, "needs [places…, channels] whose channels %lld groups divide, had %s",
                        (long long)groups, sample_shape_text(&x, had));
        return HR_NO_ID;
    }
    const uint32_t gamma = expand_vector(b, "gamma", channels, MODEL_INIT_ONES);
    const uint32_t beta = expand_vector(b, "beta", channels, MODEL_INIT_ZEROS);
    const model_node node = {.op = HR_OP_GROUP_NORM,
                             .attr = {.groups = (int32_t)groups, .epsilon = s->value[ATTR_EPSILON].real},
                             .in_count = 3,
                             .out_count = 3,
                             .in = {ref_value(s->input[0]), ref_param(gamma), ref_param(beta)}};
    const node_out out[] = {{expand_result_name(s, "norm"), true}, {"mean", true}, {"rstd", true}};
    return expand_activate(b, s, builder_node(b, &node, out));
}

const layer_kind layer_kind_group_norm = {
    "group_norm",     1, 1, LAYER_NEEDS_ANY, {ATTR_NORM_GROUPS, ATTR_EPSILON, ATTR_ACTIVATION},
    expand_group_norm};
