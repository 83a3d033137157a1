// SPDX-License-Identifier: Apache-2.0
// Runs: the session's runs in a table, two of them laid over each other, and what differs.
#include "app/tui/screens/runs/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/feed/short_pairs.h"

enum {
    COLUMN_NUMBER,
    COLUMN_PRESET,
    COLUMN_KNOBS,
    COLUMN_PEAK,
    COLUMN_LIMIT,
    COLUMN_WASTE,
    COLUMN_FRAGMENTATION,
    COLUMN_SECONDS,
    COLUMN_RATE,
    COLUMN_STEPS,
    COLUMN_LOSS_FIRST,
    COLUMN_LOSS_LAST,
    COLUMN_RESULT,
};

static const table_column columns[] = {
    [COLUMN_NUMBER] = {.term = "run", .width = 4},
    [COLUMN_PRESET] = {.term = "preset", .width = 14, .from_width = 130, .middle = true},
    [COLUMN_KNOBS] =
        {.term = "knobs",
         .line = "where the run differs from the first one; what sets it apart from the others comes first"},
    [COLUMN_PEAK] = {.term = "peak",
                     .width = 7,
                     .number = true,
                     .line = "the largest in_use of the steps of this run"},
    [COLUMN_LIMIT] = {.term = "limit",
                      .width = 7,
                      .number = true,
                      .from_width = 70,
                      .line = "the most that the allocator could take in this run"},
    [COLUMN_WASTE] = {.term = "waste", .width = 7, .number = true, .from_width = 110},
    [COLUMN_FRAGMENTATION] = {.term = "fragmentation", .width = 13, .number = true, .from_width = 150},
    [COLUMN_SECONDS] = {.term = "seconds",
                        .width = 7,
                        .number = true,
                        .line = "mean time of the steps of this run"},
    [COLUMN_RATE] = {.term = "it/s", .width = 5, .number = true, .from_width = 90},
    [COLUMN_STEPS] = {.term = "steps", .width = 5, .number = true, .from_width = 60},
    [COLUMN_LOSS_FIRST] = {.term = "loss_first", .width = 10, .number = true, .from_width = 115},
    [COLUMN_LOSS_LAST] = {.term = "loss_last", .width = 9, .number = true, .from_width = 76},
    [COLUMN_RESULT] = {.term = "result", .width = 12},
};

static const signed char measure_of[] = {
    [COLUMN_PEAK] = MEASURE_PEAK,
    [COLUMN_LIMIT] = MEASURE_LIMIT,
    [COLUMN_WASTE] = MEASURE_WASTE,
    [COLUMN_FRAGMENTATION] = MEASURE_FRAGMENTATION,
    [COLUMN_SECONDS] = MEASURE_SECONDS,
    [COLUMN_STEPS] = MEASURE_STEPS,
    [COLUMN_LOSS_FIRST] = MEASURE_LOSS_FIRST,
    [COLUMN_LOSS_LAST] = MEASURE_LOSS_LAST,
};

static const feed *feed_of(const void *of)
{
    const runs_view *v = of;
    return v->feed;
}

static size_t count(const void *of)
{
    const feed *f = feed_of(of);
    return feed_runs(f)->count;
}

// The newest first; row < count.
static const run *run_of(const feed *f, size_t row)
{
    return &feed_runs(f)->runs[feed_runs(f)->count - 1 - row];
}

const run *runs_selected(const runs_view *v)
{
    const size_t row = table_selected(v->table);
    return row < feed_runs(v->feed)->count ? run_of(v->feed, row) : NULL;
}

static uint64_t key(const void *of, size_t row)
{
    const feed *f = feed_of(of);
    return run_of(f, row)->number;
}

static uint64_t version(const void *of)
{
    const feed *f = feed_of(of);
    return feed_runs(f)->version;
}

