// SPDX-License-Identifier: Apache-2.0
// Losses over rows of logits and between two tensors, their gradients, accuracy.
//
// Every operand moves once, of rows that fit registers (rows_args.h), and of longer ones where one reading is enough, as
// for streaming cross-entropy, or shared memory holds a row. A loss is summed over blocks' parts in a fixed order, in double.
#include "loss_args.h"
#include "rows.cuh"

__device__ __forceinline__ int64_t label_of(const loss_args &a, int64_t row)
{
    return a.byte_labels != 0 ? (int64_t) static_cast<const uint8_t *>(a.labels)[row]
                              : (int64_t) static_cast<const int32_t *>(a.labels)[row];
}

__device__ __forceinline__ float share_of(const loss_args &a)
{
    return a.scale != nullptr ? a.share * *a.scale : a.share;
}

__device__ __forceinline__ void leave_part(const loss_args &a, double total)
{
    SHARED double room[WARP];
    total = block_total(total, room);
    if (threadIdx.x == 0) {
        a.partial[blockIdx.x] = total;
    }
}

// ---- softmax cross-entropy ----------------------------------------------------------------------------------------

// Values of a pack that begins at i which lie behind the row's n: they count for nothing.
template <int V> __device__ __forceinline__ void cut(int64_t i, int64_t n, float (&v)[V])
{
    if constexpr (V > 1) {
        if (i + V > n) {
#pragma unroll
            for (int lane = 1; lane < V; lane++) {
                v[lane] = i + lane < n ? v[lane] : -INFINITY;
            }
        }
    }
}

__device__ __forceinline__ int64_t quotient(int64_t a, int64_t b)
{
    return (uint64_t)(a | b) >> 32 == 0 ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}

// p of a logit, with the bits that every kernel here gives it.
__device__ __forceinline__ float probability(float z, float most, float rsum)
{
    return product(expf(z - most), rsum);
}

// What is left of a row: probabilities; what they can be made of again; their gradient, over the logits or not.
enum leaves { LEAVES_PROBABILITIES, LEAVES_NUMBERS, LEAVES_GRADIENT };

// log sum exp(z - max) - (z_label - max): never the logarithm of a rounded probability. The label's logit is read, and
// goes into the row's maximum, before anything is written over it. A label that is no class makes the loss no number.
template <leaves LEAVES, typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ double cross_entropy(const loss_args &a, const TEAM &team, T *room)
{
    const int64_t n = a.classes;
    const float share = LEAVES == LEAVES_GRADIENT ? share_of(a) : 0.0f;
    double total = 0.0;
    row_of<T, V, PACKS> row(room);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        const T *const z = static_cast<const T *>(a.x) + r * a.pitch;
        const int64_t label = label_of(a, r);
        float chosen = LOWEST;
        if (team.rank() == 0) {
            chosen = label >= 0 && label < n ? widen(z[label]) : NAN;
        }
        row.load(z, n, team);
        const auto value = [&](int k, int64_t i, float(&v)[V]) {
            row.get(k, i, v);
            cut<V>(i, n, v);
        };
        const moments m = softmax_moments<V, PACKS>(team, n, fmaxf(chosen, LOWEST), value);
        const float rsum = 1.0f / m.sum;
        if constexpr (LEAVES == LEAVES_NUMBERS) {
            if (team.rank() == 0) {
                a.most[r] = m.largest;
                a.rsum[r] = rsum;
            }
        } else {
            T *const out = static_cast<T *>(a.out) + r * a.pitch; // probabilities have float32 logits
            walk<V, PACKS>(team, n, [&](int k, int64_t i) {
                float v[V];
                value(k, i, v);
#pragma unroll
                for (int lane = 0; lane < V; lane++) {
                    v[lane] = probability(v[lane], m.largest, rsum);
                    if constexpr (LEAVES == LEAVES_GRADIENT) {
                        v[lane] = share * (v[lane] - (i + lane == label ? 1.0f : 0.0f));
                    }
                }
                store_pack<T, V>(out + i, v);
            });
        }
        total += team.rank() == 0 ? (double)(logf(m.sum) + (m.largest - chosen)) : 0.0;
    }
    return total;
}
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ double cross_entropy_held(const loss_args &a, const TEAM &team, T *room)
{
    return cross_entropy<LEAVES_PROBABILITIES, T, V, PACKS>(a, team, room);
}
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ double cross_entropy_streaming(const loss_args &a, const TEAM &team, T *room)
{
    return cross_entropy<LEAVES_NUMBERS, T, V, PACKS>(a, team, room);
}
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ double cross_entropy_with_gradient(const loss_args &a, const TEAM &team, T *room)
{
    return cross_entropy<LEAVES_GRADIENT, T, V, PACKS>(a, team, room);
}

