// SPDX-License-Identifier: Apache-2.0
// Group normalisation: a block a group of a sample. x is read three times, of which what fits the second level cache costs
// once. Backward every thread keeps to one channel of the group, so that sums over places need no atomics; sums over
// samples are a second kernel.
#include "group_norm_args.h"
#include "map.cuh"

// Element k of a group, place by place.
__device__ __forceinline__ int64_t element_of(const group_norm_args &a, int64_t first, int64_t k)
{
    const int64_t place = (int64_t)quotient((uint64_t)k, a.width);
    return first + place * a.channels + (k - place * a.width.by);
}

template <typename T> __device__ __forceinline__ void norm_groups(const group_norm_args &a, float *room)
{
    const T *x = static_cast<const T *>(a.x);
    const int64_t count = a.places * a.width.by;
    for (int64_t group = blockIdx.x; group < a.samples * a.groups; group += gridDim.x) {
        const int64_t channel = group % a.groups * a.width.by;
        const int64_t first = group / a.groups * a.places * a.channels + channel;
        float sum = 0.0f, squares = 0.0f;
        for (int64_t k = threadIdx.x; k < count; k += blockDim.x) {
            sum += widen(x[element_of(a, first, k)]);
        }
        const float mean = block_sum(sum, room) / (float)count;
        for (int64_t k = threadIdx.x; k < count; k += blockDim.x) {
            const float d = widen(x[element_of(a, first, k)]) - mean;
            squares += d * d;
        }
        const float rstd = 1.0f / sqrtf(block_sum(squares, room) / (float)count + a.epsilon);
        for (int64_t k = threadIdx.x; k < count; k += blockDim.x) {
            const int64_t at = element_of(a, first, k), c = channel + (at - first) % a.channels;
            const float normal = (widen(x[at]) - mean) * rstd;
            static_cast<T *>(a.out)[at] = narrow<T>(normal * a.gamma[c] + a.beta[c]);
        }
        if (threadIdx.x == 0) {
            a.mean[group] = mean;
            a.rstd[group] = rstd;
        }
    }
}

// Sums of channels [0, across) of a strip, at most as many as there are threads: thread t has places t / across, …, of
// channel t % across. What a channel's threads found is added by the first of them. Returns g and g·x̂ of the strip.
template <typename T>
__device__ __forceinline__ void sum_strip(const group_norm_args &a, int64_t group, int64_t strip, int across,
                                          float *room, float (&means)[2])
{
    const int deep = (int)blockDim.x / across, side = (int)threadIdx.x % across,
              row = (int)threadIdx.x / across;
    const int64_t sample = group / a.groups, c = group % a.groups * a.width.by + strip + side;
    const int64_t first = sample * a.places * a.channels + c;
    const float mean = a.mean[group], rstd = a.rstd[group];
    float sum = 0.0f, products = 0.0f;
    for (int64_t place = row; row < deep && place < a.places; place += deep) {
        const int64_t at = first + place * a.channels;
        const float dy = widen(static_cast<const T *>(a.dy)[at]);
        sum += dy;
        products += dy * ((widen(static_cast<const T *>(a.x)[at]) - mean) * rstd);
    }
    room[threadIdx.x] = sum;
    room[blockDim.x + threadIdx.x] = products;
    __syncthreads();
    if ((int)threadIdx.x < across) {
        for (int k = 1; k < deep; k++) {
            sum += room[k * across + side];
            products += room[(int)blockDim.x + k * across + side];
        }
        a.sums[sample * 2 * a.channels + c] = sum;
        a.sums[(sample * 2 + 1) * a.channels + c] = products;
        means[0] += sum * a.gamma[c];
        means[1] += products * a.gamma[c];
    }
    __syncthreads();
}

template <typename T> __device__ __forceinline__ void norm_groups_bwd(const group_norm_args &a, float *room)
{
    const T *x = static_cast<const T *>(a.x);
    const T *dy = static_cast<const T *>(a.dy);
    const int64_t count = a.places * a.width.by;
    for (int64_t group = blockIdx.x; group < a.samples * a.groups; group += gridDim.x) {
        float means[2] = {0.0f, 0.0f};
        for (int64_t strip = 0; strip < a.width.by; strip += blockDim.x) {
            const int64_t left = a.width.by - strip;
            sum_strip<T>(a, group, strip, (int)(left < (int64_t)blockDim.x ? left : (int64_t)blockDim.x),
                         room, means);
        }
        const float of_g = block_sum(means[0], room) / (float)count;
        const float of_products = block_sum(means[1], room) / (float)count;
        const int64_t channel = group % a.groups * a.width.by;
        const int64_t first = group / a.groups * a.places * a.channels + channel;
        const float mean = a.mean[group], rstd = a.rstd[group];
        for (int64_t k = threadIdx.x; k < count; k += blockDim.x) {
            const int64_t at = element_of(a, first, k), c = channel + (at - first) % a.channels;
            const float normal = (widen(x[at]) - mean) * rstd;
            const float g = widen(dy[at]) * a.gamma[c];
            static_cast<T *>(a.out)[at] = narrow<T>(rstd * (g - of_g - normal * of_products));
        }
    }
}

extern "C" __global__ void group_norm_finish(group_norm_finish_args a)
{
    for (int64_t c = grid_thread(); c < a.channels; c += grid_width()) {
        float sum = 0.0f, products = 0.0f;
        for (int64_t n = 0; n < a.samples; n++) {
            sum += a.sums[n * 2 * a.channels + c];
            products += a.sums[(n * 2 + 1) * a.channels + c];
        }
        a.dgamma[c] = products;
        a.dbeta[c] = sum;
    }
}

#define OF_TYPE(suffix, type)                                                                                \
    extern "C" __global__ void group_norm_##suffix(group_norm_args a)                                        \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        norm_groups<type>(a, room);                                                                          \
    }                                                                                                        \
    extern "C" __global__ void group_norm_bwd_##suffix(group_norm_args a)                                    \
    {                                                                                                        \
        SHARED float room[2 * GROUP_NORM_THREADS];                                                           \
        norm_groups_bwd<type>(a, room);                                                                      \
    }
FOR_REAL_TYPES(OF_TYPE)
