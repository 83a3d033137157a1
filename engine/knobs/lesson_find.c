// SPDX-License-Identifier: Apache-2.0
#include "knobs/lesson_find.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool lesson_in(const char *folder, const char *name, char path[SEARCH_PATH_MAX])
{
    char below[SEARCH_PATH_MAX];
    const int length = snprintf(below, sizeof below, "%s/lesson.yaml", name);
    return length > 0 && (size_t)length < sizeof below && search_join(folder, below, path) && is_file(path);
}

static bool has(const found_lessons *all, const char *name)
{
    for (uint32_t k = 0; k < all->count; k++) {
        if (strcmp(all->data[k].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// One of a name in an earlier folder hides it.
static bool add(found_lessons *all, const char *folder, const char *name)
{
    char path[SEARCH_PATH_MAX];
    if (name[0] == '.' || strlen(name) >= LESSON_NAME_MAX || has(all, name) ||
        !lesson_in(folder, name, path)) {
        return true;
    }
    found_lesson *one = vec_push(all);
    if (one != NULL) {
        text_copy(one->name, sizeof one->name, name);
        text_copy(one->path, sizeof one->path, path);
    }
    return one != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const found_lesson *)a)->name, ((const found_lesson *)b)->name);
}

hr_status lesson_find_all(found_lessons *all, hr_err *err)
{
    search_roots roots;
    bool stored = true;
    search_find_lessons(&roots);
    for (size_t k = 0; k < roots.count; k++) {
        DIR *dir = opendir(roots.path[k]);
        for (struct dirent *leaf = dir == NULL ? NULL : readdir(dir); leaf != NULL && stored;
             leaf = readdir(dir)) {
            stored = add(all, roots.path[k], leaf->d_name);
        }
        if (dir != NULL) {
            closedir(dir);
        }
    }
    if (!stored) {
        return HR_FAIL(err, NOMEM, "no host memory for the list of lessons");
    }
    if (all->count > 1) {
        qsort(all->data, all->count, sizeof *all->data, by_name);
    }
    return HR_OK;
}

// "05-batch-size" is also 5, 05 and batch-size.
static bool is_called(const char *name, const char *word)
{
    const size_t digits = strspn(name, "0123456789");
    int64_t number = 0, asked = -1;
    char head[LESSON_NAME_MAX];
    (void)snprintf(head, sizeof head, "%.*s", (int)digits, name);
    return strcmp(name, word) == 0 || (name[digits] == '-' && strcmp(name + digits + 1, word) == 0) ||
           (text_to_int(word, &asked) && text_to_int(head, &number) && asked == number);
}

static hr_status refuse(const char *word, const found_lessons *all, hr_err *err)
{
    enum { NAMES_MAX = 128 };
    const char *names[2 * NAMES_MAX];
    size_t count = 0;
    for (uint32_t k = 0; k < all->count && count + 2 <= 2 * NAMES_MAX; k++) {
        const char *name = all->data[k].name;
        const size_t digits = strspn(name, "0123456789");
        names[count++] = name;
        names[count++] = name[digits] == '-' ? name + digits + 1 : name;
    }
    const char *near = text_nearest(word, names, count);
    (void)HR_FAIL(err, USAGE, "there is no lesson '%.64s'%s%s%s", word,
                  near == NULL ? "" : " — did you mean '", near == NULL ? "" : near,
                  near == NULL ? "" : "'?");
    hr_err_try(err, "headroom lesson%s%s", near == NULL ? "" : " ", near == NULL ? "" : near);
    return HR_USAGE;
}

static hr_status find_path(const char *word, char path[SEARCH_PATH_MAX], hr_err *err)
{
    if (is_file(word) ? text_copy(path, SEARCH_PATH_MAX, word) : lesson_in(word, ".", path)) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(err, READ, "%.200s: there is no lesson.yaml", word);
    hr_err_try(err, "headroom lesson");
    return status;
}

hr_status lesson_find(const char *word, char path[SEARCH_PATH_MAX], hr_err *err)
{
    found_lessons all = {0};
    bool found = false;
    if (strchr(word, '/') != NULL) {
        return find_path(word, path, err);
    }
    hr_status status = lesson_find_all(&all, err);
    for (uint32_t k = 0; k < all.count && status == HR_OK && !found; k++) {
        found = is_called(all.data[k].name, word) && text_copy(path, SEARCH_PATH_MAX, all.data[k].path);
    }
    if (status == HR_OK && !found) {
        status = refuse(word, &all, err);
    }
    vec_deinit(&all);
    return status;
}

void lesson_name_of(const char *path, char *name, size_t size)
{
    char folder[SEARCH_PATH_MAX], whole[PATH_MAX];
    search_folder_of(path, folder);
    const char *at = realpath(folder, whole) == NULL ? folder : whole; // "." and ".." have names, too
    const char *slash = strrchr(at, '/');
    text_copy(name, size, slash == NULL ? at : slash + 1);
}
