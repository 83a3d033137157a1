// SPDX-License-Identifier: Apache-2.0
// What the parts of `headroom lesson` share.
#ifndef APP_CLI_LESSON_H
#define APP_CLI_LESSON_H

#include <stdbool.h>

#include "headroom/lesson.h"

// Calls `see` with the name of every lesson.
void lessons_list_names(void (*see)(const char *name, void *context), void *context);
// Opens one; what is wrong with its file goes to stderr line by line, the first of it is *err.
HR_MUST_CHECK hr_status lesson_open(const char *word, hr_lesson **out, hr_err *err);

// Does the lesson at the terminal, or with commands that come on stdin. *passed: its goals were reached in
// this session. *next: its learner wants the one behind it.
HR_MUST_CHECK hr_status lesson_talk(const hr_lesson *lesson, bool *passed, bool *next, hr_err *err);
// Proves what a lesson promises, one line; below it what it does not keep. *kept: all of it.
HR_MUST_CHECK hr_status lesson_verify(const hr_lesson *lesson, bool *kept, hr_err *err);
// As a chapter of the book.
HR_MUST_CHECK hr_status lesson_print_chapter(const hr_lesson *lesson, hr_err *err);

#endif