// The first run's own knobs stand as they were opened; the others say where they differ from it.
static const char *knobs_cell(const feed *f, const run *r, char text[TABLE_CELL_MAX])
{
    const run *first = run_log_at(feed_runs(f), 0);
    const bool other = strcmp(first->preset, r->preset) != 0;
    size_t used = 0;
    text[0] = '\0';
    if (r->name[0] != '\0') {
        used = (size_t)snprintf(text, TABLE_CELL_MAX, "%s: ", r->name);
    }
    if (r == first) {
        snprintf(text + used, TABLE_CELL_MAX - used, "the first run");
        return text;
    }
    used += (size_t)snprintf(text + used, TABLE_CELL_MAX - used, "%s%s", other ? r->preset : "",
                             other ? " " : "");
    run_distinction(feed_runs(f), r, text + used, TABLE_CELL_MAX - used);
    if (text[used] == '\0' && !other) {
        snprintf(text + used, TABLE_CELL_MAX - used, "as the first run");
    }
    return text;
}

static void result_cell(const feed *f, const run *r, char text[TABLE_CELL_MAX])
{
    bool present = r == run_log_current(feed_runs(f)) && r->result == RUN_RUNNING;
    if (present && feed_run_state(f)->state < HR_ENGINE_STATE_COUNT) {
        snprintf(text, TABLE_CELL_MAX, "%s", hr_engine_state_name((hr_engine_state)feed_run_state(f)->state));
    } else if (r->result == RUN_OOM && r->cause[0] != '\0') {
        snprintf(text, TABLE_CELL_MAX, "oom %s", r->cause);
    } else {
        snprintf(text, TABLE_CELL_MAX, "%s", run_result_name(r->result));
    }
}

// One unit for the whole table.
static byte_unit table_unit(const feed *f)
{
    measures highest = measures_unknown();
    for (size_t i = 0; i < feed_runs(f)->count; i++) {
        for (int id = 0; id < MEASURE_ALL; id++) {
            highest.value[id] = fmax(highest.value[id], feed_runs(f)->runs[i].measures.value[id]);
        }
    }
    return feed_runs(f)->count > 0 ? measures_unit(&highest, NULL) : feed_unit(f);
}

static const char *rate_text(double per_second, char text[FORMAT_MAX])
{
    if (isnan(per_second)) {
        return strcpy(text, "—");
    }
    snprintf(text, FORMAT_MAX, per_second < 100 ? "%.1f" : "%.0f", per_second);
    return text;
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const feed *f = feed_of(of);
    const run *r = run_of(f, row);
    char value[FORMAT_MAX];
    switch (column) {
    case COLUMN_NUMBER:
        snprintf(text, TABLE_CELL_MAX, "%" PRIu32 "%s", r->number,
                 r->number == feed_runs(f)->pinned ? "b" : "");
        return;
    case COLUMN_PRESET:
        snprintf(text, TABLE_CELL_MAX, "%s", r->preset);
        return;
    case COLUMN_KNOBS:
        knobs_cell(f, r, text);
        return;
    case COLUMN_RATE:
        snprintf(text, TABLE_CELL_MAX, "%s", rate_text(run_steps_per_second(r), value));
        return;
    case COLUMN_RESULT:
        result_cell(f, r, text);
        return;
    default:
        break;
    }
    measure_id id = (measure_id)measure_of[column];
    snprintf(text, TABLE_CELL_MAX, "%s", measure_format(id, r->measures.value[id], table_unit(f), value));
}

static void cell_short(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    char whole[TABLE_CELL_MAX];
    cell(of, row, column, whole);
    if (column == COLUMN_KNOBS) {
        short_pairs(whole, text, TABLE_CELL_MAX);
    }
}

static double number(const void *of, size_t row, unsigned column)
{
    const feed *f = feed_of(of);
    const run *r = run_of(f, row);
    return column == COLUMN_RATE ? run_steps_per_second(r) : r->measures.value[measure_of[column]];
}

static role role_of(const void *of, size_t row)
{
    const feed *f = feed_of(of);
    const run *r = run_of(f, row);
    return r->result >= RUN_OOM                 ? ROLE_BAD
           : r->number == feed_runs(f)->pinned  ? ROLE_BASELINE
           : r == run_log_current(feed_runs(f)) ? ROLE_GOOD
                                                : ROLE_TEXT;
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
    .empty = "No step has ended yet. Every turn of a knob begins a new run, and this table compares them.",
};

// ---- which two ------------------------------------------------------------------------------------------------

