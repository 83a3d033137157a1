// SPDX-License-Identifier: Apache-2.0
// A file that is made row by row by someone who cannot be told of an error: the first one is kept, what comes behind it
// is dropped, and close returns it. Written whole or not at all.
#ifndef FORMATS_ROW_FILE_H
#define FORMATS_ROW_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

#include "base/file.h"
#include "base/text.h"

// Starts zeroed.
typedef struct row_file {
    file_writer *writer;
    text row; // what row_file_put writes next
    hr_status status;
    hr_err err;
} row_file;

HR_MUST_CHECK hr_status row_file_open(row_file *f, const char *path, hr_err *err);
void row_file_put(row_file *f); // writes f->row and empties it
void row_file_fail(row_file *f, hr_status status, const hr_err *err);
// Frees everything. `give_up`: no file appears and the status is HR_OK.
// Of a writer that begins with its row_file: a trace_writer's `failure`.
hr_status row_file_failure(const void *writer, hr_err *err);
HR_MUST_CHECK hr_status row_file_close(row_file *f, bool give_up, hr_err *err);

// RFC 4180: a field with a separator, a quote or a line end stands in quotes, with its quotes doubled.
void row_append_csv(text *row, const char *field);
// The bytes themselves; those that are no UTF-8 become U+FFFD.
void row_append_utf8(text *row, const char *value);
// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
void row_append_json(text *row, const char *value);

#endif
