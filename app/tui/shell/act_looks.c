// SPDX-License-Identifier: Apache-2.0
// How it looks, and what goes out of it: colours, glyphs, mouse, the clipboard, a screenshot.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/words.h"

#include "app/tui/shell/act.h"
#include "app/tui/shell/panes.h"
#include "app/tui/term/terminal.h"

// ---- looks ----------------------------------------------------------------------------------------------------

bool act_take_theme(app *a, const char *name)
{
    return theme_make(&a->looks.theme, name, terminal_colors(), a->looks.no_color);
}

bool act_choose_theme(app *a, const char *name)
{
    bool known = act_take_theme(a, name);
    if (known) {
        snprintf(a->looks.chosen_theme, sizeof a->looks.chosen_theme, "%s", name);
    }
    return known;
}

bool act_take_glyphs(app *a, glyph_set set)
{
    bool shown = set >= a->looks.richest_glyphs; // the sets stand from the richest to the poorest
    if (shown) {
        a->looks.glyphs = glyphs_make_beside(set, a->looks.richest_glyphs);
    }
    return shown;
}

bool act_choose_glyphs(app *a, glyph_set set)
{
    bool shown = act_take_glyphs(a, set);
    if (shown) {
        snprintf(a->looks.chosen_glyphs, sizeof a->looks.chosen_glyphs, "%s", glyphs_name(set));
    }
    return shown;
}

void act_choose_mouse(app *a, bool on)
{
    terminal_mouse(on);
    snprintf(a->looks.chosen_mouse, sizeof a->looks.chosen_mouse, "%s", on ? "on" : "off");
}

void act_theme(app *a, int unused)
{
    (void)unused;
    const char *name = theme_next(theme_name(&a->looks.theme));
    if (act_choose_theme(a, name)) {
        feed_say(&a->feed, MESSAGE_NOTE, "theme: %s%s", theme_name(&a->looks.theme),
                 a->looks.theme.tier == TIER_MONO ? ", shown without colours" : "");
    }
}

void act_mouse(app *a, int unused)
{
    (void)unused;
    act_choose_mouse(a, !terminal_has_mouse());
    feed_say(&a->feed, MESSAGE_NOTE, "%s",
             terminal_has_mouse() ? "the mouse clicks and scrolls here; m leaves it to the terminal"
                                  : "the mouse is the terminal's: it selects text; m takes it back");
}

// ---- what goes out --------------------------------------------------------------------------------------------

bool act_can_copy(const app *a)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    return ops->copy != NULL || (ops->table != NULL && a->table[a->focus].count > 0);
}

static bool copy_pane(app *a, char *text)
{
    act_settle_pane(a, a->focus);
    const pane_view v = pane_view_of(a, a->focus);
    return v.ops->copy != NULL
               ? v.ops->copy(&v, text, TERMINAL_COPY_MAX)
               : table_copy(&a->table[a->focus], v.ops->table, v.rows, text, TERMINAL_COPY_MAX);
}

void act_copy(app *a, int unused)
{
    (void)unused;
    char *text = calloc(1, TERMINAL_COPY_MAX + 1);
    hr_err err;
    bool any = text != NULL && copy_pane(a, text);
    if (!any) {
        feed_say(&a->feed, MESSAGE_NOTE, "nothing is here to copy");
    } else if (terminal_copy(hr_plain_text(text, "\t\n"), &err) == HR_OK) {
        for (char *tab = strchr(text, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
            *tab = ' '; // between cells; as a message it is read, not pasted
        }
        feed_say(&a->feed, MESSAGE_NOTE, "copied, where the terminal allows it: %.200s", text);
    } else {
        feed_say_error(&a->feed, &err);
    }
    free(text);
}

hr_status act_save_display(app *a, const char *path, bool replaces, hr_err *err)
{
    a->overlay = OVERLAY_NONE;
    a->feed.message.kind = MESSAGE_NONE;
    app_draw(a);
    HR_TRY(paint_save(&a->looks.theme, path, replaces, err));
    feed_say(&a->feed, MESSAGE_NOTE, "the screen is in %s", path);
    return HR_OK;
}

void act_save_screen(app *a, int unused)
{
    enum { NAMES_TRIED = 10000 };
    char path[32];
    hr_err err;
    (void)unused;
    for (int i = 1; i < NAMES_TRIED; i++) {
        snprintf(path, sizeof path, "headroom-%d.svg", i);
        if (access(path, F_OK) != 0 && errno == ENOENT) {
            if (act_save_display(a, path, false, &err) != HR_OK) {
                feed_say_error(&a->feed, &err);
            }
            return;
        }
    }
    feed_say(&a->feed, MESSAGE_ERROR,
             "headroom-1.svg and those after it stand here already\ntry: :save-display NAME.svg");
}
