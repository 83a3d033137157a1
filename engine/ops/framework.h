// SPDX-License-Identifier: Apache-2.0
// How a framework's eager mode does what an operation of ours does (execution.as): what it keeps of it for backward, and
// what it asks of the allocator where our kernels ask for less. One table a framework: pytorch.c, tensorflow.c. Without
// a framework op_row.keep_in and keep_out say what TensorFlow's tape keeps of an operation that it has as we have it.
#ifndef OPS_FRAMEWORK_H
#define OPS_FRAMEWORK_H

#include "ops/op.h"

enum { FRAMEWORK_MAX_EXTRAS = 16 };

// A tensor of the framework's that our kernels do without.
typedef struct framework_extra {
    const char *name;
    // FIRST is asked for before the results, KEPT behind them; both are kept for backward: until the first extra of backward
    // is there, or else until the gradient has been taken. NOW is asked for before the results, and given back when they are there.
    // GRADIENT is asked for before the gradient, BEHIND when it is there, and both are given back at once then. INSTEAD is a copy of the
    // result's gradient: as GRADIENT, unless that gradient goes now, in whose place it is. WITHIN is asked for when the gradient
    // has been, and what the gradient is made of and GRADIENT go no sooner than the last of them.
    enum {
        EXTRA_FIRST,
        EXTRA_KEPT,
        EXTRA_NOW,
        EXTRA_GRADIENT,
        EXTRA_INSTEAD,
        EXTRA_WITHIN,
        EXTRA_BEHIND
    } when;
    uint64_t (*bytes)(const op_query *forward); // 0: there is none
    bool brief;      // KEPT: given back when the next is there; WITHIN: with the first that is not
    bool unseen;     // lives as long, though no hook of saved tensors is called for it
    bool to_the_end; // of backward: no gradient is taken through it, and the tape still has it
    uint8_t copies;  // there are as many of them; 0: one
} framework_extra;

// In what type an operation computes under torch.autocast (ATen/autocast_mode.h).
typedef enum pytorch_autocast {
    PYTORCH_AS_IT_COMES, // in the widest type of its inputs
    PYTORCH_NARROW,      // in two bytes
    PYTORCH_WIDE,        // in float32
    PYTORCH_WIDE_SUM,    // in float32 unless it is a mean
} pytorch_autocast;

typedef struct framework_rule {
    const char *theirs;        // what the framework calls it; NULL: nothing is known of this operation
    uint8_t keep_in, keep_out; // bit k: it keeps input / output k
    bool (*keeps_result)(const op_query *forward); // output 0 too, where this is true
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
    // Bytes of output k where the framework has it in a wider type or with more around; 0: as ours. NULL: all are as ours.
    uint64_t (*out_bytes)(const op_query *forward, unsigned k);
    framework_extra extra[FRAMEWORK_MAX_EXTRAS];
} framework_rule;

#endif
