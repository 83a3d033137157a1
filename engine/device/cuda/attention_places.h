// SPDX-License-Identifier: Apache-2.0
// Where the operands of streaming attention lie: three sequences, or one with all three side by side (ops/attention.h).
#ifndef DEVICE_CUDA_ATTENTION_PLACES_H
#define DEVICE_CUDA_ATTENTION_PLACES_H

#include "cuda_device.h"
#include "ops/attention.h"

typedef struct attention_places {
    CUdeviceptr q, k, v;
    CUdeviceptr y, dy, lse, dq, dk, dv; // of the gradient
} attention_places;

attention_places attention_places_of(const op_query *q, const CUdeviceptr *in, const CUdeviceptr *out);

#endif
