// SPDX-License-Identifier: Apache-2.0
// explain: why a preset, a log or a snapshot ran out of memory, and what was proved to help.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/file_kind.h"
#include "headroom/replay.h"
#include "headroom/units.h"

#include "app/cli/cli.h"
#include "app/cli/interrupt.h"
#include "app/cli/options.h"
#include "app/cli/page.h"
#include "app/cli/plan_play.h"
#include "app/cli/plan_trace.h"
#include "app/cli/report.h"
#include "app/cli/say.h"

enum { EXPLAIN_STEPS = 12, TENSORS_SHOWN = 8, HOLES_SHOWN = 4 };

// ---- the first lines ------------------------------------------------------------------------------------------

enum { LINES = 5, COLUMNS = 80, FIX_INDENT = 5, FIX_TEXT_MAX = 512 };

// "-s allocator.kind=async: fits, 1.20 GiB left; same numbers"
static void fix_words(const hr_report_fix *fix, bool of_host, char text[FIX_TEXT_MAX])
{
    char left[HR_BYTES_TEXT_MAX];
    int used = 0;
    for (const char *pair = fix->knobs; *pair != '\0';) {
        const size_t length = strcspn(pair, " ");
        used += snprintf(text + used, FIX_TEXT_MAX - (size_t)used, "%s-s %.*s", used > 0 ? " " : "",
                         (int)length, pair);
        pair += length + (pair[length] == ' ');
    }
    if (of_host && fix->host_bytes != HR_NONE) {
        used += snprintf(text + used, FIX_TEXT_MAX - (size_t)used, ": fits, the host holds %s",
                         hr_bytes_human(fix->host_bytes, left));
    } else if (fix->limit_bytes != HR_NONE && fix->limit_bytes >= fix->peak_bytes) {
        used += snprintf(text + used, FIX_TEXT_MAX - (size_t)used, ": fits, %s left",
                         hr_bytes_human(fix->limit_bytes - fix->peak_bytes, left));
    }
    (void)snprintf(text + used, FIX_TEXT_MAX - (size_t)used, "; %s", fix->cost);
}

static void print_fix(uint32_t number, const char *words)
{
    printf("  %" PRIu32 ". ", number);
    say_paragraph(words, FIX_INDENT);
}

// Where no fix was proved, what there is to do is not a knob's.
static const char *advice_of(hr_oom_cause cause)
{
    switch (cause) {
    case HR_OOM_LEAK:
    case HR_OOM_NEAR_FULL:
        return "no allocator helps: keep a number (item(), float()) in place of what is kept";
    case HR_OOM_OUTSIDE:
        return "nvidia-smi lists who holds the rest of the card";
    case HR_OOM_DOUBLE_COPY:
        return "make it in place, or let the first copy go before the second is made";
    case HR_OOM_PIPELINE:
        return "hold fewer batches ahead on the device";
    case HR_OOM_NONE:
    case HR_OOM_CAPACITY:
    case HR_OOM_FRAGMENTATION:
    case HR_OOM_ROUNDING:
    case HR_OOM_OTHER_STREAM:
    case HR_OOM_LIMIT:
    case HR_OOM_RETRIES:
    case HR_OOM_CAUSE_COUNT:
        break;
    }
    return "no setting was proved to make it fit";
}

// Five lines: what the sentence leaves of them is for the first fixes, and at least one.
static void print_first_lines(const hr_report_oom *oom)
{
    enum { SENTENCE_COLUMNS = 60 }; // that a line of it has at least
    const char *head = hr_oom_cause_refuses(oom->cause) ? "out of memory: "
                       : oom->cause == HR_OOM_RETRIES   ? "near full: "
                                                        : "";
    size_t used = strlen(oom->sentence) / SENTENCE_COLUMNS + 1;
    fputs(head, stdout);
    say_paragraph(oom->sentence, (unsigned)strlen(head));
    if (oom->fix_count == 0) {
        fputs("  ", stdout);
        say_paragraph(advice_of(oom->cause), 2);
    }
    for (uint32_t k = 0; k < oom->fix_count && (k == 0 || used < LINES); k++) {
        char text[FIX_TEXT_MAX];
        fix_words(&oom->fixes[k], oom->of_host, text);
        used += strlen(text) / (COLUMNS - FIX_INDENT) + 1;
        if (k == 0 || used <= LINES) {
            print_fix(k + 1, text);
        }
    }
}

// ---- in full --------------------------------------------------------------------------------------------------

