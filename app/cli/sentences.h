// SPDX-License-Identifier: Apache-2.0
// run --plain: what the workbench shows, in whole sentences, one a line and without escapes: for logs, and for those
// without the screen. How a number came about is said in a word behind it.
#ifndef APP_CLI_SENTENCES_H
#define APP_CLI_SENTENCES_H

#include <stdio.h>

#include "headroom/preset.h"

#include "app/cli/progress.h"
#include "app/cli/report.h"

// What is trained, on what, under which limit, and how far. Built or out of memory, before any step.
void sentences_subject(const progress *p, const hr_report *r, const hr_knobs *knobs);
// After the first step: what it took, what is left, and what holds most at the peak.
void sentences_first_step(const progress *p, const hr_report *r, const hr_knobs *knobs);
// How the run ended, and what it took.
void sentences_end(const progress *p, const hr_report *r, const report_style *style);
// What the next larger batch would do, from a plan. Nothing when there is none.
void sentences_whatif(const progress *p, const hr_preset *preset, const hr_knobs *knobs);

#endif
