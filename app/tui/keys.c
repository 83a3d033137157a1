// SPDX-License-Identifier: Apache-2.0
// Where a key goes: to the line that is being typed, to a question, or to the request it stands for.
#include "app/tui/app.h"

static void finish_line(app *a)
{
    overlay was = a->overlay;
    a->overlay = OVERLAY_NONE;
    a->message.kind = MESSAGE_NONE;
    if (was == OVERLAY_EDIT) {
        app_turn(a, app_knob(a), a->prompt.text);
        return;
    }
    prompt_remember(&a->prompt);
    app_command(a, a->prompt.text);
}

static void key_in_line(app *a, int key)
{
    a->candidates[0] = '\0';
    if (key == INPUT_ENTER) {
        finish_line(a);
    } else if (key == INPUT_ESCAPE || key == INPUT_CTRL_C) {
        a->overlay = OVERLAY_NONE;
    } else if (key == INPUT_TAB) {
        app_complete(a);
    } else {
        prompt_key(&a->prompt, key);
    }
}

static void click_knob(app *a, rect pane)
{
    int rows, help, row = a->click_y - pane.y - 1;
    size_t top, count;
    turn_panel(&count);
    app_knob_list(a, pane.h, &rows, &help, &top);
    if (row >= 0 && row < rows && top + (size_t)row < count) {
        a->knob = top + (size_t)row;
        app_ask_whatif(a);
    }
}

static void click(app *a)
{
    layout l = app_layout(a);
    if (a->overlay != OVERLAY_NONE) {
        return;
    }
    for (int pane = 0; pane < PANE_COUNT; pane++) {
        rect r = l.pane[pane];
        if (a->click_y < r.y || a->click_y >= r.y + r.h || a->click_x < r.x || a->click_x >= r.x + r.w) {
            continue;
        }
        request footer = pane == PANE_FOOTER ? footer_request_at(a, a->click_x) : REQUEST_NONE;
        if (footer != REQUEST_NONE) {
            app_request(a, footer);
        } else if (pane < PANE_FOCUS_COUNT) {
            a->focus = (pane_id)pane;
        }
        if (pane == PANE_KNOBS) {
            click_knob(a, r);
        }
        return;
    }
}

void app_key(app *a, int key)
{
    if (key == INPUT_RESIZED) {
        return; // the size is read before every frame
    }
    if (key == INPUT_CLICK) {
        click(a);
    } else if (a->overlay == OVERLAY_COMMAND || a->overlay == OVERLAY_EDIT) {
        key_in_line(a, key);
    } else if (a->overlay == OVERLAY_QUIT && (key == 'y' || key == 'q' || key == INPUT_ENTER)) {
        app_request(a, REQUEST_QUIT); // it has been asked
    } else if (a->overlay == OVERLAY_SWITCH && key == 'y') {
        app_switch_preset(a);
    } else if (a->overlay == OVERLAY_QUIT || a->overlay == OVERLAY_SWITCH) {
        a->overlay = OVERLAY_NONE;
    } else {
        request r = request_of_key(key);
        if (r != REQUEST_NONE) {
            app_request(a, r);
        }
    }
}
