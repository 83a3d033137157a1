// SPDX-License-Identifier: Apache-2.0
// The lines that come and go: what the last turn of a knob changed, and what the next one of the selected knob would.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/program.h"

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

static const step_changes *changes_of(const app *a)
{
    return &a->step.changes;
}

static bool is_text(const app *a)
{
    return changes_of(a)->question != STEP_LAST;
}

static size_t count(const void *of)
{
    const app *a = of;
    const step_changes *c = changes_of(a);
    return is_text(a) ? c->line_count : c->compared && feed_step_plan(&a->feed) != NULL ? c->count : 0;
}

static const char *line_of(const app *a, size_t row)
{
    return changes_of(a)->text + changes_of(a)->line_at[row];
}

static char sign_of(const app *a, size_t row)
{
    char sign = is_text(a) ? line_of(a, row)[0] : changes_of(a)->rows[row].sign;
    return sign == '+' || sign == '-' || sign == '~' ? sign : ' ';
}

// What the line takes or gives back; of one that stays, how that differs.
static double number(const void *of, size_t row, unsigned column)
{
    const app *a = of;
    if (is_text(a)) {
        return UNKNOWN;
    }
    const step_turned *turned = &changes_of(a)->rows[row];
    if (column == NUMBER) {
        return (double)(turned->now != HR_NO_ID ? turned->now : turned->before);
    }
    const hr_step_plan *one = &a->step.before, *other = &a->feed.step_plan;
    double before = turned->before < one->instr_count ? step_change_bytes(one, turned->before) : 0;
    double now = turned->now < other->instr_count ? step_change_bytes(other, turned->now) : 0;
    return turned->sign == '-' ? before : now - before;
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const app *a = of;
    char words[FORMAT_MAX];
    double value = number(a, row, column);
    if (column == CHANGE) {
        snprintf(text, TABLE_CELL_MAX, "%s",
                 isnan(value) ? "" : step_delta(value, step_tensor_unit(a), words));
    } else if (column == NUMBER) {
        snprintf(text, TABLE_CELL_MAX, isnan(value) ? "" : "%.0f", value);
    } else if (is_text(a)) {
        snprintf(text, TABLE_CELL_MAX, "%s", line_of(a, row));
    } else {
        const step_turned *turned = &changes_of(a)->rows[row];
        bool comes = turned->now != HR_NO_ID;
        char line[TABLE_CELL_MAX - 2];
        snprintf(text, TABLE_CELL_MAX, "%c %s", turned->sign,
                 step_short_line(comes ? &a->feed.step_plan : &a->step.before,
                                 comes ? turned->now : turned->before, line, sizeof line));
    }
}

static uint64_t version(const void *of)
{
    const app *a = of;
    return a->feed.step_plan_version << 32 | (changes_of(a)->version << 2 & UINT32_MAX) |
           (uint64_t)changes_of(a)->question;
}

static role role_of(const void *of, size_t row)
{
    const app *a = of;
    char sign = sign_of(a, row);
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
static bool turn_text(const app *a, char *text, size_t size)
{
    char next[HR_KNOB_TEXT_MAX], now[HR_KNOB_TEXT_MAX];
    size_t rows;
    hr_knob_id id = feed_knob(&a->feed);
    const hr_knob_row *row = &hr_knob_rows(&rows)[id];
    int direction = changes_of(a)->question == STEP_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE;
    if (!knob_edit_neighbour(&a->feed.knobs, id, direction, a->feed.live.limit_bytes, next)) {
        snprintf(text, size, "%s has nothing on that side", row->key);
        return false;
    }
    snprintf(text, size, "%s %s → %s would", row->key, hr_knob_format(&a->feed.knobs, id, now), next);
    return true;
}

static const char *title(const app *a, char *text, size_t size)
{
    const step_changes *c = changes_of(a);
    if (is_text(a)) {
        (void)turn_text(a, text, size);
    } else if (c->compared) {
        snprintf(text, size, "+%zu -%zu ~%zu%s%s", c->come, c->go, c->change, c->what[0] != '\0' ? ": " : "",
                 c->what);
    } else {
        snprintf(text, size, "the last turn");
    }
    return text;
}

// A sentence where there are no rows; NULL where the table has them, or its own.
static const char *sentence(const app *a)
{
    const step_changes *c = changes_of(a);
    char unused[2 * HR_KNOB_TEXT_MAX + 64];
    if (!is_text(a)) {
        return c->compared ? NULL
                           : "No knob has been turned since the step was planned. Enter asks what < and > "
                             "would change.";
    }
    if (!turn_text(a, unused, sizeof unused)) {
        return "There is no value on that side. Enter asks another question, [ ] another knob.";
    }
    if (!c->answered) {
        return "The planner is being asked.";
    }
    return c->line_count == 0 ? "Nothing can be said about that turn: those knobs do not go together." : NULL;
}

static void draw(const canvas *c, const app *a)
{
    char text[2 * HR_KNOB_TEXT_MAX + 64], right[sizeof text + 32];
    bool focused = a->focus == PANE_TURNED;
    snprintf(right, sizeof right, "%s · Enter", title(a, text, sizeof text));
    const pane_view v = pane_view_of(a, PANE_TURNED);
    pane_table_rule(c, &v, right);
    const char *words = sentence(a);
    if (words != NULL) {
        canvas inner = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&inner, 0, ROLE_DIM, words);
    } else {
        table_draw(c, 1, a, &source, &a->table[PANE_TURNED], focused);
    }
}

static void enter(app *a)
{
    step_changes *c = &a->step.changes;
    c->question = (step_question)((c->question + 1) % STEP_QUESTION_COUNT);
    c->version++;
    feed_say(&a->feed, MESSAGE_NOTE, "lines that come and go with %s; Enter asks again",
             questions[c->question]);
}

static void say(app *a)
{
    const step_changes *c = changes_of(a);
    char text[2 * HR_KNOB_TEXT_MAX + 64];
    const char *words = sentence(a);
    if (words != NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", words);
    } else if (is_text(a)) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s change %zu lines of the listing.", title(a, text, sizeof text),
                 c->line_count);
    } else {
        feed_say(&a->feed, MESSAGE_NOTE,
                 "With the last turn %zu instructions came, %zu went and %zu changed.", c->come, c->go,
                 c->change);
    }
}

const pane_ops pane_turned = {.by_app.draw = draw,
                              .by_app.settle = step_settle_turned,
                              .table = &source,
                              .table_y = 1,
                              .by_app.enter = enter,
                              .enter_does = "ask",
                              .by_app.say = say};
