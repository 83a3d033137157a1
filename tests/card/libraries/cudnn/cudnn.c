// SPDX-License-Identifier: Apache-2.0
// The emulated libcudnn.so.9 of the tests: the backend interface as far as convolutions, matrix products, pointwise
// operations and reductions go. Planning needs no card; a handle and execution do.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver_calls.h"
#include "graph.h"

#define EXPORT     __attribute__((visibility("default")))
#define A(name)    CUDNN_ATTR_##name
#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR

enum { UPPER_BOUND_EXTRA = 3 }; // a first count is no promise

struct cudnnContext {
    CUstream stream;
};

int handles;
static atomic_int users;
static atomic_bool shared;

bool handle_take(void)
{
    if (atomic_fetch_add(&users, 1) > 0) {
        atomic_store(&shared, true);
    }
    if (getenv("CARD_SLOW_HANDLE") != NULL) {
        (void)usleep(300);
    }
    return !atomic_load(&shared);
}

void handle_leave(void)
{
    (void)atomic_fetch_sub(&users, 1);
}

EXPORT size_t cudnnGetVersion(void)
{
    const char *other = getenv("CARD_CUDNN");
    return other == NULL ? CUDNN_VERSION : (size_t)strtoull(other, NULL, 10);
}

EXPORT size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

EXPORT const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (CUDNN_STATUS_CATEGORY((int)status)) {
    case 0:
        return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_UNKNOWN";
    case 1000:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2000:
        return "CUDNN_STATUS_BAD_PARAM";
    case 3000:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4000:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    default:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
}

EXPORT void cudnnGetLastErrorString(char *message, size_t max_size)
{
    (void)snprintf(message, max_size, "%s", refusal());
}

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    if (handle == NULL || driver_calls_get() == NULL) {
        return refuse(CUDNN_STATUS_NOT_INITIALIZED, "there is no card");
    }
    *handle = calloc(1, sizeof **handle);
    handles += *handle != NULL;
    return *handle != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    handles -= handle != NULL;
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (handle == NULL) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle");
    }
    handle->stream = (CUstream)stream;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    *stream = (cudaStream_t)handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

// ---- descriptors --------------------------------------------------------------------------------------------------

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                                  cudnnBackendDescriptor_t *descriptor)
{
    if (!bag_kind_is_known(kind)) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "descriptors of kind %d are not emulated", (int)kind);
    }
    *descriptor = bag_create(kind);
    return *descriptor != NULL ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    bag_release(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *data)
{
    return descriptor == NULL ? refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor")
                              : bag_set(descriptor, name, type, count, data);
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    bag *b = descriptor;
    const int fault = driver_calls_fault("cudnnBackendFinalize");
    if (fault != 0) {
        return refuse((cudnnStatus_t)fault, "what a test wants");
    }
    if (b == NULL || b->finalized) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "no descriptor that is to be finalized");
    }
    TRY(finalize_check(b));
    b->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

// ---- what is asked of finalized ones --------------------------------------------------------------------------------

