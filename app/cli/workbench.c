// SPDX-License-Identifier: Apache-2.0
// Started without a command: the workbench on a preset, the last one, or the demo.
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/say.h"
#include "app/cli/state.h"
#include "app/tui/remember.h"
#include "app/tui/tui.h"

// A remembered preset that can no longer be opened gives way to the demo without a word.
static hr_status open_last(const cli_args *args, cli_subject *subject, hr_err *err)
{
    char state[PATH_MAX], last[PATH_MAX];
    hr_preset *preset = NULL;
    if (state_workbench_path(state, sizeof state) && remember_preset(state, last, sizeof last) &&
        hr_preset_open(last, false, &preset, NULL, NULL) == HR_OK) {
        hr_preset_close(preset);
        return cli_open(args, last, subject, err);
    }
    return cli_open(args, "demo", subject, err);
}

static int open_workbench(const cli_args *args, const cli_subject *subject)
{
    char state[PATH_MAX];
    bool remembers = state_workbench_path(state, sizeof state);
    tui_options options = {.ascii = cli_given(args, APP_ASCII),
                           .no_color = cli_given(args, APP_NO_COLOR),
                           .mouse = !cli_given(args, APP_NO_MOUSE),
                           .theme = args->value[APP_THEME],
                           .state_path = remembers ? state : NULL};
    return tui_run(subject->preset, &subject->knobs, &options);
}

// Whoever named a preset knows the program; everybody else is helped to a first command.
static int need_terminal(const char *preset)
{
    hr_err err;
    if (preset == NULL) {
        cli_help(NULL, false);
        return hr_status_exit_code(HR_USAGE);
    }
    (void)HR_FAIL(&err, USAGE, "the workbench needs a terminal, had a pipe or a file");
    hr_err_try(&err, "headroom run %.400s", preset);
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
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return need_terminal(args.words[0]);
    }
    hr_status status = args.words[0] != NULL ? cli_open(&args, args.words[0], &subject, &err)
                                             : open_last(&args, &subject, &err);
    if (status != HR_OK) {
        return say_error(&err, false);
    }
    int exit_code = open_workbench(&args, &subject);
    cli_close(&subject);
    return exit_code;
}
