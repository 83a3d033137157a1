// SPDX-License-Identifier: Apache-2.0
// What the kernels of recurrent.cu are given. Read by C and by CUDA C++.
//
// A step of all samples is one launch; between steps stands a product. What a step hands to the product lies close
// together in the workspace (`left`), what it hands to the next step is float32 there. Gates are i, f, c, o as Keras has
// them.
#ifndef KERNELS_RECURRENT_ARGS_H
#define KERNELS_RECURRENT_ARGS_H

#include <stdint.h>

enum { LSTM_THREADS = 256 };

// Tensors are [samples, steps, units] or four times as wide.
typedef struct lstm_args {
    const void *g;        // gates before activation, without the recurrent product
    void *h, *c, *a;      // a may be g
    const float *product; // [samples, 4 * units]: h(t-1) · Wh; unread at the first step
    float *state;         // [samples, units]: c(t-1), then c(t)
    void *left;           // [samples, units]: h(t)
    int64_t samples, steps, units, step;
} lstm_args;

typedef struct lstm_bwd_args {
    const void *c, *a, *dy;
    void *dg;             // may be a
    const float *product; // [samples, units]: dg(t+1) · Whᵀ; unread at the last step
    float *state;         // [samples, units]: dc of the step before
    void *left;           // [samples, 4 * units]: dg(t)
    int64_t samples, steps, units, step;
} lstm_bwd_args;

// GRU: gates are z, r, n as Keras has them; a holds q of n behind them (ops/op.h).
typedef struct gru_args {
    const void *g, *bias; // bias [3 * units], of the product
    void *h, *a;
    const float *product; // [samples, 3 * units]: h(t-1) · Wh; unread at the first step
    float *state;         // [samples, units]: h(t-1), then h(t)
    void *left;           // [samples, units]: h(t)
    int64_t samples, steps, units, step;
} gru_args;

typedef struct gru_bwd_args {
    const void *h, *a, *dy;
    void *dg;
    const float *product; // [samples, units]: dq(t+1) · Whᵀ; unread at the last step
    float *state;         // [samples, units]: of dh, what h(t-1) has without a product
    void *left, *all;     // dq(t), [samples, 3 * units], and of all steps
    int64_t samples, steps, units, step;
} gru_bwd_args;

// out[k] = Σ over rows of all[row, k].
typedef struct gru_bias_args {
    const void *all;
    void *out;
    int64_t rows, columns;
} gru_bias_args;

enum { GRU_BIAS_COLUMNS = 32, GRU_BIAS_THREADS = 256 };

// moved[n, t] = h[n, t-1], and zero for the first step.
typedef struct lstm_move_args {
    const void *h;
    void *moved;
    int64_t samples, steps, units;
} lstm_move_args;

#endif
