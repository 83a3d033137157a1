// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_PLAN_PLAY_H
#define APP_CLI_PLAN_PLAY_H

#include "headroom/engine.h"

// Plays `steps` steps on an engine that only plans. Not fitting is a result: the engine's state says so.
HR_MUST_CHECK hr_status plan_play(hr_engine *engine, uint64_t steps, hr_err *err);

#endif
