// SPDX-License-Identifier: Apache-2.0
#include "app/tui/view/table_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"
#include "headroom/words.h"

#include "app/tui/base/format.h"
#include "app/tui/view/table_order.h"

enum { BAND_WIDTH = 2, HEADED_MIN = 4, NAME_MIN = 8 };

const char *table_column_line(const table_column *column)
{
    const hr_term *term = hr_term_find(column->term);
    return column->line != NULL ? column->line : term == NULL ? "" : term->line;
}

void table_view_init(table_view *v)
{
    memset(v, 0, sizeof *v);
    v->sort = TABLE_OWN_ORDER;
    v->made_sort = TABLE_UNSORTED;
}

void table_view_deinit(table_view *v)
{
    free(v->order);
    table_view_init(v);
}

// ---- rows -----------------------------------------------------------------------------------------------------

void table_set_filter(table_view *v, const char *text)
{
    snprintf(v->filter, sizeof v->filter, "%.*s", (int)sizeof v->filter - 1, text);
    v->settled = false;
}

static uint64_t key_of(const table_source *s, const void *of, size_t row)
{
    return s->key == NULL ? row : s->key(of, row);
}

void table_settle(table_view *v, const table_source *s, const void *of)
{
    uint64_t version = s->version(of);
    if (v->settled && v->version == version) {
        return;
    }
    table_order(v, s, of, version);
    v->settled = true;
    v->version = version;
    for (size_t i = 0; v->follows && i < v->count; i++) {
        if (key_of(s, of, v->order[i]) == v->followed) {
            v->cursor = i;
            break;
        }
    }
    v->cursor = v->count == 0 ? 0 : v->cursor < v->count ? v->cursor : v->count - 1;
}

static void note_seen(table_view *v, const table_source *s, const void *of)
{
    const size_t row = table_selected(v);
    v->was_seen = row != SIZE_MAX;
    v->seen = v->was_seen ? key_of(s, of, row) : 0;
}

static void note_cursor(table_view *v, const table_source *s, const void *of)
{
    note_seen(v, s, of);
    v->followed = v->seen;
}

bool table_recall(table_view *v, const table_source *s, const void *of)
{
    table_settle(v, s, of);
    bool found = !v->was_seen;
    for (size_t i = 0; !found && i < v->count; i++) {
        found = key_of(s, of, v->order[i]) == v->seen;
        v->cursor = found ? i : v->cursor;
    }
    note_seen(v, s, of);
    return found;
}

void table_move(table_view *v, const table_source *s, const void *of, int rows)
{
    table_settle(v, s, of);
    if (rows < 0) {
        size_t up = (size_t) - (int64_t)rows;
        v->cursor = v->cursor > up ? v->cursor - up : 0;
    } else {
        size_t last = v->count == 0 ? 0 : v->count - 1;
        v->cursor = last - v->cursor > (size_t)rows ? v->cursor + (size_t)rows : last;
    }
    note_cursor(v, s, of);
}

bool table_select(table_view *v, const table_source *s, const void *of, size_t row)
{
    size_t at = 0;
    while (at < v->count && v->order[at] != row) {
        at++;
    }
    if (at == v->count) {
        return false;
    }
    v->cursor = at;
    table_move(v, s, of, 0); // notes the row
    return true;
}

size_t table_selected(const table_view *v)
{
    return v->cursor < v->count ? v->order[v->cursor] : SIZE_MAX;
}

// ---- columns --------------------------------------------------------------------------------------------------

static bool shows(const table_view *v, const table_source *s, const void *of, unsigned column, int pane_width)
{
    return (v->hidden >> column & 1) == 0 && pane_width >= s->columns[column].from_width &&
           (s->says == NULL || s->says(of, column, pane_width));
}

void table_sort_next(table_view *v, const table_source *s, const void *of, int pane_width)
{
    do {
        v->sort = v->sort + 1 >= (int)s->column_count ? TABLE_OWN_ORDER : v->sort + 1;
    } while (v->sort != TABLE_OWN_ORDER && !shows(v, s, of, (unsigned)v->sort, pane_width));
    v->reversed = v->settled = false;
}

void table_reverse(table_view *v)
{
    v->reversed = !v->reversed;
    v->settled = false;
}

