// SPDX-License-Identifier: Apache-2.0
// The knob table as JSON, as a JSON schema for presets, and as Markdown.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/emit.h"
#include "app/cli/knobs.h"

// ---- a row in words ------------------------------------------------------------------------------------------------

void knob_group(const hr_knob_row *row, char group[KNOB_GROUP_MAX])
{
    (void)snprintf(group, KNOB_GROUP_MAX, "%.*s", (int)strcspn(row->key, "."), row->key);
}

const char *knob_leaf(const hr_knob_row *row)
{
    return strchr(row->key, '.') + 1;
}

bool knob_begins_group(const hr_knob_row *row)
{
    size_t length = strcspn(row->key, ".") + 1;
    return row->id == 0 || strncmp(hr_knob_rows(NULL)[row->id - 1].key, row->key, length) != 0;
}

static void choices_of(const hr_knob_row *row, char range[KNOB_RANGE_MAX])
{
    size_t length = 0;
    for (int k = 0; row->choices[k] != NULL && length < KNOB_RANGE_MAX; k++) {
        length += (size_t)snprintf(range + length, KNOB_RANGE_MAX - length, "%s%s", k > 0 ? ", " : "",
                                   row->choices[k]);
    }
}

const char *knob_range(const hr_knob_row *row, char range[KNOB_RANGE_MAX])
{
    char least[HR_BYTES_TEXT_MAX];
    char most[HR_BYTES_TEXT_MAX];
    const char *blank = row->unit[0] == '\0' ? "" : " ";
    switch (row->type) {
    case HR_KNOB_CHOICE:
        choices_of(row, range);
        break;
    case HR_KNOB_BYTES:
        (void)snprintf(range, KNOB_RANGE_MAX, "%s to %s", hr_bytes_exact((uint64_t)row->min, least),
                       hr_bytes_exact((uint64_t)row->max, most));
        break;
    case HR_KNOB_INT:
        (void)snprintf(range, KNOB_RANGE_MAX, "%.0f to %.0f%s%s", row->min, row->max, blank, row->unit);
        break;
    case HR_KNOB_REAL:
        (void)snprintf(range, KNOB_RANGE_MAX, "%g to %g%s%s", row->min, row->max, blank, row->unit);
        break;
    case HR_KNOB_TEXT:
        (void)snprintf(range, KNOB_RANGE_MAX, "a text");
        break;
    }
    return range;
}

const char *knob_default(const hr_knob_row *row)
{
    return row->preset_default[0] != '\0' ? row->preset_default : hr_knob_unset_word(row);
}

static const char *const type_names[] = {[HR_KNOB_INT] = "integer",
                                         [HR_KNOB_REAL] = "number",
                                         [HR_KNOB_BYTES] = "bytes",
                                         [HR_KNOB_CHOICE] = "choice",
                                         [HR_KNOB_TEXT] = "text"};

static void print_choices(emitter *e, const char *key, const hr_knob_row *row)
{
    emit_array(e, key);
    for (int k = 0; row->choices[k] != NULL; k++) {
        emit_text(e, NULL, row->choices[k]);
    }
    emit_end_array(e);
}

// ---- JSON -----------------------------------------------------------------------------------------------------

static void print_row(emitter *e, const hr_knob_row *row)
{
    bool ranged = row->type != HR_KNOB_CHOICE && row->type != HR_KNOB_TEXT;
    emit_object(e, NULL);
    emit_text(e, "key", row->key);
    emit_text(e, "type", type_names[row->type]);
    emit_text(e, "unit", row->unit);
    if (ranged) {
        emit_real(e, "min", row->min, EMIT_EXACT);
        emit_real(e, "max", row->max, EMIT_EXACT);
    }
    if (row->type == HR_KNOB_CHOICE) {
        print_choices(e, "choices", row);
    }
    emit_text(e, "default", row->preset_default[0] != '\0' ? row->preset_default : NULL);
    emit_bool(e, "hot", row->hot);
    emit_text(e, "line", row->line);
    emit_text(e, "explanation", row->explanation);
    emit_text(e, "applies", row->applies);
    emit_end_object(e);
}

void knobs_print_json(void)
{
    emitter e = {.out = stdout};
    emit_array(&e, NULL);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        print_row(&e, &hr_knob_rows(NULL)[k]);
    }
    emit_end_array(&e);
}

// ---- schema ---------------------------------------------------------------------------------------------------