static cudnnStatus_t fill_config(const bag *heuristics, engine_choice choice, bag *config)
{
    bag *engine = bag_create(KIND(ENGINE)), *knob = bag_create(KIND(KNOB_CHOICE));
    const int64_t index = choice.engine, tile = choice.tile;
    const int32_t type = CUDNN_KNOB_TYPE_TILE_SIZE;
    bag *graph = bag_bag(heuristics, A(ENGINEHEUR_OPERATION_GRAPH));
    const bag_value *device = bag_find(heuristics, A(ENGINEHEUR_DEVICEPROP));
    cudnnStatus_t status =
        engine == NULL || knob == NULL || config->kind != KIND(ENGINECFG) || config->finalized
            ? refuse(CUDNN_STATUS_BAD_PARAM, "results need engine configurations that are not finalized")
            : CUDNN_STATUS_SUCCESS;
    if (status == CUDNN_STATUS_SUCCESS) {
        (void)bag_set(engine, A(ENGINE_OPERATION_GRAPH), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
        (void)bag_set(engine, A(ENGINE_GLOBAL_INDEX), CUDNN_TYPE_INT64, 1, &index);
        if (device != NULL) {
            (void)bag_set(engine, A(ENGINE_DEVICEPROP), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, device->data);
        }
        (void)bag_set(knob, A(KNOB_CHOICE_KNOB_TYPE), CUDNN_TYPE_KNOB_TYPE, 1, &type);
        (void)bag_set(knob, A(KNOB_CHOICE_KNOB_VALUE), CUDNN_TYPE_INT64, 1, &tile);
        engine->finalized = knob->finalized = true;
        (void)bag_set(config, A(ENGINECFG_ENGINE), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
        (void)bag_set(config, A(ENGINECFG_KNOB_CHOICES), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &knob);
        config->finalized = true;
    }
    bag_release(engine);
    bag_release(knob);
    return status;
}

static cudnnStatus_t get_results(const bag *b, int64_t capacity, int64_t *count, void *data)
{
    graph_data p;
    engine_choice choice[ENGINE_CHOICES_MAX];
    int32_t found = 0;
    TRY(graph_data_of(b, &p));
    TRY(engines_choose(&p, (cudnnBackendHeurMode_t)bag_int(b, A(ENGINEHEUR_MODE), 0), names_card(b), choice,
                       &found));
    if (capacity == 0 || data == NULL) {
        *count = found + UPPER_BOUND_EXTRA;
        return CUDNN_STATUS_SUCCESS;
    }
    *count = capacity < found ? capacity : found;
    for (int64_t k = 0; k < *count; k++) {
        TRY(fill_config(b, choice[k], ((bag **)data)[k]));
    }
    return CUDNN_STATUS_SUCCESS;
}

// Descriptors are read into descriptors that the caller has made.
static cudnnStatus_t get_bags(const bag *b, cudnnBackendAttributeName_t name, int64_t capacity,
                              int64_t *count, void *data)
{
    const bag_value *v = bag_find(b, name);
    if (v == NULL) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d is not there", (int)name);
    }
    *count = v->count;
    for (int64_t k = 0; data != NULL && k < v->count && k < capacity; k++) {
        const bag *from = ((bag *const *)v->data)[k];
        bag *to = ((bag **)data)[k];
        if (to == NULL || to->kind != from->kind || to->finalized) {
            return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "attribute %d: no descriptor to read into",
                          (int)name);
        }
        for (uint32_t i = 0; i < from->count; i++) {
            const bag_value *copied = &from->value[i];
            TRY(bag_set(to, copied->name, copied->type, copied->count, copied->data));
        }
        to->finalized = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give(const void *values, int64_t found, size_t bytes, int64_t capacity, int64_t *count,
                          void *data)
{
    *count = found;
    if (data != NULL && capacity > 0) {
        memcpy(data, values, (size_t)(capacity < found ? capacity : found) * bytes);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_workspace(const bag *b, int64_t capacity, int64_t *count, void *data)
{
    graph_data p;
    TRY(graph_data_of(b, &p));
    const int64_t bytes = (int64_t)workspace_of(b, &p);
    return give(&bytes, 1, sizeof bytes, capacity, count, data);
}

static cudnnStatus_t get_notes(const bag *b, bool numerical, int64_t capacity, int64_t *count, void *data)
{
    graph_data p;
    cudnnBackendNumericalNote_t numbers[4];
    cudnnBackendBehaviorNote_t behavior[4];
    const int64_t engine = bag_int(b, A(ENGINE_GLOBAL_INDEX), 0);
    TRY(graph_data_of(b, &p));
    return numerical ? give(numbers, engine_numerical_notes(&p, engine, numbers), sizeof *numbers, capacity,
                            count, data)
                     : give(behavior, engine_behavior_notes(engine, behavior), sizeof *behavior, capacity,
                            count, data);
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t capacity,
                                              int64_t *count, void *data)
{
    const bag *b = descriptor;
    int64_t ignored = 0;
    count = count == NULL ? &ignored : count;
    if (b == NULL || !b->finalized) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute %d is asked of what is not finalized",
                      (int)name);
    }
    switch ((int)name) {
    case A(ENGINEHEUR_RESULTS):
        return get_results(b, capacity, count, data);
    case A(ENGINECFG_WORKSPACE_SIZE):
    case A(EXECUTION_PLAN_WORKSPACE_SIZE):
        return type == CUDNN_TYPE_INT64 ? get_workspace(b, capacity, count, data)
                                        : refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "bytes are int64");
    case A(ENGINE_NUMERICAL_NOTE):
        return get_notes(b, true, capacity, count, data);
    case A(ENGINE_BEHAVIOR_NOTE):
        return get_notes(b, false, capacity, count, data);
    default:
        return type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? get_bags(b, name, capacity, count, data)
                                                     : bag_get(b, name, type, capacity, count, data);
    }
}

// ---- execution ------------------------------------------------------------------------------------------------------

static cudnnStatus_t bind_tensor(const bag *pack, const graph_tensor *t, graph_call *call, int32_t k)
{
    const bag_value *ids = bag_find(pack, A(VARIANT_PACK_UNIQUE_IDS));
    void *const *pointers = bag_find(pack, A(VARIANT_PACK_DATA_POINTERS))->data;
    for (int64_t i = 0; i < ids->count; i++) {
        if (((const int64_t *)ids->data)[i] == t->uid) {
            call->data[k] = pointers[i];
        }
    }
    if (call->data[k] == NULL) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "tensor %lld is not in the variant pack",
                      (long long)t->uid);
    }
    if (t->by_value) {
        call->value[k] = (float)number_read(t->type, call->data[k], 0);
        return CUDNN_STATUS_SUCCESS;
    }
    if ((uintptr_t)call->data[k] % (uintptr_t)t->alignment != 0) {
        return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "tensor %lld", (long long)t->uid);
    }
    const uint64_t bytes = (uint64_t)graph_extent(t) * number_bytes(t->type);
    return driver_calls_get()->holds((CUdeviceptr)(uintptr_t)call->data[k], bytes)
               ? CUDNN_STATUS_SUCCESS
               : refuse(CUDNN_STATUS_EXECUTION_FAILED, "tensor %lld does not lie on the card",
                        (long long)t->uid);
}

