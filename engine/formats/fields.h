// SPDX-License-Identifier: Apache-2.0
// Comma-separated values, row by row (RFC 4180): quoted fields with doubled quotes, line ends within quotes, "\n" or
// "\r\n". Readers of the formats ask for fields by the place of their column and complain with line and column.
#ifndef FORMATS_FIELDS_H
#define FORMATS_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/input.h"
#include "base/text.h"

enum {
    FIELDS_MAX = 64,          // of a row; more is an error
    FIELDS_ROW_MAX = 1 << 20, // bytes of a row; more is an error
    FIELDS_NONE = FIELDS_MAX, // the place of a column that a file does not have
    FIELDS_COLUMNS_MAX = 16   // that a format knows
};

// Of the present row; good until the next one. Not NUL-terminated.
typedef struct field {
    const char *text;
    uint32_t length;
    uint32_t column; // of its first character in the line, from 1
} field;

// Starts with `in` alone.
typedef struct fields {
    input *in;
    uint64_t line; // where the row begins, from 1
    uint64_t next_line;
    uint32_t count;
    uint32_t width; // of the heading; 0: there is none yet
    field at[FIELDS_MAX];
    text unquoted; // rows with quotes, with the quotes taken off
    uint64_t rows; // read so far
} fields;

void fields_deinit(fields *f);
// The next row that is not empty; *more is false at the end of the file. READ, also for more fields than the heading
// has; NOMEM.
HR_MUST_CHECK hr_status fields_next(fields *f, bool *more, hr_err *err);

// What a reader of a format does with the present row.
typedef hr_status (*fields_row)(void *context, hr_err *err);
// A whole file: `heading` for its first row, `row` for each behind it, until one fails. Neither for an empty file.
HR_MUST_CHECK hr_status fields_each(fields *f, fields_row heading, fields_row row, void *context,
                                    hr_err *err);

// A column of a format: all the names it may have, and whether a file must have it.
typedef struct field_column {
    const char *names[4]; // the first is the one that errors say
    bool needed;
} field_column;

// Takes the present row as heading: places[k] is where column k stands, or FIELDS_NONE. READ error when a needed one is
// missing, when one comes twice, and when an unknown one looks like a misspelt one. Other unknown columns are passed over.
HR_MUST_CHECK hr_status fields_heading(fields *f, const field_column *columns, uint32_t count,
                                       uint32_t *places, hr_err *err);
// Whether the text begins with a line that has all needed columns.
bool fields_begin_with(const char *start, size_t bytes, const field_column *columns, uint32_t count);

// The field at a place; an empty one where the row is shorter, or the place is FIELDS_NONE.
field fields_at(const fields *f, uint32_t place);
// Without the blanks around it.
field field_trim(field t);
bool field_is(field t, const char *word);
// Whole fields without the blanks around them: decimal; decimal or 0x…; an address in hex, with or without 0x, or "(nil)".
bool field_to_u64(field t, uint64_t *out);
bool field_to_address(field t, uint64_t *out);

// READ error "file:line:column: needed WANTED, had 'the field'".
hr_status fields_refuse(const fields *f, field t, const char *wanted, hr_err *err);
// The number in field `place` of the row; 0 where the row has no such field or it is empty. READ error when it is no
// whole number up to `most`.
HR_MUST_CHECK hr_status fields_number(const fields *f, uint32_t place, uint64_t most, uint64_t *out,
                                      hr_err *err);

#endif
