// SPDX-License-Identifier: Apache-2.0
// Matrix product of plain row-major matrices, C[m,n] = op(A)[m,k] · op(B)[k,n] (+ bias[n]) (then relu).
//
// Own code rather than oneDNN's: its matmul wants the weights copied into a buffer of its own on every call
// and exists as a compiled kernel for AVX-512 only (elsewhere it falls back to a `gemm` that allocates).
// Structure as in Goto, van de Geijn: "Anatomy of High-Performance Matrix Multiplication", TOMS 34(3), 2008.
//
// Sums over k have one order for given sizes and threads. Scratch comes from the caller.
#ifndef DEVICE_CPU_GEMM_H
#define DEVICE_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "workers.h"

typedef struct gemm {
    int64_t m, n, k;
    bool a_transposed; // A is stored [k, m]
    bool b_transposed; // B is stored [n, k]
    bool relu;
    bool sum_b; // the columns of a plain B are summed on the way
    workers *workers;
} gemm;

// Plain row-major matrices, 4-byte aligned.
typedef struct gemm_operands {
    const float *a, *b;
    const float *bias; // NULL: none
    float *c;
    float *b_sums; // [n], with sum_b
} gemm_operands;

uint64_t gemm_scratch_bytes(const gemm *g);
// Scratch is 64-byte aligned.
void gemm_run(const gemm *g, const gemm_operands *o, float *scratch);

// The name of the compiled variant that runs here: "avx512", "avx2", "plain".
const char *gemm_isa(void);

#endif
