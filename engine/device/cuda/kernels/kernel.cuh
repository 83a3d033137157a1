// SPDX-License-Identifier: Apache-2.0
// What every kernel file begins with: types of two bytes, vectors of sixteen, sums over warps and blocks.
//
// A kernel is `extern "C" __global__`, is named after operation and type (add_bf16), and takes one struct of its
// family's *_args.h, which the host fills. Kernels walk their elements in steps of the grid's width. So that the tests can
// run them without a card, they use of CUDA only what stands here, threadIdx.x, blockIdx, blockDim.x, gridDim, SHARED
// and SHARED_DYNAMIC, __syncthreads, the shuffles over whole warps, and atomicAdd/atomicMax of 32 bits.
#ifndef KERNELS_KERNEL_CUH
#define KERNELS_KERNEL_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef HEADROOM_EMULATED
#include "emulated.h" // tests/card: the same words for threads of the processor
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define SHARED __shared__
// One per file; `type name[]` as large as the launch says.
#define SHARED_DYNAMIC(type, name)                                                                           \
    extern __shared__ __align__(16) unsigned char name##_bytes[];                                            \
    type *const name = reinterpret_cast<type *>(name##_bytes)
#endif

#define WARP      32
#define FULL_WARP 0xffffffffu

// ---- numbers ------------------------------------------------------------------------------------------------------

struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};

__device__ __forceinline__ float widen(float x)
{
    return x;
}
__device__ __forceinline__ float widen(f16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}
__device__ __forceinline__ float widen(bf16 x)
{
    return __bfloat162float(__ushort_as_bfloat16(x.bits));
}

// To the nearest, ties to even; too large to infinity.
template <typename T> __device__ __forceinline__ T narrow(float x);
template <> __device__ __forceinline__ float narrow<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ f16 narrow<f16>(float x)
{
    return f16{__half_as_ushort(__float2half_rn(x))};
}
template <> __device__ __forceinline__ bf16 narrow<bf16>(float x)
{
    return bf16{__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

// Rounded by itself: no sum behind it is joined with it.
__device__ __forceinline__ float product(float a, float b)
{
#ifdef HEADROOM_EMULATED
    return a * b;
#else
    return __fmul_rn(a, b);
#endif
}

// N values that are read and written at once: sixteen bytes are best. On the card a copy of one is one move of all bytes,
// which nvcc does not make of an array by itself: copy it out of memory, then use its values.
#ifndef HEADROOM_EMULATED
template <size_t bytes> struct moved_as {
    struct alignas(16) type {
        uint4 sixteen[bytes / 16];
    };
};
template <> struct moved_as<1> {
    typedef uint8_t type;
};
template <> struct moved_as<2> {
    typedef uint16_t type;
};
template <> struct moved_as<4> {
    typedef uint32_t type;
};
template <> struct moved_as<8> {
    typedef uint2 type;
};
template <> struct moved_as<16> {
    typedef uint4 type;
};
#endif
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];

#ifndef HEADROOM_EMULATED
    pack() = default;
    __device__ __forceinline__ pack(const T (&values)[N])
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            at[k] = values[k];
        }
    }
    __device__ __forceinline__ pack(const pack &from)
    {
        *this = from;
    }
    __device__ __forceinline__ pack &operator=(const pack &from)
    {
        typedef typename moved_as<sizeof(T) * N>::type whole;
        const whole bytes = *reinterpret_cast<const whole *>(&from);
        *reinterpret_cast<whole *>(this) = bytes;
        return *this;
    }
#endif
};
template <typename T> struct lanes {
    static constexpr int count = 16 / sizeof(T);
};

// ---- threads ------------------------------------------------------------------------------------------------------

__device__ __forceinline__ int64_t grid_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_width()
{
    return (int64_t)gridDim.x * blockDim.x;
}

__device__ __forceinline__ float warp_sum(float x)
{
    for (int k = WARP / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(FULL_WARP, x, k);
    }
    return x;
}
__device__ __forceinline__ float warp_max(float x)
{
    for (int k = WARP / 2; k > 0; k /= 2) {
        x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, k));
    }
    return x;
}

// Over a block of whole warps, for every thread; `room` is WARP floats of shared memory, free again afterwards. The
// order of the sum depends on nothing but blockDim.x.
__device__ __forceinline__ float block_sum(float x, float *room)
{
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    x = warp_sum(x);
    if (lane == 0) {
        room[warp] = x;
    }
    __syncthreads();
    x = lane < (int)blockDim.x / WARP ? room[lane] : 0.0f;
    x = warp_sum(x);
    __syncthreads();
    return x;
}
__device__ __forceinline__ float block_max(float x, float *room)
{
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    x = warp_max(x);
    if (lane == 0) {
        room[warp] = x;
    }
    __syncthreads();
    x = lane < (int)blockDim.x / WARP ? room[lane] : -INFINITY;
    x = warp_max(x);
    __syncthreads();
    return x;
}

// Instantiates MACRO(suffix, type) for every type of activations.
#define FOR_REAL_TYPES(MACRO) MACRO(f32, float) MACRO(f16, f16) MACRO(bf16, bf16)

#endif
