// SPDX-License-Identifier: Apache-2.0
// The knob panel: keys and values, and what the neighbours of each value would do to the peak before it is touched.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/act.h"
#include "app/tui/say.h"
#include "app/tui/widgets/widgets.h"

enum {
    HELP_ROWS = 4,
    PEAKS_MIN = 44, // columns from which every row shows its neighbours' peaks; below that a mark of each
    TIMES_MIN = 58, // and what they do to the time of a step
    PEAK_WIDTH = 8,
    TIME_WIDTH = 6,
    MARK_WIDTH = 2,
};

static const hr_knob_row *row_of(hr_knob_id id)
{
    size_t count;
    return &hr_knob_rows(&count)[id];
}

static bool is_pending(const app *a, hr_knob_id id)
{
    char wanted[HR_KNOB_TEXT_MAX], applied[HR_KNOB_TEXT_MAX];
    return strcmp(hr_knob_format(&a->knobs, id, wanted), hr_knob_format(&a->applied, id, applied)) != 0;
}

// A key that is too long for its column loses its group, then its end.
static void draw_key(const canvas *c, int y, int x, int width, role r, const char *key)
{
    const char *dot = strchr(key, '.');
    if (glyphs_width(c->glyphs, key) <= width || dot == NULL) {
        paint_text(c, y, x, width, r, key);
    } else {
        paint_format(c, y, x, width, r, "…%s", dot + 1);
    }
}

// What is to be had of a row's two neighbours in a pane of this width.
typedef enum plan_look { PLAN_MARKS, PLAN_PEAKS, PLAN_TIMES } plan_look;

static plan_look look_of(int width)
{
    return width >= TIMES_MIN ? PLAN_TIMES : width >= PEAKS_MIN ? PLAN_PEAKS : PLAN_MARKS;
}

static int plan_width(plan_look look)
{
    return look == PLAN_MARKS ? 1 : look == PLAN_PEAKS ? PEAK_WIDTH : PEAK_WIDTH + TIME_WIDTH;
}

// What the limit lacks, in the screen's unit: "OOM+43".
static void say_missing(const app *a, uint64_t missing_bytes, char text[FORMAT_MAX])
{
    byte_unit unit = app_unit(a);
    double missing = (double)missing_bytes / unit.bytes;
    snprintf(text, FORMAT_MAX, missing < 10 ? "OOM+%.1f" : "OOM+%.0f", missing);
}

static void draw_change(const canvas *c, int y, int x, const app *a, const hr_whatif *plan,
                        const hr_whatif *present)
{
    char text[FORMAT_MAX];
    double change = (double)plan->peak_in_use_bytes - (double)present->peak_in_use_bytes;
    format_delta_bytes(change, app_unit(a), text);
    paint_right(c, y, x, PEAK_WIDTH, change < 0 ? ROLE_GOOD : change > 0 ? ROLE_TEXT : ROLE_DIM, text);
}

static void draw_time(const canvas *c, int y, int x, const hr_whatif *plan, const hr_whatif *present)
{
    char text[FORMAT_MAX];
    double share = plan->step_seconds / present->step_seconds - 1;
    if (!isfinite(share)) {
        return; // the device tells no seconds
    }
    snprintf(text, sizeof text, fabs(share) < 0.005 ? "±0%%" : "%+.0f%%", 100 * share);
    paint_right(c, y, x, TIME_WIDTH, share < -0.005 ? ROLE_GOOD : share > 0.005 ? ROLE_TEXT : ROLE_DIM, text);
}

// One character: less memory, more, as much, or not to be had.
static void draw_mark(const canvas *c, int y, int x, const hr_whatif *plan, const hr_whatif *present)
{
    bool less = plan->peak_in_use_bytes < present->peak_in_use_bytes;
    bool more = plan->peak_in_use_bytes > present->peak_in_use_bytes;
    const char *mark = !plan->fits ? "!" : less ? "▾" : more ? "▴" : "=";
    paint_text(c, y, x, 1, !plan->fits ? ROLE_BAD : less ? ROLE_GOOD : ROLE_DIM, mark);
}

// What one neighbour of a row would do to the peak, and, with room, to the time of a step.
static void draw_plan(const canvas *c, int y, int x, const app *a, hr_knob_id id, int side)
{
    char text[FORMAT_MAX];
    plan_look look = look_of(c->area.w);
    const whatif_cell *cell = app_whatif(a, id, side), *present = &a->answers.present;
    if (cell == NULL || cell->refused || present->refused) {
        paint_right(c, y, x, look == PLAN_MARKS ? 1 : PEAK_WIDTH, ROLE_DIM, cell == NULL ? "·" : "");
    } else if (look == PLAN_MARKS) {
        draw_mark(c, y, x, &cell->plan, &present->plan);
    } else if (!cell->plan.fits) {
        say_missing(a, cell->plan.missing_bytes, text);
        paint_right(c, y, x, PEAK_WIDTH, ROLE_BAD, text);
    } else {
        draw_change(c, y, x, a, &cell->plan, &present->plan);
        if (look == PLAN_TIMES) {
            draw_time(c, y, x + PEAK_WIDTH, &cell->plan, &present->plan);
        }
    }
}

