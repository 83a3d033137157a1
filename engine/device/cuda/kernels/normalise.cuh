// SPDX-License-Identifier: Apache-2.0
// What a batch normalisation makes of a value, alike wherever it is made again.
#ifndef KERNELS_NORMALISE_CUH
#define KERNELS_NORMALISE_CUH

#include "kernel.cuh"

__device__ __forceinline__ float normalising_scale(float gamma, float variance, float epsilon)
{
    return gamma / sqrtf(variance + epsilon);
}

__device__ __forceinline__ float normalised(float x, float mean, float scale, float beta)
{
    return fmaf(x - mean, scale, beta);
}

#endif
