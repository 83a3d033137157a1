// SPDX-License-Identifier: Apache-2.0
#include "int8.h"

#include <string.h>

#include "gemm_tiles.h"
#include "simd.h"

#if CPU_HAS_CLONES
#include <immintrin.h>
#endif

// ---- plain C --------------------------------------------------------------------------------------------------

static void plain_pack(const int8_t *b, int64_t depth, int64_t units, int64_t columns, int16_t *panel)
{
    for (int64_t k = 0; k < depth + depth % 2; k++) {
        int16_t *to = panel + k / 2 * 2 * INT8_COLUMNS + k % 2;
        for (int64_t c = 0; c < INT8_COLUMNS; c++) {
            to[2 * c] = k < depth && c < columns ? b[k * units + c] : 0;
        }
    }
}

static void plain_run(const int16_t *a, int64_t a_row, const int16_t *panel, int64_t pairs, int64_t rows,
                      int32_t *sums)
{
    memset(sums, 0, (size_t)rows * INT8_COLUMNS * sizeof *sums);
    for (int64_t r = 0; r < rows; r++) {
        int32_t *sum = sums + r * INT8_COLUMNS;
        for (int64_t p = 0; p < pairs; p++) {
            const int16_t *x = a + r * a_row + 2 * p, *w = panel + p * 2 * INT8_COLUMNS;
            for (int c = 0; c < INT8_COLUMNS; c++) {
                sum[c] += x[0] * w[2 * c] + x[1] * w[2 * c + 1];
            }
        }
    }
}

static const int8_tiles plain_tiles = {"plain", plain_pack, plain_run};

// ---- AVX2 -----------------------------------------------------------------------------------------------------

#if CPU_HAS_CLONES
#define AVX2        __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2")))

AVX2 static void avx2_pack(const int8_t *b, int64_t depth, int64_t units, int64_t columns, int16_t *panel)
{
    int64_t k = 0;
    for (; columns == INT8_COLUMNS && k + 2 <= depth; k += 2) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(b + k * units));
        const __m128i y = _mm_loadu_si128((const __m128i *)(const void *)(b + (k + 1) * units));
        __m256i *to = (__m256i *)(void *)(panel + k * INT8_COLUMNS);
        _mm256_storeu_si256(to, _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y)));
        _mm256_storeu_si256(to + 1, _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(x, y)));
    }
    if (k < depth) {
        plain_pack(b + k * units, depth - k, units, columns, panel + k * INT8_COLUMNS);
    }
}

AVX2_INLINE void avx2_tile(const int16_t *a, int64_t a_row, const int16_t *panel, int64_t pairs,
                           int32_t *sums, const int rows)
{
    __m256i sum[INT8_ROWS][2];
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    }
    for (int64_t p = 0; p < pairs; p++) {
        const __m256i *w = (const __m256i *)(const void *)(panel + p * 2 * INT8_COLUMNS);
        const __m256i low = _mm256_loadu_si256(w), high = _mm256_loadu_si256(w + 1);
        for (int r = 0; r < rows; r++) {
            int32_t pair;
            memcpy(&pair, a + r * a_row + 2 * p, sizeof pair);
            const __m256i x = _mm256_set1_epi32(pair);
            sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(x, low));
            sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(x, high));
        }
    }
    for (int r = 0; r < rows; r++) {
        __m256i *to = (__m256i *)(void *)(sums + r * INT8_COLUMNS);
        _mm256_storeu_si256(to, sum[r][0]);
        _mm256_storeu_si256(to + 1, sum[r][1]);
    }
}

AVX2 static void avx2_run(const int16_t *a, int64_t a_row, const int16_t *panel, int64_t pairs, int64_t rows,
                          int32_t *sums)
{
    switch (rows) {
    case 1:
        avx2_tile(a, a_row, panel, pairs, sums, 1);
        break;
    case 2:
        avx2_tile(a, a_row, panel, pairs, sums, 2);
        break;
    case 3:
        avx2_tile(a, a_row, panel, pairs, sums, 3);
        break;
    default:
        avx2_tile(a, a_row, panel, pairs, sums, INT8_ROWS);
        break;
    }
}

static const int8_tiles avx2_tiles = {"avx2", avx2_pack, avx2_run};
#endif

const int8_tiles *int8_tiles_here(void)
{
#if CPU_HAS_CLONES
    if (gemm_tiles_here()->lanes >= 8) {
        return &avx2_tiles;
    }
#endif
    return &plain_tiles;
}
