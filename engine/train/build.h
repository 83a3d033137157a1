// SPDX-License-Identifier: Apache-2.0
// One build: an open device, the programs compiled for it, and the memory they run in. Everything a knob change
// that is not hot replaces. Engine's thread only.
//
//   build_prepare ─▶ build_dry_run (numbers only) ─▶ build_allocate (real) ─▶ steps … ─▶ build_destroy
#ifndef TRAIN_BUILD_H
#define TRAIN_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"

#include "device/executor.h"
#include "insight/device_choice.h"
#include "insight/play.h"
#include "model/model.h"
#include "program/program.h"

typedef enum build_program {
    BUILD_TRAIN,
    BUILD_TRAIN_REST,    // last batch of the epoch under way, which may have begun with another batch.size
    BUILD_TRAIN_PARTIAL, // last batch of every later epoch
    BUILD_EVAL,
    BUILD_EVAL_PARTIAL,
    BUILD_FEED, // copies a batch ahead, where pipeline.device_prefetch holds any, or the one that is resident
    BUILD_PROGRAMS
} build_program;

typedef struct build {
    device_choice on;         // closed last
    const device_ops *device; // of `on`, as is its context
    void *context;
    hr_target target;
    bool arithmetic; // kernels compute; otherwise a plan, or a simulated device
    uint64_t limit_bytes;
    uint32_t ahead;                    // batches held ahead on the device
    bool resident;                     // one batch stays on the device
    program *programs[BUILD_PROGRAMS]; // NULL where there is no such batch
    uint32_t slots[BUILD_PROGRAMS];
    backing source;
    allocator *heap;
    executor *x;
} build;

typedef struct build_request {
    const hr_model *model;
    const hr_knobs *knobs;
    bool plan_only;
    uint32_t rest_samples;         // of the last batch of the epoch under way; 0: none
    uint32_t partial_samples;      // of the last batch of later epochs; 0: none
    uint32_t eval_partial_samples; // of the last evaluation batch; 0: none
    bool feeds;                    // batches are copied ahead, or one for all steps
    uint64_t *
        judged_instrs; // the instructions of what was compiled in search of a budget are added; NULL: they are not
} build_request;

// Opens the device and compiles the programs. Takes no device memory.
HR_MUST_CHECK hr_status build_prepare(const build_request *request, build **out, hr_err *err);
// Compiles what the request names and the build lacks.
HR_MUST_CHECK hr_status build_compile(build *b, const build_request *request, hr_err *err);
// Would it fit? Not fitting is a result.
HR_MUST_CHECK hr_status build_dry_run(const build *b, const hr_knobs *knobs, play_result *out, hr_err *err);
// The same for its full batches alone, under other knobs that it would have been compiled alike for.
HR_MUST_CHECK hr_status build_play_full(const build *b, const hr_knobs *knobs, play_result *out, hr_err *err);
// And `bus` gets every memory event of it.
HR_MUST_CHECK hr_status build_play_watched(const build *b, const hr_knobs *knobs, trace_bus *bus,
                                           play_result *out, hr_err *err);
// Whether programs compiled for one are those for the other: they differ in allocator and limit alone, and in stages
// of the host.
bool build_compiles_alike(const hr_knobs *a, const hr_knobs *b);
// The heap in which the dry run does not fit, as it was when the request was refused.
HR_MUST_CHECK hr_status build_failure_heap(const build *b, const hr_knobs *knobs, heap_snapshot *out,
                                           hr_err *err);
// Takes the memory, allocates the persistent tensors and makes the kernels. Their contents are undefined.
HR_MUST_CHECK hr_status build_allocate(build *b, const hr_knobs *knobs, trace_bus *bus, hr_err *err);
void build_destroy(build *b); // NULL is fine

#endif
