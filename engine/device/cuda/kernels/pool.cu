// SPDX-License-Identifier: Apache-2.0
// Pooling, a pack of neighbouring channels per thread. Every result is gathered: backward a pixel asks the windows that
// see it, in their order, so that sums have one order and nothing is added atomically.
//
// Bytes moved are every operand once; what windows share comes from the caches.
#include "normalise.cuh"
#include "pool.cuh"

// ---- maxima -------------------------------------------------------------------------------------------------------

// The normalisation and activation in front of a pooling, of the channels of one pack.
template <typename T, int V> struct channel_norm {
    int known; // the first channel
    float mean[V], scale[V], beta[V];

    __device__ __forceinline__ channel_norm() : known(-1)
    {
    }
    __device__ __forceinline__ void load(const pool_args &a, int c)
    {
        if (c == known) {
            return;
        }
        known = c;
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            mean[lane] = a.mean[c + lane];
            scale[lane] = normalising_scale(a.gamma[c + lane], a.variance[c + lane], a.epsilon);
            beta[lane] = a.beta[c + lane];
        }
    }
    // v as the normalisation would have stored it.
    __device__ __forceinline__ void apply(const pool_args &a, float (&v)[V]) const
    {
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            float y = normalised(v[lane], mean[lane], scale[lane], beta[lane]);
            y = y < a.floor ? a.floor : y;
            y = y > a.ceiling ? a.ceiling : y;
            v[lane] = widen(narrow<T>(y));
        }
    }
};

template <typename T, int V, bool NORMALISES> __device__ __forceinline__ void largest(const pool_args &a)
{
    const T *const x = static_cast<const T *>(a.x);
    channel_norm<T, V> norm;
    for (int64_t i = grid_thread(); i < a.packs; i += grid_width()) {
        const pixel p(i, a.pooled_width, a.pooled_height, a.channels / V, V);
        const window seen(a, p.h, p.w);
        float best[V];
        int place[V];
        if (NORMALISES) {
            norm.load(a, p.c);
        }
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            best[lane] = -INFINITY;
            place[lane] = -1;
        }
        for (int h = seen.top; h < seen.bottom; h++) {
            for (int w = seen.left; w < seen.right; w++) {
                const int here = (h - seen.origin_h) * a.kernel_w + w - seen.origin_w;
                float v[V];
                load_pack<T, V>(x + of_image(a, p, h, w), v);
                if (NORMALISES) {
                    norm.apply(a, v);
                }
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    const bool better = place[lane] < 0 || v[lane] > best[lane];
                    best[lane] = better ? v[lane] : best[lane];
                    place[lane] = better ? here : place[lane];
                }
            }
        }
        store_pack<T, V>(static_cast<T *>(a.out) + i * V, best);
        if (a.index_out != nullptr) {
            pack<uint8_t, V> index;
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                index.at[lane] = (uint8_t)place[lane];
            }
            *reinterpret_cast<pack<uint8_t, V> *>(a.index_out + i * V) = index;
        }
    }
}

template <typename T, int V> __device__ __forceinline__ void max_pool(const pool_args &a)
{
    largest<T, V, false>(a);
}

template <typename T, int V> __device__ __forceinline__ void max_pool_normalised(const pool_args &a)
{
    largest<T, V, true>(a);
}

// Which lanes of `open` have the first of their window's largest values at (h, w): x equals y there, and nowhere before.
template <typename T, int V>
__device__ __forceinline__ unsigned first_equal(const pool_args &a, const pixel &p, const window &seen,
                                                const float (&x)[V], const float (&y)[V])
{
    unsigned open = 0;
#pragma unroll
    for (int lane = 0; lane < V; lane++) {
        open |= x[lane] == y[lane] ? 1u << lane : 0u;
    }
    for (int h = seen.top; h <= p.h && open != 0; h++) {
        const int right = h == p.h ? p.w : seen.right;
        for (int w = seen.left; w < right && open != 0; w++) {
            float before[V];
            load_pack<T, V>(static_cast<const T *>(a.x) + of_image(a, p, h, w), before);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                open &= before[lane] == y[lane] ? ~(1u << lane) : ~0u;
            }
        }
    }
    return open;
}

template <typename T, int V> __device__ __forceinline__ void max_pool_bwd(const pool_args &a)
{
    const T *const x = static_cast<const T *>(a.x), *const y = static_cast<const T *>(a.y),
                   *const dy = static_cast<const T *>(a.dy);
    for (int64_t i = grid_thread(); i < a.packs; i += grid_width()) {
        const pixel p(i, a.width, a.height, a.channels / V, V);
        const windows see(a, p);
        float here[V], sum[V] = {};
        load_pack<T, V>(x + i * V, here);
        for (int h = see.first_h; h < see.end_h; h++) {
            for (int w = see.first_w; w < see.end_w; w++) {
                const int64_t at = of_pooled(a, p, h, w);
                float most[V], d[V];
                load_pack<T, V>(y + at, most);
                const unsigned mine = first_equal<T, V>(a, p, window(a, h, w), here, most);
                if (mine != 0) {
                    load_pack<T, V>(dy + at, d);
#pragma unroll
                    for (int lane = 0; lane < V; lane++) {
                        sum[lane] += (mine >> lane & 1u) != 0 ? d[lane] : 0.0f;
                    }
                }
            }
        }
        store_pack<T, V>(static_cast<T *>(a.out) + i * V, sum);
    }
}

template <typename T, int V> __device__ __forceinline__ void max_pool_bwd_index(const pool_args &a)
{
    for (int64_t i = grid_thread(); i < a.packs; i += grid_width()) {
        float sum[V] = {};
        gather_largest<T, V>(a, i, sum);
        store_pack<T, V>(static_cast<T *>(a.out) + i * V, sum);
    }
}

