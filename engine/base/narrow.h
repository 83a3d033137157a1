// SPDX-License-Identifier: Apache-2.0
// Many floats to two bytes each, as fast as memory gives and takes them: the bits of base/half.h. Nothing overlaps.
// Any thread.
#ifndef BASE_NARROW_H
#define BASE_NARROW_H

#include <stdint.h>

void narrow_to_f16(uint16_t *to, const float *from, uint64_t count);
void narrow_to_bf16(uint16_t *to, const float *from, uint64_t count);

#endif
