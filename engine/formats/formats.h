// SPDX-License-Identifier: Apache-2.0
// The files that a trace can be read from: one row each. A file says itself what it is; its name does not matter.
#ifndef FORMATS_FORMATS_H
#define FORMATS_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

#include "base/input.h"
#include "formats/trace.h"

enum { TRACE_SIGN_BYTES = 64 << 10 }; // of its beginning, to recognise a file by

typedef struct trace_format {
    const char *name; // "pytorch_snapshot"
    const char *line; // what it is, for people
    bool is_any_text; // recognise says no more than that
    bool (*recognise)(const char *start, size_t bytes);
    // Reads to the end of its data into an empty trace. READ error with byte or line and what was expected there.
    hr_status (*read)(input *in, trace *t, hr_err *err);
} trace_format;

extern const trace_format *const trace_formats[]; // ends with NULL; the first that recognises a file reads it

// READ error: the file is none of the traces that there are.
hr_status trace_refuse(const input *in, hr_err *err);

// Whether it is a file that can be opened and begins as one of them; any text does where it is called NAME.log.
bool trace_recognises(const char *path);

// Reads a whole file, streaming. READ error when no format recognises it, with the list of those there are. On
// failure *t is empty. The result passes trace_check.
HR_MUST_CHECK hr_status trace_read(const char *path, trace *t, hr_err *err);
HR_MUST_CHECK hr_status trace_read_input(input *in, trace *t, hr_err *err);

#endif
