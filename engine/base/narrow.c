// SPDX-License-Identifier: Apache-2.0
#include "base/narrow.h"

#include <stdbool.h>

#include "base/half.h"

// Compiled once per instruction set, chosen when the program starts. Sanitizers get the one plain version, because
// resolvers run before their run time is up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&     \
    !defined(__SANITIZE_THREAD__)
#include <immintrin.h>

#define NARROW_X86 1
#define NARROW_HOT                                                                                           \
    __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NARROW_X86 0
#define NARROW_HOT
#endif

NARROW_HOT static void all_to_f16(uint16_t *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++) {
        to[k] = f16_of_float(from[k]);
    }
}

NARROW_HOT static void all_to_bf16(uint16_t *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++) {
        to[k] = bf16_of_float(from[k]);
    }
}

#if NARROW_X86
// The processor rounds as base/half.h does; only a NaN, which it would keep some bits of, becomes the one of half.h.
__attribute__((target("arch=x86-64-v4"))) static void with_avx512(uint16_t *to, const float *from,
                                                                  uint64_t count)
{
    for (uint64_t k = 0; k < count; k += 16) {
        const __mmask16 here = count - k < 16 ? (__mmask16)((1u << (count - k)) - 1u) : (__mmask16)0xffff;
        const __m512 x = _mm512_maskz_loadu_ps(here, from + k);
        const __m256i half = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __m256i sign = _mm256_and_si256(half, _mm256_set1_epi16((int16_t)-0x8000));
        const __m256i nan = _mm256_or_si256(sign, _mm256_set1_epi16(0x7e00));
        const __mmask16 strange = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        _mm256_mask_storeu_epi16(to + k, here, _mm256_mask_blend_epi16(strange, half, nan));
    }
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("x86-64-v4");
}
#else
static void with_avx512(uint16_t *to, const float *from, uint64_t count)
{
    all_to_f16(to, from, count);
}

static bool has_avx512(void)
{
    return false;
}
#endif

void narrow_to_f16(uint16_t *to, const float *from, uint64_t count)
{
    if (has_avx512()) {
        with_avx512(to, from, count);
    } else {
        all_to_f16(to, from, count);
    }
}

void narrow_to_bf16(uint16_t *to, const float *from, uint64_t count)
{
    all_to_bf16(to, from, count);
}
