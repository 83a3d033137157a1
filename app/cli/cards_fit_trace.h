// SPDX-License-Identifier: Apache-2.0
#ifndef APP_CLI_CARDS_FIT_TRACE_H
#define APP_CLI_CARDS_FIT_TRACE_H

#include <stddef.h>

#include "headroom/card.h"

#include "app/cli/options.h"

// Replays the trace of --fit on each of the cards and prints what it would take there. The exit code: 1 when none holds it.
int cards_fit_trace(const cli_args *args, const hr_card *cards, size_t count);

#endif