static void print_evidence(const hr_report *r)
{
    const hr_report_oom *oom = &r->oom;
    puts("\nwhat shows it");
    for (size_t k = 0; oom->of_host && k < r->host.stage_count; k++) {
        char bytes[HR_BYTES_TEXT_MAX];
        printf("  %10s  %s\n", hr_bytes_human(r->host.stages[k].peak_bytes, bytes), r->host.stages[k].name);
    }
    for (uint32_t k = 0; k < oom->evidence_count; k++) {
        fputs("  ", stdout);
        say_paragraph(oom->evidence[k].line, 2);
    }
    for (uint32_t k = 0; k < oom->hole_count && k < HOLES_SHOWN; k++) {
        char bytes[HR_BYTES_TEXT_MAX];
        printf("%s%s", k == 0 ? "  largest holes: " : ", ", hr_bytes_human(oom->hole_bytes[k], bytes));
    }
    if (oom->hole_count > 0) {
        printf(" of %" PRIu32 "\n", oom->hole_count);
    }
}

static void print_tensors(const hr_report *r)
{
    if (r->memory.at_peak.tensor_count == 0) {
        return;
    }
    puts("\nlargest at the peak of what was served");
    for (size_t k = 0; k < r->memory.at_peak.tensor_count && k < TENSORS_SHOWN; k++) {
        const hr_report_tensor *t = &r->memory.at_peak.tensors[k];
        char bytes[HR_BYTES_TEXT_MAX];
        printf("  %10s  ", hr_bytes_human(t->bytes, bytes));
        say_foreign(stdout, t->name, "");
        putchar('\n');
    }
}

// What their times, and how much more or less they are, were made from.
static void print_basis(const hr_report_oom *oom)
{
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        if (oom->fixes[k].basis != HR_TIME_UNKNOWN) {
            printf("  step times %s\n", hr_time_basis_sentence(oom->fixes[k].basis));
            return;
        }
    }
}

static void print_all_fixes(const hr_report_oom *oom)
{
    if (oom->fix_count == 0) {
        return;
    }
    puts("\nwhat helps, each played with it, the one that costs least first");
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        char text[FIX_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
        fix_words(&oom->fixes[k], oom->of_host, text);
        print_fix(k + 1, text);
        if (isfinite(oom->fixes[k].seconds)) {
            printf("     a step takes %s\n", report_seconds(oom->fixes[k].seconds, seconds));
        }
    }
    print_basis(oom);
    puts("  the same command with --apply 1 plays it with the first of them");
}

static void print_explanation(const hr_report *r)
{
    print_first_lines(&r->oom);
    print_evidence(r);
    print_tensors(r);
    print_all_fixes(&r->oom);
}

// ---- --apply N ------------------------------------------------------------------------------------------------

static hr_status choose_fix(const cli_args *args, const hr_report_oom *oom, const hr_report_fix **fix,
                            hr_err *err)
{
    uint64_t number = 0;
    *fix = NULL;
    if (!cli_given(args, APP_APPLY)) {
        return HR_OK;
    }
    HR_TRY(cli_count(args, APP_APPLY, 1, &number, err));
    if (number > oom->fix_count) {
        const hr_status status = HR_FAIL(err, USAGE, "--apply needs one of %" PRIu32 " fixes, had %" PRIu64,
                                         oom->fix_count, number);
        if (oom->fix_count > 0) {
            hr_err_try(err, "--apply %" PRIu32, oom->fix_count);
        } else {
            hr_err_try(err, "headroom explain %.200s", args->words[0]);
        }
        return status;
    }
    *fix = &oom->fixes[number - 1];
    return HR_OK;
}

static void say_applied(const cli_args *args, const hr_report_fix *fix)
{
    if (!cli_given(args, APP_JSON)) {
        fputs("with ", stdout);
        say_options(fix->knobs);
        puts(":");
    }
}

// ---- a preset, a trace ----------------------------------------------------------------------------------------

typedef struct subject {
    const cli_args *args;
    const hr_preset *preset; // NULL: it is a trace
    hr_replay *replay;
} subject;

static hr_status report_preset(const subject *s, const hr_knobs *knobs, hr_report *out, hr_err *err)
{
    const hr_engine_options options = {.plan_only = true};
    hr_engine *engine = NULL;
    uint64_t steps = EXPLAIN_STEPS;
    HR_TRY(cli_count(s->args, APP_STEPS, EXPLAIN_STEPS, &steps, err));
    HR_TRY(hr_engine_create(s->preset, knobs, &options, &engine, err));
    hr_status status = plan_play(engine, steps, err);
    status = status == HR_OK ? hr_engine_explain(engine, out, err) : status;
    hr_engine_destroy(engine);
    return status;
}

static hr_status report_of(const subject *s, const hr_knobs *knobs, hr_report *out, hr_err *err)
{
    return s->preset != NULL ? report_preset(s, knobs, out, err)
                             : hr_replay_explain(s->replay, knobs, s->args->words[0], out, err);
}

