// SPDX-License-Identifier: Apache-2.0
// What this machine's cpu device takes, measured once: plans for it can then say how long a step will take.
#ifndef HEADROOM_CALIBRATION_H
#define HEADROOM_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

#define HR_CALIBRATION_SECONDS 40.0

enum {
    HR_CALIBRATION_ROWS = 32,
    HR_CALIBRATION_MODELS = 80,
    HR_CALIBRATION_PATH_MAX = 512,
    HR_CALIBRATION_REFUSAL_MAX = 320
};

typedef struct hr_calibration_row {
    const char *family; // "conv forward"; static storage
    const char *type;   // "float32", "bfloat16"; static storage
    uint64_t instructions;
    double start_seconds;
    double flops_per_second, bytes_per_second; // NaN: what it takes does not depend on them
} hr_calibration_row;

// One small model that was run, and what rates say of it that were made without it.
typedef struct hr_calibration_model {
    const char *name; // "images"; static storage
    const char *type; // as above
    uint32_t batch, steps;
    double planned_seconds, measured_seconds; // of a step
    double noise; // how much longer than their fastest time its instructions took: 0.1 is a tenth
} hr_calibration_model;

typedef struct hr_calibration {
    char isa[64];
    uint32_t threads;
    double seconds; // it took
    size_t row_count;
    hr_calibration_row rows[HR_CALIBRATION_ROWS];
    size_t model_count;   // that were measured
    size_t resumed_count; // of them by an earlier calibration, which was cut short
    hr_calibration_model models[HR_CALIBRATION_MODELS];
    double noise;        // of all of them together
    double line_seconds; // every line of a listing takes besides
    double error;        // of the models, in the middle: 0.1 is a tenth, either way
    double spread;       // four models in five are within this factor of what is planned, either way
    bool goes_on;        // the time was over, and the next calibration goes on with what is left
    // Why the rates are not to be believed, and what to do; "" when they are. They are not kept then.
    char refusal[HR_CALIBRATION_REFUSAL_MAX];
    bool
        kept; // written to `path`; otherwise refused, or there was no place for it, or it could not be written
    char path[HR_CALIBRATION_PATH_MAX]; // "": none
} hr_calibration;

// Runs small programs on the cpu device with threads.count of `knobs` and keeps the result in
// $XDG_CACHE_HOME/headroom: devices that are opened from then on tell the time by it. No instruction begins after
// `seconds`. What was measured on a busy machine, or explains the models badly, is refused and not kept, which is no
// error. One that is killed, or whose time is over, leaves what it measured, and the next one goes on from there. DEPENDENCY error
// without the cpu device, STATE error while another process calibrates.
HR_MUST_CHECK hr_status hr_calibrate(const hr_knobs *knobs, double seconds, hr_calibration *out, hr_err *err);

#endif
