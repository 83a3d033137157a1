// SPDX-License-Identifier: Apache-2.0
// Dense layers with whole-number weights, and what makes the numbers, with the arithmetic of base/quantize.h: every product is
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

struct int4_column {
    float scale, shift;
};

__device__ __forceinline__ int4_column int4_measure(const quantize_args &a, int64_t first, int64_t count,
                                                    int64_t c)
{
    float least = a.w[first * a.columns + c], most = least;
    bool finite = true;
    for (int64_t r = first; r < first + count; r++) {
        const float value = a.w[r * a.columns + c];
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
            of[k] = int4_measure(a, first, count, 2 * at + k);
            a.scale[group * a.columns + 2 * at + k] = of[k].scale;
            a.zero[group * a.columns + 2 * at + k] = (int8_t)of[k].shift;
        }
        for (int64_t r = first; r < first + count; r++) {
            int halves = 0;
            for (int k = 0; k < columns; k++) {
                const float value = rintf(a.w[r * a.columns + 2 * at + k] / of[k].scale) + of[k].shift;
                halves |= ((int)clipped(value, -8.0f, 7.0f) & 0xf) << 4 * k;
            }
            q[r * pitch + at] = (uint8_t)halves;
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

// w[depth,units] becomes turned[units,depth]: the library's whole-number kernels read both operands along depth.
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
            tile[i / QUANTIZED_TURN][i % QUANTIZED_TURN] = is ? a.w[k * a.units + n] : (int8_t)0;
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
        const int8_t q = k + i < a.depth && unit < a.units ? a.w[(k + i) * a.units + unit] : (int8_t)0;
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
        return (float)static_cast<const int8_t *>(a.q)[k * a.units + unit] / a.scale[unit];
    }
};

struct of_int4 {
    static __device__ __forceinline__ float at(const widen_args &a, int64_t k, int64_t unit)
    {
        const uint8_t *row = static_cast<const uint8_t *>(a.q) + k * ((a.units + 1) / 2);
        const int half = row[unit / 2] >> (int)(unit % 2) * 4 & 0xf;
        const int64_t group = k / INT4_BLOCK * a.units + unit;
        return product((float)((half ^ 8) - 8 - a.zero[group]), a.scale[group]);
    }
};

template <typename numbers> __device__ __forceinline__ void widen_weights(const widen_args &a)
{
    for (int64_t i = grid_thread(); i < a.depth * a.units; i += grid_width()) {
        a.widened[i] = numbers::at(a, i / a.units, i % a.units);
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
