// SPDX-License-Identifier: Apache-2.0
// The bytes of an image as the values of a batch, as fast as memory gives and takes them: each byte / 255, rounded as
// float32 or float64 rounds the quotient; of two bytes each, the float32 narrowed as base/half.h does. The same bits from
// every instruction set. Nothing overlaps. Any thread.
#ifndef DATA_PIXELS_H
#define DATA_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pixels_type { PIXELS_F32, PIXELS_F64, PIXELS_F16, PIXELS_BF16, PIXELS_TYPE_COUNT } pixels_type;

uint32_t pixels_value_bytes(pixels_type type);
// `to` lies where a value may. `past_caches`: the values go to memory and leave the caches as they are, for batches that are
// larger than those and read by a device.
void pixels_write(void *to, pixels_type type, const uint8_t *from, uint64_t count, bool past_caches);
// Planes, one a channel, as height × width × channels: to[p × channels + c] = planes[c × pixels + p].
void pixels_of_planes(uint8_t *to, const uint8_t *planes, uint64_t pixels, uint32_t channels);

// The instruction sets that there are ways for; pixels_write takes the best that this processor has.
typedef enum pixels_isa { PIXELS_PLAIN, PIXELS_AVX2, PIXELS_AVX512, PIXELS_ISA_COUNT } pixels_isa;
bool pixels_has(pixels_isa isa);
void pixels_write_with(pixels_isa isa, void *to, pixels_type type, const uint8_t *from, uint64_t count,
                       bool past_caches);

#endif
