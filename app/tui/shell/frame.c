// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/frame.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/tui/shell/offer.h"
#include "app/tui/shell/tour.h"

enum { MESSAGE_ROWS_MAX = 12 };

static const uint64_t first_minutes_ns = UINT64_C(300) * 1000000000;

// ---- title ----------------------------------------------------------------------------------------------------

static bool is_edited(const feed *f)
{
    const hr_knobs *preset = hr_preset_knobs(f->preset);
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    for (size_t i = 0; i < count; i++) {
        char now[HR_KNOB_TEXT_MAX], then[HR_KNOB_TEXT_MAX];
        if (strcmp(hr_knob_format(&f->knobs, panel[i], now), hr_knob_format(preset, panel[i], then)) != 0) {
            return true;
        }
    }
    return false;
}

static void state_text(const feed *f, char *text, size_t size)
{
    const run_state *m = feed_run_state(f);
    int64_t all = hr_knob_int(&f->applied, HR_KNOB_TRAIN_STEPS);
    bool over = f->watched != NULL && !feed_engine_lives(f);
    const char *state = over && f->was_killed ? "killed"
                        : over                ? "ended"
                                              : hr_engine_state_name((hr_engine_state)m->state);
    if (m->state == HR_ENGINE_RUNNING && !over && run_state_answers(m, text, size)) {
        return;
    }
    if (all > 0) {
        snprintf(text, size, "%s %" PRIu64 "/%" PRId64, state, m->steps, all);
    } else {
        snprintf(text, size, "%s, step %" PRIu64, state, m->steps);
    }
}

static role left_text(const feed *f, char left[48])
{
    const run_state *m = feed_run_state(f);
    const hr_whatif *plan = feed_waiting_plan(f);
    char missing[HR_BYTES_TEXT_MAX];
    left[0] = '\0';
    if (plan != NULL && !plan->fits) {
        snprintf(left, 48, "%s%s short p", hr_whatif_lacks_host(plan) ? "host " : "",
                 hr_bytes_human(hr_whatif_missing_bytes(plan), missing));
        return ROLE_BAD;
    }
    if (plan != NULL && plan->limit_bytes > 0) {
        snprintf(left, 48, "%.1f%% left p",
                 100 * (1 - (double)plan->peak_in_use_bytes / (double)plan->limit_bytes));
    } else if (m->limit_bytes > 0 && m->epoch_peak_bytes > 0 && m->state < HR_ENGINE_OOM) {
        double share = 1 - (double)m->epoch_peak_bytes / (double)m->limit_bytes;
        snprintf(left, 48, "%.1f%% left", 100 * share);
    }
    return ROLE_BAR;
}

// Returns its columns, those around it included.
static int draw_left(const canvas *c, const feed *f)
{
    enum { USUAL = 13 };
    char left[48];
    role r = left_text(f, left);
    paint_right(c, 0, 0, c->area.w - 1, f->is_frozen ? ROLE_SELECT : r, f->is_frozen ? " FROZEN " : left);
    int width = glyphs_width(c->glyphs, left) + 2;
    return f->is_frozen || width < USUAL ? USUAL : width;
}

// The policy where it is not the usual one; then what computes, and on which data.
static int draw_surroundings(const canvas *c, const feed *f, int x, int end)
{
    const char *policy = hr_knob_text(&f->applied, HR_KNOB_PRECISION_POLICY);
    bool usual = strcmp(policy, "float32") == 0;
    if (c->area.w >= 100 && !usual) {
        x += paint_text(c, 0, x + 2, end - x - 2, ROLE_DIM, policy) + 2;
    }
    // A simulated device has no instruction set but its card, which was just named, and reads no data.
    bool known = f->has_report && !f->report.device.simulated && f->report.device.isa[0] != '\0';
    if (known && c->area.w >= (usual ? 110 : 130)) {
        x += paint_format(c, 0, x + 2, end - x - 2, ROLE_DIM, "%s, data %s", f->report.device.isa,
                          f->report.train.data) +
             2;
    }
    return x;
}

