// SPDX-License-Identifier: Apache-2.0
// A recorded step where a step program stands: what-if, step plan and report of a trace, from replays. A block's lifetime is
// a tensor:
//
//   event 3 alloc block 0 ─▶ tensor 2 ◀─ event 9 free block 0        event 12 alloc block 0 ─▶ tensor 7
//
// All are of about.device. One thread at a time for a trace.
#ifndef INSIGHT_REPLAY_PLAN_H
#define INSIGHT_REPLAY_PLAN_H

#include "headroom/engine.h"
#include "headroom/step_plan.h"

#include "insight/evidence.h"
#include "insight/replay.h"

// hr_replay_open for what is to be planned: USAGE error where it asks for nothing.
HR_MUST_CHECK hr_status replay_open_step(const char *path, hr_replay **out, hr_err *err);

// ---- tensors --------------------------------------------------------------------------------------------------

typedef struct replay_tensor {
    uint32_t born, died; // events; died HR_NO_ID: it stays
} replay_tensor;

// Starts zeroed.
typedef struct replay_tensors {
    uint32_t *of_event; // [events] the tensor that it asks for, or frees; HR_NO_ID: none
    uint32_t *instr_of; // [events] its number among the instructions of the step plan; HR_NO_ID: it is none
    replay_tensor *rows;
    uint32_t count, instr_count;
} replay_tensors;

// NOMEM; the caller deinits it in every case.
HR_MUST_CHECK hr_status replay_tensors_of(const hr_replay *replay, replay_tensors *out, hr_err *err);
void replay_tensors_deinit(replay_tensors *t);
// Gives an event of a play that tags events its tensor, in place of the tag.
void replay_tensors_name(const replay_tensors *t, const trace *of, hr_event *event);

// ---- answers --------------------------------------------------------------------------------------------------

// Errors of hr_replay_run. What a trace does not say is null.
HR_MUST_CHECK hr_status replay_whatif(hr_replay *replay, const hr_knobs *knobs, hr_whatif *out, hr_err *err);
// Every request is an instruction, every block a tensor; a layer is what names have before their last '/', or a name.
// Categories and phases are none: a record does not say them. The caller deinits it.
HR_MUST_CHECK hr_status replay_step_plan(hr_replay *replay, const hr_knobs *knobs, hr_step_plan *out,
                                         hr_err *err);

// hr_replay_report; with a verdict of the caller's own in place of the replay's. Its fixes are found here; none where the replay
// serves everything without them.
HR_MUST_CHECK hr_status replay_report_with(hr_replay *replay, const hr_knobs *knobs, const char *name,
                                           const hr_report_oom *verdict, hr_report *out, hr_err *err);
// Fills the fixes of `oom`, of which cause and limit stand: settings first, more memory last, each proved by a replay.
// `fits_bytes`: what replay_smallest_limit said for the limit of `oom`; HR_NONE: it was not asked.
HR_MUST_CHECK hr_status replay_find_fixes(hr_replay *replay, const hr_knobs *knobs, uint64_t fits_bytes,
                                          hr_report_oom *oom, hr_err *err);
// Counts in `shown` how often a replay goes back to the device for one request. Errors of hr_replay_run.
HR_MUST_CHECK hr_status replay_retries(const hr_replay *replay, const hr_knobs *knobs, oom_evidence *shown,
                                       hr_err *err);
// Settings of an allocator that may serve what it refuses, or never go back to the device, from what changes least.
typedef struct allocator_setting {
    hr_knob_id id;
    const char *value;
    const char *pair; // both
} allocator_setting;

enum { ALLOCATOR_SETTINGS = 6 };
extern const allocator_setting allocator_settings[ALLOCATOR_SETTINGS];

// Whether the knobs with this pair serve the whole trace on every device: then *fix says so. A pair that a rule about
// knobs refuses serves nothing. Other errors of hr_replay_run.
HR_MUST_CHECK hr_status replay_try(hr_replay *replay, const hr_knobs *knobs, const char *pair,
                                   const hr_replay_options *options, hr_replay_fix *fix, bool *serves,
                                   hr_err *err);
// The smallest limit that was tried and serves the whole trace; 0: none did. `failed_bytes` does not.
HR_MUST_CHECK hr_status replay_smallest_limit(hr_replay *replay, const hr_knobs *knobs, uint64_t failed_bytes,
                                              uint64_t *fits_bytes, hr_err *err);

#endif
