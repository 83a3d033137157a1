// SPDX-License-Identifier: Apache-2.0
// Adafactor: Shazeer, Stern 2018 (arXiv 1804.04235) with Keras' constants. adafactor_args.h has the drawing. The second
// moment is made anew from its two factors each time it is needed.
#include "adafactor_args.h"
#include "kernel.cuh"

// What is added to a second moment: where neither row nor column has had a gradient it is 1e-60, which float32 does not
// know. The update is 0 then, not 0/0.
#define LEAST_MOMENT 1.17549435e-38f

#define WARPS (ADAFACTOR_THREADS / WARP)

__device__ __forceinline__ bool is_skipped(const adafactor_args &a)
{
    return a.finite != nullptr && *a.finite == 0;
}

// ---- tiles ----------------------------------------------------------------------------------------------------------

struct tile {
    int64_t matrix, row_tile, column_tile;
    int64_t first_row, last_row, first_column;
};

__device__ __forceinline__ int64_t tile_count(const adafactor_args &a)
{
    return a.matrices * a.row_tiles * a.column_tiles;
}

template <typename T> __device__ __forceinline__ tile tile_of(const adafactor_args &a, int64_t index)
{
    tile t;
    t.column_tile = index % a.column_tiles;
    t.row_tile = index / a.column_tiles % a.row_tiles;
    t.matrix = index / a.column_tiles / a.row_tiles;
    t.first_row = t.row_tile * a.tile_rows;
    t.last_row = t.first_row + a.tile_rows < a.rows ? t.first_row + a.tile_rows : a.rows;
    t.first_column = t.column_tile * WARP * lanes<T>::count;
    return t;
}

// The tile's columns of a lane: neighbours where rows are whole vectors, else WARP apart.
template <typename T, bool VECTORS> __device__ __forceinline__ int place_of(int k)
{
    const int lane = threadIdx.x % WARP;
    return VECTORS ? lane * lanes<T>::count + k : k * WARP + lane;
}

template <typename T, bool VECTORS>
__device__ __forceinline__ bool holds(const adafactor_args &a, const tile &t, int k)
{
    return t.first_column + place_of<T, VECTORS>(k) < a.columns;
}

template <typename T>
__device__ __forceinline__ int64_t row_of(const adafactor_args &a, const tile &t, int64_t row)
{
    return (t.matrix * a.rows + row) * a.columns + t.first_column;
}

