// SPDX-License-Identifier: Apache-2.0
// From a scenario (headroom/scenario.h) to its trace.
#ifndef INSIGHT_SCENARIO_H
#define INSIGHT_SCENARIO_H

#include "headroom/scenario.h"
#include "headroom/status.h"

#include "formats/trace.h"

// Compiles the scenario's programs for the plan device and writes down their steps: events with names, steps and
// streams, that pass trace_check; times are simulated, by the rates of an A100. On failure *t is empty. The caller
// deinits it. PRESET errors when the models that come with the program are not there.
HR_MUST_CHECK hr_status scenario_trace(const hr_scenario *scenario, trace *t, hr_err *err);

#endif
