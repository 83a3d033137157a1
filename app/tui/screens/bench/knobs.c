// SPDX-License-Identifier: Apache-2.0
// The knob panel: keys and values, and what the neighbours of each value would do to the peak before it is touched.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/bench/bench.h"

enum {
    HELP_ROWS = 5,
    HELP_TEXT_MAX = 256,
    PEAKS_MIN = 44, // columns from which every row shows its neighbours' peaks; below that a mark of each
    TIMES_MIN = 58, // and what they do to the time of a step
    PEAK_WIDTH = 8,
    TIME_WIDTH = 6,
    KEY_X = 1, // behind the mark of a knob that waits
    VALUE_MAX = HR_KNOB_TEXT_MAX + 32,
    BOTH_MAX = VALUE_MAX + 96,
    NEIGHBOUR_MAX = HR_KNOB_TEXT_MAX + 3 * FORMAT_MAX + WHATIF_WHY_MAX,
};

static const hr_knob_row *row_of(hr_knob_id id)
{
    size_t count;
    return &hr_knob_rows(&count)[id];
}

static bool is_pending(const feed *f, hr_knob_id id)
{
    char wanted[HR_KNOB_TEXT_MAX], applied[HR_KNOB_TEXT_MAX];
    return strcmp(hr_knob_format(&f->knobs, id, wanted), hr_knob_format(&f->applied, id, applied)) != 0;
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
static void say_missing(const feed *f, uint64_t missing_bytes, char text[FORMAT_MAX])
{
    byte_unit unit = feed_unit(f);
    double missing = (double)missing_bytes / unit.bytes;
    snprintf(text, FORMAT_MAX, missing < 10 ? "OOM+%.1f" : "OOM+%.0f", missing);
}

static void draw_change(const canvas *c, int y, int x, const feed *f, const hr_whatif *plan,
                        const hr_whatif *present)
{
    char text[FORMAT_MAX];
    double change = (double)plan->peak_in_use_bytes - (double)present->peak_in_use_bytes;
    format_delta_bytes(change, feed_unit(f), text);
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
static void draw_plan(const canvas *c, int y, int x, const feed *f, hr_knob_id id, int side)
{
    char text[FORMAT_MAX];
    plan_look look = look_of(c->area.w);
    const whatif_cell *cell = feed_whatif(f, id, side), *present = &f->answers.present;
    if (cell == NULL || cell->refused || present->refused) {
        paint_right(c, y, x, look == PLAN_MARKS ? 1 : PEAK_WIDTH, ROLE_DIM, cell == NULL ? "·" : "");
    } else if (look == PLAN_MARKS) {
        draw_mark(c, y, x, &cell->plan, &present->plan);
    } else if (!cell->plan.fits) {
        say_missing(f, hr_whatif_missing_bytes(&cell->plan), text);
        paint_right(c, y, x, PEAK_WIDTH, ROLE_BAD, text);
    } else {
        draw_change(c, y, x, f, &cell->plan, &present->plan);
        if (look == PLAN_TIMES) {
            draw_time(c, y, x + PEAK_WIDTH, &cell->plan, &present->plan);
        }
    }
}

// "64 ×4 = 256" where gradients of several batches are added up: the samples of one update stand beside the batch.
static void say_value(const feed *f, hr_knob_id id, char *text, size_t size)
{
    char value[HR_KNOB_TEXT_MAX];
    int64_t batch = hr_knob_int(&f->knobs, HR_KNOB_BATCH_SIZE);
    int64_t rounds = hr_knob_int(&f->knobs, HR_KNOB_BATCH_ACCUMULATE);
    hr_knob_format(&f->knobs, id, value);
    const bool held = f->lesson != NULL && !hr_preset_is_trace(f->preset);
    if (f->unknown || (!held && feed_why_not_turn(f, id) != NULL)) { // a record does not say it
        snprintf(text, size, "—");
    } else if (id == HR_KNOB_BATCH_SIZE && rounds > 1) {
        snprintf(text, size, "%" PRId64 " ×%" PRId64 " = %" PRId64, batch, rounds, batch * rounds);
    } else {
        snprintf(text, size, "%s", value[0] == '\0' ? "none" : value);
    }
}

// Columns for key and value, left of what its neighbours would do.
static int list_width(int width)
{
    return width - 2 * plan_width(look_of(width));
}

// "◂ 128 ▸" of the selected knob.
static void say_shown(const feed *f, hr_knob_id id, bool selected, char text[VALUE_MAX])
{
    char value[HR_KNOB_TEXT_MAX + 16];
    say_value(f, id, value, sizeof value);
    snprintf(text, VALUE_MAX, selected ? "◂ %s ▸" : "%s", value);
}

static int text_rows(const glyphs *g, const char *text, int width)
{
    size_t at = 0, start, length;
    int rows = 0;
    while (wrap_next(g, text, width, &at, &start, &length)) {
        rows++;
    }
    return rows;
}

// One below the other; a key without room stands below its group.
static const char *say_both(const glyphs *g, const char *key, const char *shown, int width,
                            char text[BOTH_MAX])
{
    int group = glyphs_width(g, key) > list_width(width) - KEY_X ? (int)strcspn(key, ".") + 1 : 0;
    snprintf(text, BOTH_MAX, "%.*s%s%s\n%s", group, key, group > 0 ? "\n" : "", key + group, shown);
    return text;
}

// The selected knob keeps its name and its value: where they do not fit beside each other the value stands below.
static int selected_rows(const feed *f, const glyphs *g, int width)
{
    char shown[VALUE_MAX], both[BOTH_MAX];
    hr_knob_id id = feed_knob(f);
    say_shown(f, id, true, shown);
    bool beside = KEY_X + glyphs_width(g, row_of(id)->key) + 1 + glyphs_width(g, shown) <= list_width(width);
    return beside ? 1
                  : text_rows(g, say_both(g, row_of(id)->key, shown, width, both), list_width(width) - KEY_X);
}

// One row; a key that is too long for it is cut at its front.
static void draw_beside(const canvas *c, int y, role r, const char *key, const char *shown)
{
    enum { KEY_MIN = 8 };
    int width = list_width(c->area.w);
    int key_width = width - KEY_X - 1 - glyphs_width(c->glyphs, shown);
    key_width = key_width < KEY_MIN ? KEY_MIN : key_width;
    paint_tail(c, y, KEY_X, key_width, r, key);
    int x = KEY_X + key_width + 1;
    if (glyphs_width(c->glyphs, shown) > width - x) { // its end says as much as its beginning
        paint_middle(c, y, x, width - x, r, shown);
    } else {
        paint_right(c, y, x, width - x, r, shown);
    }
}

static void draw_below(const canvas *c, int y, role r, const char *key, const char *shown, int rows)
{
    char both[BOTH_MAX];
    int width = list_width(c->area.w);
    for (int i = 1; i < rows; i++) {
        paint_blank(c, y + i, 0, width, theme_role(c->theme, r));
    }
    canvas text = canvas_sub(c, y, KEY_X, rows, width - KEY_X);
    paint_wrapped(&text, 0, r, say_both(c->glyphs, key, shown, c->area.w, both));
}

// Returns the rows it took.
static int draw_knob(const canvas *whole, int y, const feed *f, hr_knob_id id, bool selected)
{
    char shown[VALUE_MAX];
    canvas cut = *whole;
    const canvas *c = &cut;
    int width = list_width(c->area.w), each = plan_width(look_of(c->area.w));
    int rows = selected ? selected_rows(f, c->glyphs, c->area.w) : 1;
    role r = selected ? ROLE_SELECT : feed_why_not_turn(f, id) != NULL ? ROLE_DIM : ROLE_TEXT;
    cut.said_later = !selected;
    say_shown(f, id, selected, shown);
    if (selected) {
        paint_blank(c, y, 0, width, theme_role(c->theme, r));
    }
    paint_text(c, y, 0, 1, selected ? ROLE_SELECT : ROLE_WARN, is_pending(f, id) ? "*" : "");
    if (rows == 1) {
        draw_beside(c, y, r, row_of(id)->key, shown);
    } else {
        draw_below(c, y, r, row_of(id)->key, shown, rows);
    }
    draw_plan(c, y, width, f, id, WHATIF_LESS);
    draw_plan(c, y, width + each, f, id, WHATIF_MORE);
    return rows;
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
static bool guesses_pool(const feed *f, hr_knob_id id, const char *value)
{
    static const char drivers[] = "async_driver";
    return id == HR_KNOB_ALLOCATOR_KIND ? strcmp(value, drivers) == 0
                                        : hr_knob_is(&f->knobs, HR_KNOB_ALLOCATOR_KIND, drivers);
}

// The peak; or the host's bytes, of a turn that changes them alone.
static const char *say_planned(const feed *f, const hr_whatif *plan, char text[FORMAT_MAX])
{
    const whatif_cell *present = &f->answers.present;
    const bool host = present->known && !present->refused &&
                      plan->peak_in_use_bytes == present->plan.peak_in_use_bytes &&
                      plan->host_bytes != present->plan.host_bytes && plan->host_bytes != HR_NONE;
    format_bytes(host ? plan->host_bytes : plan->peak_in_use_bytes, feed_unit(f), text);
    return host ? "host" : "peak";
}

// The shortest of what says the same in less room; where that has none either, nothing.
static void draw_shortest(const canvas *c, int y, role r, char forms[][NEIGHBOUR_MAX], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (glyphs_width(c->glyphs, forms[i]) <= c->area.w) {
            paint_text(c, y, 0, c->area.w, r, forms[i]);
            return;
        }
    }
}

// "◂ 64 peak 34.47 MiB p, 12.4 ms s", "▸ 256 misses by 42.50 MiB p" where that is too much
static void draw_neighbour(const canvas *c, int y, const feed *f, int side)
{
    char value[HR_KNOB_TEXT_MAX], text[FORMAT_MAX], forms[4][NEIGHBOUR_MAX];
    hr_knob_id id = feed_knob(f);
    byte_unit unit = feed_unit(f);
    const char *arrow = side == WHATIF_LESS ? "◂" : "▸";
    if (f->unknown || !knob_edit_reach(&f->knobs, id, side == WHATIF_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE,
                                       f->live.limit_bytes, value, NULL)) {
        return;
    }
    const whatif_cell *cell = feed_whatif(f, id, side);
    const char *source = (cell != NULL && cell->estimated) || guesses_pool(f, id, value) ? "e" : "p";
    snprintf(forms[0], sizeof forms[0], "%s %s", arrow, value);
    if (cell == NULL) {
        draw_shortest(c, y, ROLE_DIM, forms, 1);
    } else if (cell->refused) {
        snprintf(forms[0], sizeof forms[0], "%s %s is refused: %s", arrow, value, cell->why);
        snprintf(forms[1], sizeof forms[1], "%s %s is refused here", arrow, value);
        snprintf(forms[2], sizeof forms[2], "%s %s: refused", arrow, value);
        const size_t first = cell->why[0] == '\0';
        draw_shortest(c, y, ROLE_DIM, forms + first, 3 - first);
    } else if (cell->plan.fits) {
        const char *what = say_planned(f, &cell->plan, text);
        snprintf(forms[0], sizeof forms[0], "%s %s %s %s %s %s", arrow, value, what, text, unit.name, source);
        snprintf(forms[1], sizeof forms[1], "%s %s: %s%s %s %s", arrow, value, what[0] == 'h' ? "host " : "",
                 text, unit.name, source);
        snprintf(forms[2], sizeof forms[2], "%s %s %s %s %s", arrow, what, text, unit.name, source);
        add_seconds(c, id == HR_KNOB_DEVICE_KIND ? value : hr_knob_text(&f->knobs, HR_KNOB_DEVICE_KIND),
                    &cell->plan, forms[0], sizeof forms[0]);
        draw_shortest(c, y, ROLE_TEXT, forms, 3);
    } else {
        format_bytes(hr_whatif_missing_bytes(&cell->plan), unit, text);
        snprintf(forms[0], sizeof forms[0], "%s %s misses by %s %s%s %s", arrow, value, text, unit.name,
                 hr_whatif_lacks_host(&cell->plan) ? " of host" : "", source);
        snprintf(forms[1], sizeof forms[1], "%s %s: OOM+%s %s %s", arrow, value, text, unit.name, source);
        snprintf(forms[2], sizeof forms[2], "%s OOM+%s %s %s", arrow, text, unit.name, source);
        draw_shortest(c, y, ROLE_BAD, forms, 3);
    }
}

// What the marks beside the knobs mean, where they stand instead of numbers.
static const char legend[] = "▾less ▴more =same !too much";

static const char *applies_text(const hr_knob_row *row, char text[256])
{
    snprintf(text, 256, row->applies == NULL ? "" : "Applies %s.", row->applies);
    return text;
}

// Rows of the whole help of a knob: a blank one, its line, both neighbours, the legend, the explanation.
static int whole_help(const hr_knob_row *row, const glyphs *g, int width)
{
    char applies[256];
    return 1 + text_rows(g, row->line, width - 1) + 2 + (look_of(width) == PLAN_MARKS) +
           text_rows(g, row->explanation, width - 1) + text_rows(g, applies_text(row, applies), width - 1);
}

// Of the knob that has most to say, so that the list does not move with its cursor.
static int longest_help(const glyphs *g, int width)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    int rows = 0;
    for (size_t i = 0; i < count; i++) {
        int own = whole_help(row_of(panel[i]), g, width);
        rows = own > rows ? own : rows;
    }
    return rows;
}

// The whole help: all that is known of the knob.
static void draw_whole_help(const canvas *c, const feed *f)
{
    const hr_knob_row *row = row_of(feed_knob(f));
    canvas words = canvas_sub(c, 0, 0, c->area.h, c->area.w - 1);
    char applies[256];
    int y = 1 + paint_wrapped(&words, 1, ROLE_TEXT, row->line);
    draw_neighbour(c, y, f, WHATIF_LESS);
    draw_neighbour(c, y + 1, f, WHATIF_MORE);
    y += 2;
    if (look_of(c->area.w) == PLAN_MARKS) {
        paint_text(c, y++, 0, c->area.w, ROLE_DIM, legend);
    }
    y += paint_wrapped(&words, y, ROLE_DIM, row->explanation);
    paint_wrapped(&words, y, ROLE_DIM, applies_text(row, applies));
}

// The line of the selected knob; where it has no effect now, when it applies, for which the line gives way if it must.
static const char *short_words(const feed *f, const glyphs *g, int rows, int width,
                               char text[2 * HELP_TEXT_MAX])
{
    const hr_knob_row *row = row_of(feed_knob(f));
    char why[HELP_TEXT_MAX];
    if (row->applies == NULL || hr_knob_acts(&f->knobs, row->id)) {
        return row->line;
    }
    snprintf(why, sizeof why, "no effect: applies %s", row->applies);
    snprintf(text, 2 * HELP_TEXT_MAX, "%s\n%s", row->line, why);
    if (text_rows(g, text, width) > rows) {
        snprintf(text, 2 * HELP_TEXT_MAX, "%s", why);
    }
    return text_rows(g, text, width) > rows ? row->line : text;
}

// One line of help and both neighbours; with more room all that there is to say.
static void draw_help(const canvas *c, const feed *f)
{
    const hr_knob_row *row = row_of(feed_knob(f));
    if (c->area.h > HELP_ROWS + 2 && whole_help(row, c->glyphs, c->area.w) <= c->area.h) {
        draw_whole_help(c, f);
        return;
    }
    int below = c->area.h - 2;
    char words_text[2 * HELP_TEXT_MAX];
    canvas words = canvas_sub(c, 0, 0, below, c->area.w - 1);
    int used =
        paint_wrapped(&words, 0, ROLE_DIM, short_words(f, c->glyphs, below, c->area.w - 1, words_text));
    if (used < below && look_of(c->area.w) == PLAN_MARKS) {
        paint_text(c, below - 1, 0, c->area.w, ROLE_DIM, legend);
    }
    draw_neighbour(c, below, f, WHATIF_LESS);
    draw_neighbour(c, below + 1, f, WHATIF_MORE);
}

// The letter of the column: "e" until the device has answered for every neighbour.
static const char *source_of_all(const feed *f)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    bool estimated = false;
    for (size_t k = 0; k < count; k++) {
        for (int side = 0; side < WHATIF_SIDES; side++) {
            const whatif_cell *cell = feed_whatif(f, panel[k], side);
            estimated = estimated || (cell != NULL && cell->estimated);
        }
    }
    return estimated ? "e" : "p";
}

