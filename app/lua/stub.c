// SPDX-License-Identifier: Apache-2.0
// The stub that the Lua language server reads: every name, option, field and knob with its type, and no code.
#include <string.h>

#include "app/lua/api.h"
#include "app/lua/described.h"
#include "app/lua/events.h"

static void print_field(FILE *to, const char *name, const char *type, const char *line)
{
    fprintf(to, "---@field %s%s %s\n", name, type, line);
}

static void print_options(FILE *to, const script_api_row *row)
{
    fprintf(to, "---@class hr.%s.Options\n", row->name);
    for (const lua_script_field *f = row->options; f->name != NULL; f++) {
        fprintf(to, "---@field %s? %s %s\n", f->name, f->type, f->line);
    }
    const bool knobs = strstr(row->arguments, "knob = value") != NULL;
    fputs(knobs ? "---@field [string] any a knob, or a group of knobs\n\n" : "\n", to);
}

// ---- results ------------------------------------------------------------------------------------------------------

// Classes of the tables in it come first, each named behind its place.
static void print_class(FILE *to, const char *class, const hr_field *fields)
{
    char name[DESCRIBED_NAME_MAX];
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        if (f->name != NULL && described_is_table(f)) {
            (void)snprintf(name, sizeof name, "%s.%s", class, f->name);
            print_class(to, name, f->fields);
        }
    }
    fprintf(to, "---@class %s\n", class);
    if (strcmp(class, "hr.Result") == 0) {
        print_field(to, "fits", " boolean", "it did not run out of memory");
    }
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        if (f->name == NULL) {
            continue;
        }
        if (described_is_table(f)) {
            (void)snprintf(name, sizeof name, " %s.%s%s", class, f->name,
                           f->kind == HR_FIELD_OBJECT ? "|nil" : "[]");
        } else {
            (void)snprintf(name, sizeof name, "? %s", described_type(f));
        }
        print_field(to, f->name, name, described_line(f->name));
    }
    fputc('\n', to);
}

// ---- knobs --------------------------------------------------------------------------------------------------------

static void print_group(FILE *to, const char *group, size_t length)
{
    fprintf(to, "---@class hr.Knobs.%.*s\n", (int)length, group);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[k];
        if (strncmp(row->key, group, length) == 0 && row->key[length] == '.') {
            fprintf(to, "---@field %s ", row->key + length + 1);
            described_knob_type(to, row);
            fprintf(to, " %s\n", row->line);
        }
    }
    fputc('\n', to);
}

static bool begins_group(int id, size_t *length)
{
    const char *key = hr_knob_rows(NULL)[id].key;
    *length = strcspn(key, ".");
    for (int k = 0; k < id; k++) {
        if (strncmp(hr_knob_rows(NULL)[k].key, key, *length + 1) == 0) {
            return false;
        }
    }
    return true;
}

static void print_knobs(FILE *to)
{
    size_t length = 0;
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        if (begins_group(k, &length)) {
            print_group(to, hr_knob_rows(NULL)[k].key, length);
        }
    }
    fputs("---@class hr.Knobs\n", to);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const char *key = hr_knob_rows(NULL)[k].key;
        if (begins_group(k, &length)) {
            fprintf(to, "---@field %.*s hr.Knobs.%.*s\n", (int)length, key, (int)length, key);
        }
    }
    fputs("---@field [string] any\n\n", to);
}

// ---- events -------------------------------------------------------------------------------------------------------

static void print_event_class(FILE *to, const script_event_row *row)
{
    fprintf(to, "---@class hr.event.%s: hr.Now\n", row->name);
    for (const lua_script_field *f = row->fields; f->name != NULL; f++) {
        fprintf(to, "---@field %s %s %s\n", f->name, f->type, f->line);
    }
    fputc('\n', to);
}

