// SPDX-License-Identifier: Apache-2.0
// What lessons there are, and what of them was done.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/screens/learn/learn.h"

void learn_remember(learn_state *s, const char *path)
{
    s->lessons_path[0] = '\0';
    if (path != NULL && strlen(path) < sizeof s->lessons_path) {
        (void)snprintf(s->lessons_path, sizeof s->lessons_path, "%s", path);
    }
}

hr_status lessons_read(learn_state *s, hr_err *err)
{
    HR_TRY(hr_lesson_list(&s->lessons, &s->lesson_count, err));
    s->progress = calloc(s->lesson_count + 1, sizeof *s->progress);
    if (s->progress == NULL) {
        lessons_free(s);
        return HR_FAIL(err, NOMEM, "no host memory for the list of lessons");
    }
    for (size_t k = 0; k < s->lesson_count && s->lessons_path[0] != '\0'; k++) {
        hr_lesson_progress_read(s->lessons_path, s->lessons[k].name, &s->progress[k]);
    }
    return HR_OK;
}

void lessons_free(learn_state *s)
{
    hr_lesson_list_free(s->lessons);
    free(s->progress);
    s->lessons = NULL;
    s->progress = NULL;
    s->lesson_count = 0;
}

void lessons_note(learn_state *s)
{
    const char *name = hr_lesson_tell(s->lesson.open)->name;
    if (s->lessons_path[0] != '\0') {
        hr_lesson_progress_write(s->lessons_path, name, &s->lesson.progress);
    }
    for (size_t k = 0; k < s->lesson_count; k++) {
        if (strcmp(s->lessons[k].name, name) == 0) {
            s->progress[k] = s->lesson.progress;
        }
    }
}
