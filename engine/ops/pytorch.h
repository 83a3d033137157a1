// SPDX-License-Identifier: Apache-2.0
// PyTorch's column (execution.as=pytorch): what autograd keeps of an operation until its gradient has been taken.
//
// The rows follow PyTorch 2.15: tools/autograd/derivatives.yaml says what a backward formula names (that is what is saved),
// aten/src/ATen/native what an operation makes. tests/bench/results/pytorch_steps has its requests, recorded.
#ifndef OPS_PYTORCH_H
#define OPS_PYTORCH_H

#include "ops/framework.h"

// Of a forward operation. NULL: nothing is known of it.
const framework_rule *pytorch_rule_of(hr_op op);

// Does it, forward or backward, come to a product of cuBLAS?
bool pytorch_multiplies(hr_op op);
// How a training script sets up its convolutions: model.to(memory_format=torch.channels_last), and
// torch.backends.cudnn.allow_tf32.
typedef struct pytorch_images {
    bool channels_last, tf32;
} pytorch_images;

bool pytorch_convolves(hr_op op); // forward or backward
// Of what convolves: does cuDNN compute it? One by channel of float32 is a kernel of PyTorch's own, which needs no workspace,
// unless images are channels_last (ATen/native/Convolution.cpp, use_cudnn_depthwise).
// Nor does it compute bfloat16 below compute capability 8 (use_cudnn, supportsBFloat16ConvolutionWithCuDNNv8): a kernel of PyTorch's own
// then lays the windows of one sample out as columns (cuda/ConvolutionMM2d.cu), which is not counted here.
bool pytorch_asks_cudnn(const op_query *q, const pytorch_images *images, uint32_t compute_major);
// What ATen/cuda/CublasHandlePool.cpp gives each handle of cuBLAS to work in, by default (CUBLAS_WORKSPACE_CONFIG), on a card of
// that compute capability; and what it gives cuBLASLt, which adds the bias of a product. 32 MiB: 9 in every version since 2.0, 10 and
// 12 since 2.12, 11 later in 2026 (pytorch/pytorch pulls 91564, 175344, 189312); the newest decides.
uint64_t pytorch_cublas_bytes(uint32_t compute_major);

// What the sum over the rows of a matrix, a bias's gradient, takes beside its result (ATen/native/cuda/Reduce.cuh): where blocks of
// threads share a column, what each of them has found, and a counter for each column of blocks. Of the matrix' type comes what
// they add up in: float64 is added up as it is, all else in float32.
typedef struct pytorch_sums {
    uint64_t found_bytes, counter_bytes; // 0: none
} pytorch_sums;

pytorch_sums pytorch_column_sums(uint64_t rows, uint64_t columns, hr_dtype type, uint32_t compute_major,
                                 uint32_t compute_minor, uint32_t multiprocessors);
enum { PYTORCH_CUBLASLT_BYTES = 1024 * 1024 };

#endif