// A lane's part of a row; zeros beyond the last column.
template <typename T, bool VECTORS>
__device__ __forceinline__ void load_row(const adafactor_args &a, const tile &t, const void *from,
                                         int64_t row, float *x)
{
    constexpr int n = lanes<T>::count;
    const T *base = static_cast<const T *>(from) + row_of<T>(a, t, row);
    if constexpr (VECTORS) {
        pack<T, n> v = {};
        if (holds<T, VECTORS>(a, t, 0)) {
            v = *reinterpret_cast<const pack<T, n> *>(base + place_of<T, VECTORS>(0));
        }
#pragma unroll
        for (int k = 0; k < n; k++) {
            x[k] = widen(v.at[k]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < n; k++) {
            x[k] = holds<T, VECTORS>(a, t, k) ? widen(base[place_of<T, VECTORS>(k)]) : 0.0f;
        }
    }
}

template <typename T, bool VECTORS>
__device__ __forceinline__ void store_row(const adafactor_args &a, const tile &t, void *to, int64_t row,
                                          const float *x)
{
    constexpr int n = lanes<T>::count;
    T *base = static_cast<T *>(to) + row_of<T>(a, t, row);
    if constexpr (VECTORS) {
        pack<T, n> v;
#pragma unroll
        for (int k = 0; k < n; k++) {
            v.at[k] = narrow<T>(x[k]);
        }
        if (holds<T, VECTORS>(a, t, 0)) {
            *reinterpret_cast<pack<T, n> *>(base + place_of<T, VECTORS>(0)) = v;
        }
    } else {
#pragma unroll
        for (int k = 0; k < n; k++) {
            if (holds<T, VECTORS>(a, t, k)) {
                base[place_of<T, VECTORS>(k)] = narrow<T>(x[k]);
            }
        }
    }
}

// ---- measure --------------------------------------------------------------------------------------------------------

// Adds the columns' sums of all warps and hands them on. room is [WARPS][WARP * count].
template <typename T, bool VECTORS>
__device__ __forceinline__ void gather_columns(const adafactor_args &a, const tile &t, const float *sum,
                                               float *room)
{
    constexpr int n = lanes<T>::count, width = WARP * n;
#pragma unroll
    for (int k = 0; k < n; k++) {
        room[threadIdx.x / WARP * width + place_of<T, VECTORS>(k)] = sum[k];
    }
    __syncthreads();
    float *part = a.column_part + (t.matrix * a.row_tiles + t.row_tile) * a.columns + t.first_column;
    for (int i = threadIdx.x; i < width && t.first_column + i < a.columns; i += blockDim.x) {
        float total = 0.0f;
        for (int warp = 0; warp < WARPS; warp++) {
            total += room[warp * width + i];
        }
        part[i] = total;
    }
    __syncthreads();
}

// Returns the lane's Σ w² of the tile.
template <typename T, bool VECTORS>
__device__ __forceinline__ float measure_tile(const adafactor_args &a, const tile &t, float kept, float *room)
{
    constexpr int n = lanes<T>::count;
    float column[n] = {0.0f}, squares = 0.0f;
    float *row_part = a.row_part + (t.matrix * a.column_tiles + t.column_tile) * a.rows;
    for (int64_t row = t.first_row + threadIdx.x / WARP; row < t.last_row; row += WARPS) {
        float g[n], w[n], sum = 0.0f;
        load_row<T, VECTORS>(a, t, a.g, row, g);
        load_row<T, VECTORS>(a, t, a.w, row, w);
#pragma unroll
        for (int k = 0; k < n; k++) {
            const float square = holds<T, VECTORS>(a, t, k) ? g[k] * g[k] + a.epsilon : 0.0f;
            sum += square;
            column[k] += square;
            squares += (kept * w[k]) * (kept * w[k]);
        }
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0) {
            row_part[row] = sum;
        }
    }
    gather_columns<T, VECTORS>(a, t, column, room);
    return squares;
}

template <typename T, bool VECTORS>
__device__ __forceinline__ void measure(const adafactor_args &a, float *room)
{
    if (is_skipped(a)) {
        return;
    }
    float squares = 0.0f;
    for (int64_t i = blockIdx.x; i < tile_count(a); i += gridDim.x) {
        squares += measure_tile<T, VECTORS>(a, tile_of<T>(a, i), a.scalars->kept, room);
    }
    squares = block_sum(squares, room);
    if (threadIdx.x == 0) {
        a.w_part[blockIdx.x] = squares;
    }
}

// ---- factors --------------------------------------------------------------------------------------------------------

// One factor of one matrix: `lines` lines of which `parts` parts were measured, each `length` elements long.
template <typename T> struct factor {
    const float *part; // [parts][lines]
    int64_t parts, lines, length;
    T *stored;
    float *now;
};

// LINE of its lines, a lane for each; the warps share the parts. Returns the sum of the new values, for warp 0.
template <typename T>
__device__ __forceinline__ float update_lines(const factor<T> &f, const adafactor_scalars &s, int64_t first,
                                              float *room)
{
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int64_t line = first + lane;
    float sum = 0.0f;
    for (int64_t k = warp; line < f.lines && k < f.parts; k += WARPS) {
        sum += f.part[k * f.lines + line];
    }
    room[warp * WARP + lane] = sum;
    __syncthreads();
    float value = 0.0f;
    if (warp == 0 && line < f.lines) {
        sum = 0.0f;
        for (int k = 0; k < WARPS; k++) {
            sum += room[k * WARP + lane];
        }
        value = s.keep * widen(f.stored[line]) + s.fresh * (sum / (float)f.length);
        f.stored[line] = narrow<T>(value);
        f.now[line] = value;
    }
    __syncthreads();
    return warp_sum(value);
}

