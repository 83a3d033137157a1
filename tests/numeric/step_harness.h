// SPDX-License-Identifier: Apache-2.0
// One whole training step of a shipped model through compiler, allocator, executor and device, on the batch and the
// initial weights of a seed that make_fixtures.py repeats, with everything that matters read back as doubles:
// weights, statistics and slots under their own names, "NAME:grad" as the optimizer reads it, "logits" (what the loss
// judges), "teacher_logits" of a model that has a teacher, "loss".
//
// Everything here fails the running Check test instead of returning errors.
#ifndef TESTS_STEP_HARNESS_H
#define TESTS_STEP_HARNESS_H

#include <jansson.h>
#include <stdint.h>

#include "device/device.h"

typedef struct step_value {
    char name[80];
    double *values;
    uint64_t count;
} step_value;

typedef struct step_result {
    step_value *value;
    uint32_t count, capacity;
} step_result;

// `fixture` names model, seed, batch and optimizer; `knobs` are further "key=value" pairs, NULL-terminated.
step_result step_run(const json_t *fixture, const device_ops *device, const char *const *knobs);
void step_result_deinit(step_result *r);
const step_value *step_find(const step_result *r, const char *name); // NULL when absent

#endif
