// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_CUDA_OUTSIDE_H
#define DEVICE_CUDA_OUTSIDE_H

#include "device_impl.h"

uint64_t cuda_card_used_bytes(const cuda_device *device); // of all processes; 0 when unknown
uint64_t cuda_free_bytes(void); // of the current context's card, as the driver tells; 0 when it does not
// What became less than `before_bytes` free since then is the context's now: kernels, plans and graphs lie in memory too.
void cuda_count_context(cuda_device *device, uint64_t before_bytes);
void cuda_outside(void *context, device_outside *out);
hr_status cuda_admit(void *context, uint64_t in_use_bytes, uint64_t pool_bytes, hr_err *err);

#endif
