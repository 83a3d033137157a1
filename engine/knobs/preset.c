// SPDX-License-Identifier: Apache-2.0
// Presets: a file, what it extends, and the model it names, read from the base to the derived, each value with
// the place it came from. Problems go to the file they stand in and are collected at the end, so that one run
// shows them all.
#include "headroom/preset.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/words.h"

#include "base/file_name.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "knobs/preset_import.h"
#include "knobs/preset_keys.h"
#include "knobs/preset_model.h"
#include "knobs/preset_value.h"
#include "knobs/search.h"

enum { PRESET_MAX_DEPTH = 8, PRESET_MAX_FILES = 16 };

struct hr_preset {
    struct hr_preset *self; // a holder has it const
    atomic_uint holders;    // hr_preset_close ends one
    char name[64];
    char path[SEARCH_PATH_MAX]; // of the file that was asked for; "": it was no file
    char *imported;             // what that file is as a preset's model, where it is none of ours; owned
    bool trusts;
    bool is_trace; // there is no model
    hr_knobs knobs;
    hr_origin origin[HR_KNOB_COUNT];
    VEC(yaml_file *) files; // owned; the first is the one that was asked for
    const yaml_node *model; // in model_file
    yaml_file *model_file;
    VEC(preset_widths) widths; // of that model
};

// One file on the way from the one that was asked for down to a base.
typedef struct visit {
    const struct visit *parent;
    yaml_file *file;
    const char *path;
    dev_t device;
    ino_t inode;
    unsigned depth;
} visit;

typedef struct loader {
    hr_preset *preset;
    bool trust, lets_pass;
    hr_err *err;
} loader;

// WHOLE takes knobs and model, MODEL_ONLY what `model: NAME` asks for.
typedef enum extent { WHOLE, MODEL_ONLY } extent;

static hr_status load(loader *l, const char *path, const visit *parent, const yaml_node *at, extent wanted);

// ---- from a name to a path --------------------------------------------------------------------------------

// A path may leave ".yaml" out, or be the folder of a config.json.
static bool complete_path(char path[SEARCH_PATH_MAX])
{
    struct stat info;
    size_t length = strlen(path);
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
        return true;
    }
    if (length + sizeof ".yaml" > SEARCH_PATH_MAX) {
        return false;
    }
    memcpy(path + length, ".yaml", sizeof ".yaml");
    bool found = stat(path, &info) == 0;
    if (!found) {
        path[length] = '\0';
    }
    return found || search_config_in(path);
}

// Beside the file or, for a name, in the folders of presets. *leaves: it is beside the file, and a link out of its folder.
static bool find_from(const char *from_path, const char *word, char path[SEARCH_PATH_MAX], bool *leaves)
{
    char folder[SEARCH_PATH_MAX];
    search_folder_of(from_path, folder);
    const bool is_path = search_is_preset_path(word);
    const bool beside = is_path ? search_join(folder, word, path) && complete_path(path)
                                : search_in_root(folder, search_preset_folders, word, path);
    *leaves = beside && !search_lies_below(path, folder);
    if (!is_path && (!beside || *leaves)) {
        char known[SEARCH_PATH_MAX];
        const bool by_name = search_by_name(search_preset_folders, word, known);
        *leaves = *leaves && !by_name;
        return by_name ? text_copy(path, SEARCH_PATH_MAX, known) : beside;
    }
    return beside;
}

// Finds what `extends:` or `model:` names, or says why not. *found tells which.
static hr_status resolve(loader *l, const visit *here, const yaml_node *node, char path[SEARCH_PATH_MAX],
                         bool *found)
{
    char known[256], near[64];
    bool leaves = false;
    *found = false;
    if (node->kind != YAML_SCALAR || node->text[0] == '\0') {
        yaml_problem(here->file, node->line, node->column, "'%s' needs the name of a preset", node->key);
    } else if (search_leaves_folder(node->text) && !l->trust) {
        yaml_problem(here->file, node->line, node->column,
                     "'%s' leaves the folder of this file: needs --trust", node->text);
    } else if (!find_from(here->path, node->text, path, &leaves)) {
        HR_TRY(search_known(NULL, node->text, known, sizeof known, near, l->err));
        yaml_problem(here->file, node->line, node->column, "no preset '%s' beside this file or by name%s%s%s",
                     node->text, near[0] == '\0' ? "" : " — did you mean '", near,
                     near[0] == '\0' ? "" : "'?");
    } else if (leaves && !l->trust) {
        yaml_problem(here->file, node->line, node->column,
                     "'%s' is a link that leaves the folder of this file: needs --trust", node->text);
    } else {
        *found = true;
    }
    return HR_OK;
}

