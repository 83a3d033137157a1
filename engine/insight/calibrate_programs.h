// SPDX-License-Identifier: Apache-2.0
// What a calibration runs: small models, each at three batches, in float32 and in two-byte types. Every operation
// that shipped models have is in one of them.
#ifndef INSIGHT_CALIBRATE_PROGRAMS_H
#define INSIGHT_CALIBRATE_PROGRAMS_H

#include "insight/calibrate_run.h"

enum { CALIBRATION_MODELS = 36, CALIBRATION_PROGRAMS = CALIBRATION_MODELS * (int)RATE_WIDTHS };

extern const calibration_program calibration_programs[CALIBRATION_MODELS];
extern const char
    *const calibration_policies[RATE_WIDTHS]; // program n: model n % MODELS under policy n / MODELS
extern const char *const calibration_types[RATE_WIDTHS];

#endif
