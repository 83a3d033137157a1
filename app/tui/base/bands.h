// SPDX-License-Identifier: Apache-2.0
// What memory is told apart by wherever it is stacked: the categories of tensors, and what belongs to none.
#ifndef TUI_BASE_BANDS_H
#define TUI_BASE_BANDS_H

#include "headroom/category.h"

enum {
    // What is in use and no tensor asked for: rounding; behind lost events also bytes of unknown category.
    BAND_UNKNOWN = HR_CATEGORY_COUNT,
    BAND_COUNT
};

// Stacked from below: what stays first, what comes and goes above it.
extern const unsigned char band_stack[BAND_COUNT];

#endif
