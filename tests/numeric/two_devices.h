// SPDX-License-Identifier: Apache-2.0
// The cuda device beside the judge: a trial on both, forward and backward, in every type, with the same bits in a second
// run and with results in the place of inputs where that may be. What disagrees fails the test.
#ifndef TESTS_TWO_DEVICES_H
#define TESTS_TWO_DEVICES_H

#include "numeric/bf16_trial.h"
#include "numeric/op_harness.h"

enum { TWO_TYPES = 3 };
extern const hr_dtype two_types[TWO_TYPES];

typedef struct two_devices {
    op_device card, judge;
    uint64_t state; // of chance
    step_io io;     // what every run is given a copy of
} two_devices;

void two_devices_open(two_devices *d);
void two_devices_close(two_devices *d);

// Numbers that the type holds: in `t`, and in what is returned, which the card is given.
op_trial two_devices_in_type(op_trial *t, hr_dtype type, bf16_wide w);
// `t` holds the judge's values afterwards.
void two_devices_run(two_devices *d, op_trial *t, hr_dtype type, bf16_wide w);
// `made`, which stays as it is, in one type with its gradients.
void two_devices_check_in(two_devices *d, const op_trial *made, hr_dtype type);
// In every type; `t` is deinitialised.
void two_devices_check(two_devices *d, op_trial *t);
// Appends a float64 input with values in [low, high).
void two_devices_draw(two_devices *d, op_trial *t, const int64_t dims[OP_MAX_RANK], double low, double high);

#endif
