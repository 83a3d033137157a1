// SPDX-License-Identifier: Apache-2.0
// A scripted engine in place of hr_engine_host_*, hr_planner_plan and hr_preset_*: the separable CNN of the demo with
// made-up but plausible tensors, the same to the byte on every run. The workbench cannot tell the difference.
#ifndef TESTS_TUI_FAKE_ENGINE_H
#define TESTS_TUI_FAKE_ENGINE_H

#include <stdbool.h>

#include "headroom/engine.h"

// The preset "demo": batch 128, 64 MiB, Adam, eager. Static storage; closing it does nothing.
const hr_preset *fake_preset(void);

// Manual engines have no thread and no clock: a host started from now on moves in fake_engine_advance only.
void fake_engine_set_manual(bool manual);
// Takes the commands that wait and does `pieces` steps, builds or evaluations.
void fake_engine_advance(hr_engine_host *host, unsigned pieces);
// Puts one event into the stream as if the engine had said it.
void fake_engine_say(hr_engine_host *host, const hr_event *event);

#endif