void frame_title(const canvas *c, const feed *f)
{
    const run_state *m = feed_run_state(f);
    char state[64], rate[FORMAT_MAX];
    int end = c->area.w - draw_left(c, f), x = 1;
    x += paint_text(c, 0, x, end - x, ROLE_FOCUS, "headroom");
    x += 2;
    if (f->watched != NULL) {
        const char *slash = strrchr(f->watched, '/');
        x += paint_format(c, 0, x, end - x, ROLE_BAR, "watching %s",
                          !f->unknown     ? hr_preset_name(f->preset)
                          : slash == NULL ? f->watched
                                          : slash + 1);
    } else {
        x += paint_format(c, 0, x, end - x, ROLE_BAR, "%s%s", hr_preset_name(f->preset),
                          is_edited(f) ? "*" : "");
    }
    if (f->has_report && c->area.w >= 72) {
        bool card = f->report.device.card[0] != '\0';
        x += paint_format(c, 0, x + 2, end - x - 2, ROLE_DIM, "%s%s%s", f->report.device.kind,
                          card ? " as " : "", f->report.device.card) +
             2;
    }
    x = draw_surroundings(c, f, x, end);
    state_text(f, state, sizeof state);
    role r = m->state >= HR_ENGINE_OOM ? ROLE_BAD : m->state == HR_ENGINE_RUNNING ? ROLE_GOOD : ROLE_WARN;
    x += paint_text(c, 0, x + 2, end - x - 2, r, state) + 2;
    if (f->recipe.state != RECIPE_IDLE) {
        x += paint_format(c, 0, x + 2, end - x - 2, ROLE_WARN, "lua %s", f->recipe.name) + 2;
    }
    (void)format_rate(run_state_steps_per_second(m), "it/s", rate);
    if (!isnan(run_state_steps_per_second(m)) &&
        glyphs_width(c->glyphs, rate) <= end - x - 2) { // whole or not
        paint_text(c, 0, x + 2, end - x - 2, ROLE_BAR, rate);
    }
}

// ---- tabs -----------------------------------------------------------------------------------------------------

// Lays the screens out; draws them (c), or finds the one at column `at`.
static screen_id lay_out_screens(const canvas *c, const app *a, int at)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    int x = 1;
    for (int screen = 0; screen < SCREEN_COUNT; screen++) {
        const request_row *row = &rows[request_of_screen((screen_id)screen)];
        int width = glyphs_width(&a->looks.glyphs, row->shown) + glyphs_width(&a->looks.glyphs, row->name);
        bool shown = a->screen == (screen_id)screen;
        if (c != NULL) {
            int used = paint_text(c, 0, x, c->area.w - x, shown ? ROLE_SELECT : ROLE_KEY, row->shown);
            paint_text(c, 0, x + used, c->area.w - x - used, shown ? ROLE_SELECT : ROLE_DIM, row->name);
        } else if (at >= x && at < x + width) {
            return (screen_id)screen;
        }
        x += width + 1;
    }
    return SCREEN_COUNT;
}

static void draw_pane_tabs(const canvas *c, const app *a)
{
    int x = 1;
    for (const pane_id *pane = screen_row_of(a->screen)->panes; *pane != PANE_COUNT; pane++) {
        x += paint_format(c, 0, x, c->area.w - x, *pane == a->focus ? ROLE_SELECT : ROLE_DIM, " %s ",
                          pane_title(*pane));
    }
}

void frame_tabs(const canvas *c, const app *a)
{
    if (c->area.h == 0) {
        return;
    }
    if (app_layout(a).kind == LAYOUT_SINGLE) {
        draw_pane_tabs(c, a);
    } else {
        (void)lay_out_screens(c, a, -1);
    }
}

screen_id tabs_screen_at(const app *a, int x)
{
    return app_layout(a).kind == LAYOUT_FULL ? lay_out_screens(NULL, a, x) : SCREEN_COUNT;
}

// ---- strip ----------------------------------------------------------------------------------------------------