// ---- knobs ------------------------------------------------------------------------------------------------

static hr_status take_value(loader *l, const visit *here, const hr_knob_row *row, const yaml_node *node)
{
    const preset_values to = {.knobs = &l->preset->knobs, .origin = l->preset->origin, .trust = l->trust};
    return preset_take_value(&to, &(preset_place){here->file, here->path}, row, node, l->err);
}

static hr_status take_group(loader *l, const visit *here, const yaml_node *group)
{
    if (group->kind != YAML_MAPPING) {
        preset_report_bare_group(here->file, group);
        return HR_OK;
    }
    for (const yaml_node *node = group->child; node != NULL; node = node->next) {
        const hr_knob_row *row = preset_find_row(group->key, node->key);
        if (row == NULL) {
            preset_report_unknown(here->file, group->key, node);
        } else {
            HR_TRY(take_value(l, here, row, node));
        }
    }
    return HR_OK;
}

static hr_status take_knobs(loader *l, const visit *here, const yaml_node *root)
{
    for (const yaml_node *node = root->child; node != NULL; node = node->next) {
        if (strcmp(node->key, "model") == 0 || strcmp(node->key, "widths") == 0) {
            continue; // taken before
        }
        if (preset_is_group(node->key)) {
            HR_TRY(take_group(l, here, node));
        } else if (!preset_is_word(node->key)) {
            preset_report_unknown(here->file, NULL, node);
        } else if (node->kind != YAML_SCALAR && strcmp(node->key, "extends") != 0) {
            yaml_problem(here->file, node->line, node->column, "'%s' needs a text", node->key);
        }
    }
    return HR_OK;
}

// ---- files ------------------------------------------------------------------------------------------------

static hr_status take_extends(loader *l, const visit *here, const yaml_node *root, extent wanted)
{
    char path[SEARCH_PATH_MAX];
    bool found;
    const yaml_node *node = yaml_find(root, "extends");
    if (node == NULL) {
        return HR_OK;
    }
    HR_TRY(resolve(l, here, node, path, &found));
    return found ? load(l, path, here, node, wanted) : HR_OK;
}

static size_t problem_count(const hr_preset *preset)
{
    size_t count = 0;
    for (uint32_t i = 0; i < preset->files.count; i++) {
        count += yaml_problem_count(preset->files.data[i]);
    }
    return count;
}

// ---- the model and its sizes ------------------------------------------------------------------------------

// `sizes: {sequence: 4096}`, or sizes of a known model that differ: each is the value of its knob.
static hr_status take_sizes(loader *l, const visit *here, const yaml_node *sizes, bool beside_like)
{
    if (sizes->kind != YAML_MAPPING) {
        yaml_problem(here->file, sizes->line, sizes->column,
                     "sizes is a mapping such as {sequence: 512, depth: 12}");
        return HR_OK;
    }
    for (const yaml_node *node = sizes->child; node != NULL; node = node->next) {
        const hr_knob_row *row = preset_find_row("model", node->key);
        if (row != NULL) {
            HR_TRY(take_value(l, here, row, node));
        } else if (!beside_like || strcmp(node->key, "like") != 0) {
            preset_report_unknown(here->file, "model", node);
        }
    }
    return HR_OK;
}

static void forget_sizes(hr_preset *preset)
{
    hr_knobs defaults;
    hr_knobs_init(&defaults);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (hr_knob_is_size((hr_knob_id)id)) {
            preset->knobs.value[id] = defaults.value[id];
            preset->origin[id] = (hr_origin){.line = 0};
        }
    }
}

static hr_status take_layers(loader *l, const visit *here, const yaml_node *model)
{
    const yaml_node *sizes = yaml_find(model, "sizes");
    l->preset->model = model;
    l->preset->model_file = here->file;
    l->preset->widths.count = 0;
    forget_sizes(l->preset);
    return sizes == NULL ? HR_OK : take_sizes(l, here, sizes, false);
}

