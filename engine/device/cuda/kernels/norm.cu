// SPDX-License-Identifier: Apache-2.0
// Layer and RMS normalisation, softmax, and their gradients: a warp or a block per row, which is read once.
//
// Bytes moved are every operand once, for rows that fit registers (rows_args.h) and, forward, for those that fit shared
// memory. Longer ones are read again from the second level cache: twice softmax, three times what normalises. Sums over
// rows are made beside dx by the same threads, of columns that stay theirs; long rows read x and dy once more for them.
#include "norm_args.h"
#include "rows.cuh"

// ---- normalisation ------------------------------------------------------------------------------------------------

template <typename T, int V, int PACKS, bool CENTRED, typename TEAM>
__device__ __forceinline__ void norm_rows(const norm_args &a, const TEAM &team, T *room)
{
    const int64_t n = a.features;
    row_of<T, V, PACKS> row(room);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        row.load(static_cast<const T *>(a.x) + r * n, n, team);
        float mean = 0.0f, squares = 0.0f;
        if (CENTRED) {
            walk<V, PACKS>(team, n, [&](int k, int64_t i) {
                float v[V];
                row.get(k, i, v);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    mean += v[lane];
                }
            });
            mean = team.sum(mean) / (float)n;
        }
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V];
            row.get(k, i, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                squares += (v[lane] - mean) * (v[lane] - mean);
            }
        });
        const float rstd = 1.0f / sqrtf(team.sum(squares) / (float)n + a.epsilon);
        T *const y = static_cast<T *>(a.y) + r * n;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V], gamma[V], beta[V] = {0};
            row.get(k, i, v);
            load_pack<float, V>(a.gamma + i, gamma);
            if (CENTRED) {
                load_pack<float, V>(a.beta + i, beta);
            }
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                v[lane] = (v[lane] - mean) * rstd * gamma[lane] + beta[lane];
            }
            store_pack<T, V>(y + i, v);
        });
        if (team.rank() == 0) {
            a.rstd_out[r] = rstd;
            if (CENTRED) {
                a.mean_out[r] = mean;
            }
        }
    }
}

// With xhat = (x - mean) * rstd and g = dy * gamma: dx = rstd * (g - mean(g) - xhat * mean(g * xhat)); RMS has neither
// mean. Of rows in registers also dgamma and dbeta of this thread's columns, added to what stands there.
template <typename T, int V, int PACKS, bool CENTRED, typename TEAM>
__device__ __forceinline__ void norm_rows_bwd(const norm_args &a, const TEAM &team,
                                              float (&dgamma)[PACKS > 0 ? PACKS : 1][V],
                                              float (&dbeta)[PACKS > 0 ? PACKS : 1][V])
{
    const int64_t n = a.features;
    row_of<T, V, PACKS> x(nullptr), dy(nullptr);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        x.load(static_cast<const T *>(a.x) + r * n, n, team);
        dy.load(static_cast<const T *>(a.dy) + r * n, n, team);
        const float mean = CENTRED ? a.mean[r] : 0.0f, rstd = a.rstd[r];
        float whole = 0.0f, along = 0.0f;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V], d[V], gamma[V];
            x.get(k, i, v);
            dy.get(k, i, d);
            load_pack<float, V>(a.gamma + i, gamma);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                const float at = (v[lane] - mean) * rstd, g = d[lane] * gamma[lane];
                along += g * at;
                whole += g;
                if constexpr (PACKS > 0) {
                    dgamma[k][lane] += d[lane] * at;
                    dbeta[k][lane] += d[lane];
                }
            }
        });
        whole = CENTRED ? team.sum(whole) / (float)n : 0.0f;
        along = team.sum(along) / (float)n * rstd;
        T *const dx = static_cast<T *>(a.y) + r * n;
        const T *const more = a.more == nullptr ? nullptr : static_cast<const T *>(a.more) + r * n;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V], d[V], gamma[V], other[V];
            x.get(k, i, v);
            dy.get(k, i, d);
            load_pack<float, V>(a.gamma + i, gamma);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                v[lane] = rstd * (d[lane] * gamma[lane] - whole - (v[lane] - mean) * along);
            }
            if (more != nullptr) {
                load_pack<T, V>(more + i, other);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    v[lane] = widen(narrow<T>(v[lane])) + other[lane];
                }
            }
            store_pack<T, V>(dx + i, v);
        });
    }
}

