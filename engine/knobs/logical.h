// SPDX-License-Identifier: Apache-2.0
// What device.logical says: the sizes of TensorFlow's logical devices on one card. Each has a best-fit allocator of its
// own (GPU_0_bfc, GPU_1_bfc, …) and what is free in one serves no other; the step has the first.
#ifndef KNOBS_LOGICAL_H
#define KNOBS_LOGICAL_H

#include <stdbool.h>

#include "headroom/knobs.h"

typedef struct logical_devices {
    uint32_t count;       // 0: the card is not divided
    uint64_t first_bytes; // of GPU_0_bfc
    uint64_t bytes;       // of all together
} logical_devices;

// False when the text is neither "none" (or "") nor sizes of at least 256 B with commas between.
bool logical_devices_of(const hr_knobs *knobs, logical_devices *out);

#endif