template <typename T> __device__ __forceinline__ void factors(const adafactor_args &a)
{
    SHARED float room[ADAFACTOR_THREADS];
    if (is_skipped(a)) {
        return;
    }
    const int64_t lines = a.row_lines + a.column_lines;
    for (int64_t i = blockIdx.x; i < a.matrices * lines; i += gridDim.x) {
        const int64_t matrix = i / lines, line = i % lines;
        const bool is_row = line < a.row_lines;
        const int64_t own = is_row ? a.rows : a.columns, parts = is_row ? a.column_tiles : a.row_tiles;
        const factor<T> f = {(is_row ? a.row_part : a.column_part) + matrix * parts * own,
                             parts,
                             own,
                             is_row ? a.columns : a.rows,
                             static_cast<T *>(is_row ? a.r : a.c) + matrix * own,
                             (is_row ? a.r_now : a.c_now) + matrix * own};
        const float sum =
            update_lines(f, *a.scalars, (is_row ? line : line - a.row_lines) * ADAFACTOR_LINE, room);
        if (is_row && threadIdx.x == 0) {
            a.r_part[matrix * a.row_lines + line] = sum;
        }
    }
}

// ---- the update -----------------------------------------------------------------------------------------------------

// Σ part, for every thread.
__device__ __forceinline__ float sum_of(const float *part, int64_t count, float *room)
{
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        sum += part[i];
    }
    return block_sum(sum, room);
}

// f(tile, row, moments of the lane's columns) for the rows of every tile of this block.
template <typename T, bool VECTORS, typename F>
__device__ __forceinline__ void each_moment(const adafactor_args &a, float *room, F f)
{
    constexpr int n = lanes<T>::count;
    int64_t matrix = -1;
    float mean = 1.0f;
    for (int64_t i = blockIdx.x; i < tile_count(a); i += gridDim.x) {
        const tile t = tile_of<T>(a, i);
        if (t.matrix != matrix) {
            matrix = t.matrix;
            mean = sum_of(a.r_part + matrix * a.row_lines, a.row_lines, room) / (float)a.rows;
        }
        float c[n], moment[n];
        for (int k = 0; k < n; k++) {
            c[k] = holds<T, VECTORS>(a, t, k)
                       ? a.c_now[matrix * a.columns + t.first_column + place_of<T, VECTORS>(k)]
                       : 1.0f;
        }
        for (int64_t row = t.first_row + threadIdx.x / WARP; row < t.last_row; row += WARPS) {
            const float scale = a.r_now[matrix * a.rows + row] / mean;
#pragma unroll
            for (int k = 0; k < n; k++) {
                moment[k] = scale * c[k] + LEAST_MOMENT;
            }
            f(t, row, moment);
        }
    }
}

template <typename T, bool VECTORS> __device__ __forceinline__ void size(const adafactor_args &a, float *room)
{
    constexpr int n = lanes<T>::count;
    if (is_skipped(a)) {
        return;
    }
    float squares = 0.0f;
    each_moment<T, VECTORS>(a, room, [&](const tile &t, int64_t row, const float *moment) {
        float g[n];
        load_row<T, VECTORS>(a, t, a.g, row, g);
#pragma unroll
        for (int k = 0; k < n; k++) {
            squares += g[k] * g[k] / moment[k];
        }
        if (a.v != nullptr) {
            store_row<T, VECTORS>(a, t, a.v, row, moment);
        }
    });
    squares = block_sum(squares, room);
    if (threadIdx.x == 0) {
        a.u_part[blockIdx.x] = squares;
    }
}

// The learning rate relative to the size of the decayed weights, and no update larger than 1 in the mean.
__device__ __forceinline__ float clipped_rate(const adafactor_args &a, float w_squares, float u_squares)
{
    const float count = (float)a.elements;
    const float rate = a.scalars->rate * fmaxf(a.least, sqrtf(w_squares / count));
    return rate / fmaxf(1.0f, sqrtf(u_squares / count));
}

template <typename T, bool VECTORS>
__device__ __forceinline__ void apply(const adafactor_args &a, float *room)
{
    constexpr int n = lanes<T>::count;
    if (is_skipped(a)) {
        return;
    }
    const float w_squares = sum_of(a.w_part, a.parts, room), u_squares = sum_of(a.u_part, a.parts, room);
    const float rate = clipped_rate(a, w_squares, u_squares), kept = a.scalars->kept;
    each_moment<T, VECTORS>(a, room, [&](const tile &t, int64_t row, const float *moment) {
        float g[n], w[n];
        load_row<T, VECTORS>(a, t, a.g, row, g);
        load_row<T, VECTORS>(a, t, a.w, row, w);
#pragma unroll
        for (int k = 0; k < n; k++) {
            w[k] = kept * w[k] - rate * g[k] / sqrtf(moment[k]);
        }
        store_row<T, VECTORS>(a, t, a.w, row, w);
    });
}

