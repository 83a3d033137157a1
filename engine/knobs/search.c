// SPDX-License-Identifier: Apache-2.0
#include "knobs/search.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/file_name.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "knobs/card_table.h"
#include "knobs/yaml.h"

// A program in build/NAME/ or build/NAME/tests/ of a checkout finds the checkout.
enum { LEVELS_ABOVE_PROGRAM = 4 };

const char *const search_preset_folders[] = {"", "models", "articles", NULL};
const char *const search_card_folders[] = {"cards", NULL};

static char beside[SEARCH_PATH_MAX]; // "" until set

void hr_preset_search_beside(const char *dir)
{
    text_copy(beside, sizeof beside, dir);
}

// ---- paths ------------------------------------------------------------------------------------------------

bool search_join(const char *folder, const char *path, char joined[SEARCH_PATH_MAX])
{
    bool bare = path[0] == '/' || (path[0] != '\0' && strcmp(folder, ".") == 0);
    bool both = !bare && path[0] != '\0';
    int length = snprintf(joined, SEARCH_PATH_MAX, "%s%s%s", bare ? "" : folder, both ? "/" : "", path);
    return length >= 0 && length < SEARCH_PATH_MAX;
}

void search_folder_of(const char *path, char folder[SEARCH_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    snprintf(folder, SEARCH_PATH_MAX, "%.*s", length == 0 ? 1 : (int)length, length == 0 ? "." : path);
}

bool search_is_path(const char *preset)
{
    return strchr(preset, '/') != NULL || text_ends_in(preset, ".yaml");
}

bool search_is_preset_path(const char *preset)
{
    return search_is_path(preset) || file_kind_is_import(file_kind_named(preset)) || strcmp(preset, ".") == 0;
}

bool hr_preset_is_path(const char *word)
{
    return search_is_preset_path(word);
}

bool search_leaves_folder(const char *path)
{
    if (path[0] == '/') {
        return true;
    }
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return true;
        }
    }
    return false;
}

