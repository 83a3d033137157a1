// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, square kernels of 3 or 5, strides of 1 or 2: sixteen bytes of channels at a time, every image
// read from memory once.
//
// Forward and data gradient: a thread makes four pixels side by side, so that a row of the other image is read once for
// all of them (3×3, stride 1: 18 reads that meet the L1 cache for 4 results, where one by one they were 36).
// Weight gradient: a thread goes along rows with one number per tap and channel in registers; blocks take parts of the
// rows and leave their sums in memory, which a second kernel adds up in their order.
#include "conv_narrow_args.h"
#include "kernel.cuh"

namespace
{

constexpr int STRIP = NARROW_STRIP;

template <typename T, int V> struct wide_float {
    float at[V];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            at[k] = 0.0f;
        }
    }
    __device__ __forceinline__ void read(const T *from)
    {
        const pack<T, V> v = *reinterpret_cast<const pack<T, V> *>(from);
#pragma unroll
        for (int k = 0; k < V; k++) {
            at[k] = widen(v.at[k]);
        }
    }
    __device__ __forceinline__ void write(T *to) const
    {
        pack<T, V> v;
#pragma unroll
        for (int k = 0; k < V; k++) {
            v.at[k] = narrow<T>(at[k]);
        }
        *reinterpret_cast<pack<T, V> *>(to) = v;
    }
    __device__ __forceinline__ void add_product(const wide_float &a, const wide_float &b)
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            at[k] += a.at[k] * b.at[k];
        }
    }
    __device__ __forceinline__ void add(const wide_float &a)
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            at[k] += a.at[k];
        }
    }
    __device__ __forceinline__ void activate(int act)
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            at[k] = act != 0 && at[k] < 0.0f ? 0.0f : at[k];
            at[k] = act == 2 && at[k] > 6.0f ? 6.0f : at[k];
        }
    }
};

// A row of pixels for every blocks_per_row blocks; in it, channels are nearest.
struct spot {
    int64_t n;
    int row, strip, channel;
};

__device__ __forceinline__ spot spot_of(const conv_narrow_args &a, int rows, int channels_at_once)
{
    const int packs = a.channels / channels_at_once;
    const int64_t line = blockIdx.x / a.blocks_per_row;
    const int item = (int)(blockIdx.x % a.blocks_per_row) * NARROW_THREADS + threadIdx.x;
    spot s;
    s.n = line / rows;
    s.row = (int)(line % rows);
    s.strip = item / packs;
    s.channel = item % packs * channels_at_once;
    return s;
}

// ---- forward ------------------------------------------------------------------------------------------------------

// sum[j] += the products of row ih of x with row kh of the weights.
template <typename T, int V, int K, int S>
__device__ __forceinline__ void add_row(wide_float<T, V> (&sum)[STRIP], const T *x, const T *w, int first,
                                        int x_w, int channels)
{
    wide_float<T, V> weight[K], pixel;
#pragma unroll
    for (int k = 0; k < K; k++) {
        weight[k].read(w + (int64_t)k * channels);
    }
#pragma unroll
    for (int i = 0; i < (STRIP - 1) * S + K; i++) {
        const int iw = first + i;
        if (iw < 0 || iw >= x_w) {
            continue;
        }
        pixel.read(x + (int64_t)iw * channels);
#pragma unroll
        for (int j = 0; j < STRIP; j++) {
            if (i - j * S >= 0 && i - j * S < K) {
                sum[j].add_product(pixel, weight[i - j * S]);
            }
        }
    }
}

template <typename T, int K, int S> __device__ __forceinline__ void forward(const conv_narrow_args &a)
{
    constexpr int V = lanes<T>::count;
    const spot s = spot_of(a, a.y_h, V);
    const int ow = s.strip * STRIP;
    if (ow >= a.y_w) {
        return;
    }
    wide_float<T, V> sum[STRIP];
#pragma unroll
    for (int j = 0; j < STRIP; j++) {
        sum[j].clear();
        if (a.bias != nullptr) {
            sum[j].read(static_cast<const T *>(a.bias) + s.channel);
        }
    }
    for (int kh = 0; kh < K; kh++) {
        const int ih = s.row * S - a.pad_top + kh;
        if (ih >= 0 && ih < a.x_h) {
            add_row<T, V, K, S>(
                sum, static_cast<const T *>(a.x) + (s.n * a.x_h + ih) * a.x_w * a.channels + s.channel,
                static_cast<const T *>(a.w) + (int64_t)kh * K * a.channels + s.channel, ow * S - a.pad_left,
                a.x_w, a.channels);
        }
    }
    T *y = static_cast<T *>(a.out) + ((s.n * a.y_h + s.row) * a.y_w + ow) * a.channels + s.channel;
#pragma unroll
    for (int j = 0; j < STRIP; j++) {
        if (ow + j < a.y_w) {
            sum[j].activate(a.act);
            sum[j].write(y + (int64_t)j * a.channels);
        }
    }
}

