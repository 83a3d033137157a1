// SPDX-License-Identifier: Apache-2.0
// Problems of a YAML file: kept in the order of their place, printed with the source line and a caret. What
// comes out may go to a terminal, so no control character of the file or of a scalar gets through.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "knobs/yaml_file.h"

enum { SENTENCE_MAX = 512, WINDOW_CHARACTERS = 100, WINDOW_BEFORE_CARET = 70 };

size_t yaml_utf8(const char *from, size_t bytes, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)from[0];
    size_t length = first < 0x80         ? 1
                    : (first >> 5) == 6  ? 2
                    : (first >> 4) == 14 ? 3
                    : (first >> 3) == 30 ? 4
                                         : 0;
    if (length == 0 || length > bytes) {
        return 0;
    }
    uint32_t value = length == 1 ? first : first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        unsigned char next = (unsigned char)from[i];
        if ((next >> 6) != 2) {
            return 0;
        }
        value = value << 6 | (next & 0x3F);
    }
    *code = value;
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    return value < smallest[length] || value > 0x10FFFF || surrogate ? 0 : length;
}

size_t yaml_line_break(const char *from, size_t bytes)
{
    static const char *const breaks[] = {"\r\n", "\r", "\n", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        size_t length = strlen(breaks[i]);
        if (length <= bytes && memcmp(from, breaks[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

// ---- keeping ----------------------------------------------------------------------------------------------

// Characters [skip, skip + count) of a line, with '?' for what a terminal must not see.
static void append_printable(text *out, const char *from, size_t bytes, size_t skip, size_t count)
{
    while (bytes > 0 && count > 0) {
        uint32_t code = 0;
        size_t length = yaml_utf8(from, bytes, &code);
        bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
        if (skip > 0) {
            skip--;
        } else {
            if (length == 0 || control) {
                text_append_bytes(out, code == '\t' ? " " : "?", 1);
            } else {
                text_append_bytes(out, from, length);
            }
            count--;
        }
        length = length == 0 ? 1 : length;
        from += length;
        bytes -= length;
    }
}

static bool is_before(const yaml_trouble *a, const yaml_trouble *b)
{
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

// Sorts the newest trouble to its place, behind others of the same place.
static void sort_last(yaml_file *file)
{
    yaml_trouble *all = file->troubles.data;
    uint32_t at = file->troubles.count - 1;
    yaml_trouble newest = all[at];
    for (; at > 0 && is_before(&newest, &all[at - 1]); at--) {
        all[at] = all[at - 1];
    }
    all[at] = newest;
}

static bool keep(yaml_file *file, uint32_t line, uint32_t column, const char *sentence)
{
    text printable = {0};
    append_printable(&printable, sentence, strlen(sentence), 0, SENTENCE_MAX);
    char *kept = text_take(&printable);
    yaml_trouble *trouble = kept == NULL ? NULL : vec_push(&file->troubles);
    if (trouble == NULL) {
        hr_free(kept);
        return false;
    }
    *trouble = (yaml_trouble){line, column, kept};
    sort_last(file);
    return true;
}

void yaml_problem(yaml_file *file, uint32_t line, uint32_t column, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    file->trouble_count++;
    if (file->troubles.count < YAML_MAX_PROBLEMS && !keep(file, line, column, sentence)) {
        file->no_memory = true;
    }
}

size_t yaml_problem_count(const yaml_file *file)
{
    return file->trouble_count;
}

void yaml_problems_forget(yaml_file *file)
{
    for (uint32_t i = 0; i < file->troubles.count; i++) {
        hr_free(file->troubles.data[i].sentence);
    }
    file->troubles.count = 0;
    file->trouble_count = 0;
    file->no_memory = false;
}

// ---- showing ----------------------------------------------------------------------------------------------

const char *yaml_line(const yaml_file *file, uint32_t line, size_t *bytes)
{
    const char *at = file->data, *end = file->data + file->bytes;
    for (uint32_t now = 1; now < line && at < end;) {
        size_t length = yaml_line_break(at, (size_t)(end - at));
        now += length > 0;
        at += length > 0 ? length : 1;
    }
    const char *stop = at;
    while (stop < end && yaml_line_break(stop, (size_t)(end - stop)) == 0) {
        stop++;
    }
    *bytes = (size_t)(stop - at);
    return at;
}

// "  source line\n       ^\n"; of a long line the part around the column.
static void append_source(const yaml_file *file, const yaml_trouble *trouble, text *out)
{
    size_t bytes;
    const char *line = yaml_line(file, trouble->line, &bytes);
    size_t caret = trouble->column - 1;
    size_t skip = caret < WINDOW_CHARACTERS ? 0 : caret - WINDOW_BEFORE_CARET;
    if (bytes == 0) {
        return;
    }
    text_append(out, "  ");
    append_printable(out, line, bytes, skip, WINDOW_CHARACTERS);
    text_append(out, "\n  %*s^\n", (int)(caret - skip), "");
}

char *yaml_problems_text(const yaml_file *file)
{
    text out = {0};
    for (uint32_t i = 0; i < file->troubles.count; i++) {
        const yaml_trouble *trouble = &file->troubles.data[i];
        text_append(&out, "%s:%u:%u: %s\n", file->name, trouble->line, trouble->column, trouble->sentence);
        if (trouble->line > 0 && trouble->column > 0) {
            append_source(file, trouble, &out);
        }
    }
    if (file->trouble_count > file->troubles.count) {
        text_append(&out, "%s: and %zu more\n", file->name, file->trouble_count - file->troubles.count);
    }
    return text_take(&out);
}

hr_status yaml_status(const yaml_file *file, hr_err *err)
{
    if (file->no_memory) {
        return HR_FAIL(err, NOMEM, "%s: no memory for its %zu problems", file->name, file->trouble_count);
    }
    if (file->trouble_count == 0) {
        return HR_OK;
    }
    const yaml_trouble *first = &file->troubles.data[0];
    hr_status status =
        HR_FAIL(err, PRESET, "%s:%u:%u: %s", file->name, first->line, first->column, first->sentence);
    hr_err_try(err, "headroom config check %s", file->name);
    return status;
}
