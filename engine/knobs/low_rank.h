// SPDX-License-Identifier: Apache-2.0
// What compress.low_rank says.
#ifndef KNOBS_LOW_RANK_H
#define KNOBS_LOW_RANK_H

#include <stdbool.h>

#include "headroom/knobs.h"

typedef struct low_rank_choice {
    int64_t rank; // of every layer; 0: none, or by ratio
    double ratio; // of a layer's weights that may stay; 0: none, or by rank
} low_rank_choice;

// False when the text is neither "none" nor a rank from 1 to 65536 nor "ratio:X" with X above 0 and below 1.
bool low_rank_of(const hr_knobs *knobs, low_rank_choice *out);

#endif
