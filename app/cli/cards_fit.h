// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_CARDS_FIT_H
#define APP_CLI_CARDS_FIT_H

#include <stddef.h>

#include "headroom/card.h"
#include "headroom/engine.h"

#include "app/cli/options.h"

// Plans the preset of --fit on each of the cards and prints what it would take there. The exit code: 1 when none holds it.
int cards_fit(const cli_args *args, const hr_card *cards, size_t count);

// The card with the least memory that holds a step under these knobs, and its plan; false: none does. Those with less than
// least_bytes are not asked.
bool cards_smallest(const hr_planner *planner, const hr_knobs *knobs, uint64_t least_bytes, hr_card *card,
                    hr_whatif *plan);

// Ready for a device.card: limits of one's own are not the card's, and the machine's own processor is none.
HR_MUST_CHECK hr_status cards_knobs(hr_knobs *knobs, hr_err *err);

#endif