run_pair runs_shown(const runs_view *v)
{
    const run *selected = runs_selected(v);
    return run_log_pair(feed_runs(v->feed), v->table->marked, v->table->marks,
                        selected == NULL ? 0 : selected->number);
}

byte_unit runs_unit(const run_pair *pair)
{
    return measures_unit(pair->a == NULL ? NULL : &pair->a->measures,
                         pair->b == NULL ? NULL : &pair->b->measures);
}

const char *runs_name(const feed *f, const run *r, char text[FORMAT_MAX])
{
    snprintf(text, FORMAT_MAX, "run %" PRIu32 "%s", r->number,
             r->number == feed_runs(f)->pinned ? " (baseline)" : "");
    return text;
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw(const canvas *c, const pane_view *v)
{
    char right[96];
    snprintf(right, sizeof right, "%s · t marks two · a turns the knobs back", table_unit(v->feed).name);
    pane_draw_table(c, v, right);
}

// Shows what the selected run differs in.
static pane_request enter(const pane_view *v, void *own)
{
    (void)own;
    return runs_selected(v->rows) == NULL
               ? (pane_request){.kind = PANE_SAYS, .text = "there is no run to look at yet"}
               : (pane_request){.kind = PANE_FOCUSES, .pane = PANE_DIFF};
}

// To the knobs of a run of this preset.
static pane_request turn_back(const feed *f, const run *r)
{
    char pairs[TABLE_CELL_MAX];
    const run now = {.knobs = f->knobs};
    pane_request to = {.kind = PANE_TURNS_ALL, .knobs = &r->knobs};
    run_pairs(&now, r, pairs, sizeof pairs);
    snprintf(to.text, sizeof to.text, "as in run %" PRIu32 ": %s; z turns it back", r->number, pairs);
    if (pairs[0] == '\0') {
        to.kind = PANE_SAYS;
        snprintf(to.text, sizeof to.text, "the knobs are those of run %" PRIu32 " already", r->number);
    } else if (r->result == RUN_OOM) {
        to.sure_of = r->number;
        snprintf(to.doubt, sizeof to.doubt,
                 "run %" PRIu32 " ran out of memory: a again turns its knobs back all the same", r->number);
    }
    return to;
}

static pane_request apply(const pane_view *v)
{
    const run *r = runs_selected(v->rows);
    pane_request none = {.kind = PANE_SAYS, .text = "there is no run to go back to yet"};
    if (r == NULL) {
        return none;
    }
    if (strcmp(r->preset, hr_preset_name(v->feed->preset)) != 0) {
        snprintf(none.text, sizeof none.text, "run %" PRIu32 " was of the preset %s: p opens it", r->number,
                 r->preset);
        return none;
    }
    return turn_back(v->feed, r);
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const feed *f = v->feed;
    const run *r = runs_selected(v->rows);
    char peak[FORMAT_MAX], seconds[FORMAT_MAX], knobs[TABLE_CELL_MAX], result[TABLE_CELL_MAX];
    if (r == NULL) {
        snprintf(text, PANE_TEXT_MAX, "%s", source.empty);
        return;
    }
    const byte_unit unit = table_unit(f);
    result_cell(f, r, result);
    snprintf(text, PANE_TEXT_MAX,
             "Run %" PRIu32 " of %zu, %.80s (%.600s), peaked at %s %s and took %s a step.", r->number,
             feed_runs(f)->count, result, knobs_cell(f, r, knobs),
             measure_format(MEASURE_PEAK, r->measures.value[MEASURE_PEAK], unit, peak), unit.name,
             measure_format(MEASURE_SECONDS, r->measures.value[MEASURE_SECONDS], unit, seconds));
}

const pane_ops pane_runs = {.draw = draw,
                            .table = &source,
                            .table_y = 1,
                            .enter = enter,
                            .enter_does = "diff",
                            .apply = apply,
                            .say = say};

// ---- its place ------------------------------------------------------------------------------------------------

void place_runs(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    l->pane[PANE_RUNS] = cut_top(&body, layout_clamp(body.h * 2 / 5, 7, body.h - 10));
    l->pane[PANE_OVERLAY] = cut_left(&body, body.w / 2 - (body.w < 100 ? 4 : 0));
    l->pane[PANE_DIFF] = body;
}
