// SPDX-License-Identifier: Apache-2.0
// What the updates of variables share. Private to the cpu device.
#ifndef DEVICE_CPU_UPDATE_H
#define DEVICE_CPU_UPDATE_H

#include "cpu.h"
#include "ops/adam.h"

enum { UPDATE_GRAIN = 16384 };

// The last operand says that the gradients of this step were not finite: nothing may change.
bool update_is_skipped(const cpu_run *r);
// w = 0 where the mask is, as bits. Defined by prune.c.
void update_zero_masked(uint32_t *restrict w, const uint32_t *restrict mask, int64_t begin, int64_t end);
// What decoupled weight decay leaves of a weight.
float update_kept(const cpu_run *r);
adam_step update_adam_step(const cpu_run *r);

// Σ x², in an order that depends on the numbers of elements and threads alone. Scratch is 64-byte aligned.
uint64_t update_squares_scratch_bytes(const workers *w);
double update_squares(workers *w, const void *x, hr_dtype type, int64_t count, double *scratch);

#endif