// A switch is also written as a boolean; YAML 1.2 takes yes and no for texts.
static void schema_choice(emitter *e, const hr_knob_row *row)
{
    emit_array(e, "enum");
    for (int k = 0; row->choices[k] != NULL; k++) {
        emit_text(e, NULL, row->choices[k]);
    }
    if (hr_knob_is_switch(row)) {
        emit_bool(e, NULL, false);
        emit_bool(e, NULL, true);
        emit_text(e, NULL, "no");
        emit_text(e, NULL, "yes");
    }
    emit_end_array(e);
}

static void schema_number(emitter *e, const hr_knob_row *row, bool bytes)
{
    bool optional = row->preset_default[0] == '\0';
    if (bytes || optional) {
        emit_array(e, "type");
        emit_text(e, NULL, row->type == HR_KNOB_REAL ? "number" : "integer");
        emit_text(e, NULL, "string");
        emit_end_array(e);
        char pattern[80];
        (void)snprintf(pattern, sizeof pattern, "%s^%s$",
                       bytes ? "^[0-9]+(\\.[0-9]+)? ?([KMGT]i?B|B)?$|" : "", hr_knob_unset_word(row));
        emit_text(e, "pattern", pattern);
    } else {
        emit_text(e, "type", row->type == HR_KNOB_REAL ? "number" : "integer");
    }
    emit_real(e, "minimum", row->min, EMIT_EXACT);
    emit_real(e, "maximum", row->max, EMIT_EXACT);
}

static void schema_default(emitter *e, const hr_knob_row *row)
{
    bool number = row->type == HR_KNOB_INT || row->type == HR_KNOB_REAL;
    if (row->preset_default[0] == '\0') {
        return;
    }
    if (number) {
        emit_real(e, "default", strtod(row->preset_default, NULL), EMIT_EXACT);
    } else {
        emit_text(e, "default", row->preset_default);
    }
}

static void schema_knob(emitter *e, const hr_knob_row *row)
{
    emit_object(e, knob_leaf(row));
    emit_text(e, "description", row->line);
    if (row->type == HR_KNOB_CHOICE) {
        schema_choice(e, row);
    } else if (row->type == HR_KNOB_TEXT) {
        emit_text(e, "type", "string");
    } else {
        schema_number(e, row, row->type == HR_KNOB_BYTES);
    }
    schema_default(e, row);
    emit_end_object(e);
}

static void end_group(emitter *e)
{
    emit_end_object(e); // properties
    emit_bool(e, "additionalProperties", false);
    emit_end_object(e);
}

// The sizes of a model stand in `model`, beside the layers or the name of another: schema_words.
static void schema_groups(emitter *e)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char group[KNOB_GROUP_MAX];
        if (hr_knob_is_size(rows[k].id)) {
            continue;
        }
        if (knob_begins_group(&rows[k])) {
            if (k > 0) {
                end_group(e);
            }
            knob_group(&rows[k], group);
            emit_object(e, group);
            emit_text(e, "type", "object");
            emit_object(e, "properties");
        }
        schema_knob(e, &rows[k]);
    }
    end_group(e);
}

static void schema_words(emitter *e)
{
    static const char *const words[] = {"title", "description", "note", "extends"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        emit_object(e, words[k]);
        emit_text(e, "type", "string");
        emit_end_object(e);
    }
    emit_object(e, "model");
    emit_array(e, "type");
    emit_text(e, NULL, "string");
    emit_text(e, NULL, "object");
    emit_end_array(e);
    emit_end_object(e);
    emit_object(e, "widths");
    emit_text(e, "type", "object");
    emit_object(e, "additionalProperties");
    emit_text(e, "type", "integer");
    emit_end_object(e);
    emit_end_object(e);
}

void knobs_print_schema(void)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "$schema", "https://json-schema.org/draft/2020-12/schema");
    emit_text(&e, "title", "headroom preset");
    emit_text(&e, "type", "object");
    emit_object(&e, "properties");
    schema_words(&e);
    schema_groups(&e);
    emit_end_object(&e);
    emit_bool(&e, "additionalProperties", false);
    emit_end_object(&e);
}

// ---- Markdown -------------------------------------------------------------------------------------------------

void knobs_print_markdown(void)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    puts("| knob | default | values | meaning |\n|---|---|---|---|");
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char range[KNOB_RANGE_MAX];
        printf("| `%s` | %s | %s | %s |\n", rows[k].key, knob_default(&rows[k]), knob_range(&rows[k], range),
               rows[k].line);
    }
}
