// SPDX-License-Identifier: Apache-2.0
// The device that the knobs name, open: kind, card and what the device's kernels may do.
#ifndef INSIGHT_DEVICE_CHOICE_H
#define INSIGHT_DEVICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/card.h"
#include "headroom/knobs.h"

#include "device/device.h"

typedef struct device_choice {
    const device_ops *ops;
    void *context;
    hr_card card; // device.card
    bool has_card;
} device_choice;

// `plan_only`: nothing will run. READ, PRESET, DEVICE and DEPENDENCY errors; nothing is open then.
HR_MUST_CHECK hr_status device_choice_open(const hr_knobs *knobs, bool plan_only, device_choice *out,
                                           hr_err *err);
void device_choice_close(device_choice *d);
// What programs for it are lowered for.
void device_choice_target(const device_choice *d, hr_target *out);
// The allocator's limit on it.
HR_MUST_CHECK hr_status device_choice_limit_bytes(const device_choice *d, const hr_knobs *knobs,
                                                  uint64_t *limit_bytes, hr_err *err);
// Do both name the same device, with the same kernels?
bool device_choice_same(const hr_knobs *a, const hr_knobs *b);

#endif
