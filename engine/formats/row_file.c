// SPDX-License-Identifier: Apache-2.0
#include "formats/row_file.h"

#include <string.h>

#include "headroom/json.h"

#include "base/utf8.h"

hr_status row_file_open(row_file *f, const char *path, hr_err *err)
{
    *f = (row_file){0};
    return file_writer_open(path, &f->writer, err);
}

void row_file_fail(row_file *f, hr_status status, const hr_err *err)
{
    if (f->status == HR_OK) {
        f->status = status;
        f->err = *err;
    }
}

hr_status row_file_failure(const void *writer, hr_err *err)
{
    const row_file *f = writer;
    if (f->status != HR_OK) {
        *err = f->err;
    }
    return f->status;
}

void row_file_put(row_file *f)
{
    if (f->status == HR_OK) {
        f->status = f->row.failed ? HR_FAIL(&f->err, NOMEM, "trace: needed memory for one row, had none")
                                  : file_writer_add(f->writer, f->row.data, f->row.length, &f->err);
    }
    f->row.length = 0;
}

hr_status row_file_close(row_file *f, bool give_up, hr_err *err)
{
    hr_status status = f->status;
    if (status == HR_OK && !give_up) {
        status = file_writer_commit(f->writer, err);
    } else {
        file_writer_abandon(f->writer);
        if (status != HR_OK && err != NULL) {
            *err = f->err;
        }
    }
    text_deinit(&f->row);
    *f = (row_file){0};
    return give_up ? HR_OK : status;
}

void row_append_csv(text *row, const char *field)
{
    if (strpbrk(field, ",\"\r\n") == NULL) {
        text_append_bytes(row, field, strlen(field));
        return;
    }
    text_append_bytes(row, "\"", 1);
    for (const char *c = field; *c != '\0'; c++) {
        text_append_bytes(row, "\"\"", *c == '"' ? 2 : 0);
        text_append_bytes(row, c, *c == '"' ? 0 : 1);
    }
    text_append_bytes(row, "\"", 1);
}

void row_append_utf8(text *row, const char *value)
{
    const char *end = value + strlen(value);
    while (value < end) {
        const size_t bytes = utf8_bytes(value, (size_t)(end - value));
        text_append_bytes(row, bytes > 0 ? value : UTF8_REPLACEMENT, bytes > 0 ? bytes : 3);
        value += bytes > 0 ? bytes : 1;
    }
}

void row_append_json(text *row, const char *value)
{
    char form[HR_JSON_CHAR_MAX];
    const char *end = value + strlen(value);
    text_append_bytes(row, "\"", 1);
    while (value < end) {
        const size_t count = hr_json_char(&value, end, form);
        text_append_bytes(row, form, count);
    }
    text_append_bytes(row, "\"", 1);
}
