// SPDX-License-Identifier: Apache-2.0
// replay: one trace on many allocators, a column each.
#ifndef APP_CLI_REPLAY_H
#define APP_CLI_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/replay.h"

#include "app/cli/options.h"

enum { REPLAY_COLUMNS_MAX = 64, REPLAY_SWEEPS_MAX = 6, REPLAY_VALUES_MAX = 64 };

// --sweep KEY=V1,V2 in pieces.
typedef struct replay_sweep {
    hr_knob_id id;
    char text[CLI_SWEEP_TEXT_MAX]; // what the values point into
    const char *values[REPLAY_VALUES_MAX];
    unsigned count;
} replay_sweep;

typedef struct replay_column {
    hr_knobs knobs;
    const char *kind;                     // allocator.kind
    const char *value[REPLAY_SWEEPS_MAX]; // of each sweep; NULL where it does not concern this allocator
    hr_replay_result result;
} replay_column;

typedef struct replay_table {
    const char *name; // of the trace, as it was typed
    const hr_replay_about *about;
    const hr_heap *recorded; // what the file shows; NULL: nothing
    replay_sweep sweeps[REPLAY_SWEEPS_MAX];
    unsigned sweep_count;
    const char *kind_unnamed; // the allocator where none is named; NULL: all there are
    replay_column *columns;
    unsigned column_count;
    bool
        chosen; // the allocators were named; otherwise they are all there are, and those that cannot play are left out
} replay_table;

// One column for every allocator that is named (all of them when none is) and every combination of the sweeps' values
// that concern it. USAGE, KNOB, NOMEM.
HR_MUST_CHECK hr_status replay_make_columns(const cli_args *args, replay_table *t, hr_err *err);
void replay_table_deinit(replay_table *t);
// Plays the trace on every column; those that cannot play where nobody named them are left out. INTERRUPTED and what
// hr_replay_run says.
HR_MUST_CHECK hr_status replay_run_columns(hr_replay *replay, const cli_args *args, replay_table *t,
                                           hr_err *err);
bool replay_is_interrupted(void *context); // for hr_replay_options.stop
// A comparison is no failure because one allocator runs out; when all do, nothing of it fits.
int replay_exit_code(const replay_table *t);
// USAGE where options exclude each other. *style is the framework's of --style, or NULL.
HR_MUST_CHECK hr_status replay_check_options(const cli_args *args, const replay_table *t, const char **style,
                                             hr_err *err);
// The part of a sweep's key that is not its group.
const char *replay_knob_label(const replay_sweep *s);

// How a page is printed.
typedef struct replay_page {
    unsigned columns;  // wide
    bool glyphs;       // block characters in heap maps, else ASCII
    const char *style; // heaps in a framework's words too; NULL: in ours alone
} replay_page;

// NOMEM; USAGE when there is no such style.
HR_MUST_CHECK hr_status replay_print_json(const replay_table *t, hr_err *err);
HR_MUST_CHECK hr_status replay_print_text(const replay_table *t, const replay_page *page, hr_err *err);
// Where column `c`, which has failures, ran out of memory.
HR_MUST_CHECK hr_status replay_print_failure(const replay_table *t, const replay_column *c,
                                             const replay_page *page, hr_err *err);
// The heap of column `c` at its peak, where it was wanted.
HR_MUST_CHECK hr_status replay_print_peak(const replay_table *t, const replay_column *c,
                                          const replay_page *page, hr_err *err);
// The heap that the file shows, where it ran out of memory.
HR_MUST_CHECK hr_status replay_print_recorded(const replay_table *t, const replay_page *page, hr_err *err);

#endif
