// SPDX-License-Identifier: Apache-2.0
// A preset: a model and a set of knobs, read from YAML, with `extends` resolved and every error of the file
// reported in one go.
#ifndef HEADROOM_PRESET_H
#define HEADROOM_PRESET_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

typedef struct hr_preset hr_preset;

// Where a value of a preset came from, for `config show --origin`.
typedef struct hr_origin {
    char file[HR_KNOB_TEXT_MAX]; // "" for the table's default
    unsigned line, column;       // 1-based; 0: none, as of another program's file
} hr_origin;

// Whether `word` is a path where a PRESET is asked for: it has a '/', ends in ".yaml", ".json", ".onnx", ".keras", ".gguf" or
// ".safetensors", or as a checkpoint or a pickle does, which is none and refused as that (".pth"), or is ".".
bool hr_preset_is_path(const char *word);

// Opens PRESET: a name is searched in $XDG_DATA_HOME/headroom/presets, $HEADROOM_DATA, beside the program
// (hr_preset_search_beside) and the install prefix, each with its `models/` and `articles/` folders; a path
// (hr_preset_is_path) may leave ".yaml" out. A path that ends in ".json", or is a folder with a config.json in it, is read as a
// Hugging Face config.json or as a model of Keras, by what is in it, one that ends in ".onnx", ".keras" or ".gguf" as such a file, and for one that ends
// in ".safetensors" the config.json beside it. Errors carry every problem of the file, one a line, as
// "file:line:column: sentence" with the source line and a caret: in *problems (caller frees with
// hr_preset_problems_free), and the first of them in *err.
HR_MUST_CHECK hr_status hr_preset_open(const char *preset, bool trust, hr_preset **out, char **problems,
                                       hr_err *err);
// The same, but what no layer computes of an ONNX file is an opaque layer of it, which can be planned alone.
HR_MUST_CHECK hr_status hr_preset_open_opaque(const char *preset, bool trust, hr_preset **out,
                                              char **problems, hr_err *err);
// A preset out of `words` instead of a file; `name` is what problems call it, and what its paths count from.
HR_MUST_CHECK hr_status hr_preset_open_text(const char *name, const char *words, bool trust, hr_preset **out,
                                            hr_err *err);
// Whether its model is right too: MODEL error with *problems and *err as above.
HR_MUST_CHECK hr_status hr_preset_check_model(const hr_preset *preset, char **problems, hr_err *err);
void hr_preset_problems_free(char *problems);
// What stands in a preset's place where the step is a recorded one (headroom/replay.h): a name, a path and knobs, and no
// model. Sessions and planners know the file by itself. NOMEM.
HR_MUST_CHECK hr_status hr_preset_of_trace(const char *path, const hr_knobs *knobs, hr_preset **out,
                                           hr_err *err);
bool hr_preset_is_trace(const hr_preset *preset);
void hr_preset_close(hr_preset *preset);

const char *hr_preset_name(const hr_preset *preset);
// What opens the same again, also from another process: the file's path ("" when it was no file), and whether it was
// trusted.
const char *hr_preset_path(const hr_preset *preset);
// What the file itself says of it, "" when nothing; not inherited. Borrowed until close.
const char *hr_preset_title(const hr_preset *preset);
const char *hr_preset_description(const hr_preset *preset);
// What a person who plans with it should know: what a reader of another program's file left out, for one.
const char *hr_preset_note(const hr_preset *preset);
// Of a preset that was read from another program's file: the keys title, description, note and model as a preset of our own has
// them, in YAML; NULL for others.
const char *hr_preset_imported(const hr_preset *preset);
bool hr_preset_trusts(const hr_preset *preset);
const hr_knobs *hr_preset_knobs(const hr_preset *preset);
const hr_origin *hr_preset_origin(const hr_preset *preset, hr_knob_id id);

// The folder of the running program, set once by main; presets are searched in `dir`/presets and above.
void hr_preset_search_beside(const char *dir);

// A recipe: a word with '/', ending in ".lua" or naming a file here is a path; else NAME.lua is searched in the folders
// `recipes` where presets are searched (of a checkout: scripts/recipes). USAGE error with the names there are.
enum { HR_RECIPE_PATH_MAX = 4096 };
HR_MUST_CHECK hr_status hr_recipe_find(const char *word, char path[HR_RECIPE_PATH_MAX], hr_err *err);
// Calls `see` with every name that can be found so, folder by folder. False: host memory was short, and names are missing.
bool hr_recipe_list(void (*see)(const char *name, void *context), void *context);

typedef struct hr_preset_entry {
    char name[64];
    char title[128]; // the `title:` line of the file
    char folder[16]; // "", "models", "articles", "cards"
} hr_preset_entry;
// Lists what can be opened by name, sorted; the caller frees *entries with hr_preset_list_free.
HR_MUST_CHECK hr_status hr_preset_list(const char *folder, hr_preset_entry **entries, size_t *count,
                                       hr_err *err);
void hr_preset_list_free(hr_preset_entry *entries);

#endif
