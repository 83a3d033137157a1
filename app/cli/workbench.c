// SPDX-License-Identifier: Apache-2.0
// Started without a command: the workbench on a preset, the last one, or the demo.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/file_kind.h"
#include "headroom/replay.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/cli/state.h"
#include "app/lua/lua_script.h"
#include "app/tui/shell/remember.h"
#include "app/tui/shell/script_size.h"
#include "app/tui/shell/tui.h"

// ---- what it is opened on -------------------------------------------------------------------------------------

static const hr_knob_row *row_of(const char *pair)
{
    char key[64];
    (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(pair, "="), pair);
    return hr_knob_find(key, NULL);
}

static bool is_named(const cli_args *args, hr_knob_id id)
{
    bool named = false;
    for (unsigned k = 0; k < args->set_count; k++) {
        const hr_knob_row *row = row_of(args->sets[k]);
        named = named || (row != NULL && row->id == id);
    }
    return named;
}

// The limit that a trace brings itself is not that of a card that is named.
static hr_status take_card(const cli_args *args, hr_knobs *knobs, hr_err *err)
{
    const bool takes = is_named(args, HR_KNOB_DEVICE_CARD) && !is_named(args, HR_KNOB_DEVICE_VRAM) &&
                       hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD);
    return takes ? hr_knobs_set(knobs, HR_KNOB_DEVICE_VRAM, "", err) : HR_OK;
}

// A recorded step, with the --set of args: of those there are none but of its card and its allocator.
static hr_status open_trace(const cli_args *args, const char *name, cli_subject *out, hr_err *err)
{
    *out = (cli_subject){0};
    HR_TRY(hr_replay_open_preset(name, false, &out->preset, NULL, err));
    out->knobs = *hr_preset_knobs(out->preset);
    hr_status status = HR_OK;
    for (unsigned k = 0; k < args->set_count && status == HR_OK; k++) {
        const hr_knob_row *row = row_of(args->sets[k]);
        status = hr_knobs_set_pair(&out->knobs, args->sets[k], err);
        if (status == HR_OK && row != NULL) {
            status = hr_replay_check_turn(row->id, hr_knob_text(&out->knobs, row->id), err);
        }
    }
    status = status == HR_OK ? take_card(args, &out->knobs, err) : status;
    if (status != HR_OK) {
        cli_close(out);
    }
    return status;
}

static hr_status open_subject(const cli_args *args, const char *name, cli_subject *out, hr_err *err)
{
    return hr_file_kind_of(name) == HR_FILE_TRACE ? open_trace(args, name, out, err)
                                                  : cli_open(args, name, out, err);
}

// A remembered preset that can no longer be opened gives way to the demo without a word.
static hr_status open_last(const cli_args *args, cli_subject *subject, hr_err *err)
{
    char state[PATH_MAX], last[PATH_MAX];
    hr_preset *preset = NULL;
    if (state_workbench_path(state, sizeof state) && remember_preset(state, last, sizeof last) &&
        hr_replay_open_preset(last, false, &preset, NULL, NULL) == HR_OK) {
        hr_preset_close(preset);
        return open_subject(args, last, subject, err);
    }
    return cli_open(args, "demo", subject, err);
}

static int open_workbench(const cli_args *args, const cli_subject *subject)
{
    char state[PATH_MAX], lessons[PATH_MAX];
    bool remembers = state_workbench_path(state, sizeof state);
    bool learns = state_lessons_path(lessons, sizeof lessons);
    tui_options options = {.ascii = cli_given(args, APP_ASCII),
                           .no_color = cli_given(args, APP_NO_COLOR),
                           .mouse = !cli_given(args, APP_NO_MOUSE),
                           .theme = args->value[APP_THEME],
                           .guest = &lua_script_guest,
                           .recipe = args->value[APP_RECIPE],
                           .asked = args->words[0] != NULL,
                           .state_path = remembers ? state : NULL,
                           .lessons_path = learns ? lessons : NULL};
    return tui_run(subject->preset, &subject->knobs, &options);
}

// ---- --script -------------------------------------------------------------------------------------------------

static hr_status read_stage(const cli_args *args, tui_script *script, hr_err *err)
{
    const char *size = args->value[APP_SIZE] == NULL ? "80x24" : args->value[APP_SIZE];
    *script = (tui_script){.path = args->value[APP_SCRIPT],
                           .type = args->value[APP_TERM] == NULL ? "xterm-256color" : args->value[APP_TERM],
                           .cast = args->value[APP_CAST]};
    if (script_size(size, &script->rows, &script->columns)) {
        return HR_OK;
    }
    hr_status status = HR_FAIL(err, USAGE, "--size needs columns and rows, had '%.64s'", size);
    hr_err_try(err, "--size 80x24");
    return status;
}

// A script sees numbers alone: whatever the preset trains on, the device is `plan`.
static hr_status play(const cli_args *args, hr_err *err)
{
    cli_subject subject;
    tui_script script;
    tui_options options = {.ascii = cli_given(args, APP_ASCII),
                           .no_color = cli_given(args, APP_NO_COLOR),
                           .theme = args->value[APP_THEME],
                           .guest = &lua_script_guest,
                           .recipe = args->value[APP_RECIPE]};
    HR_TRY(read_stage(args, &script, err));
    HR_TRY(open_subject(args, args->words[0] == NULL ? "demo" : args->words[0], &subject, err));
    hr_status status = hr_knobs_set_pair(&subject.knobs, "device.kind=plan", err);
    if (status == HR_OK) {
        status = tui_play(subject.preset, &subject.knobs, &options, &script, err);
    }
    cli_close(&subject);
    return status;
}

static hr_status needs_script(const cli_args *args, hr_err *err)
{
    static const app_option_id only[] = {APP_SIZE, APP_TERM, APP_CAST};
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        if (cli_given(args, only[i])) {
            hr_status status = HR_FAIL(err, USAGE, "--%s goes with --script", app_option_row(only[i])->name);
            hr_err_try(err, "headroom --script FILE --%s %s", app_option_row(only[i])->name,
                       args->value[only[i]]);
            return status;
        }
    }
    return HR_OK;
}

// ---- the workbench --------------------------------------------------------------------------------------------

// A start without a preset is helped to a first command.
static int need_terminal(const char *preset)
{
    hr_err err;
    if (preset == NULL) {
        cli_help(NULL, false);
        return hr_status_exit_code(HR_USAGE);
    }
    (void)HR_FAIL(&err, USAGE, "the workbench needs a terminal, had a pipe or a file");
    const bool trace = hr_file_kind_of(preset) == HR_FILE_TRACE;
    hr_err_try(&err, "headroom %s %.400s", trace ? "plan" : "run", preset);
    return say_error(&err, false);
}

int cli_workbench(int argc, char **argv)
{
    cli_args args;
    cli_subject subject;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, false);
    }
    if (cli_given(&args, APP_SCRIPT)) {
        return play(&args, &err) == HR_OK ? 0 : say_error(&err, false);
    }
    if (needs_script(&args, &err) != HR_OK) {
        return say_error(&err, false);
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return need_terminal(args.words[0]);
    }
    hr_status status = args.words[0] != NULL ? open_subject(&args, args.words[0], &subject, &err)
                                             : open_last(&args, &subject, &err);
    if (status != HR_OK) {
        return say_error(&err, false);
    }
    int exit_code = open_workbench(&args, &subject);
    cli_close(&subject);
    return exit_code;
}