void table_toggle_column(table_view *v, const table_source *s, unsigned column)
{
    uint32_t all = (UINT32_C(1) << s->column_count) - 1, hidden = v->hidden ^ UINT32_C(1) << column;
    if (column < s->column_count && (hidden & all) != all) {
        v->hidden = hidden;
    }
}

// ---- marks ----------------------------------------------------------------------------------------------------

static bool is_marked(const table_view *v, uint64_t key)
{
    for (unsigned i = 0; i < v->marks; i++) {
        if (v->marked[i] == key) {
            return true;
        }
    }
    return false;
}

void table_mark(table_view *v, const table_source *s, const void *of)
{
    size_t row = table_selected(v);
    if (row == SIZE_MAX) {
        return;
    }
    uint64_t key = key_of(s, of, row);
    bool marked = is_marked(v, key);
    if (marked || v->marks == TABLE_MARKS) {
        unsigned gone = marked && v->marked[0] != key ? 1 : 0;
        for (unsigned i = gone; i + 1 < v->marks; i++) {
            v->marked[i] = v->marked[i + 1];
        }
        v->marks--;
    }
    if (!marked) {
        v->marked[v->marks++] = key;
    }
}

// ---- drawing --------------------------------------------------------------------------------------------------

// Where each column stands; width 0: not shown.
typedef struct placing {
    int x[TABLE_COLUMNS_MAX], width[TABLE_COLUMNS_MAX];
} placing;

static placing place_columns(const table_view *v, const table_source *s, const void *of, int pane_width)
{
    placing p = {0};
    int left = s->band != NULL ? BAND_WIDTH : 1, fixed = 0, x = left, flexible = 0;
    for (unsigned i = 0; i < s->column_count; i++) {
        bool shown = shows(v, s, of, i, pane_width);
        fixed += shown && s->columns[i].width > 0 ? s->columns[i].width + 1 : 0;
        flexible += shown && s->columns[i].width == 0;
    }
    int rest = flexible > 0 ? (pane_width - left - fixed) / flexible - 1 : 0;
    for (unsigned i = 0; i < s->column_count; i++) {
        if (!shows(v, s, of, i, pane_width) || x >= pane_width) {
            continue;
        }
        int width = s->columns[i].width > 0 ? s->columns[i].width : rest < NAME_MIN ? NAME_MIN : rest;
        p.x[i] = x;
        p.width[i] = x + width <= pane_width ? width : pane_width - x;
        x += width + 1;
    }
    return p;
}

static void draw_cell(const canvas *c, int y, int x, int width, role r, const table_column *column,
                      const char *text)
{
    if (column->number) {
        paint_right(c, y, x, width, r, text);
    } else if (column->middle) {
        paint_middle(c, y, x, width, r, text);
    } else {
        paint_text(c, y, x, width, r, text);
    }
}

static bool is_headed(int rows)
{
    return rows >= HEADED_MIN;
}

// Of the column it is sorted by.
static const char *direction_mark(const table_view *v, const table_source *s)
{
    return s->columns[v->sort].number == v->reversed ? "▴" : "▾";
}

const char *table_heading(const table_source *s, const void *of, unsigned column)
{
    const char *own = s->heading == NULL ? NULL : s->heading(of, column);
    return own != NULL ? own : s->columns[column].term;
}

static void draw_headings(const canvas *c, int y, const void *of, const table_source *s, const table_view *v,
                          const placing *p)
{
    for (unsigned i = 0; i < s->column_count; i++) {
        char heading[TABLE_CELL_MAX];
        bool sorted = v->sort == (int)i;
        snprintf(heading, sizeof heading, "%s%s", table_heading(s, of, i),
                 sorted ? direction_mark(v, s) : "");
        if (p->width[i] == 0) {
            continue;
        }
        // The mark of a full heading takes the blank between two columns.
        int more = glyphs_width(c->glyphs, heading) > p->width[i];
        int x = p->x[i] - (s->columns[i].number ? more : 0);
        draw_cell(c, y, x, p->width[i] + more, sorted ? ROLE_FOCUS : ROLE_DIM, &s->columns[i], heading);
    }
}

// Its heading is there and shows it.
static bool heading_says(const table_view *v, const table_source *s, const void *of, int rows, int pane_width)
{
    bool shown = shows(v, s, of, (unsigned)v->sort, pane_width);
    return shown && v->count > 0 && is_headed(rows);
}

