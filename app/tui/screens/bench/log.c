// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "app/tui/screens/bench/bench.h"

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

static void draw(const canvas *c, const pane_view *v)
{
    const bench_state *bench = v->rows;
    const run_state *m = feed_run_state(bench->feed);
    char right[64] = "";
    if (m->lost_events > 0) {
        snprintf(right, sizeof right, "%" PRIu64 " events lost", m->lost_events);
    }
    paint_rule(c, v->focused, pane_title(PANE_LOG), right);
    uint64_t held = m->log_count < LOG_LENGTH ? m->log_count : LOG_LENGTH;
    uint64_t rows = (uint64_t)(c->area.h > 1 ? c->area.h - 1 : 0);
    uint64_t back = bench->log_back + rows <= held ? bench->log_back : held > rows ? held - rows : 0;
    uint64_t shown = 0;
    for (uint64_t used = 0; shown < held - back; shown++) {
        used += (uint64_t)rows_of(c, log_at(m, back + shown));
        if (used > rows && shown > 0) {
            break;
        }
    }
    for (int y = 1; shown > 0; shown--) {
        y += draw_line(c, y, log_at(m, back + shown - 1), v->expands);
    }
}

static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    bench_state *bench = own;
    (void)v;
    const run_state *m = feed_run_state(bench->feed);
    int64_t held = m->log_count < LOG_LENGTH ? (int64_t)m->log_count : LOG_LENGTH;
    int64_t to = (int64_t)bench->log_back - rows;
    bench->log_back = to < 0 || held == 0 ? 0 : to < held ? (size_t)to : (size_t)held - 1;
    return (pane_request){.kind = columns == 0 ? PANE_DONE : PANE_ASKS_NOTHING};
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const run_state *m = feed_run_state(v->feed);
    snprintf(text, PANE_TEXT_MAX, "%" PRIu64 " lines; the last: %s", m->log_count,
             m->log_count == 0 ? "none" : m->log[(m->log_count - 1) % LOG_LENGTH].text);
}

const pane_ops pane_log = {.draw = draw, .move = move, .say = say, .term = "log"};
