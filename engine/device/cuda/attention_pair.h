// SPDX-License-Identifier: Apache-2.0
// Attention that drops weights: backward draws the mask of forward once more. cuDNN draws masks of its own, our kernels those
// of ops/dropout.h: one of the two computes both passes, or gradients are of another mask than the loss.
#ifndef DEVICE_CUDA_ATTENTION_PAIR_H
#define DEVICE_CUDA_ATTENTION_PAIR_H

#include "cuda_device.h"
#include "ops/attention.h"

// Is it a pass of such attention?
bool attention_drops(const op_query *q);
// The gradient of forward, or the forward of which `q` is the gradient.
op_query attention_other_pass(const op_query *q);

#endif