// The block's sums: those of its warps one after another, in shared memory.
template <int V, int PACKS>
__device__ __forceinline__ void join_warps(const norm_args &a, bool centred, float *sums,
                                           const float (&dgamma)[PACKS][V], const float (&dbeta)[PACKS][V])
{
    const int64_t n = a.features, width = centred ? 2 * n : n;
    for (int w = 0; w < (int)blockDim.x / WARP; w++) {
        if ((int)threadIdx.x / WARP == w) {
            walk<V, PACKS>(warp_team(), n, [&](int k, int64_t i) {
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    sums[i + lane] = (w == 0 ? 0.0f : sums[i + lane]) + dgamma[k][lane];
                    if (centred) {
                        sums[n + i + lane] = (w == 0 ? 0.0f : sums[n + i + lane]) + dbeta[k][lane];
                    }
                }
            });
        }
        __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
        a.partial[blockIdx.x * width + i] = sums[i];
    }
}

template <typename T, int V, bool CENTRED>
__device__ __forceinline__ void norm_bwd_warps(const norm_args &a, float *sums)
{
    float dgamma[held<V>::warp][V] = {}, dbeta[held<V>::warp][V] = {};
    norm_rows_bwd<T, V, held<V>::warp, CENTRED>(a, warp_team(), dgamma, dbeta);
    join_warps<V, held<V>::warp>(a, CENTRED, sums, dgamma, dbeta);
}

template <typename T, int V, bool CENTRED>
__device__ __forceinline__ void norm_bwd_block(const norm_args &a, float *room)
{
    const block_team team{room};
    float dgamma[held<V>::block][V] = {}, dbeta[held<V>::block][V] = {};
    norm_rows_bwd<T, V, held<V>::block, CENTRED>(a, team, dgamma, dbeta);
    float *const to = a.partial + blockIdx.x * a.features * (CENTRED ? 2 : 1);
    walk<V, held<V>::block>(team, a.features, [&](int k, int64_t i) {
        store_pack<float, V>(to + i, dgamma[k]);
        if (CENTRED) {
            store_pack<float, V>(to + a.features + i, dbeta[k]);
        }
    });
}

template <typename T, int V, bool CENTRED>
__device__ __forceinline__ void norm_bwd_long(const norm_args &a, float *room)
{
    float none[1][V], nor_this[1][V];
    norm_rows_bwd<T, V, 0, CENTRED>(a, block_team{room}, none, nor_this);
}

// Sums over the rows of long rows: WARP columns of every COLUMN_ROWS * gridDim.y-th row.
template <typename T, bool CENTRED>
__device__ __forceinline__ void norm_columns(const norm_args &a, float *room)
{
    const int64_t n = a.features, c = (int64_t)blockIdx.x * WARP + threadIdx.x % WARP;
    const int64_t step = (int64_t)gridDim.y * COLUMN_ROWS;
    const T *const x = static_cast<const T *>(a.x), *const dy = static_cast<const T *>(a.dy);
    float dgamma = 0.0f, dbeta = 0.0f;
    if (c < n) {
#pragma unroll 4
        for (int64_t r = (int64_t)blockIdx.y * COLUMN_ROWS + threadIdx.x / WARP; r < a.rows; r += step) {
            const float d = widen(dy[r * n + c]), v = widen(x[r * n + c]);
            dgamma += d * (v - (CENTRED ? a.mean[r] : 0.0f)) * a.rstd[r];
            dbeta += d;
        }
    }
    dgamma = column_total(dgamma, room);
    dbeta = CENTRED ? column_total(dbeta, room) : 0.0f;
    float *const to = a.partial + blockIdx.y * n * (CENTRED ? 2 : 1);
    if (c < n && threadIdx.x < WARP) {
        to[c] = dgamma;
        if (CENTRED) {
            to[n + c] = dbeta;
        }
    }
}

