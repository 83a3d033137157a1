// SPDX-License-Identifier: Apache-2.0
// replay: a recorded trace on allocators of choice, side by side.
#include "app/cli/replay.h"

#include <stdio.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/interrupt.h"
#include "app/cli/page.h"
#include "app/cli/say.h"
#include "app/cli/style.h"

bool replay_is_interrupted(void *context)
{
    (void)context;
    return interrupt_seen();
}

hr_status replay_run_columns(hr_replay *replay, const cli_args *args, replay_table *t, hr_err *err)
{
    hr_replay_options options = {.stop = replay_is_interrupted,
                                 .trace_file = args->value[APP_TRACE],
                                 .wants_peak_heap = cli_given(args, APP_AT_PEAK)};
    for (unsigned k = 0; k < t->column_count;) {
        replay_column *c = &t->columns[k];
        hr_status status = hr_replay_run(replay, &c->knobs, &options, &c->result, err);
        if (status == HR_DEPENDENCY && !t->chosen) {
            memmove(c, c + 1, (--t->column_count - k) * sizeof *c);
            continue;
        }
        HR_TRY(status);
        k++;
    }
    return HR_OK;
}

int replay_exit_code(const replay_table *t)
{
    for (unsigned k = 0; k < t->column_count; k++) {
        if (t->columns[k].result.failures_total == 0) {
            return 0;
        }
    }
    return hr_status_exit_code(HR_OOM);
}

hr_status replay_check_options(const cli_args *args, const replay_table *t, const char **style, hr_err *err)
{
    HR_TRY(style_beside_report(args, style, err));
    if (cli_given(args, APP_AT_PEAK) && cli_given(args, APP_JSON)) {
        hr_status status = HR_FAIL(
            err, USAGE, "--at-peak draws a heap and --json writes one document: needed one, had both");
        hr_err_try(err, "headroom %.16s %.200s --at-peak", args->command->name, t->name);
        return status;
    }
    // One file is the trace of one replay.
    if (!cli_given(args, APP_TRACE) || t->column_count == 1) {
        return HR_OK;
    }
    hr_status status = HR_FAIL(err, USAGE, "--trace needs one allocator, had %u columns", t->column_count);
    hr_err_try(err, "headroom replay %.200s --allocator bfc --trace %.200s", t->name, args->value[APP_TRACE]);
    return status;
}

static hr_status compare(const cli_args *args, replay_table *t, const char *style, hr_err *err)
{
    hr_replay *replay = NULL;
    HR_TRY(hr_replay_open(t->name, &replay, err));
    t->about = hr_replay_get_about(replay);
    t->recorded = hr_replay_recorded_heap(replay);
    hr_status status = replay_run_columns(replay, args, t, err);
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        status = replay_print_json(t, err);
    } else if (status == HR_OK) {
        replay_page page = {page_columns(), page_draws_blocks(args), style};
        status = replay_print_text(t, &page, err);
    }
    t->about = NULL;
    t->recorded = NULL;
    hr_replay_close(replay);
    return status;
}

int cli_replay(int argc, char **argv)
{
    static replay_table t;
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    hr_status status = HR_OK;
    const char *style = NULL;
    t.name = args.words[0];
    if (t.name == NULL) {
        status = HR_FAIL(&err, USAGE,
                         "replay needs a TRACE, had none: a file, or a scenario of `headroom replay -h`");
        hr_err_try(&err, "headroom replay %s", hr_scenario_row(0)->name);
    }
    if (status == HR_OK) {
        status = replay_make_columns(&args, &t, &err);
    }
    if (status == HR_OK) {
        status = replay_check_options(&args, &t, &style, &err);
    }
    if (status == HR_OK) {
        interrupt_watch();
        status = compare(&args, &t, style, &err);
    }
    int exit_code = status == HR_OK ? replay_exit_code(&t) : say_error(&err, cli_given(&args, APP_JSON));
    exit_code = status == HR_INTERRUPTED ? interrupt_exit_code() : exit_code;
    replay_table_deinit(&t);
    return exit_code;
}
