// SPDX-License-Identifier: Apache-2.0
// A card: the numbers of one accelerator that dress the CPU or the plan device (presets/cards/*.yaml).
#ifndef HEADROOM_CARD_H
#define HEADROOM_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

enum { HR_CARD_PATH_MAX = 1024 };

typedef struct hr_card {
    char name[48];  // "rtx3070-8g"
    char title[64]; // "NVIDIA GeForce RTX 3070"
    uint64_t vram_bytes;
    uint64_t context_bytes;
    uint32_t compute_major, compute_minor;
    double memory_bytes_per_second;
    // Per second, dense; 0: not native. Products run on tensor cores where the card has them (tf32, float16, bfloat16
    // and float64 are theirs), everything else on its ordinary units: float32 and the vector_ rates.
    double float32_flops, tf32_flops, float16_flops, bfloat16_flops, float64_flops;
    double vector_float16_flops, vector_bfloat16_flops, vector_float64_flops;
    double link_bytes_per_second; // host to device, one way
    double launch_seconds;        // of one kernel
    uint64_t granularity_bytes;   // of memory taken from the driver
    // The card's properties as cuDNN takes them to plan without it: NAME.json beside its file; empty without one.
    char properties_path[HR_CARD_PATH_MAX];
} hr_card;

// The card that `device.card` names. READ/PRESET errors.
HR_MUST_CHECK hr_status hr_card_load(const char *name, hr_card *card, hr_err *err);

// The allocator's limit for these knobs: the first of device.logical, else device.vram, else allocator.fraction of the
// card, else TensorFlow's formula over the card (reference: `SingleVirtualDeviceMemoryLimit`). `card` may be NULL when
// vram is set. CONSTRAINT error when the card or device.vram has less.
HR_MUST_CHECK hr_status hr_device_limit_bytes(const hr_knobs *knobs, const hr_card *card,
                                              uint64_t *limit_bytes, hr_err *err);

#endif