// What a row's gradient takes. HELD: p stands where else its logit does.
template <bool HELD> struct row_gradient {
    int64_t label;
    float most, rsum;

    __device__ __forceinline__ row_gradient(const loss_args &a, int64_t row)
        : label(label_of(a, row)), most(HELD ? 0.0f : a.most[row]), rsum(HELD ? 0.0f : a.rsum[row])
    {
    }
    __device__ __forceinline__ float operator()(float value, int64_t column) const
    {
        const float p = HELD ? value : probability(value, most, rsum);
        return p - (column == label ? 1.0f : 0.0f);
    }
};

// dlogits = share * (p - onehot), zeros behind a row; a flat walk: rows need not begin at whole vectors.
template <bool HELD, typename T> __device__ __forceinline__ void cross_entropy_bwd(const loss_args &a)
{
    constexpr int n = lanes<T>::count;
    const float share = share_of(a);
    const int64_t count = a.rows * a.pitch, packs = count / n;
    const T *const x = static_cast<const T *>(a.x);
    T *const out = static_cast<T *>(a.out);
    for (int64_t k = grid_thread(); k < packs; k += grid_width()) {
        const int64_t first = k * n;
        int64_t row = quotient(first, a.pitch), column = first - row * a.pitch;
        row_gradient<HELD> gradient(a, row);
        float v[n];
        load_pack<T, n>(x + first, v);
#pragma unroll
        for (int lane = 0; lane < n; lane++, column++) {
            if (column == a.pitch) {
                column = 0;
                gradient = row_gradient<HELD>(a, ++row);
            }
            v[lane] = column < a.classes ? share * gradient(v[lane], column) : 0.0f;
        }
        store_pack<T, n>(out + first, v);
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        const int64_t row = i / a.pitch, column = i - row * a.pitch;
        const row_gradient<HELD> gradient(a, row);
        out[i] = narrow<T>(column < a.classes ? share * gradient(widen(x[i]), column) : 0.0f);
    }
}

// ---- accuracy -----------------------------------------------------------------------------------------------------

// Rows whose label's logit is the largest, and the first that is.
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ double correct_rows(const loss_args &a, const TEAM &team, T *room)
{
    const int64_t n = a.classes;
    double total = 0.0;
    row_of<T, V, PACKS> row(room);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        const T *const z = static_cast<const T *>(a.x) + r * a.pitch;
        const int64_t label = label_of(a, r);
        row.load(z, n, team);
        float largest = -INFINITY, against = 0.0f;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V];
            row.get(k, i, v);
            cut<V>(i, n, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                largest = fmaxf(largest, v[lane]);
            }
        });
        largest = team.max(largest);
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float v[V];
            row.get(k, i, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                against +=
                    (i + lane < label && v[lane] == largest) || (i + lane == label && v[lane] != largest)
                        ? 1.0f
                        : 0.0f;
            }
        });
        against = team.sum(against);
        total += team.rank() == 0 && label >= 0 && label < n && against == 0.0f ? 1.0 : 0.0;
    }
    return total;
}

// ---- divergence ---------------------------------------------------------------------------------------------------