void table_look(const table_view *v, const table_source *s, const void *of, int rows, int pane_width,
                char text[TABLE_LOOK_MAX])
{
    bool sorted = v->sort >= 0 && v->sort < (int)s->column_count;
    int length = 0;
    text[0] = '\0';
    if (v->filter[0] != '\0') {
        length = snprintf(text, TABLE_LOOK_MAX, " · %zu of %zu · /%s", v->count, s->count(of), v->filter);
    }
    size_t used = length > 0 ? (size_t)length : 0;
    if (sorted && !heading_says(v, s, of, rows, pane_width)) {
        snprintf(text + used, TABLE_LOOK_MAX - used, " · by %s%s", table_heading(s, of, (unsigned)v->sort),
                 direction_mark(v, s));
    } else if (!sorted && v->reversed) {
        snprintf(text + used, TABLE_LOOK_MAX - used, " · last row first");
    }
}

static void draw_band(const canvas *c, int y, int band)
{
    if (band >= 0) {
        wchar_t letter = band < HR_CATEGORY_COUNT ? (wchar_t)hr_category_letter((hr_category)band) : L'?';
        paint_cell(c, y, 0, theme_letter(c->theme, (unsigned)band), letter);
    }
}

typedef struct row_look {
    bool selected, focused, marked;
} row_look;

// What a row that is not selected leaves out is said when it is; of the selected one it stands below the list.
static void draw_row(const canvas *whole, int y, const void *of, const table_source *s, size_t row,
                     const placing *p, row_look look)
{
    canvas cut = *whole;
    const canvas *c = &cut;
    cut.said_later = true;
    role r = s->role_of != NULL ? s->role_of(of, row) : ROLE_TEXT;
    if (look.selected) {
        r = look.focused ? ROLE_SELECT : ROLE_FOCUS;
        paint_blank(c, y, 0, c->area.w, theme_role(c->theme, r));
    }
    if (s->band != NULL) {
        draw_band(c, y, s->band(of, row));
    } else if (look.marked || (look.selected && !look.focused)) {
        paint_text(c, y, 0, 1, r, look.marked ? "●" : "▸");
    }
    for (unsigned i = 0; i < s->column_count; i++) {
        char cell[TABLE_CELL_MAX] = "";
        if (p->width[i] > 0) {
            s->cell(of, row, i, cell);
            if (s->cell_short != NULL && glyphs_width(c->glyphs, cell) > p->width[i]) {
                s->cell_short(of, row, i, cell);
            }
            draw_cell(c, y, p->x[i], p->width[i], r, &s->columns[i], cell);
        }
    }
}

// ---- the selected row in full ---------------------------------------------------------------------------------

enum { DETAIL_MAX = 2048 };

// "knobs: batch.size=64 batch.accumulate=4 · result: oom fragmentation": the selected row's cells that have no room; ""
// where all have.
static const char *cut_cells(const table_view *v, const table_source *s, const void *of, const glyphs *g,
                             int width, char text[DETAIL_MAX])
{
    const placing p = place_columns(v, s, of, width);
    const size_t row = table_selected(v);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; row < s->count(of) && i < s->column_count && used < DETAIL_MAX; i++) {
        char cell[TABLE_CELL_MAX] = "";
        if (!shows(v, s, of, i, width)) {
            continue;
        }
        s->cell(of, row, i, cell);
        if (glyphs_width(g, cell) > p.width[i]) {
            used += (size_t)snprintf(text + used, DETAIL_MAX - used, "%s%s: %s", used > 0 ? " · " : "",
                                     table_heading(s, of, i), cell);
        }
    }
    return text;
}

static bool selects(const table_source *s, bool focused)
{
    return focused || s->selects;
}

// Of `rows` that the table has; a row of the list stays, and its heading where that many are left.
static int detail_rows(const char *text, const glyphs *g, int width, int rows)
{
    size_t at = 0, start, length;
    int needed = 0;
    while (needed < rows - 1 && wrap_next(g, text, width - 2, &at, &start, &length)) {
        needed++;
    }
    return needed;
}

