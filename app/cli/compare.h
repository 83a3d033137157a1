// SPDX-License-Identifier: Apache-2.0
// What `headroom compare` holds against each other: a preset as it is planned now, a report that was written by --json,
// or a trace as an allocator replays it.
#ifndef APP_CLI_COMPARE_H
#define APP_CLI_COMPARE_H

#include "app/cli/options.h"
#include "app/tui/feed/measures.h"

typedef enum compare_kind { COMPARE_PLAN, COMPARE_REPORT, COMPARE_TRACE } compare_kind;

typedef struct compare_side {
    const char *word; // as it was given
    compare_kind kind;
    char name[128]; // "demo on cpu", "bfc"
    bool has_knobs; // a plan
    hr_knobs knobs;
    measures measures;
    char oom[32]; // the cause; "": it fits
} compare_side;

// "PRESET", "PRESET,key=value,…", "FILE.json", "TRACE", "TRACE,allocator.kind=async". A word without '=' behind a comma
// belongs to the value before it. --set of `args` turns knobs of both sides. Out of memory is a result.
HR_MUST_CHECK hr_status compare_open(const cli_args *args, const char *word, compare_side *out, hr_err *err);

// "headroom.report/1" from an untrusted file: at most 64 MiB, every field of the measures there, a number
// that is not negative or null. READ errors name the file and the field.
HR_MUST_CHECK hr_status compare_read_report(const char *path, compare_side *out, hr_err *err);

#endif
