// SPDX-License-Identifier: Apache-2.0
// Operations as matrix products: which of their operands are multiplied, and how they lie.
#ifndef DEVICE_CUDA_PRODUCTS_SHAPE_H
#define DEVICE_CUDA_PRODUCTS_SHAPE_H

#include "product.h"

// y is output 0.
typedef struct product_use {
    product_shape shape;
    uint8_t a, b;  // inputs
    int8_t vector; // bias: this input; sums: this output; -1: neither
    int8_t added;  // this input is c; -1: nothing is added
    int8_t aux;    // of GELU: written, this output; read, this input; -1: neither
    bool six;      // RELU6, which is not the library's
} product_use;

// Of the operations that are products.
product_use product_use_of(const op_query *q);
// A convolution whose images are matrices as they lie: 1x1, stride 1, no padding, one group.
bool product_is_pointwise(const op_query *q);

// The row of dense layers, for who makes their weights in the workspace: `run` reads in, out, workspace and state alone.
const cuda_impl *product_dense_row(void);

#endif