// "←→ turn batch size · 256 will not fit: try it · ": of the selected knob, where the arrows turn it. What is not
// known not to fit is not said.
static void turn_tip(const app *a, char *turn, char *try_it, size_t size)
{
    char key[HR_KNOB_TEXT_MAX];
    const whatif_cell *cell = feed_whatif(&a->feed, feed_knob(&a->feed), WHATIF_MORE);
    size_t count;
    turn[0] = try_it[0] = '\0';
    if (a->focus != PANE_KNOBS || app_why_not(a, REQUEST_RIGHT) != NULL) {
        return;
    }
    snprintf(key, sizeof key, "%s", hr_knob_rows(&count)[feed_knob(&a->feed)].key);
    for (char *c = strpbrk(key, "._"); c != NULL; c = strpbrk(c, "._")) {
        *c = ' ';
    }
    snprintf(turn, size, "←→ turn %.64s · ", key);
    if (cell != NULL && !cell->refused && !cell->plan.fits) {
        snprintf(try_it, size, "%.64s will not fit: try it · ", cell->value);
    }
}

// DESIGN: the first five minutes.
static void draw_tip(const canvas *c, const app *a)
{
    char tip[3 * HR_KNOB_TEXT_MAX], turn[HR_KNOB_TEXT_MAX], try_it[HR_KNOB_TEXT_MAX];
    turn_tip(a, turn, try_it, sizeof turn);
    const char *pin = a->bench.baseline.pinned || app_why_not(a, REQUEST_PIN) != NULL ? "" : "b pin · ";
    const char *presets = app_why_not(a, REQUEST_PRESETS) == NULL ? " · p presets" : "";
    // What goes first where the line is too long stands in the footer too.
    const struct {
        const char *pin, *try_it, *learn, *presets, *quit;
    } forms[] = {{pin, try_it, " · L learn", presets, " · q quit"},
                 {pin, try_it, " · L learn", "", " · q quit"},
                 {pin, try_it, " · L learn", "", ""},
                 {"", try_it, "", "", ""},
                 {"", "", "", "", ""}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(tip, sizeof tip, "%s%s%s? keys%s%s%s", forms[i].pin, turn, forms[i].try_it, forms[i].learn,
                 forms[i].presets, forms[i].quit);
        if (glyphs_width(c->glyphs, tip) <= c->area.w) {
            break;
        }
    }
    paint_text(c, 0, 0, c->area.w, ROLE_TEXT, tip);
}

static void draw_log_line(const canvas *c, const feed *f)
{
    const run_state *m = feed_run_state(f);
    char clock[FORMAT_MAX];
    if (m->log_count > 0) {
        const log_line *line = &m->log[(m->log_count - 1) % LOG_LENGTH];
        canvas newest = *c;
        newest.said_later = true; // whole in [log]
        paint_format(&newest, 0, 0, c->area.w, line->kind == LOG_BAD ? ROLE_BAD : ROLE_DIM, "%s %s",
                     format_clock(line->time_ns, clock), line->text);
    }
}

// What is longer than its row takes rows of the screen above it.
static int draw_words(const canvas *screen, rect strip, role r, const char *text)
{
    size_t start, length;
    int rows = 0;
    while (rows < MESSAGE_ROWS_MAX && rows <= strip.y &&
           wrap_row(screen->glyphs, text, strip.w, rows, &start, &length)) {
        rows++;
    }
    canvas c = canvas_sub(screen, strip.y + 1 - rows, strip.x, rows, strip.w);
    for (int y = 0; y < rows; y++) {
        paint_blank(&c, y, 0, strip.w, theme_role(screen->theme, ROLE_TEXT));
    }
    return paint_wrapped(&c, 0, r, text);
}

static void draw_switch(const canvas *screen, rect strip, const app *a)
{
    char text[HR_KNOB_TEXT_MAX + 96];
    snprintf(text, sizeof text, "%" PRIu64 " steps done: %s ends them and %s %.200s, any other key stays",
             feed_run_state(&a->feed)->steps, a->focus == PANE_LESSON ? "Enter" : "y",
             app_begins_anew(a) ? "begins anew" : "opens",
             app_begins_anew(a) ? hr_preset_name(a->feed.preset) : a->next.preset);
    draw_words(screen, strip, ROLE_WARN, text);
}