static cudnnStatus_t bind_all(const bag *plan, const bag *pack, graph_call *call)
{
    call->choice = engine_choice_of(bag_bag(plan, A(EXECUTION_PLAN_ENGINE_CONFIG)));
    call->workspace_bytes = workspace_of(plan, &call->graph);
    for (int32_t k = 0; k < call->graph.tensor_count; k++) {
        if (!call->graph.tensor[k].inside) {
            TRY(bind_tensor(pack, &call->graph.tensor[k], call, k));
        }
    }
    const bag_value *workspace = bag_find(pack, A(VARIANT_PACK_WORKSPACE));
    if (call->workspace_bytes == 0) {
        return CUDNN_STATUS_SUCCESS;
    }
    call->workspace = workspace == NULL || workspace->count < 1 ? NULL : *(void *const *)workspace->data;
    return call->workspace != NULL &&
                   driver_calls_get()->holds((CUdeviceptr)(uintptr_t)call->workspace, call->workspace_bytes)
               ? CUDNN_STATUS_SUCCESS
               : refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace of %llu bytes on the card",
                        (unsigned long long)call->workspace_bytes);
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t execution_plan,
                                         cudnnBackendDescriptor_t variant_pack)
{
    const bag *plan = execution_plan, *pack = variant_pack;
    const int fault = driver_calls_fault("cudnnBackendExecute");
    if (fault != 0) {
        return refuse((cudnnStatus_t)fault, "what a test wants");
    }
    if (handle == NULL || plan == NULL || pack == NULL || !plan->finalized || !pack->finalized) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                      "execution needs a handle, a plan and a variant pack");
    }
    graph_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    cudnnStatus_t status = handle_take() ? graph_data_of(plan, &call->graph)
                                         : refuse(CUDNN_STATUS_EXECUTION_FAILED, "two threads used a handle");
    handle_leave();
    if (status == CUDNN_STATUS_SUCCESS) {
        status = bind_all(plan, pack, call);
    }
    if (status == CUDNN_STATUS_SUCCESS &&
        driver_calls_get()->enqueue(handle->stream, graph_run, call, sizeof *call) != CUDA_SUCCESS) {
        status = refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, "the driver took no work");
    }
    free(call);
    return status;
}
