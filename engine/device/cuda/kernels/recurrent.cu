// SPDX-License-Identifier: Apache-2.0
// LSTM and GRU: what stands between the products of two steps. A thread takes V neighbouring units of a sample, all gates.
#include "kernel.cuh"
#include "recurrent_args.h"

__device__ __forceinline__ float sigmoid_of(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

template <typename T, int V> __device__ __forceinline__ void load(const void *from, int64_t at, float *x)
{
    const pack<T, V> v = *reinterpret_cast<const pack<T, V> *>(static_cast<const T *>(from) + at);
#pragma unroll
    for (int k = 0; k < V; k++) {
        x[k] = widen(v.at[k]);
    }
}

template <typename T, int V> __device__ __forceinline__ void store(void *to, int64_t at, const float *x)
{
    pack<T, V> v;
#pragma unroll
    for (int k = 0; k < V; k++) {
        v.at[k] = narrow<T>(x[k]);
    }
    *reinterpret_cast<pack<T, V> *>(static_cast<T *>(to) + at) = v;
}

// Where a thread's units lie.
struct place {
    int64_t row;            // sample and step, of [samples, steps, units]
    int64_t own;            // of [samples, units]
    int64_t gate, own_gate; // the same four times as wide; `units` on to the next gate
};

template <int V>
__device__ __forceinline__ place place_of(int64_t item, int64_t steps, int64_t units, int64_t step)
{
    const int64_t pieces = units / V, sample = item / pieces, unit = item % pieces * V;
    const int64_t row = sample * steps + step;
    return place{row * units + unit, sample * units + unit, row * 4 * units + unit,
                 sample * 4 * units + unit};
}

template <typename T, int V> __device__ __forceinline__ void lstm_step(const lstm_args &a)
{
    for (int64_t item = grid_thread(); item < a.samples * a.units / V; item += grid_width()) {
        const place p = place_of<V>(item, a.steps, a.units, a.step);
        float gate[4][V], c[V] = {0.0f}, h[V];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            load<T, V>(a.g, p.gate + k * a.units, gate[k]);
        }
        if (a.step > 0) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float more[V];
                load<float, V>(a.product, p.own_gate + k * a.units, more);
#pragma unroll
                for (int i = 0; i < V; i++) {
                    gate[k][i] += more[i];
                }
            }
            load<float, V>(a.state, p.own, c);
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
            gate[0][i] = sigmoid_of(gate[0][i]);
            gate[1][i] = sigmoid_of(gate[1][i]);
            gate[2][i] = tanhf(gate[2][i]);
            gate[3][i] = sigmoid_of(gate[3][i]);
            c[i] = gate[1][i] * c[i] + gate[0][i] * gate[2][i];
            h[i] = gate[3][i] * tanhf(c[i]);
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            store<T, V>(a.a, p.gate + k * a.units, gate[k]);
        }
        store<float, V>(a.state, p.own, c);
        store<T, V>(a.c, p.row, c);
        store<T, V>(a.h, p.row, h);
        store<T, V>(a.left, p.own, h);
    }
}

