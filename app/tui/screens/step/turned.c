// SPDX-License-Identifier: Apache-2.0
// The lines that come and go: what the last turn of a knob changed, and what the next one of the selected knob would.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/step/panes.h"

enum { LINE, NUMBER, CHANGE };

static const table_column columns[] = {
    [LINE] = {.term = "instruction"},
    [NUMBER] = {.term = "number", .width = 6, .number = true, .from_width = 70},
    [CHANGE] = {.term = "change", .width = 9, .number = true, .from_width = 60},
};

static const char *const questions[] = {
#define X(id, text) [STEP_##id] = text,
    STEP_QUESTION_MAP(X)
#undef X
};

static const step_changes *changes_of(const step_view *step)
{
    return &step->changes;
}

static bool is_text(const step_view *step)
{
    return changes_of(step)->question != STEP_LAST;
}

static size_t count(const void *of)
{
    const step_view *step = of;
    const step_changes *c = changes_of(step);
    return is_text(step) ? c->line_count : c->compared && feed_step_plan(step->feed) != NULL ? c->count : 0;
}

static const char *line_of(const step_view *step, size_t row)
{
    return changes_of(step)->text + changes_of(step)->line_at[row];
}

static char sign_of(const step_view *step, size_t row)
{
    char sign = is_text(step) ? line_of(step, row)[0] : changes_of(step)->rows[row].sign;
    return sign == '+' || sign == '-' || sign == '~' ? sign : ' ';
}

// What the line takes or gives back; of one that stays, how that differs.
static double number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    if (is_text(step)) {
        return UNKNOWN;
    }
    const step_turned *turned = &changes_of(step)->rows[row];
    if (column == NUMBER) {
        return (double)(turned->now != HR_NO_ID ? turned->now : turned->before);
    }
    const hr_step_plan *one = &step->before, *other = &step->feed->step_plan;
    double before = turned->before < one->instr_count ? step_change_bytes(one, turned->before) : 0;
    double now = turned->now < other->instr_count ? step_change_bytes(other, turned->now) : 0;
    return turned->sign == '-' ? before : now - before;
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    char words[FORMAT_MAX];
    double value = number(step, row, column);
    if (column == CHANGE) {
        snprintf(text, TABLE_CELL_MAX, "%s",
                 isnan(value) ? "" : step_delta(value, step_tensor_unit(step), words));
    } else if (column == NUMBER) {
        snprintf(text, TABLE_CELL_MAX, isnan(value) ? "" : "%.0f", value);
    } else if (is_text(step)) {
        snprintf(text, TABLE_CELL_MAX, "%s", line_of(step, row));
    } else {
        const step_turned *turned = &changes_of(step)->rows[row];
        bool comes = turned->now != HR_NO_ID;
        char line[TABLE_CELL_MAX - 2];
        snprintf(text, TABLE_CELL_MAX, "%c %s", turned->sign,
                 step_short_line(comes ? &step->feed->step_plan : &step->before,
                                 comes ? turned->now : turned->before, line, sizeof line));
    }
}

static uint64_t version(const void *of)
{
    const step_view *step = of;
    return step->feed->step_plan_version << 32 | (changes_of(step)->version << 2 & UINT32_MAX) |
           (uint64_t)changes_of(step)->question;
}

static role role_of(const void *of, size_t row)
{
    const step_view *step = of;
    char sign = sign_of(step, row);
    return sign == '+' ? ROLE_GOOD : sign == '-' ? ROLE_BAD : sign == '~' ? ROLE_WARN : ROLE_DIM;
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .version = version,
    .role_of = role_of,
    .empty = "No line comes or goes.",
};

// ---- the pane -------------------------------------------------------------------------------------------------

// "batch.size 128 → 256"; false: there is nothing on that side.
static bool turn_text(const step_view *step, char *text, size_t size)
{
    char next[HR_KNOB_TEXT_MAX], now[HR_KNOB_TEXT_MAX];
    size_t rows;
    hr_knob_id id = feed_knob(step->feed);
    const hr_knob_row *row = &hr_knob_rows(&rows)[id];
    int direction = changes_of(step)->question == STEP_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE;
    if (!knob_edit_reach(&step->feed->knobs, id, direction, step->feed->live.limit_bytes, next, NULL)) {
        snprintf(text, size, "%s has nothing on that side", row->key);
        return false;
    }
    snprintf(text, size, "%s %s → %s would", row->key, hr_knob_format(&step->feed->knobs, id, now), next);
    return true;
}

static const char *title(const step_view *step, char *text, size_t size)
{
    const step_changes *c = changes_of(step);
    if (is_text(step)) {
        (void)turn_text(step, text, size);
    } else if (c->compared) {
        snprintf(text, size, "+%zu -%zu ~%zu%s%s", c->come, c->go, c->change, c->what[0] != '\0' ? ": " : "",
                 c->what);
    } else {
        snprintf(text, size, "the last turn");
    }
    return text;
}

// A sentence where there are no rows; NULL where the table has them, or its own.
static const char *sentence(const step_view *step)
{
    const step_changes *c = changes_of(step);
    char unused[2 * HR_KNOB_TEXT_MAX + 64];
    if (!is_text(step)) {
        return c->compared ? NULL
                           : "No knob has been turned since the step was planned. Enter asks what < and > "
                             "would change.";
    }
    if (!turn_text(step, unused, sizeof unused)) {
        return "There is no value on that side. Enter asks another question, [ ] another knob.";
    }
    if (!c->answered) {
        return "The planner is being asked.";
    }
    return c->line_count == 0 ? "Nothing can be said about that turn: those knobs do not go together." : NULL;
}

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    char text[2 * HR_KNOB_TEXT_MAX + 64], right[sizeof text + 32];
    bool focused = v->focused;
    snprintf(right, sizeof right, "%s · Enter", title(step, text, sizeof text));
    pane_table_rule(c, v, right);
    const char *words = sentence(step);
    if (words != NULL) {
        canvas inner = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&inner, 0, ROLE_DIM, words);
    } else {
        table_draw(c, 1, step, &source, &step->tables[PANE_TURNED], focused);
    }
}

static pane_request settle(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    step_forget_stale(step);
    return (pane_request){.kind = PANE_DONE};
}

static pane_request enter(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    step_changes *c = &step->changes;
    c->question = (step_question)((c->question + 1) % STEP_QUESTION_COUNT);
    c->version++;
    return pane_says("lines that come and go with %s; Enter asks again", questions[c->question]);
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const step_changes *c = changes_of(step);
    char turn[2 * HR_KNOB_TEXT_MAX + 64];
    const char *words = sentence(step);
    if (words != NULL) {
        snprintf(text, PANE_TEXT_MAX, "%s", words);
    } else if (is_text(step)) {
        snprintf(text, PANE_TEXT_MAX, "%s change %zu lines of the listing.", title(step, turn, sizeof turn),
                 c->line_count);
    } else {
        snprintf(text, PANE_TEXT_MAX, "With the last turn %zu instructions came, %zu went and %zu changed.",
                 c->come, c->go, c->change);
    }
}

const pane_ops pane_turned = {.draw = draw,
                              .settle = settle,
                              .table = &source,
                              .table_y = 1,
                              .enter = enter,
                              .enter_does = "ask",
                              .say = say};
