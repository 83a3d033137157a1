// SPDX-License-Identifier: Apache-2.0
// What the emulated cuBLASLt keeps in its opaque structures, and a product read out of them, flat, so that enqueued work
// carries all of it. Matrices are column-major unless their order says otherwise: element (i, j) lies at
// i·row + j·column.
#ifndef CARD_CUBLASLT_PROBLEM_H
#define CARD_CUBLASLT_PROBLEM_H

#include <cublasLt.h>
#include <stdbool.h>

#include "numbers.h"

typedef struct layout_data {
    uint32_t type;
    int32_t order;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch;
    uint32_t batch_mode;
    int64_t batch_stride;
} layout_data;
_Static_assert(sizeof(layout_data) <= sizeof(cublasLtMatrixLayoutOpaque_t), "opaque");

typedef struct desc_data {
    int32_t compute, scale_type, pointer_mode, turn_a, turn_b, turn_c, fill, sm_count;
    uint32_t epilogue;
    int32_t bias_type; // -1: that of the result
    void *bias;
    int64_t bias_batch;
    void *aux;
    int64_t aux_ld, aux_batch;
} desc_data;
_Static_assert(sizeof(desc_data) <= sizeof(cublasLtMatmulDescOpaque_t), "opaque");

typedef struct preference_data {
    uint32_t search, reductions, align_a, align_b, align_c, align_d;
    uint64_t max_workspace, impl_mask;
    float max_waves;
} preference_data;
_Static_assert(sizeof(preference_data) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "opaque");

typedef struct algo_data {
    uint64_t problem; // hash of what it was chosen for
    uint64_t workspace_bytes;
    uint32_t id;
    uint32_t align_a, align_b, align_c, align_d;
} algo_data;
_Static_assert(sizeof(algo_data) <= sizeof(cublasLtMatmulAlgo_t), "opaque");

typedef struct matrix {
    number type;
    int64_t row, column, batch; // elements from row to row, …
    uint64_t rows, columns;     // as the product sees them
    void *at;
} matrix;

// d = epilogue(alpha·a·b + beta·c), k columns of a
typedef struct problem {
    matrix a, b, c, d;
    int64_t m, n, k, batch;
    bool tf32;
    bool whole;    // int8 matrices and int32 sums
    bool in_place; // parts of k are added up where the result lies, in its type
    uint32_t epilogue;
    float alpha, beta;
    void *bias;
    number bias_type;
    int64_t bias_batch;
    matrix aux; // of GELU: what it was given, of the result's shape and type
    void *workspace;
    uint64_t workspace_bytes;
} problem;

// INVALID_VALUE for what is contradictory, NOT_SUPPORTED for what the real one has no kernels for.
cublasStatus_t problem_read(const desc_data *desc, const layout_data *a, const layout_data *b,
                            const layout_data *c, const layout_data *d, problem *out);
uint64_t problem_hash(const problem *p); // of shapes, types, order and epilogue: not of addresses and factors
// Elements from the first to behind the last, of all products.
uint64_t matrix_extent(const matrix *m, int64_t batch);
uint64_t problem_bias_count(const problem *p);
bool problem_has_aux(const problem *p);

void problem_run(void *p); // a problem

#endif
