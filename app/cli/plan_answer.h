// SPDX-License-Identifier: Apache-2.0
// What people ask a plan for, in its first lines: whether it fits, how large a batch could be, and what a smaller card would need.
#ifndef APP_CLI_PLAN_ANSWER_H
#define APP_CLI_PLAN_ANSWER_H

#include "headroom/preset.h"
#include "headroom/report.h"

#include "app/cli/options.h"

// The report is that of a plan under `knobs`, as `args` ask for it. What cannot be planned is left out.
void plan_answer_print(const cli_args *args, const hr_preset *preset, const hr_knobs *knobs,
                       const hr_report *report);

#endif
