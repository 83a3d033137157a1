// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over rows of channels. Statistics are the mean and squared deviations of short chunks in registers,
// joined (Chan, Golub, LeVeque: "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979)
// over a thread's chunks, a block and, in double, over blocks; the same sums in the same order every time. All of it is
// of distances from a channel's first value, so that a large mean costs the variance no digits.
//
// Bytes moved: forward x twice and y once (and a summand once, normalised on the way or not), against a floor of x and y
// once; backward x and dy twice and dx once against once each: what a ReLU let through is known from x, so that y is not
// read, and dy behind a pooling is gathered from the pooled one, a quarter of it and an index of bytes. The second pass
// walks backwards, so that what the first read last comes from the second level cache: all of a tensor that fits there.
#include "batch_norm_args.h"
#include "normalise.cuh"
#include "pool.cuh"

// What a thread has of every step.
template <typename T, int V> struct place {
    int64_t first; // pack of step 0
    bool active;

    __device__ __forceinline__ explicit place(const batch_norm_walk &w)
    {
        const int t = (int)threadIdx.x, row = t / w.across;
        const int64_t in_period = (int64_t)blockIdx.y * w.across + (t - row * w.across);
        first = row * w.period + in_period;
        active = t < w.width && in_period < w.period;
    }
    __device__ __forceinline__ int64_t channel(const batch_norm_walk &w, int lane) const
    {
        return (first * V + lane) % w.channels;
    }
    // Packs of the steps [begin, begin + most) that there are, no more than N; returns how many.
    template <int N>
    __device__ __forceinline__ int load(const batch_norm_walk &w, const T *x, int64_t begin, int most,
                                        pack<T, V> (&keep)[N]) const
    {
        int n = 0;
#pragma unroll
        for (int u = 0; u < N; u++) {
            const int64_t p = (begin + u) * w.step + first;
            if (active && u < most && p < w.packs) {
                keep[u] = reinterpret_cast<const pack<T, V> *>(x)[p];
                n = u + 1;
            }
        }
        return n;
    }
};

// Channels that are complete in this block, the first of them, and where their entries lie among its values.
struct block_channels {
    int64_t first;
    int count;
    __device__ __forceinline__ block_channels(const batch_norm_walk &w, int v)
        : first((int64_t)blockIdx.y * w.across * v)
    {
        const int64_t left = w.channels - first, most = (int64_t)w.across * v;
        count = (int)(left < most ? left : most);
    }
};

__device__ __forceinline__ float group_sum(float x, int group)
{
    for (int k = group / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(FULL_WARP, x, k);
    }
    return x;
}

// ---- statistics ---------------------------------------------------------------------------------------------------

// Joins `n` values of every lane, n above 0, into their mean and squared deviations so far.
template <typename T, int V>
__device__ __forceinline__ void join_chunk(const pack<T, V> (&keep)[BATCH_NORM_STEPS], int n, float count,
                                           const float (&shift)[V], float (&mean)[V], float (&square)[V])
{
    const float share = (float)n / (count + (float)n), inverse = 1.0f / (float)n;
#pragma unroll
    for (int lane = 0; lane < V; lane++) {
        float sum = 0.0f, here = 0.0f;
#pragma unroll
        for (int u = 0; u < BATCH_NORM_STEPS; u++) {
            sum += u < n ? widen(keep[u].at[lane]) - shift[lane] : 0.0f;
        }
        sum *= inverse;
#pragma unroll
        for (int u = 0; u < BATCH_NORM_STEPS; u++) {
            const float apart = u < n ? widen(keep[u].at[lane]) - shift[lane] - sum : 0.0f;
            here += apart * apart;
        }
        const float apart = sum - mean[lane];
        mean[lane] += apart * share;
        square[lane] += here + apart * apart * count * share;
    }
}

