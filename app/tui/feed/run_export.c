// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/run_export.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/files.h"
#include "headroom/json.h"

#include "app/tui/feed/knob_edit.h"

enum { EXACT_DIGITS = 17, PAIRS_MAX = 4096 };

// Bytes and counts are whole; other numbers read back as they were.
static void put_number(FILE *out, double value, const char *unknown)
{
    if (!isfinite(value)) {
        fputs(unknown, out);
    } else if (value == floor(value) && fabs(value) < 9e15) {
        fprintf(out, "%.0f", value);
    } else {
        fprintf(out, "%.*g", EXACT_DIGITS, value);
    }
}

static const char *pairs_of(const run_log *log, const run *r, char text[PAIRS_MAX])
{
    return run_pairs(run_log_at(log, 0), r, text, PAIRS_MAX);
}

// ---- CSV (RFC 4180) -------------------------------------------------------------------------------------------

static void put_field(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

bool run_export_csv(const run_log *log, FILE *out)
{
    char pairs[PAIRS_MAX];
    fputs("run,name,preset,knobs,result,cause", out);
    for (int id = 0; id < MEASURE_ALL; id++) {
        fprintf(out, ",%s", measure_row_of((measure_id)id)->term);
    }
    fputc('\n', out);
    for (size_t row = 0; row < log->count; row++) {
        const run *r = run_log_at(log, row);
        fprintf(out, "%" PRIu32 ",", r->number);
        put_field(out, r->name);
        fputc(',', out);
        put_field(out, r->preset);
        fputc(',', out);
        put_field(out, pairs_of(log, r, pairs));
        fprintf(out, ",%s,%s", run_result_name(r->result), r->cause);
        for (int id = 0; id < MEASURE_ALL; id++) {
            fputc(',', out);
            put_number(out, r->measures.value[id], "");
        }
        fputc('\n', out);
    }
    return ferror(out) == 0;
}

// ---- JSON -----------------------------------------------------------------------------------------------------

// What differs from the first run, as an object of texts.
static void put_knobs(FILE *out, const run *first, const run *r)
{
    char value[HR_KNOB_TEXT_MAX];
    const char *between = "";
    fputc('{', out);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (knob_edit_differs(&first->knobs, &r->knobs, (hr_knob_id)id)) {
            const char *set = hr_knob_format(&r->knobs, (hr_knob_id)id, value);
            fprintf(out, "%s\"%s\": ", between, hr_knob_rows(NULL)[id].key);
            hr_json_put(out, set, strlen(set));
            between = ", ";
        }
    }
    fputc('}', out);
}

static void put_run(FILE *out, const run_log *log, const run *r)
{
    fprintf(out, "    {\"run\": %" PRIu32 ", \"name\": ", r->number);
    if (r->name[0] == '\0') {
        fputs("null", out);
    } else {
        hr_json_put(out, r->name, strlen(r->name));
    }
    fputs(", \"preset\": ", out);
    hr_json_put(out, r->preset, strlen(r->preset));
    fputs(", \"knobs\": ", out);
    put_knobs(out, run_log_at(log, 0), r);
    fprintf(out, ", \"result\": \"%s\", \"cause\": %s%s%s", run_result_name(r->result),
            r->cause[0] != '\0' ? "\"" : "", r->cause[0] != '\0' ? r->cause : "null",
            r->cause[0] != '\0' ? "\"" : "");
    for (int id = 0; id < MEASURE_ALL; id++) {
        fprintf(out, ", \"%s\": ", measure_row_of((measure_id)id)->term);
        put_number(out, r->measures.value[id], "null");
    }
    fputs(",\n     \"step\": [", out);
    for (uint32_t i = 0; i < r->profile_count; i++) {
        fprintf(out, "%s%" PRIu64, i == 0 ? "" : ", ", r->profile[i]);
    }
    fputs("],\n     \"loss\": [", out);
    for (uint32_t i = 0; i < r->losses.count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        put_number(out, r->losses.mean[i], "null");
    }
    fputs("]}", out);
}

bool run_export_json(const run_log *log, FILE *out)
{
    fputs("{\n  \"schema\": \"headroom.runs/1\",\n  \"runs\": [", out);
    for (size_t row = 0; row < log->count; row++) {
        fputs(row == 0 ? "\n" : ",\n", out);
        put_run(out, log, run_log_at(log, row));
    }
    fputs(log->count > 0 ? "\n  ]\n}\n" : "]\n}\n", out);
    return ferror(out) == 0;
}

// ---- the file -------------------------------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);
    return length > size && strcmp(text + length - size, end) == 0;
}

// The whole file; the caller frees it. NULL: host memory was short.
static char *export_text(const run_log *log, bool json, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL) {
        return NULL;
    }
    bool whole = json ? run_export_json(log, out) : run_export_csv(log, out);
    whole = fclose(out) == 0 && whole;
    if (!whole) {
        free(text);
        return NULL;
    }
    return text;
}

hr_status run_export(const run_log *log, const char *path, bool replaces, hr_err *err)
{
    size_t length = 0;
    bool json = ends_with(path, ".json");
    if (!json && !ends_with(path, ".csv")) {
        hr_status status =
            HR_FAIL(err, USAGE, "runs are written to a .csv or a .json file, had '%.200s'", path);
        hr_err_try(err, ":export-runs runs.csv");
        return status;
    }
    char *text = export_text(log, json, &length);
    if (text == NULL) {
        return HR_FAIL(err, NOMEM, "%.300s: no host memory to write it", path);
    }
    const hr_status status =
        hr_file_write(path, text, length, replaces ? HR_FILE_REPLACES : HR_FILE_NEW, err);
    free(text);
    return status;
}
