// SPDX-License-Identifier: Apache-2.0
#include "knobs/preset_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { LIST_MAX = 256 };

static const char *const words[] = {"title", "description", "note", "extends", "model", "widths"};
enum { WORD_COUNT = sizeof words / sizeof *words };

static bool is_in_group(const hr_knob_row *row, const char *group)
{
    size_t length = strlen(group);
    return strncmp(row->key, group, length) == 0 && row->key[length] == '.';
}

static const char *leaf_of(const hr_knob_row *row)
{
    return strchr(row->key, '.') + 1;
}

bool preset_is_word(const char *key)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (strcmp(words[i], key) == 0) {
            return true;
        }
    }
    return false;
}

bool preset_is_group(const char *key)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (size_t i = 0; i < HR_KNOB_COUNT; i++) {
        if (is_in_group(&rows[i], key)) {
            return true;
        }
    }
    return false;
}

bool preset_is_number(const hr_knob_row *row)
{
    return row->type == HR_KNOB_INT || row->type == HR_KNOB_REAL || row->type == HR_KNOB_BYTES;
}

const hr_knob_row *preset_find_row(const char *group, const char *key)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (size_t i = 0; i < HR_KNOB_COUNT; i++) {
        if (is_in_group(&rows[i], group) && strcmp(leaf_of(&rows[i]), key) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

// ---- what was meant ---------------------------------------------------------------------------------------

// Appends "'device', 'allocator'": the groups that have a key of this name.
static void list_homes(const char *key, char homes[LIST_MAX])
{
    size_t length = 0;
    const hr_knob_row *rows = hr_knob_rows(NULL);
    homes[0] = '\0';
    for (size_t i = 0; i < HR_KNOB_COUNT && length < LIST_MAX; i++) {
        if (strcmp(leaf_of(&rows[i]), key) == 0) {
            int group = (int)(leaf_of(&rows[i]) - rows[i].key) - 1;
            length += (size_t)snprintf(homes + length, LIST_MAX - length, "%s'%.*s'",
                                       length > 0 ? " or " : "", group, rows[i].key);
        }
    }
}

// "size, remainder"
static void list_group(const char *group, char list[LIST_MAX])
{
    size_t length = 0;
    const hr_knob_row *rows = hr_knob_rows(NULL);
    list[0] = '\0';
    for (size_t i = 0; i < HR_KNOB_COUNT && length < LIST_MAX; i++) {
        if (is_in_group(&rows[i], group)) {
            length += (size_t)snprintf(list + length, LIST_MAX - length, "%s%s", length > 0 ? ", " : "",
                                       leaf_of(&rows[i]));
        }
    }
}

// The words that may stand at the left margin: the four, and every group once.
static size_t list_margin(const char *margin[WORD_COUNT + HR_KNOB_COUNT], char groups[HR_KNOB_COUNT][32])
{
    size_t found = WORD_COUNT;
    const hr_knob_row *rows = hr_knob_rows(NULL);
    memcpy(margin, words, sizeof words);
    for (size_t i = 0; i < HR_KNOB_COUNT; i++) {
        snprintf(groups[i], sizeof groups[i], "%.*s", (int)strcspn(rows[i].key, "."), rows[i].key);
        if (i == 0 || strcmp(groups[i], groups[i - 1]) != 0) {
            margin[found++] = groups[i];
        }
    }
    return found;
}

// The knob in `group` (NULL: in any) whose last word is nearest; NULL when none is near.
static const hr_knob_row *nearest_row(const char *group, const char *key)
{
    const char *leaves[HR_KNOB_COUNT];
    const hr_knob_row *sources[HR_KNOB_COUNT];
    size_t found = 0;
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (size_t i = 0; i < HR_KNOB_COUNT; i++) {
        if (group == NULL || is_in_group(&rows[i], group)) {
            sources[found] = &rows[i];
            leaves[found++] = leaf_of(&rows[i]);
        }
    }
    const char *near = text_nearest(key, leaves, found);
    for (size_t i = 0; near != NULL && i < found; i++) {
        if (leaves[i] == near) {
            return sources[i];
        }
    }
    return NULL;
}

// What to say behind "unknown key 'KEY' in 'GROUP'": where the key belongs when it is one, else what was meant.
static void write_hint(const char *group, const yaml_node *node, char hint[LIST_MAX])
{
    const char *key = node->key;
    char list[LIST_MAX], groups[HR_KNOB_COUNT][32];
    const char *margin[WORD_COUNT + HR_KNOB_COUNT];
    const char *near_margin = text_nearest(key, margin, list_margin(margin, groups));
    const hr_knob_row *dotted = hr_knob_find(key, NULL), *elsewhere = nearest_row(NULL, key);
    const hr_knob_row *near = group == NULL ? NULL : nearest_row(group, key);
    list_homes(key, list);
    if (preset_is_group(key) || preset_is_word(key)) {
        snprintf(hint, LIST_MAX, " — it belongs at the left margin");
    } else if (group == NULL && node->kind == YAML_MAPPING && near_margin != NULL) { // no knob's value is one
        snprintf(hint, LIST_MAX, " — did you mean '%s'?", near_margin);
    } else if (dotted != NULL) {
        snprintf(hint, LIST_MAX, " — write '%s:' indented below '%.*s:'", leaf_of(dotted),
                 (int)strcspn(dotted->key, "."), dotted->key);
    } else if (list[0] != '\0') {
        snprintf(hint, LIST_MAX, " — it belongs under %.200s", list);
    } else if (near != NULL) {
        snprintf(hint, LIST_MAX, " — did you mean '%s'?", leaf_of(near));
    } else if (near_margin != NULL) {
        snprintf(hint, LIST_MAX, " — did you mean '%s'%s?", near_margin,
                 group == NULL ? "" : " at the left margin");
    } else if (elsewhere != NULL) {
        snprintf(hint, LIST_MAX, " — did you mean %s?", elsewhere->key);
    } else if (group != NULL) {
        list_group(group, list);
        snprintf(hint, LIST_MAX, ": it has %.200s", list);
    } else {
        snprintf(hint, LIST_MAX, ": see `headroom knobs`");
    }
}

void preset_report_unknown(yaml_file *file, const char *group, const yaml_node *node)
{
    char hint[LIST_MAX];
    write_hint(group, node, hint);
    yaml_problem(file, node->key_line, node->key_column, "unknown key '%s'%s%s%s%s", node->key,
                 group == NULL ? "" : " in '", group == NULL ? "" : group, group == NULL ? "" : "'", hint);
}

void preset_report_bare_group(yaml_file *file, const yaml_node *node)
{
    char list[LIST_MAX];
    list_group(node->key, list);
    yaml_problem(file, node->line, node->column, "'%s' needs keys indented below it: %s", node->key, list);
}
