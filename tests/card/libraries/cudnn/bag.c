// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "rows.h"

static _Thread_local char last_refusal[256];

cudnnStatus_t refuse(cudnnStatus_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(last_refusal, sizeof last_refusal, format, arguments);
    va_end(arguments);
    return status;
}

const char *refusal(void)
{
    return last_refusal;
}

uint64_t bag_type_bytes(cudnnBackendAttributeType_t type)
{
    static const uint8_t bytes[] = {
        [CUDNN_TYPE_HANDLE] = sizeof(cudnnHandle_t),
        [CUDNN_TYPE_DATA_TYPE] = sizeof(cudnnDataType_t),
        [CUDNN_TYPE_BOOLEAN] = sizeof(bool),
        [CUDNN_TYPE_INT64] = sizeof(int64_t),
        [CUDNN_TYPE_FLOAT] = sizeof(float),
        [CUDNN_TYPE_DOUBLE] = sizeof(double),
        [CUDNN_TYPE_VOID_PTR] = sizeof(void *),
        [CUDNN_TYPE_CONVOLUTION_MODE] = sizeof(cudnnConvolutionMode_t),
        [CUDNN_TYPE_HEUR_MODE] = sizeof(cudnnBackendHeurMode_t),
        [CUDNN_TYPE_KNOB_TYPE] = sizeof(cudnnBackendKnobType_t),
        [CUDNN_TYPE_NUMERICAL_NOTE] = sizeof(cudnnBackendNumericalNote_t),
        [CUDNN_TYPE_POINTWISE_MODE] = sizeof(cudnnPointwiseMode_t),
        [CUDNN_TYPE_BACKEND_DESCRIPTOR] = sizeof(cudnnBackendDescriptor_t),
        [CUDNN_TYPE_REDUCTION_OPERATOR_TYPE] = sizeof(cudnnReduceTensorOp_t),
        [CUDNN_TYPE_BEHAVIOR_NOTE] = sizeof(cudnnBackendBehaviorNote_t),
        [CUDNN_TYPE_TENSOR_REORDERING_MODE] = sizeof(cudnnBackendTensorReordering_t),
        [CUDNN_TYPE_INT32] = sizeof(int32_t),
        [CUDNN_TYPE_CHAR] = sizeof(char),
        [CUDNN_TYPE_RNG_DISTRIBUTION] = sizeof(cudnnRngDistribution_t),
    };
    return (size_t)type < sizeof bytes ? bytes[type] : 0;
}

bool bag_kind_is_known(cudnnBackendDescriptorType_t kind)
{
    uint32_t count = 0;
    const bag_row *rows = bag_rows(&count);
    for (uint32_t k = 0; k < count; k++) {
        if (rows[k].kind == kind) {
            return true;
        }
    }
    return false;
}

bag *bag_create(cudnnBackendDescriptorType_t kind)
{
    bag *b = calloc(1, sizeof *b);
    if (b != NULL) {
        b->kind = kind;
        b->names = 1;
    }
    return b;
}

static void name_others(const bag_value *v, int by)
{
    for (int64_t k = 0; v->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < v->count; k++) {
        bag *other = ((bag **)v->data)[k];
        if (by > 0) {
            other->names++;
        } else {
            bag_release(other);
        }
    }
}

void bag_release(bag *b)
{
    if (b == NULL || --b->names > 0) {
        return;
    }
    for (uint32_t k = 0; k < b->count; k++) {
        name_others(&b->value[k], -1);
        free(b->value[k].data);
    }
    free(b);
}

static const bag_row *row_of(const bag *b, cudnnBackendAttributeName_t name)
{
    uint32_t count = 0;
    const bag_row *rows = bag_rows(&count);
    for (uint32_t k = 0; k < count; k++) {
        if (rows[k].kind == b->kind && rows[k].name == name) {
            return &rows[k];
        }
    }
    return NULL;
}

static bool is_operation(cudnnBackendDescriptorType_t kind)
{
    return kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR ||
           kind == CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR;
}

