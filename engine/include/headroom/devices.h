// SPDX-License-Identifier: Apache-2.0
// The devices of this build, and which of them work here.
#ifndef HEADROOM_DEVICES_H
#define HEADROOM_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

enum { HR_DEVICES_MAX = 8 };

typedef struct hr_device_info {
    const char *name; // device.kind; static storage
    const char *line; // one line of what it is; static storage
    bool simulated;   // times come from the card
    bool available;   // it opened; otherwise `reason` says why not
    bool plans;       // it does not run here, and yet a plan for it can be made
    bool calibrated;  // it knows how long instructions take here (headroom/calibration.h)
    char isa[64];     // what computes: instruction set and library; "" when nothing does
    hr_err reason;
} hr_device_info;

// Opens and closes every device once, and what does not run here once more for a plan. Returns how many there are.
size_t hr_devices(hr_device_info out[HR_DEVICES_MAX]);

#endif