static void print_events(FILE *to)
{
    fputs("---@alias hr.EventName", to);
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        fprintf(to, "%s'\"%s\"'", k > 0 ? "|" : " ", script_event_rows[k].name);
    }
    fputs("\n\n---@class hr.Now\n", to);
    for (const lua_script_field *f = script_now_fields; f->name != NULL; f++) {
        fprintf(to, "---@field %s %s %s\n", f->name, f->type, f->line);
    }
    fputc('\n', to);
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        if (script_event_rows[k].fields != NULL) {
            print_event_class(to, &script_event_rows[k]);
        }
    }
    fputs("---@class hr.Handler\nlocal Handler = {}\n--- The function is not called any more.\n"
          "function Handler:off() end\n\n",
          to);
}

static void print_overloads(FILE *to, const char *name)
{
    for (int k = 0; k < SCRIPT_EVENT_COUNT && strcmp(name, "on") == 0; k++) {
        const script_event_row *row = &script_event_rows[k];
        fprintf(to, "---@overload fun(event: '\"%s\"', fn: fun(e: %s%s): any): hr.Handler\n", row->name,
                row->fields == NULL ? "hr.Result.oom" : "hr.event.", row->fields == NULL ? "" : row->name);
    }
}

// ---- names --------------------------------------------------------------------------------------------------------

// To the comma behind it that is not of its own: "table<string, any>".
static size_t type_length(const char *type)
{
    int depth = 0;
    size_t length = 0;
    for (; type[length] != '\0' && (depth > 0 || type[length] != ','); length++) {
        depth += type[length] == '(' || type[length] == '<';
        depth -= type[length] == ')' || type[length] == '>';
    }
    return length;
}

// "event: string, fn: function" as a line each, and the names alone.
static void print_parameters(FILE *to, const char *parameters, char names[DESCRIBED_NAME_MAX])
{
    size_t used = 0;
    names[0] = '\0';
    while (*parameters != '\0') {
        size_t name = strcspn(parameters, ":?");
        const char *type = strchr(parameters, ':') + 2;
        const size_t length = type_length(type);
        fprintf(to, "---@param %.*s%s %.*s\n", (int)name, parameters, parameters[name] == '?' ? "?" : "",
                (int)length, type);
        used += (size_t)snprintf(names + used, DESCRIBED_NAME_MAX - used, "%s%.*s", used > 0 ? ", " : "",
                                 (int)name, parameters);
        parameters = type + length + (type[length] == ',' ? 2 : 0);
    }
}

static void print_name(FILE *to, const script_api_row *row)
{
    char names[DESCRIBED_NAME_MAX];
    fprintf(to, "---%s\n", row->line);
    if (row->parameters == NULL) {
        fprintf(to, "---@type %s\nhr.%s = nil\n\n", row->result, row->name);
        return;
    }
    print_parameters(to, row->parameters, names);
    if (row->result[0] != '\0') {
        fprintf(to, "---@return %s\n", row->result);
    }
    print_overloads(to, row->name);
    fprintf(to, "function hr.%s(%s) end\n\n", row->name, names);
}

static void print_basic_types(FILE *to)
{
    fputs("---@meta\n-- SPDX-License-Identifier: Apache-2.0\n"
          "-- Written by `headroom script --stub`: what recipes can call, for the Lua language server.\n\n"
          "---@class hr.Bytes\n---@field bytes integer\n"
          "---@operator add(hr.Size): hr.Bytes\n---@operator sub(hr.Size): hr.Bytes\n"
          "---@operator mul(number): hr.Bytes\n---@operator div(number): hr.Bytes\n---@operator unm: "
          "hr.Bytes\n\n"
          "---@alias hr.Size hr.Bytes|integer|string\n\n",
          to);
}

void lua_script_print_stub(FILE *to)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    print_basic_types(to);
    print_class(to, "hr.Result", hr_report_fields());
    print_knobs(to);
    print_events(to);
    for (size_t k = 0; k < count; k++) {
        if (rows[k].options != NULL) {
            print_options(to, &rows[k]);
        }
    }
    fputs("---@class hr\nhr = {}\n\n", to);
    for (size_t k = 0; k < count; k++) {
        print_name(to, &rows[k]);
    }
}
