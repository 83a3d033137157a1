// SPDX-License-Identifier: Apache-2.0
// Single lines of TensorFlow's logs. Every function takes a line without its end, not NUL-terminated, and finds what it
// is for anywhere in it, if it does not say otherwise.
#ifndef FORMATS_TENSORFLOW_LOG_LINES_H
#define FORMATS_TENSORFLOW_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef struct log_span {
    const char *text;
    size_t length;
} log_span;

// What follows `sign` in the line; text is NULL where the sign is not.
log_span log_behind(log_span line, const char *sign);
// What precedes the sign; the whole span where the sign is not.
log_span log_before(log_span line, const char *sign);
log_span log_trim(log_span s);
// The line without a terminal's escape sequences, in *plain when it had some. False when host memory is short.
bool log_without_colours(log_span *line, text *plain);

// The number that the span begins with, behind blanks: decimal, or hexadecimal with or without 0x. Passes over it.
bool log_take_u64(log_span *s, uint64_t *out);
bool log_take_hex(log_span *s, uint64_t *out);
// "2.00GiB", "112.5KiB", "512B", "1280". *exact: it stands for no other number of bytes. Passes over it.
bool log_take_bytes(log_span *s, uint64_t *out, bool *exact);
// Whether TensorFlow may have printed the exact number so.
bool log_prints_as(uint64_t exact_bytes, uint64_t printed_bytes);

// "InUse at 7bc24cfe0000 of size 1280 next 2", in all its generations.
typedef struct log_chunk {
    uint64_t address, size_bytes, next; // next is UINT64_MAX where there is none
    uint64_t action_count, freed_at;
    log_span name; // by op, or allocation annotation; text is NULL where there is none
    bool in_use;
} log_chunk;

bool log_chunk_of(log_span at, log_chunk *out); // that begins here

// "OOM when allocating tensor with shape[32,30] and type float on …": its bytes. False when that is not in the line, or
// of no known type.
bool log_tensor_bytes(log_span line, uint64_t *out);

#endif
