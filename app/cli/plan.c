// SPDX-License-Identifier: Apache-2.0
// plan: what a run would take, from the same program on the same allocator, with no arithmetic.
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/file_kind.h"

#include "app/cli/cli.h"
#include "app/cli/options.h"
#include "app/cli/plan_answer.h"
#include "app/cli/plan_play.h"
#include "app/cli/plan_trace.h"
#include "app/cli/plan_weights.h"
#include "app/cli/report.h"
#include "app/cli/say.h"
#include "app/cli/style.h"

enum { PLAN_STEPS = 2, PLAN_MAX_REPEAT = 10 * 1000 * 1000 };

static hr_status print_plan(const cli_args *args, const hr_preset *preset, hr_engine *engine, uint64_t repeat,
                            hr_err *err)
{
    hr_report report;
    const char *framework = NULL;
    HR_TRY(hr_engine_report(engine, &report, err));
    hr_status status = repeat == 0 ? HR_OK : hr_engine_plan_repeat(engine, (uint32_t)repeat, &report, err);
    if (status == HR_OK && cli_given(args, APP_JSON)) {
        report_print_json(&report, stdout);
    } else if (status == HR_OK) {
        report_style style = {.all_peak = cli_given(args, APP_AT_PEAK), .knobs = hr_engine_knobs(engine)};
        plan_answer_print(args, preset, style.knobs, &report);
        report_print_text(&report, &style);
    }
    hr_report_deinit(&report);
    if (status == HR_OK) {
        status = style_of(args, &framework, err);
    }
    return status == HR_OK ? style_write(engine, framework, err) : status;
}

// The listing is a document of its own.
static hr_status check_options(const cli_args *args, hr_err *err)
{
    const uint64_t others = APP_OPTION(JSON) | APP_OPTION(AT_PEAK) | APP_OPTION(REPEAT) | APP_OPTION(STYLE);
    const char *style = NULL;
    HR_TRY(style_beside_report(args, &style, err));
    if (cli_given(args, APP_LISTING) && (args->given & others) != 0) {
        hr_status status = HR_FAIL(
            err, USAGE, "--listing stands alone, had --json, --at-peak, --repeat or --style beside it");
        hr_err_try(err, "headroom plan %s --listing", args->words[0] != NULL ? args->words[0] : "demo");
        return status;
    }
    if (cli_given(args, APP_DIFF) && !cli_given(args, APP_LISTING)) {
        hr_status status = HR_FAIL(err, USAGE, "--diff is about the listing, had it without --listing");
        hr_err_try(err, "headroom plan %s --listing --diff %s",
                   args->words[0] != NULL ? args->words[0] : "demo", args->value[APP_DIFF]);
        return status;
    }
    return HR_OK;
}

static hr_status print_listing(const cli_args *args, hr_engine *engine, hr_err *err)
{
    return cli_given(args, APP_DIFF) ? hr_engine_listing_diff(engine, args->value[APP_DIFF], stdout, err)
                                     : hr_engine_listing(engine, stdout, err);
}

static hr_status plan_on(const cli_args *args, const hr_preset *preset, hr_engine *engine, hr_err *err)
{
    uint64_t steps = PLAN_STEPS;
    uint64_t repeat = 0;
    HR_TRY(cli_count(args, APP_STEPS, PLAN_STEPS, &steps, err));
    HR_TRY(cli_count(args, APP_REPEAT, 0, &repeat, err));
    if (repeat > PLAN_MAX_REPEAT) {
        return HR_FAIL(err, USAGE, "--repeat needs at most %d plans, had %llu", PLAN_MAX_REPEAT,
                       (unsigned long long)repeat);
    }
    HR_TRY(plan_play(engine, steps, err));
    bool fits = hr_engine_get_state(engine) != HR_ENGINE_OOM;
    if (!cli_given(args, APP_LISTING)) {
        HR_TRY(print_plan(args, preset, engine, fits ? repeat : 0, err));
    } else {
        HR_TRY(print_listing(args, engine, err));
    }
    if (!fits) {
        *err = *hr_engine_error(engine);
        return err->status;
    }
    return HR_OK;
}

// A file of weights that is no preset. `why` it is none is said where it should be one.
static int plan_no_network(const cli_args *args, const hr_err *why)
{
    hr_weights weights;
    hr_err unread;
    const bool is_read = hr_weights_read(args->words[0], &weights, &unread) == HR_OK;
    if (is_read && !weights.names_network) {
        return plan_weights(args, &weights);
    }
    const int exit_code = say_error(why, cli_given(args, APP_JSON));
    if (is_read && !cli_given(args, APP_JSON)) {
        plan_weights_alone(args, &weights);
    }
    return exit_code;
}

int cli_plan(int argc, char **argv)
{
    cli_args args;
    cli_subject subject;
    hr_engine *engine = NULL;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    const hr_file_kind kind = args.words[0] == NULL ? HR_FILE_PRESET : hr_file_kind_of(args.words[0]);
    if (kind == HR_FILE_TRACE) {
        return plan_trace(&args);
    }
    hr_status status = cli_open(&args, args.words[0], &subject, &err);
    status = status == HR_OK ? check_options(&args, &err) : status;
    if (status == HR_OK) {
        hr_engine_options options = {.plan_only = true, .keeps_failure_heap = cli_given(&args, APP_STYLE)};
        status = hr_engine_create(subject.preset, &subject.knobs, &options, &engine, &err);
    }
    if (status == HR_OK) {
        status = plan_on(&args, subject.preset, engine, &err);
    }
    hr_engine_destroy(engine);
    cli_close(&subject);
    if (status == HR_PRESET && (kind == HR_FILE_GGUF || kind == HR_FILE_SAFETENSORS)) {
        return plan_no_network(&args, &err);
    }
    return status == HR_OK ? 0 : say_error(&err, cli_given(&args, APP_JSON) && status != HR_OOM);
}
