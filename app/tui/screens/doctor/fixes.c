// SPDX-License-Identifier: Apache-2.0
// FIXES: turns that are known to fit, to be applied.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "app/tui/feed/short_pairs.h"
#include "app/tui/screens/doctor/doctor.h"

enum { COLUMN_KNOBS, COLUMN_COST, COLUMN_PEAK, COLUMN_LEFT, COLUMN_SECONDS };

static const table_column columns[] = {
    [COLUMN_KNOBS] = {.term = "knobs", .line = "what a or Enter would turn"},
    [COLUMN_COST] = {.term = "cost", .width = 9},
    [COLUMN_PEAK] = {.term = "peak",
                     .width = 8,
                     .number = true,
                     .line = "planned peak of a step with these knobs"},
    [COLUMN_LEFT] = {.term = "left", .width = 6, .number = true, .from_width = 56},
    [COLUMN_SECONDS] = {.term = "seconds",
                        .width = 7,
                        .number = true,
                        .line = "planned time of a step with these knobs"},
};

static size_t count(const void *of)
{
    const doctor_state *s = of;
    return s->fix_count;
}

static double left_of(const fix_row *row)
{
    return row->limit_bytes == 0 ? UNKNOWN : 1 - (double)row->peak_bytes / (double)row->limit_bytes;
}

static void cell(const void *of, size_t at, unsigned column, char text[TABLE_CELL_MAX])
{
    const doctor_state *s = of;
    const feed *f = s->feed;
    const fix_row *row = &s->fix[at];
    char words[HR_KNOB_TEXT_MAX];
    switch (column) {
    case COLUMN_KNOBS:
        snprintf(text, TABLE_CELL_MAX, "%.*s", TABLE_CELL_MAX - 1, doctor_fix_text(f, row, words));
        break;
    case COLUMN_COST:
        doctor_fix_cost(f, row, text);
        break;
    case COLUMN_PEAK:
        format_bytes(row->peak_bytes, feed_unit(f), text);
        break;
    case COLUMN_LEFT:
        format_percent(left_of(row), text);
        break;
    default:
        format_seconds(row->seconds, text);
        break;
    }
}

// "size=128 accumulate=2": every knob of the fix is seen. Of its cost the one word.
static void cell_short(const void *of, size_t at, unsigned column, char text[TABLE_CELL_MAX])
{
    char whole[TABLE_CELL_MAX];
    cell(of, at, column, whole);
    if (column == COLUMN_KNOBS) {
        short_pairs(whole, text, TABLE_CELL_MAX);
    } else if (column == COLUMN_COST) {
        const doctor_state *s = of;
        snprintf(text, TABLE_CELL_MAX, "%s", hr_turn_cost_name(s->fix[at].cost));
    }
}

static double number(const void *of, size_t at, unsigned column)
{
    const doctor_state *s = of;
    const fix_row *row = &s->fix[at];
    return column == COLUMN_PEAK   ? (double)row->peak_bytes
           : column == COLUMN_LEFT ? left_of(row)
                                   : row->seconds;
}

static uint64_t key(const void *of, size_t at)
{
    const doctor_state *s = of;
    char words[HR_KNOB_TEXT_MAX];
    return name_key(doctor_fix_text(s->feed, &s->fix[at], words));
}

// Rows change with the report, with every answer, and with an end of the out-of-memory.
static uint64_t version(const void *of)
{
    const doctor_state *s = of;
    const feed *f = s->feed;
    return f->report_version << 40 ^ f->answers.question << 16 ^ (uint64_t)s->fix_count << 2 ^
           (uint64_t)doctor_misses(f) << 1 ^ doctor_has_oom(f);
}

static role role_of(const void *of, size_t at)
{
    const doctor_state *s = of;
    return s->fix[at].dry_run >= 0 ? ROLE_GOOD : ROLE_TEXT;
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .cell_short = cell_short,
    .number = number,
    .key = key,
    .version = version,
    .role_of = role_of,
    .selects = true,
    .empty = "No turn of one knob is planned to help; 0 looks at several together.",
};

