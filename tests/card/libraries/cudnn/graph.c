// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <float.h>

#define A(name)    CUDNN_ATTR_##name
#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR

// Where an operation keeps its operands; 0 ends the list (no tensor attribute is 0).
typedef struct operand_row {
    cudnnBackendDescriptorType_t kind;
    cudnnBackendAttributeName_t in[GRAPH_OPERANDS], out;
} operand_row;

static const operand_row operands[] = {
    {KIND(OPERATION_CONVOLUTION_FORWARD),
     {A(OPERATION_CONVOLUTION_FORWARD_X), A(OPERATION_CONVOLUTION_FORWARD_W)},
     A(OPERATION_CONVOLUTION_FORWARD_Y)},
    {KIND(OPERATION_CONVOLUTION_BACKWARD_DATA),
     {A(OPERATION_CONVOLUTION_BWD_DATA_DY), A(OPERATION_CONVOLUTION_BWD_DATA_W)},
     A(OPERATION_CONVOLUTION_BWD_DATA_DX)},
    {KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER),
     {A(OPERATION_CONVOLUTION_BWD_FILTER_X), A(OPERATION_CONVOLUTION_BWD_FILTER_DY)},
     A(OPERATION_CONVOLUTION_BWD_FILTER_DW)},
    {KIND(OPERATION_POINTWISE),
     {A(OPERATION_POINTWISE_XDESC), A(OPERATION_POINTWISE_BDESC), A(OPERATION_POINTWISE_TDESC)},
     A(OPERATION_POINTWISE_YDESC)},
    {KIND(OPERATION_MATMUL),
     {A(OPERATION_MATMUL_ADESC), A(OPERATION_MATMUL_BDESC)},
     A(OPERATION_MATMUL_CDESC)},
    {KIND(OPERATION_REDUCTION), {A(OPERATION_REDUCTION_XDESC)}, A(OPERATION_REDUCTION_YDESC)},
    {KIND(OPERATION_RNG), {A(OPERATION_RNG_SEED), A(OPERATION_RNG_OFFSET_DESC)}, A(OPERATION_RNG_YDESC)},
    {KIND(OPERATION_RESHAPE), {A(OPERATION_RESHAPE_XDESC)}, A(OPERATION_RESHAPE_YDESC)},
};

// Of a descriptor of the kinds above.
static const operand_row *operands_of(const bag *operation)
{
    size_t k = 0;
    while (k + 1 < sizeof operands / sizeof *operands && operands[k].kind != operation->kind) {
        k++;
    }
    return &operands[k];
}

static number number_of(int64_t type)
{
    switch (type) {
    case CUDNN_DATA_FLOAT:
        return NUMBER_F32;
    case CUDNN_DATA_HALF:
        return NUMBER_F16;
    case CUDNN_DATA_BFLOAT16:
        return NUMBER_BF16;
    case CUDNN_DATA_INT32:
        return NUMBER_I32;
    case CUDNN_DATA_INT64:
        return NUMBER_I64;
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
        return NUMBER_U8;
    default:
        return NUMBER_NONE;
    }
}

int64_t graph_elements(const graph_tensor *t)
{
    int64_t elements = 1;
    for (int32_t k = 0; k < t->rank; k++) {
        elements *= t->dim[k];
    }
    return elements;
}

int64_t graph_extent(const graph_tensor *t)
{
    int64_t last = 0;
    for (int32_t k = 0; k < t->rank; k++) {
        last += (t->dim[k] - 1) * t->stride[k];
    }
    return last + 1;
}

static void copy_ints(const bag *b, cudnnBackendAttributeName_t name, int64_t *out)
{
    const bag_value *v = bag_find(b, name);
    if (v != NULL) {
        memcpy(out, v->data, (size_t)v->count * sizeof *out);
    }
}

// Padding is zero: tensors are compared with memcmp.
static void read_tensor(const bag *b, graph_tensor *t)
{
    memset(t, 0, sizeof *t);
    t->uid = bag_int(b, A(TENSOR_UNIQUE_ID), 0);
    t->alignment = bag_int(b, A(TENSOR_BYTE_ALIGNMENT), 1);
    t->type = number_of(bag_int(b, A(TENSOR_DATA_TYPE), -1));
    t->rank = (int32_t)bag_find(b, A(TENSOR_DIMENSIONS))->count;
    t->inside = bag_int(b, A(TENSOR_IS_VIRTUAL), 0) != 0;
    t->by_value = bag_int(b, A(TENSOR_IS_BY_VALUE), 0) != 0;
    copy_ints(b, A(TENSOR_DIMENSIONS), t->dim);
    copy_ints(b, A(TENSOR_STRIDES), t->stride);
}

