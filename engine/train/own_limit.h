// SPDX-License-Identifier: Apache-2.0
// A limit that the knobs set themselves, where the card has room for more.
#ifndef TRAIN_OWN_LIMIT_H
#define TRAIN_OWN_LIMIT_H

#include "headroom/knobs.h"

typedef struct own_limit {
    const char *key;        // of the knob that keeps the limit too low; NULL: none does
    uint64_t without_bytes; // the limit without it
} own_limit;

// The first knob without which the limit would be at least `needed_bytes`: device.logical, allocator.fraction,
// allocator.conf, device.vram. None where needed_bytes is 0.
own_limit own_limit_of(const hr_knobs *knobs, uint64_t needed_bytes);

#endif
