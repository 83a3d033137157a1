// SPDX-License-Identifier: Apache-2.0
// Where a key goes: to the line that is being typed, to a question, or to the request it stands for.
#include "app/tui/shell/act.h"
#include "app/tui/shell/command.h"
#include "app/tui/shell/offer.h"
#include "app/tui/shell/panes.h"
#include "app/tui/shell/tour.h"

// Where the line looks through a list that takes the screen: that list.
static overlay list_behind(overlay line)
{
    return line == OVERLAY_FIND ? OVERLAY_HELP : line == OVERLAY_NARROW ? OVERLAY_PRESETS : OVERLAY_NONE;
}

// A table says it itself.
static void say_no_match(app *a)
{
    size_t shown, all;
    act_filter_counts(a, &shown, &all);
    if (shown == 0 && a->prompt.text[0] != '\0' && pane_ops_of(a->focus)->table == NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "no knob has '%.64s' in its key", a->prompt.text);
    }
}

static void finish_line(app *a)
{
    overlay was = a->overlay;
    a->overlay = OVERLAY_NONE;
    a->feed.message.kind = MESSAGE_NONE;
    if (was == OVERLAY_EDIT) {
        app_follow_lesson(a);
        act_turn_to(&a->feed, feed_knob(&a->feed), a->prompt.text);
        return;
    }
    if (was == OVERLAY_FILTER) {
        act_filter_typed(a);
        say_no_match(a);
        return;
    }
    if (was == OVERLAY_FIND || was == OVERLAY_NARROW) {
        a->overlay = list_behind(was);
        return;
    }
    prompt_remember(&a->prompt);
    app_command(a, a->prompt.text);
}

static void line_changed(app *a)
{
    if (a->overlay == OVERLAY_FILTER) {
        act_filter_typed(a);
    } else if (a->overlay == OVERLAY_FIND) {
        act_find_typed(a);
    } else if (a->overlay == OVERLAY_NARROW) {
        act_narrow_typed(a);
    }
    complete_look(a);
}

bool app_is_typing(const app *a)
{
    return a->overlay == OVERLAY_COMMAND || a->overlay == OVERLAY_EDIT || a->overlay == OVERLAY_FILTER ||
           a->overlay == OVERLAY_FIND || a->overlay == OVERLAY_NARROW || a->overlay == OVERLAY_CONSOLE;
}

const prompt *app_prompt(const app *a)
{
    return a->overlay == OVERLAY_CONSOLE ? &a->console.prompt : &a->prompt;
}

void app_paste(app *a, const char *text)
{
    if (!app_is_typing(a)) {
        feed_say(&a->feed, MESSAGE_NOTE, "pasted text goes into a line: : opens one");
        return;
    }
    prompt_paste(a->overlay == OVERLAY_CONSOLE ? &a->console.prompt : &a->prompt, text);
    line_changed(a);
}

static void key_in_line(app *a, int key)
{
    if (a->overlay == OVERLAY_CONSOLE) {
        console_key(a, key);
        return;
    }
    const bool among_values = a->overlay == OVERLAY_EDIT && (key == INPUT_UP || key == INPUT_DOWN);
    if (key == INPUT_TAB || key == INPUT_BACK_TAB || among_values) {
        complete_next(a, key == INPUT_TAB || key == INPUT_DOWN ? 1 : -1);
        return;
    }
    if (key == INPUT_ENTER) {
        finish_line(a);
    } else if (key == INPUT_ESCAPE || key == INPUT_CTRL_C) {
        if (a->overlay != OVERLAY_COMMAND && a->overlay != OVERLAY_EDIT) {
            prompt_begin(&a->prompt, ""); // all rows again
            line_changed(a);
        }
        a->overlay = list_behind(a->overlay);
    } else if (a->overlay == OVERLAY_COMMAND || (key != INPUT_UP && key != INPUT_DOWN)) {
        prompt_key(&a->prompt, key);
    } else if (a->overlay != OVERLAY_EDIT) {
        act_move_rows(a, key == INPUT_UP ? -1 : 1); // only ":" has lines before this one
    }
    line_changed(a);
}

enum { WHEEL_ROWS = 3 };

static bool within(rect r, int y, int x)
{
    return y >= r.y && y < r.y + r.h && x >= r.x && x < r.x + r.w;
}

