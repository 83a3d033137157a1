// SPDX-License-Identifier: Apache-2.0
// Dense layers and lookups with whole-number weights, and what makes the numbers, with the arithmetic of base/quantize.h: every product is
// rounded by itself. Largest values of floats that are not negative are largest values of their bits, a NaN's among them.
#include "kernel.cuh"
#include "quantized_args.h"

#define INT4_BLOCK 128 // rows that have one scale

__device__ __forceinline__ bool is_finite(float x)
{
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

// A NaN becomes the least.
__device__ __forceinline__ float clipped(float x, float least, float most)
{
    return x >= least ? x > most ? most : x : least;
}

__device__ __forceinline__ float int8_scale(float largest)
{
    return is_finite(largest) ? 127.0f / (largest + 1e-7f) : __uint_as_float(0x7fc00000u);
}

__device__ __forceinline__ int8_t int8_at(float value, float scale)
{
    return (int8_t)clipped(rintf(product(value, scale)), -127.0f, 127.0f);
}

__device__ __forceinline__ float cut(float value, float floor, float ceiling)
{
    const float raised = value < floor ? floor : value;
    return raised > ceiling ? ceiling : raised;
}

// ---- weights to whole numbers -------------------------------------------------------------------------------------

// A thread keeps to one column: it steps by as many elements as threads fill whole rows.
__device__ __forceinline__ int64_t column_step(int64_t columns)
{
    const int64_t width = grid_width();
    return width < columns ? columns : width / columns * columns;
}

extern "C" __global__ void quantize_int8_largest(quantize_args a)
{
    const int64_t step = column_step(a.columns), count = a.rows * a.columns;
    for (int64_t first = grid_thread(); first < step; first += grid_width()) {
        uint32_t largest = 0;
        for (int64_t i = first; i < count; i += step) {
            const uint32_t size = __float_as_uint(fabsf(a.w[i]));
            largest = size > largest ? size : largest;
        }
        if (largest > 0) {
            atomicMax(&a.largest[first % a.columns], largest);
        }
    }
}

extern "C" __global__ void quantize_int8_numbers(quantize_args a)
{
    const int64_t step = column_step(a.columns), count = a.rows * a.columns;
    int8_t *q = static_cast<int8_t *>(a.q);
    for (int64_t first = grid_thread(); first < step; first += grid_width()) {
        const float scale = int8_scale(__uint_as_float(a.largest[first % a.columns]));
        if (first < a.columns) {
            a.scale[first] = scale;
        }
        for (int64_t i = first; i < count; i += step) {
            q[i] = int8_at(a.w[i], scale);
        }
    }
}

// A block makes a row of a table at a time. What is no number counts as infinite: either has no scale.
extern "C" __global__ void quantize_int8_rows(quantize_args a)
{
    SHARED float room[WARP];
    int8_t *q = static_cast<int8_t *>(a.q);
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const float *w = a.w + r * a.columns;
        float largest = 0.0f;
        for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
            largest = fmaxf(largest, is_finite(w[c]) ? fabsf(w[c]) : INFINITY);
        }
        const float scale = int8_scale(block_max(largest, room));
        for (int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
            q[r * a.columns + c] = int8_at(w[c], scale);
        }
        if (threadIdx.x == 0) {
            a.scale[r] = scale;
        }
    }
}

struct int4_column {
    float scale, shift;
};

// Of `count` values, `step` apart.
__device__ __forceinline__ int4_column int4_measure(const float *w, int64_t count, int64_t step)
{
    float least = w[0], most = least;
    bool finite = true;
    for (int64_t k = 0; k < count; k++) {
        const float value = w[k * step];
        finite = finite && is_finite(value);
        least = fminf(least, value);
        most = fmaxf(most, value);
    }
    if (count < INT4_BLOCK) {
        least = fminf(least, 0.0f);
        most = fmaxf(most, 0.0f);
    }
    int4_column of;
    of.scale = finite ? (most - least + 1e-7f) / 15.0f : __uint_as_float(0x7fc00000u);
    of.shift = clipped(rintf(-least / of.scale) - 8.0f, -8.0f, 7.0f);
    return of;
}

