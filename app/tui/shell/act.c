// SPDX-License-Identifier: Apache-2.0
// What each request does. Keys, ":" commands, clicks and tests all come through app_request.
#include "app/tui/shell/act.h"

#include "app/tui/shell/act_place.h"
#include "app/tui/shell/panes.h"
#include "app/tui/shell/tour.h"

enum { PAGE_ROWS = 8, ALL_ROWS = 1 << 30 };

// ---- what can be done now -------------------------------------------------------------------------------------

static const char *why_not_zoom(const app *a, request r)
{
    unsigned finest = app_layout(a).pane[PANE_STEP].h > 0 ? 1 : 0; // one step has a pane of its own there
    if (pane_ops_of(a->focus)->zoom != NULL) {
        return NULL;
    }
    if (!screen_has(a->screen, PANE_VRAM)) {
        return "nothing here has a time axis of its own: Tab goes to the next pane";
    }
    if (r == REQUEST_ZOOM_IN) {
        return a->bench.zoom == finest ? "this is the finest view" : NULL;
    }
    return a->bench.zoom == HISTORY_LEVELS ? "this is the longest view" : NULL;
}

static const char *why_not_table(const app *a)
{
    if (app_layout(a).kind < LAYOUT_SINGLE) {
        return "this window is too small for tables";
    }
    return pane_ops_of(a->focus)->table == NULL ? "the focused pane has no rows: Tab goes to the next" : NULL;
}

static const char *why_not_pin(const feed *f)
{
    return feed_run_state(f)->steps == 0    ? "a baseline needs a finished step"
           : f->live.state == HR_ENGINE_OOM ? "a baseline needs a finished step: with these knobs none fits"
           : !feed_has_stepped(f) ? "a baseline needs a finished step of these knobs: none has ended yet"
                                  : NULL;
}

static const char *why_not_screen(const app *a, request r)
{
    if (app_layout(a).kind < LAYOUT_SINGLE) {
        return "this window is too small: 60x16 shows every screen";
    }
    const bool goes_on = a->screen == SCREEN_LEARN && a->learn.lesson.open != NULL && a->focus != PANE_LESSON;
    return request_of_screen(a->screen) == r && !goes_on ? "this is the screen that is shown" : NULL;
}

static const char *why_not_apply(const app *a)
{
    if (app_layout(a).kind < LAYOUT_SINGLE) {
        return "this window is too small for tables";
    }
    return act_apply_pane(a) == PANE_COUNT ? "nothing on this screen can be applied" : NULL;
}

static const char *why_not_match(const app *a)
{
    return act_looks_for(a)[0] != '\0' ? NULL : "nothing was looked for here: / does";
}

static const char *why_not_console(const feed *f)
{
    return f->guest != NULL && f->watched == NULL ? NULL : "a training that is watched has no Lua beside it";
}

static bool edits_here(const app *a)
{
    return a->overlay == OVERLAY_PRESETS || a->overlay == OVERLAY_COLUMNS || a->focus == PANE_KNOBS ||
           app_layout(a).kind < LAYOUT_SINGLE || pane_ops_of(a->focus)->enter_does != NULL ||
           app_layout(a).pane[PANE_KNOB_BAR].h > 0;
}

static bool nothing_is_open(const app *a)
{
    return a->overlay == OVERLAY_NONE && a->feed.message.kind == MESSAGE_NONE && a->feed.judge == NULL &&
           !a->expanded && a->screen == SCREEN_BENCH;
}

// An arrow that moves no cursor turns the knob, and Enter edits it where a row has nothing else to do with it.
static bool turns_here(const app *a, request r)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    bool small = app_layout(a).kind < LAYOUT_SINGLE;
    if (a->overlay == OVERLAY_PRESETS || a->overlay == OVERLAY_COLUMNS) {
        return false;
    }
    if (r == REQUEST_LEFT || r == REQUEST_RIGHT) {
        return small || ops->move == NULL;
    }
    return r == REQUEST_ENTER && (small || ops->enter_does == NULL || act_apply_pane(a) == a->focus);
}

// Requests that only turn or drive the training.
static bool commands(const app *a, request r)
{
    switch ((int)r) {
    case REQUEST_LESS:
    case REQUEST_MORE:
    case REQUEST_RUN:
    case REQUEST_UNDO:
    case REQUEST_REDO:
    case REQUEST_PRESETS:
    case REQUEST_RESTART:
    case REQUEST_APPLY:
    case REQUEST_EDIT_PRESET:
        return true;
    default:
        return turns_here(a, r);
    }
}

