// SPDX-License-Identifier: Apache-2.0
#include "int8.h"

#include <math.h>
#include <string.h>

#include "base/quantize.h"
#include "gemm_tiles.h"
#include "simd.h"

#if CPU_HAS_CLONES
#include <immintrin.h>
#endif

enum { LEAST = -127 };

// ---- plain C --------------------------------------------------------------------------------------------------

static float plain_quantize(const float *x, int64_t depth, int16_t *a)
{
    float largest = 0;
    for (int64_t k = 0; k < depth; k++) {
        largest = quantize_larger(largest, x[k]);
    }
    const float scale = quantize_int8_scale(largest);
    for (int64_t k = 0; k < depth; k++) {
        a[k] = (int16_t)quantize_int8_at(x[k], scale);
    }
    for (int64_t k = depth; k % INT8_DEPTH_STEP != 0; k++) {
        a[k] = 0;
    }
    return 1 / scale;
}

static void plain_pack(const int8_t *b, int64_t depth, int64_t units, int64_t columns, int16_t *panels,
                       int64_t panel_step)
{
    for (int64_t k = 0; k < depth + depth % 2; k++) {
        for (int64_t c = 0; c < INT8_GROUP; c++) {
            int16_t *to = panels + c / INT8_COLUMNS * panel_step + k / 2 * 2 * INT8_COLUMNS;
            to[c % INT8_COLUMNS * 2 + k % 2] = k < depth && c < columns ? b[k * units + c] : 0;
        }
    }
}

static void plain_pack_turned(const int8_t *b, int64_t depth, int64_t pitch, int64_t columns, int16_t *panels,
                              int64_t panel_step)
{
    for (int64_t c = 0; c < INT8_GROUP; c++) {
        int16_t *to = panels + c / INT8_COLUMNS * panel_step + c % INT8_COLUMNS * 2;
        for (int64_t k = 0; k < depth + depth % 2; k++) {
            to[k / 2 * 2 * INT8_COLUMNS + k % 2] = k < depth && c < columns ? b[c * pitch + k] : 0;
        }
    }
}

static void plain_run(const int8_tile *t)
{
    for (int64_t r = 0; r < t->rows; r++) {
        int32_t *sum = t->sums + r * t->sums_row;
        if (!t->add) {
            memset(sum, 0, INT8_COLUMNS * sizeof *sum);
        }
        for (int64_t p = 0; p < t->pairs; p++) {
            const int16_t *x = t->a + r * t->a_row + 2 * p, *w = t->panel + p * 2 * INT8_COLUMNS;
            for (int c = 0; c < INT8_COLUMNS; c++) {
                sum[c] += x[0] * w[2 * c] + x[1] * w[2 * c + 1];
            }
        }
    }
}

static void plain_finish(const int8_tile *t, const int8_finish *f)
{
    for (int64_t r = 0; r < t->rows; r++) {
        const int32_t *sums = t->sums + r * t->sums_row;
        for (int64_t c = 0; c < f->columns; c++) {
            const float value = fmaf((float)sums[c], f->inverse[c] * f->row_inverse[r], f->bias[c]);
            const float raised = value < f->floor ? f->floor : value;
            f->y[r * f->y_row + c] = raised > f->ceiling ? f->ceiling : raised;
        }
    }
}

static const int8_tiles plain_tiles = {"plain",           plain_quantize, plain_pack,
                                       plain_pack_turned, plain_run,      plain_finish};

// ---- AVX2 -----------------------------------------------------------------------------------------------------

#if CPU_HAS_CLONES
#define AVX2        __attribute__((target("avx2,fma")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,fma")))

enum { LANES = 8, AHEAD = 16 }; // rows of B that are asked for before they are packed

// `count` of eight; the others are 0.
AVX2_INLINE __m256 load_some(const float *x, int64_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return count >= LANES ? _mm256_loadu_ps(x)
                          : _mm256_maskload_ps(x, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane));
}

