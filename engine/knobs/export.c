// SPDX-License-Identifier: Apache-2.0
#include "knobs/export.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/knob_export.h"
#include "headroom/preset.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "knobs/search.h"

typedef void (*export_form)(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out);

static const struct {
    const char *name;
    export_form write;
} forms[] = {{"preset", export_preset}, {"pytorch", export_pytorch}, {"keras", export_keras}};

const char *hr_knob_export_form(size_t index)
{
    return index < sizeof forms / sizeof *forms ? forms[index].name : NULL;
}

// ---- a preset -------------------------------------------------------------------------------------------------

static void put_quoted(text *out, const char *value)
{
    text_append(out, "\"");
    for (const char *c = value; *c != '\0'; c++) {
        text_append(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    text_append(out, "\"");
}

// How a file is called from a folder, both resolved: its path from where the two part, and how many folders up that is. False
// where they share the root alone.
static bool call_from(const char *folder, const char *file, const char **path, uint32_t *up)
{
    size_t shared = 0, k = 0;
    for (; file[k] != '\0' && file[k] == folder[k]; k++) {
        shared = file[k] == '/' ? k + 1 : shared;
    }
    shared = folder[k] == '\0' && file[k] == '/' ? k + 1 : shared;
    *path = file + shared;
    *up = 0;
    for (const char *rest = shared < strlen(folder) ? folder + shared : NULL; rest != NULL; ++*up) {
        rest = strchr(rest, '/');
        rest = rest == NULL ? NULL : rest + 1;
    }
    return shared > 1 || *up == 0;
}

// The folder of the file that is written, resolved; false where that is not known.
static bool folder_to_be(const char *path, char real[PATH_MAX])
{
    char folder[SEARCH_PATH_MAX];
    search_folder_of(path == NULL ? "." : path, folder);
    return realpath(folder, real) != NULL;
}

// A relative path counts from the file it stands in: what was named from here is named from there where it lies below, else
// from the root.
static const char *value_of(const hr_knobs *knobs, const hr_knob_row *row, const char *path,
                            char value[PATH_MAX])
{
    char typed[HR_KNOB_TEXT_MAX];
    (void)hr_knob_format(knobs, row->id, typed);
    const bool is_path = row->id == HR_KNOB_PIPELINE_PATH || row->id == HR_KNOB_PIPELINE_CACHE_PATH;
    char folder[PATH_MAX];
    const char *called = NULL;
    uint32_t up = 0;
    if (!is_path || typed[0] == '\0' || realpath(typed, value) == NULL) {
        (void)text_copy(value, PATH_MAX, typed);
    } else if (path != NULL && folder_to_be(path, folder) && call_from(folder, value, &called, &up) &&
               up == 0) {
        return called;
    }
    return value;
}

static bool differs(const hr_knobs *a, const hr_knobs *b, hr_knob_id id)
{
    char one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    return strcmp(hr_knob_format(a, id, one), hr_knob_format(b, id, other)) != 0;
}

// What `extends:` says of the preset: its name, its path from the new file's folder, or where that shares nothing with it, from
// the root.
static void put_extends(const hr_preset *preset, const char *path, text *out)
{
    char known[SEARCH_PATH_MAX], real[PATH_MAX], real_folder[PATH_MAX];
    const char *file = hr_preset_path(preset);
    const bool by_name = search_by_name(search_preset_folders, hr_preset_name(preset), known) &&
                         realpath(known, real) != NULL && realpath(file, real_folder) != NULL &&
                         strcmp(real, real_folder) == 0;
    if (by_name || realpath(file, real) == NULL) {
        text_append(out, "extends: %s\n", hr_preset_name(preset));
        return;
    }
    const char *called = real;
    uint32_t up = 0;
    const bool shares = folder_to_be(path, real_folder) && call_from(real_folder, real, &called, &up);
    const bool beside = shares && up == 0, relative = beside || (shares && path != NULL);
    text way = {0};
    for (uint32_t k = 0; relative && k < up; k++) {
        text_append(&way, "../");
    }
    text_append(&way, "%s", relative ? called : real);
    text_append(out, beside ? "extends: "
                            : "# opened with --trust, because the file it extends lies elsewhere\nextends: ");
    put_quoted(out, way.failed ? "" : way.data);
    text_append(out, "\n");
    out->failed = out->failed || way.failed;
    text_deinit(&way);
}

void export_preset(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    const char *group = "";
    size_t length = 0;
    put_extends(preset, path, out);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char value[PATH_MAX];
        if (!differs(hr_preset_knobs(preset), knobs, rows[k].id)) {
            continue;
        }
        const size_t dot = strcspn(rows[k].key, ".");
        if (dot != length || strncmp(rows[k].key, group, dot) != 0) {
            group = rows[k].key;
            length = dot;
            text_append(out, "%.*s:\n", (int)dot, group);
        }
        text_append(out, "  %s: ", rows[k].key + dot + 1);
        if (rows[k].type == HR_KNOB_TEXT) {
            put_quoted(out, value_of(knobs, &rows[k], path, value));
        } else {
            text_append(out, "%s", value_of(knobs, &rows[k], path, value));
        }
        text_append(out, "\n");
    }
}

// ---- any of them ----------------------------------------------------------------------------------------------

hr_status hr_knob_export(const char *form, const hr_preset *preset, const hr_knobs *knobs, const char *path,
                         char **words, hr_err *err)
{
    text out = {0};
    export_form write = NULL;
    *words = NULL;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        write = strcmp(forms[k].name, form) == 0 ? forms[k].write : write;
    }
    if (hr_preset_is_trace(preset)) {
        const hr_status status = HR_FAIL(
            err, USAGE,
            "a recorded step is requests for memory, and no training: it has no configuration to export");
        hr_err_try(err, ":preset NAME, and then :export");
        return status;
    }
    if (write == NULL) {
        return HR_FAIL(err, USAGE, "needed preset, pytorch or keras, had '%.64s'", form);
    }
    write(preset, knobs, path, &out);
    *words = text_take(&out);
    return *words != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory to write the configuration");
}

void hr_knob_export_free(char *words)
{
    hr_free(words);
}

hr_status hr_knob_export_file(const char *form, const hr_preset *preset, const hr_knobs *knobs,
                              const char *path, bool replaces, hr_err *err)
{
    char *words = NULL;
    file_writer *w = NULL;
    HR_TRY(hr_knob_export(form, preset, knobs, path, &words, err));
    hr_status status = !replaces && access(path, F_OK) == 0
                           ? HR_FAIL(err, WRITE, "%.400s: is there already, and stays as it is", path)
                           : file_writer_open(path, &w, err);
    if (status == HR_OK) {
        status = file_writer_add(w, words, strlen(words), err);
        if (status == HR_OK) {
            status = file_writer_commit(w, err);
        } else {
            file_writer_abandon(w);
        }
    }
    if (status == HR_WRITE) {
        hr_err_try(err, "another file name");
    }
    hr_free(words);
    return status;
}
