// SPDX-License-Identifier: Apache-2.0
// A graph as cuDNN's descriptors.
#include <string.h>

#include "graph_impl.h"

// Every address that a tensor may have is a multiple of 256; cuDNN's engines ask for 16 at most.
enum { ALIGNMENT = 16 };

static const cudnnDataType_t float32 = CUDNN_DATA_FLOAT;

static cudnnDataType_t data_type(uint32_t dtype)
{
    static const cudnnDataType_t types[] = {
        [HR_F32] = CUDNN_DATA_FLOAT,     [HR_F64] = CUDNN_DATA_DOUBLE,  [HR_F16] = CUDNN_DATA_HALF,
        [HR_BF16] = CUDNN_DATA_BFLOAT16, [HR_I32] = CUDNN_DATA_INT32,   [HR_U8] = CUDNN_DATA_BOOLEAN,
        [HR_I8] = CUDNN_DATA_INT8,       [GRAPH_I64] = CUDNN_DATA_INT64};
    return types[dtype];
}

static hr_status keep(graph_parts *parts, cudnn_maker *m, const char *what, cudnnBackendDescriptor_t *out,
                      hr_err *err)
{
    HR_TRY(cudnn_finish(m, what, out, err));
    parts->part[parts->count++] = *out;
    return HR_OK;
}

