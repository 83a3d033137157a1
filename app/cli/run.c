// SPDX-License-Identifier: Apache-2.0
// run: trains on this thread, says how it goes, and reports at the end, however it ends. What is said while it runs goes
// to stderr; with --plain everything is said in sentences on stdout, unless --json wants that for itself.
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "headroom/engine.h"
#include "headroom/session.h"
#include "headroom/trace.h"

#include "app/cli/cli.h"
#include "app/cli/interrupt.h"
#include "app/cli/options.h"
#include "app/cli/progress.h"
#include "app/cli/report.h"
#include "app/cli/say.h"
#include "app/cli/sentences.h"
#include "app/cli/style.h"

enum { RUN_STEPS = 400 }; // without --steps and train.steps

typedef struct run {
    const cli_args *args;
    const cli_subject *subject;
    hr_engine *engine;
    hr_watch_server *watchers; // NULL: it cannot be watched
    hr_trace *trace;           // NULL without --trace
    bool trace_lost;           // said
    progress progress;
    bool reported;
    hr_err
        kept; // of a run that failed: what was saved of it and what was not; HR_OK: there was nothing to save
} run;

// ---- training -------------------------------------------------------------------------------------------------

static hr_status send(hr_engine *engine, hr_command_kind kind, uint64_t count, hr_err *err)
{
    hr_command command = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count};
    return hr_engine_command(engine, &command, err);
}

// Without a number of steps of its own, a run does RUN_STEPS of them; a resumed one that many more.
static hr_status start(run *r, bool *idle, hr_err *err)
{
    hr_engine *engine = r->engine;
    uint64_t wanted = (uint64_t)hr_knob_int(hr_engine_knobs(engine), HR_KNOB_TRAIN_STEPS);
    HR_TRY(send(engine, HR_COMMAND_RUN, wanted > 0 ? 0 : RUN_STEPS, err));
    do { // the build, and before it a teacher that answers first
        hr_engine_advance(engine, idle);
    } while (r->progress.answering && !*idle && !interrupt_seen());
    if (wanted == 0 && hr_engine_steps(engine) > 0) {
        HR_TRY(send(engine, HR_COMMAND_RUN, RUN_STEPS, err));
    }
    r->progress.target_steps = wanted > 0 ? wanted : hr_engine_steps(engine) + RUN_STEPS;
    return HR_OK;
}

// What is kept of the steps that were done, and how to go on: "after step 812, saved to w.safetensors". `failed`: why its
// last save was not written; NULL or HR_OK: it was, where there was one to write.
static hr_status say_kept(hr_engine *engine, const progress *p, const hr_err *failed, hr_err *err)
{
    const char *save = hr_knob_text(hr_engine_knobs(engine), HR_KNOB_TRAIN_SAVE);
    const unsigned long long steps = hr_engine_steps(engine);
    if (save[0] == '\0') {
        (void)HR_FAIL(err, INTERRUPTED, "after step %llu, nothing saved: train.save is not set", steps);
        hr_err_try(err, "-s train.save=FILE.safetensors");
    } else if (p->has_saved && p->saved_step == steps) {
        (void)HR_FAIL(err, INTERRUPTED, "after step %llu, saved to %s", steps, save);
        hr_err_try(err, "-s train.resume=%.400s", save);
    } else if (p->has_saved) {
        (void)HR_FAIL(err, INTERRUPTED, "after step %llu, saved to %s up to step %llu: %s", steps, save,
                      (unsigned long long)p->saved_step,
                      failed != NULL && failed->status != HR_OK
                          ? failed->sentence
                          : "the step that broke off had begun to change the weights");
        hr_err_try(err, "-s train.resume=%.400s", save);
    } else if (failed != NULL && failed->status != HR_OK) {
        (void)HR_FAIL(err, INTERRUPTED, "after step %llu, nothing saved: %s", steps, failed->sentence);
        hr_err_try(err, "-s train.save=ANOTHER.safetensors");
    } else if (hr_engine_get_state(engine) != HR_ENGINE_IDLE) {
        (void)HR_FAIL(
            err, INTERRUPTED,
            "after step %llu, nothing saved: the step that broke off had begun to change the weights", steps);
        hr_err_try(err, "-s train.save_every=100");
    } else {
        (void)HR_FAIL(err, INTERRUPTED, "after step %llu, nothing saved: %s", steps,
                      p->has_loss ? "there are no weights yet" : "the plan device has no weights");
        hr_err_try(err, p->has_loss ? "let it train a step first" : "-s device.kind=reference");
    }
    return HR_INTERRUPTED;
}

// After a signal: saves when train.save is set, and says how to go on.
static hr_status stop(hr_engine *engine, const progress *p, hr_err *err)
{
    HR_TRY(send(engine, HR_COMMAND_STOP, 0, err));
    return say_kept(engine, p, NULL, err);
}