// Of what drives the training or goes back to an earlier one.
static const char *why_not_training(const app *a, request r)
{
    switch ((int)r) { // the others need no reason
    case REQUEST_UNDO:
        return a->feed.turned.done > 0    ? NULL
               : a->feed.turned.count > 0 ? "nothing more to undo: Z turns it again"
                                          : "no knob has been turned yet";
    case REQUEST_REDO:
        return a->feed.turned.done == a->feed.turned.count ? "nothing has been undone" : NULL;
    case REQUEST_RESTART:
        return a->feed.life == HR_SESSION_LIVE && a->feed.session != NULL
                   ? "the worker is well: r runs or pauses it"
                   : NULL;
    case REQUEST_PIN:
        return why_not_pin(&a->feed);
    case REQUEST_UNPIN:
        return a->bench.baseline.pinned ? NULL : "no baseline is pinned: b pins one";
    case REQUEST_EDIT_PRESET:
        return act_why_not_edit(&a->feed);
    case REQUEST_APPLY:
        return why_not_apply(a);
    default:
        return NULL;
    }
}

// Of what moves through a screen; filtering finds something everywhere.
static const char *why_not_here(const app *a, request r)
{
    switch ((int)r) { // the others need no reason
    case REQUEST_ZOOM_IN:
    case REQUEST_ZOOM_OUT:
        return why_not_zoom(a, r);
    case REQUEST_HINT:
    case REQUEST_SANDBOX:
        return a->learn.lesson.open != NULL ? NULL : "no lesson is open: L lists them, Enter opens one";
    case REQUEST_NEXT_MATCH:
        return a->focus == PANE_LESSON ? NULL : why_not_match(a);
    case REQUEST_MATCH_BEFORE:
        return why_not_match(a);
    case REQUEST_SORT:
    case REQUEST_REVERSE:
    case REQUEST_COLUMNS:
    case REQUEST_FOLLOW:
        return why_not_table(a);
    case REQUEST_MARK:
        return app_layout(a).kind >= LAYOUT_SINGLE && pane_ops_of(a->focus)->mark != NULL ? NULL
                                                                                          : why_not_table(a);
    case REQUEST_PERMIT:
        return a->screen == SCREEN_FIT ? NULL : "P says what Fit may change: 0 opens it";
    case REQUEST_COPY:
        return act_can_copy(a) ? NULL : "nothing here can be copied: Tab goes to the next pane";
    case REQUEST_EXPAND:
        return app_layout(a).kind == LAYOUT_FULL ? NULL : "this window already shows one pane alone";
    case REQUEST_ENTER:
        return edits_here(a) ? NULL : "Enter edits a knob: Tab goes to [knobs]";
    case REQUEST_GLOSSARY:
        return a->screen == SCREEN_LEARN && a->focus == PANE_LESSONS ? "this is the list" : NULL;
    case REQUEST_CONSOLE:
        return why_not_console(&a->feed);
    case REQUEST_BACK:
        return nothing_is_open(a) ? "nothing is open" : NULL;
    default:
        return NULL;
    }
}

const char *app_why_not(const app *a, request r)
{
    const int screen = (int)r - (int)REQUEST_FIRST_SCREEN;
    if (screen >= 0 && screen < (int)SCREEN_COUNT) {
        return why_not_screen(a, r);
    }
    if (commands(a, r) && feed_why_not_command(&a->feed) != NULL) {
        return feed_why_not_command(&a->feed);
    }
    const char *why_not = why_not_training(a, r);
    return why_not != NULL ? why_not : why_not_here(a, r);
}

// Inside an overlay the letters that work on the screen behind it wait.
static bool overlay_takes(const app *a, request r)
{
    bool moves = r == REQUEST_NEXT_MATCH || r == REQUEST_MATCH_BEFORE || r == REQUEST_UP ||
                 r == REQUEST_DOWN || r == REQUEST_PAGE_UP || r == REQUEST_PAGE_DOWN || r == REQUEST_FIRST ||
                 r == REQUEST_LAST;
    bool leaves = r == REQUEST_BACK || r == REQUEST_QUIT || r == REQUEST_INTERRUPT || r == REQUEST_REDRAW;
    switch ((int)a->overlay) { // the others take everything
    case OVERLAY_HELP:
        return moves || leaves || r == REQUEST_HELP || r == REQUEST_PRESETS || r == REQUEST_FILTER;
    case OVERLAY_PRESETS:
        return moves || leaves || r == REQUEST_HELP || r == REQUEST_PRESETS || r == REQUEST_ENTER ||
               r == REQUEST_FILTER;
    case OVERLAY_COLUMNS:
        return moves || leaves || r == REQUEST_COLUMNS || r == REQUEST_ENTER || r == REQUEST_FILTER;
    default:
        return true;
    }
}