static void draw_quit(const canvas *screen, rect strip, const feed *f)
{
    char steps[80], text[sizeof steps + 96];
    const uint64_t done = f->live.steps, kept = f->kept_step;
    if (kept != HR_NONE && kept < done) {
        snprintf(steps, sizeof steps, "%" PRIu64 " steps since the save of step %" PRIu64, done - kept, kept);
    } else {
        snprintf(steps, sizeof steps, "%" PRIu64 " steps", done);
    }
    if (f->saved_step == HR_NONE) {
        snprintf(text, sizeof text, "%s are in no save: s saves and leaves, y leaves, other keys stay",
                 steps);
    } else {
        snprintf(text, sizeof text,
                 "%s, autosaved at step %" PRIu64 ": s keeps all, y discards all, other keys stay", steps,
                 f->saved_step);
    }
    draw_words(screen, strip, ROLE_WARN, text);
}

// "resume demo at step 4979, 12 min ago?"
static void draw_offer(const canvas *screen, rect strip, const app *a)
{
    char name[OFFER_NAME_MAX], text[OFFER_NAME_MAX + 96];
    const long minutes = (long)(time(NULL) - a->offer.file.written) / 60;
    const bool days = minutes >= 2 * 24 * 60, hours = minutes >= 120;
    snprintf(text, sizeof text, "resume %s at step %" PRIu64 ", %ld %s ago?",
             offer_name(&a->offer.about, name), a->offer.about.steps,
             minutes / (days    ? 24 * 60
                        : hours ? 60
                                : 1),
             days    ? "days"
             : hours ? "hours"
                     : "min");
    draw_words(screen, strip, ROLE_WARN, text);
}

void frame_strip(const canvas *screen, rect strip, const app *a)
{
    canvas c = canvas_of(screen, strip);
    bool list = a->overlay == OVERLAY_HELP || a->overlay == OVERLAY_PRESETS || a->overlay == OVERLAY_COLUMNS;
    const char *tour = a->overlay == OVERLAY_NONE || list ? tour_line(a) : NULL; // the others need its line
    int tour_rows = tour == NULL ? 0 : draw_words(screen, strip, ROLE_FOCUS, tour);
    if (app_is_typing(a)) {
        if (a->overlay == OVERLAY_CONSOLE && a->feed.message.kind != MESSAGE_NONE) {
            draw_words(screen, (rect){strip.y - 1, strip.x, strip.h, strip.w},
                       a->feed.message.kind == MESSAGE_ERROR ? ROLE_BAD : ROLE_WARN, a->feed.message.text);
        }
        frame_candidates(screen, strip, a);
        frame_prompt(&c, a);
    } else if (a->overlay == OVERLAY_QUIT) {
        draw_quit(screen, strip, &a->feed);
    } else if (a->overlay == OVERLAY_OFFER) {
        draw_offer(screen, strip, a);
    } else if (a->overlay == OVERLAY_SWITCH) {
        draw_switch(screen, strip, a);
    } else if (a->feed.message.kind != MESSAGE_NONE) {
        draw_words(screen, (rect){strip.y - tour_rows, strip.x, strip.h, strip.w},
                   a->feed.message.kind == MESSAGE_ERROR ? ROLE_BAD : ROLE_WARN, a->feed.message.text);
    } else if (tour != NULL) { // stands there already
    } else if (learn_is_at_work(&a->learn) && a->screen != SCREEN_LEARN) {
        char line[2 * HR_LESSON_ROW_TEXT_MAX];
        learn_line(&a->learn, line, sizeof line);
        draw_words(screen, strip, ROLE_FOCUS, line);
    } else if (a->now_ns - a->started_ns < first_minutes_ns && a->screen == SCREEN_BENCH) {
        draw_tip(&c, a);
    } else if (app_layout(a).pane[PANE_LOG].h == 0) {
        draw_log_line(&c, &a->feed);
    }
}

// ---- footer ---------------------------------------------------------------------------------------------------

// The job of a key in the focused pane, where it is not simply its name: "apply". NULL: none here.
static const char *enter_name(const app *a)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    return a->focus == PANE_KNOBS ? "edit" : ops->enter_does;
}

// Where a row has no job for Enter and a bar shows the knob.
static const char *edit_name(const app *a)
{
    return a->focus != PANE_KNOBS && pane_ops_of(a->focus)->enter_does == NULL ? "edit knob" : NULL;
}

static const char *arrows_name(const app *a)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    return a->focus == PANE_KNOBS ? "turn"
           : ops->move != NULL    ? a->focus == PANE_LESSON ? "page" : "move"
                                  : NULL;
}