static void set_number(cudnn_maker *m, cudnnBackendAttributeName_t name, int64_t value)
{
    cudnn_set(m, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_part(cudnn_maker *m, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part)
{
    cudnn_set(m, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

// ---- tensors --------------------------------------------------------------------------------------------------

static hr_status build_tensor(const graph_tensor *t, int64_t id, graph_parts *parts, hr_err *err)
{
    const cudnnDataType_t type = data_type(t->dtype);
    cudnnBackendDescriptor_t made = NULL;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_number(&m, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    cudnn_set(&m, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_set(&m, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, t->dim);
    cudnn_set(&m, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, t->stride);
    set_number(&m, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    cudnn_set(&m, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t->inside);
    if (t->by_value) {
        cudnn_set(&m, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &t->by_value);
    }
    return keep(parts, &m, "a tensor of a cuDNN graph", &made, err);
}

// ---- what nodes compute ---------------------------------------------------------------------------------------

static cudnn_maker convolution_of(const graph_node *n)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t spatial = n->spatial;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &float32);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, n->pad_before);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, n->pad_after);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, n->stride);
    cudnn_set(&m, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, n->dilation);
    return m;
}

// What a comparison computes is a truth value (cudnn-frontend describes it so).
static bool compares(cudnnPointwiseMode_t mode)
{
    return mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE;
}

static cudnn_maker pointwise_of(const graph_node *n)
{
    const cudnnPointwiseMode_t mode =
        n->kind == GRAPH_INDEX ? CUDNN_POINTWISE_GEN_INDEX : (cudnnPointwiseMode_t)n->mode;
    const cudnnDataType_t precision = compares(mode) ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    cudnn_set(&m, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    if (n->kind == GRAPH_INDEX) {
        set_number(&m, CUDNN_ATTR_POINTWISE_AXIS, n->axis);
    } else if (n->clip_high > 0) {
        const double low = (double)n->clip_low, high = (double)n->clip_high;
        cudnn_set(&m, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 1, &low);
        cudnn_set(&m, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &high);
    }
    return m;
}

static cudnn_maker matmul_of(const graph_node *n)
{
    (void)n;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &float32);
    return m;
}

static cudnn_maker reduction_of(const graph_node *n)
{
    const cudnnReduceTensorOp_t mode = (cudnnReduceTensorOp_t)n->mode;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    cudnn_set(&m, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &float32);
    return m;
}

static cudnn_maker random_of(const graph_node *n)
{
    const cudnnRngDistribution_t distribution = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
    const double ones = (double)n->ones;
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_RNG_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1, &distribution);
    cudnn_set(&m, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 1, &ones);
    return m;
}

// ---- nodes ----------------------------------------------------------------------------------------------------

typedef struct node_row {
    cudnnBackendDescriptorType_t operation;
    cudnn_maker (*details)(const graph_node *n);                       // NULL: the operation says it all
    cudnnBackendAttributeName_t details_name, in[3], out, alpha, beta; // alpha 0: none
    uint8_t in_min, in_max;
} node_row;

#define CONVOLUTION(kind, prefix, first, second, result)                                                     \
    {                                                                                                        \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, convolution_of,                             \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC,                                           \
            {CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##first,                                            \
             CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##second},                                          \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##result,                                            \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_ALPHA,                                               \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_BETA, 2, 2                                           \
    }
#define POINTWISE                                                                                            \
    CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, pointwise_of,                                              \
        CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,                                                        \
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,                         \
         CUDNN_ATTR_OPERATION_POINTWISE_TDESC},                                                              \
        CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0, 0

static const node_row nodes[GRAPH_KIND_COUNT] = {
    [GRAPH_CONV] = CONVOLUTION(FORWARD, FORWARD, X, W, Y),
    [GRAPH_CONV_BWD_DATA] = CONVOLUTION(BACKWARD_DATA, BWD_DATA, DY, W, DX),
    [GRAPH_CONV_BWD_WEIGHTS] = CONVOLUTION(BACKWARD_FILTER, BWD_FILTER, X, DY, DW),
    [GRAPH_MATMUL] = {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                      matmul_of,
                      CUDNN_ATTR_OPERATION_MATMUL_DESC,
                      {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                      CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                      0,
                      0,
                      2,
                      2},
    [GRAPH_POINTWISE] = {POINTWISE, 1, 3},
    [GRAPH_REDUCE] = {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                      reduction_of,
                      CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                      {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
                      CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                      0,
                      0,
                      1,
                      1},
    [GRAPH_INDEX] = {POINTWISE, 1, 1},
    [GRAPH_TRANSPOSE] = {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                         NULL,
                         0,
                         {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
                         CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
                         0,
                         0,
                         1,
                         1},
    [GRAPH_RANDOM] = {CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                      random_of,
                      CUDNN_ATTR_OPERATION_RNG_DESC,
                      {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC},
                      CUDNN_ATTR_OPERATION_RNG_YDESC,
                      0,
                      0,
                      2,
                      2},
};

static hr_status build_node(const graph_node *n, const cudnnBackendDescriptor_t *tensors, graph_parts *parts,
                            cudnnBackendDescriptor_t *operation, hr_err *err)
{
    static const float one = 1.0f, zero = 0.0f;
    const node_row *row = &nodes[n->kind];
    cudnnBackendDescriptor_t details = NULL;
    if (row->details != NULL) {
        cudnn_maker m = row->details(n);
        HR_TRY(keep(parts, &m, "an operation of a cuDNN graph", &details, err));
    }
    cudnn_maker m = cudnn_make(row->operation);
    if (details != NULL) {
        set_part(&m, row->details_name, details);
    }
    for (uint8_t k = 0; k < n->in_count; k++) {
        set_part(&m, row->in[k], tensors[n->in[k]]);
    }
    set_part(&m, row->out, tensors[n->out]);
    if (row->alpha != 0) {
        cudnn_set(&m, row->alpha, CUDNN_TYPE_FLOAT, 1, &one);
        cudnn_set(&m, row->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    }
    return keep(parts, &m, "an operation of a cuDNN graph", operation, err);
}

// ---- the graph ------------------------------------------------------------------------------------------------

static hr_status check_spec(const graph_spec *spec, hr_err *err)
{
    bool good = spec->tensor_count <= GRAPH_TENSORS_MAX && spec->node_count >= 1 &&
                spec->node_count <= GRAPH_NODES_MAX;
    for (uint32_t k = 0; good && k < spec->node_count; k++) {
        const graph_node *n = &spec->node[k];
        good = n->kind < GRAPH_KIND_COUNT && n->in_count >= nodes[n->kind].in_min &&
               n->in_count <= nodes[n->kind].in_max && n->out < spec->tensor_count;
        for (uint8_t i = 0; good && i < n->in_count; i++) {
            good = n->in[i] < spec->tensor_count;
        }
    }
    return good ? HR_OK
                : HR_FAIL(err, CHECK, "a cuDNN graph names tensors or operations that it does not have");
}

static hr_status build_all(const graph_spec *spec, graph_parts *parts, hr_err *err)
{
    cudnnBackendDescriptor_t operations[GRAPH_NODES_MAX], made = NULL;
    for (uint32_t k = 0; k < spec->tensor_count; k++) {
        HR_TRY(build_tensor(&spec->tensor[k], (int64_t)k + 1, parts, err));
    }
    for (uint32_t k = 0; k < spec->node_count; k++) {
        HR_TRY(build_node(&spec->node[k], parts->part, parts, &operations[k], err));
    }
    cudnn_maker m = cudnn_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnn_set(&m, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, spec->node_count, operations);
    return keep(parts, &m, "a cuDNN graph", &made, err);
}

hr_status graph_build(const graph_spec *spec, graph_parts *parts, hr_err *err)
{
    parts->count = 0;
    HR_TRY(check_spec(spec, err));
    const hr_status status = build_all(spec, parts, err);
    if (status != HR_OK) {
        graph_parts_destroy(parts);
    }
    return status;
}

void graph_parts_destroy(graph_parts *parts)
{
    while (parts->count > 0) {
        cudnn_destroy(parts->part[--parts->count]);
    }
}

cudnnBackendDescriptor_t graph_of_parts(const graph_parts *parts)
{
    return parts->part[parts->count - 1];
}