// Rows of headings and list.
static int list_rows(const table_view *v, const table_source *s, const void *of, const table_place *place)
{
    char text[DETAIL_MAX];
    int rows = place->height - place->first_y;
    if (!selects(s, place->focused)) {
        return rows;
    }
    cut_cells(v, s, of, place->glyphs, place->width, text);
    return rows - detail_rows(text, place->glyphs, place->width, rows);
}

// ---- the list -------------------------------------------------------------------------------------------------

// The first row shown: the cursor stays in sight, and the page moves as little as it can.
static size_t first_shown(const table_view *v, int rows)
{
    size_t room = rows > 0 ? (size_t)rows : 1, top = v->top;
    top = v->cursor < top ? v->cursor : top;
    top = v->cursor >= top + room ? v->cursor - room + 1 : top;
    return v->count <= room ? 0 : top + room > v->count ? v->count - room : top;
}

void table_scroll(table_view *v, const table_source *s, const void *of, const table_place *place)
{
    int rows = list_rows(v, s, of, place);
    v->top = first_shown(v, is_headed(rows) ? rows - 1 : rows);
    note_seen(v, s, of);
}

static void draw_list(const canvas *c, const void *of, const table_source *s, const table_view *v,
                      bool focused)
{
    placing p = place_columns(v, s, of, c->area.w);
    int y = 0;
    if (is_headed(c->area.h)) {
        draw_headings(c, y++, of, s, v, &p);
    }
    size_t top = first_shown(v, c->area.h - y), rows = s->count(of);
    for (size_t i = top; i < v->count && y < c->area.h; i++, y++) {
        size_t row = v->order[i];
        if (row < rows) {
            row_look look = {i == v->cursor && selects(s, focused), focused,
                             is_marked(v, key_of(s, of, row))};
            draw_row(c, y, of, s, row, &p, look);
        }
    }
}

void table_draw(const canvas *c, int y, const void *of, const table_source *s, const table_view *v,
                bool focused)
{
    char text[DETAIL_MAX];
    const table_place place = {c->glyphs, c->area.h, c->area.w, y, focused};
    if (v->count == 0) {
        canvas words = canvas_sub(c, y, 1, c->area.h - y, c->area.w - 2);
        paint_wrapped(&words, 0, ROLE_DIM,
                      v->filter[0] != '\0' ? "No row matches: / and Enter show all again." : s->empty);
        return;
    }
    int rows = list_rows(v, s, of, &place);
    canvas list = canvas_sub(c, y, 0, rows, c->area.w);
    draw_list(&list, of, s, v, focused);
    if (selects(s, focused)) {
        canvas detail = canvas_sub(c, y + rows, 1, c->area.h - y - rows, c->area.w - 2);
        paint_wrapped(&detail, 0, ROLE_FOCUS, cut_cells(v, s, of, c->glyphs, c->area.w, text));
    }
}

bool table_click(table_view *v, const table_source *s, const void *of, const table_place *place, int y, int x)
{
    placing p = place_columns(v, s, of, place->width);
    int rows = list_rows(v, s, of, place), first_y = place->first_y;
    bool headed = is_headed(rows);
    if (headed && y == first_y) {
        for (unsigned i = 0; i < s->column_count; i++) {
            if (p.width[i] > 0 && x >= p.x[i] && x < p.x[i] + p.width[i]) {
                v->reversed = v->sort == (int)i && !v->reversed;
                v->sort = (int)i;
                v->settled = false;
                return true;
            }
        }
        return false;
    }
    size_t top = first_shown(v, headed ? rows - 1 : rows), at = top + (size_t)(y - first_y - headed);
    if (y < first_y + headed || y >= first_y + rows || at >= v->count) {
        return false;
    }
    v->cursor = at;
    note_cursor(v, s, of);
    return true;
}

bool table_copy(const table_view *v, const table_source *s, const void *of, char *text, size_t size)
{
    size_t row = table_selected(v), used = 0;
    text[0] = '\0';
    if (row == SIZE_MAX || row >= s->count(of)) {
        return false;
    }
    for (unsigned i = 0; i < s->column_count && used < size; i++) {
        char cell[TABLE_CELL_MAX] = "";
        s->cell(of, row, i, cell);
        hr_plain_text(cell, ""); // a row is a line, whatever a name has in it
        int length = snprintf(text + used, size - used, "%s%s", i == 0 ? "" : "\t", cell);
        used += length > 0 ? (size_t)length : 0;
    }
    return true;
}
