// SPDX-License-Identifier: Apache-2.0
// A run's allocations in a file, while it runs.
#ifndef HEADROOM_TRACE_H
#define HEADROOM_TRACE_H

#include <stddef.h>

#include "headroom/engine.h"
#include "headroom/status.h"

// A kind of file that events can be written to: chosen by the file's suffix, or as NAME:FILE.
typedef struct hr_trace_format {
    const char *name;   // "chrome"
    const char *suffix; // ".json"; "" where another has it: by name only
    const char *line;   // what it is, for people
} hr_trace_format;

const hr_trace_format *hr_trace_format_row(size_t index); // NULL behind the last

typedef struct hr_trace hr_trace;

// From here on every memory event of the engine goes to `file` ("run.csv", "lifetimes:run.csv"). Lossless; tensors
// keep their names over rebuilds. The engine's thread; the engine must outlive the trace, which the caller closes.
// USAGE error when no format is meant; WRITE error when a file stands there that is not of that format.
HR_MUST_CHECK hr_status hr_trace_open(hr_engine *engine, const char *file, hr_trace **out, hr_err *err);
// HR_OK, or what already keeps the file from being written (a full disk), which closing will say again.
hr_status hr_trace_failure(const hr_trace *trace, hr_err *err);
// Writes the file whole, or not at all. Frees `trace` in every case; NULL is fine.
HR_MUST_CHECK hr_status hr_trace_close(hr_trace *trace, hr_err *err);

#endif
