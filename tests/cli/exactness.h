// SPDX-License-Identifier: Apache-2.0
// The promise of the house, for one preset and one set of knobs: a plan and a run of three steps report the same
// memory, field by field, and the heap repeats at the second step boundary where allocator and knobs let it.
#ifndef TESTS_CLI_EXACTNESS_H
#define TESTS_CLI_EXACTNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/engine.h"

enum { EXACTNESS_STEPS = 3 };

// True when the promise holds; otherwise `why` says which field broke it. *peak_bytes is the peak of the run.
bool exactness_holds(const hr_preset *preset, const hr_knobs *knobs, uint64_t *peak_bytes, char *why,
                     size_t size);

#endif