extern "C" __global__ void norm_finish(norm_finish_args a)
{
    SHARED double room[COLUMN_THREADS];
    const int64_t width = a.dbeta != nullptr ? 2 * a.features : a.features;
    const int64_t c = (int64_t)blockIdx.x * WARP + threadIdx.x % WARP;
    double sum = 0.0;
    for (int64_t p = threadIdx.x / WARP; c < width && p < a.parts; p += COLUMN_ROWS) {
        sum += (double)a.partial[p * width + c];
    }
    sum = column_total(sum, room);
    if (c < width && threadIdx.x < WARP) {
        (c < a.features ? a.dgamma : a.dbeta)[c % a.features] = (float)sum;
    }
}

#define NORM(name, suffix, type, centred)                                                                    \
    extern "C" __global__ void __launch_bounds__(ROWS_WARP_THREADS) name##_warp_##suffix(norm_args a)        \
    {                                                                                                        \
        constexpr int v = lanes<type>::count;                                                                \
        if (a.vectors) {                                                                                     \
            norm_rows<type, v, held<v>::warp, centred>(a, warp_team(), nullptr);                             \
        } else {                                                                                             \
            norm_rows<type, 1, held<1>::warp, centred>(a, warp_team(), nullptr);                             \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_BLOCK_THREADS) name##_block_##suffix(norm_args a)      \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        constexpr int v = lanes<type>::count;                                                                \
        if (a.vectors) {                                                                                     \
            norm_rows<type, v, held<v>::block, centred>(a, block_team{room}, nullptr);                       \
        } else {                                                                                             \
            norm_rows<type, 1, held<1>::block, centred>(a, block_team{room}, nullptr);                       \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_LONG_THREADS, 1) name##_long_##suffix(norm_args a)     \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        SHARED_DYNAMIC(float, shared);                                                                       \
        type *const row = a.cached ? reinterpret_cast<type *>(shared) : nullptr;                             \
        if (a.vectors) {                                                                                     \
            norm_rows<type, lanes<type>::count, 0, centred>(a, block_team{room}, row);                       \
        } else {                                                                                             \
            norm_rows<type, 1, 0, centred>(a, block_team{room}, row);                                        \
        }                                                                                                    \
    }
#define NORM_BWD(name, suffix, type, centred)                                                                \
    extern "C" __global__ void __launch_bounds__(ROWS_WARP_THREADS) name##_warp_##suffix(norm_args a)        \
    {                                                                                                        \
        SHARED_DYNAMIC(float, shared);                                                                       \
        if (a.vectors) {                                                                                     \
            norm_bwd_warps<type, lanes<type>::count, centred>(a, shared);                                    \
        } else {                                                                                             \
            norm_bwd_warps<type, 1, centred>(a, shared);                                                     \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_BLOCK_THREADS) name##_block_##suffix(norm_args a)      \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        if (a.vectors) {                                                                                     \
            norm_bwd_block<type, lanes<type>::count, centred>(a, room);                                      \
        } else {                                                                                             \
            norm_bwd_block<type, 1, centred>(a, room);                                                       \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_LONG_THREADS, 1) name##_long_##suffix(norm_args a)     \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        if (a.vectors) {                                                                                     \
            norm_bwd_long<type, lanes<type>::count, centred>(a, room);                                       \
        } else {                                                                                             \
            norm_bwd_long<type, 1, centred>(a, room);                                                        \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void name##_columns_##suffix(norm_args a)                                          \
    {                                                                                                        \
        SHARED float room[COLUMN_THREADS];                                                                   \
        norm_columns<type, centred>(a, room);                                                                \
    }
#define NORMS(suffix, type)                                                                                  \
    NORM(layer_norm, suffix, type, true)                                                                     \
    NORM(rms_norm, suffix, type, false)                                                                      \
    NORM_BWD(layer_norm_bwd, suffix, type, true)                                                             \
    NORM_BWD(rms_norm_bwd, suffix, type, false)
FOR_REAL_TYPES(NORMS)
