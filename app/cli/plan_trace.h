// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_PLAN_TRACE_H
#define APP_CLI_PLAN_TRACE_H

#include "app/cli/options.h"
#include "app/cli/replay.h"

// plan TRACE: whether what was recorded fits, with how much left, and what the trace takes on one allocator: the one that is named,
// or that of the framework that recorded it. The exit code: 1 when it does not fit.
int plan_trace(const cli_args *args);

// Opens the trace and one column for it: the allocator that is named, or that of the framework that recorded it. The caller closes
// *replay and deinits t in every case. READ, USAGE, KNOB, NOMEM.
HR_MUST_CHECK hr_status plan_trace_open(const cli_args *args, const char *name, hr_replay **replay,
                                        replay_table *t, hr_err *err);
// Whether the trace is served whole under these knobs, and what it takes. What hr_replay_run says.
HR_MUST_CHECK hr_status plan_trace_holds(hr_replay *replay, const hr_knobs *knobs, hr_replay_memory *memory,
                                         bool *whole, hr_err *err);

#endif
