// SPDX-License-Identifier: Apache-2.0
// oneDNN behind three thin files: onednn.c, onednn_product.c and onednn_load.c are the only ones that see its headers,
// and know its version. What this device takes from it: convolutions with the reorders of their weights, and bfloat16
// products.
//
// Memory is the caller's throughout: scratch is user-managed, operands are bound at each run. Implementations
// whose name contains `ref` or `gemm` are refused: they are slow or allocate behind the scratch.
#ifndef DEVICE_CPU_ONEDNN_H
#define DEVICE_CPU_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/shared_library.h"

typedef struct onednn onednn; // engine and stream

extern const shared_library onednn_library;
// shared_library_need: comes before everything below. DEPENDENCY error says what to install.
HR_MUST_CHECK hr_status onednn_load(hr_err *err);

// Settles the team of OpenMP threads that oneDNN uses on behalf of the calling thread: how many, and denormal
// numbers treated as zero. Answers of onednn_conv_choose are for this number.
void onednn_settle_threads(uint32_t threads);
// The number alone: enough for asking, on any thread.
void onednn_ask_for_threads(uint32_t threads);
HR_MUST_CHECK hr_status onednn_open(onednn **out, hr_err *err);
void onednn_close(onednn *library);
uint64_t onednn_version(void);       // as one number that differs between releases
const char *onednn_isa(void);        // "avx512_core_bf16"
const char *onednn_isa_remark(void); // what was decided about it, see isa.h; "" where there is nothing to say
uint32_t onednn_lanes(void);         // floats in the registers that it uses here: 16, 8 or 4

typedef enum conv_kind { CONV_FORWARD, CONV_BWD_DATA, CONV_BWD_WEIGHTS } conv_kind;

// `x` is the operand [n,h,w,c] or its gradient, `y` [n,oh,ow,f] or its gradient.
typedef struct conv_shape {
    conv_kind kind;
    int64_t n, h, w, c, oh, ow, f;
    int64_t kernel_h, kernel_w, stride_h, stride_w, gap_h, gap_w; // gap: between two taps
    int64_t pad_top, pad_left, pad_bottom, pad_right, groups;
    bool bias, relu;
    float ceiling; // of relu; may be infinite
    bool bf16;     // every operand, else float32
} conv_shape;

typedef enum conv_operand { CONV_X, CONV_WEIGHTS, CONV_BIAS, CONV_Y, CONV_OPERANDS } conv_operand;

typedef struct onednn_conv onednn_conv;

// Chooses the first acceptable implementation whose scratch and library copies take at most `limit_bytes`.
// DEVICE error with the reason otherwise. Creates descriptions only, no kernel.
HR_MUST_CHECK hr_status onednn_conv_choose(onednn *library, const conv_shape *shape, uint64_t limit_bytes,
                                           onednn_conv **out, hr_err *err);
void onednn_conv_destroy(onednn_conv *c); // NULL is fine
uint64_t onednn_conv_scratch_bytes(const onednn_conv *c);
const char *onednn_conv_name(const onednn_conv *c);
// Bytes of an operand in the layout that the implementation wants; 0 when that is the plain one.
uint64_t onednn_conv_library_bytes(const onednn_conv *c, conv_operand operand);

// Makes the kernel ready to run.
HR_MUST_CHECK hr_status onednn_conv_prepare(onednn_conv *c, hr_err *err);
HR_MUST_CHECK hr_status onednn_conv_run(onednn_conv *c, void *const operand[CONV_OPERANDS], void *scratch,
                                        hr_err *err);

typedef struct onednn_reorder onednn_reorder;

// Between an operand's plain layout and the library's, ready to run. Needs no scratch.
HR_MUST_CHECK hr_status onednn_reorder_create(onednn *library, const onednn_conv *peer, conv_operand operand,
                                              bool to_library, onednn_reorder **out, hr_err *err);
void onednn_reorder_destroy(onednn_reorder *r); // NULL is fine
HR_MUST_CHECK hr_status onednn_reorder_run(onednn_reorder *r, void *from, void *to, hr_err *err);
const char *onednn_reorder_name(const onednn_reorder *r);

// Elements from one matrix of a batch to the next, and from one stored row to the next (0: they lie close).
typedef struct product_steps {
    int64_t outer, inner, row;
} product_steps;

// C[m,n] = scale * A[m,k] · B[k,n] in bfloat16, summed in float32. Matrices are row-major where they lie.
typedef struct product_shape {
    int64_t m, n, k;
    bool a_transposed, b_transposed; // A is stored [k, m], B [n, k]
    bool bias, relu;                 // bias[n] bfloat16
    bool wide;                       // C is float32
    float ceiling;                   // of relu; may be infinite
    float scale;                     // 0 stands for 1
    int64_t outer, inner;            // a batch of so many products, without bias; 0: one product
    product_steps a, b, c;           // of a batch
} product_shape;

typedef struct onednn_product onednn_product;

// As onednn_conv_choose; nothing is copied but in scratch.
HR_MUST_CHECK hr_status onednn_product_choose(onednn *library, const product_shape *shape,
                                              uint64_t limit_bytes, onednn_product **out, hr_err *err);
void onednn_product_destroy(onednn_product *p); // NULL is fine
uint64_t onednn_product_scratch_bytes(const onednn_product *p);
const char *onednn_product_name(const onednn_product *p);
HR_MUST_CHECK hr_status onednn_product_prepare(onednn_product *p, hr_err *err);
// `bias` NULL without one.
HR_MUST_CHECK hr_status onednn_product_run(onednn_product *p, void *a, void *b, void *bias, void *c,
                                           void *scratch, hr_err *err);

#endif