// Rows of the list and of the help below it, and the first knob shown.
typedef struct knob_list {
    int rows, help;
    size_t top;
} knob_list;

static knob_list lay_out_list(const feed *f, const glyphs *g, int height, int width)
{
    enum { LIST_MIN = 3, HELP_MIN = 4 };
    int body = height - 1, room = body - KNOB_EDIT_FRONT; // below those that decide most
    knob_list l = {.help = body < LIST_MIN + HELP_MIN    ? 0
                           : body > LIST_MIN + HELP_ROWS ? HELP_ROWS
                                                         : HELP_MIN};
    if (room > HELP_ROWS) {
        int longest = longest_help(g, width);
        l.help = longest < room ? longest : room;
    }
    l.rows = body - l.help;
    int before = l.rows - selected_rows(f, g, width); // rows above the selected one, at most
    before = before < 0 ? 0 : before;
    l.top = f->knob > (size_t)before ? f->knob - (size_t)before : 0;
    return l;
}

static void draw(const canvas *c, const pane_view *v)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    knob_list l = lay_out_list(v->feed, c->glyphs, c->area.h, c->area.w);
    char right[48] = "", title[32];
    snprintf(title, sizeof title, "%s %zu/%zu", pane_title(PANE_KNOBS), v->feed->knob + 1, count);
    if (look_of(c->area.w) == PLAN_MARKS) {
        snprintf(right, sizeof right, "◂▸");
    } else if (look_of(c->area.w) == PLAN_PEAKS) {
        snprintf(right, sizeof right, "Δ peak %s %s    ◂       ▸", feed_unit(v->feed).name,
                 source_of_all(v->feed));
    } else {
        snprintf(right, sizeof right, "Δ peak %s %s   ◂  time       ▸  time", feed_unit(v->feed).name,
                 source_of_all(v->feed));
    }
    paint_rule(c, v->focused, title, right);
    canvas list = canvas_sub(c, 1, 0, l.rows, c->area.w);
    size_t i = l.top;
    for (int y = 0; y < l.rows && i < count; i++) {
        y += draw_knob(&list, y, v->feed, panel[i], i == v->feed->knob);
    }
    if (l.help > 0) {
        canvas below = canvas_sub(c, c->area.h - l.help, 0, l.help, c->area.w);
        draw_help(&below, v->feed);
    }
}