// Sum of q (log q - log p) = sum of q ((t - max t) - (s - max s)) / T - log sum exp t + log sum exp s.
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ double divergence_rows(const loss_args &a, const TEAM &team, T *)
{
    const int64_t n = a.classes;
    double total = 0.0;
    row_of<T, V, PACKS> student(nullptr), teacher(nullptr);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        student.load(static_cast<const T *>(a.x) + r * n, n, team);
        teacher.load(static_cast<const T *>(a.other) + r * n, n, team);
        float most_s = LOWEST, most_t = LOWEST, sum_s = 0.0f, sum_t = 0.0f, apart = 0.0f;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float s[V], t[V];
            student.get(k, i, s);
            teacher.get(k, i, t);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                most_s = fmaxf(most_s, s[lane]);
                most_t = fmaxf(most_t, t[lane]);
            }
        });
        most_s = team.max(most_s);
        most_t = team.max(most_t);
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float s[V], t[V];
            student.get(k, i, s);
            teacher.get(k, i, t);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                const float s_cold = (s[lane] - most_s) * a.cold, t_cold = (t[lane] - most_t) * a.cold;
                const float q = expf(t_cold);
                sum_s += expf(s_cold);
                sum_t += q;
                apart += q * (t_cold - s_cold);
            }
        });
        sum_s = team.sum(sum_s);
        sum_t = team.sum(sum_t);
        apart = team.sum(apart);
        const float inverse = 1.0f / sum_s;
        float *const p = static_cast<float *>(a.out) + r * n;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float s[V];
            student.get(k, i, s);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                s[lane] = expf((s[lane] - most_s) * a.cold) * inverse;
            }
            store_pack<float, V>(p + i, s);
        });
        total += team.rank() == 0 ? (double)apart / (double)sum_t + (double)logf(sum_s / sum_t) : 0.0;
    }
    return total;
}

// dstudent = share * (p - q), with q made again from the teacher.
template <typename T, int V, int PACKS, typename TEAM>
__device__ __forceinline__ void divergence_rows_bwd(const loss_args &a, const TEAM &team, T *room)
{
    const int64_t n = a.classes;
    const float share = share_of(a);
    row_of<T, V, PACKS> teacher(room);
    for (int64_t r = team.first_row(); r < a.rows; r += team.row_step()) {
        teacher.load(static_cast<const T *>(a.other) + r * n, n, team);
        const auto value = [&](int k, int64_t i, float(&v)[V]) {
            teacher.get(k, i, v);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                v[lane] *= a.cold;
            }
        };
        const moments m = softmax_moments<V, PACKS>(team, n, LOWEST, value);
        const float inverse = 1.0f / m.sum;
        walk<V, PACKS>(team, n, [&](int k, int64_t i) {
            float q[V], p[V];
            value(k, i, q);
            load_pack<float, V>(static_cast<const float *>(a.x) + r * n + i, p);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                p[lane] = share * (p[lane] - expf(q[lane] - m.largest) * inverse);
            }
            store_pack<T, V>(static_cast<T *>(a.out) + r * n + i, p);
        });
    }
}

// ---- mean squared error -------------------------------------------------------------------------------------------

template <typename T> __device__ __forceinline__ double square_sum(const loss_args &a)
{
    constexpr int n = lanes<T>::count;
    const int64_t count = a.rows * a.classes, packs = count / n;
    const T *const x = static_cast<const T *>(a.x), *const target = static_cast<const T *>(a.other);
    double total = 0.0;
#pragma unroll 4
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        float v[n], t[n], sum = 0.0f;
        load_pack<T, n>(x + i * n, v);
        load_pack<T, n>(target + i * n, t);
#pragma unroll
        for (int lane = 0; lane < n; lane++) {
            sum += (v[lane] - t[lane]) * (v[lane] - t[lane]);
        }
        total += (double)sum;
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        const float apart = widen(x[i]) - widen(target[i]);
        total += (double)(apart * apart);
    }
    return total;
}

template <typename T> __device__ __forceinline__ void square_bwd(const loss_args &a)
{
    constexpr int n = lanes<T>::count;
    const float share = share_of(a);
    const int64_t count = a.rows * a.classes, packs = count / n;
    const T *const x = static_cast<const T *>(a.x), *const target = static_cast<const T *>(a.other);
    T *const out = static_cast<T *>(a.out);
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        float v[n], t[n];
        load_pack<T, n>(x + i * n, v);
        load_pack<T, n>(target + i * n, t);
#pragma unroll
        for (int lane = 0; lane < n; lane++) {
            v[lane] = share * (v[lane] - t[lane]);
        }
        store_pack<T, n>(out + i * n, v);
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        out[i] = narrow<T>(share * (widen(x[i]) - widen(target[i])));
    }
}

