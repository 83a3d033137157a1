// SPDX-License-Identifier: Apache-2.0
// CUDA's words for a kernel that is compiled for the processor (HEADROOM_EMULATED). Every .cu file is read inside an
// unnamed namespace of a file of its own, which has included words.h and defined CARD_SHARED_SECTION, so that all
// SHARED variables of the file lie in one section and can be filled with rubbish before every block.
#ifndef TESTS_CARD_EMULATED_H
#define TESTS_CARD_EMULATED_H

#include "words.h"

#define __global__ CARD_GLOBAL
#define __device__
#define __host__
#define __constant__    static const
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n)               alignas(n)
#define SHARED                     static __attribute__((section(CARD_SHARED_SECTION)))
#define SHARED_DYNAMIC(type, name) type *const name = reinterpret_cast<type *>(card_dynamic_shared)

// ---- threads ------------------------------------------------------------------------------------------------------

static inline void __syncthreads()
{
    card_syncthreads();
}
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline int card_lane()
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    (void)card_exchange("__syncwarp", mask, nullptr, 0, card_lane(), nullptr);
}
template <typename T> static inline T card_shuffle(const char *word, unsigned mask, T value, int source)
{
    static_assert(sizeof(T) <= 8, "shuffles carry at most eight bytes");
    T out = value;
    (void)card_exchange(word, mask, &value, sizeof value, source, &out);
    return out;
}
// A source outside of the lane's group of `width` is the lane itself.
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    const int lane = card_lane();
    return card_shuffle("__shfl_sync", mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32)
{
    const int lane = card_lane(), source = lane ^ with;
    return card_shuffle("__shfl_xor_sync", mask, value, source / width > lane / width ? lane : source);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    const int lane = card_lane(), source = lane + (int)by;
    return card_shuffle("__shfl_down_sync", mask, value, source / width != lane / width ? lane : source);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    const int lane = card_lane(), source = lane - (int)by;
    return card_shuffle("__shfl_up_sync", mask, value,
                        source < 0 || source / width != lane / width ? lane : source);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    const int mine = predicate != 0;
    return card_exchange("__ballot_sync", mask, &mine, sizeof mine, card_lane(), nullptr);
}
static inline int __any_sync(unsigned mask, int predicate)
{
    const int mine = predicate != 0;
    return card_exchange("__any_sync", mask, &mine, sizeof mine, card_lane(), nullptr) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    const int mine = predicate != 0;
    return card_exchange("__all_sync", mask, &mine, sizeof mine, card_lane(), nullptr) == 0xffffffffu;
}

// One thread runs at a time, so a read and a write are not parted.
template <typename T> static inline T atomicAdd(T *at, T value)
{
    const T old = *at;
    *at = static_cast<T>(old + value);
    return old;
}
template <typename T> static inline T atomicMax(T *at, T value)
{
    const T old = *at;
    *at = old > value ? old : value;
    return old;
}
template <typename T> static inline T atomicMin(T *at, T value)
{
    const T old = *at;
    *at = old < value ? old : value;
    return old;
}
template <typename T> static inline T atomicExch(T *at, T value)
{
    const T old = *at;
    *at = value;
    return old;
}
template <typename T> static inline T atomicCAS(T *at, T expected, T value)
{
    const T old = *at;
    *at = old == expected ? value : old;
    return old;
}
template <typename T> static inline T atomicAnd(T *at, T value)
{
    const T old = *at;
    *at = static_cast<T>(old & value);
    return old;
}
template <typename T> static inline T atomicOr(T *at, T value)
{
    const T old = *at;
    *at = static_cast<T>(old | value);
    return old;
}

// ---- numbers ------------------------------------------------------------------------------------------------------

#define CARD_BITS(name, to, from)                                                                            \
    static inline to name(from x)                                                                            \
    {                                                                                                        \
        to out;                                                                                              \
        memcpy(&out, &x, sizeof out);                                                                        \
        return out;                                                                                          \
    }
