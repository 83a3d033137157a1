// SPDX-License-Identifier: Apache-2.0
#include "conv_spec.h"

#include <cudnn_graph.h>
#include <string.h>

enum { SPATIAL = 2, RANK = 4 };

void conv_weights_matrix(const op_query *q, int64_t *rows, int64_t *columns)
{
    const int64_t *dim = conv_operand_of(q, CONV_WEIGHTS)->shape.dim;
    *rows = dim[0] * dim[1] * dim[2];
    *columns = dim[3];
}

static graph_kind kind_of(const op_query *q)
{
    switch (q->op) {
    case HR_OP_CONV2D:
    case HR_OP_CONV2D_TRANSPOSE_BWD_DATA:
        return GRAPH_CONV;
    case HR_OP_CONV2D_BWD_DATA:
    case HR_OP_CONV2D_TRANSPOSE:
        return GRAPH_CONV_BWD_DATA;
    default:
        return GRAPH_CONV_BWD_WEIGHTS;
    }
}

// The ready-made patterns are convolution, convolution + bias, and convolution + bias + ReLU without a ceiling; a
// ReLU without a bias, a ceiling, and anything behind a data gradient would have to be compiled.
bool conv_fuses_bias(const op_query *q)
{
    return q->op == HR_OP_CONV2D && q->in_count > 2;
}

bool conv_fuses_act(const op_query *q)
{
    return conv_fuses_bias(q) && q->attr.act == HR_ACT_RELU;
}

// ---- tensors --------------------------------------------------------------------------------------------------

// NHWC, as cuDNN's logical N, C, H, W.
static graph_tensor image(const op_operand *t)
{
    const int64_t *dim = t->shape.dim;
    const int64_t n = dim[0], h = dim[1], w = dim[2], c = dim[3];
    return (graph_tensor){
        .dtype = t->dtype, .rank = RANK, .dim = {n, c, h, w}, .stride = {h * w * c, 1, w * c, c}};
}

// HWIO that was transposed to OHWI, as cuDNN's logical K, C, R, S. Its ready-made engines take other strides too, HWIO's
// among them, with the same kernels and knobs, and cannot be right for both; its compiled ones refuse them.
static graph_tensor weights(const op_operand *t)
{
    const int64_t *dim = t->shape.dim;
    const int64_t r = dim[0], s = dim[1], c = dim[2], k = dim[3];
    return (graph_tensor){
        .dtype = t->dtype, .rank = RANK, .dim = {k, c, r, s}, .stride = {r * s * c, 1, s * c, c}};
}

static graph_tensor bias(const op_operand *t)
{
    const int64_t k = t->shape.dim[0];
    return (graph_tensor){.dtype = t->dtype, .rank = RANK, .dim = {1, k, 1, 1}, .stride = {k, 1, k, k}};
}

// ---- nodes ----------------------------------------------------------------------------------------------------

static graph_node convolution(const op_query *q)
{
    const op_attr *a = &q->attr;
    const graph_kind kind = kind_of(q);
    graph_node n = {.kind = kind,
                    .in_count = 2,
                    .in = {CONV_X, CONV_WEIGHTS},
                    .out = CONV_Y,
                    .spatial = SPATIAL,
                    .pad_before = {a->pad_top, a->pad_left},
                    .pad_after = {a->pad_bottom, a->pad_right},
                    .stride = {a->stride_h, a->stride_w},
                    .dilation = {(int64_t)a->gap_h + 1, (int64_t)a->gap_w + 1}};
    if (kind == GRAPH_CONV_BWD_DATA) {
        n.in[0] = CONV_Y;
        n.out = CONV_X;
    } else if (kind == GRAPH_CONV_BWD_WEIGHTS) {
        n.in[1] = CONV_Y;
        n.out = CONV_WEIGHTS;
    }
    return n;
}

// What was the last result is float32 and in no memory; a node reads it and writes a tensor like it.
static void append(graph_spec *spec, graph_node n, uint8_t *result)
{
    graph_tensor *last = &spec->tensor[*result], *next = &spec->tensor[spec->tensor_count];
    *next = *last;
    last->dtype = HR_F32;
    last->inside = true;
    n.in[0] = *result;
    n.out = (uint8_t)spec->tensor_count;
    *result = n.out;
    spec->tensor_count++;
    spec->node[spec->node_count++] = n;
}

void conv_spec(const op_query *q, graph_spec *spec, uint8_t *result)
{
    memset(spec, 0, sizeof *spec);
    spec->tensor[CONV_X] = image(conv_operand_of(q, CONV_X));
    spec->tensor[CONV_WEIGHTS] = weights(conv_operand_of(q, CONV_WEIGHTS));
    spec->tensor[CONV_Y] = image(conv_operand_of(q, CONV_Y));
    spec->tensor_count = CONV_BIAS;
    spec->node[0] = convolution(q);
    spec->node_count = 1;
    *result = spec->node[0].out;
    if (conv_fuses_bias(q)) {
        spec->tensor[CONV_BIAS] = bias(conv_operand_of(q, CONV_BIAS));
        spec->tensor_count = CONV_OPERANDS;
        append(spec,
               (graph_node){
                   .kind = GRAPH_POINTWISE, .mode = CUDNN_POINTWISE_ADD, .in_count = 2, .in = {0, CONV_BIAS}},
               result);
    }
    if (conv_fuses_act(q)) {
        append(spec, (graph_node){.kind = GRAPH_POINTWISE, .mode = CUDNN_POINTWISE_RELU_FWD, .in_count = 1},
               result);
    }
}
