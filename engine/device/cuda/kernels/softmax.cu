// SPDX-License-Identifier: Apache-2.0
// Softmax over rows and its gradient: a warp or a block per row. Every operand moves once, of rows that fit registers
// (rows_args.h) and, forward, of those that fit shared memory; longer ones are read again from the second level cache.
#include "norm_args.h"
#include "rows.cuh"

// Columns of row r that its distribution is over; behind them it is 0.
__device__ __forceinline__ int64_t columns_seen(const softmax_args &a, int64_t r)
{
    const int64_t seen = r % a.height + 1;
    return a.causal != 0 && seen < a.columns ? seen : a.columns;
}

template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ void softmax_rows(const softmax_args &a, const TEAM &team, T *room)
{
    const int64_t n = a.columns;
    row_of<T, V, PACKS> row(room);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        const int64_t seen = columns_seen(a, r);
        row.load(static_cast<const T *>(a.x) + r * n, seen, team);
        const auto value = [&](int k, int64_t i, float(&v)[V]) {
            row.get(k, i, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                v[lane] = i + lane < seen ? v[lane] : -INFINITY;
            }
        };
        const moments m = softmax_moments<V, PACKS>(team, seen, LOWEST, value);
        const float inverse = 1.0f / m.sum;
        T *const y = static_cast<T *>(a.out) + r * n;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V] = {};
            if (i < seen) {
                value(k, i, v);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    v[lane] = expf(v[lane] - m.largest) * inverse;
                }
            }
            store_pack<T, V>(y + i, v);
        });
    }
}

// dx = y * (dy - sum of y * dy); y is 0 where a row does not see.
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ void softmax_rows_bwd(const softmax_args &a, const TEAM &team)
{
    const int64_t n = a.columns;
    row_of<T, V, PACKS> y(nullptr), dy(nullptr);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        const int64_t seen = columns_seen(a, r);
        y.load(static_cast<const T *>(a.x) + r * n, seen, team);
        dy.load(static_cast<const T *>(a.dy) + r * n, seen, team);
        float along = 0.0f;
        walk<V, PACKS>(team, seen, [&](int k, int64_t i) {
            float p[V], d[V];
            y.get(k, i, p);
            dy.get(k, i, d);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                along += i + lane < seen ? p[lane] * d[lane] : 0.0f;
            }
        });
        along = team.sum(along);
        T *const dx = static_cast<T *>(a.out) + r * n;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float p[V] = {}, d[V] = {};
            if (i < seen) {
                y.get(k, i, p);
                dy.get(k, i, d);
            }
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                d[lane] = i + lane < seen ? p[lane] * (d[lane] - along) : 0.0f;
            }
            store_pack<T, V>(dx + i, d);
        });
    }
}

#define SOFTMAX(suffix, type)                                                                                \
    extern "C" __global__ void __launch_bounds__(ROWS_WARP_THREADS) softmax_warp_##suffix(softmax_args a)    \
    {                                                                                                        \
        constexpr int v = lanes<type>::count;                                                                \
        if (a.vectors) {                                                                                     \
            softmax_rows<type, v, held<v>::warp>(a, warp_team(), nullptr);                                   \
        } else {                                                                                             \
            softmax_rows<type, 1, held<1>::warp>(a, warp_team(), nullptr);                                   \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_BLOCK_THREADS) softmax_block_##suffix(softmax_args a)  \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        constexpr int v = lanes<type>::count;                                                                \
        if (a.vectors) {                                                                                     \
            softmax_rows<type, v, held<v>::block>(a, block_team{room}, nullptr);                             \
        } else {                                                                                             \
            softmax_rows<type, 1, held<1>::block>(a, block_team{room}, nullptr);                             \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_LONG_THREADS, 1) softmax_long_##suffix(softmax_args a) \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        SHARED_DYNAMIC(float, shared);                                                                       \
        type *const row = a.cached ? reinterpret_cast<type *>(shared) : nullptr;                             \
        if (a.vectors) {                                                                                     \
            softmax_rows<type, lanes<type>::count, 0>(a, block_team{room}, row);                             \
        } else {                                                                                             \
            softmax_rows<type, 1, 0>(a, block_team{room}, row);                                              \
        }                                                                                                    \
    }
#define SOFTMAX_BWD(suffix, type)                                                                            \
    extern "C" __global__ void __launch_bounds__(ROWS_WARP_THREADS)                                          \
        softmax_bwd_warp_##suffix(softmax_args a)                                                            \
    {                                                                                                        \
        constexpr int v = lanes<type>::count;                                                                \
        if (a.vectors) {                                                                                     \
            softmax_rows_bwd<type, v, held<v>::warp>(a, warp_team());                                        \
        } else {                                                                                             \
            softmax_rows_bwd<type, 1, held<1>::warp>(a, warp_team());                                        \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_BLOCK_THREADS)                                         \
        softmax_bwd_block_##suffix(softmax_args a)                                                           \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        constexpr int v = lanes<type>::count;                                                                \
        if (a.vectors) {                                                                                     \
            softmax_rows_bwd<type, v, held<v>::block>(a, block_team{room});                                  \
        } else {                                                                                             \
            softmax_rows_bwd<type, 1, held<1>::block>(a, block_team{room});                                  \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_LONG_THREADS, 1)                                       \
        softmax_bwd_long_##suffix(softmax_args a)                                                            \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        if (a.vectors) {                                                                                     \
            softmax_rows_bwd<type, lanes<type>::count, 0>(a, block_team{room});                              \
        } else {                                                                                             \
            softmax_rows_bwd<type, 1, 0>(a, block_team{room});                                               \
        }                                                                                                    \
    }
FOR_REAL_TYPES(SOFTMAX)
FOR_REAL_TYPES(SOFTMAX_BWD)
