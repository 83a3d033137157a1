// SPDX-License-Identifier: Apache-2.0
// How PyTorch's eager mode does what an operation of ours does (execution.as=pytorch): what autograd keeps of it until its
// gradient has been taken, and what it asks of the allocator where our kernels ask for less. op_row.keep_in and keep_out are
// the same column for TensorFlow's tape.
//
// The rows follow PyTorch 2.15: tools/autograd/derivatives.yaml says what a backward formula names (that is what is saved),
// aten/src/ATen/native what an operation makes. tests/bench/results/pytorch_steps has its requests, recorded.
#ifndef OPS_PYTORCH_H
#define OPS_PYTORCH_H

#include "ops/op.h"

enum { PYTORCH_MAX_EXTRAS = 6 };

// A tensor of PyTorch's that our kernels do without.
typedef struct pytorch_extra {
    const char *name;
    // FIRST is asked for before the results, KEPT behind them; both are kept for backward: until the first extra of backward
    // is there, or else until the gradient has been taken. GRADIENT is asked for before the gradient, BEHIND when it is there, and
    // both are given back at once then.
    enum { PYTORCH_FIRST, PYTORCH_KEPT, PYTORCH_GRADIENT, PYTORCH_BEHIND } when;
    uint64_t (*bytes)(const op_query *forward); // 0: there is none
    bool unseen; // lives as long, though no hook of saved tensors is called for it
} pytorch_extra;

// In what type an operation computes under torch.autocast (ATen/autocast_mode.h).
typedef enum pytorch_autocast {
    PYTORCH_AS_IT_COMES, // in the widest type of its inputs
    PYTORCH_NARROW,      // in two bytes
    PYTORCH_WIDE,        // in float32
    PYTORCH_WIDE_SUM,    // in float32 unless it is a mean
} pytorch_autocast;

typedef struct pytorch_rule {
    const char *aten;          // what PyTorch calls it; NULL: nothing is known of this operation
    uint8_t keep_in, keep_out; // bit k: autograd keeps input / output k
    pytorch_autocast autocast;
    // Its kernels take no float64: what PyTorch does there is another operation.
    bool not_float64;
    // The result is written over input 0, as networks of torchvision ask for (ReLU(inplace=True)), with execution.inplace on.
    bool in_place;
    bool last_first; // the last result is asked for before the first
    bool
        view; // the result is its input's storage, of which our kernel copies: what keeps it keeps the input instead
    bool
        gradient_of_in; // what our gradient reads of output 0 it may read of input 0 as well: there are the same bits
    // Its gradients are made in the order of the inputs, but for those of which this is true: there the first is the last.
    bool (*first_gradient_last)(const op_query *forward);
    // Bytes of output k where PyTorch has it in a wider type or with more around; 0: as ours. NULL: all are as ours.
    uint64_t (*out_bytes)(const op_query *forward, unsigned k);
    pytorch_extra extra[PYTORCH_MAX_EXTRAS];
} pytorch_rule;

// Of a forward operation. NULL: nothing is known of it.
const pytorch_rule *pytorch_rule_of(hr_op op);

// Does it, forward or backward, come to a product of cuBLAS?
bool pytorch_multiplies(hr_op op);
// What ATen/cuda/CublasHandlePool.cpp gives each handle of cuBLAS to work in, by default (CUBLAS_WORKSPACE_CONFIG), on a card of
// that compute capability; and what it gives cuBLASLt, which adds the bias of a product.
uint64_t pytorch_cublas_bytes(uint32_t compute_major);
enum { PYTORCH_CUBLASLT_BYTES = 1024 * 1024 };

#endif