__device__ __forceinline__ int int4_at(float value, const int4_column &of)
{
    return (int)clipped(rintf(value / of.scale) + of.shift, -8.0f, 7.0f) & 0xf;
}

// A thread makes the bytes of two columns of a group.
extern "C" __global__ void quantize_int4_groups(quantize_args a)
{
    const int64_t pitch = (a.columns + 1) / 2, groups = (a.rows + INT4_BLOCK - 1) / INT4_BLOCK;
    uint8_t *q = static_cast<uint8_t *>(a.q);
    for (int64_t i = grid_thread(); i < groups * pitch; i += grid_width()) {
        const int64_t group = i / pitch, at = i % pitch, first = group * INT4_BLOCK;
        const int64_t count = a.rows - first < INT4_BLOCK ? a.rows - first : INT4_BLOCK;
        int4_column of[2];
        const int columns = 2 * at + 1 < a.columns ? 2 : 1;
        for (int k = 0; k < columns; k++) {
            of[k] = int4_measure(a.w + first * a.columns + 2 * at + k, count, a.columns);
            a.scale[group * a.columns + 2 * at + k] = of[k].scale;
            a.zero[group * a.columns + 2 * at + k] = (int8_t)of[k].shift;
        }
        for (int64_t r = first; r < first + count; r++) {
            int halves = 0;
            for (int k = 0; k < columns; k++) {
                halves |= int4_at(a.w[r * a.columns + 2 * at + k], of[k]) << 4 * k;
            }
            q[r * pitch + at] = (uint8_t)halves;
        }
    }
}

// A thread makes the bytes of a group of a row of a table.
extern "C" __global__ void quantize_int4_rows(quantize_args a)
{
    const int64_t pitch = (a.columns + 1) / 2, groups = (a.columns + INT4_BLOCK - 1) / INT4_BLOCK;
    uint8_t *q = static_cast<uint8_t *>(a.q);
    for (int64_t i = grid_thread(); i < a.rows * groups; i += grid_width()) {
        const int64_t row = i / groups, first = i % groups * INT4_BLOCK;
        const int64_t count = a.columns - first < INT4_BLOCK ? a.columns - first : INT4_BLOCK;
        const float *w = a.w + row * a.columns + first;
        const int4_column of = int4_measure(w, count, 1);
        a.scale[i] = of.scale;
        a.zero[i] = (int8_t)of.shift;
        for (int64_t k = 0; k < count; k += 2) {
            const int high = k + 1 < count ? int4_at(w[k + 1], of) : 0;
            q[row * pitch + (first + k) / 2] = (uint8_t)(int4_at(w[k], of) | high << 4);
        }
    }
}

// ---- int8 products ------------------------------------------------------------------------------------------------

// A block makes a row at a time. What is no number counts as infinite: either has no scale.
extern "C" __global__ void int8_rows(int8_args a)
{
    SHARED float room[WARP];
    for (int64_t r = blockIdx.x; r < a.rows_whole; r += gridDim.x) {
        const float *x = a.x + r * a.depth;
        const int64_t depth = r < a.rows ? a.depth : 0;
        float largest = 0.0f;
        for (int64_t k = threadIdx.x; k < depth; k += blockDim.x) {
            const float value = x[k];
            largest = fmaxf(largest, is_finite(value) ? fabsf(value) : INFINITY);
        }
        const float scale = int8_scale(block_max(largest, room));
        for (int64_t k = threadIdx.x; k < a.depth_whole; k += blockDim.x) {
            a.numbers[r * a.depth_whole + k] = k < depth ? int8_at(x[k], scale) : (int8_t)0;
        }
        if (threadIdx.x == 0) {
            a.row_inverse[r] = 1.0f / scale;
        }
    }
}

