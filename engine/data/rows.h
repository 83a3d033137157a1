// SPDX-License-Identifier: Apache-2.0
// A table as text, row by row: commas between fields, quotes around a field that may then hold commas, line ends and
// doubled quotes (RFC 4180), "\n" or "\r\n". Empty lines are no rows.
#ifndef DATA_ROWS_H
#define DATA_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/blob.h"

// Of a row, and of a table: where its rows begin takes at most 256 MiB.
enum { ROWS_MOST_BYTES = 1 << 20, ROWS_MOST_FIELDS = 1 << 16, ROWS_MOST = (1 << 25) - 1 };

// Where rows begin and end, in pieces of any size. Starts zeroed.
typedef struct row_walk {
    enum { ROW_BEFORE, ROW_FIELD_BEGINS, ROW_PLAIN, ROW_QUOTED, ROW_QUOTE_IN_QUOTED } at;
    uint64_t offset;    // of what comes next
    uint64_t begin;     // of the row under way
    uint64_t quoteless; // up to here there is no quote
} row_walk;

// Goes on through bytes[0..count), to behind the next row's line end; returns how many bytes that were. *ended: a row
// ended, and w->begin … w->offset is that row; false: all was used up. At the end of the file row_walk_is_open tells
// whether what is under way is a row without line end.
size_t row_walk_on(row_walk *w, const char *bytes, size_t count, bool *ended);
bool row_walk_is_open(const row_walk *w);

// One field of a row; not NUL-terminated. Of a quoted one what stands between the quotes, doubled ones as they are.
typedef struct row_field {
    const char *text;
    uint32_t length;
} row_field;

// What is left of a row.
typedef struct row_cursor {
    const char *at, *end;
    bool after_comma; // one more field comes, if only an empty one
} row_cursor;

// Without the blanks around it.
row_field row_trim(row_field f);

row_cursor row_begin(const char *row, size_t count);
// False at the end of the row. *good is false where a quoted field does not end, or is followed by other than a comma.
bool row_next(row_cursor *c, row_field *out, bool *good);

// The whole field, less blanks around it, as a decimal number that a float can hold. The same on every thread: what no double holds
// in full is zero.
bool row_number(row_field f, double *out);

// Where every row of a file begins.
typedef struct row_index {
    uint64_t *offset;    // count, and where the last one ends
    uint32_t count;      // behind the heading
    uint32_t most_bytes; // of a row
    uint64_t held_bytes; // of offset
} row_index;

// How much of the file row `index` may be: it begins at its offset, and empty lines may follow.
uint32_t row_index_bytes(const row_index *r, uint32_t index);

// The first row, with its line end: no more of the file is read. *bytes is 0 where there is none. DATA errors name file and offset, here
// and below.
HR_MUST_CHECK hr_status row_find_heading(const blob *file, uint64_t *offset, uint32_t *bytes, hr_err *err);

// Goes through all of the file, twice: what is kept is known before it is taken. The first row is the heading.
HR_MUST_CHECK hr_status row_index_make(const blob *file, row_index *out, hr_err *err);
void row_index_free(row_index *r);

#endif
