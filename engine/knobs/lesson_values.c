// SPDX-License-Identifier: Apache-2.0
#include "knobs/lesson_values.h"

#include <string.h>

#include "headroom/report_fields.h"

#include "base/text.h"
#include "knobs/preset_keys.h"
#include "knobs/search.h"

// ---- values ---------------------------------------------------------------------------------------------------

void *lesson_memory(lesson_reading *r, size_t count, size_t size)
{
    void *memory = arena_take(&r->lesson->memory, count + 1, size);
    r->no_memory = r->no_memory || memory == NULL;
    return memory;
}

const char *lesson_keep_text(lesson_reading *r, const char *words)
{
    const char *kept = arena_print(&r->lesson->memory, "%s", words);
    r->no_memory = r->no_memory || kept == NULL;
    return kept == NULL ? "" : kept;
}

const char *lesson_take_text(lesson_reading *r, const yaml_node *node)
{
    if (node->kind != YAML_SCALAR) {
        yaml_problem(r->file, node->line, node->column, "'%s' needs a text",
                     node->key == NULL ? "-" : node->key);
        return "";
    }
    return lesson_keep_text(r, node->text);
}

const char *lesson_take_preset(lesson_reading *r, const yaml_node *node, const char *words)
{
    char folder[SEARCH_PATH_MAX], path[SEARCH_PATH_MAX];
    if (!search_is_preset_path(words)) {
        return lesson_keep_text(r, words);
    }
    search_folder_of(r->path, folder);
    if (search_leaves_folder(words) || !search_join(folder, words, path) ||
        !search_lies_below(path, folder)) {
        yaml_problem(r->file, node->line, node->column, "a lesson's preset lies in its own folder, had '%s'",
                     words);
        return "";
    }
    return lesson_keep_text(r, path);
}

uint32_t lesson_take_count(lesson_reading *r, const yaml_node *node, int64_t most)
{
    int64_t number = 0;
    if (node->kind != YAML_SCALAR || !text_to_int(node->text, &number) || number < 1 || number > most) {
        yaml_problem(r->file, node->line, node->column, "'%s' needs a whole number of 1 to %lld", node->key,
                     (long long)most);
        return 1;
    }
    return (uint32_t)number;
}

void lesson_take_texts(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out)
{
    if (node->kind != YAML_SEQUENCE) {
        yaml_problem(r->file, node->line, node->column, "'%s' needs a list, each line of it with '- '",
                     node->key);
        return;
    }
    hr_lesson_text *texts = lesson_memory(r, node->count, sizeof *texts);
    for (const yaml_node *child = node->child; child != NULL && texts != NULL; child = child->next) {
        texts[out->count++] = (hr_lesson_text){lesson_take_text(r, child), child->line};
    }
    out->data = texts;
}

// ---- what a lesson's values have to be --------------------------------------------------------------------------

void lesson_report(lesson_reading *r, const yaml_node *node, const hr_err *err)
{
    yaml_problem(r->file, node->line, node->column, "%s", err->sentence);
}

void lesson_check_run_name(lesson_reading *r, const yaml_node *child)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char spelled[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const size_t length = strlen(child->key);
    if (length == 0 || length >= sizeof((hr_lesson_seen *)NULL)->name || strspn(child->key, letters) == 0 ||
        strspn(child->key, spelled) != length) {
        yaml_problem(r->file, child->key_line, child->key_column,
                     "a run's name is one short word of letters, digits and '_', had '%s'", child->key);
        return;
    }
    bool taken = strcmp(child->key, "knobs") == 0 || strcmp(child->key, "events") == 0;
    for (uint32_t k = 0; k < r->name_count; k++) {
        taken = taken || strcmp(r->names[k], child->key) == 0;
    }
    for (const hr_field *field = hr_report_fields(); !hr_field_is_end(field); field++) {
        taken = taken || (field->name != NULL && strcmp(field->name, child->key) == 0);
    }
    if (taken) {
        yaml_problem(r->file, child->key_line, child->key_column,
                     "'%s' is a word of its own in a path: a run needs another name", child->key);
    }
}