static pane_request click(const pane_view *v, void *own, int y, int x)
{
    const bench_state *bench = own;
    const rect r = v->place;
    size_t count;
    knob_list l = lay_out_list(v->feed, bench->glyphs, r.h, r.w);
    knob_edit_panel(&count);
    (void)x;
    if (y < 1 || y > l.rows) {
        return (pane_request){.kind = PANE_DONE};
    }
    int at = (int)l.top + y - 1, selected = (int)v->feed->knob;
    int more = selected_rows(v->feed, bench->glyphs, r.w) - 1; // rows of the selected one
    at = at <= selected ? at : at <= selected + more ? selected : at - more;
    return (pane_request){.kind = at < (int)count ? PANE_SELECTS_KNOB : PANE_DONE, .knob = (size_t)at};
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    size_t count;
    char value[HR_KNOB_TEXT_MAX], less[HR_KNOB_TEXT_MAX], more[HR_KNOB_TEXT_MAX];
    hr_knob_id id = feed_knob(v->feed);
    const hr_knob_row *row = &hr_knob_rows(&count)[id];
    const bool idle = row->applies != NULL && !hr_knob_acts(&v->feed->knobs, id);
    bool has_less =
        knob_edit_reach(&v->feed->knobs, id, KNOB_EDIT_LESS, v->feed->live.limit_bytes, less, NULL);
    bool has_more =
        knob_edit_reach(&v->feed->knobs, id, KNOB_EDIT_MORE, v->feed->live.limit_bytes, more, NULL);
    snprintf(text, PANE_TEXT_MAX, "Knob %s, %s, is %s; left of it is %s, right of it %s.%s%s%s", row->key,
             row->line, hr_knob_format(&v->feed->knobs, id, value), has_less ? less : "nothing",
             has_more ? more : "nothing", idle ? " It has no effect now: it applies " : "",
             idle ? row->applies : "", idle ? "." : "");
}

const pane_ops pane_knobs = {.draw = draw, .say = say, .click = click};

// "batch.size ◂ 128 ▸", then what its neighbours would do, as far as there is room.
void bench_knob_bar(const canvas *c, const feed *f)
{
    char value[VALUE_MAX];
    hr_knob_id id = feed_knob(f);
    say_value(f, id, value, sizeof value);
    int x = paint_text(c, 0, 1, c->area.w - 1, ROLE_DIM, row_of(id)->key) + 2;
    if (x + glyphs_width(c->glyphs, value) + 4 > c->area.w) {
        snprintf(value, sizeof value, "Enter shows it");
    }
    x += paint_format(c, 0, x, c->area.w - x, ROLE_SELECT, "< %s >", value) + 2;
    int half = (c->area.w - x) / 2;
    canvas less = canvas_sub(c, 0, x, 1, half - 1);
    canvas more = canvas_sub(c, 0, x + half, 1, c->area.w - x - half);
    draw_neighbour(&less, 0, f, WHATIF_LESS);
    draw_neighbour(&more, 0, f, WHATIF_MORE);
}
