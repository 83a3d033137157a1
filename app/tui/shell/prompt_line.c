// SPDX-License-Identifier: Apache-2.0
// The line that is being typed, with its cursor in reverse: the terminal's own cursor stays hidden.
#include <stdio.h>
#include <string.h>

#include "app/tui/shell/act.h"
#include "app/tui/shell/frame.h"

enum { CANDIDATE_ROWS_MAX = 9, BODY_ROWS_MIN = 3, CANDIDATE_COLUMNS_MAX = 34, VALUE_MIN = 20, NOTE_ROWS = 2 };

static int candidates_width(const canvas *c, const completion *found)
{
    int widest = 0;
    for (size_t i = 0; i < found->count; i++) {
        int width = glyphs_width(c->glyphs, found->candidate[i].text);
        widest = width > widest ? width : widest;
    }
    return widest < CANDIDATE_COLUMNS_MAX ? widest : CANDIDATE_COLUMNS_MAX;
}

// Rows below the list for the note of the chosen one, where it has no room beside it.
static int note_rows(const canvas *screen, rect line, const completion *found, int width)
{
    if (found->chosen >= found->count ||
        glyphs_width(screen->glyphs, found->candidate[found->chosen].note) <= line.w - width - 3) {
        return 0;
    }
    return NOTE_ROWS;
}

static void draw_candidate(const canvas *whole, int y, const completion *found, size_t i, int width)
{
    canvas c = *whole;
    bool chosen = i == found->chosen;
    role r = chosen ? ROLE_SELECT : ROLE_TEXT;
    c.said_later = true; // below the list, once it is chosen; its text in the line
    paint_blank(&c, y, 0, c.area.w, theme_role(c.theme, r));
    paint_text(&c, y, 1, width, r, found->candidate[i].text);
    paint_text(&c, y, width + 3, c.area.w - width - 3, chosen ? r : ROLE_DIM, found->candidate[i].note);
}

void frame_candidates(const canvas *screen, rect line, const app *a)
{
    const completion *found = &a->completion;
    int width = candidates_width(screen, found), notes = note_rows(screen, line, found, width);
    int most = line.y - BODY_ROWS_MIN < CANDIDATE_ROWS_MAX ? line.y - BODY_ROWS_MIN : CANDIDATE_ROWS_MAX;
    most -= notes;
    bool all = found->count <= (size_t)(most < 0 ? 0 : most);
    int rows = all ? (int)found->count : most, listed = all ? rows : rows - 1;
    if (rows < 1) {
        return;
    }
    canvas c = canvas_sub(screen, line.y - rows - notes, line.x, rows + notes, line.w);
    size_t chosen = found->chosen, top = 0;
    if (chosen != CANDIDATE_NONE && chosen >= (size_t)listed) {
        top = chosen - (size_t)listed + 1;
    }
    for (int y = 0; y < listed; y++) {
        draw_candidate(&c, y, found, top + (size_t)y, width);
    }
    for (int y = listed; y < rows + notes; y++) {
        paint_blank(&c, y, 0, line.w, theme_role(screen->theme, ROLE_TEXT));
    }
    if (!all) {
        paint_format(&c, rows - 1, 1, line.w - 1, ROLE_DIM, "%zu in all: type on, or Tab", found->count);
    }
    if (notes > 0) {
        canvas note = canvas_sub(&c, rows, 1, notes, line.w - 2);
        paint_wrapped(&note, 0, ROLE_FOCUS, found->candidate[chosen].note);
    }
}

static bool is_search(const app *a)
{
    return a->overlay == OVERLAY_FILTER || a->overlay == OVERLAY_FIND || a->overlay == OVERLAY_NARROW;
}

void frame_prompt(const canvas *c, const app *a)
{
    size_t count;
    const prompt *p = app_prompt(a);
    const bool lua = a->overlay == OVERLAY_CONSOLE;
    char before[PROMPT_MAX];
    int x = a->overlay == OVERLAY_EDIT ? paint_format(c, 0, 0, c->area.w - VALUE_MIN, ROLE_KEY,
                                                      "%s = ", hr_knob_rows(&count)[feed_knob(&a->feed)].key)
                                       : paint_text(c, 0, 0, lua ? 3 : 1, ROLE_KEY,
                                                    is_search(a)                  ? "/"
                                                    : !lua                        ? ":"
                                                    : a->console.chunk[0] != '\0' ? ">> "
                                                                                  : "> ");
    // A line longer than its place shows the part before the cursor.
    int room = c->area.w - x - 1;
    size_t start = 0;
    snprintf(before, sizeof before, "%.*s", (int)p->cursor, p->text);
    while (glyphs_width(c->glyphs, before + start) > room && start < p->cursor) {
        const char *next = before + start;
        utf8_next(&next);
        start = (size_t)(next - before);
    }
    x += paint_text(c, 0, x, room, p->selected ? ROLE_SELECT : ROLE_TEXT, before + start);
    const char *rest = p->text + p->cursor;
    const char *next = rest;
    wchar_t under = *rest == '\0' ? L' ' : glyphs_fold(c->glyphs, utf8_next(&next));
    paint_cell(c, 0, x, theme_role(c->theme, ROLE_SELECT), under);
    paint_text(c, 0, x + glyphs_columns(under), c->area.w - x - glyphs_columns(under), ROLE_TEXT, next);
    int end = x + glyphs_columns(under);
    if (is_search(a) && a->overlay != OVERLAY_FIND) {
        size_t shown, all;
        act_filter_counts(a, &shown, &all);
        snprintf(before, sizeof before, "%zu of %zu", shown, all);
        int rest_width = glyphs_width(c->glyphs, next) + 1;
        paint_right(c, 0, end + rest_width, c->area.w - end - rest_width, ROLE_DIM, before);
    }
    if (*rest == '\0' && !is_search(a)) {
        paint_text(c, 0, end, c->area.w - end, ROLE_DIM, a->completion.hint);
    }
}