static hr_status take_named_model(loader *l, const visit *here, const yaml_node *node)
{
    char path[SEARCH_PATH_MAX];
    bool found;
    l->preset->model = NULL;
    HR_TRY(resolve(l, here, node, path, &found));
    if (!found) {
        return HR_OK;
    }
    HR_TRY(load(l, path, here, node, MODEL_ONLY));
    if (l->preset->model == NULL && problem_count(l->preset) == 0) {
        yaml_problem(here->file, node->line, node->column, "preset '%s' has no model", node->text);
    }
    return HR_OK;
}

// `model: {like: gpt2_124m, sequence: 512}`, and without `like` the sizes of the model that `extends` brings.
static bool names_sizes_only(const yaml_node *node)
{
    bool sizes = false;
    for (const yaml_node *child = node->kind == YAML_MAPPING ? node->child : NULL; child != NULL;
         child = child->next) {
        sizes = sizes || strcmp(child->key, "like") == 0 || preset_find_row("model", child->key) != NULL;
    }
    return sizes && yaml_find(node, "layers") == NULL;
}

static hr_status take_model(loader *l, const visit *here, const yaml_node *root)
{
    const yaml_node *node = yaml_find(root, "model");
    if (node == NULL) {
        return HR_OK;
    }
    if (names_sizes_only(node)) {
        const yaml_node *like = yaml_find(node, "like");
        HR_TRY(like == NULL ? HR_OK : take_named_model(l, here, like));
        return take_sizes(l, here, node, true);
    }
    return node->kind == YAML_MAPPING ? take_layers(l, here, node) : take_named_model(l, here, node);
}

// ---- widths of its layers ---------------------------------------------------------------------------------

// What the layers are called, and how wide they may be, the model knows.
static hr_status take_widths(loader *l, const visit *here, const yaml_node *root)
{
    int64_t width = 0;
    const yaml_node *node = yaml_find(root, "widths");
    if (node == NULL) {
        return HR_OK;
    }
    if (node->kind != YAML_MAPPING) {
        yaml_problem(here->file, node->line, node->column,
                     "widths is a mapping of layers such as {conv1: 16, dense: 32}");
        return HR_OK;
    }
    for (const yaml_node *one = node->child; one != NULL; one = one->next) {
        if (one->kind != YAML_SCALAR || one->quoted || !text_to_int(one->text, &width)) {
            yaml_problem(here->file, one->line, one->column, "the width of '%s' needs a whole number",
                         one->key);
        }
    }
    preset_widths *to = vec_push(&l->preset->widths);
    if (to == NULL) {
        return HR_FAIL(l->err, NOMEM, "%s: no memory for its widths", here->path);
    }
    *to = (preset_widths){node, here->file};
    return HR_OK;
}

// ---- what a file says -------------------------------------------------------------------------------------

// False, with the problem reported, when this file is already open above, or the way to it is too long.
static bool may_visit(const loader *l, const visit *here, const yaml_node *at)
{
    for (const visit *up = here->parent; up != NULL; up = up->parent) {
        if (up->device == here->device && up->inode == here->inode) {
            yaml_problem(here->parent->file, at->line, at->column,
                         "'%s: %s' leads back to this preset itself", at->key, at->text);
            return false;
        }
    }
    if (here->depth > PRESET_MAX_DEPTH || l->preset->files.count >= PRESET_MAX_FILES) {
        yaml_problem(here->parent->file, at->line, at->column,
                     "'%s: %s' goes on for more than %d presets one behind the other, or %d in all", at->key,
                     at->text, PRESET_MAX_DEPTH, PRESET_MAX_FILES);
        return false;
    }
    return true;
}

// ---- another program's file -------------------------------------------------------------------------------

// "Qwen3-8B" of Qwen3-8B/config.json, which all such files are called, and of weights there; "mine" of mine.json,
// "Qwen3-0.6B-Q8_0" of Qwen3-0.6B-Q8_0.gguf.
static void import_name(const char *path, char name[64])
{
    char whole[PATH_MAX], folder[SEARCH_PATH_MAX];
    const char *leaf = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    const hr_file_kind kind = file_kind_named(path);
    const size_t length = kind == HR_FILE_GGUF ? strlen(leaf) - strlen(".gguf") : strcspn(leaf, ".");
    (void)snprintf(name, 64, "%.*s", (int)length, leaf);
    search_folder_of(path, folder);
    if ((kind == HR_FILE_CONFIG || kind == HR_FILE_SAFETENSORS) && realpath(folder, whole) != NULL &&
        strrchr(whole, '/')[1] != '\0') {
        (void)text_copy(name, 64, strrchr(whole, '/') + 1);
    }
}

