// SPDX-License-Identifier: Apache-2.0
// What the kernels of adam8bit.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_ADAM8BIT_ARGS_H
#define KERNELS_ADAM8BIT_ARGS_H

#include <stdint.h>

enum {
    ADAM8BIT_THREADS = 256,
    ADAM8BIT_OCTAVES = 24, // of ratios: 2^-24 lies below half of the smallest value
    ADAM8BIT_RUNS = 8,     // zero, and seven decades of equal steps
    ADAM8BIT_VALUES = 256,
};

// The decades of the octave that a ratio lies in: `below` up to the threshold, the next one beyond it.
typedef struct code_octave {
    float threshold; // beyond all ratios where the octave has none
    int32_t below;
} code_octave;

// Steps of equal width: code = floor(ratio * slope + offset) is the nearest or one below it, but at most `last`.
typedef struct code_run {
    float slope, offset, last, unused;
} code_run;

// Ratios of [0, 1] to steps above zero.
typedef struct code_finder {
    code_octave octave[ADAM8BIT_OCTAVES];
    code_run run[ADAM8BIT_RUNS];
} code_finder;

// Of this update, in device memory.
typedef struct adam8bit_scalars {
    float rate, epsilon; // ops/adam.h
    float kept;          // of a weight, behind its decay
} adam8bit_scalars;

typedef struct adam8bit_args {
    void *w;
    const void *g;
    uint8_t *m, *v;
    float *scales;         // of m, then of v
    const int32_t *finite; // 0: nothing changes; NULL: always
    const adam8bit_scalars *scalars;
    int64_t elements, blocks;
    float keep1, keep2, unused;
    code_finder m_finder, v_finder;
    float m_value[ADAM8BIT_VALUES / 2 + 1]; // of zero and the codes above
    float v_value[ADAM8BIT_VALUES];
} adam8bit_args;

#endif