// quantize_larger of all: as integers, which are in the order of the sizes with NaN on top.
AVX2_INLINE float largest_of(const float *x, int64_t depth)
{
    const __m256i size = _mm256_set1_epi32(INT32_MAX);
    __m256i most = _mm256_setzero_si256(), other = most;
    int64_t k = 0;
    for (; k + 2 * LANES <= depth; k += 2 * LANES) {
        most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + k)), size));
        other = _mm256_max_epi32(other,
                                 _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + k + LANES)), size));
    }
    for (; k < depth; k += LANES) {
        most =
            _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(load_some(x + k, depth - k)), size));
    }
    most = _mm256_max_epi32(most, other);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

// To the nearest; what is no number is the least, as in base/quantize.c.
AVX2_INLINE __m256i whole(__m256 x, __m256 scale)
{
    const __m256 nearest =
        _mm256_round_ps(_mm256_mul_ps(x, scale), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_cvtps_epi32(_mm256_max_ps(nearest, _mm256_set1_ps(LEAST)));
}

AVX2_INLINE __m256i in_order(__m256i low, __m256i high)
{
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

AVX2 static float avx2_quantize(const float *x, int64_t depth, int16_t *a)
{
    const float scale = quantize_int8_scale(largest_of(x, depth));
    const __m256 scales = _mm256_set1_ps(scale);
    int64_t k = 0;
    for (; k + INT8_DEPTH_STEP <= depth; k += INT8_DEPTH_STEP) {
        const __m256i low = whole(_mm256_loadu_ps(x + k), scales);
        const __m256i high = whole(_mm256_loadu_ps(x + k + LANES), scales);
        _mm256_storeu_si256((__m256i *)(void *)(a + k), in_order(low, high));
    }
    for (; k < depth; k++) {
        a[k] = quantize_int8_at(x[k], scale);
    }
    for (; k % INT8_DEPTH_STEP != 0; k++) {
        a[k] = 0;
    }
    return 1 / scale;
}

AVX2 static void avx2_pack(const int8_t *b, int64_t depth, int64_t units, int64_t columns, int16_t *panels,
                           int64_t panel_step)
{
    int64_t k = 0;
    for (; columns == INT8_GROUP && k + 2 <= depth; k += 2) {
        const int8_t *from = b + k * units;
        if (k + AHEAD + 2 <= depth) {
            _mm_prefetch((const char *)from + AHEAD * units, _MM_HINT_T0);
            _mm_prefetch((const char *)from + (AHEAD + 1) * units, _MM_HINT_T0);
        }
        for (int64_t n = 0; n < INT8_PANELS; n++) {
            const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(from + n * INT8_COLUMNS));
            const __m128i y =
                _mm_loadu_si128((const __m128i *)(const void *)(from + units + n * INT8_COLUMNS));
            __m256i *to = (__m256i *)(void *)(panels + n * panel_step + k * INT8_COLUMNS);
            _mm256_storeu_si256(to, _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y)));
            _mm256_storeu_si256(to + 1, _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(x, y)));
        }
    }
    if (k < depth) {
        plain_pack(b + k * units, depth - k, units, columns, panels + k * INT8_COLUMNS, panel_step);
    }
}

// Eight rows of b, eight pairs of numbers each, become eight lines of one pair of every row.
AVX2_INLINE void turn_pairs(const int8_t *b, int64_t pitch, int16_t *to)
{
    __m128i x[LANES], y[LANES];
    for (int r = 0; r < LANES; r++) {
        x[r] = _mm_loadu_si128((const __m128i *)(const void *)(b + r * pitch));
    }
    for (int r = 0; r < LANES; r += 2) {
        y[r] = _mm_unpacklo_epi16(x[r], x[r + 1]);
        y[r + 1] = _mm_unpackhi_epi16(x[r], x[r + 1]);
    }
    for (int r = 0; r < LANES; r += 4) {
        for (int half = 0; half < 2; half++) {
            x[r + 2 * half] = _mm_unpacklo_epi32(y[r + half], y[r + 2 + half]);
            x[r + 2 * half + 1] = _mm_unpackhi_epi32(y[r + half], y[r + 2 + half]);
        }
    }
    for (int p = 0; p < LANES / 2; p++) {
        __m256i *line = (__m256i *)(void *)(to + (int64_t)4 * p * INT8_COLUMNS);
        _mm256_storeu_si256(line, _mm256_cvtepi8_epi16(_mm_unpacklo_epi64(x[p], x[p + 4])));
        line = (__m256i *)(void *)(to + (int64_t)(4 * p + 2) * INT8_COLUMNS);
        _mm256_storeu_si256(line, _mm256_cvtepi8_epi16(_mm_unpackhi_epi64(x[p], x[p + 4])));
    }
}

