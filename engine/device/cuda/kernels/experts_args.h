// SPDX-License-Identifier: Apache-2.0
// What the kernels of experts.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_EXPERTS_ARGS_H
#define KERNELS_EXPERTS_ARGS_H

#include "divisor.h"

enum { EXPERTS_THREADS = 256, EXPERTS_MOST = 1024, EXPERTS_CHOICES = 16, EXPERTS_TILE = 256 };

// Choices and their balance.
typedef struct route_args {
    const float *logits; // [tokens, experts]
    const float *dgates; // [tokens, chosen]
    const float *scale;  // the loss scale; NULL for 1
    float *gates, *dlogits, *loss;
    int32_t *slots;
    double *partial;                 // one of every sample
    int64_t samples, length, tokens; // length: tokens of a sample
    int32_t experts, chosen, capacity, shares;
    double factor; // makes a mean of the sums
    float share;   // of a choice in the gradient
    uint32_t unused;
} route_args;

// The ways between tokens and slots.
typedef struct way_args {
    const void *from, *dz;
    const float *gates; // NULL: all are 1
    const int32_t *slots;
    void *to;
    float *dgates;
    int64_t count;          // of what threads, or warps, take: units of rows, vectors of tokens, choices
    int64_t features;       // units, or elements, of a row
    divisor row;            // units, or vectors, of a row
    divisor chosen, length; // of a token, of a sample
    int64_t room;           // rows of a sample's slots
} way_args;

#endif
