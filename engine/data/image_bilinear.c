// SPDX-License-Identifier: Apache-2.0
// Bilinear resizing: two source rows become a line of fractions of a level, its neighbours become pixels.
#include <string.h>

#include "data/image_rows.h"

#if IMAGE_X86
#include <immintrin.h>
#endif

enum {
    WEIGHT_BITS = 14, // of the share of the second of two neighbours
    WEIGHT_ONE = 1 << WEIGHT_BITS,
    LINE_BITS =
        7, // of a level's fraction in the line between: 15 in all, so that signed products of 16 bits hold
    LINE_DROPS = WEIGHT_BITS - LINE_BITS,
    OUT_DROPS = WEIGHT_BITS + LINE_BITS,
    LINE_PADDING = 8, // numbers behind the last pixel that are read, and count for nothing
};
_Static_assert(sizeof(uint16_t) * (3 * IMAGE_SIDE_MOST + LINE_PADDING) <= IMAGE_LINE_BYTES,
               "a line has its room");

// Where pixel k of `wanted` lies among `had`: between *at and the next, *weight of WEIGHT_ONE towards the next.
static void find_neighbours(uint32_t k, uint32_t wanted, uint32_t had, uint32_t *at, uint32_t *weight)
{
    const int64_t two_wanted = 2 * (int64_t)wanted;
    const int64_t place = (2 * (int64_t)k + 1) * had - wanted; // (k + 0.5) had / wanted - 0.5, times 2 wanted
    if (place <= 0) {
        *at = *weight = 0;
        return;
    }
    *at = (uint32_t)(place / two_wanted);
    *weight = (uint32_t)((place % two_wanted * WEIGHT_ONE + wanted) / two_wanted);
    if (*at >= had - 1) {
        *at = had - 1;
        *weight = 0;
    }
}

// What a neighbour gives, of WEIGHT_ONE: the first in the lower half, the second in the upper one.
static uint32_t shares_of(uint32_t weight)
{
    return weight << 16 | (WEIGHT_ONE - weight);
}

// From number k on.
IMAGE_HOT static void blend_rows(uint16_t *restrict line, const uint8_t *top, const uint8_t *bottom,
                                 uint32_t weight, uint32_t k, uint32_t count)
{
    const uint32_t first = WEIGHT_ONE - weight;
    for (; k < count; k++) {
        line[k] = (uint16_t)((top[k] * first + bottom[k] * weight + (1u << (LINE_DROPS - 1))) >> LINE_DROPS);
    }
}

static uint8_t between(uint32_t left, uint32_t right, uint32_t shares)
{
    return (uint8_t)((left * (shares & 0xffff) + right * (shares >> 16) + (1u << (OUT_DROPS - 1))) >>
                     OUT_DROPS);
}

// From pixel x on. line has one pixel more than the source: a weight of 0 still multiplies it.
static void blend_pixels(uint8_t *restrict out, const uint16_t *restrict line, const image_scratch *scratch,
                         uint32_t x, uint32_t width)
{
    for (out += 3 * x; x < width; x++, out += 3) {
        const uint16_t *from = line + scratch->at[x];
        const uint32_t shares = scratch->weight[x];
        out[0] = between(from[0], from[3], shares);
        out[1] = between(from[1], from[4], shares);
        out[2] = between(from[2], from[5], shares);
    }
}

static void blend_grey_pixels(uint8_t *restrict out, const uint16_t *restrict line,
                              const image_scratch *scratch, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++) {
        const uint16_t *from = line + scratch->at[x];
        out[x] = between(from[0], from[1], scratch->weight[x]);
    }
}

#if IMAGE_X86
#define IMAGE_AVX2 __attribute__((target("arch=x86-64-v3"), optimize("O3")))

// Sixteen numbers, each as the neighbours above and below side by side, times their shares.
IMAGE_AVX2 static inline __m256i blend_sixteen(const uint8_t *top, const uint8_t *bottom, __m256i shares)
{
    const __m256i round = _mm256_set1_epi32(1 << (LINE_DROPS - 1));
    const __m256i above = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)top));
    const __m256i below = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)bottom));
    const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(above, below), shares);
    const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(above, below), shares);
    return _mm256_packs_epi32(_mm256_srli_epi32(_mm256_add_epi32(low, round), LINE_DROPS),
                              _mm256_srli_epi32(_mm256_add_epi32(high, round), LINE_DROPS));
}

