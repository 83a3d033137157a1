// SPDX-License-Identifier: Apache-2.0
// Numbers in [-1, 1] or [0, 1] as one byte: the dynamic tree codes of Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization" (arXiv 2110.02861) and of bitsandbytes: seven decades, each twice as finely cut as the one below, so
// that small numbers keep their order of magnitude. A block of numbers is stored as codes of their ratio to its largest.
#ifndef BASE_CODE8_H
#define BASE_CODE8_H

#include <stdint.h>

typedef enum code8_kind { CODE8_SIGNED, CODE8_UNSIGNED } code8_kind;

enum { CODE8_VALUES = 256, CODE8_BLOCK = 256 };

// What every code stands for, ascending. Zero and one are among them.
void code8_table(code8_kind kind, float values[CODE8_VALUES]);
// The code whose value is nearest to x, the lower one of two that are as near.
uint8_t code8_nearest(const float values[CODE8_VALUES], double x);

#endif
