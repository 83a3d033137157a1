// SPDX-License-Identifier: Apache-2.0
// A calibration on any device and by any clock: what hr_calibrate does.
#ifndef INSIGHT_CALIBRATE_H
#define INSIGHT_CALIBRATE_H

#include "headroom/calibration.h"

#include "device/device.h"
#include "device/rates.h"
#include "insight/calibrate_programs.h"

// Beyond these a calibration is refused. Measured on a core of a Xeon with AMX: alone on it, noise 0.06; two threads beside a dozen
// other programs, noise 0.5 to 2 and factors up to 23.
#define CALIBRATION_NOISE_MOST  0.25
#define CALIBRATION_FACTOR_MOST 2.5 // planned over measured of a model, either way

typedef struct calibration_task {
    const device_ops *device;
    void *context;
    const hr_knobs *knobs;
    calibration_time *time; // its limits are set here
    double seconds;         // of time->now_ns, at most
    const char *part;       // file of what is measured until it is whole; NULL: none
    const char *rates;      // file that keeps the rates; NULL: none
    uint64_t key;           // of the device, in that file
} calibration_task;

// Goes on from the part, measures, fits, judges, and keeps the rates unless they are refused. The part goes when nothing is left to
// be done with it: where the rates could not be kept it stays. `out` has everything but path. Errors of the device and memory only.
HR_MUST_CHECK hr_status calibrate_on(const calibration_task *task, cost_rates *rates, hr_calibration *out,
                                     hr_err *err);

#endif
