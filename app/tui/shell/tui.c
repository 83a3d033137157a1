// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/tui.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/tui/feed/autosave.h"
#include "app/tui/shell/app.h"
#include "app/tui/shell/loop.h"
#include "app/tui/shell/offer.h"
#include "app/tui/shell/remember.h"
#include "app/tui/term/terminal.h"

enum { BY_SIGNAL = 128 }; // of an exit code, as a shell says it

static int fail(const hr_err *err)
{
    char text[3 * HR_ERR_TEXT_MAX];
    hr_err_format(err, text, sizeof text);
    fputs(text, stderr);
    return hr_status_exit_code(err->status);
}

static bool wants_no_color(const tui_options *options)
{
    const char *no_color = getenv("NO_COLOR");
    return options->no_color || (no_color != NULL && no_color[0] != '\0');
}

hr_status tui_check_theme(const char *name, hr_err *err)
{
    theme looks;
    if (theme_make(&looks, name, 0, false)) {
        return HR_OK;
    }
    hr_status status = HR_FAIL(err, USAGE, "no theme is called '%s'", name);
    hr_err_try(err, "--theme auto, dark, light, safe, safe-light or mono");
    return status;
}

// What the command line says goes before what is remembered.
static void look(app *a, const tui_options *options)
{
    remember_given given = {options->theme != NULL, options->ascii, !options->mouse};
    a->looks.no_color = wants_no_color(options);
    theme_make(&a->looks.theme, options->theme, terminal_colors(), a->looks.no_color);
    a->looks.richest_glyphs = options->ascii ? GLYPHS_ASCII : glyphs_detect();
    a->looks.glyphs = glyphs_make(a->looks.richest_glyphs);
    a->feed.watched = options->watched;
    a->feed.guest = options->guest;
    a->feed.unknown = options->unknown;
    a->recipe = options->recipe;
    a->asked = options->asked;
    a->remembered.path =
        a->feed.watched == NULL ? options->state_path : NULL; // its preset is not the last of ours
    autosave_name(options->state_path, a->feed.autosave, sizeof a->feed.autosave);
    learn_remember(&a->learn, a->feed.watched == NULL ? options->lessons_path : NULL);
    if (options->state_path != NULL) {
        remember_read(a, options->state_path, given);
    }
}

// The last line of a session that was not simply left: what is kept of it.
static void say_kept(const feed *f)
{
    char name[OFFER_NAME_MAX];
    static hr_save_about kept;
    if (!f->keeps || f->autosave[0] == '\0' || hr_save_look(f->autosave, &kept, NULL) != HR_OK) {
        return;
    }
    fprintf(stderr, "headroom: step %" PRIu64 " of %s is kept: the next headroom offers to go on from it.\n",
            kept.steps, offer_name(&kept, name));
}

int tui_run(const hr_preset *preset, const hr_knobs *knobs, const tui_options *options)
{
    hr_err err = {0};
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); // numbers are read and written with a point
    if (tui_check_theme(options->theme, &err) != HR_OK) {
        return fail(&err);
    }
    app *a = app_create(preset, knobs);
    if (a == NULL) {
        (void)HR_FAIL(&err, NOMEM, "the workbench needed %zu bytes", sizeof *a);
        return fail(&err);
    }
    if (terminal_open(options->mouse, &err) != HR_OK) {
        app_destroy(a);
        return fail(&err);
    }
    look(a, options);
    loop_run(a);
    terminal_close();
    hr_status status = feed_stop_engine(&a->feed, &err);
    say_kept(&a->feed);
    const int exit_code = status != HR_OK ? fail(&err) : a->ended_by != 0 ? BY_SIGNAL + a->ended_by : 0;
    app_destroy(a);
    return exit_code;
}