static const char *run_name(const app *a)
{
    return run_state_is_training(&a->feed.live) ? "pause" : "run";
}

static const char *freeze_name(const app *a)
{
    return a->feed.is_frozen ? "go on" : "freeze";
}

static const char *up_down_name(const app *a)
{
    return a->focus == PANE_KNOBS                 ? "knob"
           : a->focus == PANE_LESSON              ? "move" // a page has no columns
           : pane_ops_of(a->focus)->table != NULL ? "row"
                                                  : NULL;
}

// Where Enter does not say so already.
static const char *apply_name(const app *a)
{
    const char *enter = enter_name(a);
    return enter == NULL || strcmp(enter, "apply") != 0 ? "apply" : NULL;
}

// What the next one adds.
static const char *permit_name(const app *a)
{
    return a->feed.fit.permission == HR_PERMIT_NOTHING     ? "precision"
           : a->feed.fit.permission == HR_PERMIT_PRECISION ? "optimizer"
                                                           : "neither";
}

// Elsewhere it goes to a pane with rows first.
static const char *filter_name(const app *a)
{
    return pane_ops_of(a->focus)->table != NULL ? "filter" : NULL;
}

static const char *find_name(const app *a)
{
    return a->focus == PANE_KNOBS ? "find" : NULL;
}

// What comes first stays where the line is short: the focused pane's own keys.
typedef struct footer_key {
    request request;
    const char *shown;                 // NULL: as its row says
    const char *(*name)(const app *a); // NULL: as its row says
} footer_key;

static const footer_key footer[] = {
    {REQUEST_ENTER, NULL, enter_name},  {REQUEST_RIGHT, "←→", arrows_name},
    {REQUEST_DOWN, "↑↓", up_down_name}, {REQUEST_PERMIT, NULL, permit_name},
    {REQUEST_UNDO, NULL, NULL},         {REQUEST_FILTER, NULL, filter_name},
    {REQUEST_SORT, NULL, NULL},         {REQUEST_ENTER, NULL, edit_name},
    {REQUEST_APPLY, NULL, apply_name},  {REQUEST_RUN, NULL, run_name},
    {REQUEST_MARK, NULL, NULL},         {REQUEST_FREEZE, NULL, freeze_name},
    {REQUEST_COLUMNS, NULL, NULL},      {REQUEST_FOLLOW, NULL, NULL},
    {REQUEST_PRESETS, NULL, NULL},      {REQUEST_PIN, NULL, NULL},
    {REQUEST_FILTER, NULL, find_name},  {REQUEST_COPY, NULL, NULL},
    {REQUEST_REDO, NULL, NULL},         {REQUEST_RESTART, NULL, NULL},
    {REQUEST_EXPAND, NULL, NULL},       {REQUEST_ZOOM_IN, NULL, NULL},
    {REQUEST_ZOOM_OUT, NULL, NULL},     {REQUEST_SAY, NULL, NULL},
    {REQUEST_SAVE_SCREEN, NULL, NULL},  {REQUEST_THEME, NULL, NULL},
};
// These stand at the end of every footer: with them the rest is found.
static const footer_key footer_end[] = {
    {REQUEST_NEXT, NULL, NULL},
    {REQUEST_HELP, NULL, NULL},
    {REQUEST_COMMAND, NULL, NULL},
    {REQUEST_QUIT, NULL, NULL},
};

enum {
    FOOTER = sizeof footer / sizeof *footer,
    FOOTER_END = sizeof footer_end / sizeof *footer_end,
    GAP = 2
};

typedef struct footer_item {
    request request;
    const char *shown, *name;
    int width;
} footer_item;

// False when the key is off now.
static bool make_item(const app *a, const footer_key *key, footer_item *item)
{
    size_t count;
    const request_row *row = &request_rows(&count)[key->request];
    *item = (footer_item){key->request, key->shown == NULL ? row->shown : key->shown,
                          key->name == NULL ? row->name : key->name(a), 0};
    if (item->name == NULL || app_why_not(a, key->request) != NULL) {
        return false;
    }
    item->width =
        glyphs_width(&a->looks.glyphs, item->shown) + 1 + glyphs_width(&a->looks.glyphs, item->name);
    return true;
}

