// SPDX-License-Identifier: Apache-2.0
// What there is to learn.
#include "headroom/lesson.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "knobs/lesson_find.h"

hr_status hr_lesson_list(hr_lesson_entry **entries, size_t *count, hr_err *err)
{
    found_lessons all = {0};
    *entries = NULL;
    *count = 0;
    hr_status status = lesson_find_all(&all, err);
    if (status == HR_OK && all.count > 0) {
        *entries = hr_calloc(all.count, sizeof **entries);
        status = *entries == NULL ? HR_FAIL(err, NOMEM, "no host memory for the list of lessons") : HR_OK;
    }
    for (uint32_t k = 0; k < all.count && status == HR_OK; k++) {
        hr_lesson *lesson = NULL;
        hr_lesson_entry *entry = &(*entries)[(*count)++];
        text_copy(entry->name, sizeof entry->name, all.data[k].name);
        if (hr_lesson_open(all.data[k].path, &lesson, NULL, NULL) == HR_OK) {
            text_copy(entry->title, sizeof entry->title, hr_lesson_tell(lesson)->title);
            text_copy(entry->line, sizeof entry->line, hr_lesson_tell(lesson)->line);
            hr_lesson_close(lesson);
        }
    }
    vec_deinit(&all);
    return status;
}

void hr_lesson_list_free(hr_lesson_entry *entries)
{
    hr_free(entries);
}
