// SPDX-License-Identifier: Apache-2.0
// The random words of ops/dropout.h: element e of a sample is word e / 16 % 4 of call e / 64 * 16 + e % 16.
#ifndef KERNELS_PHILOX_CUH
#define KERNELS_PHILOX_CUH

#include "kernel.cuh"

#define DRAW_BLOCK    64 // elements of DRAW_LANES calls
#define DRAW_LANES    16
#define PHILOX_WORDS  4
#define PHILOX_ROUNDS 10

struct philox_words {
    uint32_t word[PHILOX_WORDS];
};

// Philox4x32-10 as base/philox.c has it: of one call of one sample.
__device__ __forceinline__ philox_words philox(uint32_t k0, uint32_t k1, uint64_t call, uint64_t sample)
{
    uint32_t x0 = (uint32_t)call, x1 = (uint32_t)(call >> 32);
    uint32_t x2 = (uint32_t)sample, x3 = (uint32_t)(sample >> 32);
#pragma unroll
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * x0, p1 = (uint64_t)0xCD9E8D57u * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return philox_words{{x0, x1, x2, x3}};
}

#endif
