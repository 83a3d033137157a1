// SPDX-License-Identifier: Apache-2.0
#include "trace/row_file.h"

#include <string.h>

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

// Bytes of the UTF-8 sequence that begins here; 0 when none does (overlong forms, surrogates, cut ones).
static size_t utf8_bytes(const unsigned char *c)
{
    static const struct {
        unsigned char first, last, second_low, second_high;
        size_t bytes;
    } forms[] = {
        {0x20, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
        size_t bytes = forms[k].bytes;
        if (*c < forms[k].first || *c > forms[k].last) {
            continue;
        }
        bool fits = bytes < 2 || (c[1] >= forms[k].second_low && c[1] <= forms[k].second_high);
        for (size_t n = 2; fits && n < bytes; n++) {
            fits = (c[n] & 0xc0) == 0x80;
        }
        return fits ? bytes : 0;
    }
    return 0;
}

void row_append_utf8(text *row, const char *value)
{
    while (*value != '\0') {
        size_t bytes = utf8_bytes((const unsigned char *)value);
        bool fits = bytes > 0 || (unsigned char)*value < ' '; // a control character is one
        text_append_bytes(row, fits ? value : "\xef\xbf\xbd", bytes > 0 ? bytes : fits ? 1 : 3);
        value += bytes > 0 ? bytes : 1;
    }
}

void row_append_json(text *row, const char *value)
{
    text_append_bytes(row, "\"", 1);
    for (const char *c = value; *c != '\0';) {
        const unsigned char first = (unsigned char)*c;
        size_t bytes = utf8_bytes((const unsigned char *)c);
        if (first == '"' || first == '\\') {
            text_append(row, "\\%c", first);
        } else if (first < ' ') {
            text_append(row, "\\u%04x", first);
        } else if (bytes == 0) {
            text_append_bytes(row, "\\ufffd", 6);
        } else {
            text_append_bytes(row, c, bytes);
        }
        c += bytes == 0 ? 1 : bytes;
    }
    text_append_bytes(row, "\"", 1);
}
