// SPDX-License-Identifier: Apache-2.0
// What a sweep may turn, once it is permitted, that changes what is learned: which optimizers keep less, and what each
// turn changes, in words. hr_fit_change is declared in headroom/fit.h.
#ifndef INSIGHT_FIT_CHANGE_H
#define INSIGHT_FIT_CHANGE_H

#include "headroom/fit.h"
#include "headroom/report.h"

// The optimizer number `at` that keeps less state than the one of these knobs and is of its family; NULL: there is none.
const char *fit_lighter_optimizer(const hr_knobs *knobs, int at);

// Says of every fix what it costs, and puts them in order (hr_turn_goes_before). `seconds`: of a step of these knobs; NaN: not known.
void fit_rank_fixes(const hr_knobs *knobs, bool normalises_batches, double seconds, hr_report_oom *oom);

#endif
