// SPDX-License-Identifier: Apache-2.0
// What the command fit found, and its other two questions: how large, and on which card.
#ifndef APP_CLI_FIT_H
#define APP_CLI_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/planning.h"

#include "app/cli/options.h"

// One combination of knobs, planned.
typedef struct fit_way {
    hr_fit_point point;
    bool learns; // changes what is learned
    // Nothing is better in peak or time and worse in neither: of all, and of those that learn the same.
    bool on_frontier, on_same_frontier;
} fit_way;

typedef struct fit_answer {
    const hr_planner *planner;
    hr_knobs knobs; // asked about
    hr_fit_wish wish;
    hr_whatif asked; // their plan
    fit_way ways[HR_FIT_POINTS_MAX];
    size_t count; // of ways, the largest peak first
    uint32_t plans;
    double seconds; // that the search took
} fit_answer;

// Asks the planner: from `knobs` and `wish` to all that is below.
HR_MUST_CHECK hr_status fit_find_ways(fit_answer *a, hr_err *err);
// Of what fits; NULL: nothing does. Without `may_learn` of what leaves alone what is learned.
const fit_way *fit_fastest(const fit_answer *a, bool may_learn);
// Its pairs from column `indent` on, in lines of 80 columns.
void fit_print_knobs(const fit_way *w, unsigned indent);

// The knobs on that card alone: limits of one's own are not the card's, and the machine's own processor is none.
HR_MUST_CHECK hr_status fit_turn_to_card(const char *card, hr_knobs *knobs, hr_err *err);

// --max KNOB: how large the knob can be with each way of the frontier. The knob itself is not turned by the search: `keep` says so
// before it. USAGE: it is no whole number that acts. *fits: some value does.
HR_MUST_CHECK hr_status fit_keep_for_largest(const cli_args *args, fit_answer *a, hr_err *err);
HR_MUST_CHECK hr_status fit_print_largest(const cli_args *args, const fit_answer *a, bool *fits, hr_err *err);

// --cards: for every card the fastest way of the frontier that it holds. *fits: one holds one.
HR_MUST_CHECK hr_status fit_print_cards(const cli_args *args, const fit_answer *a, bool *fits, hr_err *err);

#endif
