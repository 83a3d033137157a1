// SPDX-License-Identifier: Apache-2.0
// The executor: persistent tensors over an allocator, and one step after the other through a device. The same
// code plays a plan (no device kernels) and runs: prediction and allocation cannot drift.
#ifndef DEVICE_EXECUTOR_H
#define DEVICE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/instr_times.h"
#include "events/bus.h"
#include "events/heap_room.h"
#include "memory/allocator.h"
#include "memory/ledger.h"
#include "program/program.h"

typedef struct executor executor;

// Where it stopped when memory ran out.
typedef struct executor_oom {
    bool happened;
    bool
        block; // the one block of an allocator that plans was refused: requested_bytes are its, tensor is the first
    uint32_t tensor, instr; // ids in the program at hand; instr HR_NO_ID while building
    uint64_t requested_bytes;
    heap_counters stats;
    uint64_t by_category[HR_CATEGORY_COUNT];
    heap_room room; // what the heap had; none for a block
    uint32_t
        in_the_way; // the largest tensor of the step among the neighbours that freeing for it would cost least
} executor_oom;

// `device` and its context may be NULL: a plan. All pointers are borrowed until destroy.
HR_MUST_CHECK hr_status executor_create(const device_ops *device, void *device_context, allocator *heap,
                                        trace_bus *bus, executor **out, hr_err *err);
void executor_destroy(executor *x); // frees the persistent tensors

// Before executor_build, with all programs that will be attached (NULL entries are skipped): an allocator that plans
// learns what they ask for, others are not asked. OOM when it would not fit.
HR_MUST_CHECK hr_status executor_plan(executor *x, const program *const *programs, uint32_t count,
                                      hr_err *err);
// Allocates the persistent tensors of `p` in canonical order, what a first step makes within it (device/first_step.h). Programs
// attached later share them by name.
HR_MUST_CHECK hr_status executor_build(executor *x, const program *p, hr_err *err);
// Makes kernels (when there is a device) and binds p's persistent tensors to the built ones by name. CHECK error
// when one is missing or of another size, or when the allocator plans and p was not planned. *slot names the program from now on.
HR_MUST_CHECK hr_status executor_attach(executor *x, const program *p, uint32_t *slot, hr_err *err);
// Runs (or plays) one step. On any failure every tensor of the step has been freed again. INTERRUPTED when io->goes_on called
// it off between two rounds, before it had written what lasts. Where nothing is computed and no
// sink listens, rounds of REPEAT are played until heap and clock repeat themselves; what an allocator counts of its requests
// then lacks the rest.
HR_MUST_CHECK hr_status executor_step(executor *x, uint32_t slot, step_io *io, hr_err *err);

// Whether the last step came as far as to write weights, state or optimizer slots: one that failed before that has changed
// nothing that training goes on from.
bool executor_step_lasts(const executor *x);

uint64_t executor_address(const executor *x, const char *persistent_name); // 0 when absent
// Of a persistent tensor of the program that was built, by its id.
uint64_t executor_built_address(const executor *x, uint32_t id);

// While before_update of a step runs: the next gradient that its updates will take, as the step stands. *at begins at 0. False: there are
// no more, or none can be looked at: nothing is computed, an update follows each gradient at once, or the device captures its steps.
typedef struct executor_tensor {
    const tensor *t;
    uint64_t address;
} executor_tensor;
bool executor_gradient(const executor *x, uint32_t *at, executor_tensor *out);

const ledger *executor_ledger(const executor *x);
void executor_reset_peak(executor *x);
// Puts the peaks of an earlier ledger back: what ran since then (an evaluation) does not count.
void executor_restore_peak(executor *x, const ledger *earlier);
const executor_oom *executor_last_oom(const executor *x);
uint64_t executor_step_floor_bytes(const executor *x); // smallest and largest in_use within the last step
uint64_t executor_step_peak_bytes(const executor *x);
// From now on every instruction of an attached program is timed: by the device, or by the clock where that is done when it
// returns. DEVICE and NOMEM errors.
HR_MUST_CHECK hr_status executor_time(executor *x, uint32_t slot, hr_err *err);
const instr_times *executor_times(const executor *x, uint32_t slot);
// Of an attached program: an instruction's implementation, and what became of capturing its steps. Zeroed where the device has
// nothing to say.
void executor_prepared(const executor *x, uint32_t slot, uint32_t at, device_prepared *out);
void executor_captured(const executor *x, uint32_t slot, device_capture *out);
uint64_t executor_simulated_ns(const executor *x); // of the last step, on simulated devices

#endif
