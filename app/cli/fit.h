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

typedef struct fit_answer {
    const hr_planner *planner;
    hr_knobs knobs; // asked about
    hr_fit_wish wish;
    hr_fit_found found;
} fit_answer;

// "key=value key=value" from column `indent` on, in lines of 80 columns.
void fit_print_knobs(const hr_fit_way *w, unsigned indent);
// The same pairs as an array: of a fix they are written so, too.
void fit_emit_knobs(emitter *e, const hr_fit_way *w);

// --max KNOB: how large the knob can be with each way of the frontier. The knob itself is not turned by the search: `keep` says so
// before it. USAGE: it is no whole number that acts. *fits: some value does.
HR_MUST_CHECK hr_status fit_keep_for_largest(const cli_args *args, fit_answer *a, hr_err *err);
HR_MUST_CHECK hr_status fit_print_largest(const cli_args *args, const fit_answer *a, bool *fits, hr_err *err);

// --cards: for every card the fastest way of the frontier that it holds. *fits: one holds one.
HR_MUST_CHECK hr_status fit_print_cards(const cli_args *args, const fit_answer *a, bool *fits, hr_err *err);

#endif
