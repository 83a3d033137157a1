// SPDX-License-Identifier: Apache-2.0
// Lessons by name.
#ifndef KNOBS_LESSON_FIND_H
#define KNOBS_LESSON_FIND_H

#include "headroom/lesson.h"

#include "base/vec.h"
#include "knobs/search.h"

enum { LESSON_NAME_MAX = 64 };

typedef struct found_lesson {
    char name[LESSON_NAME_MAX];
    char path[SEARCH_PATH_MAX];
} found_lesson;

typedef VEC(found_lesson) found_lessons;

// All that have a lesson.yaml, by name; the caller deinits the array, also on failure. NOMEM.
HR_MUST_CHECK hr_status lesson_find_all(found_lessons *all, hr_err *err);
// The lesson.yaml that `word` means (hr_lesson_open). USAGE error with the nearest name.
HR_MUST_CHECK hr_status lesson_find(const char *word, char path[SEARCH_PATH_MAX], hr_err *err);
// The name of its folder, cut to fit.
void lesson_name_of(const char *path, char *name, size_t size);

#endif
