// SPDX-License-Identifier: Apache-2.0
// The inside of a lesson, shared by its reader and its judge.
#ifndef KNOBS_LESSON_H
#define KNOBS_LESSON_H

#include "headroom/lesson.h"

#include "base/host_mem.h"

struct hr_lesson {
    hr_lesson_about about;
    arena memory; // all that about points to
    hr_preset *preset;
    hr_knobs start; // the preset's with `knobs`
};

hr_lesson_value lesson_real(hr_lesson_kind kind, double number); // unknown where it is not finite
hr_lesson_value lesson_word(const char *word);                   // unknown where it is ""
// What a run says under this path, which names no run. `seen` NULL: unknown. False: there is no such path.
bool lesson_read_path(const hr_lesson_seen *seen, const char *path, hr_lesson_value *out);

// Whether a text is a condition (or an expression) over runs of these names: KNOB and PRESET errors as hr_lesson_holds has them.
HR_MUST_CHECK hr_status lesson_check_condition(const char *condition, const char *const *runs, uint32_t count,
                                               hr_err *err);
HR_MUST_CHECK hr_status lesson_check_expression(const char *expression, const char *const *runs,
                                                uint32_t count, hr_err *err);
// The same of every {…} of a page.
HR_MUST_CHECK hr_status lesson_check_page(const char *page, const char *const *runs, uint32_t count,
                                          hr_err *err);

#endif
