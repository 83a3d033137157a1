// SPDX-License-Identifier: Apache-2.0
// Learn: every word of the screens with what others call it, and the situations of the articles to be opened.
#include "app/tui/screens/learn.h"

#include <stdio.h>
#include <string.h>

#include "headroom/terms.h"

#include "app/tui/screens/screens.h"

enum { COLUMN_NAME, COLUMN_LINE };

void learn_open(app *a)
{
    situations *s = &a->situations;
    hr_err err;
    if (s->looked) {
        return;
    }
    s->looked = true;
    if (hr_preset_list("articles", &s->entries, &s->count, &err) != HR_OK) {
        *s = (situations){.looked = true};
        feed_say_error(&a->feed, &err);
    }
}

void learn_close(situations *s)
{
    hr_preset_list_free(s->entries);
    *s = (situations){0};
}

// ---- terms ----------------------------------------------------------------------------------------------------

static const table_column term_columns[] = {
    [COLUMN_NAME] = {.term = "term", .width = 25},
    [COLUMN_LINE] = {.term = "meaning", .from_width = 44},
};

static size_t count_terms(const void *of)
{
    size_t count;
    (void)of;
    hr_terms(&count);
    return count;
}

static const hr_term *term_at(size_t row)
{
    size_t count;
    const hr_term *terms = hr_terms(&count);
    return row < count ? &terms[row] : NULL;
}

static void term_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    (void)of;
    size_t count;
    const hr_term *term = &hr_terms(&count)[row];
    snprintf(text, TABLE_CELL_MAX, "%s", column == COLUMN_NAME ? term->name : term->line);
}

static uint64_t never_changes(const void *of)
{
    (void)of;
    return 0;
}

static const table_source terms = {
    .columns = term_columns,
    .column_count = sizeof term_columns / sizeof *term_columns,
    .count = count_terms,
    .cell = term_cell,
    .version = never_changes,
    .empty = "There are no terms.",
};

static const hr_term *selected_term(const app *a)
{
    return term_at(table_selected(&a->table[PANE_TERMS]));
}

static void draw_terms(const canvas *c, const app *a)
{
    bool focused = a->focus == PANE_TERMS;
    const pane_view v = pane_view_of(a, PANE_TERMS);
    pane_table_rule(c, &v, "/ searches");
    table_draw(c, 1, &a->feed, &terms, &a->table[PANE_TERMS], focused);
}

static void say_term(app *a)
{
    const hr_term *term = selected_term(a);
    if (term == NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "No term matches.");
        return;
    }
    feed_say(&a->feed, MESSAGE_NOTE, "%s: %s.%s%s%s", term->name, term->line,
             term->formula == NULL ? "" : " It is ", term->formula == NULL ? "" : term->formula,
             term->formula == NULL ? "" : ".");
}

static const char *name_of_term(const app *a)
{
    const hr_term *term = selected_term(a);
    return term == NULL ? "terms" : term->name;
}

const pane_ops pane_terms = {.by_app.draw = draw_terms,
                             .table = &terms,
                             .table_y = 1,
                             .by_app.say = say_term,
                             .by_app.term = name_of_term};

// ---- meaning --------------------------------------------------------------------------------------------------

static void draw_meaning(const canvas *c, const app *a)
{
    const hr_term *term = selected_term(a);
    paint_rule(c, a->focus == PANE_MEANING, pane_title(PANE_MEANING), term == NULL ? "" : term->name);
    if (term == NULL) {
        paint_text(c, 1, 1, c->area.w - 2, ROLE_DIM, "No term matches.");
        return;
    }
    const struct {
        const char *label, *value;
    } rows[] = {{"formula", term->formula},
                {"unit", term->unit != NULL && term->unit[0] != '\0' ? term->unit : NULL},
                {"TensorFlow", term->tensorflow},
                {"PyTorch", term->pytorch},
                {"nvidia-smi", term->nvidia_smi}};
    canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    int y = paint_wrapped(&words, 0, ROLE_TEXT, term->line);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && y < words.area.h; i++) {
        if (rows[i].value != NULL) {
            canvas value = canvas_sub(&words, y, 11, words.area.h - y, words.area.w - 11);
            paint_text(&words, y, 0, 10, ROLE_DIM, rows[i].label);
            y += paint_wrapped(&value, 0, ROLE_TEXT, rows[i].value);
        }
    }
}

static bool move_meaning(app *a, int rows, int columns)
{
    table_move(&a->table[PANE_TERMS], &terms, &a->feed, rows);
    return columns == 0;
}

static bool copy_meaning(const app *a, char *text, size_t size)
{
    const hr_term *term = selected_term(a);
    if (term == NULL) {
        return false;
    }
    snprintf(text, size, "%s: %s", term->name, term->line);
    return true;
}

