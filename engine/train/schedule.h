// SPDX-License-Identifier: Apache-2.0
// The learning rate of an update: a function of the knobs and the update's number, so that nothing of it is held,
// saved or lost, and every knob of it is hot.
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include <stdint.h>

#include "headroom/knobs.h"

// `update` counts from 1.
double schedule_learning_rate(const hr_knobs *knobs, uint64_t update);

#endif
