// SPDX-License-Identifier: Apache-2.0
// What of a lesson is printed: pages, goals, knobs, runs and verdicts.
#ifndef APP_CLI_LESSON_SHOW_H
#define APP_CLI_LESSON_SHOW_H

#include "headroom/lesson.h"

// For hr_lesson_begin.
extern const hr_lesson_watch lesson_until_signal;

// With its figures, and an empty line behind it.
HR_MUST_CHECK hr_status lesson_show_page(const char *page, const hr_lesson_runs *runs, hr_err *err);
void lesson_show_goals(const hr_lesson_about *about);
// The knobs that may be turned, or those that are turned in the sandbox.
void lesson_show_knobs(const hr_lesson *lesson, const hr_knobs *knobs, bool in_sandbox);
// What one does and what it can be. KNOB error with the nearest.
HR_MUST_CHECK hr_status lesson_show_knob(const hr_knobs *knobs, const char *key, hr_err *err);
void lesson_show_run(const hr_lesson_seen *seen);
void lesson_show_verdict(const hr_lesson_verdict *verdict);

#endif
