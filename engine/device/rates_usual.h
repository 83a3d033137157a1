// SPDX-License-Identifier: Apache-2.0
// What cores take that were not calibrated: rates of a kind that calibrations find, by the width of their registers and the number
// of threads. They say which of two programs is faster, and within a factor of RATES_USUAL_SPREAD how long one takes.
#ifndef DEVICE_RATES_USUAL_H
#define DEVICE_RATES_USUAL_H

#include <stdbool.h>

#include "device/rates.h"

#define RATES_USUAL_SPREAD 3.0

// `lanes`: float32 numbers that one thread computes at once; a part of one where it is slower than such a lane. `has_half`: two-byte
// types are native, not widened first.
void rates_usual(cost_rates *out, double threads, double lanes, bool has_half);

#endif
