// SPDX-License-Identifier: Apache-2.0
// Recipes by name.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "headroom/preset.h"
#include "headroom/words.h"

#include "base/text.h"
#include "knobs/search.h"

enum { NAME_MAX_BYTES = 64, NAMES_MAX = 64, KNOWN_TEXT = 256 };

static const char ending[] = ".lua";

typedef struct known {
    char name[NAMES_MAX][NAME_MAX_BYTES];
    size_t count;
} known;

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool is_recipe(const char *leaf)
{
    const size_t length = strlen(leaf), tail = sizeof ending - 1;
    return length > tail && length - tail < NAME_MAX_BYTES && strcmp(leaf + length - tail, ending) == 0;
}

static void keep_name(const char *name, void *context)
{
    known *k = context;
    if (k->count < NAMES_MAX) {
        text_copy(k->name[k->count++], NAME_MAX_BYTES, name);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

// In alphabetical order.
static void list_folder(const char *folder, void (*see)(const char *name, void *context), void *context)
{
    DIR *dir = opendir(folder);
    known found = {.count = 0};
    if (dir == NULL) {
        return;
    }
    for (struct dirent *leaf = readdir(dir); leaf != NULL; leaf = readdir(dir)) {
        char name[NAME_MAX_BYTES];
        if (is_recipe(leaf->d_name)) {
            (void)snprintf(name, sizeof name, "%.*s", (int)(strlen(leaf->d_name) - (sizeof ending - 1)),
                           leaf->d_name);
            keep_name(name, &found);
        }
    }
    closedir(dir);
    qsort(found.name, found.count, sizeof found.name[0], by_name);
    for (size_t k = 0; k < found.count; k++) {
        see(found.name[k], context);
    }
}

void hr_recipe_list(void (*see)(const char *name, void *context), void *context)
{
    search_roots roots;
    search_find_recipes(&roots);
    for (size_t k = 0; k < roots.count; k++) {
        list_folder(roots.path[k], see, context);
    }
}

static hr_status refuse(const char *word, hr_err *err)
{
    known have = {.count = 0};
    const char *names[NAMES_MAX];
    char list[KNOWN_TEXT] = "";
    size_t length = 0;
    hr_recipe_list(keep_name, &have);
    for (size_t k = 0; k < have.count; k++) {
        names[k] = have.name[k];
        if (length < sizeof list) {
            length +=
                (size_t)snprintf(list + length, sizeof list - length, "%s%s", k > 0 ? ", " : "", names[k]);
        }
    }
    const char *near = hr_word_nearest(word, names, have.count);
    (void)HR_FAIL(err, USAGE, "there is no recipe '%.64s'; %s%s", word,
                  have.count == 0 ? "no folder of recipes was found" : "there are ", list);
    hr_err_try(err, "headroom script %s", near != NULL ? near : have.count > 0 ? names[0] : "./FILE.lua");
    return HR_USAGE;
}

hr_status hr_recipe_find(const char *word, char path[HR_RECIPE_PATH_MAX], hr_err *err)
{
    search_roots roots;
    char leaf[NAME_MAX_BYTES + sizeof ending];
    if (strchr(word, '/') != NULL || is_recipe(word) || is_file(word)) {
        return text_copy(path, HR_RECIPE_PATH_MAX, word)
                   ? HR_OK
                   : HR_FAIL(err, READ, "%.64s…: the path is too long", word);
    }
    search_find_recipes(&roots);
    (void)snprintf(leaf, sizeof leaf, "%.*s%s", NAME_MAX_BYTES - 1, word, ending);
    for (size_t k = 0; k < roots.count; k++) {
        if (search_join(roots.path[k], leaf, path) && is_file(path)) {
            return HR_OK;
        }
    }
    return refuse(word, err);
}