// ---- shapes -------------------------------------------------------------------------------------------------------

static cudnnStatus_t mismatch(const char *what, const graph_tensor *t)
{
    return refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "%s: tensor %lld does not match", what,
                  (long long)t->uid);
}

// x[N,C,…], w[K,C/groups,…], y[N,K,…]
static cudnnStatus_t check_convolution(const graph_node *n, const graph_tensor *x, const graph_tensor *w,
                                       const graph_tensor *y)
{
    if (x->rank != n->spatial + 2 || w->rank != x->rank || y->rank != x->rank) {
        return mismatch("convolution, dimensions", x);
    }
    if (y->dim[0] != x->dim[0] || y->dim[1] != w->dim[0]) {
        return mismatch("convolution, images or filters", y);
    }
    if (x->dim[1] % w->dim[1] != 0 || w->dim[0] % (x->dim[1] / w->dim[1]) != 0) {
        return mismatch("convolution, groups", w);
    }
    for (int64_t k = 0; k < n->spatial; k++) {
        const int64_t reach = n->dilation[k] * (w->dim[k + 2] - 1) + 1;
        const int64_t room = x->dim[k + 2] + n->pre[k] + n->post[k] - reach;
        if (n->stride[k] < 1 || n->dilation[k] < 1 || n->pre[k] < 0 || n->post[k] < 0 || room < 0 ||
            y->dim[k + 2] != room / n->stride[k] + 1) {
            return mismatch("convolution, image", y);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

// Every dimension of `t` is that of y, or 1.
static bool spreads(const graph_tensor *t, const graph_tensor *y)
{
    if (t->rank != y->rank) {
        return false;
    }
    for (int32_t k = 0; k < t->rank; k++) {
        if (t->dim[k] != y->dim[k] && t->dim[k] != 1) {
            return false;
        }
    }
    return true;
}

static cudnnStatus_t check_matmul(const graph_tensor *a, const graph_tensor *b, const graph_tensor *c)
{
    const int32_t rank = c->rank;
    if (rank < 3 || a->rank != rank || b->rank != rank || a->dim[rank - 1] != b->dim[rank - 2] ||
        c->dim[rank - 2] != a->dim[rank - 2] || c->dim[rank - 1] != b->dim[rank - 1]) {
        return mismatch("matmul", c);
    }
    for (int32_t k = 0; k + 2 < rank; k++) {
        if ((a->dim[k] != c->dim[k] && a->dim[k] != 1) || (b->dim[k] != c->dim[k] && b->dim[k] != 1)) {
            return mismatch("matmul, batches", c);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_shapes(const graph_node *n, const graph_tensor *const in[],
                                  const graph_tensor *out)
{
    switch ((int)n->kind) {
    case KIND(OPERATION_CONVOLUTION_FORWARD):
        return check_convolution(n, in[0], in[1], out);
    case KIND(OPERATION_CONVOLUTION_BACKWARD_DATA):
        return check_convolution(n, out, in[1], in[0]);
    case KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER):
        return check_convolution(n, in[0], out, in[1]);
    case KIND(OPERATION_MATMUL):
        return check_matmul(in[0], in[1], out);
    case KIND(OPERATION_REDUCTION):
        return spreads(out, in[0]) ? CUDNN_STATUS_SUCCESS : mismatch("reduction", out);
    case KIND(OPERATION_RNG):
        return in[0]->type == NUMBER_I64 && in[1]->type == NUMBER_I64 && graph_elements(in[0]) == 1 &&
                       graph_elements(in[1]) == 1
                   ? CUDNN_STATUS_SUCCESS
                   : mismatch("random numbers, seed or offset", in[0]);
    case KIND(OPERATION_RESHAPE):
        return graph_elements(in[0]) == graph_elements(out) ? CUDNN_STATUS_SUCCESS : mismatch("reshape", out);
    default:
        for (int32_t k = 0; k < n->in_count; k++) {
            if (!spreads(in[k], out)) {
                return mismatch("pointwise", in[k]);
            }
        }
        return CUDNN_STATUS_SUCCESS;
    }
}

// ---- nodes --------------------------------------------------------------------------------------------------------

static void read_convolution(const bag *operation, cudnnBackendAttributeName_t descriptor,
                             cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta,
                             graph_node *n)
{
    const bag *c = bag_bag(operation, descriptor);
    n->spatial = bag_int(c, A(CONVOLUTION_SPATIAL_DIMS), 0);
    n->flips = bag_int(c, A(CONVOLUTION_CONV_MODE), 0) == CUDNN_CONVOLUTION;
    copy_ints(c, A(CONVOLUTION_PRE_PADDINGS), n->pre);
    copy_ints(c, A(CONVOLUTION_POST_PADDINGS), n->post);
    copy_ints(c, A(CONVOLUTION_FILTER_STRIDES), n->stride);
    copy_ints(c, A(CONVOLUTION_DILATIONS), n->dilation);
    n->alpha[0] = (float)bag_real(operation, alpha, 1.0);
    n->beta = (float)bag_real(operation, beta, 0.0);
}

static void read_pointwise(const bag *operation, graph_node *n)
{
    const bag *p = bag_bag(operation, A(OPERATION_POINTWISE_PW_DESCRIPTOR));
    n->mode = (int32_t)bag_int(p, A(POINTWISE_MODE), 0);
    n->axis = bag_int(p, A(POINTWISE_AXIS), -1);
    n->low = (float)bag_real(p, A(POINTWISE_RELU_LOWER_CLIP), 0.0);
    n->high = (float)bag_real(p, A(POINTWISE_RELU_UPPER_CLIP), (double)FLT_MAX);
    n->slope = (float)bag_real(p, A(POINTWISE_RELU_LOWER_CLIP_SLOPE), 0.0);
    n->alpha[0] = (float)bag_real(operation, A(OPERATION_POINTWISE_ALPHA1), 1.0);
    n->alpha[1] = (float)bag_real(operation, A(OPERATION_POINTWISE_ALPHA2), 1.0);
}

static void read_attributes(const bag *operation, graph_node *n)
{
    switch ((int)operation->kind) {
    case KIND(OPERATION_CONVOLUTION_FORWARD):
        read_convolution(operation, A(OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
                         A(OPERATION_CONVOLUTION_FORWARD_ALPHA), A(OPERATION_CONVOLUTION_FORWARD_BETA), n);
        break;
    case KIND(OPERATION_CONVOLUTION_BACKWARD_DATA):
        read_convolution(operation, A(OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
                         A(OPERATION_CONVOLUTION_BWD_DATA_ALPHA), A(OPERATION_CONVOLUTION_BWD_DATA_BETA), n);
        break;
    case KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER):
        read_convolution(operation, A(OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
                         A(OPERATION_CONVOLUTION_BWD_FILTER_ALPHA), A(OPERATION_CONVOLUTION_BWD_FILTER_BETA),
                         n);
        break;
    case KIND(OPERATION_POINTWISE):
        read_pointwise(operation, n);
        break;
    case KIND(OPERATION_RNG):
        n->ones = bag_real(bag_bag(operation, A(OPERATION_RNG_DESC)), A(RNG_BERNOULLI_DIST_PROBABILITY), 0.5);
        break;
    case KIND(OPERATION_REDUCTION):
        n->mode = (int32_t)bag_int(bag_bag(operation, A(OPERATION_REDUCTION_DESC)), A(REDUCTION_OPERATOR), 0);
        break;
    default:
        break;
    }
}

// How many inputs a pointwise mode takes.
static int32_t arity_of(int32_t mode)
{
    if (mode == CUDNN_POINTWISE_BINARY_SELECT) {
        return 3;
    }
    const bool two = mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_SUB ||
                     mode == CUDNN_POINTWISE_MUL || mode == CUDNN_POINTWISE_DIV ||
                     mode == CUDNN_POINTWISE_MAX || mode == CUDNN_POINTWISE_MIN ||
                     (mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_LOGICAL_OR);
    return two ? 2 : 1;
}

cudnnStatus_t graph_check_operation(const bag *operation)
{
    const operand_row *row = operands_of(operation);
    graph_node n = {.kind = operation->kind};
    graph_tensor in[GRAPH_OPERANDS];
    const graph_tensor *inputs[GRAPH_OPERANDS] = {NULL, NULL, NULL};
    read_attributes(operation, &n);
    for (int32_t k = 0; k < GRAPH_OPERANDS && (int)row->in[k] != 0; k++) {
        const bag *t = bag_bag(operation, row->in[k]);
        if (t == NULL) {
            break;
        }
        read_tensor(t, &in[k]);
        inputs[k] = &in[k];
        n.in_count = k + 1;
    }
    if (n.kind == KIND(OPERATION_POINTWISE) && n.in_count != arity_of(n.mode)) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "pointwise mode %d takes %d inputs, had %d", (int)n.mode,
                      (int)arity_of(n.mode), (int)n.in_count);
    }
    graph_tensor out;
    read_tensor(bag_bag(operation, row->out), &out);
    return check_shapes(&n, inputs, &out);
}

// ---- graphs -------------------------------------------------------------------------------------------------------

static cudnnStatus_t add_tensor(graph_data *p, const bag *b, int32_t *index)
{
    graph_tensor t;
    read_tensor(b, &t);
    for (int32_t k = 0; k < p->tensor_count; k++) {
        if (p->tensor[k].uid == t.uid) {
            *index = k;
            return memcmp(&p->tensor[k], &t, sizeof t) == 0
                       ? CUDNN_STATUS_SUCCESS
                       : refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "two tensors are called %lld",
                                (long long)t.uid);
        }
    }
    if (p->tensor_count == GRAPH_TENSORS) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "more than %d tensors", GRAPH_TENSORS);
    }
    *index = p->tensor_count;
    p->tensor[p->tensor_count++] = t;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_node(graph_data *p, const bag *operation)
{
    const operand_row *row = operands_of(operation);
    graph_node *n = &p->node[p->node_count++];
    *n = (graph_node){.kind = operation->kind};
    read_attributes(operation, n);
    cudnnStatus_t status = add_tensor(p, bag_bag(operation, row->out), &n->out);
    for (int32_t k = 0; status == CUDNN_STATUS_SUCCESS && k < GRAPH_OPERANDS && (int)row->in[k] != 0; k++) {
        const bag *t = bag_bag(operation, row->in[k]);
        if (t == NULL) {
            break;
        }
        status = add_tensor(p, t, &n->in[n->in_count++]);
    }
    return status;
}

static int32_t writer_of(const graph_data *p, int32_t tensor, int32_t *writers)
{
    int32_t writer = -1;
    *writers = 0;
    for (int32_t k = 0; k < p->node_count; k++) {
        if (p->node[k].out == tensor) {
            writer = k;
            (*writers)++;
        }
    }
    return writer;
}

static bool is_ready(const graph_data *p, const graph_node *n, const bool *done)
{
    for (int32_t k = 0; k < n->in_count; k++) {
        int32_t writers = 0;
        const int32_t writer = writer_of(p, n->in[k], &writers);
        if (writer >= 0 && !done[writer]) {
            return false;
        }
    }
    return true;
}

// Puts the nodes into an order in which they can run.
static cudnnStatus_t sort_nodes(graph_data *p)
{
    bool done[GRAPH_NODES] = {false};
    graph_node sorted[GRAPH_NODES];
    for (int32_t placed = 0; placed < p->node_count; placed++) {
        int32_t next = 0;
        while (next < p->node_count && (done[next] || !is_ready(p, &p->node[next], done))) {
            next++;
        }
        if (next == p->node_count) {
            return refuse(CUDNN_STATUS_BAD_PARAM, "the operations wait for each other");
        }
        done[next] = true;
        sorted[placed] = p->node[next];
    }
    memcpy(p->node, sorted, (size_t)p->node_count * sizeof *sorted);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_writers(const graph_data *p)
{
    for (int32_t k = 0; k < p->tensor_count; k++) {
        int32_t writers = 0;
        (void)writer_of(p, k, &writers);
        if (writers > 1 || (p->tensor[k].inside && writers == 0)) {
            return refuse(CUDNN_STATUS_BAD_PARAM, "tensor %lld is written by %d operations",
                          (long long)p->tensor[k].uid, (int)writers);
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t graph_read(const bag *graph, graph_data *out)
{
    const bag_value *ops = bag_find(graph, A(OPERATIONGRAPH_OPS));
    memset(out, 0, sizeof *out);
    if (ops->count > GRAPH_NODES) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "more than %d operations", GRAPH_NODES);
    }
    for (int64_t k = 0; k < ops->count; k++) {
        const cudnnStatus_t status = add_node(out, ((bag *const *)ops->data)[k]);
        if (status != CUDNN_STATUS_SUCCESS) {
            return status;
        }
    }
    const cudnnStatus_t status = check_writers(out);
    return status == CUDNN_STATUS_SUCCESS ? sort_nodes(out) : status;
}
