// SPDX-License-Identifier: Apache-2.0
// How the operands of streaming attention lie. Queries, keys and values are three sequences, or lie side by side in the
// rows of one, [N,L,3D], as one product of three dense layers writes them; their gradients lie as they do.
#ifndef OPS_ATTENTION_H
#define OPS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/op.h"

typedef struct op_attention {
    bool joined; // q, k and v are input 0, dq, dk and dv are output 0
    int64_t samples, heads, queries, keys;
    int64_t features;   // of a head
    int64_t width;      // from row to row of y and dy: all heads
    int64_t row;        // from row to row of q, k, v and their gradients
    uint8_t y, dy, lse; // inputs of the gradient
} op_attention;

// What products of queries and keys of `features` are multiplied by: attr.scale, 1/sqrt(features) where it is 0.
double op_attention_scale(const op_attr *attr, int64_t features);

// Of ATTENTION and ATTENTION_BWD.
op_attention op_attention_of(const op_query *q);

#endif