// w becomes turned[units,depth], a table's too, filled up: the library's whole-number kernels read both operands along depth.
extern "C" __global__ void int8_turn(int8_args a)
{
    SHARED int8_t tile[QUANTIZED_TURN][QUANTIZED_TURN + 4];
    const int64_t down = (a.depth_whole + QUANTIZED_TURN - 1) / QUANTIZED_TURN;
    const int64_t across = (a.units_whole + QUANTIZED_TURN - 1) / QUANTIZED_TURN;
    for (int64_t t = blockIdx.x; t < down * across; t += gridDim.x) {
        const int64_t depth = t / across * QUANTIZED_TURN, unit = t % across * QUANTIZED_TURN;
        for (int i = threadIdx.x; i < QUANTIZED_TURN * QUANTIZED_TURN; i += blockDim.x) {
            const int64_t k = depth + i / QUANTIZED_TURN, n = unit + i % QUANTIZED_TURN;
            const bool is = k < a.depth && n < a.units;
            tile[i / QUANTIZED_TURN][i % QUANTIZED_TURN] = is ? a.w[k * a.w_depth + n * a.w_unit] : (int8_t)0;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < QUANTIZED_TURN * QUANTIZED_TURN; i += blockDim.x) {
            const int64_t n = unit + i / QUANTIZED_TURN, k = depth + i % QUANTIZED_TURN;
            if (n < a.units_whole && k < a.depth_whole) {
                a.turned[n * a.depth_whole + k] = tile[i % QUANTIZED_TURN][i / QUANTIZED_TURN];
            }
        }
        __syncthreads();
    }
}

__device__ __forceinline__ float int8_value(const int8_args &a, int32_t sum, int64_t row, int64_t unit)
{
    const float value = (float)sum * (1.0f / a.scale[unit] * a.row_inverse[row]);
    return cut(a.bias == nullptr ? value : value + a.bias[unit], a.floor, a.ceiling);
}

extern "C" __global__ void int8_finish(int8_args a)
{
    for (int64_t i = grid_thread(); i < a.rows * a.units; i += grid_width()) {
        const int64_t row = i / a.units, unit = i % a.units;
        a.y[i] = int8_value(a, a.sums[row * a.units_whole + unit], row, unit);
    }
}

// sum and the products of four signed bytes each
__device__ __forceinline__ int32_t dot4(int32_t a, int32_t b, int32_t sum)
{
#ifdef HEADROOM_EMULATED
    for (int k = 0; k < 4; k++) {
        sum += (int8_t)((uint32_t)a >> 8 * k) * (int8_t)((uint32_t)b >> 8 * k);
    }
    return sum;
#else
    return __dp4a(a, b, sum);
#endif
}

// Four rows of a column of w, from row k.
__device__ __forceinline__ int32_t word_of(const int8_args &a, int64_t k, int64_t unit)
{
    uint32_t word = 0;
    for (int i = 0; i < QUANTIZED_WORD; i++) {
        const bool is = k + i < a.depth && unit < a.units;
        const int8_t q = is ? a.w[(k + i) * a.w_depth + unit * a.w_unit] : (int8_t)0;
        word |= (uint32_t)(uint8_t)q << 8 * i;
    }
    return (int32_t)word;
}

// A block makes a tile of y at a time, of words of four numbers.
extern "C" __global__ void int8_product(int8_args a)
{
    SHARED int32_t left[QUANTIZED_TILE][QUANTIZED_TILE + 1], right[QUANTIZED_TILE][QUANTIZED_TILE + 1];
    const int ty = threadIdx.x / QUANTIZED_TILE, tx = threadIdx.x % QUANTIZED_TILE;
    const int64_t across = (a.units + QUANTIZED_TILE - 1) / QUANTIZED_TILE;
    const int64_t tiles = (a.rows + QUANTIZED_TILE - 1) / QUANTIZED_TILE * across;
    const int64_t words = a.depth_whole / QUANTIZED_WORD;
    const int32_t *numbers = reinterpret_cast<const int32_t *>(a.numbers);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * QUANTIZED_TILE + ty, unit = t % across * QUANTIZED_TILE + tx;
        int32_t sum = 0;
        for (int64_t first = 0; first < words; first += QUANTIZED_TILE) {
            left[ty][tx] = row < a.rows && first + tx < words ? numbers[row * words + first + tx] : 0;
            right[ty][tx] = word_of(a, (first + ty) * QUANTIZED_WORD, unit);
            __syncthreads();
            for (int k = 0; k < QUANTIZED_TILE; k++) {
                sum = dot4(left[ty][k], right[k][tx], sum);
            }
            __syncthreads();
        }
        if (row < a.rows && unit < a.units) {
            a.y[row * a.units + unit] = int8_value(a, sum, row, unit);
        }
    }
}