static int end_width(const app *a)
{
    int width = 0;
    footer_item item;
    for (int i = 0; i < (int)FOOTER_END; i++) {
        width += make_item(a, &footer_end[i], &item) ? GAP + item.width : 0;
    }
    return width;
}

// Draws the item at x (c), or says whether column `at` is on it.
static bool place_item(const canvas *c, const footer_item *item, int x, int at)
{
    if (c != NULL) {
        int used = paint_text(c, 0, x, c->area.w - x, ROLE_KEY, item->shown);
        paint_text(c, 0, x + used + 1, c->area.w - x - used - 1, ROLE_DIM, item->name);
    }
    return at >= x && at < x + item->width;
}

// Lays the live requests out, the focused pane's own first; draws them (c), or finds the one at column `at`.
static request lay_out(const canvas *c, const app *a, int at)
{
    footer_item item;
    int x = 0, end = a->columns - end_width(a);
    for (int i = 0; i < (int)FOOTER; i++) {
        if (make_item(a, &footer[i], &item) && x + item.width <= end) {
            if (place_item(c, &item, x, at)) {
                return item.request;
            }
            x += item.width + GAP;
        }
    }
    for (int i = 0; i < (int)FOOTER_END; i++) {
        bool fits = make_item(a, &footer_end[i], &item) && x + item.width <= a->columns;
        if (fits && place_item(c, &item, x, at)) {
            return item.request;
        }
        x += fits ? item.width + GAP : 0;
    }
    return REQUEST_NONE;
}

// Lines and lists say what closes them.
static const char *overlay_keys(const app *a)
{
    switch (a->overlay) {
    case OVERLAY_COMMAND:
        return "Enter does it · Esc closes · Tab completes · ↑↓ lines before · ^U clears";
    case OVERLAY_CONSOLE:
        return a->feed.recipe.state == RECIPE_IDLE
                   ? "Enter does it · Esc closes · Tab completes · ↑↓ lines before · PgUp PgDn"
                   : "^C stops it · Esc closes · PgUp PgDn scroll · Enter does it · ↑↓ lines before";
    case OVERLAY_EDIT:
        return "Enter accepts · Esc leaves it as it is · ↑↓ Tab values · ^U clears";
    case OVERLAY_FILTER:
        return pane_ops_of(a->focus)->table != NULL && app_layout(a).kind >= LAYOUT_SINGLE
                   ? "Enter keep · Esc all rows · what matches is shown · !text what does not"
                   : "Enter keep · Esc closes · ↑↓ the next · selects the knob that matches";
    case OVERLAY_NARROW:
        return "Enter keep · Esc all presets · names and titles with this are shown";
    case OVERLAY_FIND:
        return "Enter keep · Esc all lines · ↑↓ scroll · lines with this are shown";
    case OVERLAY_HELP:
        return "Esc closes · ↑↓ PgUp PgDn scroll · / find";
    case OVERLAY_PRESETS:
        return "Enter opens · Esc closes · ↑↓ choose · / narrow";
    case OVERLAY_COLUMNS:
        return "Enter shows or hides · Esc closes · ↑↓ choose";
    case OVERLAY_SWITCH:
        return a->focus == PANE_LESSON ? "Enter ends it · any other key stays"
                                       : "y ends it · any other key stays";
    case OVERLAY_CARD:
        return "Enter begins · Esc closes · any other key does its job";
    case OVERLAY_OFFER:
        return "y goes on · n starts anew, keeps it · Esc starts anew, asks again · q leaves";
    case OVERLAY_NONE:
    case OVERLAY_QUIT: // says its keys itself
        break;
    }
    return NULL;
}

void frame_footer(const canvas *c, const app *a)
{
    const char *keys = overlay_keys(a);
    if (keys != NULL) {
        paint_parts(c, 0, 0, c->area.w, ROLE_DIM, keys);
    } else if (a->overlay != OVERLAY_QUIT) {
        lay_out(c, a, -1);
    }
}

request footer_request_at(const app *a, int x)
{
    return overlay_keys(a) != NULL || a->overlay == OVERLAY_QUIT ? REQUEST_NONE : lay_out(NULL, a, x);
}
