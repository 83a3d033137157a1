// SPDX-License-Identifier: Apache-2.0
// One operation at a time, on any device, with plain doubles on both sides.
//
// A trial holds an operation, its attributes and the values of its operands. Running it builds a program of that
// one instruction, lowered as program/passes/lower.c does (reorders and workspace as the device's target asks),
// converts the values to the operands' types, and reads inputs and outputs back (inputs, because optimizers and
// batch normalisation update some in place). Around every operand stands a guard that must survive, and outputs
// are poisoned with NaN bytes before the run, so an element that is not written is seen.
//
// Everything here fails the running Check test instead of returning errors.
#ifndef TESTS_OP_HARNESS_H
#define TESTS_OP_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "ops/op.h"

typedef struct op_trial {
    op_query query;
    double *in[OP_MAX_IN], *out[OP_MAX_OUT];
} op_trial;

typedef struct op_memory op_memory;

typedef struct op_device {
    const device_ops *ops;
    void *context;
    op_memory *memory;        // of a card: operands go there and come back. NULL: they lie in the host's
    uint64_t workspace_limit; // 0: what is usual
} op_device;

op_device op_device_open(const device_ops *ops, uint32_t threads);
op_device op_device_open_with(const device_ops *ops, const device_options *options);
void op_device_close(op_device *device);

const device_ops *test_device(const char *name);
// Is it there? A test program returns TEST_SKIPPED where it is not, having said why on stderr.
bool test_device_is_there(const device_ops *ops);
enum { TEST_SKIPPED = 77 };

// A trial of `op` without operands.
op_trial op_trial_make(hr_op op, op_attr attr);
void op_trial_deinit(op_trial *t);
// Appends an operand of zeros; dims end at the first 0.
void op_trial_add_in(op_trial *t, hr_dtype dtype, const int64_t dims[OP_MAX_RANK]);
void op_trial_add_out(op_trial *t, hr_dtype dtype, const int64_t dims[OP_MAX_RANK]);
// Appends `count` outputs with the shapes that the operation's row infers from the inputs.
void op_trial_infer_out(op_trial *t, uint32_t count);
// The same with plain layouts, every float operand as `real` (HR_F32, HR_F64), and the values copied.
op_trial op_trial_copy(const op_trial *t, hr_dtype real);

uint64_t op_trial_in_count(const op_trial *t, uint32_t k);
uint64_t op_trial_out_count(const op_trial *t, uint32_t k);

// `io` may be NULL.
void op_trial_run(op_trial *t, op_device device, step_io *io);
// The same with output 0 in the place of the input that the operation's row names (its values are gone then), as
// programs do it where that input is not needed any more. May it, with these operands?
bool op_trial_may_share(const op_trial *t);
void op_trial_run_in_place(op_trial *t, op_device device, step_io *io);

// Does gradient row `g` of the operation apply to this forward trial?
bool op_trial_has_gradient(const op_trial *forward, uint32_t g);
// The backward trial of gradient row `g` of a forward trial that has run: operands from the forward trial, and
// `dy` as the gradient of output 0. As many results as the forward operation has inputs for.
op_trial op_trial_backward(const op_trial *forward, uint32_t g, const double *dy);

// ‖a − b‖ / ‖b‖; 0 when both are zero.
double op_distance(const double *a, const double *b, uint64_t count);

// Deterministic test values. Uniform in [low, high).
double op_random(uint64_t *state, double low, double high);
int64_t op_random_int(uint64_t *state, int64_t low, int64_t high); // both inclusive
void op_fill(double *values, uint64_t count, uint64_t *state, double low, double high);
// Distinct values at least 1/count apart in [-1, 1), in random order: no ties, no kinks within a small step.
void op_fill_apart(double *values, uint64_t count, uint64_t *state);
// Magnitudes in [0.1, 1) with random sign: nothing near zero.
void op_fill_nonzero(double *values, uint64_t count, uint64_t *state);

#endif
