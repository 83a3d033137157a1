// SPDX-License-Identifier: Apache-2.0
#include "app/tui/layout.h"

enum {
    HELP_ROWS = 4,         // of the selected knob, below the list
    COUNTER_ROWS = 9,      // title and eight counters
    COUNTER_ROWS_ALL = 13, // beyond these the knobs take the rows, for their help
    SIDE_BY_SIDE_MIN = 76, // columns that step and loss need beside each other
};

static const char *const titles[] = {
#define X(id, text) [PANE_##id] = text,
    PANE_MAP(X)
#undef X
};

const char *pane_title(pane_id pane)
{
    return titles[pane];
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

// Cuts `rows` off the top of *from.
static rect cut_top(rect *from, int rows)
{
    rect top = *from;
    top.h = clamp(rows, 0, from->h);
    from->y += top.h;
    from->h -= top.h;
    return top;
}

static rect cut_bottom(rect *from, int rows)
{
    rect bottom = *from;
    bottom.h = clamp(rows, 0, from->h);
    bottom.y = from->y + from->h - bottom.h;
    from->h -= bottom.h;
    return bottom;
}

// Cuts `columns` off the left of *from, and one column that stays blank between them.
static rect cut_left(rect *from, int columns)
{
    rect left = *from;
    left.w = clamp(columns, 0, from->w - 1);
    from->x += left.w + 1;
    from->w -= left.w + 1;
    return left;
}

static void place_left(layout *l, rect side, const layout_wish *wish)
{
    int knobs = clamp(wish->knob_count + 1 + HELP_ROWS, 6, side.h - COUNTER_ROWS);
    knobs = clamp(knobs, side.h - COUNTER_ROWS_ALL, side.h);
    l->pane[PANE_KNOBS] = cut_top(&side, knobs);
    l->pane[PANE_COUNTERS] = side;
}

static void place_doctor(layout *l, rect side)
{
    l->pane[PANE_VRAM] = cut_top(&side, side.h >= 30 ? side.h / 3 : 0);
    l->pane[PANE_LOG] = cut_bottom(&side, side.h >= 26 ? clamp(side.h / 6, 4, 8) : 0);
    l->pane[PANE_DOCTOR] = side;
}

// Shares the right side out: the memory graph grows most, the log least.
static void place_right(layout *l, rect side)
{
    int extra = side.h - 21; // beyond what 80×24 leaves
    l->pane[PANE_LOG] = cut_bottom(&side, 3 + extra / 6);
    l->pane[PANE_PEAK] = cut_bottom(&side, 4 + extra / 4);
    rect loss = cut_bottom(&side, 4 + extra / 5);
    if (side.w >= SIDE_BY_SIDE_MIN) {
        l->pane[PANE_STEP] = cut_left(&loss, loss.w / 2);
    }
    l->pane[PANE_LOSS] = loss;
    l->pane[PANE_VRAM] = side;
}

static void place_bench(layout *l, rect body, const layout_wish *wish)
{
    if (wish->expanded) {
        l->pane[wish->focus] = body;
        return;
    }
    rect left = cut_left(&body, clamp(body.w * 3 / 8, 30, 44));
    place_left(l, left, wish);
    if (wish->doctor) {
        place_doctor(l, body);
    } else {
        place_right(l, body);
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
        l.pane[PANE_METER] = cut_top(&body, clamp(body.h - 1, 2, 3));
        l.pane[PANE_KNOBS] = body;
        return l;
    }
    l.pane[PANE_TITLE] = cut_top(&body, 1);
    if (rows < 24 || columns < 80) {
        l.kind = LAYOUT_SINGLE;
        l.pane[PANE_TABS] = cut_top(&body, 1);
        l.pane[wish->focus] = body;
        return l;
    }
    l.kind = LAYOUT_BENCH;
    place_bench(&l, body, wish);
    return l;
}

bool layout_can_show(const layout *l, const layout_wish *wish, pane_id pane)
{
    if (l->kind == LAYOUT_METER || l->kind == LAYOUT_LINE) {
        return pane == PANE_KNOBS;
    }
    if (l->kind == LAYOUT_SINGLE || wish->expanded) {
        return pane == PANE_DOCTOR ? wish->doctor : pane < PANE_FOCUS_COUNT;
    }
    return l->pane[pane].h > 0;
}

pane_id layout_next(const layout *l, const layout_wish *wish, int direction)
{
    int pane = (int)wish->focus;
    for (int tries = 0; tries < PANE_FOCUS_COUNT; tries++) {
        pane = (pane + direction + PANE_FOCUS_COUNT) % PANE_FOCUS_COUNT;
        if (layout_can_show(l, wish, (pane_id)pane)) {
            return (pane_id)pane;
        }
    }
    return wish->focus;
}
