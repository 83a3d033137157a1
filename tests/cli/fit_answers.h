// SPDX-License-Identifier: Apache-2.0
// The promise of `fit`, for one preset and one limit: what is answered fits, and a run of it counts the peak that was planned, to the
// byte.
#ifndef TESTS_CLI_FIT_ANSWERS_H
#define TESTS_CLI_FIT_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"

enum { FIT_ANSWERS_LIMITS = 3 };

typedef struct fit_answers {
    uint64_t limit_bytes;
    unsigned ways, fitting;    // that the search found
    unsigned frontier;         // of them on a frontier
    unsigned ran, exact;       // of those that fit
    char knobs[256], why[512]; // of the first that was not exact; "": none
} fit_answers;

// Shares of what the preset needs as it is. False where it cannot be planned; `why` says it.
bool fit_answers_limits(const hr_preset *preset, const hr_knobs *knobs, uint64_t limits[FIT_ANSWERS_LIMITS],
                        char *why, size_t size);

// `knobs`: of the cpu device; its limit is set here. Runs what is on a frontier and fits, and of the rest as many, from the largest
// peak to the least, that there are `most` in all. False: the promise is broken.
bool fit_answers_hold(const hr_preset *preset, const hr_knobs *knobs, uint64_t limit_bytes, unsigned most,
                      fit_answers *out);

#endif