// "64 ×4 = 256" where gradients of several batches are added up: the samples of one update stand beside the batch.
static void say_value(const app *a, hr_knob_id id, char *text, size_t size)
{
    char value[HR_KNOB_TEXT_MAX];
    int64_t batch = hr_knob_int(&a->knobs, HR_KNOB_BATCH_SIZE);
    int64_t rounds = hr_knob_int(&a->knobs, HR_KNOB_BATCH_ACCUMULATE);
    hr_knob_format(&a->knobs, id, value);
    if (a->unknown) {
        snprintf(text, size, "—");
    } else if (id == HR_KNOB_BATCH_SIZE && rounds > 1) {
        snprintf(text, size, "%" PRId64 " ×%" PRId64 " = %" PRId64, batch, rounds, batch * rounds);
    } else {
        snprintf(text, size, "%s", value[0] == '\0' ? "none" : value);
    }
}

static void draw_knob(const canvas *c, int y, const app *a, hr_knob_id id, bool selected)
{
    char value[HR_KNOB_TEXT_MAX], shown[HR_KNOB_TEXT_MAX + 16];
    int each = plan_width(look_of(c->area.w));
    int width = c->area.w - 2 * each;
    role r = selected ? ROLE_SELECT : ROLE_TEXT;
    say_value(a, id, value, sizeof value);
    snprintf(shown, sizeof shown, selected ? "◂ %s ▸" : "%s", value);
    int value_width = glyphs_width(c->glyphs, shown);
    int key_width = width - MARK_WIDTH - value_width - 1;
    if (selected) {
        paint_blank(c, y, 0, width, theme_role(c->theme, r));
    }
    paint_text(c, y, 0, 1, selected ? ROLE_SELECT : ROLE_WARN, is_pending(a, id) ? "*" : "");
    draw_key(c, y, MARK_WIDTH - 1, key_width < 8 ? 8 : key_width, r, row_of(id)->key);
    paint_right(c, y, key_width < 8 ? MARK_WIDTH + 8 : 0, key_width < 8 ? width - MARK_WIDTH - 8 : width, r,
                shown);
    draw_plan(c, y, width, a, id, WHATIF_LESS);
    draw_plan(c, y, width + each, a, id, WHATIF_MORE);
}

// ", 11-14 ms e" behind what a neighbour would take, where it is known and there is room.
static void add_seconds(const canvas *c, const char *device, const hr_whatif *plan, char *line, size_t size)
{
    char seconds[HR_SECONDS_RANGE_MAX + FORMAT_MAX], more[sizeof seconds + 8];
    if (isnan(plan->step_seconds)) {
        return;
    }
    if (plan->step_seconds_high > 0) {
        snprintf(more, sizeof more, ", %s e",
                 hr_seconds_range(plan->step_seconds_low, plan->step_seconds_high, seconds));
    } else {
        snprintf(more, sizeof more, ", %s %s", format_seconds(plan->step_seconds, seconds),
                 strcmp(device, "plan") == 0 ? "s" : "e");
    }
    if (glyphs_width(c->glyphs, line) + glyphs_width(c->glyphs, more) <= c->area.w - 1) {
        snprintf(line + strlen(line), size - strlen(line), "%s", more);
    }
}

// The driver's own pool is planned as another one.
static bool guesses_pool(const app *a, hr_knob_id id, const char *value)
{
    static const char drivers[] = "async_driver";
    return id == HR_KNOB_ALLOCATOR_KIND ? strcmp(value, drivers) == 0
                                        : hr_knob_is(&a->knobs, HR_KNOB_ALLOCATOR_KIND, drivers);
}

// "◂ 64 peak 34.47 MiB p, 12.4 ms s", "▸ 256 misses by 42.50 MiB p" where that is too much
static void draw_neighbour(const canvas *c, int y, const app *a, int side)
{
    char value[HR_KNOB_TEXT_MAX], text[FORMAT_MAX], line[HR_KNOB_TEXT_MAX + 3 * FORMAT_MAX];
    hr_knob_id id = app_knob(a);
    byte_unit unit = app_unit(a);
    const char *arrow = side == WHATIF_LESS ? "◂" : "▸";
    if (a->unknown || !turn_neighbour(&a->knobs, id, side == WHATIF_LESS ? TURN_LESS : TURN_MORE,
                                      a->live.limit_bytes, value)) {
        return;
    }
    const whatif_cell *cell = app_whatif(a, id, side);
    const char *source = (cell != NULL && cell->estimated) || guesses_pool(a, id, value) ? "e" : "p";
    if (cell == NULL) {
        paint_format(c, y, 0, c->area.w, ROLE_DIM, "%s %s", arrow, value);
    } else if (cell->refused) {
        paint_format(c, y, 0, c->area.w, ROLE_DIM, "%s %s is refused here", arrow, value);
    } else if (cell->plan.fits) {
        format_bytes(cell->plan.peak_in_use_bytes, unit, text);
        snprintf(line, sizeof line, "%s %s peak %s %s %s", arrow, value, text, unit.name, source);
        add_seconds(c, id == HR_KNOB_DEVICE_KIND ? value : hr_knob_text(&a->knobs, HR_KNOB_DEVICE_KIND),
                    &cell->plan, line, sizeof line);
        paint_text(c, y, 0, c->area.w, ROLE_TEXT, line);
    } else {
        format_bytes(cell->plan.missing_bytes, unit, text);
        paint_format(c, y, 0, c->area.w, ROLE_BAD, "%s %s misses by %s %s %s", arrow, value, text, unit.name,
                     source);
    }
}

