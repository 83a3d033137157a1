// SPDX-License-Identifier: Apache-2.0
// The scripted engine's step as a step plan: the same tensors and bytes, with addresses from a first fit, so that the
// planned heap has something to show. Times are made up, and the same on every run.
#ifndef TESTS_TUI_FAKE_STEP_PLAN_H
#define TESTS_TUI_FAKE_STEP_PLAN_H

#include "headroom/knobs.h"
#include "headroom/step_plan.h"

#include "app/tui/shell/app.h"

// Under these knobs; one that does not fit ends its events with an OOM. The caller deinits it.
void fake_step_plan_make(const hr_knobs *knobs, hr_step_plan *out);
// Shows the step plan of the workbench's present knobs, as the planner would once it has it.
void fake_step_plan_show(app *a);

#endif
