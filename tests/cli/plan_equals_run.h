// SPDX-License-Identifier: Apache-2.0
// The promise of the house, for one configuration: a plan and a run of three steps report the same memory, field by
// field, and the heap repeats at the second step boundary. Shared by the test and by the soak over all of them.
#ifndef TESTS_CLI_PLAN_EQUALS_RUN_H
#define TESTS_CLI_PLAN_EQUALS_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/engine.h"

// One configuration: indices into the axes.
typedef struct exactness_case {
    unsigned model, batch, mode, growth, optimizer;
    bool is_static; // allocator.kind; only with graph and growth=off
} exactness_case;

enum {
    EXACTNESS_MODELS = 3,
    EXACTNESS_BATCHES = 4,
    EXACTNESS_MODES = 2,
    EXACTNESS_GROWTHS = 2,
    EXACTNESS_OPTIMIZERS = 3,
    EXACTNESS_CASES =
        EXACTNESS_MODELS * EXACTNESS_BATCHES * EXACTNESS_MODES * EXACTNESS_GROWTHS * EXACTNESS_OPTIMIZERS,
    EXACTNESS_STEPS = 3,
};

// 0..EXACTNESS_CASES-1, all of them with bfc; models slowest, then batches
exactness_case exactness_case_number(unsigned number);
bool exactness_can_be_static(const exactness_case *c);
// "resnet18_cifar batch 48 eager growth=off adam", with " static" behind it. Returns text.
const char *exactness_name(const exactness_case *c, char *text, size_t size);
// True when the promise holds; otherwise `why` says which field broke it. *peak_bytes is the peak of the run.
bool exactness_holds(const exactness_case *c, uint64_t *peak_bytes, char *why, size_t size);

#endif
