// SPDX-License-Identifier: Apache-2.0
// What the kernels of loss.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_LOSS_ARGS_H
#define KERNELS_LOSS_ARGS_H

#include <stdint.h>

typedef struct loss_args {
    const void *x;      // logits, prediction, student; backward: float32 probabilities where there are some
    const void *other;  // target, teacher
    const void *labels; // int32, or bytes
    const float *scale; // of a gradient: the loss scale, NULL for 1
    void *out;          // probabilities (float32), or the gradient; may lie on x of the same type
    float *most, *rsum; // streaming: of every row its largest logit and one over the sum of exponentials
    double *partial;    // forward: one of every block
    int64_t rows, classes;
    int64_t pitch;      // of logits and their gradient: elements from row to row
    float share;        // of one element in the gradient
    float cold;         // 1 / temperature
    float gamma, alpha; // of the focal loss
    int32_t byte_labels, vectors, cached;
    uint32_t unused; // no byte of an argument is undefined
} loss_args;

// out = factor * the sum of `parts` numbers; an int32 when counts is set.
typedef struct loss_finish_args {
    const double *partial;
    void *out;
    int64_t parts;
    double factor;
    int32_t counts;
    uint32_t unused; // no byte of an argument is undefined
} loss_finish_args;

#endif
