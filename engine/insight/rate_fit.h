// SPDX-License-Identifier: Apache-2.0
// From measured instructions to the rates of their family.
#ifndef INSIGHT_RATE_FIT_H
#define INSIGHT_RATE_FIT_H

#include <stddef.h>

#include "headroom/status.h"

#include "device/rates.h"

typedef struct rate_sample {
    double seconds, flops, bytes; // seconds above 0
    rate_kinds kinds;
    cost_family family;
    rate_width width;
    uint64_t program; // of which it is an instruction
} rate_sample;

// start, per FLOP and per byte, none negative, for all of the samples; all zero when there are none. Errors count by their factor, so that
// neither the many small instructions nor the few large ones are forgotten, either way alike, so that what scatters is foretold in its
// middle.
cost_rate rate_fit(const rate_sample *samples, size_t count);

// Families and kinds, of kinds those that two programs have; line and spread stay. `without` a program: as if it had not been run,
// and of kinds only those that its instructions have. NOMEM only.
#define RATE_WITHOUT_NONE UINT64_MAX
HR_MUST_CHECK hr_status rate_fit_all(const rate_sample *samples, size_t count, uint64_t without,
                                     cost_rates *out, hr_err *err);

#endif
