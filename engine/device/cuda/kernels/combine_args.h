// SPDX-License-Identifier: Apache-2.0
// What the kernels of combine.cu are given. Read by C and by CUDA C++. Where values only move, they move in units of 2,
// 4, 8 or 16 bytes: the largest that no row, offset or stride cuts.
#ifndef KERNELS_COMBINE_ARGS_H
#define KERNELS_COMBINE_ARGS_H

#include "divisor.h"

enum { GATHER_AXES = 5, CONCAT_SOURCES = 6 };

// Place i of an axis of the result is place i - low of the operand, `stride` units from the next one; zero where i lies
// outside [low, high). Where the axis is turned, i begins again behind its last place: it is (i + turn) mod extent.
typedef struct gather_axis {
    divisor extent;
    int64_t stride, low, high, turn; // turn: in [0, extent)
} gather_axis;

typedef struct gather_args {
    const void *in;
    void *out;
    int64_t count; // units of out
    uint32_t axes;
    float share;                   // spread: what every value is multiplied with
    gather_axis axis[GATHER_AXES]; // innermost first
} gather_args;

// Rows of out: a piece of every input, one after another.
typedef struct concat_args {
    const void *in[CONCAT_SOURCES];
    void *out;
    int64_t count; // units of out
    divisor row;
    uint32_t sources;
    uint32_t unused;                   // no byte of an argument is undefined
    int64_t begin[CONCAT_SOURCES + 1]; // in the row
} concat_args;

// out = a + b, b repeated every `inner` elements.
typedef struct repeated_sum_args {
    const void *a, *b;
    void *out; // may be a
    int64_t count;
    divisor inner;
} repeated_sum_args;

// out = a * factor: groups of `group` elements, `inner` factors each.
typedef struct factor_args {
    const void *a, *factor;
    void *out; // may be a
    int64_t count;
    divisor group, inner;
} factor_args;

// dx[rows, width, channels] from dy[rows * times_h, width * times_w, channels].
typedef struct upsample_bwd_args {
    const void *dy;
    void *dx;
    int64_t count;           // vectors of dx
    divisor width, channels; // channels in vectors
    int32_t times_h, times_w;
} upsample_bwd_args;

#endif
