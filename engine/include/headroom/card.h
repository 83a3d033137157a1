// SPDX-License-Identifier: Apache-2.0
// A card: the numbers of one accelerator that dress the CPU or the plan device. Written as `device.card` is:
//
//   rtx3070-8g                    a name from the table, or of a file cards/NAME.yaml in a folder of presets
//   ./mine.yaml                   a file: title, vram, …; with `like: NAME` only what differs
//   rtx3070-8g,vram=12GiB,…       one of these, and what differs: any key of a file
//   unlimited                     no limit, with the times of an A100; what a plan has that names no card
#ifndef HEADROOM_CARD_H
#define HEADROOM_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

#define HR_CARD_UNLIMITED  "unlimited"
#define HR_UNLIMITED_BYTES (UINT64_C(1) << 50) // a limit of so much is none

enum { HR_CARD_PATH_MAX = 1024 };

typedef struct hr_card {
    char name[48];                  // "rtx3070-8g"
    char title[64];                 // "NVIDIA GeForce RTX 3070"
    char family[16];                // "ampere"; "" where nobody says
    char source[160];               // where its numbers are from; ""
    uint32_t year, multiprocessors; // 0: nobody says
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

// What device.card says; where neither it nor device.vram says anything, `unlimited` for the plan device. "": no card.
const char *hr_card_of(const hr_knobs *knobs);
// The card that `device.card` names; "" is no name. READ and PRESET errors.
HR_MUST_CHECK hr_status hr_card_load(const char *name, hr_card *card, hr_err *err);

// Whether a path leads to a file that is written as a card: one of a card's keys, and nothing of a preset.
bool hr_card_is_file(const char *path);
// READ; PRESET: *problems is all that is wrong with it, as hr_preset_open says it (hr_preset_problems_free), else NULL.
HR_MUST_CHECK hr_status hr_card_check(const char *path, char **problems, hr_err *err);

// The allocator's limit for these knobs: the first of device.logical, else device.vram, else allocator.fraction of the
// card, else TensorFlow's formula over the card (reference: `SingleVirtualDeviceMemoryLimit`). `card` may be NULL.
// CONSTRAINT error when the card or device.vram has less. Without card and vram: HR_UNLIMITED_BYTES, or on the cpu and reference device what this machine can give.
HR_MUST_CHECK hr_status hr_device_limit_bytes(const hr_knobs *knobs, const hr_card *card,
                                              uint64_t *limit_bytes, hr_err *err);

// Has it no end? Then reports have none, and a bfc pool grows as it is needed.
bool hr_limit_is_none(uint64_t limit_bytes);

#endif
