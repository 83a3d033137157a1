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
#include "app/cli/progress.h"
#include "app/cli/report.h"

typedef struct fit_answer {
    const hr_planner *planner;
    hr_knobs opened,
        knobs; // as the preset and --set say, and asked about: on the card, under the limit of the options
    hr_fit_wish wish;
    hr_fit_found found;
    progress line;   // what is said while it is searched
    char doing[48];  // before it, where there is more than one search: "rtx3070-8g: "
    char so_far[72]; // behind it, where the question is not the fastest: "; largest batch.size so far: 8"
    uint64_t earlier, begin_ns; // plans of earlier searches; when the first of them began
} fit_answer;

// ---- fit_found.c ----------------------------------------------------------------------------------------------

// Asks the planner about `knobs`, and says meanwhile how far it is. After a signal `found` is what it had come to, the knobs
// themselves at least.
HR_MUST_CHECK hr_status fit_find(fit_answer *a, hr_err *err);
// One more plan of another question was made: says so. False: a signal was seen.
bool fit_goes_on(fit_answer *a, uint32_t plans);
// Behind an answer: what it is made from, and that it was cut short by a signal where it was.
void fit_print_basis(hr_time_basis basis, const char *more);
void fit_print_cut(void);
// Where nothing fits: what is missing least, of what, and by which way; behind it what to try ("…" of headroom fit PRESET …; NULL:
// nothing).
void fit_print_nearest(const cli_args *args, uint64_t missing_bytes, bool of_host, const hr_fit_way *way,
                       const char *hint);
// A plan's step_seconds and step_seconds_basis; null both, where `plan` is NULL.
void fit_emit_seconds(emitter *e, const hr_whatif *plan);
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