static const struct {
    void (*run)(app *a, int argument);
    int argument;
} acts[REQUEST_COUNT] = {
    [REQUEST_LEFT] = {act_move_columns, -1},
    [REQUEST_RIGHT] = {act_move_columns, 1},
    [REQUEST_ENTER] = {act_enter, 0},
    [REQUEST_APPLY] = {act_apply, 0},
    [REQUEST_HINT] = {act_hint, 0},
    [REQUEST_SANDBOX] = {act_sandbox, 0},
    [REQUEST_PERMIT] = {act_permit, 0},
    [REQUEST_LESS] = {act_turn, KNOB_EDIT_LESS},
    [REQUEST_MORE] = {act_turn, KNOB_EDIT_MORE},
    [REQUEST_KNOB_ABOVE] = {act_select_knob, -1},
    [REQUEST_KNOB_BELOW] = {act_select_knob, 1},
    [REQUEST_RUN] = {act_run_or_pause, 0},
    [REQUEST_RESTART] = {act_restart, 0},
    [REQUEST_FREEZE] = {act_freeze, 0},
    [REQUEST_UNDO] = {act_step_back, false},
    [REQUEST_REDO] = {act_step_back, true},
    [REQUEST_PIN] = {act_pin, true},
    [REQUEST_UNPIN] = {act_pin, false},
    [REQUEST_PRESETS] = {act_presets, 0},
#define X(id, key, shown, name, line) [REQUEST_##id] = {act_screen, SCREEN_##id},
    SCREEN_MAP(X)
#undef X
        [REQUEST_NEXT] = {act_focus_next, 1},
    [REQUEST_PREVIOUS] = {act_focus_next, -1},
    [REQUEST_UP] = {act_move_rows, -1},
    [REQUEST_DOWN] = {act_move_rows, 1},
    [REQUEST_PAGE_UP] = {act_move_rows, -PAGE_ROWS},
    [REQUEST_PAGE_DOWN] = {act_move_rows, PAGE_ROWS},
    [REQUEST_FIRST] = {act_move_rows, -ALL_ROWS},
    [REQUEST_LAST] = {act_move_rows, ALL_ROWS},
    [REQUEST_FILTER] = {act_filter, 0},
    [REQUEST_NEXT_MATCH] = {act_next, 1},
    [REQUEST_MATCH_BEFORE] = {act_match, -1},
    [REQUEST_EDIT_PRESET] = {act_edit_preset, 0},
    [REQUEST_SORT] = {act_sort, 0},
    [REQUEST_REVERSE] = {act_reverse, 0},
    [REQUEST_COLUMNS] = {act_columns, 0},
    [REQUEST_FOLLOW] = {act_follow, 0},
    [REQUEST_MARK] = {act_mark, 0},
    [REQUEST_EXPAND] = {act_expand, 0},
    [REQUEST_ZOOM_IN] = {act_zoom, -1},
    [REQUEST_ZOOM_OUT] = {act_zoom, 1},
    [REQUEST_SAY] = {act_say, 0},
    [REQUEST_COPY] = {act_copy, 0},
    [REQUEST_SAVE_SCREEN] = {act_save_screen, 0},
    [REQUEST_THEME] = {act_theme, 0},
    [REQUEST_MOUSE] = {act_mouse, 0},
    [REQUEST_HELP] = {act_help, 0},
    [REQUEST_COMMAND] = {act_command, 0},
    [REQUEST_CONSOLE] = {act_console, 0},
    [REQUEST_GLOSSARY] = {act_list_lessons, 0},
    [REQUEST_GLYPHS] = {act_glyphs, 0},
    [REQUEST_REDRAW] = {act_redraw, 0},
    [REQUEST_BACK] = {act_back, 0},
    [REQUEST_INTERRUPT] = {act_interrupt, 0},
    [REQUEST_QUIT] = {act_quit, 0},
};

static bool turns(request r)
{
    return r == REQUEST_LESS || r == REQUEST_MORE || r == REQUEST_LEFT || r == REQUEST_RIGHT;
}

void app_request(app *a, request r)
{
    app_follow_lesson(a);
    const char *why_not = app_why_not(a, r);
    if (a->feed.message.kind == MESSAGE_NOTE && r != REQUEST_BACK) {
        a->feed.message.kind = MESSAGE_NONE;
    }
    a->interrupted = a->interrupted && r == REQUEST_INTERRUPT;
    a->refused.any = a->refused.any && turns(r);
    a->sure_of = r == REQUEST_APPLY ? a->sure_of : 0;
    if (why_not != NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", why_not);
    } else if (r != REQUEST_NONE && overlay_takes(a, r)) {
        const act_place before = act_place_of(a);
        acts[r].run(a, acts[r].argument);
        act_say_stood(a, r, &before);
        tour_follow(a, r);
    } else if (r != REQUEST_NONE && a->feed.message.kind != MESSAGE_ERROR) {
        size_t count;
        feed_say(&a->feed, MESSAGE_NOTE, "%s has no job in this list: Esc closes it",
                 request_rows(&count)[r].shown);
    }
    app_follow_lesson(a);
}