void lesson_check_that(lesson_reading *r, const yaml_node *node)
{
    hr_err err = {0};
    if (node->kind == YAML_SCALAR &&
        lesson_check_condition(node->text, r->names, r->name_count, &err) != HR_OK) {
        lesson_report(r, node, &err);
    }
}

void lesson_take_conditions(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out)
{
    lesson_take_texts(r, node, out);
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_SEQUENCE;
         child = child->next) {
        lesson_check_that(r, child);
    }
}

void lesson_check_quotes(lesson_reading *r, const yaml_node *node)
{
    hr_err err = {0};
    if (node->kind == YAML_SCALAR && lesson_check_page(node->text, r->names, r->name_count, &err) != HR_OK) {
        lesson_report(r, node, &err);
    }
}

// As it stands; with its figures filled in it is looked at by `headroom lesson verify`.
void lesson_check_lines(lesson_reading *r, const yaml_node *node)
{
    unsigned lines = 0;
    if (node->kind != YAML_SCALAR) {
        return;
    }
    for (const char *at = node->text; *at != '\0'; lines++) {
        const size_t bytes = strcspn(at, "\n");
        if (hr_lesson_columns(at, bytes) > HR_LESSON_PAGE_COLUMNS && memchr(at, '{', bytes) == NULL) {
            yaml_problem(r->file, node->line + 1 + lines, 1,
                         "a line of a page has at most %d columns, had %zu", HR_LESSON_PAGE_COLUMNS,
                         hr_lesson_columns(at, bytes));
        }
        at += bytes + (at[bytes] == '\n');
    }
    if (lines > HR_LESSON_PAGE_LINES) {
        yaml_problem(r->file, node->line, node->column, "a page has at most %d lines, had %u",
                     HR_LESSON_PAGE_LINES, lines);
    }
    lesson_check_quotes(r, node);
}

void lesson_take_pages(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out)
{
    lesson_take_texts(r, node, out);
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_SEQUENCE;
         child = child->next) {
        if (child->kind == YAML_SCALAR) {
            lesson_check_lines(r, child);
        }
    }
}

void lesson_check_pairs(lesson_reading *r, const yaml_node *node)
{
    hr_knobs scratch;
    hr_err err = {0};
    hr_knobs_init(&scratch);
    if (node->kind == YAML_SCALAR && hr_knobs_set_pairs(&scratch, node->text, &err) != HR_OK) {
        lesson_report(r, node, &err);
    }
}

const char *lesson_take_pairs(lesson_reading *r, const yaml_node *node)
{
    lesson_check_pairs(r, node);
    return lesson_take_text(r, node);
}

void lesson_take_unlocked(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out)
{
    lesson_take_texts(r, node, out);
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_SEQUENCE;
         child = child->next) {
        const char *near = NULL;
        if (child->kind == YAML_SCALAR && !preset_is_group(child->text) &&
            hr_knob_find(child->text, &near) == NULL) {
            yaml_problem(r->file, child->line, child->column, "there is no knob '%s'%s%s%s", child->text,
                         near == NULL ? "" : " — did you mean '", near == NULL ? "" : near,
                         near == NULL ? "" : "'?");
        }
    }
}

void lesson_take_less(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out)
{
    lesson_take_texts(r, node, out);
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_SEQUENCE;
         child = child->next) {
        lesson_check_pairs(r, child);
    }
}

void lesson_take_claims(lesson_reading *r, const yaml_node *node, hr_lesson_texts *out)
{
    int64_t number = 0;
    lesson_take_texts(r, node, out);
    for (const yaml_node *child = node->child; child != NULL && node->kind == YAML_SEQUENCE;
         child = child->next) {
        if (child->kind == YAML_SCALAR && (!text_to_int(child->text, &number) || number < 1)) {
            yaml_problem(r->file, child->line, child->column, "a claim is named by its number, had '%s'",
                         child->text);
        }
    }
}

void lesson_report_unknown(lesson_reading *r, const yaml_node *node, const char *what,
                           const char *const *keys, size_t count)
{
    const char *near = text_nearest(node->key, keys, count);
    yaml_problem(r->file, node->key_line, node->key_column, "%s has no '%s'%s%s%s", what, node->key,
                 near == NULL ? "" : " — did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
}
