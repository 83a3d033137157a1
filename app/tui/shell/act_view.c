// SPDX-License-Identifier: Apache-2.0
// What is looked at: screens, panes, rows, zoom.
#include <string.h>

#include "app/tui/shell/act.h"
#include "app/tui/shell/fit_view.h"
#include "app/tui/shell/panes.h"

enum { HELP_ROWS_MAX = 8192 };

void act_freeze(app *a, int unused)
{
    (void)unused;
    app_freeze(a, !a->feed.is_frozen);
    if (a->feed.is_frozen) {
        feed_say(&a->feed, MESSAGE_NOTE, "the view is frozen, the training is not; Space goes on");
    }
}

// ---- screens and panes ----------------------------------------------------------------------------------------

void app_show_screen(app *a, screen_id screen)
{
    bool of_table = a->overlay == OVERLAY_COLUMNS || a->overlay == OVERLAY_FILTER;
    pane_id focus = a->focus;
    if (!screen_has(screen, a->focus) || a->screen != screen) {
        a->focus = screen_row_of(screen)->panes[0];
    }
    if (screen == SCREEN_DOCTOR && app_layout(a).kind == LAYOUT_SINGLE) {
        a->focus = PANE_DOCTOR; // the verdict first, where one pane is shown alone
    }
    if (of_table && a->focus != focus) {
        a->overlay = OVERLAY_NONE; // an out-of-memory may bring the Doctor between two keys
    }
    if (screen == SCREEN_LEARN) {
        hr_err err;
        a->focus = a->learn.lesson.open != NULL ? PANE_LESSON : a->focus; // back to what is being learned
        if (learn_open(&a->learn, &err) != HR_OK) {
            feed_say_error(&a->feed, &err);
        }
    }
    a->screen = screen;
    a->doctor.came_itself = false;
    for (const pane_id *pane = screen_row_of(screen)->panes; *pane != PANE_COUNT; pane++) {
        act_settle_pane(a, *pane); // a key that follows at once finds the rows that the next frame will show
    }
}

void act_screen(app *a, int screen)
{
    app_show_screen(a, (screen_id)screen);
}

void act_list_lessons(app *a, int unused)
{
    (void)unused;
    const bool lists = a->screen == SCREEN_LEARN;
    app_show_screen(a, SCREEN_LEARN);
    a->focus = lists ? PANE_LESSONS : a->focus;
}

void act_focus_next(app *a, int direction)
{
    layout l = app_layout(a);
    layout_wish wish = app_wish(a);
    a->focus = layout_next(&l, &wish, direction);
}

void act_expand(app *a, int unused)
{
    (void)unused;
    a->expanded = !a->expanded;
}

void act_help(app *a, int unused)
{
    (void)unused;
    a->overlay = a->overlay == OVERLAY_HELP ? OVERLAY_NONE : OVERLAY_HELP;
    a->help.top = 0;
    a->help.filter[0] = '\0';
}

void act_command(app *a, int unused)
{
    (void)unused;
    prompt_begin(&a->prompt, "");
    a->overlay = OVERLAY_COMMAND;
    complete_look(a);
}

void act_console(app *a, int unused)
{
    (void)unused;
    console_open(a);
}

void act_back(app *a, int unused)
{
    (void)unused;
    if (a->overlay != OVERLAY_NONE) {
        a->overlay = OVERLAY_NONE;
    } else if (app_cancel_next(a)) {
        feed_say(&a->feed, MESSAGE_NOTE, "the training goes on as it is");
    } else if (a->feed.message.kind != MESSAGE_NONE) {
        a->feed.message.kind = MESSAGE_NONE;
    } else if (a->expanded) {
        a->expanded = false;
    } else if (a->focus == PANE_LESSON && a->learn.lesson.open != NULL) {
        a->focus = PANE_LESSONS;
    } else if (a->screen != SCREEN_BENCH) {
        app_show_screen(a, SCREEN_BENCH);
    }
}

// ---- rows -----------------------------------------------------------------------------------------------------