static hr_status open_text_of(loader *l, visit *here, text *model, const text *knobs, hr_err *err)
{
    char called[SEARCH_PATH_MAX + 16];
    const size_t length = model->length;
    (void)snprintf(called, sizeof called, "%s as a preset", here->path);
    text_append_bytes(model, knobs->data, knobs->length);
    if (model->failed) {
        return HR_FAIL(err, NOMEM, "%s: no memory to keep it", here->path);
    }
    HR_TRY(yaml_open_text(called, model->data, model->length, &here->file, err));
    if (here->parent == NULL) {
        l->preset->imported = text_take(model);
        l->preset->imported[length] = '\0';
    }
    return HR_OK;
}

static hr_status open_import(loader *l, visit *here, hr_err *err)
{
    text model = {0}, knobs = {0};
    char name[64];
    import_name(here->path, name);
    hr_status status = preset_import(here->path, name, l->lets_pass, &model, &knobs, err);
    status = status == HR_OK ? open_text_of(l, here, &model, &knobs, err) : status;
    text_deinit(&model);
    text_deinit(&knobs);
    return status;
}

static hr_status open_file(loader *l, visit *here, const yaml_node *at)
{
    hr_err reason = {0};
    hr_status status = file_kind_is_import(file_kind_named(here->path))
                           ? open_import(l, here, &reason)
                           : yaml_open(here->path, &here->file, &reason);
    if ((status == HR_READ || status == HR_PRESET) && here->parent != NULL) {
        yaml_problem(here->parent->file, at->line, at->column, "%s", reason.sentence);
        return HR_OK;
    }
    if (status != HR_OK) {
        if (l->err != NULL) {
            *l->err = reason;
        }
        return status;
    }
    yaml_file **kept = vec_push(&l->preset->files);
    if (kept == NULL) {
        yaml_close(here->file);
        return HR_FAIL(l->err, NOMEM, "%s: no memory to keep it", here->path);
    }
    *kept = here->file;
    return HR_OK;
}

// What the open file of `here` says.
static hr_status take_file(loader *l, visit *here, extent wanted)
{
    const yaml_node *root = here->file == NULL ? NULL : yaml_root(here->file);
    if (root == NULL || root->kind != YAML_MAPPING) {
        if (here->file != NULL && yaml_problem_count(here->file) == 0) {
            yaml_problem(here->file, 1, 1, "a preset begins with keys, such as 'model:' or 'extends:'");
        }
        return HR_OK;
    }
    HR_TRY(take_extends(l, here, root, wanted));
    HR_TRY(take_model(l, here, root));
    HR_TRY(take_widths(l, here, root));
    return wanted == WHOLE ? take_knobs(l, here, root) : HR_OK;
}

static hr_status load(loader *l, const char *path, const visit *parent, const yaml_node *at, extent wanted)
{
    visit here = {.parent = parent, .path = path, .depth = parent == NULL ? 1 : parent->depth + 1};
    struct stat info;
    if (stat(path, &info) == 0) {
        here.device = info.st_dev;
        here.inode = info.st_ino;
    }
    if (!may_visit(l, &here, at)) {
        return HR_OK;
    }
    HR_TRY(open_file(l, &here, at));
    return take_file(l, &here, wanted);
}

static hr_status load_text(loader *l, const char *name, const char *words)
{
    visit here = {.path = name, .depth = 1};
    HR_TRY(yaml_open_text(name, words, strlen(words), &here.file, l->err));
    yaml_file **kept = vec_push(&l->preset->files);
    if (kept == NULL) {
        yaml_close(here.file);
        return HR_FAIL(l->err, NOMEM, "%s: no memory to keep it", name);
    }
    *kept = here.file;
    return take_file(l, &here, WHOLE);
}

// ---- the preset -------------------------------------------------------------------------------------------

static bool is_collected(const hr_preset *preset, uint32_t file)
{
    for (uint32_t i = 0; i < file; i++) {
        if (strcmp(yaml_name(preset->files.data[i]), yaml_name(preset->files.data[file])) == 0) {
            return true;
        }
    }
    return false;
}

static void append_problems(text *all, const yaml_file *file)
{
    char *one = yaml_problems_text(file);
    all->failed = all->failed || one == NULL;
    text_append(all, "%s", one == NULL ? "" : one);
    hr_free(one);
}