// Joins the block's entries of every channel and leaves them in `partial`. `room`: [mean, squares][width * v] and
// [width] counts.
__device__ __forceinline__ void join_block(const batch_norm_args &a, int v, const float *room)
{
    const batch_norm_walk &w = a.walk;
    const block_channels mine(w, v);
    const int values = w.width * v, lane = (int)threadIdx.x % w.group;
    const float *const mean = room, *const square = room + values, *const count = room + 2 * values;
    float *const to = a.partial + (int64_t)blockIdx.x * 3 * w.channels + mine.first;
    for (int base = 0; base < mine.count; base += (int)blockDim.x / w.group) {
        const int c = base + (int)threadIdx.x / w.group;
        const int entries = c < mine.count ? w.entries : 0;
        float n = 0.0f, sum = 0.0f, squares = 0.0f;
        for (int e = lane; e < entries; e += w.group) {
            const int at = c + e * (int)w.span;
            n += count[at / v];
            sum += count[at / v] * mean[at];
        }
        n = group_sum(n, w.group);
        const float middle = group_sum(sum, w.group) / n;
        for (int e = lane; e < entries; e += w.group) {
            const int at = c + e * (int)w.span;
            squares += square[at] + count[at / v] * (mean[at] - middle) * (mean[at] - middle);
        }
        squares = group_sum(squares, w.group);
        if (entries > 0 && lane == 0) {
            to[c] = n;
            to[w.channels + c] = middle;
            to[2 * w.channels + c] = squares;
        }
    }
}

template <typename T, int V, bool>
__device__ __forceinline__ void statistics(const batch_norm_args &a, float *room)
{
    const batch_norm_walk &w = a.walk;
    const place<T, V> mine(w);
    float count = 0.0f, shift[V] = {}, mean[V] = {}, square[V] = {};
#pragma unroll
    for (int lane = 0; lane < V && mine.active; lane++) {
        shift[lane] = widen(static_cast<const T *>(a.x)[mine.channel(w, lane)]);
        const int64_t c = mine.first * V + lane;
        if (blockIdx.x == 0 && c < w.channels) {
            a.partial[gridDim.x * 3 * w.channels + c] = shift[lane];
        }
    }
    const int64_t stride = (int64_t)gridDim.x * w.chunk;
    for (int64_t s = (int64_t)blockIdx.x * w.chunk; s < w.steps; s += stride) {
        pack<T, V> keep[BATCH_NORM_STEPS];
        const int n = mine.load(w, static_cast<const T *>(a.x), s, w.chunk, keep);
        if (n > 0) {
            join_chunk<T, V>(keep, n, count, shift, mean, square);
            count += (float)n;
        }
    }
    const int values = w.width * V, t = (int)threadIdx.x;
    if (t < w.width) {
        room[2 * values + t] = count;
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            room[t * V + lane] = mean[lane];
            room[values + t * V + lane] = square[lane];
        }
    }
    __syncthreads();
    join_block(a, V, room);
}

// Over the threads of a column, `across` of which lie side by side: every one of them gets its sum.
__device__ __forceinline__ double joined(double x, double *room, int across)
{
    const int t = (int)threadIdx.x;
    room[t] = x;
    __syncthreads();
    for (int k = (int)blockDim.x / 2; k >= across; k /= 2) {
        if (t < k) {
            room[t] += room[t + k];
        }
        __syncthreads();
    }
    const double total = room[t % across];
    __syncthreads();
    return total;
}