// ---- binary cross-entropy and focal -------------------------------------------------------------------------------

// p, 1 - p, -t log p - (1-t) log(1-p), what is amiss of p_t, and what the focal loss multiplies the element with.
template <bool FOCAL> struct binary {
    float p, rest, entropy, amiss, weight;
    __device__ __forceinline__ binary(const loss_args &a, float z, float t)
    {
        const float e = expf(-fabsf(z)), near = 1.0f / (1.0f + e), far = e * near;
        p = z < 0.0f ? far : near;
        rest = z < 0.0f ? near : far;
        entropy = fmaxf(z, 0.0f) - z * t + log1pf(e);
        amiss = p * (1.0f - t) + rest * t;
        weight = 1.0f;
        if constexpr (FOCAL) {
            weight = a.gamma == 2.0f ? amiss * amiss : powf(amiss, a.gamma);
            weight *= a.alpha == 0.0f ? 1.0f : a.alpha * t + (1.0f - a.alpha) * (1.0f - t);
        }
    }
    __device__ __forceinline__ float loss() const
    {
        return weight * entropy;
    }
    // d entropy = p - t = p(1-t) - (1-p)t; d amiss^g = g amiss^g (1-2t) p (1-p) / amiss.
    __device__ __forceinline__ float gradient(const loss_args &a, float t) const
    {
        float d = p * (1.0f - t) - rest * t;
        if constexpr (FOCAL) {
            d += amiss > 0.0f ? a.gamma * (1.0f - 2.0f * t) * (p * rest / amiss) * entropy : 0.0f;
        }
        return weight * d;
    }
};

template <bool FOCAL, typename T> __device__ __forceinline__ double binary_sum(const loss_args &a)
{
    constexpr int n = lanes<T>::count;
    const int64_t count = a.rows * a.classes, packs = count / n;
    const T *const x = static_cast<const T *>(a.x), *const target = static_cast<const T *>(a.other);
    double total = 0.0;
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        float v[n], t[n], sum = 0.0f;
        load_pack<T, n>(x + i * n, v);
        load_pack<T, n>(target + i * n, t);
#pragma unroll
        for (int lane = 0; lane < n; lane++) {
            sum += binary<FOCAL>(a, v[lane], t[lane]).loss();
        }
        total += (double)sum;
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        total += (double)binary<FOCAL>(a, widen(x[i]), widen(target[i])).loss();
    }
    return total;
}

template <bool FOCAL, typename T> __device__ __forceinline__ void binary_bwd(const loss_args &a)
{
    constexpr int n = lanes<T>::count;
    const float share = share_of(a);
    const int64_t count = a.rows * a.classes, packs = count / n;
    const T *const x = static_cast<const T *>(a.x), *const target = static_cast<const T *>(a.other);
    T *const out = static_cast<T *>(a.out);
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        float v[n], t[n];
        load_pack<T, n>(x + i * n, v);
        load_pack<T, n>(target + i * n, t);
#pragma unroll
        for (int lane = 0; lane < n; lane++) {
            v[lane] = share * binary<FOCAL>(a, v[lane], t[lane]).gradient(a, t[lane]);
        }
        store_pack<T, n>(out + i * n, v);
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        const float t = widen(target[i]);
        out[i] = narrow<T>(share * binary<FOCAL>(a, widen(x[i]), t).gradient(a, t));
    }
}

// ---- kernels ------------------------------------------------------------------------------------------------------

extern "C" __global__ void loss_finish(loss_finish_args a)
{
    SHARED double room[WARP];
    double total = 0.0;
    for (int64_t p = threadIdx.x; p < a.parts; p += blockDim.x) {
        total += a.partial[p];
    }
    total = block_total(total, room);
    if (threadIdx.x == 0 && a.counts != 0) {
        *static_cast<int32_t *>(a.out) = (int32_t)total;
    } else if (threadIdx.x == 0) {
        *static_cast<float *>(a.out) = (float)(a.factor * total);
    }
}