static cudnnStatus_t check_named(const bag_row *row, int64_t count, bag *const *others)
{
    for (int64_t k = 0; k < count; k++) {
        if (others[k] == NULL) {
            return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: descriptor %lld is NULL",
                          (int)row->name, (long long)k);
        }
        if (!others[k]->finalized) {
            return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                          "attribute %d: descriptor %lld is not finalized", (int)row->name, (long long)k);
        }
        if (row->names == BAG_ANY_OPERATION ? !is_operation(others[k]->kind)
                                            : others[k]->kind != row->names) {
            return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                          "attribute %d: descriptor %lld is of kind %d", (int)row->name, (long long)k,
                          (int)others[k]->kind);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_set(const bag *b, const bag_row *row, cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type, int64_t count, const void *data)
{
    if (b->finalized) {
        return refuse(CUDNN_STATUS_NOT_INITIALIZED, "attribute %d: the descriptor is finalized", (int)name);
    }
    if (row == NULL) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "attribute %d is none of descriptor kind %d's", (int)name,
                      (int)b->kind);
    }
    if (type != row->type && type != row->other_type) {
        return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d needs type %d, had %d", (int)name,
                      (int)row->type, (int)type);
    }
    if (count < 0 || count > row->max || (count == 0 && row->required)) {
        return refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute %d: %lld elements, at most %lld",
                      (int)name, (long long)count, (long long)row->max);
    }
    if (data == NULL && count > 0) {
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: no elements", (int)name);
    }
    return type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? check_named(row, count, data) : CUDNN_STATUS_SUCCESS;
}

static bag_value *slot_of(bag *b, cudnnBackendAttributeName_t name)
{
    for (uint32_t k = 0; k < b->count; k++) {
        if (b->value[k].name == name) {
            name_others(&b->value[k], -1);
            free(b->value[k].data);
            return &b->value[k];
        }
    }
    return b->count < BAG_VALUES ? &b->value[b->count++] : NULL;
}

cudnnStatus_t bag_set(bag *b, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      int64_t count, const void *data)
{
    const cudnnStatus_t status = check_set(b, row_of(b, name), name, type, count, data);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    const size_t bytes = (size_t)count * bag_type_bytes(type);
    void *copy = malloc(bytes + 1);
    bag_value *slot = copy == NULL ? NULL : slot_of(b, name);
    if (slot == NULL) {
        free(copy);
        return refuse(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no room for attribute %d",
                      (int)name);
    }
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    *slot = (bag_value){.name = name, .type = type, .count = count, .data = copy};
    name_others(slot, 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t bag_is_whole(const bag *b)
{
    uint32_t count = 0;
    const bag_row *rows = bag_rows(&count);
    for (uint32_t k = 0; k < count; k++) {
        if (rows[k].kind == b->kind && rows[k].required && bag_find(b, rows[k].name) == NULL) {
            return refuse(CUDNN_STATUS_BAD_PARAM, "attribute %d of descriptor kind %d is missing",
                          (int)rows[k].name, (int)b->kind);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t bag_get(const bag *b, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      int64_t capacity, int64_t *count, void *data)
{
    const bag_value *v = bag_find(b, name);
    if (v == NULL || v->type != type) {
        return refuse(v == NULL ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                      "attribute %d cannot be read as type %d", (int)name, (int)type);
    }
    if (count != NULL) {
        *count = v->count;
    }
    const int64_t wanted = capacity < v->count ? capacity : v->count;
    if (wanted > 0 && data != NULL) {
        memcpy(data, v->data, (size_t)wanted * bag_type_bytes(type));
    }
    return CUDNN_STATUS_SUCCESS;
}

const bag_value *bag_find(const bag *b, cudnnBackendAttributeName_t name)
{
    for (uint32_t k = 0; k < b->count; k++) {
        if (b->value[k].name == name) {
            return &b->value[k];
        }
    }
    return NULL;
}

int64_t bag_int(const bag *b, cudnnBackendAttributeName_t name, int64_t otherwise)
{
    const bag_value *v = bag_find(b, name);
    if (v == NULL) {
        return otherwise;
    }
    int64_t wide = 0;
    int32_t narrow = 0;
    if (v->type == CUDNN_TYPE_BOOLEAN) {
        return *(const bool *)v->data;
    }
    if (v->type == CUDNN_TYPE_INT64) {
        memcpy(&wide, v->data, sizeof wide);
        return wide;
    }
    memcpy(&narrow, v->data, sizeof narrow); // every enumeration
    return narrow;
}

double bag_real(const bag *b, cudnnBackendAttributeName_t name, double otherwise)
{
    const bag_value *v = bag_find(b, name);
    if (v == NULL) {
        return otherwise;
    }
    double wide = 0;
    float narrow = 0;
    if (v->type == CUDNN_TYPE_DOUBLE) {
        memcpy(&wide, v->data, sizeof wide);
        return wide;
    }
    memcpy(&narrow, v->data, sizeof narrow);
    return (double)narrow;
}

bag *bag_bag(const bag *b, cudnnBackendAttributeName_t name)
{
    const bag_value *v = bag_find(b, name);
    return v == NULL || v->count < 1 ? NULL : ((bag *const *)v->data)[0];
}