extern "C" __global__ void __launch_bounds__(BATCH_NORM_JOIN_THREADS)
    batch_norm_finish(batch_norm_finish_args a)
{
    SHARED double room[BATCH_NORM_JOIN_THREADS];
    const int row = (int)threadIdx.x / a.across, rows = (int)blockDim.x / a.across;
    const int64_t c = (int64_t)blockIdx.x * a.across + threadIdx.x % a.across,
                  parts = c < a.channels ? a.parts : 0;
    double sum = 0.0, square = 0.0;
    for (int64_t p = row; p < parts; p += rows) {
        const float *const from = a.partial + p * 3 * a.channels + c;
        sum += (double)from[0] * (double)from[a.channels];
    }
    const double mean = joined(sum, room, a.across) / (double)a.rows;
    for (int64_t p = row; p < parts; p += rows) {
        const float *const from = a.partial + p * 3 * a.channels + c;
        const double apart = (double)from[a.channels] - mean;
        square += (double)from[2 * a.channels] + (double)from[0] * apart * apart;
    }
    square = joined(square, room, a.across);
    if (parts > 0 && row == 0) {
        const double first = (double)a.partial[a.parts * 3 * a.channels + c];
        const double m = a.momentum,
                     others = a.rows > 1 ? (double)(a.rows - 1) : 1.0; // of one row as TensorFlow
        a.mean_out[c] = (float)(first + mean);
        a.variance_out[c] = (float)(square / (double)a.rows);
        a.running_mean[c] = (float)((1.0 - m) * (double)a.running_mean[c] + m * (first + mean));
        a.running_variance[c] = (float)((1.0 - m) * (double)a.running_variance[c] + m * square / others);
    }
}

// ---- y ------------------------------------------------------------------------------------------------------------

enum { ALONE, ADDED, NORMALISED }; // what is done with a summand

// With a summand, to what would have been stored without; one that is normalised first, as it would have been stored.
template <typename T, int V, int SUMMAND> __device__ __forceinline__ void apply(const batch_norm_args &a)
{
    constexpr bool ADDS = SUMMAND != ALONE;
    const batch_norm_walk &w = a.walk;
    const place<T, V> mine(w);
    float mean[V] = {}, scale[V] = {}, beta[V] = {};
    float mean2[V] = {}, scale2[V] = {}, beta2[V] = {};
#pragma unroll
    for (int lane = 0; lane < V && mine.active; lane++) {
        const int64_t c = mine.channel(w, lane);
        mean[lane] = a.mean[c];
        scale[lane] = normalising_scale(a.gamma[c], a.variance[c], a.epsilon);
        beta[lane] = a.beta[c];
        if (SUMMAND == NORMALISED) {
            mean2[lane] = a.summand_mean[c];
            scale2[lane] = normalising_scale(a.summand_gamma[c], a.summand_variance[c], a.epsilon);
            beta2[lane] = a.summand_beta[c];
        }
    }
    const int64_t chunks = (w.steps + BATCH_NORM_FLIGHT - 1) / BATCH_NORM_FLIGHT;
    for (int64_t k = chunks - 1 - blockIdx.x; k >= 0; k -= gridDim.x) {
        pack<T, V> keep[BATCH_NORM_FLIGHT], summand[ADDS ? BATCH_NORM_FLIGHT : 1];
        const int n =
            mine.load(w, static_cast<const T *>(a.x), k * BATCH_NORM_FLIGHT, BATCH_NORM_FLIGHT, keep);
        if (ADDS) {
            (void)mine.load(w, static_cast<const T *>(a.summand), k * BATCH_NORM_FLIGHT, BATCH_NORM_FLIGHT,
                            summand);
        }
#pragma unroll
        for (int u = 0; u < BATCH_NORM_FLIGHT; u++) {
            float v[V];
            if (u < n) {
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    v[lane] = normalised(widen(keep[u].at[lane]), mean[lane], scale[lane], beta[lane]);
                    if (ADDS) {
                        float other = widen(summand[ADDS ? u : 0].at[lane]);
                        if (SUMMAND == NORMALISED) {
                            other =
                                widen(narrow<T>(normalised(other, mean2[lane], scale2[lane], beta2[lane])));
                        }
                        v[lane] = widen(narrow<T>(v[lane])) + other;
                    }
                    v[lane] = v[lane] < a.floor ? a.floor : v[lane];
                    v[lane] = v[lane] > a.ceiling ? a.ceiling : v[lane];
                }
                const int64_t p = (k * BATCH_NORM_FLIGHT + u) * w.step + mine.first;
                store_pack<T, V>(static_cast<T *>(a.y) + p * V, v);
            }
        }
    }
}