// Returns how many.
IMAGE_AVX2 static uint32_t blend_sixteens(uint16_t *line, const uint8_t *top, const uint8_t *bottom,
                                          uint32_t weight, uint32_t count)
{
    const __m256i shares = _mm256_set1_epi32((int)shares_of(weight));
    uint32_t k = 0;
    for (; k + 16 <= count; k += 16) {
        _mm256_storeu_si256((void *)(line + k), blend_sixteen(top + k, bottom + k, shares));
    }
    return k;
}

// Two pixels: of each the neighbours' channels side by side, times their shares: four sums of 32 bits, the last of them nothing.
IMAGE_AVX2 static inline __m256i blend_two(const uint16_t *line, const uint32_t *at, const uint32_t *shares)
{
    const __m256i pairs =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1));
    const __m256i each = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(line + at[0]))),
                                _mm_loadu_si128((const void *)(line + at[1])), 1);
    const __m256i weights =
        _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(_mm_loadl_epi64((const void *)shares)), each);
    const __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi8(both, pairs), weights),
                                         _mm256_set1_epi32(1 << (OUT_DROPS - 1)));
    return _mm256_srli_epi32(sum, OUT_DROPS);
}

// Four pixels at once, as long as the 16 bytes that are written stay within the row. Returns how many.
IMAGE_AVX2 static uint32_t blend_fours(uint8_t *out, const uint16_t *line, const image_scratch *scratch,
                                       uint32_t width)
{
    const __m128i tight = _mm_setr_epi8(0, 1, 2, 8, 9, 10, 4, 5, 6, 12, 13, 14, -1, -1, -1, -1);
    const uint32_t *at = scratch->at, *shares = scratch->weight;
    uint32_t x = 0;
    for (; x + 6 <= width; x += 4) {
        // Pixels 0 and 2 in one half, 1 and 3 in the other.
        const __m256i words = _mm256_packs_epi32(blend_two(line, at + x, shares + x),
                                                 blend_two(line, at + x + 2, shares + x + 2));
        const __m128i bytes =
            _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((void *)(out + 3 * x), _mm_shuffle_epi8(bytes, tight));
    }
    return x;
}

static bool has_vectors(void)
{
    return __builtin_cpu_supports("x86-64-v3");
}
#else
static uint32_t blend_sixteens(uint16_t *line, const uint8_t *top, const uint8_t *bottom, uint32_t weight,
                               uint32_t count)
{
    (void)line, (void)top, (void)bottom, (void)weight, (void)count;
    return 0;
}

static uint32_t blend_fours(uint8_t *out, const uint16_t *line, const image_scratch *scratch, uint32_t width)
{
    (void)out, (void)line, (void)scratch, (void)width;
    return 0;
}

static bool has_vectors(void)
{
    return false;
}
#endif

static void blend_line(uint8_t *out, const uint16_t *line, const image_scratch *scratch, uint32_t width,
                       uint32_t channels)
{
    if (channels == 1) {
        blend_grey_pixels(out, line, scratch, width);
    } else {
        blend_pixels(out, line, scratch, has_vectors() ? blend_fours(out, line, scratch, width) : 0, width);
    }
}

hr_status image_bilinear(image_rows *rows, const image_want *want, const image_scratch *scratch, uint8_t *out,
                         hr_err *err)
{
    const uint32_t count = rows->width * rows->channels;
    const bool vectors = has_vectors();
    uint16_t *line = scratch->line;
    for (uint32_t x = 0; x < want->width; x++) {
        uint32_t at, weight;
        find_neighbours(x, want->width, rows->width, &at, &weight);
        scratch->at[x] = at * rows->channels;
        scratch->weight[x] = shares_of(weight);
    }
    memset(line + count, 0, sizeof *line * LINE_PADDING);
    for (uint32_t y = 0; y < want->height; y++) {
        uint32_t at, weight;
        const uint8_t *top, *bottom;
        find_neighbours(y, want->height, rows->height, &at, &weight);
        HR_TRY(image_row(rows, weight > 0 ? at + 1 : at, &bottom, err));
        HR_TRY(image_row(rows, at, &top, err));
        blend_rows(line, top, bottom, weight, vectors ? blend_sixteens(line, top, bottom, weight, count) : 0,
                   count);
        blend_line(out, line, scratch, want->width, rows->channels);
        out += (uint64_t)want->width * rows->channels;
    }
    return image_finish_rows(rows, err);
}
