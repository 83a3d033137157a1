// SPDX-License-Identifier: Apache-2.0
// Cutting, joining, repeating and padding: out is written once from its beginning to its end, sixteen bytes a thread,
// and says where it comes from. Rows that sixteen bytes do not divide are put together of smaller units.
#include "combine_args.h"
#include "map.cuh"

typedef pack<uint32_t, 4> unit_16;
typedef pack<uint32_t, 2> unit_8;
typedef uint32_t unit_4;
typedef uint16_t unit_2;

// Below it the divisions are products.
#define NARROW_COUNT ((int64_t)1 << 31)

// ---- gather -------------------------------------------------------------------------------------------------------

template <typename Index> struct gather_place {
    Index x;     // on the innermost axis
    int64_t row; // where the operand's row begins
    bool inside; // of all outer axes
};

__device__ __forceinline__ int64_t turned(const gather_axis &axis, int64_t place)
{
    const int64_t at = place + axis.turn;
    return at < axis.extent.by ? at : at - axis.extent.by;
}

template <typename Index>
__device__ __forceinline__ gather_place<Index> gather_locate(const gather_args &a, Index i)
{
    Index rest = quotient(i, a.axis[0].extent);
    gather_place<Index> at = {(Index)(i - rest * (Index)a.axis[0].extent.by), 0, true};
#pragma unroll
    for (int k = 1; k < GATHER_AXES; k++) {
        if (k < (int)a.axes) {
            const gather_axis &axis = a.axis[k];
            const Index outer = quotient(rest, axis.extent);
            const int64_t place = turned(axis, (int64_t)(Index)(rest - outer * (Index)axis.extent.by));
            at.inside = at.inside && place >= axis.low && place < axis.high;
            at.row += (place - axis.low) * axis.stride;
            rest = outer;
        }
    }
    return at;
}

template <typename Unit, typename Index>
__device__ __forceinline__ Unit gather_one(const gather_args &a, const gather_place<Index> &at)
{
    const gather_axis &axis = a.axis[0];
    const int64_t x = turned(axis, (int64_t)at.x);
    Unit unit = {};
    if (at.inside && x >= axis.low && x < axis.high) {
        unit = static_cast<const Unit *>(a.in)[at.row + (x - axis.low) * axis.stride];
    }
    return unit;
}

template <typename Unit, typename Index, typename F>
__device__ __forceinline__ void gather_all(const gather_args &a, F f)
{
    constexpr int n = 16 / sizeof(Unit);
    Unit *out = static_cast<Unit *>(a.out);
    for (int64_t first = grid_thread() * n; first < a.count; first += grid_width() * n) {
        gather_place<Index> at = gather_locate(a, (Index)first);
        pack<Unit, n> units;
#pragma unroll
        for (int k = 0; k < n; k++) {
            units.at[k] = f(gather_one<Unit>(a, at));
            at.x++;
            if (k + 1 < n && at.x == (Index)a.axis[0].extent.by) {
                at = gather_locate(a, (Index)(first + k + 1));
            }
        }
        if (first + n <= a.count) {
            *reinterpret_cast<pack<Unit, n> *>(out + first) = units;
        } else {
#pragma unroll
            for (int k = 0; k < n; k++) {
                if (first + k < a.count) {
                    out[first + k] = units.at[k];
                }
            }
        }
    }
}

template <typename Unit, typename F> __device__ __forceinline__ void gather(const gather_args &a, F f)
{
    if (a.count < NARROW_COUNT - 16) {
        gather_all<Unit, uint32_t>(a, f);
    } else {
        gather_all<Unit, uint64_t>(a, f);
    }
}

struct unchanged {
    template <typename Unit> __device__ __forceinline__ Unit operator()(Unit unit) const
    {
        return unit;
    }
};

template <typename T> struct scaled_values {
    float share;
    __device__ __forceinline__ T operator()(T x) const
    {
        return narrow<T>(widen(x) * share);
    }
    template <int N> __device__ __forceinline__ pack<T, N> operator()(pack<T, N> values) const
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            values.at[k] = narrow<T>(widen(values.at[k]) * share);
        }
        return values;
    }
};

// ---- concat -------------------------------------------------------------------------------------------------------

template <typename Index> struct concat_place {
    Index left; // of this source's piece of the row
    const void *from;
    int64_t at;
};

