// SPDX-License-Identifier: Apache-2.0
// fit: the fastest way to run an update that fits, and what less memory costs in time.
#include "app/cli/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/units.h"

#include "app/cli/cards_fit.h"
#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/interrupt.h"
#include "app/cli/options.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

enum { INDENT = 24 };

// ---- as text --------------------------------------------------------------------------------------------------

static void say_range(const hr_whatif *plan)
{
    char range[HR_SECONDS_RANGE_MAX];
    if (isfinite(plan->step_seconds_high)) {
        printf(" (%s as a rule)", hr_seconds_range(plan->step_seconds_low, plan->step_seconds_high, range));
    }
}

static void print_way(const cli_args *args, const fit_answer *a, const hr_fit_way *w)
{
    char peak[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    char seconds[REPORT_SECONDS_TEXT_MAX];
    const hr_whatif *plan = &w->point.plan;
    printf("  peak %s", hr_bytes_human(plan->peak_in_use_bytes, peak));
    if (plan->limit_bytes > 0) {
        printf(" of %s, %s left", hr_bytes_human(plan->limit_bytes, limit),
               hr_bytes_human(plan->limit_bytes - plan->peak_in_use_bytes, left));
    }
    if (isfinite(plan->step_seconds)) {
        printf("\n  a step takes %s", fit_seconds_text(plan->step_seconds, seconds));
        say_range(plan);
    }
    if (plan->step_seconds > 0 && a->found.asked.step_seconds > 0 && w->point.knobs[0] != '\0') {
        printf(", about %.2f times the preset's", plan->step_seconds / a->found.asked.step_seconds);
    }
    putchar('\n');
    if (w->changes[0] != '\0') {
        fputs("  changes what is learned: ", stdout);
        say_paragraph(w->changes, 27);
    }
    fit_print_command(args, a, w->point.knobs);
}

// What is there, and what there is of it; a step that only the host cannot hold is the host's.
static void print_asked(const cli_args *args, const fit_answer *a)
{
    char limit[HR_BYTES_TEXT_MAX], bytes[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    const hr_whatif *w = &a->found.asked;
    say_foreign(stdout, args->words[0], "");
    if (hr_whatif_lacks_host(w)) {
        printf(": does not fit as it is: the host would hold %s, %s more than pipeline.ram_limit",
               hr_bytes_human(w->host_bytes, limit), hr_bytes_human(w->host_missing_bytes, bytes));
    } else if (w->limit_bytes == 0) {
        printf(": needs %s, and there is no limit", hr_bytes_human(w->peak_in_use_bytes, bytes));
    } else if (w->fits) {
        printf(": fits as it is, with %s of %s left",
               hr_bytes_human(w->limit_bytes - w->peak_in_use_bytes, bytes),
               hr_bytes_human(w->limit_bytes, limit));
    } else {
        printf(": does not fit as it is: %s more than %s are needed", hr_bytes_human(w->missing_bytes, bytes),
               hr_bytes_human(w->limit_bytes, limit));
    }
    printf("\n%" PRIu32 " combinations were planned in %s\n", a->found.plans,
           report_seconds(a->found.seconds, seconds));
}

// The least that any of them needs: of the device, or, where that would do, of the host.
static void print_nothing(const cli_args *args, const fit_answer *a)
{
    const hr_fit_way *least = &a->found.ways[0];
    for (uint32_t k = 1; k < a->found.count; k++) {
        least = a->found.ways[k].missing_bytes < least->missing_bytes ? &a->found.ways[k] : least;
    }
    fputs("\nnothing that was planned fits; ", stdout);
    fit_print_nearest(args, least->missing_bytes, hr_whatif_lacks_host(&least->point.plan), least,
                      " --cards, or --max batch.size, or a smaller model");
}

static void print_answer(const cli_args *args, const fit_answer *a)
{
    const hr_fit_way *same = hr_fit_fastest(&a->found, false), *any = hr_fit_fastest(&a->found, true);
    if (any == NULL) {
        print_nothing(args, a);
        return;
    }
    puts("\nthe fastest that fits, with all that is learned left alone:");
    if (same != NULL) {
        print_way(args, a, same);
    } else {
        puts("  nothing fits");
    }
    if (any != same) {
        puts("\nthe fastest that fits, whatever is learned:");
        print_way(args, a, any);
    }
}

// A row for each way that needs visibly less than the one above it; of what fits, where anything does.
static void print_frontier(const fit_answer *a, bool may_learn)
{
    const double visible = 0.95;
    char peak[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    const bool any_fits = hr_fit_fastest(&a->found, may_learn) != NULL;
    uint64_t last_bytes = UINT64_MAX;
    puts("      peak        step  knobs");
    for (size_t k = 0; k < a->found.count; k++) {
        const hr_fit_way *w = &a->found.ways[k];
        const hr_whatif *plan = &w->point.plan;
        if ((may_learn ? w->on_frontier : w->on_same_frontier) && plan->fits >= any_fits &&
            (double)plan->peak_in_use_bytes <= visible * (double)last_bytes) {
            printf("%10s %11s %s", hr_bytes_human(plan->peak_in_use_bytes, peak),
                   fit_seconds_text(plan->step_seconds, seconds), w->changes[0] != '\0' ? "~" : " ");
            fit_print_knobs(w, INDENT);
            last_bytes = plan->peak_in_use_bytes;
        }
    }
}

static void print_frontiers(const fit_answer *a)
{
    puts(hr_fit_fastest(&a->found, false) != NULL
             ? "\nless memory for more time, with all that is learned left alone:"
             : "\nwhat comes nearest, with all that is learned left alone (none of it fits):");
    print_frontier(a, false);
    if (a->wish.permission > HR_PERMIT_NOTHING &&
        hr_fit_fastest(&a->found, true) != hr_fit_fastest(&a->found, false)) {
        puts("\nand with what changes what is learned (~):");
        print_frontier(a, true);
    }
    fit_print_basis(a->found.asked.step_basis, "peaks planned");
}

// ---- as JSON --------------------------------------------------------------------------------------------------

static void emit_way(emitter *e, const char *key, const hr_fit_way *w)
{
    if (w == NULL) {
        emit_null(e, key);
        return;
    }
    emit_row(e, key);
    report_emit_fields(e, hr_fit_way_fields(), w, NULL);
    emit_end_object(e);
}

static void print_json(const cli_args *args, const fit_answer *a)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.fit/1");
    emit_text(&e, "preset", args->words[0]);
    emit_count(&e, "limit_bytes", a->found.asked.limit_bytes > 0 ? a->found.asked.limit_bytes : HR_NONE);
    emit_way(&e, "fastest", hr_fit_fastest(&a->found, true));
    emit_way(&e, "fastest_same", hr_fit_fastest(&a->found, false));
    report_emit_fields(&e, hr_fit_fields(), &a->found, NULL);
    emit_bool(&e, "interrupted", interrupt_seen());
    emit_end_object(&e);
}

// ---- the command ----------------------------------------------------------------------------------------------

// What is wrong with the option is said of the option.
static hr_status set_vram(const cli_args *args, fit_answer *a, hr_err *err)
{
    const hr_status status = hr_knobs_set(&a->knobs, HR_KNOB_DEVICE_VRAM, args->value[APP_VRAM], err);
    if (status != HR_OK) {
        hr_err_try(err, "--vram 64MiB");
    }
    return status;
}

static hr_status read_options(const cli_args *args, fit_answer *a, hr_err *err)
{
    a->wish.permission = HR_PERMIT_OPTIMIZER;
    if (cli_given(args, APP_CARD)) {
        HR_TRY(cards_knobs(&a->knobs, err));
        HR_TRY(hr_knobs_set(&a->knobs, HR_KNOB_DEVICE_CARD, args->value[APP_CARD], err));
    }
    if (cli_given(args, APP_VRAM)) {
        HR_TRY(set_vram(args, a, err));
    }
    if (cli_given(args, APP_KEEP)) {
        HR_TRY(hr_fit_keep(&a->wish, args->value[APP_KEEP], err));
    }
    return hr_knobs_validate(&a->knobs, err);
}

static hr_status refuse_both(const cli_args *args, const char *sentence, const char *options, hr_err *err)
{
    const hr_status status = HR_FAIL(err, USAGE, "%s", sentence);
    hr_err_try(err, "headroom fit %.64s %s", args->words[0] != NULL ? args->words[0] : "demo", options);
    return status;
}

static hr_status check_options(const cli_args *args, hr_err *err)
{
    if (cli_given(args, APP_MAX) && cli_given(args, APP_CARDS)) {
        return refuse_both(args, "--max and --cards are two questions, had both", "--cards", err);
    }
    if (cli_given(args, APP_CARDS) && (cli_given(args, APP_VRAM) || cli_given(args, APP_CARD))) {
        return refuse_both(args, "--cards takes every card as it is, had --vram or --card beside it",
                           "--cards", err);
    }
    return HR_OK;
}

static hr_status answer(const cli_args *args, fit_answer *a, bool *fits, hr_err *err)
{
    if (cli_given(args, APP_MAX)) {
        return fit_largest(args, a, fits, err);
    }
    if (cli_given(args, APP_CARDS)) {
        return fit_cards(args, a, fits, err);
    }
    HR_TRY(fit_find(a, err));
    *fits = hr_fit_fastest(&a->found, true) != NULL;
    if (cli_given(args, APP_JSON)) {
        print_json(args, a);
        return HR_OK;
    }
    print_asked(args, a);
    print_answer(args, a);
    print_frontiers(a);
    fit_print_cut();
    return HR_OK;
}

static hr_status fit_subject(const cli_args *args, fit_answer *a, bool *fits, hr_err *err)
{
    cli_subject subject = {.preset = NULL};
    hr_planner *planner = NULL;
    hr_status status = check_options(args, err);
    status = status == HR_OK ? cli_open(args, args->words[0], &subject, err) : status;
    a->opened = a->knobs = subject.knobs;
    status = status == HR_OK ? read_options(args, a, err) : status;
    status = status == HR_OK ? hr_planner_open(subject.preset, &planner, err) : status;
    a->planner = planner;
    status = status == HR_OK ? answer(args, a, fits, err) : status;
    hr_planner_close(planner);
    cli_close(&subject);
    return status;
}

int cli_fit(int argc, char **argv)
{
    cli_args args;
    hr_err err = {0};
    bool fits = false;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    fit_answer *a = calloc(1, sizeof *a);
    if (a == NULL) {
        (void)HR_FAIL(&err, NOMEM, "no host memory for %d plans", (int)HR_FIT_POINTS_MAX);
        return say_error(&err, cli_given(&args, APP_JSON));
    }
    interrupt_watch();
    progress_begin(&a->line, NULL, 0);
    a->line.terminal = a->line.terminal && !cli_given(&args, APP_JSON);
    a->begin_ns = progress_now_ns();
    const hr_status status = fit_subject(&args, a, &fits, &err);
    free(a);
    return status == HR_INTERRUPTED || (status == HR_OK && interrupt_seen()) ? interrupt_exit_code()
           : status != HR_OK ? say_error(&err, cli_given(&args, APP_JSON))
           : fits            ? 0
                             : 1;
}
