// SPDX-License-Identifier: Apache-2.0
#include "data/pixels.h"

#include <stddef.h>
#include <string.h>

#include "base/half.h"

// Sanitizers get the plain version, as in base/narrow.c.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&     \
    !defined(__SANITIZE_THREAD__)
#include <immintrin.h>

#define PIXELS_X86  1
#define PIXELS_FAST __attribute__((optimize("O3")))
#define PIXELS_HOT                                                                                           \
    __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PIXELS_X86 0
#define PIXELS_FAST
#define PIXELS_HOT
#endif

enum { BLOCK = 32, LINE_BYTES = 64 }; // values at a time, and what they are stored by

// Writes `count` values, of the fast ways a multiple of BLOCK that begins with a line.
typedef void (*writer)(void *to, const uint8_t *from, uint64_t count, bool past_caches);

// ---- plain ----------------------------------------------------------------------------------------------------

PIXELS_FAST static void f32_plain(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    (void)past_caches;
    float *restrict value = to;
    for (uint64_t k = 0; k < count; k++) {
        value[k] = (float)from[k] / 255.0f;
    }
}

PIXELS_FAST static void f64_plain(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    (void)past_caches;
    double *restrict value = to;
    for (uint64_t k = 0; k < count; k++) {
        value[k] = (double)from[k] / 255.0;
    }
}

PIXELS_FAST static void f16_plain(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    (void)past_caches;
    uint16_t *restrict value = to;
    for (uint64_t k = 0; k < count; k++) {
        value[k] = f16_of_float((float)from[k] / 255.0f);
    }
}

PIXELS_FAST static void bf16_plain(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    (void)past_caches;
    uint16_t *restrict value = to;
    for (uint64_t k = 0; k < count; k++) {
        value[k] = bf16_of_float((float)from[k] / 255.0f);
    }
}

#if PIXELS_X86
// A quotient by 255 is the product with a reciprocal of twice the digits: of all 256 bytes the rounded quotient.
static const float one_255th = 1.0f / 255.0f;
static const float one_255th_rest = (float)(1.0 / 255.0 - (double)(1.0f / 255.0f));
// As double, which has no type of twice its digits, the product is put right by what is left of the byte.
static const double one_255th_wide = 1.0 / 255.0;

// ---- AVX-512 --------------------------------------------------------------------------------------------------

#define WITH_AVX512 __attribute__((target("arch=x86-64-v4")))

WITH_AVX512 static inline void line_avx512(void *to, __m512i line, bool past_caches)
{
    if (past_caches) {
        _mm512_stream_si512(to, line);
    } else {
        _mm512_store_si512(to, line);
    }
}

WITH_AVX512 static inline __m512 sixteen(const uint8_t *from)
{
    const __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from)));
    return _mm512_fmadd_ps(x, _mm512_set1_ps(one_255th), _mm512_mul_ps(x, _mm512_set1_ps(one_255th_rest)));
}

WITH_AVX512 static void f32_avx512(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    for (uint64_t k = 0; k < count; k += 16) {
        line_avx512((float *)to + k, _mm512_castps_si512(sixteen(from + k)), past_caches);
    }
}

WITH_AVX512 static void f64_avx512(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    const __m512d r = _mm512_set1_pd(one_255th_wide), all = _mm512_set1_pd(255.0);
    for (uint64_t k = 0; k < count; k += 8) {
        const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(from + k)));
        const __m512d x = _mm512_cvtepi32_pd(bytes);
        const __m512d q = _mm512_mul_pd(x, r);
        const __m512d left = _mm512_fnmadd_pd(q, all, x);
        line_avx512((double *)to + k, _mm512_castpd_si512(_mm512_fmadd_pd(left, r, q)), past_caches);
    }
}

WITH_AVX512 static inline __m256i f16_of_sixteen(__m512 x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

WITH_AVX512 static inline __m256i bf16_of_sixteen(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

WITH_AVX512 static void f16_avx512(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    for (uint64_t k = 0; k < count; k += 32) {
        const __m512i low = _mm512_castsi256_si512(f16_of_sixteen(sixteen(from + k)));
        const __m512i both = _mm512_inserti64x4(low, f16_of_sixteen(sixteen(from + k + 16)), 1);
        line_avx512((uint16_t *)to + k, both, past_caches);
    }
}

WITH_AVX512 static void bf16_avx512(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    for (uint64_t k = 0; k < count; k += 32) {
        const __m512i low = _mm512_castsi256_si512(bf16_of_sixteen(sixteen(from + k)));
        const __m512i both = _mm512_inserti64x4(low, bf16_of_sixteen(sixteen(from + k + 16)), 1);
        line_avx512((uint16_t *)to + k, both, past_caches);
    }
}

// ---- AVX2 -----------------------------------------------------------------------------------------------------

#define WITH_AVX2 __attribute__((target("arch=x86-64-v3")))

WITH_AVX2 static inline void half_line_avx2(void *to, __m256i half_line, bool past_caches)
{
    if (past_caches) {
        _mm256_stream_si256(to, half_line);
    } else {
        _mm256_store_si256(to, half_line);
    }
}

WITH_AVX2 static inline __m256 eight(const uint8_t *from)
{
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from)));
    return _mm256_fmadd_ps(x, _mm256_set1_ps(one_255th), _mm256_mul_ps(x, _mm256_set1_ps(one_255th_rest)));
}

