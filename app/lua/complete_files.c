// SPDX-License-Identifier: Apache-2.0
// Files as candidates: names in a folder that the script may read, looked at by the rules of files.c.
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/lua/complete_offer.h"
#include "app/lua/script.h"

enum { ENTRIES_MAX = 4096 };

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static bool is_folder(const char *folder, const char *name)
{
    char path[2 * SCRIPT_PATH_MAX];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/%.256s", folder, name);
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void offer_entry(offering *o, const char *prefix, const char *folder, const char *name,
                        const char *ending)
{
    char text[2 * SCRIPT_PATH_MAX];
    const char after[2] = {o->close, '\0'};
    const bool is_dir = is_folder(folder, name);
    if (!is_dir && ending != NULL && !ends_with(name, ending)) {
        return;
    }
    const int length = snprintf(text, sizeof text, "%s%.256s%s", prefix, name, is_dir ? "/" : "");
    if (strpbrk(text, "\"'\\") == NULL) {
        offer(o, text, (size_t)length, is_dir ? "" : after);
    }
}

// Entries of `folder`; as a person types them they have `prefix` before them. Hidden ones are for who asks for them.
static void offer_folder(offering *o, const char *prefix, const char *folder, const char *ending)
{
    const size_t length = strlen(prefix);
    const bool hidden = o->word.length > length && o->word.at[length] == '.';
    unsigned seen = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL && seen < ENTRIES_MAX;
         seen++) {
        const bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!dots && (hidden || e->d_name[0] != '.')) {
            offer_entry(o, prefix, folder, e->d_name, ending);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

// What a recipe wrote has two names.
static void offer_written(offering *o, const char *ending)
{
    struct stat info;
    if (lstat("headroom-out", &info) == 0 && S_ISDIR(info.st_mode)) {
        offer_folder(o, "", "headroom-out", ending);
    }
}

void offer_files(offering *o, lua_State *L, const char *ending)
{
    char prefix[SCRIPT_PATH_MAX], folder[SCRIPT_PATH_MAX];
    size_t length = o->word.length;
    hr_err err = {0};
    if (!o->in_text || length >= SCRIPT_PATH_MAX ||
        (length > 0 && memchr(o->word.at, '\0', length) != NULL)) {
        return;
    }
    while (length > 0 && o->word.at[length - 1] != '/') {
        length--;
    }
    (void)snprintf(prefix, sizeof prefix, "%.*s", (int)length, length > 0 ? o->word.at : "");
    if (length == 0) {
        offer_folder(o, "", script_of(L)->folder, ending);
        offer_written(o, ending);
    } else if (script_readable_path(script_of(L), prefix, folder, &err) == HR_OK) {
        offer_folder(o, prefix, folder, ending);
    }
}

// "sizes" for sizes.lua, as require takes it.
void offer_modules(offering *o, lua_State *L)
{
    static const char ending[] = ".lua";
    unsigned seen = 0;
    DIR *dir = o->in_text ? opendir(script_of(L)->folder) : NULL;
    for (const struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL && seen < ENTRIES_MAX;
         seen++) {
        char name[sizeof e->d_name];
        (void)snprintf(name, sizeof name, "%s", e->d_name);
        if (name[0] != '.' && ends_with(name, ending)) {
            name[strlen(name) - (sizeof ending - 1)] = '\0';
            if (strchr(name, '.') == NULL) {
                offer_text(o, name);
            }
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}
