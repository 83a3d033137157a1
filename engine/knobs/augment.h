// SPDX-License-Identifier: Apache-2.0
// The words of pipeline.augment: what is done to a training image, in this order, each operation once.
#ifndef KNOBS_AUGMENT_H
#define KNOBS_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"

typedef enum augment_kind {
    AUGMENT_FLIP,   // left and right change places, of every second image
    AUGMENT_CROP,   // moved by up to `amount` pixels, black comes in
    AUGMENT_COLOUR, // brightness, contrast, saturation by up to `amount` thousandths
    AUGMENT_ROTATE, // by up to `amount` degrees
    AUGMENT_ERASE,  // a rectangle becomes black, in every second image
    AUGMENT_KINDS
} augment_kind;

typedef struct augment_step {
    augment_kind kind;
    uint32_t amount; // 0 where the operation takes none
} augment_step;

typedef struct augment_list {
    uint32_t count;
    augment_step step[AUGMENT_KINDS];
} augment_list;

const char *augment_word(augment_kind kind); // "flip"

// False when pipeline.augment is no such list; `out` is then empty.
bool augment_list_of(const hr_knobs *knobs, augment_list *out);

#endif