WITH_AVX2 static void f32_avx2(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    for (uint64_t k = 0; k < count; k += 8) {
        half_line_avx2((float *)to + k, _mm256_castps_si256(eight(from + k)), past_caches);
    }
}

WITH_AVX2 static void f64_avx2(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    const __m256d r = _mm256_set1_pd(one_255th_wide), all = _mm256_set1_pd(255.0);
    for (uint64_t k = 0; k < count; k += 4) {
        int32_t four;
        memcpy(&four, from + k, sizeof four);
        const __m256d x = _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
        const __m256d q = _mm256_mul_pd(x, r);
        const __m256d left = _mm256_fnmadd_pd(q, all, x);
        half_line_avx2((double *)to + k, _mm256_castpd_si256(_mm256_fmadd_pd(left, r, q)), past_caches);
    }
}

WITH_AVX2 static void f16_avx2(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    for (uint64_t k = 0; k < count; k += 16) {
        const __m128i low = _mm256_cvtps_ph(eight(from + k), _MM_FROUND_TO_NEAREST_INT);
        const __m128i high = _mm256_cvtps_ph(eight(from + k + 8), _MM_FROUND_TO_NEAREST_INT);
        half_line_avx2((uint16_t *)to + k, _mm256_set_m128i(high, low), past_caches);
    }
}

WITH_AVX2 static inline __m256i upper_halves(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_srli_epi32(rounded, 16);
}

WITH_AVX2 static void bf16_avx2(void *to, const uint8_t *from, uint64_t count, bool past_caches)
{
    for (uint64_t k = 0; k < count; k += 16) {
        const __m256i low = upper_halves(eight(from + k)), high = upper_halves(eight(from + k + 8));
        // Packing works in each half of a register: its quarters come as 0 2 1 3.
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
        half_line_avx2((uint16_t *)to + k, packed, past_caches);
    }
}

static void stored_past_caches(void)
{
    _mm_sfence();
}

bool pixels_has(pixels_isa isa)
{
    return isa == PIXELS_PLAIN || (isa == PIXELS_AVX2 && __builtin_cpu_supports("x86-64-v3")) ||
           (isa == PIXELS_AVX512 && __builtin_cpu_supports("x86-64-v4"));
}

#define WRITERS(type) type##_plain, type##_avx2, type##_avx512
#else
#define WRITERS(type) type##_plain, type##_plain, type##_plain

static void stored_past_caches(void)
{
}

bool pixels_has(pixels_isa isa)
{
    return isa == PIXELS_PLAIN;
}
#endif

// ---- any ------------------------------------------------------------------------------------------------------

static const struct {
    uint32_t bytes;
    writer write[PIXELS_ISA_COUNT];
} types[] = {
    [PIXELS_F32] = {4, {WRITERS(f32)}},
    [PIXELS_F64] = {8, {WRITERS(f64)}},
    [PIXELS_F16] = {2, {WRITERS(f16)}},
    [PIXELS_BF16] = {2, {WRITERS(bf16)}},
};
_Static_assert(sizeof types / sizeof *types == PIXELS_TYPE_COUNT, "every type has its writers");

uint32_t pixels_value_bytes(pixels_type type)
{
    return types[type].bytes;
}

void pixels_write_with(pixels_isa isa, void *to, pixels_type type, const uint8_t *from, uint64_t count,
                       bool past_caches)
{
    const writer plain = types[type].write[PIXELS_PLAIN], fast = types[type].write[isa];
    const uint64_t bytes = types[type].bytes;
    const uint64_t before_line = (LINE_BYTES - (uintptr_t)to % LINE_BYTES) % LINE_BYTES / bytes;
    const uint64_t head = before_line < count ? before_line : count;
    const uint64_t middle = (count - head) / BLOCK * BLOCK, tail = head + middle;
    plain(to, from, head, false);
    fast((uint8_t *)to + head * bytes, from + head, middle, past_caches);
    plain((uint8_t *)to + tail * bytes, from + tail, count - tail, false);
    if (past_caches) {
        stored_past_caches();
    }
}

void pixels_write(void *to, pixels_type type, const uint8_t *from, uint64_t count, bool past_caches)
{
    const pixels_isa isa = pixels_has(PIXELS_AVX512) ? PIXELS_AVX512
                           : pixels_has(PIXELS_AVX2) ? PIXELS_AVX2
                                                     : PIXELS_PLAIN;
    pixels_write_with(isa, to, type, from, count, past_caches);
}

PIXELS_HOT static void of_three_planes(uint8_t *restrict to, const uint8_t *restrict planes, uint64_t pixels)
{
    for (uint64_t p = 0; p < pixels; p++) {
        to[p * 3] = planes[p];
        to[p * 3 + 1] = planes[pixels + p];
        to[p * 3 + 2] = planes[2 * pixels + p];
    }
}

void pixels_of_planes(uint8_t *to, const uint8_t *planes, uint64_t pixels, uint32_t channels)
{
    if (channels == 1) {
        memcpy(to, planes, pixels);
    } else if (channels == 3) {
        of_three_planes(to, planes, pixels);
    } else {
        for (uint32_t c = 0; c < channels; c++) {
            for (uint64_t p = 0; p < pixels; p++) {
                to[p * channels + c] = planes[c * pixels + p];
            }
        }
    }
}
