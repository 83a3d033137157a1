// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/fit.h"
#include "app/cli/interrupt.h"
#include "app/cli/say.h"

// A search of a large model takes seconds: a terminal sees that it goes on.
static bool goes_on(void *context)
{
    unsigned *points = context;
    enum { OFTEN = 20 };
    if (++*points % OFTEN == 0 && isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\rsearching: %u combinations", *points);
    }
    return !interrupt_seen();
}

static void end_line(unsigned points)
{
    if (points > 0 && isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r%40s\r", "");
    }
}

hr_status fit_find(fit_answer *a, hr_err *err)
{
    unsigned points = 0;
    const hr_status status =
        hr_planner_fit(a->planner, &a->knobs, &a->wish, goes_on, &points, &a->found, err);
    end_line(points);
    HR_TRY(status);
    return interrupt_seen() ? HR_FAIL(err, INTERRUPTED, "interrupted after %" PRIu32 " plans", a->found.plans)
                            : HR_OK;
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