static void click_pane(app *a, pane_id pane, rect r)
{
    const pane_view v = pane_view_of(a, pane);
    int y = a->click_y - r.y, x = a->click_x - r.x;
    if (v.ops->click != NULL) {
        const pane_request asked = v.ops->click(&v, pane_own(a, pane), y, x);
        (void)act_for_pane(a, &asked);
    } else if (v.ops->table != NULL) {
        act_settle_pane(a, pane);
        table_place place = pane_table_place(a, pane, r);
        table_click(&a->table[pane], v.ops->table, v.rows, &place, y, x);
    }
    a->focus = pane; // only now: until then it stands as it was drawn
}

static void click_frame(app *a, pane_id pane)
{
    request footer = pane == PANE_FOOTER ? footer_request_at(a, a->click_x) : REQUEST_NONE;
    screen_id screen = pane == PANE_TABS ? tabs_screen_at(a, a->click_x) : SCREEN_COUNT;
    if (footer != REQUEST_NONE) {
        app_request(a, footer);
    } else if (screen != SCREEN_COUNT) {
        app_request(a, request_of_screen(screen));
    }
}

static void click(app *a)
{
    layout l = app_layout(a);
    for (int pane = 0; pane < PANE_COUNT && a->overlay == OVERLAY_NONE; pane++) {
        rect r = l.pane[pane];
        if (!within(r, a->click_y, a->click_x)) {
            continue;
        }
        if (pane < PANE_FOCUS_COUNT) {
            click_pane(a, (pane_id)pane, r);
        } else {
            click_frame(a, (pane_id)pane);
        }
        return;
    }
}

// A value that is being typed is the selected knob's, and a question waits for its answer: nothing moves behind them.
static void wheel(app *a, int rows)
{
    bool waits = a->overlay == OVERLAY_EDIT || a->overlay == OVERLAY_COMMAND || a->overlay == OVERLAY_QUIT ||
                 a->overlay == OVERLAY_SWITCH;
    if (a->overlay == OVERLAY_CONSOLE) {
        console_scroll(a, rows);
    } else if (!waits) {
        act_move_rows(a, rows);
    }
}

static void take_key(app *a, int key)
{
    request r = request_of_key(key);
    if (r != REQUEST_NONE) {
        app_request(a, r);
    } else if (a->feed.message.kind == MESSAGE_ERROR) {
        return; // it stays until it was read
    } else if (key > ' ' && key < INPUT_BACKSPACE) {
        feed_say(&a->feed, MESSAGE_NOTE, "%c has no job: ? shows every key", key);
    } else if (key != INPUT_NONE) {
        feed_say(&a->feed, MESSAGE_NOTE, "this key has no job: ? shows those that have one");
    }
}

void app_key(app *a, int key)
{
    if (key == INPUT_RESIZED) {
        return; // the size is read before every frame
    }
    if (a->feed.ending) {
        request r = request_of_key(key);
        if (r == REQUEST_QUIT || r == REQUEST_INTERRUPT) {
            feed_end_at_once(&a->feed);
        }
        return;
    }
    if ((a->overlay == OVERLAY_CARD && card_key(a, key)) ||
        (a->overlay == OVERLAY_OFFER && offer_key(a, key))) {
        return;
    }
    if (key == INPUT_CLICK) {
        click(a);
    } else if (key == INPUT_WHEEL_UP || key == INPUT_WHEEL_DOWN) {
        wheel(a, key == INPUT_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS);
    } else if (app_is_typing(a)) {
        key_in_line(a, key);
    } else if (a->overlay == OVERLAY_QUIT && (key == 'y' || key == 'q' || key == INPUT_ENTER)) {
        app_request(a, REQUEST_QUIT); // it has been asked
    } else if (a->overlay == OVERLAY_QUIT && key == 's') {
        a->feed.keeps = true;
        app_request(a, REQUEST_QUIT);
    } else if (a->overlay == OVERLAY_SWITCH &&
               (key == 'y' ||
                (key == INPUT_ENTER && a->focus == PANE_LESSON))) { // which said that Enter begins it
        app_switch_preset(a);
    } else if (a->overlay == OVERLAY_QUIT || a->overlay == OVERLAY_SWITCH) {
        a->overlay = OVERLAY_NONE;
    } else {
        take_key(a, key);
    }
}
