// SPDX-License-Identifier: Apache-2.0
// Recipes by name.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "headroom/preset.h"
#include "headroom/words.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "knobs/search.h"

enum { NAME_MAX_BYTES = 64, KNOWN_TEXT = 256 };

static const char ending[] = ".lua";

typedef struct recipe_name {
    char text[NAME_MAX_BYTES];
} recipe_name;

typedef struct known {
    VEC(recipe_name) names;
    bool is_short; // host memory was: names are missing
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
    recipe_name *place = vec_push(&k->names);
    k->is_short = k->is_short || place == NULL;
    if (place != NULL) {
        (void)text_copy(place->text, sizeof place->text, name);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

// In alphabetical order.
static bool list_folder(const char *folder, void (*see)(const char *name, void *context), void *context)
{
    DIR *dir = opendir(folder);
    known found = {.is_short = false};
    if (dir == NULL) {
        return true;
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
    if (found.names.count > 0) {
        qsort(found.names.data, found.names.count, sizeof *found.names.data, by_name);
    }
    for (uint32_t k = 0; k < found.names.count; k++) {
        see(found.names.data[k].text, context);
    }
    vec_deinit(&found.names);
    return !found.is_short;
}

bool hr_recipe_list(void (*see)(const char *name, void *context), void *context)
{
    search_roots roots;
    bool whole = true;
    search_find_recipes(&roots);
    for (size_t k = 0; k < roots.count; k++) {
        whole = list_folder(roots.path[k], see, context) && whole;
    }
    return whole;
}

static hr_status refuse_of(const char *word, const known *have, const char **names, hr_err *err)
{
    char list[KNOWN_TEXT] = "";
    size_t length = 0;
    const uint32_t count = have->names.count;
    for (uint32_t k = 0; k < count; k++) {
        names[k] = have->names.data[k].text;
        if (length < sizeof list) {
            length +=
                (size_t)snprintf(list + length, sizeof list - length, "%s%s", k > 0 ? ", " : "", names[k]);
        }
    }
    const char *near = hr_word_nearest(word, names, count);
    (void)HR_FAIL(err, USAGE, "there is no recipe '%.64s'; %s%s", word,
                  count == 0 ? "no folder of recipes was found" : "there are ", list);
    hr_err_try(err, "headroom script %s", near != NULL ? near : count > 0 ? names[0] : "./FILE.lua");
    return HR_USAGE;
}

static hr_status refuse(const char *word, hr_err *err)
{
    known have = {.is_short = false};
    const bool whole = hr_recipe_list(keep_name, &have) && !have.is_short;
    const char **names = hr_calloc((size_t)have.names.count + 1, sizeof *names);
    const hr_status status = whole && names != NULL
                                 ? refuse_of(word, &have, names, err)
                                 : HR_FAIL(err, NOMEM, "no host memory for the names of recipes");
    hr_free(names);
    vec_deinit(&have.names);
    return status;
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