bool search_lies_below(const char *path, const char *folder)
{
    char real_path[PATH_MAX], real_folder[PATH_MAX];
    if (realpath(path, real_path) == NULL || realpath(folder, real_folder) == NULL) {
        return errno == ENOENT;
    }
    const size_t length = strcmp(real_folder, "/") == 0 ? 0 : strlen(real_folder);
    return strncmp(real_path, real_folder, length) == 0 && real_path[length] == '/';
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool search_config_in(char path[SEARCH_PATH_MAX])
{
    char config[SEARCH_PATH_MAX];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    const int whole = snprintf(config, sizeof config, "%.*s/config.json", (int)length, path);
    return is_folder(path) && whole > 0 && whole < SEARCH_PATH_MAX && is_file(config) &&
           text_copy(path, SEARCH_PATH_MAX, config);
}

// ---- roots ------------------------------------------------------------------------------------------------

static void add_root(search_roots *roots, const char *folder, const char *below)
{
    char path[SEARCH_PATH_MAX];
    if (roots->count < SEARCH_ROOTS_MAX && search_join(folder, below, path) && is_folder(path)) {
        text_copy(roots->path[roots->count++], SEARCH_PATH_MAX, path);
    }
}

// A checkout's folder, in the program's folder or above it. Its presets must look like ours, or another's folder of that
// name higher up would do.
static void add_beside(search_roots *roots, const char *in_checkout)
{
    char above[SEARCH_PATH_MAX], models[SEARCH_PATH_MAX];
    text_copy(above, sizeof above, beside);
    for (int level = 0; level <= LEVELS_ABOVE_PROGRAM; level++) {
        if (search_join(above, "presets/models", models) && is_folder(models)) {
            add_root(roots, above, in_checkout);
            return;
        }
        if (!search_join(strcmp(above, ".") == 0 ? "./" : above, "..", models)) {
            return;
        }
        text_copy(above, sizeof above, models);
    }
}

// `leaf` is what the folder is called where headroom's data lies.
static void find_roots(search_roots *roots, const char *leaf, const char *in_checkout)
{
    char installed[SEARCH_PATH_MAX];
    char home[SEARCH_PATH_MAX];
    const char *data = getenv("HEADROOM_DATA");
    roots->count = 0;
    if (hr_file_xdg("XDG_DATA_HOME", ".local/share", leaf, home, sizeof home)) {
        add_root(roots, home, "");
    }
    if (data != NULL && data[0] != '\0') {
        add_root(roots, data, leaf);
        add_root(roots, data, "");
    }
    if (beside[0] != '\0') {
        // installed first, wherever its prefix lies: it may lie in a checkout
        (void)snprintf(installed, sizeof installed, "../share/headroom/%s", leaf);
        add_root(roots, beside, installed);
        add_beside(roots, in_checkout);
    }
}

void search_find_roots(search_roots *roots)
{
    find_roots(roots, "presets", "presets");
}

void search_find_recipes(search_roots *roots)
{
    find_roots(roots, "recipes", "scripts/recipes");
}

void search_find_lessons(search_roots *roots)
{
    find_roots(roots, "lessons", "scripts/lessons");
}

// ---- by name ----------------------------------------------------------------------------------------------

bool search_in_root(const char *root, const char *const *folders, const char *name,
                    char path[SEARCH_PATH_MAX])
{
    for (size_t i = 0; folders[i] != NULL && strchr(name, '/') == NULL; i++) {
        const char *slash = folders[i][0] == '\0' ? "" : "/";
        char leaf[SEARCH_PATH_MAX];
        int length = snprintf(leaf, sizeof leaf, "%s%s%s.yaml", folders[i], slash, name);
        if (length > 0 && length < SEARCH_PATH_MAX && search_join(root, leaf, path) && is_file(path)) {
            return true;
        }
    }
    path[0] = '\0';
    return false;
}

bool search_by_name(const char *const *folders, const char *name, char path[SEARCH_PATH_MAX])
{
    search_roots roots;
    search_find_roots(&roots);
    for (size_t i = 0; i < roots.count; i++) {
        if (search_in_root(roots.path[i], folders, name, path)) {
            return true;
        }
    }
    path[0] = '\0';
    return false;
}

bool search_card_properties(const char *name, char path[SEARCH_PATH_MAX])
{
    search_roots roots;
    search_find_roots(&roots);
    for (size_t i = 0; i < roots.count && strchr(name, '/') == NULL; i++) {
        char leaf[SEARCH_PATH_MAX];
        const int length = snprintf(leaf, sizeof leaf, "cards/%s.json", name);
        if (length > 0 && length < SEARCH_PATH_MAX && search_join(roots.path[i], leaf, path) &&
            is_file(path)) {
            return true;
        }
    }
    path[0] = '\0';
    return false;
}

// ---- lists ------------------------------------------------------------------------------------------------

typedef VEC(hr_preset_entry) entry_list;

static bool is_listed(const entry_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->data[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// A file that cannot be read has no title, but stands in the list: opening it says what is wrong.
static hr_status read_title(const char *path, char *title, size_t size, hr_err *err)
{
    yaml_file *file;
    hr_status status = yaml_open(path, &file, err);
    if (status != HR_OK) {
        return status == HR_NOMEM ? status : HR_OK;
    }
    const yaml_node *root = yaml_root(file);
    const yaml_node *line = root == NULL ? NULL : yaml_find(root, "title");
    text_copy(title, size, line == NULL || line->text == NULL ? "" : line->text);
    yaml_close(file);
    return HR_OK;
}

static hr_status list_file(entry_list *list, const char *folder_path, const char *folder, const char *leaf,
                           hr_err *err)
{
    char path[SEARCH_PATH_MAX], name[sizeof list->data->name];
    if (!text_ends_in(leaf, ".yaml") || strlen(leaf) - strlen(".yaml") >= sizeof name ||
        !search_join(folder_path, leaf, path) || !is_file(path)) {
        return HR_OK;
    }
    snprintf(name, sizeof name, "%.*s", (int)(strlen(leaf) - strlen(".yaml")), leaf);
    if (is_listed(list, name)) {
        return HR_OK; // an earlier root has it
    }
    hr_preset_entry *entry = vec_push(list);
    if (entry == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for the list of presets");
    }
    text_copy(entry->name, sizeof entry->name, name);
    text_copy(entry->folder, sizeof entry->folder, folder);
    return read_title(path, entry->title, sizeof entry->title, err);
}

static hr_status list_folder(entry_list *list, const char *root, const char *folder, hr_err *err)
{
    char path[SEARCH_PATH_MAX];
    DIR *dir = search_join(root, folder, path) ? opendir(path) : NULL;
    hr_status status = HR_OK;
    if (dir == NULL) {
        return HR_OK;
    }
    for (struct dirent *leaf = readdir(dir); leaf != NULL && status == HR_OK; leaf = readdir(dir)) {
        status = list_file(list, path, folder, leaf->d_name, err);
    }
    closedir(dir);
    return status;
}

// The rows of the table, but for those that a file of one's own replaces.
static hr_status list_cards(entry_list *list, hr_err *err)
{
    size_t count = 0;
    const card_row *rows = card_rows(&count);
    for (size_t k = 0; k < count; k++) {
        if (is_listed(list, rows[k].name)) {
            continue;
        }
        hr_preset_entry *entry = vec_push(list);
        if (entry == NULL) {
            return HR_FAIL(err, NOMEM, "no memory for the list of cards");
        }
        text_copy(entry->name, sizeof entry->name, rows[k].name);
        text_copy(entry->folder, sizeof entry->folder, search_card_folders[0]);
        text_copy(entry->title, sizeof entry->title, rows[k].title);
    }
    return HR_OK;
}

static int compare_entries(const void *a, const void *b)
{
    const hr_preset_entry *x = a, *y = b;
    int order = strcmp(x->folder, y->folder);
    return order != 0 ? order : strcmp(x->name, y->name);
}

hr_status hr_preset_list(const char *folder, hr_preset_entry **entries, size_t *count, hr_err *err)
{
    const char *const one[] = {folder, NULL};
    const char *const *folders = folder == NULL ? search_preset_folders : one;
    search_roots roots;
    entry_list list = {0};
    hr_status status = HR_OK;
    *entries = NULL;
    *count = 0;
    search_find_roots(&roots);
    for (size_t i = 0; i < roots.count && status == HR_OK; i++) {
        for (size_t k = 0; folders[k] != NULL && status == HR_OK; k++) {
            status = list_folder(&list, roots.path[i], folders[k], err);
        }
    }
    if (status == HR_OK && folder != NULL && strcmp(folder, search_card_folders[0]) == 0) {
        status = list_cards(&list, err);
    }
    if (status != HR_OK) {
        vec_deinit(&list);
        return status;
    }
    if (list.count > 0) {
        qsort(list.data, list.count, sizeof *list.data, compare_entries);
    }
    *entries = list.data;
    *count = list.count;
    return HR_OK;
}

void hr_preset_list_free(hr_preset_entry *entries)
{
    vec_free_(entries);
}

// How far a name is from what was asked for; a name that begins with it, or has it inside, is near.
typedef struct known_name {
    const char *name;
    unsigned far;
    size_t place;
} known_name;

enum { BEGINS = 0, INSIDE = 1, APART = 2, PLAIN_MAX = 64 };

// "RTX 3090" as "rtx3090": what is typed otherwise elsewhere is the same name.
static const char *plain_of(const char *name, char plain[PLAIN_MAX])
{
    size_t length = 0;
    for (; *name != '\0' && length + 1 < PLAIN_MAX; name++) {
        if (isalnum((unsigned char)*name)) {
            plain[length++] = (char)tolower((unsigned char)*name);
        }
    }
    plain[length] = '\0';
    return plain;
}

static unsigned far_from(const char *asked, const char *name)
{
    enum { FAR = 64 };
    char plain[PLAIN_MAX];
    plain_of(name, plain);
    const char *inside = strlen(asked) < 2 ? NULL : strstr(plain, asked);
    return inside == plain ? BEGINS : inside != NULL ? INSIDE : APART + text_distance(asked, plain, FAR);
}

static int by_distance(const void *a, const void *b)
{
    const known_name *one = a, *other = b;
    return one->far != other->far      ? (one->far < other->far ? -1 : 1)
           : one->place < other->place ? -1
                                       : one->place > other->place;
}

// Where some have it inside, the others are no answer.
static size_t count_near(const known_name *known, size_t count)
{
    size_t inside = 0;
    while (inside < count && known[inside].far < APART) {
        inside++;
    }
    return inside > 0 ? inside : count;
}

// Whole names only; "…" stands for those that have no room.
static void join_names(const known_name *known, size_t count, char *names, size_t size)
{
    static const char more[] = ", …";
    size_t length = 0;
    names[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t needed = strlen(known[i].name) + (i > 0 ? 2 : 0);
        size_t kept = i + 1 < count ? sizeof more - 1 : 0; // for those behind it
        if (length + needed + kept >= size) {
            (void)snprintf(names + length, size - length, "%s", i > 0 ? more : "");
            return;
        }
        length += (size_t)snprintf(names + length, size - length, "%s%s", i > 0 ? ", " : "", known[i].name);
    }
}

static void find_near(const hr_preset_entry *entries, size_t count, const char *asked, char near[64])
{
    unsigned nearest = (unsigned)strlen(asked) / 3;
    char plain[PLAIN_MAX];
    nearest = nearest < 1 ? 1 : nearest;
    near[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        unsigned distance = text_distance(asked, plain_of(entries[i].name, plain), nearest);
        if (distance < nearest || (distance == nearest && near[0] == '\0')) {
            nearest = distance;
            text_copy(near, sizeof entries[i].name, entries[i].name);
        }
    }
}

hr_status search_known(const char *folder, const char *name, char *names, size_t size, char near[64],
                       hr_err *err)
{
    hr_preset_entry *entries;
    size_t count;
    char asked[PLAIN_MAX];
    plain_of(name, asked);
    HR_TRY(hr_preset_list(folder, &entries, &count, err));
    known_name *known = hr_calloc(count + 1, sizeof *known);
    if (known == NULL) {
        hr_preset_list_free(entries);
        return HR_FAIL(err, NOMEM, "no memory for %zu names", count);
    }
    for (size_t i = 0; i < count; i++) {
        known[i] = (known_name){entries[i].name, far_from(asked, entries[i].name), i};
    }
    qsort(known, count, sizeof *known, by_distance);
    join_names(known, count_near(known, count), names, size);
    find_near(entries, count, asked, near);
    if (near[0] == '\0' && count > 0 && known[0].far == BEGINS) {
        text_copy(near, sizeof entries->name, known[0].name);
    }
    hr_free(known);
    hr_preset_list_free(entries);
    return HR_OK;
}