AVX2 static void avx2_pack_turned(const int8_t *b, int64_t depth, int64_t pitch, int64_t columns,
                                  int16_t *panels, int64_t panel_step)
{
    int64_t k = 0;
    for (; columns == INT8_GROUP && k + 2 * LANES <= depth; k += 2 * LANES) {
        for (int64_t c = 0; c < INT8_GROUP; c += LANES) {
            int16_t *to = panels + c / INT8_COLUMNS * panel_step + k * INT8_COLUMNS;
            turn_pairs(b + c * pitch + k, pitch, to + c % INT8_COLUMNS * 2);
        }
    }
    if (k < depth) {
        plain_pack_turned(b + k, depth - k, pitch, columns, panels + k * INT8_COLUMNS, panel_step);
    }
}

AVX2_INLINE void avx2_tile(const int8_tile *t, const int rows)
{
    __m256i sum[INT8_ROWS][2];
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    }
    const int16_t *a = t->a, *panel = t->panel;
    const int64_t a_row = t->a_row, pairs = t->pairs;
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
        __m256i *to = (__m256i *)(void *)(t->sums + r * t->sums_row);
        if (t->add) {
            sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_loadu_si256(to));
            sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_loadu_si256(to + 1));
        }
        _mm256_storeu_si256(to, sum[r][0]);
        _mm256_storeu_si256(to + 1, sum[r][1]);
    }
}

AVX2 static void avx2_run(const int8_tile *t)
{
    switch (t->rows) {
    case 1:
        avx2_tile(t, 1);
        break;
    case 2:
        avx2_tile(t, 2);
        break;
    case 3:
        avx2_tile(t, 3);
        break;
    default:
        avx2_tile(t, INT8_ROWS);
        break;
    }
}

AVX2_INLINE __m256 finished(const int32_t *sums, const int8_finish *f, __m256 scale, __m256 bias)
{
    const __m256 sum = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)sums));
    const __m256 value = _mm256_fmadd_ps(sum, scale, bias);
    return _mm256_min_ps(_mm256_set1_ps(f->ceiling), _mm256_max_ps(_mm256_set1_ps(f->floor), value));
}

AVX2 static void avx2_finish(const int8_tile *t, const int8_finish *f)
{
    const __m256 inverse[] = {_mm256_loadu_ps(f->inverse), _mm256_loadu_ps(f->inverse + LANES)};
    const __m256 bias[] = {_mm256_loadu_ps(f->bias), _mm256_loadu_ps(f->bias + LANES)};
    for (int64_t r = 0; r < t->rows; r++) {
        const __m256 row = _mm256_set1_ps(f->row_inverse[r]);
        const int32_t *sums = t->sums + r * t->sums_row;
        float line[INT8_COLUMNS], *y = f->y + r * f->y_row, *to = f->columns == INT8_COLUMNS ? y : line;
        _mm256_storeu_ps(to, finished(sums, f, _mm256_mul_ps(inverse[0], row), bias[0]));
        _mm256_storeu_ps(to + LANES, finished(sums + LANES, f, _mm256_mul_ps(inverse[1], row), bias[1]));
        if (to == line) {
            memcpy(y, line, (size_t)f->columns * sizeof *y);
        }
    }
}

static const int8_tiles avx2_tiles = {"avx2",           avx2_quantize, avx2_pack,
                                      avx2_pack_turned, avx2_run,      avx2_finish};
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