// dg may lie on a: a thread's gates are read before their gradients are written.
template <typename T, int V> __device__ __forceinline__ void lstm_bwd_step(const lstm_bwd_args &a)
{
    for (int64_t item = grid_thread(); item < a.samples * a.units / V; item += grid_width()) {
        const place p = place_of<V>(item, a.steps, a.units, a.step);
        float gate[4][V], c[V], before[V] = {0.0f}, dh[V], dc[V] = {0.0f};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            load<T, V>(a.a, p.gate + k * a.units, gate[k]);
        }
        load<T, V>(a.c, p.row, c);
        load<T, V>(a.dy, p.row, dh);
        if (a.step > 0) {
            load<T, V>(a.c, p.row - a.units, before);
        }
        if (a.step + 1 < a.steps) {
            float more[V];
            load<float, V>(a.product, p.own, more);
            load<float, V>(a.state, p.own, dc);
#pragma unroll
            for (int i = 0; i < V; i++) {
                dh[i] += more[i];
            }
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float in = gate[0][i], forget = gate[1][i], cell = gate[2][i], out = gate[3][i];
            const float squashed = tanhf(c[i]);
            const float d = dc[i] + dh[i] * out * (1.0f - squashed * squashed);
            gate[0][i] = d * cell * in * (1.0f - in);
            gate[1][i] = d * before[i] * forget * (1.0f - forget);
            gate[2][i] = d * in * (1.0f - cell * cell);
            gate[3][i] = dh[i] * squashed * out * (1.0f - out);
            dc[i] = d * forget;
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            store<T, V>(a.dg, p.gate + k * a.units, gate[k]);
            store<T, V>(a.left, p.own_gate + k * a.units, gate[k]);
        }
        store<float, V>(a.state, p.own, dc);
    }
}

template <typename T, int V> __device__ __forceinline__ void lstm_move(const lstm_move_args &a)
{
    const T *h = static_cast<const T *>(a.h);
    const int64_t pieces = a.units / V;
    for (int64_t item = grid_thread(); item < a.samples * a.steps * pieces; item += grid_width()) {
        const bool first = item / pieces % a.steps == 0;
        float x[V] = {0.0f};
        if (!first) {
            load<T, V>(h, item * V - a.units, x);
        }
        store<T, V>(a.moved, item * V, x);
    }
}

// ---- GRU ----------------------------------------------------------------------------------------------------------

template <typename T, int V> __device__ __forceinline__ void gru_step(const gru_args &a)
{
    const int64_t H = a.units;
    for (int64_t item = grid_thread(); item < a.samples * H / V; item += grid_width()) {
        const place p = place_of<V>(item, a.steps, H, a.step);
        const int64_t unit = item % (H / V) * V, row = p.row - unit, own = p.own - unit;
        float x[3][V], q[3][V], before[V] = {0.0f}, h[V];
#pragma unroll
        for (int k = 0; k < 3; k++) {
            load<T, V>(a.g, 3 * row + k * H + unit, x[k]);
            load<T, V>(a.bias, k * H + unit, q[k]);
            if (a.step > 0) {
                float more[V];
                load<float, V>(a.product, 3 * own + k * H + unit, more);
#pragma unroll
                for (int i = 0; i < V; i++) {
                    q[k][i] += more[i];
                }
            }
        }
        if (a.step > 0) {
            load<float, V>(a.state, p.own, before);
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
            x[0][i] = sigmoid_of(x[0][i] + q[0][i]);
            x[1][i] = sigmoid_of(x[1][i] + q[1][i]);
            x[2][i] = tanhf(x[2][i] + x[1][i] * q[2][i]);
            h[i] = x[2][i] + x[0][i] * (before[i] - x[2][i]);
        }
#pragma unroll
        for (int k = 0; k < 3; k++) {
            store<T, V>(a.a, p.gate + k * H, x[k]);
        }
        store<T, V>(a.a, p.gate + 3 * H, q[2]);
        store<float, V>(a.state, p.own, h);
        store<T, V>(a.h, p.row, h);
        store<T, V>(a.left, p.own, h);
    }
}