// ---- gradients ----------------------------------------------------------------------------------------------------

// Does the activation behind y let the gradient through? y as it was stored.
template <typename T>
__device__ __forceinline__ bool lets_through(const batch_norm_args &a, float x, float mean, float scale,
                                             float beta)
{
    const float y = widen(narrow<T>(normalised(x, mean, scale, beta)));
    return y > 0.0f && (y < a.ceiling || a.ceiling == INFINITY);
}

enum { PLAIN, MASKED, GATED, POOLED }; // where what counts of dy comes from

// Pack p of dy as the gradient of the pooling would have stored it. A pack that lies in two pixels is gathered value by value.
template <typename T, int V>
__device__ __forceinline__ void gather_pooled(const pool_args &a, int64_t p, pack<T, V> &dy)
{
    float sum[V] = {};
    if (a.channels % V == 0) {
        gather_largest<T, V>(a, p, sum);
    } else {
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            float one[1] = {};
            gather_largest<T, 1>(a, p * V + lane, one);
            sum[lane] = one[0];
        }
    }
#pragma unroll
    for (int lane = 0; lane < V; lane++) {
        dy.at[lane] = narrow<T>(sum[lane]);
    }
}

// dy of the steps [begin, begin + n).
template <typename T, int V, int MODE, int N>
__device__ __forceinline__ void load_dy(const batch_norm_args &a, const place<T, V> &mine, int64_t begin,
                                        int n, pack<T, V> (&dy)[N])
{
    if constexpr (MODE != POOLED) {
        (void)mine.load(a.walk, static_cast<const T *>(a.dy), begin, n, dy);
    } else {
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (u < n) {
                gather_pooled<T, V>(a.pooled, (begin + u) * a.walk.step + mine.first, dy[u]);
            }
        }
    }
}

// What gate lets through of dy, and of what is added to it as it would have been stored; also brought to `gated`.
template <typename T, int V>
__device__ __forceinline__ void let_through(const batch_norm_args &a, int64_t p, pack<T, V> &dy)
{
    const pack<T, V> gate = static_cast<const pack<T, V> *>(a.gate)[p];
    pack<T, V> more;
    if (a.more != nullptr) {
        more = static_cast<const pack<T, V> *>(a.more)[p];
    }
#pragma unroll
    for (int lane = 0; lane < V; lane++) {
        const float y = widen(gate.at[lane]);
        const bool open = y > 0.0f && (y < a.ceiling || a.ceiling == INFINITY);
        if (a.more != nullptr) {
            dy.at[lane] = narrow<T>(widen(dy.at[lane]) + widen(more.at[lane]));
        }
        dy.at[lane] = open ? dy.at[lane] : narrow<T>(0.0f);
    }
    static_cast<pack<T, V> *>(a.gated)[p] = dy;
}