// The planner works when nobody else does.
static bool is_planning(const feed *f)
{
    return f->planning != NULL && hr_planning_is_busy(f->planning);
}

static const char being_planned[] = "What other knobs would do is still being planned.";

// What stands in place of rows; NULL: the table's own words. A recorded step has no turns of several knobs.
static const char *words_for_none(const feed *f)
{
    return is_planning(f)                  ? being_planned
           : hr_preset_is_trace(f->preset) ? "No turn of its card or its allocator is planned to help."
                                           : NULL;
}

// Otherwise the step fits already.
static bool wants_fit(const feed *f)
{
    return doctor_has_oom(f) || doctor_misses(f);
}

// Once a frame: what each row costs is worked out from all knobs.
static pane_request settle(const pane_view *v, void *own)
{
    doctor_state *s = own;
    s->fix_count = doctor_fixes(v->feed, s->fix);
    return (pane_request){0};
}

static void draw(const canvas *c, const pane_view *v)
{
    char right[96];
    snprintf(right, sizeof right, "%s%s · %s · a applies", doctor_is_of_host(v->feed) ? "host · " : "",
             feed_unit(v->feed).name, wants_fit(v->feed) ? "planned to fit" : "need less");
    const char *words_there = words_for_none(v->feed);
    if (count(v->rows) == 0 && words_there != NULL) {
        canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        pane_table_rule(c, v, right);
        paint_wrapped(&words, 0, ROLE_DIM, words_there);
    } else {
        pane_draw_table(c, v, right);
    }
}

static pane_request enter(const pane_view *v, void *own)
{
    const doctor_state *s = own;
    const size_t at = table_selected(&v->tables[v->pane]);
    pane_request r = {.kind = at < s->fix_count ? PANE_TURNS : PANE_SAYS};
    if (at < s->fix_count) {
        doctor_fix_text(v->feed, &s->fix[at], r.text);
    } else {
        snprintf(r.text, sizeof r.text, "there is nothing to apply%s: no turn is planned to %s",
                 is_planning(v->feed) ? " yet" : "", wants_fit(v->feed) ? "fit" : "need less");
    }
    return r;
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const feed *f = v->feed;
    const doctor_state *s = v->rows;
    char words[HR_KNOB_TEXT_MAX], peak[FORMAT_MAX], seconds[FORMAT_MAX], cost[HR_TURN_WORDS_MAX];
    const size_t at = table_selected(&v->tables[v->pane]);
    if (at >= s->fix_count) {
        snprintf(text, PANE_TEXT_MAX, "%s", words_for_none(f) != NULL ? words_for_none(f) : source.empty);
        return;
    }
    const fix_row *row = &s->fix[at];
    const byte_unit unit = feed_unit(f);
    snprintf(text, PANE_TEXT_MAX,
             "%zu turns are planned to %s; %s would peak at %s %s%s and take %s a step: %s.", s->fix_count,
             wants_fit(f) ? "fit" : "need less", doctor_fix_text(f, row, words),
             format_bytes(row->peak_bytes, unit, peak), unit.name, doctor_is_of_host(f) ? " of the host" : "",
             format_seconds(row->seconds, seconds), doctor_fix_cost(f, row, cost));
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    const doctor_state *s = v->rows;
    char pairs[HR_KNOB_TEXT_MAX];
    size_t at = table_selected(&v->tables[v->pane]), used = 0;
    if (at >= s->fix_count) {
        return false;
    }
    text[0] = '\0';
    doctor_fix_text(v->feed, &s->fix[at], pairs);
    for (const char *pair = pairs; *pair != '\0' && used < size;) {
        size_t length = strcspn(pair, " ");
        int put = snprintf(text + used, size - used, "%s-s %.*s", used > 0 ? " " : "", (int)length, pair);
        used += put > 0 ? (size_t)put : 0;
        pair += length + (pair[length] == ' ');
    }
    return true;
}

const pane_ops pane_fixes = {.draw = draw,
                             .table = &source,
                             .table_y = 1,
                             .settle = settle,
                             .enter = enter,
                             .enter_does = "apply",
                             .say = say,
                             .copy = copy};