// ---- whole-number weights alone -----------------------------------------------------------------------------------

struct of_int8 {
    static __device__ __forceinline__ float at(const widen_args &a, int64_t k, int64_t unit)
    {
        return number(a, k, unit) / a.scale[unit];
    }
    // Without what a whole column shares.
    static __device__ __forceinline__ float number(const widen_args &a, int64_t k, int64_t unit)
    {
        const int64_t at = a.turned ? unit * a.depth + k : k * a.units + unit;
        return (float)static_cast<const int8_t *>(a.q)[at];
    }
    static __device__ __forceinline__ float shared(const widen_args &a, float sum, int64_t unit)
    {
        return sum / a.scale[unit];
    }
};

// Place [row, place] of a packed matrix whose rows have `pitch` bytes.
__device__ __forceinline__ int four_at(const void *q, int64_t pitch, int64_t row, int64_t place)
{
    const uint8_t byte = static_cast<const uint8_t *>(q)[row * pitch + place / 2];
    return ((byte >> (int)(place % 2) * 4 & 0xf) ^ 8) - 8;
}

__device__ __forceinline__ int64_t groups_of(int64_t count)
{
    return (count + INT4_BLOCK - 1) / INT4_BLOCK;
}

struct of_int4 {
    static __device__ __forceinline__ float at(const widen_args &a, int64_t k, int64_t unit)
    {
        const int64_t of = k / INT4_BLOCK;
        const int64_t group = a.turned ? unit * groups_of(a.depth) + of : of * a.units + unit;
        const int four =
            a.turned ? four_at(a.q, (a.depth + 1) / 2, unit, k) : four_at(a.q, (a.units + 1) / 2, k, unit);
        return product((float)(four - a.zero[group]), a.scale[group]);
    }
    static __device__ __forceinline__ float number(const widen_args &a, int64_t k, int64_t unit)
    {
        return at(a, k, unit);
    }
    static __device__ __forceinline__ float shared(const widen_args &, float sum, int64_t)
    {
        return sum;
    }
};

template <typename numbers> __device__ __forceinline__ void widen_weights(const widen_args &a)
{
    for (int64_t i = grid_thread(); i < a.depth * a.units; i += grid_width()) {
        a.widened[i] =
            a.turned ? numbers::at(a, i % a.depth, i / a.depth) : numbers::at(a, i / a.units, i % a.units);
    }
}

extern "C" __global__ void widen_int8(widen_args a)
{
    widen_weights<of_int8>(a);
}

extern "C" __global__ void widen_int4(widen_args a)
{
    widen_weights<of_int4>(a);
}

// A block makes a tile of y at a time, widening what it reads.
template <typename numbers> __device__ __forceinline__ void weights_product(const widen_args &a)
{
    SHARED float left[QUANTIZED_TILE][QUANTIZED_TILE + 1], right[QUANTIZED_TILE][QUANTIZED_TILE + 1];
    const int ty = threadIdx.x / QUANTIZED_TILE, tx = threadIdx.x % QUANTIZED_TILE;
    const int64_t across = (a.units + QUANTIZED_TILE - 1) / QUANTIZED_TILE;
    const int64_t tiles = (a.rows + QUANTIZED_TILE - 1) / QUANTIZED_TILE * across;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * QUANTIZED_TILE + ty, unit = t % across * QUANTIZED_TILE + tx;
        float sum = 0.0f;
        for (int64_t first = 0; first < a.depth; first += QUANTIZED_TILE) {
            left[ty][tx] = row < a.rows && first + tx < a.depth ? a.x[row * a.depth + first + tx] : 0.0f;
            right[ty][tx] = first + ty < a.depth && unit < a.units ? numbers::at(a, first + ty, unit) : 0.0f;
            __syncthreads();
            for (int k = 0; k < QUANTIZED_TILE; k++) {
                sum += left[ty][k] * right[k][tx];
            }
            __syncthreads();
        }
        if (row < a.rows && unit < a.units) {
            const float value = a.bias == nullptr ? sum : sum + a.bias[unit];
            a.y[row * a.units + unit] = cut(value, a.floor, a.ceiling);
        }
    }
}