// call(rows_of<type, V, PACKS>(a, team, row)) for rows of every length.
#define ROWS(name, suffix, type, call, rows_of)                                                              \
    extern "C" __global__ void __launch_bounds__(ROWS_WARP_THREADS) name##_warp_##suffix(loss_args a)        \
    {                                                                                                        \
        constexpr int v = lanes<type>::count;                                                                \
        type *const row = nullptr;                                                                           \
        if (a.vectors) {                                                                                     \
            call((rows_of<type, v, held<v>::warp>(a, warp_team(), row)));                                    \
        } else {                                                                                             \
            call((rows_of<type, 1, held<1>::warp>(a, warp_team(), row)));                                    \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_BLOCK_THREADS) name##_block_##suffix(loss_args a)      \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        constexpr int v = lanes<type>::count;                                                                \
        type *const row = nullptr;                                                                           \
        if (a.vectors) {                                                                                     \
            call((rows_of<type, v, held<v>::block>(a, block_team{room}, row)));                              \
        } else {                                                                                             \
            call((rows_of<type, 1, held<1>::block>(a, block_team{room}, row)));                              \
        }                                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(ROWS_LONG_THREADS, 1) name##_long_##suffix(loss_args a)     \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        SHARED_DYNAMIC(float, shared);                                                                       \
        type *const row = a.cached ? reinterpret_cast<type *>(shared) : nullptr;                             \
        if (a.vectors) {                                                                                     \
            call((rows_of<type, lanes<type>::count, 0>(a, block_team{room}, row)));                          \
        } else {                                                                                             \
            call((rows_of<type, 1, 0>(a, block_team{room}, row)));                                           \
        }                                                                                                    \
    }
#define LEAVE(total)  leave_part(a, total)
#define ONLY(nothing) nothing

#define BINARY(name, focal, suffix, type)                                                                    \
    extern "C" __global__ void name##_##suffix(loss_args a)                                                  \
    {                                                                                                        \
        leave_part(a, binary_sum<focal, type>(a));                                                           \
    }                                                                                                        \
    extern "C" __global__ void name##_bwd_##suffix(loss_args a)                                              \
    {                                                                                                        \
        binary_bwd<focal, type>(a);                                                                          \
    }
#define LOSSES(suffix, type)                                                                                 \
    ROWS(softmax_cross_entropy_streaming, suffix, type, LEAVE, cross_entropy_streaming)                      \
    ROWS(softmax_cross_entropy_with_gradient, suffix, type, LEAVE, cross_entropy_with_gradient)              \
    ROWS(accuracy, suffix, type, LEAVE, correct_rows)                                                        \
    ROWS(kl_divergence, suffix, type, LEAVE, divergence_rows)                                                \
    ROWS(kl_divergence_bwd, suffix, type, ONLY, divergence_rows_bwd)                                         \
    extern "C" __global__ void softmax_cross_entropy_streaming_bwd_##suffix(loss_args a)                     \
    {                                                                                                        \
        cross_entropy_bwd<false, type>(a);                                                                   \
    }                                                                                                        \
    BINARY(binary_cross_entropy, false, suffix, type)                                                        \
    BINARY(focal, true, suffix, type)                                                                        \
    extern "C" __global__ void mse_##suffix(loss_args a)                                                     \
    {                                                                                                        \
        leave_part(a, square_sum<type>(a));                                                                  \
    }                                                                                                        \
    extern "C" __global__ void mse_bwd_##suffix(loss_args a)                                                 \
    {                                                                                                        \
        square_bwd<type>(a);                                                                                 \
    }
FOR_REAL_TYPES(LOSSES)

// Who holds probabilities casts its logits: float32 alone.
ROWS(softmax_cross_entropy, f32, float, LEAVE, cross_entropy_held)
extern "C" __global__ void softmax_cross_entropy_bwd_f32(loss_args a)
{
    cross_entropy_bwd<true, float>(a);
}
