// SPDX-License-Identifier: Apache-2.0
// How long the instructions of a program took, step by step: of each the last steps' times, to take a median of.
#ifndef DEVICE_INSTR_TIMES_H
#define DEVICE_INSTR_TIMES_H

#include <stdint.h>

#include "headroom/status.h"

enum { INSTR_TIMES_STEPS = 32 }; // that are kept; older ones are written over

typedef struct instr_times {
    uint64_t *ns; // [instr_count][INSTR_TIMES_STEPS]; NULL: nothing is timed
    uint32_t instr_count;
    uint64_t steps; // that are whole; the caller counts them
} instr_times;

// NOMEM only.
HR_MUST_CHECK hr_status instr_times_init(instr_times *t, uint32_t instr_count, hr_err *err);
void instr_times_deinit(instr_times *t);
// What instruction `at` took in the step under way; of several rounds the last one counts.
void instr_times_note(instr_times *t, uint32_t at, uint64_t ns);
// Of the steps that are kept but the first of all, in which libraries make what they make once; 0 where there is none.
uint64_t instr_times_median_ns(const instr_times *t, uint32_t at);
uint64_t instr_times_least_ns(const instr_times *t, uint32_t at);

#endif
