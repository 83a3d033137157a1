// SPDX-License-Identifier: Apache-2.0
// A report as "headroom.report/1" (DESIGN "Commands, files, numbers") and as text for people.
#ifndef APP_CLI_REPORT_H
#define APP_CLI_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "headroom/knobs.h"
#include "headroom/report.h"
#include "headroom/report_fields.h"

#include "app/cli/emit.h"

void report_print_json(const hr_report *r, FILE *out);
// The fields of a record as members of the innermost object; `r` answers what applies, NULL where no row asks.
void report_emit_fields(emitter *e, const hr_field *fields, const void *record, const hr_report *r);

// How the bytes of a report came about; the letter behind each number.
typedef enum report_source {
    REPORT_MEASURED = 'm',
    REPORT_PLANNED = 'p',
    REPORT_SIMULATED = 's',
    REPORT_ESTIMATED = 'e'
} report_source;

typedef struct report_style {
    bool ran;         // a run, not a plan
    bool no_steps;    // of a run: none was done
    bool interrupted; // of a run: by a signal
    bool all_peak;    // every tensor at the peak instead of the largest
    const hr_knobs *knobs;
} report_style;

void report_print_text(const hr_report *r, const report_style *style);
// "fits: …", of what fits: the last lines of a run's text, the first of a plan's.
void report_print_verdict(const hr_report *r);
// "fits: … of … are left at the peak (…)".
void report_print_fits(uint64_t limit_bytes, uint64_t peak_bytes);

// Parts of it: implementations, and the largest workspaces.
void report_print_implementations(const hr_report *r);
// What a plan as PyTorch does not hold, if anything.
void report_print_left_out(const hr_report *r, const hr_knobs *knobs);
void report_print_workspaces(const hr_report *r, report_source source);

// Of bytes at the peak, and of a step's time.
report_source report_source_of_sum(const hr_report *r, const report_style *style);
report_source report_source_of_time(const hr_report *r);

enum { REPORT_SECONDS_TEXT_MAX = 24, REPORT_SHARE_TEXT_MAX = 32 };
// "0.213 s", "12.4 ms": as a step takes it. Returns text.
// "18.3 %"; what is not all is not rounded to it.
const char *report_share(double share, char text[REPORT_SHARE_TEXT_MAX]);
const char *report_seconds(double s, char text[REPORT_SECONDS_TEXT_MAX]);

#endif
