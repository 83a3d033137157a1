// SPDX-License-Identifier: Apache-2.0
#include "knobs/preset_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { LIST_MAX = 256 };

static const char *const words[] = {"title", "description", "extends", "model"};
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
    size_t count;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t i = 0; i < count; i++) {
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
    size_t count;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (is_in_group(&rows[i], group) && strcmp(leaf_of(&rows[i]), key) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

// ---- what was meant -------------------------------------------------------------------------------------------

// Appends "'device', 'allocator'": the groups that have a key of this name.
static void list_homes(const char *key, char homes[LIST_MAX])
{
    size_t count, length = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    homes[0] = '\0';
    for (size_t i = 0; i < count && length < LIST_MAX; i++) {
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
    size_t count, length = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    list[0] = '\0';
    for (size_t i = 0; i < count && length < LIST_MAX; i++) {
        if (is_in_group(&rows[i], group)) {
            length += (size_t)snprintf(list + length, LIST_MAX - length, "%s%s", length > 0 ? ", " : "",
                                       leaf_of(&rows[i]));
        }
    }
}

// The words that may stand at the left margin: the four, and every group once.
static size_t list_margin(const char *margin[WORD_COUNT + HR_KNOB_COUNT], char groups[HR_KNOB_COUNT][32])
{
    size_t count, found = WORD_COUNT;
    const hr_knob_row *rows = hr_knob_rows(&count);
    memcpy(margin, words, sizeof words);
    for (size_t i = 0; i < count; i++) {
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
    size_t count, found = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t i = 0; i < count; i++) {
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

static void report_unknown_in_group(yaml_file *file, const char *group, const yaml_node *node)
{
    char homes[LIST_MAX], list[LIST_MAX];
    const hr_knob_row *near = nearest_row(group, node->key), *elsewhere = nearest_row(NULL, node->key);
    list_homes(node->key, homes);
    if (preset_is_group(node->key) || preset_is_word(node->key)) {
        yaml_problem(file, node->key_line, node->key_column,
                     "'%s' belongs at the left margin, not under '%s'", node->key, group);
    } else if (homes[0] != '\0') {
        yaml_problem(file, node->key_line, node->key_column,
                     "unknown key '%s' in '%s' — '%s' belongs under %s", node->key, group, node->key, homes);
    } else if (near != NULL) {
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s' in '%s' — did you mean '%s'?",
                     node->key, group, leaf_of(near));
    } else if (elsewhere != NULL) {
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s' in '%s' — did you mean %s?",
                     node->key, group, elsewhere->key);
    } else {
        list_group(group, list);
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s' in '%s': it has %s", node->key,
                     group, list);
    }
}

static void report_unknown_at_margin(yaml_file *file, const yaml_node *node)
{
    const char *margin[WORD_COUNT + HR_KNOB_COUNT];
    char groups[HR_KNOB_COUNT][32], homes[LIST_MAX];
    const char *near = text_nearest(node->key, margin, list_margin(margin, groups));
    const hr_knob_row *row = hr_knob_find(node->key, NULL), *elsewhere = nearest_row(NULL, node->key);
    list_homes(node->key, homes);
    if (row != NULL) {
        yaml_problem(file, node->key_line, node->key_column,
                     "'%s' is written as '%s:' indented below '%.*s:'", node->key, leaf_of(row),
                     (int)strcspn(row->key, "."), row->key);
    } else if (homes[0] != '\0') {
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s' — '%s' belongs under %s",
                     node->key, node->key, homes);
    } else if (near != NULL) {
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s' — did you mean '%s'?",
                     node->key, near);
    } else if (elsewhere != NULL) {
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s' — did you mean %s?", node->key,
                     elsewhere->key);
    } else {
        yaml_problem(file, node->key_line, node->key_column, "unknown key '%s': see `headroom knobs`",
                     node->key);
    }
}

void preset_report_unknown(yaml_file *file, const char *group, const yaml_node *node)
{
    if (group == NULL) {
        report_unknown_at_margin(file, node);
    } else {
        report_unknown_in_group(file, group, node);
    }
}

void preset_report_bare_group(yaml_file *file, const yaml_node *node)
{
    char list[LIST_MAX];
    list_group(node->key, list);
    yaml_problem(file, node->line, node->column, "'%s' needs keys indented below it: %s", node->key, list);
}
