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
