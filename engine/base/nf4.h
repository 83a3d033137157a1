// SPDX-License-Identifier: Apache-2.0
// 4-bit NormalFloat: weights as the nearest of 16 quantiles of a normal distribution, times the largest |w| of their block of 64 that
// follow one another. T. Dettmers et al.: "QLoRA: efficient finetuning of quantized LLMs", NeurIPS 2023; levels, borders between
// them and the order in a byte (the first in its high half) are bitsandbytes'. Scales are not quantised once more.
//
// A block with a value that is not finite has the scale NaN. Nothing overlaps. Any thread.
#ifndef BASE_NF4_H
#define BASE_NF4_H

#include <stdint.h>

enum { NF4_BLOCK = 64, NF4_LEVELS = 16 };

extern const float nf4_levels[NF4_LEVELS]; // rising, from -1 to 1

uint64_t nf4_bytes(uint64_t count);  // two numbers each; of an odd count the last low half is 0
uint64_t nf4_blocks(uint64_t count); // of which the last may be shorter

static inline uint32_t nf4_at(const uint8_t *q, uint64_t k)
{
    return k % 2 == 0 ? q[k / 2] >> 4 : q[k / 2] & 0xfU;
}

void quantize_nf4(const float *w, uint64_t count, uint8_t *q, float *scale);
void dequantize_nf4(const uint8_t *q, const float *scale, uint64_t count, float *w);

#endif
