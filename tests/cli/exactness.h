// SPDX-License-Identifier: Apache-2.0
// The promise of the house, for one preset and one set of knobs: a plan and a run of three steps report the same
// memory, field by field, and the heap repeats at the second step boundary where allocator and knobs let it. What the plan
// refuses, the run refuses in the same words.
#ifndef TESTS_CLI_EXACTNESS_H
#define TESTS_CLI_EXACTNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/engine.h"

enum { EXACTNESS_STEPS = 3 };

typedef enum exactness { EXACTNESS_HOLDS, EXACTNESS_REFUSED, EXACTNESS_BROKEN } exactness;

// `why`: which field is another one, or with what words both refused. *peak_bytes is the peak of the run.
exactness exactness_of(const hr_preset *preset, const hr_knobs *knobs, uint64_t *peak_bytes, char *why,
                       size_t size);
// What a configuration has together is looked at without what nobody knows before it is asked: a framework's rules that lack one of
// the model's operations, a workspace.limit that no kernel keeps, a structure that a kernel cannot have or that none has, a budget below
// the smallest peak.
exactness exactness_without_refused(const hr_preset *preset, hr_knobs knobs, uint64_t *peak_bytes, char *why,
                                    size_t size);

#endif
