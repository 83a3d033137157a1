// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/words.h"

#include "app/cli/compare.h"

enum { REPORT_BYTES_MAX = 64 << 20, KEY_MAX = 64 };

// "memory.peak_in_use_bytes"; NULL: not there.
static const json_t *at(const json_t *document, const char *path)
{
    const json_t *found = document;
    while (found != NULL && *path != '\0') {
        char key[KEY_MAX];
        size_t length = strcspn(path, ".");
        (void)snprintf(key, sizeof key, "%.*s", (int)length, path);
        found = json_object_get(found, key);
        path += length + (path[length] == '.');
    }
    return found;
}

static hr_status refuse(const char *path, const char *field, const char *needs, hr_err *err)
{
    hr_status status = HR_FAIL(err, READ, "%.200s: %s needs %s", path, field, needs);
    hr_err_try(err, "headroom plan demo --json writes a report to compare with");
    return status;
}

static hr_status take_measures(const json_t *document, const char *path, compare_side *out, hr_err *err)
{
    out->measures = measures_unknown();
    for (int id = 0; id < MEASURE_ALL; id++) {
        const measure_row *row = measure_row_of((measure_id)id);
        const json_t *value = at(document, row->path);
        bool known = json_is_number(value) && json_number_value(value) >= 0;
        bool is_loss = row->kind == MEASURE_AS_LOSS && json_is_number(value); // a loss may be negative
        if (!known && !is_loss && !json_is_null(value)) {
            return refuse(path, row->path,
                          value == NULL ? "a number or null, had nothing" : "a number or null", err);
        }
        out->measures.value[id] = json_is_null(value) ? UNKNOWN : json_number_value(value);
    }
    return HR_OK;
}

static hr_status take_report(const json_t *document, const char *path, compare_side *out, hr_err *err)
{
    const char *schema = json_string_value(at(document, "schema"));
    const char *preset = json_string_value(at(document, "preset"));
    const char *device = json_string_value(at(document, "device.kind"));
    const json_t *oom = at(document, "oom");
    const char *cause = json_string_value(at(document, "oom.cause"));
    if (schema == NULL || strcmp(schema, "headroom.report/1") != 0) {
        return refuse(path, "schema", "headroom.report/1", err);
    }
    if (preset == NULL || device == NULL) {
        return refuse(path, preset == NULL ? "preset" : "device.kind", "a text", err);
    }
    if (oom == NULL || (!json_is_null(oom) && cause == NULL)) {
        return refuse(path, oom == NULL ? "oom" : "oom.cause", oom == NULL ? "an object or null" : "a text",
                      err);
    }
    (void)snprintf(out->name, sizeof out->name, "%.60s on %.30s", preset, device);
    (void)snprintf(out->oom, sizeof out->oom, "%.*s", (int)sizeof out->oom - 1, cause == NULL ? "" : cause);
    (void)hr_plain_text(out->name, "");
    (void)hr_plain_text(out->oom, "");
    return take_measures(document, path, out, err);
}

static hr_status read_whole(const char *path, char **text, size_t *length, hr_err *err)
{
    FILE *file = fopen(path, "r");
    *text = file == NULL ? NULL : malloc(REPORT_BYTES_MAX + 1);
    if (*text == NULL) {
        if (file != NULL) {
            (void)fclose(file);
            return HR_FAIL(err, NOMEM, "no memory to read %.200s", path);
        }
        hr_status status = HR_FAIL(err, READ, "%.200s: cannot be opened: %s", path, strerror(errno));
        hr_err_try(err, "ls -l '%.200s'", path);
        return status;
    }
    *length = fread(*text, 1, REPORT_BYTES_MAX + 1, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed || *length > REPORT_BYTES_MAX) {
        free(*text);
        return HR_FAIL(err, READ, "%.200s %s", path, failed ? "cannot be read" : "is larger than 64 MiB");
    }
    return HR_OK;
}

static hr_status read_document(const char *path, json_t **document, hr_err *err)
{
    char *text = NULL;
    size_t length = 0;
    json_error_t where;
    HR_TRY(read_whole(path, &text, &length, err));
    *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    free(text);
    return *document != NULL
               ? HR_OK
               : HR_FAIL(err, READ, "%.200s:%d:%d: %s", path, where.line, where.column, where.text);
}

hr_status compare_read_report(const char *path, compare_side *out, hr_err *err)
{
    json_t *document = NULL;
    HR_TRY(read_document(path, &document, err));
    const hr_status status = take_report(document, path, out, err);
    json_decref(document);
    return status;
}
