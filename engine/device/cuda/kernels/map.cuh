// SPDX-License-Identifier: Apache-2.0
// Patterns of kernels that read every operand once and write every result once: one result of any number of operands,
// sixteen bytes of the widest at a time, two vectors of every operand on their way. Base addresses are aligned to 16
// bytes. A result may lie on an operand of its own type: whatever a thread writes, it has read before.
#ifndef KERNELS_MAP_CUH
#define KERNELS_MAP_CUH

#include "divisor.h"
#include "kernel.cuh"

// ---- numbers ------------------------------------------------------------------------------------------------------

__device__ __forceinline__ float widen(uint8_t x)
{
    return (float)x;
}

// Within two units in the last place; 0 where b is beyond 2^126.
__device__ __forceinline__ float quick_ratio(float a, float b)
{
    return __fdividef(a, b);
}

// n / d, rounded down. The narrow one is for n below 2^31.
__device__ __forceinline__ uint32_t quotient(uint32_t n, const divisor &d)
{
    return ((uint32_t)(((uint64_t)n * d.magic) >> 32) + n) >> d.shift;
}
__device__ __forceinline__ uint64_t quotient(uint64_t n, const divisor &d)
{
    return n / (uint64_t)d.by;
}

// ---- maps ---------------------------------------------------------------------------------------------------------

template <typename... T> struct widest {
    static constexpr size_t bytes = 1;
};
template <typename First, typename... Rest> struct widest<First, Rest...> {
    static constexpr size_t others = widest<Rest...>::bytes;
    static constexpr size_t bytes = sizeof(First) > others ? sizeof(First) : others;
};

template <typename Out, int N, typename F, typename... In>
__device__ __forceinline__ pack<Out, N> map_values(const F &f, const pack<In, N>... in)
{
    pack<Out, N> out;
#pragma unroll
    for (int k = 0; k < N; k++) {
        out.at[k] = narrow<Out>(f(widen(in.at[k])...));
    }
    return out;
}

template <typename Out, int N, typename F, typename... In>
__device__ __forceinline__ pack<Out, N> map_pack(const F &f, int64_t i, const In *...in)
{
    return map_values<Out, N>(f, reinterpret_cast<const pack<In, N> *>(in)[i]...);
}

// Two vectors of every operand are read before the first is used.
template <typename Out, int N, typename F, typename... In> struct map_two {
    static __device__ __forceinline__ void run(const F &f, pack<Out, N> *near_to, pack<Out, N> *far_to,
                                               const pack<In, N>... near, const pack<In, N>... far)
    {
        *near_to = map_values<Out, N>(f, near...);
        *far_to = map_values<Out, N>(f, far...);
    }
};

// out[i] = f(in[i]...) for all i below count; f takes and gives floats. The one that calls is `thread` of `width`.
template <typename Out, typename F, typename... In>
__device__ __forceinline__ void map_by(const F &f, int64_t thread, int64_t width, int64_t count, Out *out,
                                       const In *...in)
{
    constexpr int n = 16 / (int)widest<Out, In...>::bytes;
    const int64_t packs = count / n;
    pack<Out, n> *to = reinterpret_cast<pack<Out, n> *>(out);
    int64_t i = thread;
    for (; i + width < packs; i += 2 * width) {
        map_two<Out, n, F, In...>::run(f, to + i, to + i + width,
                                       reinterpret_cast<const pack<In, n> *>(in)[i]...,
                                       reinterpret_cast<const pack<In, n> *>(in)[i + width]...);
    }
    if (i < packs) {
        to[i] = map_pack<Out, n>(f, i, in...);
    }
    for (i = packs * n + thread; i < count; i += width) {
        out[i] = narrow<Out>(f(widen(in[i])...));
    }
}

// By all threads of the grid.
template <typename Out, typename F, typename... In>
__device__ __forceinline__ void map(const F &f, int64_t count, Out *out, const In *...in)
{
    map_by(f, grid_thread(), grid_width(), count, out, in...);
}

#endif