// Sums of dy and of dy * (x - mean). `room`: [dy, dy * (x - mean)][width * V].
template <typename T, int V, int MODE>
__device__ __forceinline__ void gradient_sums(const batch_norm_args &a, float *room)
{
    const batch_norm_walk &w = a.walk;
    const place<T, V> mine(w);
    float mean[V] = {}, sum[V] = {}, along[V] = {}, scale[V] = {}, beta[V] = {};
#pragma unroll
    for (int lane = 0; lane < V && mine.active; lane++) {
        const int64_t c = mine.channel(w, lane);
        mean[lane] = a.mean[c];
        if (MODE == MASKED) {
            scale[lane] = normalising_scale(a.gamma[c], a.variance[c], a.epsilon);
            beta[lane] = a.beta[c];
        }
    }
    const int64_t stride = (int64_t)gridDim.x * w.chunk;
    for (int64_t s = (int64_t)blockIdx.x * w.chunk; s < w.steps; s += stride) {
        pack<T, V> x[BATCH_NORM_FLIGHT], dy[BATCH_NORM_FLIGHT];
        const int n = mine.load(w, static_cast<const T *>(a.x), s, w.chunk, x);
        load_dy<T, V, MODE>(a, mine, s, n, dy);
#pragma unroll
        for (int u = 0; u < BATCH_NORM_FLIGHT; u++) {
            if (MODE == GATED && u < n) {
                let_through<T, V>(a, (s + u) * w.step + mine.first, dy[u]);
            }
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                const float at = widen(x[u].at[lane]);
                const bool counts =
                    u < n && (MODE != MASKED || lets_through<T>(a, at, mean[lane], scale[lane], beta[lane]));
                const float d = counts ? widen(dy[u].at[lane]) : 0.0f;
                sum[lane] += d;
                along[lane] += u < n ? d * (at - mean[lane]) : 0.0f;
            }
        }
    }
    const int values = w.width * V, t = (int)threadIdx.x;
#pragma unroll
    for (int lane = 0; lane < V; lane++) {
        if (t < w.width) {
            room[t * V + lane] = sum[lane];
            room[values + t * V + lane] = along[lane];
        }
    }
    __syncthreads();
    const block_channels channels(w, V);
    float *const to = a.partial + (int64_t)blockIdx.x * 2 * w.channels + channels.first;
    for (int base = 0; base < channels.count; base += (int)blockDim.x / w.group) {
        const int c = base + t / w.group, entries = c < channels.count ? w.entries : 0;
        float whole = 0.0f, projected = 0.0f;
        for (int e = t % w.group; e < entries; e += w.group) {
            whole += room[c + e * (int)w.span];
            projected += room[values + c + e * (int)w.span];
        }
        whole = group_sum(whole, w.group);
        projected = group_sum(projected, w.group);
        if (entries > 0 && t % w.group == 0) {
            to[c] = whole;
            to[w.channels + c] = projected;
        }
    }
}

extern "C" __global__ void __launch_bounds__(BATCH_NORM_JOIN_THREADS)
    batch_norm_bwd_finish(batch_norm_finish_args a)
{
    SHARED double room[BATCH_NORM_JOIN_THREADS];
    const int row = (int)threadIdx.x / a.across, rows = (int)blockDim.x / a.across;
    const int64_t c = (int64_t)blockIdx.x * a.across + threadIdx.x % a.across,
                  parts = c < a.channels ? a.parts : 0;
    double sum = 0.0, along = 0.0;
    for (int64_t p = row; p < parts; p += rows) {
        sum += (double)a.partial[p * 2 * a.channels + c];
        along += (double)a.partial[(p * 2 + 1) * a.channels + c];
    }
    sum = joined(sum, room, a.across);
    along = joined(along, room, a.across);
    if (parts > 0 && row == 0) {
        a.dbeta[c] = (float)sum;
        a.dgamma[c] = (float)(along / sqrt((double)a.variance[c] + a.epsilon));
    }
}

