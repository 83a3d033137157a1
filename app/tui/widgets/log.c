// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "app/tui/say.h"
#include "app/tui/widgets/widgets.h"

static role role_of(log_kind kind)
{
    static const role roles[] = {
        [LOG_NOTE] = ROLE_TEXT, [LOG_GOOD] = ROLE_GOOD, [LOG_WARN] = ROLE_WARN, [LOG_BAD] = ROLE_BAD};
    return roles[kind];
}

// The line `back` before the newest.
static const log_line *log_at(const run_state *m, uint64_t back)
{
    return &m->log[(m->log_count - 1 - back) % LOG_LENGTH];
}

// A long line goes on below its beginning, right of the time.
static canvas text_of(const canvas *c, int y, const char *clock)
{
    int x = glyphs_width(c->glyphs, clock) + 1;
    return canvas_sub(c, y, x, c->area.h - y, c->area.w - x);
}

static int rows_of(const canvas *c, const log_line *line)
{
    char clock[FORMAT_MAX];
    size_t start, length;
    int rows = 0, width = text_of(c, 1, format_clock(line->time_ns, clock)).area.w;
    while (wrap_row(c->glyphs, line->text, width, rows, &start, &length)) {
        rows++;
    }
    return rows;
}

// In a low pane the last row of a long line may be cut: e shows the pane alone.
static int draw_line(const canvas *c, int y, const log_line *line, bool low)
{
    char clock[FORMAT_MAX];
    paint_text(c, y, 0, 8, ROLE_DIM, format_clock(line->time_ns, clock));
    canvas text = text_of(c, y, clock);
    text.said_later = low;
    return paint_wrapped(&text, 0, role_of(line->kind), line->text);
}

static void draw(const canvas *c, const app *a)
{
    const run_state *m = feed_run_state(&a->feed);
    char right[64] = "";
    if (m->lost_events > 0) {
        snprintf(right, sizeof right, "%" PRIu64 " events lost", m->lost_events);
    }
    paint_rule(c, a->focus == PANE_LOG, pane_title(PANE_LOG), right);
    uint64_t held = m->log_count < LOG_LENGTH ? m->log_count : LOG_LENGTH;
    uint64_t rows = (uint64_t)(c->area.h > 1 ? c->area.h - 1 : 0);
    uint64_t back = a->bench.log_back + rows <= held ? a->bench.log_back : held > rows ? held - rows : 0;
    uint64_t shown = 0;
    for (uint64_t used = 0; shown < held - back; shown++) {
        used += (uint64_t)rows_of(c, log_at(m, back + shown));
        if (used > rows && shown > 0) {
            break;
        }
    }
    for (int y = 1; shown > 0; shown--) {
        y += draw_line(c, y, log_at(m, back + shown - 1), app_layout(a).kind == LAYOUT_FULL && !a->expanded);
    }
}

static bool move(app *a, int rows, int columns)
{
    const run_state *m = feed_run_state(&a->feed);
    int64_t held = m->log_count < LOG_LENGTH ? (int64_t)m->log_count : LOG_LENGTH;
    int64_t to = (int64_t)a->bench.log_back - rows;
    a->bench.log_back = to < 0 || held == 0 ? 0 : to < held ? (size_t)to : (size_t)held - 1;
    return columns == 0;
}

static const char *term(const app *a)
{
    (void)a;
    return "log";
}

const pane_ops pane_log = {
    .by_app.draw = draw, .by_app.move = move, .by_app.say = say_log, .by_app.term = term};
