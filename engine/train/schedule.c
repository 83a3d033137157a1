// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static double factor_of(const hr_knobs *knobs, double when_unset)
{
    return hr_knob_is_set(knobs, HR_KNOB_OPTIMIZER_SCHEDULE_FACTOR)
               ? hr_knob_real(knobs, HR_KNOB_OPTIMIZER_SCHEDULE_FACTOR)
               : when_unset;
}

// Updates that the schedule takes behind `warmup`; at least one.
static double length_of(const hr_knobs *knobs, int64_t warmup)
{
    const int64_t updates = hr_knob_int(knobs, HR_KNOB_OPTIMIZER_SCHEDULE_UPDATES);
    const int64_t length = updates > 0 ? updates : hr_knob_int(knobs, HR_KNOB_TRAIN_STEPS) - warmup;
    return length > 0 ? (double)length : 1.0;
}

// What is left of the learning rate `done` updates behind the warm-up.
static double share_left(const hr_knobs *knobs, double done, double length)
{
    const double progress = done < length ? done / length : 1.0;
    if (hr_knob_is(knobs, HR_KNOB_OPTIMIZER_SCHEDULE, "cosine")) {
        const double end = factor_of(knobs, 0.0);
        return end + (1.0 - end) * 0.5 * (1.0 + cos(pi * progress));
    }
    if (hr_knob_is(knobs, HR_KNOB_OPTIMIZER_SCHEDULE, "linear")) {
        return 1.0 + (factor_of(knobs, 0.0) - 1.0) * progress;
    }
    if (hr_knob_is(knobs, HR_KNOB_OPTIMIZER_SCHEDULE, "step")) {
        return pow(factor_of(knobs, 0.1), floor(done / length));
    }
    return 1.0;
}

double schedule_learning_rate(const hr_knobs *knobs, uint64_t update)
{
    const double rate = hr_knob_real(knobs, HR_KNOB_OPTIMIZER_LEARNING_RATE);
    const int64_t warmup = hr_knob_int(knobs, HR_KNOB_OPTIMIZER_WARMUP);
    if (update <= (uint64_t)warmup) {
        return rate * (double)update / (double)warmup;
    }
    return rate * share_left(knobs, (double)(update - 1 - (uint64_t)warmup), length_of(knobs, warmup));
}
