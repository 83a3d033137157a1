// SPDX-License-Identifier: Apache-2.0
// How the kernels of this folder are compiled: plain C, once per instruction set, chosen when the program
// starts.
//
// CPU_HOT goes on a function that holds one hot loop over a range. workers_for (base/workers.h) hands ranges
// to it. Sanitizers get the one
// plain version, because resolvers run before their run time is up.
#ifndef DEVICE_CPU_SIMD_H
#define DEVICE_CPU_SIMD_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&     \
    !defined(__SANITIZE_THREAD__)
#define CPU_HAS_CLONES 1
#define CPU_HOT        __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_HAS_CLONES 0
#define CPU_HOT
#endif

#define CPU_INLINE static inline __attribute__((always_inline))

enum { CPU_LANES = 16 };

// Sixteen floats; narrower machines get it as several registers. Unaligned on purpose.
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i32x16 __attribute__((vector_size(64))); // what comparisons of them give

// Macros, not functions: a vector passed by value would be an ABI of its own on every instruction set.
#define F32X16(p)  (*(const f32x16 *)(p))
#define F32X16W(p) (*(f32x16 *)(p))

#endif
