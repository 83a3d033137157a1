// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/fit.h"
#include "app/cli/interrupt.h"
#include "app/cli/say.h"

// ---- what is said meanwhile -----------------------------------------------------------------------------------

enum { LINE_COLUMNS = 79 };

static double plans_per_second(const fit_answer *a, uint64_t plans)
{
    const double seconds = 1e-9 * (double)(progress_now_ns() - a->begin_ns);
    return seconds > 0 ? (double)plans / seconds : 0;
}

static void say_best(const fit_answer *a, char *text, size_t size)
{
    char peak[HR_BYTES_TEXT_MAX], seconds[REPORT_SECONDS_TEXT_MAX];
    const hr_fit_way *best = hr_fit_fastest(&a->found, true);
    if (a->so_far[0] != '\0') {
        (void)snprintf(text, size, "%s", a->so_far);
        return;
    }
    if (best == NULL) {
        (void)snprintf(text, size, "%s", a->found.count > 0 ? "; nothing fits yet" : "");
        return;
    }
    (void)snprintf(text, size, "; best so far: %s, %s a step",
                   hr_bytes_human(best->point.plan.peak_in_use_bytes, peak),
                   fit_seconds_text(best->point.plan.step_seconds, seconds));
}

static void say_progress(fit_answer *a)
{
    char line[200], best[80];
    const uint64_t plans = a->earlier + a->found.plans;
    const double rate = plans_per_second(a, plans);
    say_best(a, best, sizeof best);
    (void)snprintf(line, sizeof line, "%s%" PRIu64 " plans, %.*f a second%s", a->doing, plans,
                   rate < 10 ? 1 : 0, rate, best);
    line[LINE_COLUMNS] = '\0';
    progress_line(&a->line, line);
}

static bool goes_on(void *context)
{
    say_progress(context);
    return !interrupt_seen();
}

bool fit_goes_on(fit_answer *a, uint32_t plans)
{
    a->earlier += plans;
    return goes_on(a);
}

hr_status fit_find(fit_answer *a, hr_err *err)
{
    a->earlier += a->found.plans;
    const hr_status status = hr_planner_fit(a->planner, &a->knobs, &a->wish, goes_on, a, &a->found, err);
    progress_clear(&a->line);
    return status;
}

void fit_print_basis(hr_time_basis basis, const char *more)
{
    printf("\nstep times %s\n", hr_time_basis_sentence(basis)); // whole: there may be a command in it
    say_paragraph(more, 0);
}

void fit_print_cut(void)
{
    if (interrupt_seen()) {
        puts("\nthe search was cut short: this is what it had found");
    }
}

// ---- what was found -------------------------------------------------------------------------------------------

void fit_print_nearest(const cli_args *args, uint64_t missing_bytes, bool of_host, const hr_fit_way *way,
                       const char *hint)
{
    char bytes[HR_BYTES_TEXT_MAX];
    printf("the nearest lacks %s of %s:\n  ", hr_bytes_human(missing_bytes, bytes),
           of_host ? "pipeline.ram_limit" : "the limit");
    fit_print_knobs(way, 2);
    if (hint != NULL) {
        fputs("try: headroom fit ", stdout);
        say_word(stdout, args->words[0]);
        puts(hint);
    }
}

void fit_emit_seconds(emitter *e, const hr_whatif *plan)
{
    emit_real(e, "step_seconds", plan != NULL ? plan->step_seconds : (double)NAN, EMIT_EXACT);
    emit_text(e, "step_seconds_basis", plan != NULL ? hr_time_basis_name(plan->step_basis) : NULL);
}

const char *fit_seconds_text(double seconds, char text[REPORT_SECONDS_TEXT_MAX])
{
    return isfinite(seconds) ? report_seconds(seconds, text) : "";
}

void fit_print_knobs(const hr_fit_way *w, unsigned indent)
{
    say_paragraph(w->point.knobs[0] == '\0' ? "as it is" : w->point.knobs, indent);
}

// What of the asked-about knobs is not as it was opened, as options.
static void print_turned(const fit_answer *a)
{
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX];
        (void)hr_knob_format(&a->opened, (hr_knob_id)id, before);
        if (strcmp(before, hr_knob_format(&a->knobs, (hr_knob_id)id, after)) != 0) {
            printf(" -s %s=", hr_knob_rows(NULL)[id].key);
            say_word(stdout, after);
        }
    }
}

void fit_print_command(const cli_args *args, const fit_answer *a, const char *pairs)
{
    const bool plans = hr_knob_is(&a->knobs, HR_KNOB_DEVICE_KIND, "plan") || cli_given(args, APP_OPAQUE);
    printf("  headroom %s ", plans ? "plan" : "run");
    say_word(stdout, args->words[0]);
    printf("%s%s", cli_given(args, APP_TRUST) ? " --trust" : "",
           cli_given(args, APP_OPAQUE) ? " --opaque" : "");
    for (unsigned k = 0; k < args->set_count; k++) {
        fputs(" -s ", stdout);
        say_word(stdout, args->sets[k]);
    }
    print_turned(a);
    fputs(pairs[0] == '\0' ? "" : " ", stdout);
    say_options(pairs);
    putchar('\n');
}