// ---- vectors --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ float moment_of(const adafactor_args &a, const adafactor_scalars &s, float v,
                                           float g)
{
    return s.keep * v + s.fresh * (g * g + a.epsilon);
}

struct vector_sums {
    float w, u;
};

// Σ w² and Σ g²/v over the grid's share; v is made anew by apply, so that nothing is rounded between.
template <typename T>
__device__ __forceinline__ vector_sums measure_vector(const adafactor_args &a, const adafactor_scalars &s)
{
    const T *w = static_cast<const T *>(a.w), *g = static_cast<const T *>(a.g),
            *v = static_cast<const T *>(a.v);
    vector_sums sum = {0.0f, 0.0f};
#pragma unroll 4
    for (int64_t i = grid_thread(); i < a.elements; i += grid_width()) {
        const float x = s.kept * widen(w[i]), gradient = widen(g[i]);
        sum.w += x * x;
        sum.u += gradient * gradient / moment_of(a, s, widen(v[i]), gradient);
    }
    return sum;
}

template <typename T>
__device__ __forceinline__ void apply_vector(const adafactor_args &a, const adafactor_scalars &s, float rate)
{
    T *w = static_cast<T *>(a.w), *v = static_cast<T *>(a.v);
    const T *g = static_cast<const T *>(a.g);
    for (int64_t i = grid_thread(); i < a.elements; i += grid_width()) {
        const float gradient = widen(g[i]), moment = moment_of(a, s, widen(v[i]), gradient);
        v[i] = narrow<T>(moment);
        w[i] = narrow<T>(s.kept * widen(w[i]) - rate * gradient / sqrtf(moment));
    }
}

// One block does both.
template <typename T> __device__ __forceinline__ void vector_small(const adafactor_args &a)
{
    SHARED float room[WARP];
    if (is_skipped(a)) {
        return;
    }
    const adafactor_scalars s = *a.scalars;
    const vector_sums sum = measure_vector<T>(a, s);
    const float w_squares = block_sum(sum.w, room), u_squares = block_sum(sum.u, room);
    apply_vector<T>(a, s, clipped_rate(a, w_squares, u_squares));
}

template <typename T> __device__ __forceinline__ void vector_measure(const adafactor_args &a)
{
    SHARED float room[WARP];
    if (is_skipped(a)) {
        return;
    }
    const vector_sums sum = measure_vector<T>(a, *a.scalars);
    const float w_squares = block_sum(sum.w, room), u_squares = block_sum(sum.u, room);
    if (threadIdx.x == 0) {
        a.w_part[blockIdx.x] = w_squares;
        a.u_part[blockIdx.x] = u_squares;
    }
}

template <typename T> __device__ __forceinline__ void vector_apply(const adafactor_args &a)
{
    SHARED float room[WARP];
    if (is_skipped(a)) {
        return;
    }
    const float w_squares = sum_of(a.w_part, a.parts, room), u_squares = sum_of(a.u_part, a.parts, room);
    apply_vector<T>(a, *a.scalars, clipped_rate(a, w_squares, u_squares));
}

#define KERNEL(name, suffix, type)                                                                           \
    extern "C" __global__ void adafactor_##name##_##suffix(adafactor_args a)                                 \
    {                                                                                                        \
        name<type>(a);                                                                                       \
    }
#define EITHER(name, suffix, type, floats)                                                                   \
    extern "C" __global__ void adafactor_##name##_##suffix(adafactor_args a)                                 \
    {                                                                                                        \
        SHARED float room[floats];                                                                           \
        if (a.in_vectors != 0) {                                                                             \
            name<type, true>(a, room);                                                                       \
        } else {                                                                                             \
            name<type, false>(a, room);                                                                      \
        }                                                                                                    \
    }
#define KERNELS(suffix, type)                                                                                \
    EITHER(measure, suffix, type, WARPS *WARP *lanes<type>::count)                                           \
    KERNEL(factors, suffix, type)                                                                            \
    EITHER(size, suffix, type, WARP)                                                                         \
    EITHER(apply, suffix, type, WARP)                                                                        \
    KERNEL(vector_small, suffix, type)                                                                       \
    KERNEL(vector_measure, suffix, type)                                                                     \
    KERNEL(vector_apply, suffix, type)
FOR_REAL_TYPES(KERNELS)
