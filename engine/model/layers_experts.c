// SPDX-License-Identifier: Apache-2.0
// A mixture of experts over a sequence: a router, and as many networks as there are experts, of which each token has
// top_k. Every sample is shared out by itself, and an expert has as many slots in it as `capacity_factor` times its share
// of the choices, so that what a step holds does not depend on what the router says (ops/experts.h).
#include <math.h>

#include "model/layer_expand.h"
#include "ops/experts.h"

typedef struct expert_form {
    int64_t tokens, features, experts, chosen, slots, inner; // slots: of an expert in a sample
} expert_form;

static bool read_form(model_builder *b, const layer_spec *s, expert_form *out)
{
    const hr_shape x = spec_shape(b, s, 0);
    *out = (expert_form){.tokens = x.dim[1],
                         .features = x.dim[2],
                         .experts = spec_integer(s, ATTR_EXPERTS),
                         .chosen = spec_integer(s, ATTR_TOP_K),
                         .inner = spec_integer(s, ATTR_UNITS)};
    if (out->chosen > out->experts) {
        builder_problem(b, "needs a top_k of at most its %lld experts, had %lld", (long long)out->experts,
                        (long long)out->chosen);
        return false;
    }
    const double share = (double)out->tokens * (double)out->chosen / (double)out->experts;
    const double slots = ceil(s->value[ATTR_CAPACITY_FACTOR].real * share);
    out->slots = slots < (double)out->tokens ? (int64_t)slots : out->tokens; // a token has an expert once
    return true;
}

static uint32_t route(model_builder *b, const layer_spec *s, const expert_form *f, uint32_t slots_of[2])
{
    const hr_shape shape = shape_of(2, (const int64_t[]){f->features, f->experts});
    const uint32_t w =
        expand_weights(b, s, "router_weights", &shape, (uint64_t)f->features, (uint64_t)f->experts);
    const model_node dense = expand_weighted(HR_OP_DENSE, &(op_attr){0}, s->input[0], w, HR_NO_ID);
    const uint32_t logits = expand_node(b, &dense, "router");
    const model_node node = {.op = HR_OP_ROUTE,
                             .attr = {.choices = (int32_t)f->chosen,
                                      .slots = (int32_t)f->slots,
                                      .flags = spec_integer(s, ATTR_NORMALISE) ? OP_FLAG_SHARES : 0},
                             .in_count = 1,
                             .out_count = 2,
                             .in = {ref_value(logits)}};
    slots_of[0] = builder_node(b, &node, (const node_out[]){{"gates", true}, {"slots", true}});
    slots_of[1] = slots_of[0] + 1;
    return logits;
}

static void balance(model_builder *b, const layer_spec *s, uint32_t logits, uint32_t slots)
{
    const double weight = s->value[ATTR_BALANCE].real;
    if (weight == 0) {
        return;
    }
    const model_node node = {.op = HR_OP_BALANCE,
                             .attr = {.scale = weight != 1 ? weight : 0},
                             .in_count = 2,
                             .out_count = 1,
                             .in = {ref_value(logits), ref_value(slots)}};
    const uint32_t loss = builder_node(b, &node, &(node_out){"balance", false});
    builder_layer_loss(b, loss, logits, weight);
}

// A dense layer of every expert: NAME_weights [experts, in, out].
static uint32_t project(model_builder *b, const layer_spec *s, uint32_t x, const expert_form *f,
                        const int64_t units[2], const char *const names[2])
{
    const hr_shape shape = shape_of(3, (const int64_t[]){f->experts, units[0], units[1]});
    const uint32_t w = expand_weights(b, s, names[0], &shape, (uint64_t)units[0], (uint64_t)units[1]);
    const model_node node = {.op = HR_OP_EXPERT_DENSE, .in_count = 2, .in = {ref_value(x), ref_param(w)}};
    return expand_node(b, &node, names[1]);
}

static uint32_t networks(model_builder *b, const layer_spec *s, const expert_form *f, uint32_t x)
{
    const layer_act act = (layer_act)spec_integer(s, ATTR_ACTIVATION);
    const int64_t in[] = {f->features, f->inner}, out[] = {f->inner, f->features};
    const bool gated = spec_integer(s, ATTR_GATED) != 0;
    uint32_t h = HR_NO_ID;
    if (gated) {
        h = project(b, s, x, f, in, (const char *const[]){"gate_weights", "gate"});
        h = expand_activation(b, act, h, "activated");
    }
    uint32_t up = project(b, s, x, f, in, (const char *const[]){"up_weights", "up"});
    if (gated) {
        const model_node node = {.op = HR_OP_MULTIPLY, .in_count = 2, .in = {ref_value(h), ref_value(up)}};
        up = expand_node(b, &node, "gated");
    } else {
        up = expand_activation(b, act, up, "activated");
    }
    return project(b, s, up, f, out, (const char *const[]){"down_weights", "down"});
}

static uint32_t expand_mixture_of_experts(model_builder *b, const layer_spec *s)
{
    expert_form f;
    uint32_t route_of[2];
    if (!read_form(b, s, &f)) {
        return HR_NO_ID;
    }
    const uint32_t logits = route(b, s, &f, route_of);
    balance(b, s, logits, route_of[1]);
    const model_node there = {.op = HR_OP_DISPATCH,
                              .attr = {.slots = (int32_t)f.slots, .experts = (int32_t)f.experts},
                              .in_count = 2,
                              .in = {ref_value(s->input[0]), ref_value(route_of[1])}};
    const uint32_t y = networks(b, s, &f, expand_node(b, &there, "dispatched"));
    const model_node back = {.op = HR_OP_GATHER,
                             .in_count = 3,
                             .in = {ref_value(y), ref_value(route_of[0]), ref_value(route_of[1])}};
    return expand_node(b, &back, "out");
}

const layer_kind layer_kind_mixture_of_experts = {"mixture_of_experts",
                                                  1,
                                                  1,
                                                  LAYER_NEEDS_SEQUENCE,
                                                  {ATTR_EXPERTS, ATTR_TOP_K, ATTR_UNITS, ATTR_CAPACITY_FACTOR,
                                                   ATTR_GATED, ATTR_NORMALISE, ATTR_BALANCE, ATTR_ACTIVATION,
                                                   ATTR_INIT, ATTR_INIT_SCALE},
                                                  expand_mixture_of_experts};
