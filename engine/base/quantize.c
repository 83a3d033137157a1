// SPDX-License-Identifier: Apache-2.0
#include "base/quantize.h"

#include <math.h>
#include <stdbool.h>

enum { INT8_MOST = 127, INT4_LEAST = -8, INT4_MOST = 7 };

static const float epsilon = 1e-7f, tflite_least = 5e-7f;

uint64_t quantize_int4_groups(uint64_t rows)
{
    return (rows + QUANTIZE_BLOCK - 1) / QUANTIZE_BLOCK;
}

uint64_t quantize_int4_pitch(uint64_t columns)
{
    return (columns + 1) / 2;
}

// A NaN becomes the least.
static float clip(float x, float least, float most)
{
    return x >= least ? x > most ? most : x : least;
}

int8_t quantize_int8_at(float value, float scale)
{
    return (int8_t)clip(rintf(value * scale), -INT8_MOST, INT8_MOST);
}

float quantize_int8_scale(float largest)
{
    return isfinite(largest) ? (float)INT8_MOST / (largest + epsilon) : NAN;
}

static void measure_columns(const float *w, uint64_t rows, uint64_t columns, float *largest)
{
    for (uint64_t c = 0; c < columns; c++) {
        largest[c] = 0;
    }
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            largest[c] = quantize_larger(largest[c], w[r * columns + c]);
        }
    }
}

void quantize_int8(const float *w, uint64_t rows, uint64_t columns, int8_t *q, float *scale)
{
    measure_columns(w, rows, columns, scale);
    for (uint64_t c = 0; c < columns; c++) {
        scale[c] = quantize_int8_scale(scale[c]);
    }
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            q[r * columns + c] = quantize_int8_at(w[r * columns + c], scale[c]);
        }
    }
}

void quantize_int8_rows(const float *x, uint64_t rows, uint64_t columns, int8_t *q, float *scale)
{
    for (uint64_t r = 0; r < rows; r++) {
        const float *from = x + r * columns;
        float largest = 0;
        for (uint64_t c = 0; c < columns; c++) {
            largest = quantize_larger(largest, from[c]);
        }
        scale[r] = quantize_int8_scale(largest);
        for (uint64_t c = 0; c < columns; c++) {
            q[r * columns + c] = quantize_int8_at(from[c], scale[r]);
        }
    }
}

void dequantize_int8(const int8_t *q, const float *scale, uint64_t rows, uint64_t columns, float *w)
{
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            w[r * columns + c] = (float)q[r * columns + c] / scale[c];
        }
    }
}

void dequantize_int8_rows(const int8_t *q, const float *scale, uint64_t rows, uint64_t columns, float *w)
{
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            w[r * columns + c] = (float)q[r * columns + c] / scale[r];
        }
    }
}

// ---- int4 -----------------------------------------------------------------------------------------------------

int8_t quantize_int4_at(const uint8_t *row, uint64_t column)
{
    const int half = row[column / 2] >> (column % 2 * 4) & 0xf;
    return (int8_t)(half > INT4_MOST ? half - 16 : half);
}

static void put_int4(uint8_t *row, uint64_t column, float value)
{
    const uint8_t half = (uint8_t)((int)value & 0xf);
    row[column / 2] = (uint8_t)(column % 2 == 0 ? half : row[column / 2] | half << 4);
}

// Scale and zero point of a group of `count` values, `step` apart.
static void measure_int4(const float *w, uint64_t count, uint64_t step, float *scale, float *zero)
{
    float least = w[0], most = w[0];
    bool finite = true;
    for (uint64_t k = 0; k < count; k++) {
        finite = finite && isfinite(w[k * step]);
        least = fminf(least, w[k * step]);
        most = fmaxf(most, w[k * step]);
    }
    if (count < QUANTIZE_BLOCK) {
        least = fminf(least, 0);
        most = fmaxf(most, 0);
    }
    *scale = finite ? (most - least + epsilon) / (float)(INT4_MOST - INT4_LEAST) : NAN;
    *zero = clip(rintf(-least / *scale) + (float)INT4_LEAST, INT4_LEAST, INT4_MOST);
}

void quantize_int4(const float *w, uint64_t rows, uint64_t columns, uint8_t *q, float *scale, int8_t *zero)
{
    const uint64_t pitch = quantize_int4_pitch(columns);
    for (uint64_t first = 0; first < rows; first += QUANTIZE_BLOCK) {
        const uint64_t count = rows - first < QUANTIZE_BLOCK ? rows - first : QUANTIZE_BLOCK;
        const uint64_t group = first / QUANTIZE_BLOCK * columns;
        for (uint64_t c = 0; c < columns; c++) {
            const float *from = w + first * columns + c;
            float shift = 0;
            measure_int4(from, count, columns, &scale[group + c], &shift);
            zero[group + c] = (int8_t)shift;
            for (uint64_t r = 0; r < count; r++) {
                const float value = rintf(from[r * columns] / scale[group + c]) + shift;
                put_int4(q + (first + r) * pitch, c, clip(value, INT4_LEAST, INT4_MOST));
            }
        }
    }
}

void quantize_int4_rows(const float *w, uint64_t rows, uint64_t columns, uint8_t *q, float *scale,
                        int8_t *zero)
{
    const uint64_t pitch = quantize_int4_pitch(columns), groups = quantize_int4_groups(columns);
    for (uint64_t g = 0; g < rows * groups; g++) {
        const uint64_t row = g / groups, first = g % groups * QUANTIZE_BLOCK;
        const uint64_t count = columns - first < QUANTIZE_BLOCK ? columns - first : QUANTIZE_BLOCK;
        const float *from = w + row * columns + first;
        float shift = 0;
        measure_int4(from, count, 1, &scale[g], &shift);
        zero[g] = (int8_t)shift;
        for (uint64_t c = 0; c < count; c++) {
            const float value = rintf(from[c] / scale[g]) + shift;
            put_int4(q + row * pitch, first + c, clip(value, INT4_LEAST, INT4_MOST));
        }
    }
}

void dequantize_int4(const uint8_t *q, const float *scale, const int8_t *zero, uint64_t rows,
                     uint64_t columns, float *w)
{
    const uint64_t pitch = quantize_int4_pitch(columns);
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t group = r / QUANTIZE_BLOCK * columns;
        for (uint64_t c = 0; c < columns; c++) {
            const int step = quantize_int4_at(q + r * pitch, c) - zero[group + c];
            w[r * columns + c] = (float)step * scale[group + c];
        }
    }
}

void dequantize_int4_rows(const uint8_t *q, const float *scale, const int8_t *zero, uint64_t rows,
                          uint64_t columns, float *w)
{
    const uint64_t pitch = quantize_int4_pitch(columns), groups = quantize_int4_groups(columns);
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            const uint64_t group = r * groups + c / QUANTIZE_BLOCK;
            const int step = quantize_int4_at(q + r * pitch, c) - zero[group];
            w[r * columns + c] = (float)step * scale[group];
        }
    }
}

// ---- TFLite ---------------------------------------------------------------------------------------------------

void quantize_int8_tflite(const float *w, uint64_t rows, uint64_t columns, int8_t *q, float *scale)
{
    measure_columns(w, rows, columns, scale);
    for (uint64_t c = 0; c < columns; c++) {
        scale[c] = isfinite(scale[c]) ? fmaxf(scale[c], tflite_least) / (float)INT8_MOST : NAN;
    }
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            q[r * columns + c] = (int8_t)clip(roundf(w[r * columns + c] / scale[c]), -INT8_MOST, INT8_MOST);
        }
    }
}
