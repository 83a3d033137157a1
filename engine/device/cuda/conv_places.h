// SPDX-License-Identifier: Apache-2.0
// Which operands of an instruction are what of the convolution that it computes.
#ifndef DEVICE_CUDA_CONV_PLACES_H
#define DEVICE_CUDA_CONV_PLACES_H

#include "cuda_device.h"

// The tensors of a convolution: x is the operand [n,h,w,c] of the convolution or its gradient, weights [kh,kw,c/groups,f],
// y [n,oh,ow,f] or its own. In a transposed convolution, which is the data gradient of one, x is the large image.
typedef enum conv_operand { CONV_X, CONV_WEIGHTS, CONV_Y, CONV_BIAS, CONV_OPERANDS } conv_operand;
enum { CONV_OUTPUT = 0x80, CONV_NONE = 0xff };

// Where they stand in an instruction: index of an input, CONV_OUTPUT | index of an output, or CONV_NONE.
typedef struct conv_places {
    uint8_t place[CONV_OPERANDS];
} conv_places;

// Of the six operations that convolve.
conv_places conv_places_of(const op_query *q);
// Borrowed from q; NULL for a bias that is not there.
const op_operand *conv_operand_of(const op_query *q, conv_operand which);
CUdeviceptr conv_address_of(const cuda_run *r, conv_operand which); // 0 for a bias that is not there

#endif
