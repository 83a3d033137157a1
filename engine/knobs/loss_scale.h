// SPDX-License-Identifier: Apache-2.0
// What precision.loss_scale says, with its default filled in.
#ifndef KNOBS_LOSS_SCALE_H
#define KNOBS_LOSS_SCALE_H

#include <stdbool.h>

#include "headroom/knobs.h"

typedef struct loss_scale_choice {
    bool dynamic;
    double fixed; // a constant factor; 1: none
} loss_scale_choice;

// False when the text is neither "dynamic" nor "none" nor a factor of at least 1 ("" is Keras' choice: dynamic with
// mixed_float16, none otherwise).
bool loss_scale_of(const hr_knobs *knobs, loss_scale_choice *out);

#endif