// After a failure the steps before it are kept as after a signal. Those of a save that was resumed are kept there.
static void keep(run *r)
{
    hr_err failed = {.status = HR_OK};
    if (r->progress.steps > 0 && r->progress.has_loss) {
        (void)!send(r->engine, HR_COMMAND_SAVE, 0, &failed);
        (void)say_kept(r->engine, &r->progress, &failed, &r->kept);
    }
}

typedef void (*sentences_of_report)(const progress *p, const hr_report *r, const hr_knobs *knobs);

static hr_status say(const run *r, sentences_of_report sentences, hr_err *err)
{
    hr_report report;
    if (r->progress.out == NULL) {
        return HR_OK;
    }
    HR_TRY(hr_engine_report(r->engine, &report, err));
    sentences(&r->progress, &report, hr_engine_knobs(r->engine));
    hr_report_deinit(&report);
    return HR_OK;
}

// Failing watchers do not fail the run.
static void tell_watchers(const run *r)
{
    hr_report report;
    if (r->watchers != NULL && hr_watch_server_wants_report(r->watchers) &&
        hr_engine_report(r->engine, &report, NULL) == HR_OK) {
        hr_watch_server_report(r->watchers, &report);
        hr_report_deinit(&report);
    }
}

// While it trains, not after hours of it: the training is worth more than its trace, and goes on.
static void say_lost_trace(run *r)
{
    hr_err err;
    if (r->trace == NULL || r->trace_lost || hr_trace_failure(r->trace, &err) == HR_OK) {
        return;
    }
    r->trace_lost = true;
    progress_end(&r->progress);
    fprintf(stderr, "headroom: there will be no trace: ");
    say_foreign(stderr, err.sentence, "");
    fprintf(stderr, "; the training goes on.\n");
}

// Trains until all steps are done, a signal comes, or something fails. INTERRUPTED is not an error of the run.
static hr_status train(run *r, hr_err *err)
{
    bool idle = false;
    bool first_said = false;
    HR_TRY(start(r, &idle, err));
    HR_TRY(r->progress.answering ? HR_OK : say(r, sentences_subject, err));
    while (!idle && !interrupt_seen()) {
        hr_engine_advance(r->engine, &idle);
        tell_watchers(r);
        say_lost_trace(r);
        if (r->progress.steps > 0 && !first_said) {
            HR_TRY(say(r, sentences_first_step, err));
            first_said = true;
        }
    }
    progress_end(&r->progress);
    hr_engine_state state = hr_engine_get_state(r->engine);
    if (state == HR_ENGINE_OOM || state == HR_ENGINE_FAILED) {
        *err = *hr_engine_error(r->engine);
        keep(r);
        return err->status;
    }
    return idle ? HR_OK : stop(r->engine, &r->progress, err);
}

// ---- reporting ------------------------------------------------------------------------------------------------

// On stderr too: the summary alone must not look like success.
static void say_lost_loss(const hr_report *r, const hr_knobs *knobs)
{
    char slower[SAY_TRY_TEXT_MAX];
    if (r->step.measured && !isfinite(r->train.loss_last)) {
        fprintf(stderr, "headroom: the loss is no longer a number.\n  try: %s\n", say_slower(knobs, slower));
    }
}

static void print_any(const run *r, const hr_report *report, bool no_steps)
{
    const progress *p = &r->progress;
    const report_style style = {.ran = true,
                                .no_steps = no_steps,
                                .interrupted = interrupt_seen(),
                                .knobs = hr_engine_knobs(r->engine)};
    if (p->out != NULL) {
        sentences_end(p, report, &style);
        if (!no_steps && !style.interrupted && report->oom.cause == HR_OOM_NONE) {
            sentences_whatif(p, r->subject->preset, style.knobs);
        }
    }
    if (cli_given(r->args, APP_JSON)) {
        report_print_json(report, stdout);
    } else if (p->out == NULL) {
        report_print_text(report, &style);
    }
}

// What was built but never ran has measured nothing: its counters are left out, as if it had not been built.
static hr_status print_report(const run *r, hr_err *err)
{
    hr_report report;
    const char *framework = NULL;
    HR_TRY(hr_engine_report(r->engine, &report, err));
    bool no_steps = r->progress.steps == 0 && report.oom.cause == HR_OOM_NONE;
    if (no_steps) {
        report.step.instructions = 0;
    } else {
        say_lost_loss(&report, hr_engine_knobs(r->engine));
    }
    print_any(r, &report, no_steps);
    hr_report_deinit(&report);
    if (cli_given(r->args, APP_TIMES)) {
        HR_TRY(hr_engine_write_times(r->engine, err));
    }
    HR_TRY(style_of(r->args, &framework, err));
    return style_write(r->engine, framework, err);
}

