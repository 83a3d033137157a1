// SPDX-License-Identifier: Apache-2.0
// Learn: every word of the screens with what others call it, and the situations of the articles to be opened.
#include "app/tui/screens/learn/learn.h"

#include <stdio.h>
#include <string.h>

#include "headroom/terms.h"

enum { COLUMN_NAME, COLUMN_LINE };

hr_status learn_open(learn_state *s, hr_err *err)
{
    if (s->looked) {
        return HR_OK;
    }
    s->looked = true;
    const hr_status status = hr_preset_list("articles", &s->entries, &s->count, err);
    if (status != HR_OK) {
        s->entries = NULL;
        s->count = 0;
    }
    return status == HR_OK ? lessons_read(s, err) : status;
}

void learn_close(learn_state *s)
{
    hr_preset_list_free(s->entries);
    lessons_free(s);
    lesson_end(&s->lesson);
    *s = (learn_state){0};
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

static const hr_term *selected_term(const pane_view *v)
{
    return term_at(table_selected(&v->tables[PANE_TERMS]));
}

static void draw_terms(const canvas *c, const pane_view *v)
{
    pane_draw_table(c, v, "/ searches");
}

static void say_term(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const hr_term *term = selected_term(v);
    if (term == NULL) {
        snprintf(text, PANE_TEXT_MAX, "No term matches.");
        return;
    }
    snprintf(text, PANE_TEXT_MAX, "%s: %s.%s%s%s", term->name, term->line,
             term->formula == NULL ? "" : " It is ", term->formula == NULL ? "" : term->formula,
             term->formula == NULL ? "" : ".");
}

static const char *name_of_term(const pane_view *v)
{
    const hr_term *term = selected_term(v);
    return term == NULL ? NULL : term->name;
}

const pane_ops pane_terms = {.draw = draw_terms,
                             .table = &terms,
                             .table_y = 1,
                             .say = say_term,
                             .term = "terms",
                             .term_of_row = name_of_term};

// ---- meaning --------------------------------------------------------------------------------------------------

static void draw_meaning(const canvas *c, const pane_view *v)
{
    const hr_term *term = selected_term(v);
    paint_rule(c, v->focused, pane_title(PANE_MEANING), term == NULL ? "" : term->name);
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

static pane_request move_meaning(const pane_view *v, void *own, int rows, int columns)
{
    (void)own;
    (void)v;
    return columns != 0 ? (pane_request){0}
                        : (pane_request){.kind = PANE_MOVES_TABLE, .pane = PANE_TERMS, .rows = rows};
}

static bool copy_meaning(const pane_view *v, char *text, size_t size)
{
    const hr_term *term = selected_term(v);
    if (term == NULL) {
        return false;
    }
    snprintf(text, size, "%s: %s", term->name, term->line);
    return true;
}

const pane_ops pane_meaning = {.draw = draw_meaning,
                               .move = move_meaning,
                               .say = say_term,
                               .term = "terms",
                               .term_of_row = name_of_term,
                               .copy = copy_meaning};

// ---- situations -----------------------------------------------------------------------------------------------

static const table_column situation_columns[] = {
    [COLUMN_NAME] = {.term = "preset", .width = 28},
    [COLUMN_LINE] = {.term = "title"},
};

static size_t count_situations(const void *of)
{
    const learn_state *s = of;
    return s->count;
}

static void situation_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const learn_state *s = of;
    const hr_preset_entry *entry = &s->entries[row];
    snprintf(text, TABLE_CELL_MAX, "%s", column == COLUMN_NAME ? entry->name : entry->title);
}

static uint64_t count_as_version(const void *of)
{
    const learn_state *s = of;
    return s->count;
}

static role situation_role(const void *of, size_t row)
{
    const learn_state *s = of;
    bool open = strcmp(s->entries[row].name, hr_preset_name(s->feed->preset)) == 0;
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

const hr_preset_entry *learn_situation(const learn_state *s)
{
    const size_t row = table_selected(s->table);
    return row < s->count ? &s->entries[row] : NULL;
}

// What the selected situation says of itself; "": nothing.
static const char *claim_of(const learn_state *s, const hr_preset_entry *entry)
{
    return entry != NULL && strcmp(s->about->name, entry->name) == 0 ? s->about->text : "";
}

// What the selected situation claims stands below the list.
static void draw_situations(const canvas *c, const pane_view *v)
{
    enum { LIST_MIN = 4 };
    const char *claim = v->focused ? claim_of(v->rows, learn_situation(v->rows)) : "";
    size_t at = 0, start, length;
    int rows = 0;
    while (rows < c->area.h - LIST_MIN && wrap_next(c->glyphs, claim, c->area.w - 2, &at, &start, &length)) {
        rows++;
    }
    pane_table_rule(c, v, "Enter opens one and trains it");
    canvas table = canvas_sub(c, 0, 0, c->area.h - rows, c->area.w);
    canvas words = canvas_sub(c, c->area.h - rows, 1, rows, c->area.w - 2);
    words.said_later = v->expands;
    table_draw(&table, 1, v->rows, &list, &v->tables[PANE_SITUATIONS], v->focused);
    paint_wrapped(&words, 0, ROLE_TEXT, claim);
}

static pane_request enter_situation(const pane_view *v, void *own)
{
    (void)own;
    const hr_preset_entry *entry = learn_situation(v->rows);
    pane_request r = {.kind = PANE_SAYS, .text = "there is no situation to open here"};
    if (entry != NULL) {
        r.kind = PANE_OPENS_PRESET;
        snprintf(r.text, sizeof r.text, "%s", entry->name);
    }
    return r;
}

static void say_situation(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const hr_preset_entry *entry = learn_situation(v->rows);
    const char *claim = claim_of(v->rows, entry);
    if (entry == NULL) {
        snprintf(text, PANE_TEXT_MAX, "%s", list.empty);
    } else {
        snprintf(text, PANE_TEXT_MAX, "%s: %s. %.800s%sEnter opens it.", entry->name, entry->title, claim,
                 claim[0] == '\0' ? "" : " ");
    }
}

const pane_ops pane_situations = {.draw = draw_situations,
                                  .table = &list,
                                  .table_y = 1,
                                  .enter = enter_situation,
                                  .enter_does = "open",
                                  .say = say_situation,
                                  .term = "situations"};

// ---- its place ------------------------------------------------------------------------------------------------

void place_learn(layout *l, rect body, const layout_wish *wish)
{
    if (wish->focus == PANE_LESSON) { // a page has the whole screen
        l->pane[PANE_LESSON] = body;
        return;
    }
    if (body.w >= 120) {
        rect left = cut_left(&body, body.w / 2);
        l->pane[PANE_LESSONS] = cut_top(&left, left.h / 2);
        l->pane[PANE_TERMS] = left;
        l->pane[PANE_LESSON] = cut_top(&body, layout_clamp(body.h / 4, 7, 12));
        l->pane[PANE_MEANING] = cut_top(&body, layout_clamp(body.h / 3, 9, 14));
        l->pane[PANE_SITUATIONS] = body;
        return;
    }
    // the part with the focus has the rows that the others can do without
    enum { FEW = 5 };
    const bool situations = wish->focus == PANE_SITUATIONS, lessons = wish->focus == PANE_LESSONS;
    const int most = body.h - 2 * FEW;
    rect top = cut_top(&body, lessons ? most : FEW);
    l->pane[PANE_LESSONS] = cut_left(&top, body.w / 2 + 4);
    l->pane[PANE_LESSON] = top;
    l->pane[PANE_SITUATIONS] = cut_bottom(&body, situations ? most : FEW);
    l->pane[PANE_TERMS] = cut_left(&body, body.w / 2 + 4);
    l->pane[PANE_MEANING] = body;
}
