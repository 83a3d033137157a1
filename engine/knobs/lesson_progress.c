// SPDX-License-Identifier: Apache-2.0
// The file of progress: "NAME done hints runs turned", a line a lesson.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/lesson.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"

enum { PROGRESS_FILE_MAX = 64 * 1024, NAME_BYTES = 64 };

static bool read_line(const char *line, char name[NAME_BYTES], hr_lesson_progress *out)
{
    unsigned done = 0, hints = 0, runs = 0, turned = 0;
    const bool is = sscanf(line, "%63s %u %u %u %u", name, &done, &hints, &runs, &turned) == 5;
    *out = (hr_lesson_progress){.done = done == 1, .hints = hints, .runs = runs, .turned = turned};
    return is;
}

static char *read_all(const char *path)
{
    char *data = NULL;
    size_t bytes = 0;
    return file_read(path, PROGRESS_FILE_MAX, &data, &bytes, NULL) == HR_OK ? data : NULL;
}

void hr_lesson_progress_pass(hr_lesson_progress *progress, uint32_t turned)
{
    progress->turned = progress->done && progress->turned < turned ? progress->turned : turned;
    progress->done = true;
}

void hr_lesson_progress_read(const char *path, const char *name, hr_lesson_progress *out)
{
    char *all = read_all(path), *rest = NULL;
    *out = (hr_lesson_progress){.done = false};
    for (char *line = all == NULL ? NULL : strtok_r(all, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char of[NAME_BYTES];
        hr_lesson_progress one;
        if (read_line(line, of, &one) && strcmp(of, name) == 0) {
            *out = one;
        }
    }
    hr_free(all);
}

static void append_line(text *to, const char *name, const hr_lesson_progress *p)
{
    text_append(to, "%s %d %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", name, p->done, p->hints, p->runs,
                p->turned);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0 || errno != ENOENT;
}

static void write_all(const char *path, const text *content)
{
    file_writer *writer = NULL;
    if (!content->failed && hr_file_make_folders(path) && file_writer_open(path, &writer, NULL) == HR_OK) {
        if (file_writer_add(writer, content->data, content->length, NULL) == HR_OK) {
            (void)!file_writer_commit(writer, NULL);
        } else {
            file_writer_abandon(writer);
        }
    }
}

void hr_lesson_progress_write(const char *path, const char *name, const hr_lesson_progress *progress)
{
    char *all = read_all(path), *rest = NULL;
    text content = {0};
    if (all == NULL && is_there(path)) {
        return; // it would take what others did with it
    }
    for (char *line = all == NULL ? NULL : strtok_r(all, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char of[NAME_BYTES];
        hr_lesson_progress one;
        if (read_line(line, of, &one) && strcmp(of, name) != 0) {
            append_line(&content, of, &one);
        }
    }
    append_line(&content, name, progress);
    write_all(path, &content);
    text_deinit(&content);
    hr_free(all);
}