static size_t moved(size_t at, int by, size_t count)
{
    if (by < 0) {
        size_t up = (size_t) - (int64_t)by;
        return at < up ? 0 : at - up;
    }
    return count - at > (size_t)by && at < count ? at + (size_t)by : count == 0 ? 0 : count - 1;
}

static void move_preset(app *a, int rows)
{
    size_t count = 0;
    while (app_preset_entry(a, count) != NULL) {
        count++;
    }
    a->presets.selected = moved(a->presets.selected, rows, count);
}

// What the pane keeps for its rows is made ready first: no frame may have shown it yet.
static void move_table(app *a, pane_id pane, int rows)
{
    act_settle_pane(a, pane);
    table_move(&a->table[pane], pane_ops_of(pane)->table, pane_rows(a, pane), rows);
}

static void turn_all(app *a, const pane_request *r)
{
    if (r->sure_of != 0 && a->sure_of != r->sure_of) {
        a->sure_of = r->sure_of;
        feed_say(&a->feed, MESSAGE_NOTE, "%s", r->doubt);
    } else if (app_turn_all(&a->feed, r->knobs)) {
        a->sure_of = 0;
        feed_say(&a->feed, MESSAGE_NOTE, "%s", r->text);
    }
}

static void turn(app *a, const pane_request *r)
{
    if (app_turn_pairs(&a->feed, r->text)) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s from the next step on; z turns it back", r->text);
    }
}

static void ask_ranks(app *a, const pane_request *r)
{
    if (feed_send_text(&a->feed, HR_COMMAND_RANKS, (hr_knob_id)0, r->text)) {
        feed_say(&a->feed, MESSAGE_NOTE, "the ranks of %s are made between two steps", r->text);
    }
}

bool act_for_pane(app *a, const pane_request *r)
{
    switch (r->kind) {
    case PANE_ASKS_NOTHING:
        return false;
    case PANE_DONE:
        return true;
    case PANE_SAYS:
        feed_say(&a->feed, MESSAGE_NOTE, "%s", r->text);
        return true;
    case PANE_EDITS_KNOB:
        a->feed.knob = r->knob;
        act_edit(a);
        return true;
    case PANE_TURNS:
        turn(a, r);
        return true;
    case PANE_SELECTS_ROW:
        if (!table_select(&a->table[r->pane], pane_ops_of(r->pane)->table, pane_rows(a, r->pane), r->row)) {
            feed_say(&a->feed, MESSAGE_NOTE, "%s", r->text);
        }
        return true;
    case PANE_APPLIES_POINT:
        (void)fit_apply(&a->feed, r->row);
        return true;
    case PANE_TURNS_ALL:
        turn_all(a, r);
        return true;
    case PANE_ASKS_RANKS:
        ask_ranks(a, r);
        return true;
    case PANE_OPENS_PRESET:
        app_open_preset(a, r->text);
        return true;
    case PANE_BEGINS:
        app_begin_preset(a, r->text, r->knobs);
        return true;
    case PANE_FOCUSES:
        a->focus = r->pane;
        return true;
    case PANE_MOVES_TABLE:
        move_table(a, r->pane, r->rows);
        return true;
    case PANE_SHOWS_SCREEN:
        app_show_screen(a, r->screen);
        return true;
    case PANE_SELECTS_KNOB:
        act_select_knob(a, (int)r->knob - (int)a->feed.knob);
        return true;
    case PANE_FREEZES:
        app_freeze(a, true);
        feed_say(&a->feed, MESSAGE_NOTE, "%s", r->text);
        return true;
    case PANE_THAWS:
        app_freeze(a, false);
        return true;
    }
    return false;
}

void act_settle_pane(app *a, pane_id pane)
{
    const pane_view v = pane_view_of(a, pane);
    if (v.ops->settle != NULL) {
        const pane_request r = v.ops->settle(&v, pane_own(a, pane));
        (void)act_for_pane(a, &r);
    }
    if (v.ops->table != NULL) {
        table_settle(&a->table[pane], v.ops->table, v.rows);
    }
}

