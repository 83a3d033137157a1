// SPDX-License-Identifier: Apache-2.0
#include "app/tui/view/layout.h"

static const char *const titles[] = {
#define X(id, text) [PANE_##id] = text,
    PANE_MAP(X)
#undef X
};

bool screen_row_has(const screen_row *screen, pane_id pane)
{
    const pane_id *panes = screen->panes;
    while (*panes != PANE_COUNT && *panes != pane) {
        panes++;
    }
    return *panes != PANE_COUNT;
}

const char *pane_title(pane_id pane)
{
    return titles[pane];
}

// ---- rectangles -----------------------------------------------------------------------------------------------

int layout_clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

rect cut_top(rect *from, int rows)
{
    rect top = *from;
    top.h = layout_clamp(rows, 0, from->h);
    from->y += top.h;
    from->h -= top.h;
    return top;
}

rect cut_bottom(rect *from, int rows)
{
    rect bottom = *from;
    bottom.h = layout_clamp(rows, 0, from->h);
    bottom.y = from->y + from->h - bottom.h;
    from->h -= bottom.h;
    return bottom;
}

rect cut_left(rect *from, int columns)
{
    rect left = *from;
    left.w = layout_clamp(columns, 0, from->w - 1);
    from->x += left.w + 1;
    from->w -= left.w + 1;
    return left;
}

// ---- sizes ----------------------------------------------------------------------------------------------------

static void place_full(layout *l, rect body, const layout_wish *wish)
{
    if (wish->expanded) {
        l->pane[wish->focus] = body;
    } else {
        wish->screen->place(l, body, wish);
    }
}

layout layout_make(int rows, int columns, const layout_wish *wish)
{
    layout l = {.kind = LAYOUT_LINE};
    rect body = {0, 0, rows, columns};
    if (rows < 6 || columns < 30) {
        l.pane[PANE_METER] = body;
        return l;
    }
    l.pane[PANE_FOOTER] = cut_bottom(&body, 1);
    l.pane[PANE_STRIP] = cut_bottom(&body, 1);
    if (rows < 16 || columns < 60) {
        l.kind = LAYOUT_METER;
        l.pane[PANE_METER] = cut_top(&body, layout_clamp(body.h - 1, 2, 3));
        l.pane[PANE_KNOBS] = body;
        return l;
    }
    l.pane[PANE_TITLE] = cut_top(&body, 1);
    l.pane[PANE_TABS] = cut_top(&body, 1);
    if (!screen_row_has(wish->screen, PANE_KNOBS)) {
        l.pane[PANE_KNOB_BAR] = cut_top(&body, 1);
    }
    l.kind = rows < 24 || columns < 80 ? LAYOUT_SINGLE : LAYOUT_FULL;
    if (l.kind == LAYOUT_SINGLE) {
        l.pane[wish->focus] = body;
    } else {
        place_full(&l, body, wish);
    }
    return l;
}

bool layout_can_show(const layout *l, const layout_wish *wish, pane_id pane)
{
    if (l->kind == LAYOUT_METER || l->kind == LAYOUT_LINE) {
        return pane == PANE_KNOBS;
    }
    bool alone = l->kind == LAYOUT_SINGLE || wish->expanded;
    return alone ? screen_row_has(wish->screen, pane) : l->pane[pane].h > 0;
}

pane_id layout_next(const layout *l, const layout_wish *wish, int direction)
{
    const pane_id *panes = wish->screen->panes;
    int count = 0, at = 0;
    for (; panes[count] != PANE_COUNT; count++) {
        at = panes[count] == wish->focus ? count : at;
    }
    for (int tries = 0; tries < count; tries++) {
        at = (at + direction + count) % count;
        if (layout_can_show(l, wish, panes[at])) {
            return panes[at];
        }
    }
    return wish->focus;
}

enum {
    HELP_ROWS = 5,         // of the selected knob, below the list
    COUNTER_ROWS = 8,      // title and seven counters
    COUNTER_ROWS_ALL = 13, // beyond these the knobs take the rows, for their help
};

void place_knobs_and_counters(layout *l, rect side, const layout_wish *wish)
{
    int knobs = layout_clamp(wish->knob_count + 1 + HELP_ROWS, 6, side.h - COUNTER_ROWS);
    knobs = layout_clamp(knobs, side.h - COUNTER_ROWS_ALL, side.h);
    l->pane[PANE_KNOBS] = cut_top(&side, knobs);
    l->pane[PANE_COUNTERS] = side;
}
