// SPDX-License-Identifier: Apache-2.0
// What the kernels of batch_norm.cu are given, and how they divide a tensor. Read by C and by CUDA C++.
#ifndef KERNELS_BATCH_NORM_ARGS_H
#define KERNELS_BATCH_NORM_ARGS_H

#include <stdint.h>

#include "pool_args.h"

#define BATCH_NORM_THREADS      256
#define BATCH_NORM_STEPS        8    // of one chunk of statistics, held in registers
#define BATCH_NORM_FLIGHT       4    // steps of the other passes that are on their way at once
#define BATCH_NORM_JOIN_THREADS 1024 // of a block that joins parts

// The tensor as packs of 16 bytes (or one element), `step` packs at a time: a step is whole periods, which are whole rows, so
// that a thread meets the same channels in every one. Blocks (x, y) share a period in `across` packs each; y > 0 only where
// a period is one row. A block's threads lie over `across` packs of as many periods as there is room for.
typedef struct batch_norm_walk {
    int64_t packs, step, steps, period;
    int64_t channels, rows;
    int64_t span;    // values of a block from one entry of a channel to its next
    int32_t width;   // packs of a block in a step: one of a thread
    int32_t across;  // of these, beside one another in a period
    int32_t entries; // of a channel in a block
    int32_t group;   // lanes that join the entries of a channel: a power of two
    int32_t chunk;   // statistics and sums: steps that a block takes at once
    int32_t vectors;
} batch_norm_walk;

typedef struct batch_norm_args {
    batch_norm_walk walk;
    const void *x, *dy;
    const void *summand; // forward: of y, before the activation
    const float *summand_gamma, *summand_beta, *summand_mean,
        *summand_variance;   // NULL: it is not normalised first
    const void *gate, *more; // backward, with `gated`: y behind an activation, and what is added to dy
    void *gated;             // what gate let through of both
    void *y;                 // or dx: may lie on x, or dy
    const float *gamma, *beta, *mean, *variance; // beta: backward with an activation only
    const float *dgamma, *dbeta;                 // of the last stage backward
    pool_args pooled; // backward, in the place of dy: index and gradient of a pooling
    // Forward [parts][count, mean, squares][channels] of distances from a channel's first value; these values stand
    // behind. Backward [parts][dy, dy * (x - mean)][channels].
    float *partial;
    float epsilon, floor, ceiling; // of the activation
    uint32_t unused;               // no byte of an argument is undefined
} batch_norm_args;

typedef struct batch_norm_finish_args {
    const float *partial;
    int64_t parts, channels, rows;
    const float *variance;                                            // backward
    float *mean_out, *variance_out, *running_mean, *running_variance; // forward
    float *dgamma, *dbeta;                                            // backward
    double momentum, epsilon;
    int32_t across;  // channels of a block: a power of two
    uint32_t unused; // no byte of an argument is undefined
} batch_norm_finish_args;

#endif
