// SPDX-License-Identifier: Apache-2.0
// Playing a program: the allocations of a build and some steps on an allocator over pure numbers, nothing else
// touched. The dry run before arithmetic, what-if and fit are this one function.
#ifndef INSIGHT_PLAY_H
#define INSIGHT_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"

#include "device/executor.h"
#include "events/heap.h"
#include "program/program.h"
#include "program/target.h"

typedef struct play_result {
    bool fits;
    ledger_peak peak;    // of the training steps
    heap_counters stats; // at the end
    executor_oom oom;    // when it does not fit; `oom_program` is where
    const program *oom_program;
    const allocator *heap; // while it plays; NULL afterwards
} play_result;

allocator_config play_allocator_config(const hr_knobs *knobs, uint64_t limit_bytes);
// What a backing must have for such an allocator: the limit, or the whole card where the limit is a share that
// expandable segments may pass by a handle.
uint64_t play_backing_bytes(const allocator_config *config);

// Plays build and `steps` steps of programs[0], then one step of every further program (NULL entries are skipped).
// Not fitting is a result; errors are host memory only. Thread-safe as far as `device` opens memory
// thread-safely (all do for numbers).
HR_MUST_CHECK hr_status play_programs(const device_ops *device, void *device_context, const hr_knobs *knobs,
                                      uint64_t limit_bytes, const program *const *programs, uint32_t count,
                                      uint32_t steps, play_result *out, hr_err *err);

// The same, and `bus` (may be NULL) gets every memory event, with the step that it is of.
HR_MUST_CHECK hr_status play_traced(const device_ops *device, void *device_context, const hr_knobs *knobs,
                                    uint64_t limit_bytes, trace_bus *bus, const program *const *programs,
                                    uint32_t count, uint32_t steps, play_result *out, hr_err *err);

// The peak of a step's program in such an allocator, for what is compiled under a budget. Where it does not fit the limit:
// what it asks for, and more than the limit.
typedef struct play_place {
    const device_ops *device;
    void *device_context;
    const hr_knobs *knobs;
    uint64_t limit_bytes;
    uint64_t judged_instrs; // of all programs that were judged, whatever came of them
    bool (*stops)(
        void *context); // asked before each that is judged: INTERRUPTED where it says so; NULL: none is
    void *stops_context;
} play_place;

// `place` is borrowed.
target_judge play_judge(play_place *place);

// The heap in which the same play does not fit, as it was when the request was refused, with the names of its tensors.
// The caller's to deinit; without chunks when it fits. NOMEM.
HR_MUST_CHECK hr_status play_failure_heap(const device_ops *device, void *device_context,
                                          const hr_knobs *knobs, uint64_t limit_bytes,
                                          const program *const *programs, uint32_t count, uint32_t steps,
                                          heap_snapshot *out, hr_err *err);

enum { PLAY_STEPS = 2 }; // with its slots allocated at build, a heap repeats from the second step on

#endif
