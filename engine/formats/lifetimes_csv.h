// SPDX-License-Identifier: Apache-2.0
// Lifetimes as google/minimalloc reads and writes them: CSV whose heading names the columns, in any order.
//
//   id, buffer or buffer_id     any text, each once
//   lower, start or begin       first instant
//   upper, or the old end       behind the last instant; `end` is the last instant itself
//   size                        bytes
//   alignment, hint, offset     bytes; empty where there is none
//   gaps                        "3-5 7-9@0:64": within these instants nothing, or only bytes [0, 64), is held
#ifndef FORMATS_LIFETIMES_CSV_H
#define FORMATS_LIFETIMES_CSV_H

#include "formats/formats.h"
#include "formats/lifetimes.h"

// Reads a whole file into *l. READ error with line, column and what was expected; NOMEM. On failure *l is empty.
HR_MUST_CHECK hr_status lifetimes_read(const char *path, lifetimes *l, hr_err *err);
HR_MUST_CHECK hr_status lifetimes_read_input(input *in, lifetimes *l, hr_err *err);

// Writes id, lower, upper, size, and those of alignment, hint, gaps and offset that any buffer has. `offsets` replaces the
// buffers' own; NULL: theirs. WRITE, NOMEM.
HR_MUST_CHECK hr_status lifetimes_write(const char *path, const lifetimes *l, const uint64_t *offsets,
                                        hr_err *err);

// The blocks of a trace's device; time is the number of the event. Ids are the numbers of the allocations, with the name
// behind a colon where there is one ("12:conv1/weights"). What lives at the end lives to the end. NOMEM: *l is empty.
HR_MUST_CHECK hr_status lifetimes_of_trace(const trace *t, uint8_t device, lifetimes *l, hr_err *err);

// As a trace: allocations and releases in the order of time, of equal times the releases first, of equal ones in the
// order of the file; a buffer's row is its row in the file. There are no times in such a trace: those of the file are
// instants. Alignments, hints, gaps and offsets are left out.
extern const trace_format trace_format_lifetimes;

#endif
