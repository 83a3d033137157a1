// SPDX-License-Identifier: Apache-2.0
// The random words of ops/dropout.h, for kernels that drop.
#ifndef DEVICE_CPU_DRAW_H
#define DEVICE_CPU_DRAW_H

#include "ops/dropout.h"

// word[0 .. blocks * DROPOUT_BLOCK): those of the elements from first_block * DROPOUT_BLOCK on of a sample, in their order.
void draw_words(const dropout_draw *d, uint64_t sample, uint64_t first_block, int64_t blocks, uint32_t *word);

#endif
