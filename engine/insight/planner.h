// SPDX-License-Identifier: Apache-2.0
// hr_planner's side that only the engine sees.
#ifndef INSIGHT_PLANNER_H
#define INSIGHT_PLANNER_H

// Writes what the cpu device's library was asked and has not been kept yet, as hr_planner_close does: for a process that
// may be killed at any time. A cache: what cannot be written is not missed. Thread-safe.
void planner_keep_answers(void);

#endif
