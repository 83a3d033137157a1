// SPDX-License-Identifier: Apache-2.0
// The log of runs as a file: .csv with one row a run, or .json ("headroom.runs/1") with their step profiles too.
#ifndef TUI_RUN_EXPORT_H
#define TUI_RUN_EXPORT_H

#include <stdio.h>

#include "app/tui/feed/run_log.h"

bool run_export_csv(const run_log *log, FILE *out); // false when `out` failed
bool run_export_json(const run_log *log, FILE *out);

// Writes the file whole or not at all, as the suffix of `path` says. USAGE error for another suffix; WRITE error when
// something stands there already that is no file or not to be replaced, or the disk is full.
HR_MUST_CHECK hr_status run_export(const run_log *log, const char *path, bool replaces, hr_err *err);

#endif
