// SPDX-License-Identifier: Apache-2.0
// Rows that a warp or a block works on together, and sums over rows and columns. The order of every sum depends on
// nothing but shapes and the launch.
//
// A row is walked in packs of V neighbours: thread `rank` of a team of `size` has packs rank, rank + size, … A row of
// PACKS packs a thread is read once and stays in registers; one of 0 is as long as it likes and is read again where it
// is needed again, from shared memory when the launch gave room for it. No thread sees another's elements, so that
// results may be written over rows that are not needed any more, without a barrier.
#ifndef KERNELS_ROWS_CUH
#define KERNELS_ROWS_CUH

#include "kernel.cuh"
#include "rows_args.h"

#define LOWEST (-3.402823466e38f) // a maximum begins here: unlike -infinity it can be subtracted from itself

// Both packs are of whole numbers of sixteen bytes, or of one element.
template <typename T, int V> __device__ __forceinline__ void load_pack(const T *from, float (&v)[V])
{
    const pack<T, V> p = *reinterpret_cast<const pack<T, V> *>(from);
#pragma unroll
    for (int k = 0; k < V; k++) {
        v[k] = widen(p.at[k]);
    }
}
template <typename T> __device__ __forceinline__ uint32_t word_of_pair(const float *v)
{
    return (uint32_t)narrow<T>(v[0]).bits | (uint32_t)narrow<T>(v[1]).bits << 16;
}
__device__ __forceinline__ void store_words(void *to, const uint32_t (&w)[4])
{
#ifdef HEADROOM_EMULATED
    memcpy(to, w, sizeof w);
#else
    __stwb(static_cast<uint4 *>(to), make_uint4(w[0], w[1], w[2], w[3])); // nvcc takes other stores apart
#endif
}
template <typename T, int V> __device__ __forceinline__ void store_pack(T *to, const float (&v)[V])
{
    if constexpr (V == 1) {
        *to = narrow<T>(v[0]);
    } else {
        constexpr int per_word = 4 / (int)sizeof(T);
#pragma unroll
        for (int k = 0; k < V; k += 4 * per_word) {
            uint32_t w[4];
#pragma unroll
            for (int n = 0; n < 4; n++) {
                if constexpr (per_word == 1) {
                    w[n] = __float_as_uint(v[k + n]);
                } else {
                    w[n] = word_of_pair<T>(&v[k + 2 * n]);
                }
            }
            store_words(to + k, w);
        }
    }
}

// ---- teams --------------------------------------------------------------------------------------------------------

// Every warp of a block has rows of its own.
struct warp_team {
    __device__ __forceinline__ int size() const
    {
        return WARP;
    }
    __device__ __forceinline__ int rank() const
    {
        return (int)threadIdx.x % WARP;
    }
    __device__ __forceinline__ int64_t first_row() const
    {
        return (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    }
    __device__ __forceinline__ int64_t row_step() const
    {
        return (int64_t)gridDim.x * (blockDim.x / WARP);
    }
    __device__ __forceinline__ float sum(float x) const
    {
        return warp_sum(x);
    }
    __device__ __forceinline__ float max(float x) const
    {
        return warp_max(x);
    }
};

// The whole block, of whole warps; `room` is WARP floats of shared memory.
struct block_team {
    float *room;
    __device__ __forceinline__ int size() const
    {
        return (int)blockDim.x;
    }
    __device__ __forceinline__ int rank() const
    {
        return (int)threadIdx.x;
    }
    __device__ __forceinline__ int64_t first_row() const
    {
        return blockIdx.x;
    }
    __device__ __forceinline__ int64_t row_step() const
    {
        return gridDim.x;
    }
    __device__ __forceinline__ float sum(float x) const
    {
        return block_sum(x, room);
    }
    __device__ __forceinline__ float max(float x) const
    {
        return block_max(x, room);
    }
};

// ---- rows ---------------------------------------------------------------------------------------------------------

// Calls f(k, i) for every pack of this thread: its number and its first element.
template <int V, int PACKS, typename TEAM, typename F>
__device__ __forceinline__ void walk(const TEAM &team, int64_t count, F f)
{
    if constexpr (PACKS > 0) {
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
            const int i = (k * team.size() + team.rank()) * V;
            if (i < count) {
                f(k, (int64_t)i);
            }
        }
    } else {
#pragma unroll 4
        for (int64_t i = (int64_t)team.rank() * V; i < count; i += (int64_t)team.size() * V) {
            f(0, i);
        }
    }
}

