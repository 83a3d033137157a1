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
    char remark[192]; // why that and no more: "kept from AMX: …"; "" where there is nothing to say
    hr_err reason;
} hr_device_info;

// Opens and closes every device once, and what does not run here once more for a plan. Returns how many there are.
size_t hr_devices(hr_device_info out[HR_DEVICES_MAX]);

// What ONEDNN_MAX_CPU_ISA is to be set to for a cpu device that does without the newest instructions of `isa` (as reports
// name it, or a library its kernels: "brg:avx512_core_amx_bf16"); NULL: nothing below is known.
const char *hr_devices_isa_below(const char *isa);

#endif