// The problems of all files as one text, and the first as the error.
static hr_status collect(const hr_preset *preset, char **problems, hr_err *err)
{
    text all = {0};
    hr_status status = HR_OK;
    for (uint32_t i = 0; i < preset->files.count && status != HR_NOMEM; i++) {
        hr_err reason;
        hr_status found = yaml_status(preset->files.data[i], &reason);
        if (found == HR_OK || is_collected(preset, i)) {
            continue;
        }
        if (err != NULL && (status == HR_OK || found == HR_NOMEM)) {
            *err = reason;
        }
        status = found;
        append_problems(&all, preset->files.data[i]);
    }
    if (status == HR_OK || status == HR_NOMEM || problems == NULL) {
        text_deinit(&all);
        return status;
    }
    *problems = text_take(&all);
    return *problems == NULL ? HR_FAIL(err, NOMEM, "no memory to list the problems of the preset") : status;
}

// A file is named with its ending: a name alone is one of ours. How to name the one that lies here; "": there is none.
static const char *ending_here(const char *name)
{
    static const char *const endings[] = {".yaml", ".onnx", ".keras", ".gguf", "/config.json"};
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        char path[SEARCH_PATH_MAX];
        const int length = snprintf(path, sizeof path, "%s%s", name, endings[k]);
        if (length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0) {
            return endings[k];
        }
    }
    return "";
}

static hr_status refuse_folder(const char *path, hr_err *err)
{
    hr_status status = HR_FAIL(
        err, READ, "%.300s: needed a preset, or a folder with a config.json, had a folder without one", path);
    hr_err_try(err, "ls '%.300s', or headroom presets", path);
    return status;
}

static hr_status find_preset(const char *preset, char path[SEARCH_PATH_MAX], hr_err *err)
{
    char known[160], near[64];
    if (search_is_preset_path(preset)) {
        if (!text_copy(path, SEARCH_PATH_MAX, preset)) {
            return HR_FAIL(err, READ, "%.64s…: the path is too long", preset);
        }
        struct stat info;
        const bool found = complete_path(path); // reading says what is wrong when there is no such file
        return !found && stat(path, &info) == 0 ? refuse_folder(path, err) : HR_OK;
    }
    if (search_by_name(search_preset_folders, preset, path)) {
        return HR_OK;
    }
    HR_TRY(search_known(NULL, preset, known, sizeof known, near, err));
    hr_status status = HR_FAIL(err, PRESET, "no preset is called '%.64s'; %s%s", preset,
                               known[0] == '\0' ? "no folder of presets was found" : "there are ", known);
    if (ending_here(preset)[0] != '\0') {
        hr_err_try(err, "headroom plan ./%.64s%s", preset, ending_here(preset));
    } else {
        hr_err_try(err, near[0] == '\0' ? "headroom presets" : "headroom plan %s", near);
    }
    return status;
}

static void set_name(hr_preset *preset, const char *path)
{
    if (file_kind_is_import(file_kind_named(path))) {
        import_name(path, preset->name);
        (void)hr_plain_text(preset->name, "");
        return;
    }
    const char *slash = strrchr(path, '/');
    const char *leaf = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(leaf, '.');
    int length = dot == NULL || dot == leaf ? (int)strlen(leaf) : (int)(dot - leaf);
    snprintf(preset->name, sizeof preset->name, "%.*s", length, leaf);
    (void)hr_plain_text(preset->name, ""); // it is shown, and told to other processes
}

// Reads from `path`, or `words` where that is not NULL.
static hr_status open_preset(loader *l, const char *path, const char *words, char **problems, hr_preset **out)
{
    hr_preset *preset = hr_calloc(1, sizeof *preset);
    if (preset == NULL) {
        return HR_FAIL(l->err, NOMEM, "%s: no memory for the preset", path);
    }
    l->preset = preset->self = preset;
    atomic_init(&preset->holders, 1);
    hr_knobs_init(&preset->knobs);
    set_name(preset, path);
    hr_status status = words != NULL ? load_text(l, path, words) : load(l, path, NULL, NULL, WHOLE);
    if (status == HR_OK && preset->model == NULL && problem_count(preset) == 0) {
        yaml_problem(preset->files.data[0], 1, 1, "no model: needed 'model:' or 'extends:', had neither");
    }
    status = status == HR_OK ? collect(preset, problems, l->err) : status;
    if (status != HR_OK) {
        hr_preset_close(preset);
        return status;
    }
    *out = preset;
    return HR_OK;
}