const pane_ops pane_meaning = {.by_app.draw = draw_meaning,
                               .by_app.move = move_meaning,
                               .by_app.say = say_term,
                               .by_app.term = name_of_term,
                               .by_app.copy = copy_meaning};

// ---- situations -----------------------------------------------------------------------------------------------

static const table_column situation_columns[] = {
    [COLUMN_NAME] = {.term = "preset", .width = 28},
    [COLUMN_LINE] = {.term = "title"},
};

static size_t count_situations(const void *of)
{
    const app *a = of;
    return a->situations.count;
}

static void situation_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const app *a = of;
    const hr_preset_entry *entry = &a->situations.entries[row];
    snprintf(text, TABLE_CELL_MAX, "%s", column == COLUMN_NAME ? entry->name : entry->title);
}

static uint64_t count_as_version(const void *of)
{
    const app *a = of;
    return a->situations.count;
}

static role situation_role(const void *of, size_t row)
{
    const app *a = of;
    bool open = strcmp(a->situations.entries[row].name, hr_preset_name(a->feed.preset)) == 0;
    return open ? ROLE_GOOD : ROLE_TEXT;
}

static const table_source list = {
    .columns = situation_columns,
    .column_count = sizeof situation_columns / sizeof *situation_columns,
    .count = count_situations,
    .cell = situation_cell,
    .version = count_as_version,
    .role_of = situation_role,
    .empty = "No situations were found: presets/articles is not installed. p shows what there is.",
};

const hr_preset_entry *learn_situation(const app *a)
{
    size_t row = table_selected(&a->table[PANE_SITUATIONS]);
    return row < a->situations.count ? &a->situations.entries[row] : NULL;
}

// What the selected situation claims stands below the list.
static void draw_situations(const canvas *c, const app *a)
{
    enum { LIST_MIN = 4 };
    bool focused = a->focus == PANE_SITUATIONS;
    const hr_preset_entry *entry = learn_situation(a);
    const char *claim =
        focused && entry != NULL && strcmp(a->about.name, entry->name) == 0 ? a->about.text : "";
    size_t at = 0, start, length;
    int rows = 0;
    while (rows < c->area.h - LIST_MIN && wrap_next(c->glyphs, claim, c->area.w - 2, &at, &start, &length)) {
        rows++;
    }
    const pane_view v = pane_view_of(a, PANE_SITUATIONS);
    pane_table_rule(c, &v, "Enter opens one and trains it");
    canvas table = canvas_sub(c, 0, 0, c->area.h - rows, c->area.w);
    canvas words = canvas_sub(c, c->area.h - rows, 1, rows, c->area.w - 2);
    words.said_later = app_layout(a).kind == LAYOUT_FULL && !a->expanded; // e shows the pane alone
    table_draw(&table, 1, a, &list, &a->table[PANE_SITUATIONS], focused);
    paint_wrapped(&words, 0, ROLE_TEXT, claim);
}

static void enter_situation(app *a)
{
    size_t row = table_selected(&a->table[PANE_SITUATIONS]);
    if (row < a->situations.count) {
        app_open_preset(a, a->situations.entries[row].name);
    } else {
        feed_say(&a->feed, MESSAGE_NOTE, "there is no situation to open here");
    }
}

static void say_situation(app *a)
{
    size_t row = table_selected(&a->table[PANE_SITUATIONS]);
    if (row < a->situations.count) {
        app_read_about(a, a->situations.entries[row].name);
        feed_say(&a->feed, MESSAGE_NOTE, "%s: %s. %s%sEnter opens it.", a->situations.entries[row].name,
                 a->situations.entries[row].title, a->about.text, a->about.text[0] == '\0' ? "" : " ");
    } else {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", list.empty);
    }
}

static const char *term_situations(const app *a)
{
    (void)a;
    return "situations";
}

const pane_ops pane_situations = {.by_app.draw = draw_situations,
                                  .table = &list,
                                  .table_y = 1,
                                  .by_app.enter = enter_situation,
                                  .enter_does = "open",
                                  .by_app.say = say_situation,
                                  .by_app.term = term_situations};

// ---- its place ------------------------------------------------------------------------------------------------

void place_learn(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    if (body.w >= 120) {
        l->pane[PANE_TERMS] = cut_left(&body, body.w / 2);
        l->pane[PANE_MEANING] = cut_top(&body, layout_clamp(body.h / 3, 9, 14));
        l->pane[PANE_SITUATIONS] = body;
        return;
    }
    l->pane[PANE_SITUATIONS] = cut_bottom(&body, body.h * 8 / 19);
    l->pane[PANE_TERMS] = cut_left(&body, body.w / 2 + 4);
    l->pane[PANE_MEANING] = body;
}