static bool move_pane(app *a, pane_id pane, int rows, int columns)
{
    const pane_view v = pane_view_of(a, pane);
    const pane_request r = v.ops->move == NULL ? (pane_request){.kind = PANE_ASKS_NOTHING}
                                               : v.ops->move(&v, pane_own(a, pane), rows, columns);
    return act_for_pane(a, &r);
}

// What was seen is what is opened or applied: rows may have come since the last frame.
static bool recalls_row(app *a, pane_id pane)
{
    act_settle_pane(a, pane);
    const pane_view v = pane_view_of(a, pane);
    const bool found = v.ops->table == NULL || table_recall(&a->table[pane], v.ops->table, v.rows);
    if (!found) {
        feed_say(&a->feed, MESSAGE_NOTE,
                 "the selected row has just gone: the same key takes the one that is selected now");
    }
    return found;
}

static void enter_pane(app *a, pane_id pane)
{
    if (!recalls_row(a, pane)) {
        return;
    }
    const pane_view v = pane_view_of(a, pane);
    const pane_request r = v.ops->enter(&v, pane_own(a, pane));
    (void)act_for_pane(a, &r);
}

static void move_in_pane(app *a, int rows)
{
    bool meter = app_layout(a).kind < LAYOUT_SINGLE; // whatever the screen, the knobs are what it shows
    const pane_id pane = meter ? PANE_KNOBS : a->focus;
    if (move_pane(a, pane, rows, 0)) {
        return;
    }
    if (pane_ops_of(pane)->table != NULL) {
        move_table(a, pane, rows);
    } else {
        act_select_knob(a, rows);
    }
}

void act_move_rows(app *a, int rows)
{
    if (a->overlay == OVERLAY_HELP || a->overlay == OVERLAY_FIND) {
        a->help.top = moved(a->help.top, rows, HELP_ROWS_MAX);
    } else if (a->overlay == OVERLAY_PRESETS || a->overlay == OVERLAY_NARROW) {
        move_preset(a, rows);
    } else if (a->overlay == OVERLAY_FILTER) {
        act_filter_move(a, rows);
    } else if (a->overlay == OVERLAY_COLUMNS) {
        a->column = moved(a->column, rows, pane_ops_of(a->focus)->table->column_count);
    } else {
        move_in_pane(a, rows);
    }
}

void act_move_columns(app *a, int columns)
{
    if (app_layout(a).kind < LAYOUT_SINGLE || !move_pane(a, a->focus, 0, columns)) {
        act_turn(a, columns < 0 ? KNOB_EDIT_LESS : KNOB_EDIT_MORE);
    }
}

void act_enter(app *a, int unused)
{
    (void)unused;
    if (a->overlay == OVERLAY_PRESETS) {
        act_choose_preset(a);
    } else if (a->overlay == OVERLAY_COLUMNS) {
        act_toggle_column(a);
    } else if (pane_ops_of(a->focus)->enter_does != NULL && app_layout(a).kind >= LAYOUT_SINGLE) {
        enter_pane(a, a->focus);
    } else {
        act_edit(a);
    }
}

static bool applies(pane_id pane)
{
    const pane_ops *ops = pane_ops_of(pane);
    return ops->apply != NULL || (ops->enter_does != NULL && strcmp(ops->enter_does, "apply") == 0);
}

pane_id act_apply_pane(const app *a)
{
    const pane_id *pane = screen_row_of(a->screen)->panes;
    if (applies(a->focus)) {
        return a->focus;
    }
    while (*pane != PANE_COUNT && !applies(*pane)) {
        pane++;
    }
    return *pane;
}

void act_apply(app *a, int unused)
{
    (void)unused;
    const pane_id pane = act_apply_pane(a);
    if (pane_ops_of(pane)->apply == NULL) {
        enter_pane(a, pane);
    } else if (recalls_row(a, pane)) {
        const pane_view v = pane_view_of(a, pane);
        const pane_request r = v.ops->apply(&v);
        (void)act_for_pane(a, &r);
    }
}

