// SPDX-License-Identifier: Apache-2.0
// What a descriptor must be before it is finalized.
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define A(name)    CUDNN_ATTR_##name
#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR

static int64_t count_of(const bag *b, cudnnBackendAttributeName_t name)
{
    const bag_value *v = bag_find(b, name);
    return v == NULL ? 0 : v->count;
}

static bool all_positive(const bag *b, cudnnBackendAttributeName_t name)
{
    const bag_value *v = bag_find(b, name);
    for (int64_t k = 0; k < v->count; k++) {
        if (((const int64_t *)v->data)[k] < 1) {
            return false;
        }
    }
    return true;
}

static cudnnStatus_t finalize_tensor(const bag *b)
{
    if (count_of(b, A(TENSOR_DIMENSIONS)) != count_of(b, A(TENSOR_STRIDES)) ||
        !all_positive(b, A(TENSOR_DIMENSIONS)) || !all_positive(b, A(TENSOR_STRIDES))) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "a tensor needs as many strides as dimensions, all above 0");
    }
    const int64_t alignment = bag_int(b, A(TENSOR_BYTE_ALIGNMENT), 0);
    if (alignment < 1 || (alignment & (alignment - 1)) != 0) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "an alignment of %lld bytes", (long long)alignment);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_convolution(const bag *b)
{
    const int64_t spatial = bag_int(b, A(CONVOLUTION_SPATIAL_DIMS), 0);
    if (spatial < 1 || spatial > GRAPH_SPATIAL || count_of(b, A(CONVOLUTION_DILATIONS)) != spatial ||
        count_of(b, A(CONVOLUTION_FILTER_STRIDES)) != spatial ||
        count_of(b, A(CONVOLUTION_PRE_PADDINGS)) != spatial ||
        count_of(b, A(CONVOLUTION_POST_PADDINGS)) != spatial) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "a convolution over %lld dimensions", (long long)spatial);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t graph_data_of(const bag *b, graph_data *out)
{
    if (b->kind == KIND(EXECUTION_PLAN)) {
        b = bag_bag(b, A(EXECUTION_PLAN_ENGINE_CONFIG));
    }
    if (b->kind == KIND(ENGINECFG)) {
        b = bag_bag(b, A(ENGINECFG_ENGINE));
    }
    return graph_read(
        bag_bag(b, b->kind == KIND(ENGINE) ? A(ENGINE_OPERATION_GRAPH) : A(ENGINEHEUR_OPERATION_GRAPH)), out);
}

engine_choice engine_choice_of(const bag *config)
{
    engine_choice c = {.engine =
                           (int32_t)bag_int(bag_bag(config, A(ENGINECFG_ENGINE)), A(ENGINE_GLOBAL_INDEX), 0)};
    const bag_value *knobs = bag_find(config, A(ENGINECFG_KNOB_CHOICES));
    for (int64_t k = 0; knobs != NULL && k < knobs->count; k++) {
        const bag *knob = ((bag *const *)knobs->data)[k];
        if (bag_int(knob, A(KNOB_CHOICE_KNOB_TYPE), -1) == CUDNN_KNOB_TYPE_TILE_SIZE) {
            c.tile = (int32_t)bag_int(knob, A(KNOB_CHOICE_KNOB_VALUE), 0);
        }
    }
    return c;
}

bool names_card(const bag *b)
{
    static const cudnnBackendAttributeName_t properties[] = {A(ENGINEHEUR_DEVICEPROP), A(ENGINE_DEVICEPROP),
                                                             A(EXECUTION_PLAN_DEVICEPROP)};
    bool by_number = bag_find(b, A(EXECUTION_PLAN_HANDLE)) != NULL;
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
        const bag_value *v = bag_find(b, properties[k]);
        const bag *device = v == NULL ? NULL : *(bag *const *)v->data;
        by_number = by_number || (device != NULL && (bag_find(device, A(DEVICEPROP_HANDLE)) != NULL ||
                                                     bag_find(device, A(DEVICEPROP_DEVICE_ID)) != NULL));
    }
    return by_number;
}

uint64_t workspace_of(const bag *b, const graph_data *p)
{
    const bool is_plan = b->kind == KIND(EXECUTION_PLAN);
    const bag *config = is_plan ? bag_bag(b, A(EXECUTION_PLAN_ENGINE_CONFIG)) : b;
    return engine_workspace(p, engine_choice_of(config),
                            names_card(is_plan ? b : bag_bag(config, A(ENGINECFG_ENGINE))));
}

static cudnnStatus_t finalize_engine(const bag *b)
{
    graph_data p;
    TRY(graph_data_of(b, &p));
    const int64_t index = bag_int(b, A(ENGINE_GLOBAL_INDEX), -1);
    return engine_serves(&p, index) ? CUDNN_STATUS_SUCCESS
                                    : refuse(CUDNN_STATUS_NOT_SUPPORTED,
                                             "engine %lld does not compute this graph", (long long)index);
}

