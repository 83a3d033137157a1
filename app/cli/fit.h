// SPDX-License-Identifier: Apache-2.0
// What the command fit found, and its other two questions: how large, and on which card.
#ifndef APP_CLI_FIT_H
#define APP_CLI_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/fit.h"

#include "app/cli/emit.h"
#include "app/cli/options.h"
#include "app/cli/report.h"

typedef struct fit_answer {
    const hr_planner *planner;
    hr_knobs opened,
        knobs; // as the preset and --set say, and asked about: on the card, under the limit of the options
    hr_fit_wish wish;
    hr_fit_found found;
} fit_answer;

// ---- fit_found.c ----------------------------------------------------------------------------------------------

// Asks the planner about `knobs`. INTERRUPTED: by a signal.
HR_MUST_CHECK hr_status fit_find(fit_answer *a, hr_err *err);
// "key=value key=value" from column `indent` on, in lines of 80 columns.
void fit_print_knobs(const hr_fit_way *w, unsigned indent);
// The command that runs, or where there is no arithmetic plans, the asked-about knobs turned by the pairs: a line of its own, whole, so
// that it can be copied.
void fit_print_command(const cli_args *args, const fit_answer *a, const char *pairs);
// "12.4 ms"; "" where it is not known.
const char *fit_seconds_text(double seconds, char text[REPORT_SECONDS_TEXT_MAX]);

// ---- the other questions: asked, answered and printed. *fits: there is an answer -------------------------------

// --max KNOB. USAGE: it is no size of the batch or of this model.
HR_MUST_CHECK hr_status fit_largest(const cli_args *args, fit_answer *a, bool *fits, hr_err *err);
// --cards
HR_MUST_CHECK hr_status fit_cards(const cli_args *args, fit_answer *a, bool *fits, hr_err *err);

#endif
