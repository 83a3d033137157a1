// SPDX-License-Identifier: Apache-2.0
// One dump of a TensorFlow log while its lines come, and the trace that it becomes.
#ifndef FORMATS_TENSORFLOW_LOG_DUMP_H
#define FORMATS_TENSORFLOW_LOG_DUMP_H

#include "events/heap_tiles.h"
#include "formats/tensorflow_log_lines.h"
#include "formats/trace.h"

enum { LOG_ROUNDING_BYTES = 256 };

// A request that was not served.
typedef struct log_request {
    bool any;
    bool guessed;           // from the bin that it fell into
    bool exact;             // requested_bytes is what was asked for
    uint64_t printed_bytes; // as the log has it for people
    uint64_t requested_bytes, rounded_bytes;
    char allocator[sizeof((heap_snapshot *)0)->source];
    char op[128];
    size_t line_length; // of the line that said so
} log_request;

typedef struct log_dump {
    heap_snapshot snapshot;
    VEC(heap_said) regions;
    log_request request;
    bool begun;
    bool whole; // all chunks were there
} log_dump;

void log_dump_deinit(log_dump *d);
// A line "Next region of size", and a line of a chunk of the region before it. False when host memory is short.
HR_MUST_CHECK bool log_dump_region(log_dump *d, uint64_t bytes);
HR_MUST_CHECK bool log_dump_chunk(log_dump *d, const log_chunk *said);
// Fills the trace; the snapshot is the trace's or gone. READ, NOMEM.
HR_MUST_CHECK hr_status log_dump_finish(log_dump *d, const char *file, trace *t, hr_err *err);

#endif