// One line of help and both neighbours; with more room the whole explanation.
static void draw_help(const canvas *c, const app *a)
{
    const hr_knob_row *row = row_of(app_knob(a));
    bool whole = c->area.h > HELP_ROWS + 2;
    canvas words = canvas_sub(c, 0, 0, whole ? c->area.h : c->area.h - 2, c->area.w - 1);
    int y = whole ? 1 : 0;
    y += paint_wrapped(&words, y, whole ? ROLE_TEXT : ROLE_DIM, row->line);
    y = whole ? y : c->area.h - 2;
    draw_neighbour(c, y, a, WHATIF_LESS);
    draw_neighbour(c, y + 1, a, WHATIF_MORE);
    if (whole) {
        y += 2 + paint_wrapped(&words, y + 2, ROLE_DIM, row->explanation);
    }
    if (whole && row->applies != NULL) {
        char applies[256];
        snprintf(applies, sizeof applies, "Applies %s.", row->applies);
        paint_wrapped(&words, y, ROLE_DIM, applies);
    }
}

// The letter of the column: "e" until the device has answered for every neighbour.
static const char *source_of_all(const app *a)
{
    size_t count;
    const hr_knob_id *panel = turn_panel(&count);
    bool estimated = false;
    for (size_t k = 0; k < count; k++) {
        for (int side = 0; side < WHATIF_SIDES; side++) {
            const whatif_cell *cell = app_whatif(a, panel[k], side);
            estimated = estimated || (cell != NULL && cell->estimated);
        }
    }
    return estimated ? "e" : "p";
}

void widget_knobs(const canvas *c, const app *a)
{
    size_t count;
    const hr_knob_id *panel = turn_panel(&count);
    int rows, help;
    size_t top;
    app_knob_list(a, c->area.h, &rows, &help, &top);
    char right[48] = "", title[32];
    snprintf(title, sizeof title, "%s %zu/%zu", pane_title(PANE_KNOBS), a->knob + 1, count);
    if (look_of(c->area.w) == PLAN_MARKS) {
        snprintf(right, sizeof right, "◂▸");
    } else if (look_of(c->area.w) == PLAN_PEAKS) {
        snprintf(right, sizeof right, "Δ peak %s %s    ◂       ▸", app_unit(a).name, source_of_all(a));
    } else {
        snprintf(right, sizeof right, "Δ peak %s %s   ◂  time       ▸  time", app_unit(a).name,
                 source_of_all(a));
    }
    paint_rule(c, a->focus == PANE_KNOBS, title, right);
    for (int y = 0; y < rows && top + (size_t)y < count; y++) {
        draw_knob(c, 1 + y, a, panel[top + (size_t)y], top + (size_t)y == a->knob);
    }
    if (help > 0) {
        canvas below = canvas_sub(c, c->area.h - help, 0, help, c->area.w);
        draw_help(&below, a);
    }
}

static void click(app *a, int y, int x)
{
    (void)x;
    int rows, help;
    size_t top, count;
    layout l = app_layout(a);
    turn_panel(&count);
    app_knob_list(a, l.pane[PANE_KNOBS].h, &rows, &help, &top);
    if (y >= 1 && y <= rows && top + (size_t)(y - 1) < count) {
        act_select_knob(a, (int)(top + (size_t)(y - 1)) - (int)a->knob);
    }
}

const pane_ops pane_knobs = {.draw = widget_knobs, .say = say_knob, .click = click};

// "batch.size ◂ 128 ▸", then what its neighbours would do, as far as there is room.
void widget_knob_bar(const canvas *c, const app *a)
{
    char value[HR_KNOB_TEXT_MAX + 16];
    hr_knob_id id = app_knob(a);
    say_value(a, id, value, sizeof value);
    int x = paint_text(c, 0, 1, c->area.w - 1, ROLE_DIM, row_of(id)->key) + 2;
    x += paint_format(c, 0, x, c->area.w - x, ROLE_SELECT, "< %s >", value) + 2;
    int half = (c->area.w - x) / 2;
    canvas less = canvas_sub(c, 0, x, 1, half - 1);
    canvas more = canvas_sub(c, 0, x + half, 1, c->area.w - x - half);
    draw_neighbour(&less, 0, a, WHATIF_LESS);
    draw_neighbour(&more, 0, a, WHATIF_MORE);
}