template <typename Index>
__device__ __forceinline__ concat_place<Index> concat_locate(const concat_args &a, Index i)
{
    const Index row = quotient(i, a.row), x = i - row * (Index)a.row.by;
    int source = 0;
#pragma unroll
    for (int k = 1; k < CONCAT_SOURCES; k++) {
        source += k < (int)a.sources && (int64_t)x >= a.begin[k];
    }
    const int64_t begin = a.begin[source], end = a.begin[source + 1];
    return concat_place<Index>{(Index)(end - (int64_t)x), a.in[source],
                               (int64_t)row * (end - begin) + ((int64_t)x - begin)};
}

template <typename Unit, typename Index> __device__ __forceinline__ void concat_all(const concat_args &a)
{
    constexpr int n = 16 / sizeof(Unit);
    Unit *out = static_cast<Unit *>(a.out);
    for (int64_t first = grid_thread() * n; first < a.count; first += grid_width() * n) {
        concat_place<Index> place = concat_locate(a, (Index)first);
        pack<Unit, n> units;
#pragma unroll
        for (int k = 0; k < n; k++) {
            if (first + k < a.count) {
                units.at[k] = static_cast<const Unit *>(place.from)[place.at];
            }
            place.at++;
            place.left--;
            if (k + 1 < n && place.left == 0) {
                place = concat_locate(a, (Index)(first + k + 1));
            }
        }
        if (first + n <= a.count) {
            *reinterpret_cast<pack<Unit, n> *>(out + first) = units;
        } else {
#pragma unroll
            for (int k = 0; k < n; k++) {
                if (first + k < a.count) {
                    out[first + k] = units.at[k];
                }
            }
        }
    }
}

template <typename Unit> __device__ __forceinline__ void concat(const concat_args &a)
{
    if (a.count < NARROW_COUNT - 16) {
        concat_all<Unit, uint32_t>(a);
    } else {
        concat_all<Unit, uint64_t>(a);
    }
}

#define OF_UNITS(bytes)                                                                                      \
    extern "C" __global__ void gather_##bytes(gather_args a)                                                 \
    {                                                                                                        \
        gather<unit_##bytes>(a, unchanged());                                                                \
    }                                                                                                        \
    extern "C" __global__ void concat_##bytes(concat_args a)                                                 \
    {                                                                                                        \
        concat<unit_##bytes>(a);                                                                             \
    }
OF_UNITS(2)
OF_UNITS(4)
OF_UNITS(8)
OF_UNITS(16)

// ---- what computes ------------------------------------------------------------------------------------------------