// ---- data gradient ------------------------------------------------------------------------------------------------

// sum[j] += the products of a row of dy with row kh of the weights. Pixel j of x is reached from column
// first + (j − kw)/S of dy by the taps for which that is whole.
template <typename T, int V, int K, int S>
__device__ __forceinline__ void add_row_back(wide_float<T, V> (&sum)[STRIP], const T *dy, const T *w,
                                             int first, int y_w, int channels)
{
    wide_float<T, V> weight[K], pixel;
#pragma unroll
    for (int k = 0; k < K; k++) {
        weight[k].read(w + (int64_t)k * channels);
    }
#pragma unroll
    for (int o = -((K - 1) / S); o <= (STRIP - 1) / S; o++) {
        const int ow = first + o;
        if (ow < 0 || ow >= y_w) {
            continue;
        }
        pixel.read(dy + (int64_t)ow * channels);
#pragma unroll
        for (int j = 0; j < STRIP; j++) {
            if (j - o * S >= 0 && j - o * S < K) {
                sum[j].add_product(pixel, weight[j - o * S]);
            }
        }
    }
}

template <typename T, int K, int S> __device__ __forceinline__ void data(const conv_narrow_args &a)
{
    constexpr int V = lanes<T>::count;
    const spot s = spot_of(a, a.x_h, V);
    const int first =
        s.strip * STRIP - a.pad_left % S; // so that a column of dy lies above the strip's first pixel
    if (first >= a.x_w) {
        return;
    }
    wide_float<T, V> sum[STRIP];
#pragma unroll
    for (int j = 0; j < STRIP; j++) {
        sum[j].clear();
    }
    for (int kh = 0; kh < K; kh++) {
        const int from = s.row + a.pad_top - kh, oh = from / S;
        if (from >= 0 && from % S == 0 && oh < a.y_h) {
            add_row_back<T, V, K, S>(
                sum, static_cast<const T *>(a.y) + (s.n * a.y_h + oh) * a.y_w * a.channels + s.channel,
                static_cast<const T *>(a.w) + (int64_t)kh * K * a.channels + s.channel,
                (first + a.pad_left) / S, a.y_w, a.channels);
        }
    }
    T *dx = static_cast<T *>(a.out) + (s.n * a.x_h + s.row) * a.x_w * a.channels + s.channel;
#pragma unroll
    for (int j = 0; j < STRIP; j++) {
        if (first + j >= 0 && first + j < a.x_w) {
            sum[j].write(dx + (int64_t)(first + j) * a.channels);
        }
    }
}

// ---- weight gradient ----------------------------------------------------------------------------------------------

template <typename T, int V, int K> struct tap_sums {
    wide_float<T, V> tap[K][K], bias;
};

// What one row of dy gives; `x` is the sample, `dy` the row. With stride 1 the columns of x go by: each meets the K
// last columns of dy, which stay in registers.
template <typename T, int V, int K>
__device__ __forceinline__ void add_row_near(tap_sums<T, V, K> &sums, const conv_narrow_args &a, const T *x,
                                             const T *dy, int first_row)
{
    wide_float<T, V> last[K], pixel;
#pragma unroll
    for (int k = 0; k < K; k++) {
        last[k].clear();
    }
    for (int iw = 1 - K; iw < a.x_w; iw++) {
#pragma unroll
        for (int k = K - 1; k > 0; k--) {
            last[k] = last[k - 1];
        }
        last[0].clear();
        const int ow = iw + a.pad_left;
        if (ow >= 0 && ow < a.y_w) {
            last[0].read(dy + (int64_t)ow * a.channels);
            sums.bias.add(last[0]);
        }
        if (iw < 0) {
            continue;
        }
#pragma unroll
        for (int kh = 0; kh < K; kh++) {
            const int ih = first_row + kh;
            if (ih < 0 || ih >= a.x_h) {
                continue;
            }
            pixel.read(x + ((int64_t)ih * a.x_w + iw) * a.channels);
#pragma unroll
            for (int kw = 0; kw < K; kw++) {
                sums.tap[kh][kw].add_product(pixel, last[kw]);
            }
        }
    }
}

// With larger strides columns of x have little in common: each column of dy reads what it meets.
template <typename T, int V, int K, int S>
__device__ __forceinline__ void add_row_far(tap_sums<T, V, K> &sums, const conv_narrow_args &a, const T *x,
                                            const T *dy, int first_row)
{
    wide_float<T, V> one, pixel;
    for (int ow = 0; ow < a.y_w; ow++) {
        one.read(dy + (int64_t)ow * a.channels);
        sums.bias.add(one);
#pragma unroll
        for (int tap = 0; tap < K * K; tap++) {
            const int ih = first_row + tap / K, iw = ow * S - a.pad_left + tap % K;
            if (ih >= 0 && ih < a.x_h && iw >= 0 && iw < a.x_w) {
                pixel.read(x + ((int64_t)ih * a.x_w + iw) * a.channels);
                sums.tap[tap / K][tap % K].add_product(pixel, one);
            }
        }
    }
}

