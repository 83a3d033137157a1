// SPDX-License-Identifier: Apache-2.0
// hr_planning_* over the scripted engine: turns and step plans are answered, differences and sweeps never are.
#ifndef TESTS_TUI_FAKE_PLANNING_H
#define TESTS_TUI_FAKE_PLANNING_H

#include "headroom/planning.h"

// What one turn of `knobs` comes to: fills status and whatif. False: no host memory.
bool fake_planning_turn(const hr_knobs *knobs, const hr_turn *turn, hr_answer *answer);
// From now on nothing can be asked: as where no process is to be had.
void fake_planning_break(bool broken);
// From now on nothing would stand.
void fake_planning_refuse(bool refuses);
// From now on nobody says whether anything would.
void fake_planning_hold(bool held);
// What the last sweep that was asked for may change.
hr_fit_permission fake_planning_permitted(void);
// Models opened so far.
unsigned fake_planning_opened(void);

#endif
