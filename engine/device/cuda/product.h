// SPDX-License-Identifier: Apache-2.0
// Matrix products through cuBLASLt: y = act(alpha · op(a) · op(b) + beta · c + bias), row-major, batched. There is no
// asking cuBLASLt without a card, so the workspace is a cap that plan and run both take: product_workspace_bytes.
//
// cuBLASLt thinks in columns: it is told yᵀ = op(b)ᵀ · op(a)ᵀ, of the same memory. A product is reproducible: of one
// library, one card and one stream with a workspace of its own, so no algorithm is ruled out (cuBLAS guide, "Results
// reproducibility"). Rows that are no multiple of sixteen bytes are computed by slower algorithms.
//
// int8 matrices give int32 sums, which are exact. For whole-number kernels in a regular order the library wants (cuBLAS guide,
// cublasLtMatmul) "TN", which is b stored [n,k], k, n and every stride multiples of four and addresses of four bytes, better of
// sixteen; computing and scale type are 32I, alpha 1 and beta 0 are int32, and there is no epilogue. PyTorch's _int_mm asks for more
// (aten/src/ATen/native/cuda: Blas.cpp, CUDABlas.cpp int8_gemm): k and n multiples of eight, more than 16 rows, no workspace; of 17
// rows on an A100 results were wrong with CUDA 12.1 (pytorch/pytorch issue 107671). So these products have all of it: m, n and k
// in steps of PRODUCT_INT8_STEP, PRODUCT_INT8_ROWS of m at least, workspace_bytes 0. The orders of Turing and Ampere (COL32) are not Hopper's.
#ifndef DEVICE_CUDA_PRODUCT_H
#define DEVICE_CUDA_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_device.h"

// A vector that falls off on the way: sums over k, of op(a)'s rows or op(b)'s columns.
typedef enum product_sums { PRODUCT_SUMS_NONE, PRODUCT_SUMS_A, PRODUCT_SUMS_B } product_sums;

// What GELU was given: written beside y, or read where y becomes the gradient there and not the result.
typedef enum product_aux { PRODUCT_AUX_NONE, PRODUCT_AUX_WRITTEN, PRODUCT_AUX_READ } product_aux;

enum { PRODUCT_INT8_STEP = 16, PRODUCT_INT8_ROWS = 32 };

typedef struct product_shape {
    uint32_t dtype;                       // hr_dtype of a and b: real, or HR_I8
    uint32_t out_dtype;                   // of y; sums are float32 always, of HR_I8 int32 as y is
    int64_t m, n, k;                      // y[m,n] = a[m,k] · b[k,n]
    bool transpose_a, transpose_b;        // stored [k,m], [n,k]
    int64_t stride_a, stride_b, stride_y; // elements from row to row as stored; 0: dense
    int64_t batch;                        // 0 stands for 1
    int64_t batch_a, batch_b, batch_y;    // elements from product to product; 0: the same operand every time
    // A second, outer loop of products (heads inside samples): outer × batch of them.
    int64_t outer, outer_a, outer_b, outer_y; // outer 0 stands for 1
    float alpha, beta;
    bool bias;         // [n], of out_dtype
    int32_t act;       // hr_act: NONE, RELU, GELU (tanh form); RELU6 is not cuBLASLt's
    product_aux aux;   // of GELU, of one product: dense [m,n] of out_dtype, n a multiple of 8
    product_sums sums; // into the address of the bias, of out_dtype; of one product, without bias and act
    int64_t alignment; // bytes of which every address is a multiple; 0 stands for 256
} product_shape;

// The cap: what the card's generation asks for, no more than the float32 sums of y that the card's processors can make
// at a time, eight at least unless k is short, no more than the limit. Asked with its own answer as the limit it answers the same.
uint64_t product_workspace_bytes(const cuda_device *device, const product_shape *s, uint64_t limit_bytes);

typedef struct product product;

// c lies as y does; 0: it is y itself.
typedef struct product_places {
    CUdeviceptr a, b, y, vector, c, aux, workspace;
} product_places;

// DEVICE error when the library has no algorithm for it; then `bias`, `act`, `aux` and `sums` are what to do without.
HR_MUST_CHECK hr_status product_prepare(cuda_device *device, const product_shape *s, uint64_t workspace_bytes,
                                        product **out, hr_err *err);
void product_destroy(product *p); // NULL is fine
HR_MUST_CHECK hr_status product_run(const product *p, CUstream stream, const product_places *at, hr_err *err);

#endif