static cudnnStatus_t finalize_config(const bag *b)
{
    const engine_choice c = engine_choice_of(b);
    const bool tiled = c.engine < 2;
    return c.tile >= 0 && c.tile < (tiled ? 2 : 1)
               ? CUDNN_STATUS_SUCCESS
               : refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "engine %d has no tile %d", (int)c.engine,
                        (int)c.tile);
}

static cudnnStatus_t need_device(const bag *b, cudnnBackendAttributeName_t handle,
                                 cudnnBackendAttributeName_t properties)
{
    if (bag_find(b, handle) != NULL) {
        (void)handle_take();
        handle_leave();
    }
    return bag_find(b, handle) != NULL || bag_find(b, properties) != NULL
               ? CUDNN_STATUS_SUCCESS
               : refuse(CUDNN_STATUS_BAD_PARAM, "neither a handle nor a device's properties");
}

static cudnnStatus_t finalize_heuristics(const bag *b)
{
    graph_data p;
    const bag *graph = bag_bag(b, A(ENGINEHEUR_OPERATION_GRAPH));
    if (bag_find(graph, A(OPERATIONGRAPH_HANDLE)) == NULL && bag_find(b, A(ENGINEHEUR_DEVICEPROP)) == NULL) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "neither a handle nor a device's properties");
    }
    return graph_read(graph, &p);
}

// Without a text, those of the card that is there.
static cudnnStatus_t finalize_device(bag *b)
{
    enum { TEXT_MAX = 2048 };
    const bag_value *text = bag_find(b, A(DEVICEPROP_JSON_REPRESENTATION));
    if (text != NULL) {
        return memmem(text->data, (size_t)text->count, "\"deviceVer\"", 11) != NULL
                   ? CUDNN_STATUS_SUCCESS
                   : refuse(CUDNN_STATUS_BAD_PARAM, "the properties name no deviceVer");
    }
    char read[TEXT_MAX];
    const int length = properties_text(read, sizeof read);
    if (length == 0 ||
        (bag_find(b, A(DEVICEPROP_HANDLE)) == NULL && bag_find(b, A(DEVICEPROP_DEVICE_ID)) == NULL)) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "properties of no device");
    }
    return bag_set(b, A(DEVICEPROP_JSON_REPRESENTATION), CUDNN_TYPE_CHAR, length + 1, read);
}

static bool is_gradient_of_attention(const bag *plan)
{
    graph_data p;
    int32_t products = 0;
    if (graph_data_of(plan, &p) != CUDNN_STATUS_SUCCESS) {
        return false;
    }
    for (int32_t k = 0; k < p.node_count; k++) {
        products += p.node[k].kind == KIND(OPERATION_MATMUL);
    }
    return products > 2;
}

static bool refuses_plan(const bag *plan)
{
    const char *when = getenv("CARD_REFUSE_PLANS");
    if (when == NULL || strcmp(when, "1") == 0) {
        return when != NULL;
    }
    if (strcmp(when, "handle") == 0) {
        return bag_find(plan, A(EXECUTION_PLAN_HANDLE)) != NULL;
    }
    return handles > 0 && (strcmp(when, "gradients") != 0 || is_gradient_of_attention(plan));
}

cudnnStatus_t finalize_check(bag *b)
{
    graph_data p;
    TRY(bag_is_whole(b));
    switch ((int)b->kind) {
    case KIND(TENSOR):
        return finalize_tensor(b);
    case KIND(CONVOLUTION):
        return finalize_convolution(b);
    case KIND(OPERATIONGRAPH):
        return graph_read(b, &p);
    case KIND(ENGINEHEUR):
        return finalize_heuristics(b);
    case KIND(ENGINE):
        return finalize_engine(b);
    case KIND(ENGINECFG):
        return finalize_config(b);
    case KIND(EXECUTION_PLAN):
        return !refuses_plan(b) ? need_device(b, A(EXECUTION_PLAN_HANDLE), A(EXECUTION_PLAN_DEVICEPROP))
                                : refuse(CUDNN_STATUS_NOT_SUPPORTED, "no plan for this card");
    case KIND(DEVICEPROP):
        return finalize_device(b);
    case KIND(VARIANT_PACK):
        return count_of(b, A(VARIANT_PACK_UNIQUE_IDS)) == count_of(b, A(VARIANT_PACK_DATA_POINTERS))
                   ? CUDNN_STATUS_SUCCESS
                   : refuse(CUDNN_STATUS_BAD_PARAM, "as many pointers as names");
    case KIND(POINTWISE):
    case KIND(MATMUL):
    case KIND(REDUCTION):
    case KIND(RNG):
    case KIND(KNOB_CHOICE):
        return CUDNN_STATUS_SUCCESS;
    default:
        return graph_check_operation(b);
    }
}
