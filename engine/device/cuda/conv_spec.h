// SPDX-License-Identifier: Apache-2.0
// A convolution as a graph of cuDNN. Private to conv.c.
#ifndef DEVICE_CUDA_CONV_SPEC_H
#define DEVICE_CUDA_CONV_SPEC_H

#include "graph.h"

// The tensors of a convolution: x is the operand [n,h,w,c] of the convolution or its gradient, y [n,oh,ow,f] or its own. In
// a transposed convolution, which is the data gradient of one, x is the large image.
typedef enum conv_operand { CONV_X, CONV_WEIGHTS, CONV_Y, CONV_BIAS, CONV_OPERANDS } conv_operand;
enum { CONV_OUTPUT = 0x80, CONV_NONE = 0xff };

// Where they stand in an instruction: index of an input, CONV_OUTPUT | index of an output, or CONV_NONE.
typedef struct conv_places {
    uint8_t place[CONV_OPERANDS];
} conv_places;

conv_places conv_places_of(const op_query *q);
const op_operand *conv_operand_at(const op_query *q, uint8_t place);

// Weights lie as [rows, columns]: HWIO's window times channels of a group, and filters. cuDNN wants them transposed.
void conv_weights_matrix(const op_query *q, int64_t *rows, int64_t *columns);

// Is the bias added, and the activation done, by the library? If not, they come behind it.
bool conv_fuses_bias(const op_query *q);
bool conv_fuses_act(const op_query *q);

// The graph; tensor k of it is operand k of the convolution, which may be inside: then `*result` is what is written.
void conv_spec(const op_query *q, graph_spec *spec, uint8_t *result);

#endif