// ---- means --------------------------------------------------------------------------------------------------------

template <typename T, int V> __device__ __forceinline__ void avg_pool(const pool_args &a)
{
    const T *const x = static_cast<const T *>(a.x);
    for (int64_t i = grid_thread(); i < a.packs; i += grid_width()) {
        const pixel p(i, a.pooled_width, a.pooled_height, a.channels / V, V);
        const window seen(a, p.h, p.w);
        float sum[V] = {};
        for (int h = seen.top; h < seen.bottom; h++) {
            for (int w = seen.left; w < seen.right; w++) {
                float v[V];
                load_pack<T, V>(x + of_image(a, p, h, w), v);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    sum[lane] += v[lane];
                }
            }
        }
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            sum[lane] /= seen.places(a);
        }
        store_pack<T, V>(static_cast<T *>(a.out) + i * V, sum);
    }
}

template <typename T, int V> __device__ __forceinline__ void avg_pool_bwd(const pool_args &a)
{
    const T *const dy = static_cast<const T *>(a.dy);
    for (int64_t i = grid_thread(); i < a.packs; i += grid_width()) {
        const pixel p(i, a.width, a.height, a.channels / V, V);
        const windows see(a, p);
        float sum[V] = {};
        for (int h = see.first_h; h < see.end_h; h++) {
            for (int w = see.first_w; w < see.end_w; w++) {
                const float places = window(a, h, w).places(a);
                float d[V];
                load_pack<T, V>(dy + of_pooled(a, p, h, w), d);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    sum[lane] += d[lane] / places;
                }
            }
        }
        store_pack<T, V>(static_cast<T *>(a.out) + i * V, sum);
    }
}

// ---- the mean of whole images -------------------------------------------------------------------------------------

// A block: one image (blockIdx.y, …), `across` packs of channels. `room`: V floats of every thread.
template <typename T, int V> __device__ __forceinline__ void global_avg_pool(const pool_args &a, float *room)
{
    const int t = (int)threadIdx.x, down = (int)blockDim.x / a.across, row = t / a.across;
    const int pixels = a.height * a.width, packs = a.channels / V;
    const int c = (int)blockIdx.x * a.across + t % a.across;
    const int64_t images = a.packs / packs;
    for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
        const T *const x = static_cast<const T *>(a.x) + image * pixels * a.channels + (int64_t)c * V;
        float sum[V] = {};
        if (c < packs) {
#pragma unroll 4
            for (int pixel = row; pixel < pixels; pixel += down) {
                float v[V];
                load_pack<T, V>(x + (int64_t)pixel * a.channels, v);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    sum[lane] += v[lane];
                }
            }
        }
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            room[lane * blockDim.x + t] = sum[lane];
        }
        __syncthreads();
        for (int k = down / 2; k > 0; k /= 2) {
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                if (row < k) {
                    room[lane * blockDim.x + t] += room[lane * blockDim.x + t + k * a.across];
                }
            }
            __syncthreads();
        }
        if (row == 0 && c < packs) {
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                sum[lane] = room[lane * blockDim.x + t] / (float)pixels;
            }
            store_pack<T, V>(static_cast<T *>(a.out) + image * a.channels + (int64_t)c * V, sum);
        }
        __syncthreads();
    }
}

template <typename T, int V> __device__ __forceinline__ void global_avg_pool_bwd(const pool_args &a)
{
    const float pixels = (float)(a.height * a.width);
    for (int64_t i = grid_thread(); i < a.packs; i += grid_width()) {
        const pixel p(i, a.width, a.height, a.channels / V, V);
        float d[V];
        load_pack<T, V>(static_cast<const T *>(a.dy) + p.image * a.channels + p.c, d);
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            d[lane] /= pixels;
        }
        store_pack<T, V>(static_cast<T *>(a.out) + i * V, d);
    }
}

// ---- kernels ------------------------------------------------------------------------------------------------------

// `blocks` at once on a multiprocessor.
#define POOL_OF(name, suffix, type, blocks)                                                                  \
    extern "C" __global__ void __launch_bounds__(POOL_THREADS, blocks) name##_##suffix(pool_args a)          \
    {                                                                                                        \
        if (a.vectors) {                                                                                     \
            name<type, lanes<type>::count>(a);                                                               \
        } else {                                                                                             \
            name<type, 1>(a);                                                                                \
        }                                                                                                    \
    }
#define POOL(name, suffix, type) POOL_OF(name, suffix, type, 4)
#define POOLS(suffix, type)                                                                                  \
    POOL(max_pool, suffix, type)                                                                             \
    POOL_OF(max_pool_normalised, suffix, type, 3)                                                            \
    POOL(max_pool_bwd, suffix, type)                                                                         \
    POOL(max_pool_bwd_index, suffix, type)                                                                   \
    POOL(avg_pool, suffix, type)                                                                             \
    POOL(avg_pool_bwd, suffix, type)                                                                         \
    POOL(global_avg_pool_bwd, suffix, type)                                                                  \
    extern "C" __global__ void __launch_bounds__(POOL_THREADS, 4) global_avg_pool_##suffix(pool_args a)      \
    {                                                                                                        \
        SHARED_DYNAMIC(float, room);                                                                         \
        if (a.vectors) {                                                                                     \
            global_avg_pool<type, lanes<type>::count>(a, room);                                              \
        } else {                                                                                             \
            global_avg_pool<type, 1>(a, room);                                                               \
        }                                                                                                    \
    }
FOR_REAL_TYPES(POOLS)
