// SPDX-License-Identifier: Apache-2.0
// One program of a calibration: built, run some steps on a device, the lower quartile of every instruction's times taken: what
// else a machine does makes instructions slower, never faster, and a quartile bears it in three steps of four.
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

// Where a calibration reads the time, and how much it has.
typedef struct calibration_time {
    uint64_t (*now_ns)(void *context);
    uint64_t (*spent_ns)(void *context); // what instructions are timed by: a processor's time; NULL: now_ns
    uint64_t reading_ns;                 // by which two readings of it are apart
    void *context;
    uint64_t share_until_ns; // no step begins after it, once there are CALIBRATION_STEPS_LEAST
    uint64_t until_ns;       // no instruction begins after it
} calibration_time;

enum { CALIBRATION_STEPS_LEAST = 3 }; // with fewer a quartile is none

typedef struct calibration_outcome {
    uint32_t batch;
    uint32_t steps;        // whole and timed; below CALIBRATION_STEPS_LEAST there are no samples
    uint32_t sample_begin; // of calibration_samples
    uint32_t sample_count;
    uint32_t lines;         // of its listing
    double seconds;         // of a step: the quartiles of its instructions together
    double fastest_seconds; // the same of the fastest times
    double
        besides_seconds; // what the fastest step took besides; below 0 where scatter hides it, 0: not known
} calibration_outcome;

// Appends one sample for every instruction that costs something; the caller numbers
// its program. The program runs under `knobs` but for batch,
// precision, optimizer and mode. When the time is over it stops between two instructions and is no failure: the
// outcome says how many steps there were. Errors of the model, the device and memory.
HR_MUST_CHECK hr_status calibration_run(const device_ops *device, void *context,
                                        const calibration_program *what, const char *policy,
                                        const hr_knobs *knobs, const calibration_time *time,
                                        calibration_samples *samples, calibration_outcome *out, hr_err *err);

#endif
