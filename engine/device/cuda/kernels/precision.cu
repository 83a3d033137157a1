// SPDX-License-Identifier: Apache-2.0
// What keeps gradients in range: finite check with its counts, unscaling, loss scale, clipping by the norm of all.
#include "kernel.cuh"
#include "precision_args.h"

#define LARGEST_FLOAT 3.402823466e+38f

// ---- one element after another ------------------------------------------------------------------------------------

// f(value) for every element, in no order; whole vectors first. Base addresses are aligned to 256.
template <typename T, typename F>
__device__ __forceinline__ void each_of(const void *from, int64_t count, F f)
{
    constexpr int n = lanes<T>::count;
    const T *x = static_cast<const T *>(from);
    const int64_t packs = count / n;
#pragma unroll 4
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        const pack<T, n> v = reinterpret_cast<const pack<T, n> *>(x)[i];
#pragma unroll
        for (int k = 0; k < n; k++) {
            f(widen(v.at[k]), k);
        }
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        f(widen(x[i]), 0);
    }
}

// out = f(from); out may lie on from.
template <typename T, typename F>
__device__ __forceinline__ void map_to(void *to, const void *from, int64_t count, F f)
{
    constexpr int n = lanes<T>::count;
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    const int64_t packs = count / n;
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        pack<T, n> v = reinterpret_cast<const pack<T, n> *>(x)[i];
#pragma unroll
        for (int k = 0; k < n; k++) {
            v.at[k] = narrow<T>(f(widen(v.at[k])));
        }
        reinterpret_cast<pack<T, n> *>(out)[i] = v;
    }
    for (int64_t i = packs * n + grid_thread(); i < count; i += grid_width()) {
        out[i] = narrow<T>(f(widen(x[i])));
    }
}

// ---- finite -------------------------------------------------------------------------------------------------------

// Sums over a block, for its first thread. room is WARP numbers of shared memory, free again afterwards.
template <typename N> __device__ __forceinline__ N block_count(N x, N *room)
{
    const int thread = threadIdx.x;
    for (int k = WARP / 2; k > 0; k /= 2) {
        x += __shfl_xor_sync(FULL_WARP, x, k);
    }
    if (thread % WARP == 0) {
        room[thread / WARP] = x;
    }
    __syncthreads();
    N sum = 0;
    for (int k = 0; thread == 0 && k < (int)blockDim.x / WARP; k++) {
        sum += room[k];
    }
    __syncthreads();
    return sum;
}

// The verdict and the gradient's row of the counts; by one thread, behind clear_health.
__device__ __forceinline__ void judge(const finite_args &a, const unsigned long long *count)
{
    float *row = a.health + 3 * a.row;
    row[0] += (float)count[COUNT_FLUSHED];
    row[1] += (float)count[COUNT_OVERFLOWING];
    row[2] += (float)a.elements;
    *a.finite = (a.begins != 0 ? 1 : *a.finite) & (count[COUNT_STRANGE] == 0 ? 1 : 0);
}

__device__ __forceinline__ void clear_health(const finite_args &a)
{
    for (int64_t i = threadIdx.x; a.begins != 0 && i < a.health_floats; i += blockDim.x) {
        a.health[i] = 0.0f;
    }
    __syncthreads();
}

// Comparisons with a NaN are false, so that what is not at most the largest overflows.
template <typename T> __device__ __forceinline__ void finite_count(const finite_args &a)
{
    SHARED unsigned room[WARP];
    unsigned flushed = 0, overflowing = 0, strange = 0;
    each_of<T>(a.g, a.elements, [&](float g, int) {
        const float size = fabsf(g);
        flushed += size > 0.0f && size < a.flushed ? 1 : 0;
        overflowing += size <= a.largest ? 0 : 1;
        strange += size <= LARGEST_FLOAT ? 0 : 1;
    });
    flushed = block_count(flushed, room);
    overflowing = block_count(overflowing, room);
    strange = block_count(strange, room);
    if (a.blocks == 1) {
        const unsigned long long count[COUNT_KINDS] = {flushed, overflowing, strange};
        clear_health(a);
        if (threadIdx.x == 0) {
            judge(a, count);
        }
    } else if (threadIdx.x == 0) {
        uint32_t *own = a.counts + COUNT_KINDS * (int64_t)blockIdx.x;
        own[COUNT_FLUSHED] = flushed;
        own[COUNT_OVERFLOWING] = overflowing;
        own[COUNT_STRANGE] = strange;
    }
}