template <typename T, int V> __device__ __forceinline__ void gru_bwd_step(const gru_bwd_args &a)
{
    const int64_t H = a.units;
    for (int64_t item = grid_thread(); item < a.samples * H / V; item += grid_width()) {
        const place p = place_of<V>(item, a.steps, H, a.step);
        const int64_t unit = item % (H / V) * V, row = p.row - unit, own = p.own - unit;
        float gate[4][V], before[V] = {0.0f}, dh[V];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            load<T, V>(a.a, p.gate + k * H, gate[k]);
        }
        load<T, V>(a.dy, p.row, dh);
        if (a.step > 0) {
            load<T, V>(a.h, p.row - H, before);
        }
        if (a.step + 1 < a.steps) {
            float more[V], left[V];
            load<float, V>(a.product, p.own, more);
            load<float, V>(a.state, p.own, left);
#pragma unroll
            for (int i = 0; i < V; i++) {
                dh[i] += more[i] + left[i];
            }
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float z = gate[0][i], r = gate[1][i], n = gate[2][i];
            const float dn = dh[i] * (1.0f - z) * (1.0f - n * n);
            gate[0][i] = dh[i] * (before[i] - n) * z * (1.0f - z);
            gate[1][i] = dn * gate[3][i] * r * (1.0f - r);
            gate[2][i] = dn;
            gate[3][i] = dn * r;
            dh[i] *= z;
        }
#pragma unroll
        for (int k = 0; k < 3; k++) {
            store<T, V>(a.dg, 3 * row + k * H + unit, gate[k]);
            store<T, V>(a.all, 3 * row + k * H + unit, gate[k < 2 ? k : 3]);
            store<T, V>(a.left, 3 * own + k * H + unit, gate[k < 2 ? k : 3]);
        }
        store<float, V>(a.state, p.own, dh);
    }
}

// A block takes 32 columns, its warps every eighth row: sums of rows by thread, then of the warps, in order.
template <typename T> __device__ __forceinline__ void gru_bias(const gru_bias_args &a)
{
    SHARED double room[GRU_BIAS_THREADS];
    const int64_t column = (int64_t)blockIdx.x * GRU_BIAS_COLUMNS + threadIdx.x % GRU_BIAS_COLUMNS;
    double sum = 0.0;
    for (int64_t row = threadIdx.x / GRU_BIAS_COLUMNS; row < a.rows && column < a.columns;
         row += GRU_BIAS_THREADS / GRU_BIAS_COLUMNS) {
        sum += (double)widen(static_cast<const T *>(a.all)[row * a.columns + column]);
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < GRU_BIAS_COLUMNS && column < a.columns) {
        for (int k = GRU_BIAS_COLUMNS; k < GRU_BIAS_THREADS; k += GRU_BIAS_COLUMNS) {
            sum += room[threadIdx.x + k];
        }
        static_cast<T *>(a.out)[column] = narrow<T>((float)sum);
    }
}

#define KERNEL(name, suffix, type, form, count)                                                              \
    extern "C" __global__ void name##_##form##_##suffix(name##_args a)                                       \
    {                                                                                                        \
        name##_step<type, count>(a);                                                                         \
    }
#define KERNELS(suffix, type)                                                                                \
    KERNEL(lstm, suffix, type, vectors, lanes<type>::count)                                                  \
    KERNEL(lstm, suffix, type, units, 1)                                                                     \
    KERNEL(lstm_bwd, suffix, type, vectors, lanes<type>::count)                                              \
    KERNEL(gru, suffix, type, vectors, lanes<type>::count)                                                   \
    KERNEL(gru, suffix, type, units, 1)                                                                      \
    KERNEL(gru_bwd, suffix, type, vectors, lanes<type>::count)                                               \
    KERNEL(gru_bwd, suffix, type, units, 1)                                                                  \
    extern "C" __global__ void gru_bias_##suffix(gru_bias_args a)                                            \
    {                                                                                                        \
        gru_bias<type>(a);                                                                                   \
    }                                                                                                        \
    KERNEL(lstm_bwd, suffix, type, units, 1)                                                                 \
    extern "C" __global__ void lstm_move_vectors_##suffix(lstm_move_args a)                                  \
    {                                                                                                        \
        lstm_move<type, lanes<type>::count>(a);                                                              \
    }                                                                                                        \
    extern "C" __global__ void lstm_move_units_##suffix(lstm_move_args a)                                    \
    {                                                                                                        \
        lstm_move<type, 1>(a);                                                                               \
    }
FOR_REAL_TYPES(KERNELS)
