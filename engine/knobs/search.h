// SPDX-License-Identifier: Apache-2.0
// Where presets and cards are looked for by name.
#ifndef KNOBS_SEARCH_H
#define KNOBS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/preset.h"

enum { SEARCH_PATH_MAX = 4096, SEARCH_ROOTS_MAX = 8 };

// Folders that hold presets/*.yaml, models/, articles/ and cards/, in the order of the search. Only folders that
// exist are listed.
typedef struct search_roots {
    char path[SEARCH_ROOTS_MAX][SEARCH_PATH_MAX];
    size_t count;
} search_roots;

void search_find_roots(search_roots *roots);
// The same of recipes, and of lessons.
void search_find_recipes(search_roots *roots);
void search_find_lessons(search_roots *roots);

// A word with '/' or ending in ".yaml" is a path, everything else a name.
bool search_is_path(const char *preset);
// The same of a word that shall be a preset: a path too where it ends in ".json", or is the folder ".".
bool search_is_preset_path(const char *preset);
// "config.json" in a folder, for `path` to go on with; false where the folder has none, or it is no folder.
bool search_config_in(char path[SEARCH_PATH_MAX]);
// An absolute path, or one with a ".." in it: a file of strangers may not name one.
bool search_leaves_folder(const char *path);
// Whether `path`, links followed, lies below `folder`; true where nothing is there.
bool search_lies_below(const char *path, const char *folder);

// "root/folder/name.yaml" of the first file that exists; `folders` is one of the lists below. A name is one
// word: with '/' in it nothing is found.
bool search_in_root(const char *root, const char *const *folders, const char *name,
                    char path[SEARCH_PATH_MAX]);
bool search_by_name(const char *const *folders, const char *name, char path[SEARCH_PATH_MAX]);
extern const char *const search_preset_folders[]; // "", "models", "articles", NULL
extern const char *const search_card_folders[];   // "cards", NULL

// "…/cards/NAME.json" of the first that exists; "" and false without one.
bool search_card_properties(const char *name, char path[SEARCH_PATH_MAX]);

// The folder of a file ("." when it names none) and a path below it; false when it does not fit.
void search_folder_of(const char *path, char folder[SEARCH_PATH_MAX]);
bool search_join(const char *folder, const char *path, char joined[SEARCH_PATH_MAX]);

// "a, b, c" of what hr_preset_list finds in `folder` (NULL: all presets), those most like `name` first and ", …" where
// the rest has no room, only those that have it inside where there are some; and the name nearest to `name`, or that begins so, in near[64] ("": none).
// Case, blanks and dashes count for nothing.
HR_MUST_CHECK hr_status search_known(const char *folder, const char *name, char *names, size_t size,
                                     char near[64], hr_err *err);

#endif
