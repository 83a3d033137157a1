// SPDX-License-Identifier: Apache-2.0
// Private to lstm*.c: one step of all samples over their gates, in float32.
#ifndef DEVICE_CPU_LSTM_H
#define DEVICE_CPU_LSTM_H

#include <stdint.h>

#include "cpu.h"

typedef struct lstm {
    int64_t samples, steps, units;
} lstm;

lstm lstm_of(const op_operand *gates);

// Rows of a sample's steps follow one another: row = sample * steps + step.
typedef struct lstm_step {
    lstm l;
    int64_t step;
    const float *g, *p; // gates of the inputs; h(t-1)·Wh [N, 4H], NULL at the first step
    float *h, *c, *a;   // forward: written; backward: h is not looked at
    // c(t-1), its rows so many floats apart; NULL at the first step. It may be c itself.
    const float *before;
    int64_t before_row;
    // Backward: gradient of h, and what the step behind carries [N, H], NULL at the last.
    const float *dy, *dh;
    float *dc, *dg; // backward: carried [N, H]; written
} lstm_step;

// Units of a sample are taken in blocks; block `sample * blocks + k`.
int64_t lstm_blocks(const lstm *l);
// On the calling thread. dg may lie on a.
void lstm_forward_blocks(const lstm_step *j, int64_t begin, int64_t end);
void lstm_backward_blocks(const lstm_step *j, int64_t begin, int64_t end);

#endif
