// SPDX-License-Identifier: Apache-2.0
// What this machine's cpu device takes, measured once: plans for it can then say how long a step will take.
#ifndef HEADROOM_CALIBRATION_H
#define HEADROOM_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

#define HR_CALIBRATION_SECONDS 20.0

enum { HR_CALIBRATION_ROWS = 32, HR_CALIBRATION_PATH_MAX = 512 };

typedef struct hr_calibration_row {
    const char *family; // "conv forward"; static storage
    const char *type;   // "float32", "bfloat16"; static storage
    uint64_t instructions;
    double start_seconds;
    double flops_per_second, bytes_per_second; // NaN: what it takes does not depend on them
} hr_calibration_row;

typedef struct hr_calibration {
    char isa[64];
    uint32_t threads;
    double seconds; // it took
    size_t row_count;
    hr_calibration_row rows[HR_CALIBRATION_ROWS];
    bool kept; // written to `path`; otherwise there was no place for it, or it could not be written
    char path[HR_CALIBRATION_PATH_MAX]; // "": none
} hr_calibration;

// Runs small programs on the cpu device with threads.count of `knobs` and keeps the result in
// $XDG_CACHE_HOME/headroom: devices that are opened from then on tell the time by it. After `seconds` what is left to
// measure is run as few times as can be, which takes some seconds more. DEPENDENCY error without the cpu device.
HR_MUST_CHECK hr_status hr_calibrate(const hr_knobs *knobs, double seconds, hr_calibration *out, hr_err *err);

#endif
