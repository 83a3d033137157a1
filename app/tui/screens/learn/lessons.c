// SPDX-License-Identifier: Apache-2.0
// The course as a list, and what of it was done.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/learn/learn.h"

enum { COLUMN_DONE, COLUMN_NAME, COLUMN_LINE };

// ---- the table ------------------------------------------------------------------------------------------------

static const table_column columns[] = {
    [COLUMN_DONE] = {.term = "done", .width = 5},
    [COLUMN_NAME] = {.term = "lesson", .width = 28},
    [COLUMN_LINE] = {.term = "title", .from_width = 60},
};

static size_t count_lessons(const void *of)
{
    const learn_state *s = of;
    return s->lesson_count;
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const learn_state *s = of;
    const hr_lesson_progress *p = &s->progress[row];
    const char *done = p->done ? "done" : p->runs > 0 || p->hints > 0 ? "begun" : "";
    const char *line = s->lessons[row].title[0] != '\0' ? s->lessons[row].line : "cannot be read";
    (void)snprintf(text, TABLE_CELL_MAX, "%s",
                   column == COLUMN_DONE   ? done
                   : column == COLUMN_NAME ? s->lessons[row].name
                                           : line);
}

static role role_of(const void *of, size_t row)
{
    const learn_state *s = of;
    return s->progress[row].done ? ROLE_GOOD : ROLE_TEXT;
}

static uint64_t version(const void *of)
{
    const learn_state *s = of;
    uint64_t sum = s->lesson_count;
    for (size_t k = 0; k < s->lesson_count; k++) {
        sum = sum * 31 + s->progress[k].done * 2 + (s->progress[k].runs > 0);
    }
    return sum;
}

static const table_source list = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count_lessons,
    .cell = cell,
    .version = version,
    .role_of = role_of,
    .empty = "No lessons were found: scripts/lessons is not installed.",
    .selects = true,
};

static const hr_lesson_entry *selected(const pane_view *v)
{
    const learn_state *s = v->rows;
    const size_t row = table_selected(&v->tables[PANE_LESSONS]);
    return row < s->lesson_count ? &s->lessons[row] : NULL;
}

static void draw(const canvas *c, const pane_view *v)
{
    pane_draw_table(c, v, "Enter opens one");
}

static pane_request enter(const pane_view *v, void *own)
{
    const hr_lesson_entry *entry = selected(v);
    const learn_state *l = own;
    hr_err err;
    if (entry == NULL) {
        return pane_says("there is no lesson to open here");
    }
    const bool is_open = l->lesson.open != NULL && !l->lesson.is_broken &&
                         strcmp(hr_lesson_tell(l->lesson.open)->name, entry->name) == 0;
    if (!is_open && lesson_begin(own, entry->name, &err) != HR_OK) {
        return pane_says("%s", err.sentence);
    }
    return (pane_request){.kind = PANE_FOCUSES, .pane = PANE_LESSON};
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const hr_lesson_entry *entry = selected(v);
    if (entry == NULL) {
        (void)snprintf(text, PANE_TEXT_MAX, "%s", list.empty);
    } else {
        (void)snprintf(text, PANE_TEXT_MAX, "%s: %s, %s. Enter opens it.", entry->name, entry->title,
                       entry->line);
    }
}

const pane_ops pane_lessons = {.draw = draw,
                               .table = &list,
                               .table_y = 1,
                               .enter = enter,
                               .enter_does = "open",
                               .say = say,
                               .term = "lessons"};
