// SPDX-License-Identifier: Apache-2.0
// Matrix product of plain row-major matrices, C[m,n] = scale * op(A)[m,k] · op(B)[k,n] (+ bias[n]) (then relu).
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

#include "base/workers.h"

typedef struct gemm {
    int64_t m, n, k;
    int64_t a_row, b_row, c_row; // floats from one stored row to the next; 0: they lie close
    float scale;                 // 0 stands for 1
    bool a_transposed;           // A is stored [k, m]
    bool b_transposed;           // B is stored [n, k]
    bool relu;
    bool add;         // to what C holds; without workers only
    bool sum_b;       // the columns of a plain B are summed on the way
    bool b_packed;    // B is what gemm_pack_right left of it; without sum_b
    workers *workers; // NULL: the caller alone
} gemm;

// Row-major matrices, 4-byte aligned.
typedef struct gemm_operands {
    const float *a, *b;
    const float *bias; // NULL: none
    float *c;
    float *b_sums; // [n], with sum_b
} gemm_operands;

uint64_t gemm_scratch_bytes(const gemm *g);
// Scratch is 64-byte aligned.
void gemm_run(const gemm *g, const gemm_operands *o, float *scratch);

// B in the order in which the tiles read it, for a product that is made with it many times: copied once, and not in every
// run. g is that product; `to` is 64-byte aligned.
uint64_t gemm_packed_bytes(const gemm *g);
void gemm_pack_right(const gemm *g, const float *b, float *to);

// The same product over outer x inner matrices: samples and their heads. Matrix (i, j) of an operand begins
// i * outer + j * inner floats behind the first. Where there are as many matrices as workers each is one
// worker's, else they follow one another and are shared.
typedef struct gemm_steps {
    int64_t outer, inner;
} gemm_steps;

typedef struct gemm_batch {
    gemm each; // its workers run the batch
    int64_t outer, inner;
    gemm_steps a, b, c;
} gemm_batch;

uint64_t gemm_batch_scratch_bytes(const gemm_batch *g);
// Without bias and sums of B.
void gemm_batch_run(const gemm_batch *g, const float *a, const float *b, float *c, float *scratch);

// The compiled variant that runs here, "avx512", "avx2" or "plain": the best that this processor has with at most so many
// floats in a register. Of the process; comes before whatever asks for scratch.
void gemm_keep_to(uint32_t lanes);
const char *gemm_isa(void);

#endif
