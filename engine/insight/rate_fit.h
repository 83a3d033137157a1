// SPDX-License-Identifier: Apache-2.0
// From measured instructions to the rates of their family.
#ifndef INSIGHT_RATE_FIT_H
#define INSIGHT_RATE_FIT_H

#include <stddef.h>

#include "device/rates.h"

typedef struct rate_sample {
    double seconds, flops, bytes; // seconds above 0
    cost_family family;
    rate_width width;
} rate_sample;

// start, per FLOP and per byte, none negative, for the samples of one family and width; all zero when there are
// none. The deviance of a Poisson model is minimised by weighted least squares, which keeps the sum: what the samples
// took together is what the rates say they take together, so that neither the many small instructions nor the few
// large ones are forgotten.
cost_rate rate_fit(const rate_sample *samples, size_t count, cost_family family, rate_width width);

#endif