// With xhat = (x - mean) / std: dx = gamma / std * (dy - dbeta / R - xhat * dgamma / R).
template <typename T, int V, int MODE> __device__ __forceinline__ void gradient(const batch_norm_args &a)
{
    const batch_norm_walk &w = a.walk;
    const place<T, V> mine(w);
    float mean[V] = {}, scale[V] = {}, whole[V] = {}, along[V] = {}, forward[V] = {}, beta[V] = {};
#pragma unroll
    for (int lane = 0; lane < V && mine.active; lane++) {
        const int64_t c = mine.channel(w, lane);
        const float inverse = 1.0f / sqrtf(a.variance[c] + a.epsilon);
        mean[lane] = a.mean[c];
        scale[lane] = a.gamma[c] * inverse;
        whole[lane] = a.dbeta[c] / (float)w.rows;
        along[lane] = inverse * a.dgamma[c] / (float)w.rows;
        if (MODE == MASKED) {
            forward[lane] = normalising_scale(a.gamma[c], a.variance[c], a.epsilon);
            beta[lane] = a.beta[c];
        }
    }
    const int64_t chunks = (w.steps + BATCH_NORM_FLIGHT - 1) / BATCH_NORM_FLIGHT;
    for (int64_t k = chunks - 1 - blockIdx.x; k >= 0; k -= gridDim.x) {
        pack<T, V> x[BATCH_NORM_FLIGHT], dy[BATCH_NORM_FLIGHT];
        const int n = mine.load(w, static_cast<const T *>(a.x), k * BATCH_NORM_FLIGHT, BATCH_NORM_FLIGHT, x);
        load_dy<T, V, MODE>(a, mine, k * BATCH_NORM_FLIGHT, n, dy);
#pragma unroll
        for (int u = 0; u < BATCH_NORM_FLIGHT; u++) {
            float v[V];
            if (u < n) {
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    const float at = widen(x[u].at[lane]);
                    const bool counts =
                        MODE != MASKED || lets_through<T>(a, at, mean[lane], forward[lane], beta[lane]);
                    const float d = counts ? widen(dy[u].at[lane]) : 0.0f;
                    v[lane] = scale[lane] * (d - whole[lane] - (at - mean[lane]) * along[lane]);
                }
                const int64_t p = (k * BATCH_NORM_FLIGHT + u) * w.step + mine.first;
                store_pack<T, V>(static_cast<T *>(a.y) + p * V, v);
            }
        }
    }
}

#define IN_REGISTERS(name, suffix, type, function, flag)                                                     \
    extern "C" __global__ void __launch_bounds__(BATCH_NORM_THREADS) name##_##suffix(batch_norm_args a)      \
    {                                                                                                        \
        if (a.walk.vectors) {                                                                                \
            function<type, lanes<type>::count, flag>(a);                                                     \
        } else {                                                                                             \
            function<type, 1, flag>(a);                                                                      \
        }                                                                                                    \
    }
#define WITH_ROOM(name, suffix, type, function, flag)                                                        \
    extern "C" __global__ void __launch_bounds__(BATCH_NORM_THREADS) name##_##suffix(batch_norm_args a)      \
    {                                                                                                        \
        SHARED_DYNAMIC(float, room);                                                                         \
        if (a.walk.vectors) {                                                                                \
            function<type, lanes<type>::count, flag>(a, room);                                               \
        } else {                                                                                             \
            function<type, 1, flag>(a, room);                                                                \
        }                                                                                                    \
    }
#define BATCH_NORM(suffix, type)                                                                             \
    WITH_ROOM(batch_norm_statistics, suffix, type, statistics, false)                                        \
    IN_REGISTERS(batch_norm_apply, suffix, type, apply, ALONE)                                               \
    IN_REGISTERS(batch_norm_apply_add, suffix, type, apply, ADDED)                                           \
    IN_REGISTERS(batch_norm_apply_add_normalised, suffix, type, apply, NORMALISED)                           \
    WITH_ROOM(batch_norm_bwd_sums, suffix, type, gradient_sums, PLAIN)                                       \
    WITH_ROOM(batch_norm_bwd_sums_masked, suffix, type, gradient_sums, MASKED)                               \
    WITH_ROOM(batch_norm_bwd_sums_gated, suffix, type, gradient_sums, GATED)                                 \
    WITH_ROOM(batch_norm_bwd_sums_pooled, suffix, type, gradient_sums, POOLED)                               \
    IN_REGISTERS(batch_norm_bwd, suffix, type, gradient, PLAIN)                                              \
    IN_REGISTERS(batch_norm_bwd_masked, suffix, type, gradient, MASKED)                                      \
    IN_REGISTERS(batch_norm_bwd_pooled, suffix, type, gradient, POOLED)
FOR_REAL_TYPES(BATCH_NORM)