// A lesson is asked for from any screen: its pane need not have the focus.
static void ask_lesson(app *a, pane_request (*ask)(const pane_view *v, void *own))
{
    const pane_view v = pane_view_of(a, PANE_LESSON);
    const pane_request r = ask(&v, pane_own(a, PANE_LESSON));
    (void)act_for_pane(a, &r);
}

void act_hint(app *a, int unused)
{
    (void)unused;
    ask_lesson(a, pane_ops_of(PANE_LESSON)->hint);
}

void act_sandbox(app *a, int unused)
{
    (void)unused;
    ask_lesson(a, pane_ops_of(PANE_LESSON)->sandbox);
}

void act_next(app *a, int direction)
{
    if (a->overlay == OVERLAY_NONE && a->focus == PANE_LESSON) {
        ask_lesson(a, pane_ops_of(PANE_LESSON)->next);
    } else {
        act_match(a, direction);
    }
}

void act_permit(app *a, int unused)
{
    static const char *const said[] = {
        [HR_PERMIT_NOTHING] = "Fit turns only what leaves alone what is learned",
        [HR_PERMIT_PRECISION] =
            "Fit changes precision too: what is learned changes with each ~; P again: also "
            "the optimizer",
        [HR_PERMIT_OPTIMIZER] =
            "Fit changes precision and optimizer too: what is learned changes with each ~; "
            "P again: neither",
    };
    (void)unused;
    a->feed.fit.permission = (hr_fit_permission)((a->feed.fit.permission + 1) % HR_PERMISSION_COUNT);
    a->feed.fit.version++;
    feed_say(&a->feed, MESSAGE_NOTE, "%s", said[a->feed.fit.permission]);
}

// ---- looks ----------------------------------------------------------------------------------------------------

void act_zoom(app *a, int direction)
{
    const pane_view v = pane_view_of(a, a->focus);
    unsigned finest = app_layout(a).pane[PANE_STEP].h > 0 ? 1 : 0; // one step has a pane of its own there
    if (v.ops->zoom != NULL) {
        const pane_request r = v.ops->zoom(&v, pane_own(a, a->focus), direction);
        (void)act_for_pane(a, &r);
    } else if (direction < 0 && a->bench.zoom > finest) {
        a->bench.zoom--;
        feed_say(&a->feed, MESSAGE_NOTE, "less time on the graph");
    } else if (direction > 0 && a->bench.zoom < HISTORY_LEVELS) {
        a->bench.zoom++;
        feed_say(&a->feed, MESSAGE_NOTE, "more time on the graph");
    }
}

void act_glyphs(app *a, int unused)
{
    (void)unused;
    int next = ((int)a->looks.glyphs.set + 1) % GLYPHS_COUNT;
    // A locale that shows ASCII only, or one where blocks are two columns wide, offers less.
    if (a->looks.richest_glyphs == GLYPHS_ASCII) {
        next = GLYPHS_ASCII;
    } else if (a->looks.richest_glyphs == GLYPHS_BRAILLE && next < GLYPHS_BRAILLE) {
        next = GLYPHS_BRAILLE;
    }
    (void)act_choose_glyphs(a, (glyph_set)next);
    feed_say(&a->feed, MESSAGE_NOTE, "glyphs: %s", glyphs_name(a->looks.glyphs.set));
}

void act_redraw(app *a, int unused)
{
    (void)unused;
    a->redraws = true;
}

void act_say(app *a, int unused)
{
    (void)unused;
    act_settle_pane(a, a->focus);
    const pane_view v = pane_view_of(a, a->focus);
    const hr_preset_entry *situation = a->focus == PANE_SITUATIONS ? learn_situation(&a->learn) : NULL;
    char text[PANE_TEXT_MAX] = "";
    if (situation != NULL) {
        app_read_about(a, situation->name); // the cursor may have moved since the last frame
    }
    v.ops->say(&v, text);
    if (text[0] != '\0') {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", text);
    }
    run_state_log(&a->feed.live, LOG_NOTE, "%s", a->feed.message.text);
}
