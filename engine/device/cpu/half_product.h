// SPDX-License-Identifier: Apache-2.0
// Private to *_half.c and gru.c: a product of two-byte matrices, by the library where the processor multiplies the type, else by
// tiles of our own.
#ifndef DEVICE_CPU_HALF_PRODUCT_H
#define DEVICE_CPU_HALF_PRODUCT_H

#include "cpu.h"

typedef struct half_product half_product;

// As onednn_product_choose; `limit_bytes` concerns the library; the caller checks what our own take.
HR_MUST_CHECK hr_status half_product_choose(const cpu_device *device, const product_shape *shape,
                                            hr_dtype type, uint64_t limit_bytes, half_product **out,
                                            hr_err *err);
void half_product_destroy(half_product *p); // NULL is fine
uint64_t half_product_scratch_bytes(const half_product *p);
const char *half_product_impl(const half_product *p); // as target_answer's
HR_MUST_CHECK hr_status half_product_prepare(half_product *p, hr_err *err);
// `bias` NULL without one. The device is that of the choice, or a thread of it alone.
HR_MUST_CHECK hr_status half_product_run(const cpu_device *device, half_product *p, void *a, void *b,
                                         void *bias, void *c, void *scratch, hr_err *err);

// ---- a recurrent layer's two -------------------------------------------------------------------------------

typedef struct half_pair {
    half_product *step;    // of every step
    half_product *weights; // over all steps; NULL forward
} half_pair;

typedef struct half_pair_shape {
    product_shape step, weights; // weights.m 0: none
    hr_dtype type;
    uint64_t rooms_bytes; // of the workspace, before the scratch memory of either
} half_pair_shape;

// As the entries of cpu_impl of these names; the state is a half_pair.
bool half_pair_fits(const cpu_device *device, const half_pair_shape *shape);
HR_MUST_CHECK hr_status half_pair_ask(const cpu_device *device, const half_pair_shape *shape,
                                      uint64_t limit_bytes, target_answer *out, hr_err *err);
HR_MUST_CHECK hr_status half_pair_prepare(const cpu_device *device, const half_pair_shape *shape,
                                          uint64_t limit_bytes, void **state, hr_err *err);
void half_pair_release(void *state);

#endif