CARD_BITS(__float_as_uint, unsigned, float)
CARD_BITS(__float_as_int, int, float)
CARD_BITS(__uint_as_float, float, unsigned)
CARD_BITS(__int_as_float, float, int)

struct __half {
    uint16_t bits;
};
struct __nv_bfloat16 {
    uint16_t bits;
};
static inline __half __ushort_as_half(uint16_t bits)
{
    return __half{bits};
}
static inline uint16_t __half_as_ushort(__half x)
{
    return x.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
    return __nv_bfloat16{bits};
}
static inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}
static inline float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const unsigned u = __float_as_uint(x);
    return x != x ? __nv_bfloat16{0x7fff} : __nv_bfloat16{(uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16)};
}
static inline float __half2float(__half x)
{
    const unsigned sign = (x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 31u, mantissa = x.bits & 0x3ffu;
    if (exponent == 31) {
        return __uint_as_float(sign | 0x7f800000u | mantissa << 13);
    }
    // Without its implicit bit a number of exponent 0 is a multiple of 2^-24.
    return exponent == 0 ? __uint_as_float(sign | __float_as_uint((float)mantissa * 0x1p-24f))
                         : __uint_as_float(sign | (exponent + 112u) << 23 | mantissa << 13);
}
static inline __half __float2half_rn(float x)
{
    const unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return __half{0x7fff};
    }
    if (magnitude >= 0x477ff000u) { // 65520, half-way to what would come next, and beyond
        return __half{(uint16_t)(sign | 0x7c00u)};
    }
    if (magnitude < 0x38800000u) { // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
        const float moved = __uint_as_float(magnitude) + 0.5f;
        return __half{(uint16_t)(sign | (__float_as_uint(moved) - 0x3f000000u))};
    }
    return __half{(uint16_t)(sign | (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13)};
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline float __frsqrt_rn(float x)
{
    return (float)(1.0 / sqrt((double)x));
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline float __expf(float x)
{
    return expf(x);
}
static inline float __logf(float x)
{
    return logf(x);
}
static inline float __log2f(float x)
{
    return log2f(x);
}
static inline float __powf(float x, float y)
{
    return powf(x, y);
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __fdiv_rn(float x, float y)
{
    return x / y;
}
static inline float __frcp_rn(float x)
{
    return 1.0f / x;
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __saturatef(float x)
{
    return x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f;
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}
static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
static inline int __float2int_rn(float x)
{
    return (int)nearbyintf(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
template <typename T> static inline T __ldg(const T *at)
{
    return *at;
}
template <typename T> static inline T __ldcs(const T *at)
{
    return *at;
}
template <typename T> static inline void __stcs(T *at, T value)
{
    *at = value;
}
template <typename T> static inline T min(T a, T b)
{
    return b < a ? b : a;
}
template <typename T> static inline T max(T a, T b)
{
    return a < b ? b : a;
}

#define CARD_VECTOR(type, of, bytes)                                                                         \
    struct alignas(bytes) type##2                                                                            \
    {                                                                                                        \
        of x, y;                                                                                             \
    };                                                                                                       \
    struct alignas(2 * bytes) type##4                                                                        \
    {                                                                                                        \
        of x, y, z, w;                                                                                       \
    };                                                                                                       \
    static inline type##2 make_##type##2(of x, of y)                                                         \
    {                                                                                                        \
        return type##2 {x, y};                                                                               \
    }                                                                                                        \
    static inline type##4 make_##type##4(of x, of y, of z, of w)                                             \
    {                                                                                                        \
        return type##4 {x, y, z, w};                                                                         \
    }
CARD_VECTOR(float, float, 8)
CARD_VECTOR(int, int, 8)
CARD_VECTOR(uint, unsigned, 8)
CARD_VECTOR(ushort, uint16_t, 4)
CARD_VECTOR(uchar, uint8_t, 2)

#endif