template <typename T, int V, int PACKS> struct row_of {
    pack<T, V> keep[PACKS];

    __device__ __forceinline__ explicit row_of(T *)
    {
    }
    template <typename TEAM> __device__ __forceinline__ void load(const T *x, int64_t count, const TEAM &team)
    {
        walk<V, PACKS>(team, count,
                       [&](int k, int64_t i) { keep[k] = *reinterpret_cast<const pack<T, V> *>(x + i); });
    }
    __device__ __forceinline__ void get(int k, int64_t, float (&v)[V]) const
    {
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            v[lane] = widen(keep[k].at[lane]);
        }
    }
};

template <typename T, int V> struct row_of<T, V, 0> {
    const T *from;
    T *room; // NULL: the row stays where it is

    __device__ __forceinline__ explicit row_of(T *shared) : from(nullptr), room(shared)
    {
    }
    template <typename TEAM> __device__ __forceinline__ void load(const T *x, int64_t count, const TEAM &team)
    {
        from = room != nullptr ? room : x;
        if (room != nullptr) {
            walk<V, 0>(team, count, [&](int, int64_t i) {
                *reinterpret_cast<pack<T, V> *>(room + i) = *reinterpret_cast<const pack<T, V> *>(x + i);
            });
        }
    }
    __device__ __forceinline__ void get(int, int64_t i, float (&v)[V]) const
    {
        load_pack<T, V>(from + i, v);
    }
};

// Packs a thread holds of rows that a warp and a block take: rows_args.h has what that makes of a row.
template <int V> struct held {
    static constexpr int warp = V == 1 ? ROWS_WARP_SINGLES / WARP : ROWS_WARP_ELEMENTS / WARP / V;
    static constexpr int block =
        V == 1 ? ROWS_BLOCK_SINGLES / ROWS_BLOCK_THREADS : ROWS_BLOCK_ELEMENTS / ROWS_BLOCK_THREADS / V;
};

// ---- softmax ------------------------------------------------------------------------------------------------------

// Largest value and sum of exp(value - largest).
struct moments {
    float largest, sum;
};

// Of a row whose value(k, i, v) fills a pack. `largest`: LOWEST, or a value of the row that this thread knows. A row in
// registers is walked twice, a long one once (Milakov and Gimelshein 2018).
template <int V, int PACKS, typename TEAM, typename VALUE>
__device__ __forceinline__ moments softmax_moments(const TEAM &team, int64_t count, float largest,
                                                   VALUE value)
{
    float sum = 0.0f;
    if constexpr (PACKS > 0) {
        walk<V, PACKS>(team, count, [&](int k, int64_t i) {
            float v[V];
            value(k, i, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                largest = fmaxf(largest, v[lane]);
            }
        });
        largest = team.max(largest);
        walk<V, PACKS>(team, count, [&](int k, int64_t i) {
            float v[V];
            value(k, i, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                sum += expf(v[lane] - largest);
            }
        });
        return moments{largest, team.sum(sum)};
    } else {
        walk<V, PACKS>(team, count, [&](int k, int64_t i) {
            float v[V];
            value(k, i, v);
            float most = v[0];
#pragma unroll
            for (int lane = 1; lane < V; lane++) {
                most = fmaxf(most, v[lane]);
            }
            if (most > largest) {
                sum *= expf(largest - most);
                largest = most;
            }
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                sum += expf(v[lane] - largest);
            }
        });
        const float whole = team.max(largest);
        return moments{whole, team.sum(sum * expf(largest - whole))};
    }
}

// ---- sums of whole blocks and of columns --------------------------------------------------------------------------

// Sum of x over the block in a fixed order, for thread 0; `room` is a double for every warp.
__device__ __forceinline__ double block_total(double x, double *room)
{
    for (int k = WARP / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(FULL_WARP, x, k);
    }
    if (threadIdx.x % WARP == 0) {
        room[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    double total = 0.0;
    for (int w = 0; threadIdx.x == 0 && w < (int)blockDim.x / WARP; w++) {
        total += room[w];
    }
    __syncthreads();
    return total;
}

// Threads of a block as WARP columns by COLUMN_ROWS rows.
#define COLUMN_ROWS    8
#define COLUMN_THREADS (WARP * COLUMN_ROWS)

// Over the rows of a block of COLUMN_THREADS: every thread of a column gets its sum. `room`: COLUMN_THREADS of S.
template <typename S> __device__ __forceinline__ S column_total(S x, S *room)
{
    room[threadIdx.x] = x;
    __syncthreads();
    S total = 0;
#pragma unroll
    for (int r = 0; r < COLUMN_ROWS; r++) {
        total += room[r * WARP + threadIdx.x % WARP];
    }
    __syncthreads();
    return total;
}

#endif