// The report comes out whenever there is something to report: done, interrupted or out of memory.
static hr_status train_and_report(run *r, hr_err *err)
{
    if (cli_given(r->args, APP_TRACE)) {
        HR_TRY(hr_trace_open(r->engine, r->args->value[APP_TRACE], &r->trace, err));
    }
    hr_status status = train(r, err);
    bool has_report = status == HR_OK || status == HR_OOM || status == HR_INTERRUPTED;
    hr_status closed = hr_trace_close(r->trace, status == HR_OK ? err : NULL);
    status = status == HR_OK ? closed : status;
    hr_status printed = has_report ? print_report(r, status == HR_OK ? err : NULL) : HR_OK;
    r->reported = has_report && printed == HR_OK;
    return status == HR_OK ? printed : status;
}

// ---- the command ----------------------------------------------------------------------------------------------

static void hear(void *context, const hr_event *event)
{
    run *r = context;
    progress_event(&r->progress, event);
    if (r->watchers != NULL) {
        hr_watch_server_event(r->watchers, event);
    }
}

// A step of thousands of rounds says how far it is, and takes no longer to end.
static bool goes_on(void *context, uint32_t done, uint32_t rounds)
{
    run *r = context;
    progress_round(&r->progress, done, rounds);
    return !interrupt_seen();
}

static hr_status run_engine(run *r, hr_err *err)
{
    const cli_subject *subject = r->subject;
    const hr_engine_options options = {.sink = hear,
                                       .sink_context = r,
                                       .goes_on = goes_on,
                                       .goes_on_context = r,
                                       .times_file = r->args->value[APP_TIMES],
                                       .keeps_failure_heap = cli_given(r->args, APP_STYLE)};
    HR_TRY(hr_engine_create(subject->preset, &subject->knobs, &options, &r->engine, err));
    const hr_status status = train_and_report(r, err);
    hr_engine_destroy(r->engine);
    return status;
}

// It trains all the same where it cannot be watched; a person at a terminal is told so.
static void start_watchers(run *r)
{
    hr_err err = {0};
    if (hr_watch_server_start(hr_preset_name(r->subject->preset), &r->subject->knobs, &r->watchers, &err) !=
        HR_OK) {
        r->watchers = NULL;
    }
    if (r->watchers == NULL && isatty(STDERR_FILENO)) {
        fprintf(stderr, "headroom: this run cannot be watched: %s\n",
                err.sentence[0] != '\0' ? err.sentence : "XDG_RUNTIME_DIR names no folder for its socket");
    }
}

static hr_status run_subject(run *r, cli_subject *subject, hr_err *err)
{
    const cli_args *args = r->args;
    const char *framework = NULL;
    HR_TRY(style_beside_report(args, &framework, err));
    if (cli_given(args, APP_STEPS)) {
        uint64_t steps = 0;
        HR_TRY(cli_count(args, APP_STEPS, 0, &steps, err));
        HR_TRY(hr_knobs_set(&subject->knobs, HR_KNOB_TRAIN_STEPS, args->value[APP_STEPS], err));
    }
    r->subject = subject;
    progress_begin(&r->progress,
                   !cli_given(args, APP_PLAIN) ? NULL
                   : cli_given(args, APP_JSON) ? stderr
                                               : stdout,
                   0);
    r->progress.has_loss = !hr_knob_is(&subject->knobs, HR_KNOB_DEVICE_KIND, "plan");
    interrupt_watch(); // from the socket on, SIGINT ends the run gently
    start_watchers(r);
    const hr_status status = run_engine(r, err);
    hr_watch_server_stop(r->watchers);
    return status;
}

// An interruption is no failure, and is no error in JSON. The last line says what was kept.
static int say_end(const run *r, hr_status status, const hr_err *err, bool is_json)
{
    if (status == HR_OK) {
        return 0;
    }
    int exit_code = say_error(err, is_json && status != HR_INTERRUPTED);
    if (r->kept.status != HR_OK) {
        fprintf(stderr, "headroom: ended %s.\n  try: %s\n", r->kept.sentence, r->kept.hint);
    }
    return status == HR_INTERRUPTED ? interrupt_exit_code() : exit_code;
}

int cli_run(int argc, char **argv)
{
    cli_args args;
    cli_subject subject;
    hr_err err;
    run r = {.args = &args};
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next != CLI_GO_ON) {
        return next == CLI_DONE ? 0 : say_error(&err, cli_given(&args, APP_JSON));
    }
    hr_status status = cli_open(&args, args.words[0], &subject, &err);
    if (status == HR_OK) {
        status = run_subject(&r, &subject, &err);
    }
    cli_close(&subject);
    return say_end(&r, status, &err, cli_given(&args, APP_JSON) && !r.reported);
}