struct sum_of {
    __device__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

struct product_of {
    __device__ float operator()(float a, float b) const
    {
        return a * b;
    }
};

// Vectors of a begin anywhere in a repetition of b, whose values are then read one by one.
template <typename T, int N, typename Index>
__device__ __forceinline__ pack<T, N> repeated(const T *b, Index at, Index inner)
{
    if (inner % N == 0) {
        return *reinterpret_cast<const pack<T, N> *>(b + at);
    }
    pack<T, N> values;
#pragma unroll
    for (int k = 0; k < N; k++) {
        values.at[k] = b[at];
        at = at + 1 == inner ? 0 : at + 1;
    }
    return values;
}

template <typename T, typename Index>
__device__ __forceinline__ void repeated_sum_all(const repeated_sum_args &s)
{
    constexpr int n = lanes<T>::count;
    const T *a = static_cast<const T *>(s.a), *b = static_cast<const T *>(s.b);
    T *out = static_cast<T *>(s.out);
    const Index inner = (Index)s.inner.by;
    for (int64_t first = grid_thread() * n; first < s.count; first += grid_width() * n) {
        const pack<T, n> of_b =
            repeated<T, n, Index>(b, (Index)first - quotient((Index)first, s.inner) * inner, inner);
        if (first + n <= s.count) {
            *reinterpret_cast<pack<T, n> *>(out + first) =
                map_values<T, n>(sum_of(), *reinterpret_cast<const pack<T, n> *>(a + first), of_b);
            continue;
        }
#pragma unroll
        for (int k = 0; k < n; k++) {
            if (first + k < s.count) {
                out[first + k] = narrow<T>(widen(a[first + k]) + widen(of_b.at[k]));
            }
        }
    }
}

template <typename T> __device__ __forceinline__ void repeated_sum(const repeated_sum_args &s)
{
    if (s.count < NARROW_COUNT) {
        repeated_sum_all<T, uint32_t>(s);
    } else {
        repeated_sum_all<T, uint64_t>(s);
    }
}

template <typename T, typename Index>
__device__ __forceinline__ Index factor_at(const factor_args &f, Index i)
{
    const Index row = quotient(i, f.inner);
    return quotient(i, f.group) * (Index)f.inner.by + (i - row * (Index)f.inner.by);
}

// Vectors that begin at a multiple of their length lie in one row where it divides the factors.
template <typename T, typename Index> __device__ __forceinline__ void multiply_factors(const factor_args &f)
{
    constexpr int n = lanes<T>::count;
    const T *a = static_cast<const T *>(f.a), *factor = static_cast<const T *>(f.factor);
    T *out = static_cast<T *>(f.out);
    const bool whole = f.inner.by % n == 0;
    for (int64_t first = grid_thread() * n; first < f.count; first += grid_width() * n) {
        if (whole) {
            const Index at = factor_at<T, Index>(f, (Index)first);
            *reinterpret_cast<pack<T, n> *>(out + first) =
                map_values<T, n>(product_of(), *reinterpret_cast<const pack<T, n> *>(a + first),
                                 *reinterpret_cast<const pack<T, n> *>(factor + at));
            continue;
        }
#pragma unroll
        for (int k = 0; k < n; k++) {
            if (first + k < f.count) {
                const Index at = factor_at<T, Index>(f, (Index)(first + k));
                out[first + k] = narrow<T>(widen(a[first + k]) * widen(factor[at]));
            }
        }
    }
}

template <typename T> __device__ __forceinline__ void multiply_broadcast(const factor_args &f)
{
    if (f.count < NARROW_COUNT) {
        multiply_factors<T, uint32_t>(f);
    } else {
        multiply_factors<T, uint64_t>(f);
    }
}

template <typename T, int N, typename Index>
__device__ __forceinline__ void upsample_bwd_all(const upsample_bwd_args &a)
{
    const pack<T, N> *dy = static_cast<const pack<T, N> *>(a.dy);
    pack<T, N> *dx = static_cast<pack<T, N> *>(a.dx);
    const int64_t channels = a.channels.by, wide = a.width.by * a.times_w * channels;
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const Index pixel = quotient((Index)i, a.channels), row = quotient(pixel, a.width);
        const int64_t w = (int64_t)(Index)(pixel - row * (Index)a.width.by);
        const int64_t c = (int64_t)(Index)((Index)i - pixel * (Index)channels);
        const pack<T, N> *from = dy + (int64_t)row * a.times_h * wide + w * a.times_w * channels + c;
        float sum[N] = {};
        for (int h = 0; h < a.times_h; h++) {
            for (int v = 0; v < a.times_w; v++) {
                const pack<T, N> values = from[h * wide + v * channels];
#pragma unroll
                for (int k = 0; k < N; k++) {
                    sum[k] += widen(values.at[k]);
                }
            }
        }
        pack<T, N> sums;
#pragma unroll
        for (int k = 0; k < N; k++) {
            sums.at[k] = narrow<T>(sum[k]);
        }
        dx[i] = sums;
    }
}

template <typename T, int N> __device__ __forceinline__ void upsample_bwd(const upsample_bwd_args &a)
{
    if (a.count < NARROW_COUNT) {
        upsample_bwd_all<T, N, uint32_t>(a);
    } else {
        upsample_bwd_all<T, N, uint64_t>(a);
    }
}

#define OF_TYPE(suffix, type)                                                                                \
    extern "C" __global__ void add_broadcast_##suffix(repeated_sum_args a)                                   \
    {                                                                                                        \
        repeated_sum<type>(a);                                                                               \
    }                                                                                                        \
    extern "C" __global__ void multiply_broadcast_##suffix(factor_args a)                                    \
    {                                                                                                        \
        multiply_broadcast<type>(a);                                                                         \
    }                                                                                                        \
    extern "C" __global__ void spread_wide_##suffix(gather_args a)                                           \
    {                                                                                                        \
        gather<pack<type, lanes<type>::count>>(a, scaled_values<type>{a.share});                             \
    }                                                                                                        \
    extern "C" __global__ void spread_narrow_##suffix(gather_args a)                                         \
    {                                                                                                        \
        gather<type>(a, scaled_values<type>{a.share});                                                       \
    }                                                                                                        \
    extern "C" __global__ void upsample_bwd_wide_##suffix(upsample_bwd_args a)                               \
    {                                                                                                        \
        upsample_bwd<type, lanes<type>::count>(a);                                                           \
    }                                                                                                        \
    extern "C" __global__ void upsample_bwd_narrow_##suffix(upsample_bwd_args a)                             \
    {                                                                                                        \
        upsample_bwd<type, 1>(a);                                                                            \
    }
FOR_REAL_TYPES(OF_TYPE)
