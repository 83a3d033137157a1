// SPDX-License-Identifier: Apache-2.0
// One program of a calibration: built, run some steps on a device, every instruction's median taken.
#ifndef INSIGHT_CALIBRATE_RUN_H
#define INSIGHT_CALIBRATE_RUN_H

#include "headroom/knobs.h"

#include "base/vec.h"
#include "device/device.h"
#include "insight/rate_fit.h"

typedef struct calibration_program {
    const char *name, *preset; // preset: its text
    uint32_t batch;
    const char *optimizer; // optimizer.kind
} calibration_program;

typedef VEC(rate_sample) calibration_samples;

// Appends one sample for every instruction that costs something. `hurry`: no more steps than a median needs. The
// program runs under `knobs` but for batch, precision, optimizer and mode. Errors of the model, the device and memory.
HR_MUST_CHECK hr_status calibration_run(const device_ops *device, void *context,
                                        const calibration_program *what, const char *policy,
                                        const hr_knobs *knobs, bool hurry, calibration_samples *samples,
                                        hr_err *err);

#endif
