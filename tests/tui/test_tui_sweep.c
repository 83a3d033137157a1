// SPDX-License-Identifier: Apache-2.0
// Every screen, drawn at many sizes with every set of glyphs: no crash, nothing beyond the window, no pane left empty,
// and in ASCII nothing but ASCII.
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/panes.h"
#include "app/tui/term/terminal.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

enum { SIZES = 60, ROWS_MAX = 120, COLUMNS_MAX = 300 };

// Sizes that the layout treats differently, and any others.
static void size_of(unsigned i, int *rows, int *columns)
{
    static const int edges[][2] = {{1, 1},   {1, 300}, {120, 1},  {5, 29},   {6, 30},   {15, 59},
                                   {16, 60}, {23, 79}, {24, 80},  {24, 119}, {36, 120}, {50, 160},
                                   {4, 20},  {10, 40}, {24, 300}, {120, 80}, {120, 300}};
    if (i < sizeof edges / sizeof *edges) {
        *rows = edges[i][0];
        *columns = edges[i][1];
    } else {
        *rows = 1 + rand() % ROWS_MAX;
        *columns = 1 + rand() % COLUMNS_MAX;
    }
}

static bool is_empty(const char *const *lines, int count, rect r)
{
    for (int y = r.y; y < r.y + r.h && y < count; y++) {
        const char *at = lines[y];
        for (int x = 0; x < r.x + r.w && *at != '\0' && *at != '\n'; x++) {
            wchar_t c = utf8_next(&at);
            if (x >= r.x && c != L' ') {
                return false;
            }
        }
    }
    return true;
}

static int split(char *text, const char **lines)
{
    int count = 0;
    for (char *line = text; *line != '\0' && count < ROWS_MAX; count++) {
        char *end = strchr(line, '\n');
        lines[count] = line;
        if (end == NULL) {
            return count + 1;
        }
        *end = '\0';
        line = end + 1;
    }
    return count;
}

static void check_frame(app *a, int rows, int columns)
{
    static const char *lines[ROWS_MAX];
    char *text = screen_text(a);
    for (const char *c = text; a->looks.glyphs.set == GLYPHS_ASCII && *c != '\0'; c++) {
        ck_assert_msg((unsigned char)*c < 0x80, "%dx%d: not ASCII: %s", columns, rows, c);
    }
    int count = split(text, lines);
    layout l = app_layout(a);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        if (l.pane[pane].h > 0 && is_empty(lines, count, l.pane[pane])) {
            ck_abort_msg("%dx%d: pane %s of screen %d is empty", columns, rows, pane_title((pane_id)pane),
                         a->screen);
        }
    }
    free(text);
}

static void sweep(glyph_set set, bool mono)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80, .glyphs = set, .no_color = mono});
    screen_advance(a, 30);
    srand((unsigned)set + 1);
    for (unsigned i = 0; i < SIZES; i++) {
        int rows, columns;
        size_of(i, &rows, &columns);
        terminal_resize(rows, columns);
        app_draw(a); // reads the size
        for (int screen = 0; screen < SCREEN_COUNT; screen++) {
            app_show_screen(a, (screen_id)screen);
            a->expanded = rand() % 4 == 0;
            check_frame(a, rows, columns);
        }
    }
    screen_close(a);
}

START_TEST(every_screen_can_be_drawn_at_every_size_with_every_set_of_glyphs)
{
    for (int set = 0; set < GLYPHS_COUNT; set++) {
        sweep((glyph_set)set, false);
    }
    sweep(GLYPHS_ASCII, true);
}
END_TEST

SUITE_MAIN("tui sweep", every_screen_can_be_drawn_at_every_size_with_every_set_of_glyphs)