// With the fix, under the limit that it was proved under.
static hr_status report_with(const subject *s, const hr_knobs *knobs, const hr_report_fix *fix,
                             hr_report *out, hr_err *err)
{
    hr_knobs turned = *knobs;
    if (s->preset == NULL) {
        HR_TRY(hr_replay_knobs_at_refusal(s->replay, knobs, &turned, err));
    }
    HR_TRY(hr_knobs_set_pairs(&turned, fix->knobs, err));
    return s->preset != NULL ? report_preset(s, &turned, out, err)
                             : hr_replay_report(s->replay, &turned, s->args->words[0], out, err);
}

// Without a limit nothing can run out.
static void print_fitting(const subject *s, const hr_report *r)
{
    char peak[HR_BYTES_TEXT_MAX];
    if (r->memory.limit_bytes != HR_NONE) {
        report_print_verdict(r);
        return;
    }
    printf("nothing was refused, and there is no limit: at its peak %s are in use\n",
           hr_bytes_human(r->memory.peak_in_use_bytes, peak));
    printf("  headroom explain %s -s device.vram=SIZE says what happens under one\n", s->args->words[0]);
}

static void print_report(const subject *s, const hr_report *r)
{
    if (cli_given(s->args, APP_JSON)) {
        report_print_json(r, stdout);
    } else if (r->oom.cause == HR_OOM_NONE) {
        print_fitting(s, r);
    } else {
        print_explanation(r);
    }
}

// *fits: it does, or did with what was applied.
static hr_status explain(const subject *s, const hr_knobs *knobs, bool *fits, hr_err *err)
{
    hr_report report;
    const hr_report_fix *fix = NULL;
    HR_TRY(report_of(s, knobs, &report, err));
    hr_status status = choose_fix(s->args, &report.oom, &fix, err);
    if (status == HR_OK && fix != NULL) {
        hr_report with;
        say_applied(s->args, fix);
        status = report_with(s, knobs, fix, &with, err);
        if (status == HR_OK) {
            print_report(s, &with);
            *fits = with.oom.cause == HR_OOM_NONE;
            hr_report_deinit(&with);
        }
    } else if (status == HR_OK) {
        print_report(s, &report);
        *fits = !hr_oom_cause_refuses(report.oom.cause);
    }
    hr_report_deinit(&report);
    return status;
}

// A preset has its allocator among its knobs, a trace its steps.
static hr_status check_options(const cli_args *args, bool is_trace, hr_err *err)
{
    hr_status status = HR_OK;
    if (is_trace && cli_given(args, APP_STEPS)) {
        status = HR_FAIL(err, USAGE, "--steps is about a preset, and %.200s is a trace", args->words[0]);
        hr_err_try(err, "headroom explain %.200s", args->words[0]);
    } else if (!is_trace && cli_given(args, APP_ALLOCATOR)) {
        status = HR_FAIL(err, USAGE, "--allocator is about a trace, and %.200s is a preset", args->words[0]);
        hr_err_try(err, "headroom explain %.200s -s allocator.kind=%.64s", args->words[0],
                   args->value[APP_ALLOCATOR]);
    } else if (is_trace && cli_given(args, APP_ALLOCATOR) &&
               strchr(args->value[APP_ALLOCATOR], ',') != NULL) {
        status = HR_FAIL(err, USAGE, "explain needs one allocator, had %.200s", args->value[APP_ALLOCATOR]);
        hr_err_try(err, "headroom replay %.200s --allocator %.200s", args->words[0],
                   args->value[APP_ALLOCATOR]);
    }
    return status;
}

static hr_status explain_preset(const cli_args *args, bool *fits, hr_err *err)
{
    cli_subject opened;
    const hr_status status = cli_open(args, args->words[0], &opened, err);
    hr_status done = status;
    if (status == HR_OK) {
        const subject s = {.args = args, .preset = opened.preset};
        done = explain(&s, &opened.knobs, fits, err);
    }
    cli_close(&opened);
    return done;
}

static hr_status explain_trace(const cli_args *args, bool *fits, hr_err *err)
{
    static replay_table t;
    subject s = {.args = args};
    interrupt_watch();
    hr_status status = plan_trace_open(args, args->words[0], &s.replay, &t, err);
    status = status == HR_OK ? explain(&s, &t.columns[0].knobs, fits, err) : status;
    replay_table_deinit(&t);
    hr_replay_close(s.replay);
    return status;
}

int cli_explain(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    bool fits = false;
    const cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    if (args.words[0] == NULL) {
        args.words[0] = "demo";
    }
    const bool is_trace =
        hr_file_kind_of(args.words[0]) == HR_FILE_TRACE || hr_scenario_find(args.words[0], NULL) != NULL;
    hr_status status = check_options(&args, is_trace, &err);
    if (status == HR_OK) {
        status = is_trace ? explain_trace(&args, &fits, &err) : explain_preset(&args, &fits, &err);
    }
    if (status != HR_OK) {
        return status == HR_INTERRUPTED ? interrupt_exit_code() : say_error(&err, cli_given(&args, APP_JSON));
    }
    return fits ? 0 : hr_status_exit_code(HR_OOM);
}
