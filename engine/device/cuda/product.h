// SPDX-License-Identifier: Apache-2.0
// Matrix products through cuBLASLt: y = act(alpha · op(a) · op(b) + beta · y + bias), row-major, batched. There is no
// asking cuBLASLt without a card, so the workspace is a cap that plan and run both take: product_workspace_bytes.
#ifndef DEVICE_CUDA_PRODUCT_H
#define DEVICE_CUDA_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_device.h"

typedef struct product_shape {
    uint32_t dtype;                       // hr_dtype of a and b
    uint32_t out_dtype;                   // of y; sums are float32 always
    int64_t m, n, k;                      // y[m,n] = a[m,k] · b[k,n]
    bool transpose_a, transpose_b;        // stored [k,m], [n,k]
    int64_t stride_a, stride_b, stride_y; // elements from row to row as stored; 0: dense
    int64_t batch;                        // 0 stands for 1
    int64_t batch_a, batch_b, batch_y;    // elements from product to product; 0: the same operand every time
    // A second, outer loop of products (heads inside samples): outer × batch of them.
    int64_t outer, outer_a, outer_b, outer_y; // outer 0 stands for 1
    float alpha, beta;
    bool bias;   // [n], of out_dtype
    int32_t act; // hr_act: NONE, RELU, GELU (tanh form); RELU6 is not cuBLASLt's
} product_shape;

// The cap: what the card's generation asks for, no more than eight float32 sums of y, no more than the limit.
uint64_t product_workspace_bytes(const cuda_device *device, const product_shape *s, uint64_t limit_bytes);

typedef struct product product;

HR_MUST_CHECK hr_status product_prepare(cuda_device *device, const product_shape *s, uint64_t workspace_bytes,
                                        product **out, hr_err *err);
void product_destroy(product *p); // NULL is fine
HR_MUST_CHECK hr_status product_run(const product *p, CUstream stream, CUdeviceptr a, CUdeviceptr b,
                                    CUdeviceptr y, CUdeviceptr bias, CUdeviceptr workspace, hr_err *err);

#endif