extern "C" __global__ void finite_finish(finite_args a)
{
    SHARED unsigned long long room[WARP];
    unsigned long long count[COUNT_KINDS] = {0, 0, 0};
    for (int k = 0; k < COUNT_KINDS; k++) {
        for (int i = threadIdx.x; i < a.blocks; i += blockDim.x) {
            count[k] += a.counts[COUNT_KINDS * i + k];
        }
        count[k] = block_count(count[k], room);
    }
    clear_health(a);
    if (threadIdx.x == 0) {
        judge(a, count);
    }
}

// ---- the norm of all gradients --------------------------------------------------------------------------------------

// Every thread keeps a sum for each place of its vectors, so that no sum is long.
template <typename T> __device__ __forceinline__ void square_sum(const square_sum_args &a)
{
    SHARED float room[WARP];
    float lane[lanes<T>::count] = {0.0f}, sum = 0.0f;
    each_of<T>(a.g, a.elements, [&](float g, int k) { lane[k] += g * g; });
#pragma unroll
    for (int k = 0; k < lanes<T>::count; k++) {
        sum += lane[k];
    }
    sum = block_sum(sum, room);
    if (threadIdx.x != 0) {
        return;
    }
    if (a.blocks == 1) {
        *a.out = (a.before == nullptr ? 0.0f : *a.before) + sum;
    } else {
        a.parts[blockIdx.x] = sum;
    }
}

extern "C" __global__ void square_sum_finish(square_sum_args a)
{
    SHARED float room[WARP];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < a.blocks; i += blockDim.x) {
        sum += a.parts[i];
    }
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) {
        *a.out = (a.before == nullptr ? 0.0f : *a.before) + sum;
    }
}

template <typename T> __device__ __forceinline__ void clip(const clip_args &a)
{
    const float factor = fminf(1.0f, a.largest_norm / (sqrtf(*a.sum) + 1e-6f));
    map_to<T>(a.out, a.g, a.elements, [=](float g) { return g * factor; });
}

// ---- loss scale -----------------------------------------------------------------------------------------------------

template <typename T> __device__ __forceinline__ void unscale(const unscale_args &a)
{
    const float scale = a.scale * (a.given == nullptr ? 1.0f : *a.given);
    map_to<T>(a.g, a.g, a.elements, [=](float g) { return g / scale; });
}

// As ops/loss_scale.h says it.
extern "C" __global__ void scale_update(scale_update_args a)
{
    if (threadIdx.x != 0 || blockIdx.x != 0) {
        return;
    }
    const float scale = *a.scale, grown = scale * 2.0f;
    if (*a.finite == 0) {
        *a.scale = fmaxf(scale * 0.5f, a.floor_scale);
        *a.clean = 0;
    } else if (*a.clean == a.steps - 1) {
        *a.scale = a.floor_scale > 0.0f && !(grown <= LARGEST_FLOAT) ? scale : grown;
        *a.clean = 0;
    } else {
        *a.clean += 1;
    }
}

#define PRECISION(suffix, type)                                                                              \
    extern "C" __global__ void finite_##suffix(finite_args a)                                                \
    {                                                                                                        \
        finite_count<type>(a);                                                                               \
    }                                                                                                        \
    extern "C" __global__ void square_sum_##suffix(square_sum_args a)                                        \
    {                                                                                                        \
        square_sum<type>(a);                                                                                 \
    }                                                                                                        \
    extern "C" __global__ void clip_##suffix(clip_args a)                                                    \
    {                                                                                                        \
        clip<type>(a);                                                                                       \
    }                                                                                                        \
    extern "C" __global__ void unscale_##suffix(unscale_args a)                                              \
    {                                                                                                        \
        unscale<type>(a);                                                                                    \
    }
FOR_REAL_TYPES(PRECISION)
