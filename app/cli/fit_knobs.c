// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "app/cli/fit.h"
#include "app/cli/say.h"

void fit_print_knobs(const hr_fit_way *w, unsigned indent)
{
    say_paragraph(w->point.knobs[0] == '\0' ? "as it is" : w->point.knobs, indent);
}

void fit_emit_knobs(emitter *e, const hr_fit_way *w)
{
    char pair[sizeof w->point.knobs];
    emit_array(e, "knobs");
    for (const char *at = w->point.knobs; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        (void)snprintf(pair, sizeof pair, "%.*s", (int)length, at);
        emit_text(e, NULL, pair);
        at += length + (at[length] == ' ');
    }
    emit_end_array(e);
}