extern "C" __global__ void product_int8_weights(widen_args a)
{
    weights_product<of_int8>(a);
}

extern "C" __global__ void product_int4_weights(widen_args a)
{
    weights_product<of_int4>(a);
}

// ---- rows of tables -----------------------------------------------------------------------------------------------

extern "C" __global__ void embedding_int8(whole_rows_args a)
{
    const int8_t *q = static_cast<const int8_t *>(a.q);
    for (int64_t i = grid_thread(); i < a.count * a.features; i += grid_width()) {
        const int64_t row = a.ids[i / a.features], place = i % a.features;
        const bool found = row >= 0 && row < a.entries;
        a.y[i] = found ? (float)q[row * a.features + place] / a.scale[row] : 0.0f;
    }
}

extern "C" __global__ void embedding_int4(whole_rows_args a)
{
    const int64_t pitch = (a.features + 1) / 2, groups = groups_of(a.features);
    for (int64_t i = grid_thread(); i < a.count * a.features; i += grid_width()) {
        const int64_t row = a.ids[i / a.features], place = i % a.features;
        const int64_t group = row * groups + place / INT4_BLOCK;
        const bool found = row >= 0 && row < a.entries;
        a.y[i] =
            found ? product((float)(four_at(a.q, pitch, row, place) - a.zero[group]), a.scale[group]) : 0.0f;
    }
}

// ---- weights alone, few rows --------------------------------------------------------------------------------------

#define FEW_PARTS (QUANTIZED_FEW_THREADS / QUANTIZED_FEW_UNITS)

// Sums of every FEW_PARTSth number of a unit, for all rows at once.
template <typename numbers>
__device__ __forceinline__ void few_sums(const widen_args &a, int first, int64_t unit,
                                         float (&sum)[QUANTIZED_FEW_ROWS])
{
#pragma unroll
    for (int r = 0; r < QUANTIZED_FEW_ROWS; r++) {
        sum[r] = 0.0f;
    }
    for (int64_t k = first; k < a.depth && unit < a.units; k += FEW_PARTS) {
        const float w = numbers::number(a, k, unit);
#pragma unroll
        for (int r = 0; r < QUANTIZED_FEW_ROWS; r++) {
            sum[r] += r < a.rows ? a.x[r * a.depth + k] * w : 0.0f;
        }
    }
}

// A block has 32 units, and its warps share their depth: each number is read once, and none is written as a float32.
template <typename numbers> __device__ __forceinline__ void few_rows(const widen_args &a)
{
    SHARED float part[FEW_PARTS][QUANTIZED_FEW_ROWS][QUANTIZED_FEW_UNITS];
    const int own = threadIdx.x / QUANTIZED_FEW_UNITS, lane = threadIdx.x % QUANTIZED_FEW_UNITS;
    const int64_t groups = (a.units + QUANTIZED_FEW_UNITS - 1) / QUANTIZED_FEW_UNITS;
    for (int64_t g = blockIdx.x; g < groups; g += gridDim.x) {
        const int64_t unit = g * QUANTIZED_FEW_UNITS + lane;
        float sum[QUANTIZED_FEW_ROWS];
        few_sums<numbers>(a, own, unit, sum);
#pragma unroll
        for (int r = 0; r < QUANTIZED_FEW_ROWS; r++) {
            part[own][r][lane] = sum[r];
        }
        __syncthreads();
        if (own < a.rows && unit < a.units) { // a warp for each row
            float total = 0.0f;
            for (int p = 0; p < FEW_PARTS; p++) {
                total += part[p][own][lane];
            }
            const float value = numbers::shared(a, total, unit);
            a.y[own * a.units + unit] =
                cut(a.bias == nullptr ? value : value + a.bias[unit], a.floor, a.ceiling);
        }
        __syncthreads();
    }
}

extern "C" __global__ void few_int8_weights(widen_args a)
{
    few_rows<of_int8>(a);
}

extern "C" __global__ void few_int4_weights(widen_args a)
{
    few_rows<of_int4>(a);
}