static hr_status open_named(const char *name, loader *with, hr_preset **out, char **problems, hr_err *err)
{
    char path[SEARCH_PATH_MAX];
    *out = NULL;
    if (problems != NULL) {
        *problems = NULL;
    }
    HR_TRY(find_preset(name, path, err));
    HR_TRY(open_preset(with, path, NULL, problems, out));
    (void)text_copy((*out)->path, sizeof(*out)->path, path);
    (*out)->trusts = with->trust;
    return HR_OK;
}

hr_status hr_preset_of_trace(const char *path, const hr_knobs *knobs, hr_preset **out, hr_err *err)
{
    hr_preset *preset = hr_calloc(1, sizeof *preset);
    *out = NULL;
    if (preset == NULL || !text_copy(preset->path, sizeof preset->path, path)) {
        hr_free(preset);
        return preset == NULL ? HR_FAIL(err, NOMEM, "%.200s: no memory for the preset", path)
                              : HR_FAIL(err, READ, "%.64s…: the path is too long", path);
    }
    preset->self = preset;
    atomic_init(&preset->holders, 1);
    preset->knobs = *knobs;
    preset->is_trace = true;
    set_name(preset, path);
    *out = preset;
    return HR_OK;
}

bool hr_preset_is_trace(const hr_preset *preset)
{
    return preset->is_trace;
}

hr_status hr_preset_open(const char *name, bool trust, hr_preset **out, char **problems, hr_err *err)
{
    return open_named(name, &(loader){.trust = trust, .err = err}, out, problems, err);
}

hr_status hr_preset_open_opaque(const char *name, bool trust, hr_preset **out, char **problems, hr_err *err)
{
    return open_named(name, &(loader){.trust = trust, .lets_pass = true, .err = err}, out, problems, err);
}

hr_status hr_preset_open_text(const char *name, const char *words, bool trust, hr_preset **out, hr_err *err)
{
    *out = NULL;
    return open_preset(&(loader){.trust = trust, .err = err}, name, words, NULL, out);
}

void hr_preset_problems_free(char *problems)
{
    hr_free(problems);
}

void hr_preset_close(hr_preset *preset)
{
    if (preset == NULL || atomic_fetch_sub(&preset->holders, 1) > 1) {
        return;
    }
    for (uint32_t i = 0; i < preset->files.count; i++) {
        yaml_close(preset->files.data[i]);
    }
    vec_deinit(&preset->files);
    vec_deinit(&preset->widths);
    hr_free(preset->imported);
    hr_free(preset);
}

const char *hr_preset_name(const hr_preset *preset)
{
    return preset->name;
}

const char *hr_preset_path(const hr_preset *preset)
{
    return preset->path;
}

static const char *said(const hr_preset *preset, const char *key)
{
    const yaml_node *root = preset->files.count == 0 ? NULL : yaml_root(preset->files.data[0]);
    const yaml_node *node = root == NULL ? NULL : yaml_find(root, key);
    return node == NULL || node->kind != YAML_SCALAR ? "" : node->text;
}

const char *hr_preset_title(const hr_preset *preset)
{
    return said(preset, "title");
}

const char *hr_preset_description(const hr_preset *preset)
{
    return said(preset, "description");
}

const char *hr_preset_note(const hr_preset *preset)
{
    return said(preset, "note");
}

const char *hr_preset_imported(const hr_preset *preset)
{
    return preset->imported;
}

bool hr_preset_trusts(const hr_preset *preset)
{
    return preset->trusts;
}

const hr_knobs *hr_preset_knobs(const hr_preset *preset)
{
    return &preset->knobs;
}

const hr_origin *hr_preset_origin(const hr_preset *preset, hr_knob_id id)
{
    return &preset->origin[id];
}

hr_preset *preset_hold(const hr_preset *preset)
{
    atomic_fetch_add(&preset->self->holders, 1);
    return preset->self;
}

const char *preset_file(const hr_preset *preset, uint32_t k)
{
    return k < preset->files.count ? yaml_name(preset->files.data[k]) : NULL;
}

const yaml_node *preset_model(const hr_preset *preset, yaml_file **file)
{
    *file = preset->model_file;
    return preset->model;
}

const preset_widths *preset_model_widths(const hr_preset *preset, uint32_t *count)
{
    *count = preset->widths.count;
    return preset->widths.data;
}