// Adds one number of every thread over those that have the same channels, and writes it.
template <typename T, int V>
__device__ __forceinline__ void put_sum(const wide_float<T, V> &mine, float *room, int wide, bool inside,
                                        float *to)
{
#pragma unroll
    for (int k = 0; k < V; k++) {
        room[threadIdx.x] = mine.at[k];
        __syncthreads();
        if ((int)threadIdx.x < wide && inside) {
            float sum = 0.0f;
            for (int i = threadIdx.x; i < NARROW_WEIGHT_THREADS; i += wide) {
                sum += room[i];
            }
            to[k] = sum;
        }
        __syncthreads();
    }
}

// blockIdx.x: channels fastest, then parts of the rows.
template <typename T, int K, int S> __device__ __forceinline__ void weights(const conv_narrow_args &a)
{
    constexpr int V = K == 3 ? 4 : 2;
    SHARED float room[NARROW_WEIGHT_THREADS];
    const int packs = a.channels / V, blocks = (packs + a.wide - 1) / a.wide;
    const int mine = (int)(blockIdx.x % blocks) * a.wide + threadIdx.x % a.wide, channel = mine * V;
    const bool inside = mine < packs;
    const int64_t rows = a.samples * a.y_h, each = (rows + a.parts - 1) / a.parts, part = blockIdx.x / blocks;
    const int64_t end = (part + 1) * each < rows ? (part + 1) * each : rows;
    tap_sums<T, V, K> sums;
    sums.bias.clear();
#pragma unroll
    for (int tap = 0; tap < K * K; tap++) {
        sums.tap[tap / K][tap % K].clear();
    }
    for (int64_t row = part * each + threadIdx.x / a.wide; inside && row < end;
         row += NARROW_WEIGHT_THREADS / a.wide) {
        const int64_t n = row / a.y_h;
        const int first_row = (int)(row % a.y_h) * S - a.pad_top;
        const T *x = static_cast<const T *>(a.x) + n * a.x_h * a.x_w * a.channels + channel;
        const T *dy = static_cast<const T *>(a.y) + row * a.y_w * a.channels + channel;
        if constexpr (S == 1) {
            add_row_near<T, V, K>(sums, a, x, dy, first_row);
        } else {
            add_row_far<T, V, K, S>(sums, a, x, dy, first_row);
        }
    }
    float *to = a.partial + part * (K * K + a.with_bias) * a.channels + channel;
#pragma unroll
    for (int tap = 0; tap < K * K; tap++) {
        put_sum(sums.tap[tap / K][tap % K], room, a.wide, inside, to + (int64_t)tap * a.channels);
    }
    if (a.with_bias) {
        put_sum(sums.bias, room, a.wide, inside, to + (int64_t)K * K * a.channels);
    }
}

template <typename T> __device__ __forceinline__ void sum_up(const conv_narrow_sum_args &a)
{
    const int64_t count = a.weight_count + a.bias_count;
    for (int64_t i = grid_thread(); i < count; i += grid_width()) {
        float sum = 0.0f;
        for (int part = 0; part < a.parts; part++) {
            sum += a.partial[part * count + i];
        }
        T *const to = i < a.weight_count ? static_cast<T *>(a.weights) + i
                                         : static_cast<T *>(a.biases) + (i - a.weight_count);
        *to = narrow<T>(sum);
    }
}

} // namespace

#define NARROW(kernel, stride, suffix, type)                                                                 \
    extern "C" __global__ void narrow_forward_##kernel##_##stride##_##suffix(conv_narrow_args a)             \
    {                                                                                                        \
        forward<type, kernel, stride>(a);                                                                    \
    }                                                                                                        \
    extern "C" __global__ void narrow_data_##kernel##_##stride##_##suffix(conv_narrow_args a)                \
    {                                                                                                        \
        data<type, kernel, stride>(a);                                                                       \
    }                                                                                                        \
    extern "C" __global__ void narrow_weights_##kernel##_##stride##_##suffix(conv_narrow_args a)             \
    {                                                                                                        \
        weights<type, kernel, stride>(a);                                                                    \
    }
#define NARROW_TYPE(suffix, type)                                                                            \
    NARROW(3, 1, suffix, type)                                                                               \
    NARROW(3, 2, suffix, type)                                                                               \
    NARROW(5, 1, suffix, type)                                                                               \
    NARROW(5, 2, suffix, type)                                                                               \
    extern "C" __global__ void narrow_sum_##suffix(conv_narrow_sum_args a)                                   \
    {                                                                                                        \
        sum_up<type>(a);                                                                                     \
    }
FOR_REAL_TYPES(NARROW_TYPE)
