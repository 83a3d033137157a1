// SPDX-License-Identifier: Apache-2.0
// Between real types, on the workers and by the chunk. Rounding is that of base/half.h in every variant.
#ifndef DEVICE_CPU_CAST_H
#define DEVICE_CPU_CAST_H

#include <stdint.h>

#include "base/workers.h"
#include "ops/op.h"

// Between any two of float32, float16, bfloat16; equal types are copied.
void cast_run(workers *w, const void *from, hr_dtype from_type, void *to, hr_dtype to_type, int64_t count);

// A chunk, on the calling thread. `to` and `from` do not overlap.
void cast_widen_bf16(float *to, const uint16_t *from, int64_t count);
void cast_narrow_bf16(uint16_t *to, const float *from, int64_t count);
// The same for float32, float16 or bfloat16, and the implementation's name.
typedef void (*cast_widener)(float *to, const void *from, int64_t count);
cast_widener cast_widener_of(hr_dtype from_type);
void cast_widen(float *to, const void *from, hr_dtype from_type, int64_t count);
void cast_narrow(void *to, hr_dtype to_type, const float *from, int64_t count);
// `count` numbers of `type` from element `at` on, as float32: where they lie, or widened in `scratch`.
const float *cast_load(const void *from, hr_dtype type, int64_t at, int64_t count, float *scratch);
// Rounds them into elements `at` and on.
void cast_store(void *to, hr_dtype type, int64_t at, const float *values, int64_t count);

#endif
