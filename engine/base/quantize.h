// SPDX-License-Identifier: Apache-2.0
// Weights of a product as whole numbers, with the float32 arithmetic of Keras 3 to the digit (keras/src/quantizers/quantizers.py of
// 3.15: abs_max_quantize, abs_max_quantize_grouped_with_zero_point, pack_int4, as Dense.quantize calls them), and what TFLite's
// converter was seen to do (TensorFlow 2.21, Optimize.DEFAULT: one scale for each unit). Rounding is half to even, TFLite's half away from zero.
//
//   int8   weights w[I,O] ≈ q[I,O] / scale[O]             scale = 127 / (max over I of |w| + 1e-7)
//   tflite weights w[I,O] ≈ q[I,O] * scale[O]             scale = max(max over I of |w|, 5e-7) / 127
//   rows   input   x[N,I] ≈ q[N,I] / scale[N]             the same of each row: what dynamic W8A8 makes of its input
//   int4   weights w[I,O] ≈ (q − zero[G,O]) * scale[G,O]  G groups of 128 rows, q in −8 … 7; the last group is filled with
//          zeros. Two columns lie in a byte, the first in its low half; of an odd O the last high half is 0.
//
// Of a table t[V,D] the rows are measured, as Embedding.quantize has it, and a product with tᵀ has a scale for each unit again:
//
//   int8   table   t[V,D] ≈ q[V,D] / scale[V]             as `rows`
//   int4   table   t[V,D] ≈ (q − zero[V,G]) * scale[V,G]  G groups of 128 places of a row, else as `int4`
//
// Where a value of a column, row or group is not finite its scale is NaN, and so is what comes of its numbers, which are the least
// that there are. Nothing overlaps. Any thread.
#ifndef BASE_QUANTIZE_H
#define BASE_QUANTIZE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { QUANTIZE_BLOCK = 128 };

uint64_t quantize_int4_groups(uint64_t rows);
uint64_t quantize_int4_pitch(uint64_t columns); // bytes of a row

// `largest`, which is not negative, or |value| where that is larger; a NaN is larger than all.
static inline float quantize_larger(float largest, float value)
{
    const float size = fabsf(value);
    uint32_t had, has;
    memcpy(&had, &largest, sizeof had);
    memcpy(&has, &size, sizeof has);
    return has > had ? size : largest;
}

float quantize_int8_scale(float largest);          // of a column or row whose largest |value| it is
int8_t quantize_int8_at(float value, float scale); // one number of it
void quantize_int8(const float *w, uint64_t rows, uint64_t columns, int8_t *q, float *scale);
void quantize_int8_rows(const float *x, uint64_t rows, uint64_t columns, int8_t *q, float *scale);
void quantize_int4(const float *w, uint64_t rows, uint64_t columns, uint8_t *q, float *scale, int8_t *zero);

void quantize_int4_rows(const float *w, uint64_t rows, uint64_t columns, uint8_t *q, float *scale,
                        int8_t *zero);

void dequantize_int8(const int8_t *q, const float *scale, uint64_t rows, uint64_t columns, float *w);
void dequantize_int4(const uint8_t *q, const float *scale, const int8_t *zero, uint64_t rows,
                     uint64_t columns, float *w);
void dequantize_int8_rows(const int8_t *q, const float *scale, uint64_t rows, uint64_t columns, float *w);
void dequantize_int4_rows(const uint8_t *q, const float *scale, const int8_t *zero, uint64_t rows,
                          uint64_t columns, float *w);
int8_t quantize_int4_at(const uint8_t *row, uint64_t column); // one number of a packed row

// TFLite's int8 weights: w ≈ q * scale[O].
void quantize_int8_tflite(const float *w, uint64_t rows, uint64_t columns, int8_t *q, float *scale);

#endif
