// SPDX-License-Identifier: Apache-2.0
// A table: rows that its caller holds, seen through a filter, in an order, with a cursor. Every table of the
// workbench filters, sorts, follows, picks its columns, marks and copies through here. What the columns cut of the
// selected row stands whole in lines below the rows.
#ifndef TUI_TABLE_VIEW_H
#define TUI_TABLE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/tui/base/name_key.h"
#include "app/tui/term/paint.h"

enum {
    TABLE_CELL_MAX = 512,
    TABLE_FILTER_MAX = 64,
    TABLE_COLUMNS_MAX = 16,
    TABLE_LOOK_MAX = 128,
    TABLE_MARKS = 2,
    TABLE_OWN_ORDER = -1,
    TABLE_UNSORTED = -2
};

typedef struct table_column {
    const char *term; // its heading: a term of the glossary
    int width;        // in columns of the screen; 0: shares what is left, at least 8
    bool number;      // right-aligned, sorted largest first
    int from_width;   // shown where the pane is at least so wide
    bool middle;      // cut in the middle: names that differ at their ends
    const char *line; // what this column shows of it; NULL: what the glossary says
} table_column;

// Its functions take `of`: whatever holds the rows, as every function below is given it.
typedef struct table_source {
    const table_column *columns;
    unsigned column_count;
    size_t (*count)(const void *of);
    // Text of a cell; row < count(a).
    void (*cell)(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX]);
    // Shortens the text of a cell that has no room, or leaves it; NULL: it is cut.
    void (*cell_short)(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX]);
    double (*number)(const void *of, size_t row, unsigned column); // of number columns; NaN sorts last
    uint64_t (*key)(const void *of,
                    size_t row);         // what follow and marks hold on to; NULL: the row's own number
    uint64_t (*version)(const void *of); // changes whenever rows or cells may have
    // Its letter's band, shown in the first two columns of the screen; −1: none. NULL: no row has one.
    int (*band)(const void *of, size_t row);
    role (*role_of)(const void *of, size_t row); // NULL: ROLE_TEXT
    // What heads a column that shows something else than its term says; NULL, or gives NULL: its term.
    const char *(*heading)(const void *of, unsigned column);
    // Whether a column has anything to show in a pane of that width, beside its from_width; NULL: it has.
    bool (*says)(const void *of, unsigned column, int pane_width);
    const char *empty; // what stands there without rows: a whole sentence
    bool selects; // its selected row is shown without the focus too: `a` applies it, or another pane moves it
} table_source;

// Where a table stands in its pane.
typedef struct table_place {
    const glyphs *glyphs;
    int height, width; // of the pane
    int first_y;       // its row in which the table begins
    bool focused;
} table_place;

// Starts zeroed, but for `sort`: table_view_init.
typedef struct table_view {
    size_t cursor, top; // of what is shown; top: of the last page that was drawn
    int sort;           // column, TABLE_OWN_ORDER
    bool reversed, follows;
    uint64_t followed; // key of the row under the cursor
    uint64_t seen;     // the same when it was last drawn or moved to
    bool was_seen;
    uint32_t hidden; // bit c: column c was picked away
    char filter[TABLE_FILTER_MAX];
    uint64_t marked[TABLE_MARKS];
    unsigned marks;
    // What is shown: rows of the source, in order. Made by table_settle.
    uint32_t *order; // owned
    size_t count, room;
    uint64_t version;
    bool settled;
    // What the order was made by; made_sort TABLE_UNSORTED: it is in no order that could be kept.
    char made_filter[TABLE_FILTER_MAX];
    int made_sort;
    bool made_reversed;
} table_view;

// What heads a column of these rows.
const char *table_heading(const table_source *s, const void *of, unsigned column);
// What a column explains itself with: its own line, or its term's.
const char *table_column_line(const table_column *column);

void table_view_init(table_view *v);
void table_view_deinit(table_view *v);

// Makes the order anew when rows, filter or sorting changed, and keeps the cursor in place (on its row when it
// follows). Before every frame; host memory short: the old order stays, cut to the rows that exist, or is the rows' own.
void table_settle(table_view *v, const table_source *s, const void *of);
// Moves the page as little as keeps the cursor in sight. After table_settle, before table_draw.
void table_scroll(table_view *v, const table_source *s, const void *of, const table_place *place);
void table_move(table_view *v, const table_source *s, const void *of, int rows);
// Before the selected row is acted upon: settles, and puts the cursor on the row that was seen under it, since rows may have
// come before that since. False: it is gone.
bool table_recall(table_view *v, const table_source *s, const void *of);
// Puts the cursor on a row of the source; false: it is not shown.
bool table_select(table_view *v, const table_source *s, const void *of, size_t row);
// The source's row at the cursor; SIZE_MAX: the table is empty.
size_t table_selected(const table_view *v);
// A filter is a POSIX extended regular expression, any case; what is none is searched for as it stands. "!" before it
// inverts it.
void table_set_filter(table_view *v, const char *filter);
// Through the columns shown, then own order.
void table_sort_next(table_view *v, const table_source *s, const void *of, int pane_width);
void table_reverse(table_view *v);
void table_toggle_column(table_view *v, const table_source *s, unsigned column); // the last one stays
void table_mark(table_view *v, const table_source *s,
                const void *of); // or takes the mark away; the older of two goes

// How it differs from all rows in their own order, for its title: " · 12 of 49 · /grad · by bytes▾"; "" where it does not,
// or a heading says it in a table of `rows` rows.
void table_look(const table_view *v, const table_source *s, const void *of, int rows, int pane_width,
                char text[TABLE_LOOK_MAX]);

// Headings (when it has 4 rows or more), rows, and what is cut of the selected one, from row `y` of the canvas on.
void table_draw(const canvas *c, int y, const void *of, const table_source *s, const table_view *v,
                bool focused);
// A click at a place of the pane: on a heading sorts, on a row selects; false: on neither.
bool table_click(table_view *v, const table_source *s, const void *of, const table_place *place, int y,
                 int x);
// The selected row as text, cells separated by tabs.
bool table_copy(const table_view *v, const table_source *s, const void *of, char *text, size_t size);

#endif
