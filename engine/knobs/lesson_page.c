// SPDX-License-Identifier: Apache-2.0
// Pages with the figures that they quote.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/lesson.h"
#include "headroom/units.h"

#include "base/text.h"
#include "knobs/lesson.h"

enum { EXPRESSION_MAX = 256, FIXED_BLANK = 0x1F }; // within a figure, until lines are broken

// Numbers that three digits do not say (999.5 is rounded to a fourth), and that a double still counts one by one.
static const double LARGE_FROM = 999.5, EXACT_BELOW = 1e15;

static const char *say_grouped(double number, char said[HR_LESSON_VALUE_TEXT_MAX])
{
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%.0f", number < 0 ? -number : number);
    size_t used = 0;
    if (number < 0 && strcmp(digits, "0") != 0) {
        said[used++] = '-';
    }
    for (int k = 0; k < length; k++) {
        if (k > 0 && (length - k) % 3 == 0) {
            said[used++] = ',';
        }
        said[used++] = digits[k];
    }
    said[used] = '\0';
    return said;
}

static const char *say_bytes(double number, char said[HR_LESSON_VALUE_TEXT_MAX])
{
    char size[HR_BYTES_TEXT_MAX];
    (void)snprintf(said, HR_LESSON_VALUE_TEXT_MAX, "%s%s", number < 0 ? "-" : "",
                   hr_bytes_human((uint64_t)(number < 0 ? -number : number), size));
    return said;
}

size_t hr_lesson_columns(const char *line, size_t bytes)
{
    size_t columns = 0;
    for (size_t k = 0; k < bytes; k++) {
        columns += ((unsigned char)line[k] & 0xC0) != 0x80;
    }
    return columns;
}

const char *hr_lesson_say(const hr_lesson_value *value, char said[HR_LESSON_VALUE_TEXT_MAX])
{
    switch (value->kind) {
    case HR_LESSON_UNKNOWN:
        break;
    case HR_LESSON_REAL:
        if (fabs(value->number) >= LARGE_FROM && fabs(value->number) < EXACT_BELOW) {
            return say_grouped(value->number, said);
        }
        (void)snprintf(said, HR_LESSON_VALUE_TEXT_MAX, "%.3g", value->number);
        return said;
    case HR_LESSON_COUNT:
        return say_grouped(value->number, said);
    case HR_LESSON_BYTES:
        return say_bytes(value->number, said);
    case HR_LESSON_SHARE:
        (void)snprintf(said, HR_LESSON_VALUE_TEXT_MAX, "%.1f %%", 100 * value->number);
        return said;
    case HR_LESSON_WORD:
        (void)snprintf(said, HR_LESSON_VALUE_TEXT_MAX, "%s", value->word);
        return said;
    }
    (void)snprintf(said, HR_LESSON_VALUE_TEXT_MAX, "unknown");
    return said;
}

// What stands between two braces: {expression}, {% expression}, {expression|10} with blanks up to ten columns.
typedef struct quote {
    char expression[EXPRESSION_MAX];
    bool is_share;
    int columns;
} quote;

// NULL: no brace closes it.
static const char *take_quote(const char *at, quote *q)
{
    const char *end = strchr(at, '}');
    const char *from = at + 1;
    q->is_share = *from == '%';
    q->columns = 0;
    from += q->is_share;
    if (end == NULL || end - from >= EXPRESSION_MAX) {
        return NULL;
    }
    memcpy(q->expression, from, (size_t)(end - from));
    q->expression[end - from] = '\0';
    char *bar = strchr(q->expression, '|');
    int64_t columns = 0;
    if (bar != NULL) {
        *bar = '\0';
        if (!text_to_int(bar + 1, &columns) || columns < 1 || columns > HR_LESSON_PAGE_COLUMNS) {
            return NULL;
        }
        q->columns = (int)columns;
    }
    return end + 1;
}

static hr_status refuse_brace(const char *at, hr_err *err)
{
    const hr_status status = HR_FAIL(err, PRESET, "a page quotes as {PATH} or {PATH|10}, had '%.40s'", at);
    hr_err_try(err, "{memory.peak_in_use_bytes}");
    return status;
}

static hr_status append_value(text *filled, const quote *q, const hr_lesson_runs *runs, hr_err *err)
{
    hr_lesson_value value;
    char said[HR_LESSON_VALUE_TEXT_MAX];
    HR_TRY(hr_lesson_evaluate(q->expression, runs, &value, err));
    value.kind = q->is_share && value.kind != HR_LESSON_UNKNOWN ? HR_LESSON_SHARE : value.kind;
    (void)hr_lesson_say(&value, said);
    for (char *blank = strchr(said, ' '); blank != NULL; blank = strchr(blank, ' ')) {
        *blank = FIXED_BLANK;
    }
    text_append(filled, "%-*s", q->columns, said);
    return HR_OK;
}

// ---- lines ----------------------------------------------------------------------------------------------------

// A row of a table, or what stands further in: it keeps its line.
static bool keeps_its_line(const char *line, size_t bytes)
{
    if (bytes == 0 || line[0] == ' ') {
        return true;
    }
    for (size_t k = 1; k < bytes; k++) {
        if (line[k] == ' ' && line[k - 1] == ' ') {
            return true;
        }
    }
    return false;
}

// The words of a line behind what stands in the last one. Returns the columns of that.
static size_t flow_line(text *out, const char *line, size_t bytes, size_t column)
{
    for (size_t at = 0; at < bytes;) {
        const size_t length = strcspn(line + at, " \n");
        const size_t columns = hr_lesson_columns(line + at, length);
        const bool breaks = column > 0 && column + 1 + columns > HR_LESSON_PAGE_COLUMNS;
        text_append(out, "%s", breaks ? "\n" : column > 0 ? " " : "");
        column = (breaks || column == 0 ? 0 : column + 1) + columns;
        text_append_bytes(out, line + at, length);
        at += length + 1;
    }
    return column;
}

// Figures are as long as they are: paragraphs are broken anew behind them.
static void flow(text *out, const char *page)
{
    size_t column = 0;
    for (const char *at = page; *at != '\0';) {
        const size_t bytes = strcspn(at, "\n");
        if (!keeps_its_line(at, bytes)) {
            column = flow_line(out, at, bytes, column);
        } else {
            text_append(out, "%s%.*s\n", column > 0 ? "\n" : "", (int)bytes, at);
            column = 0;
        }
        at += bytes + (at[bytes] == '\n');
    }
    text_append(out, "%s", column > 0 ? "\n" : "");
}

static void fill(text *filled, const char *page, const hr_lesson_runs *runs, hr_status *status, hr_err *err)
{
    for (const char *at = page; at != NULL && *at != '\0' && *status == HR_OK;) {
        quote q;
        const size_t plain = strcspn(at, "{");
        text_append_bytes(filled, at, plain);
        at += plain;
        if (*at == '{') {
            const char *next = take_quote(at, &q);
            *status = next == NULL ? refuse_brace(at, err) : append_value(filled, &q, runs, err);
            at = next;
        }
    }
}

hr_status hr_lesson_fill(const char *page, const hr_lesson_runs *runs, char **out, hr_err *err)
{
    text filled = {0}, flowed = {0};
    hr_status status = HR_OK;
    fill(&filled, page, runs, &status, err);
    *out = status == HR_OK ? text_take(&filled) : NULL;
    if (*out != NULL && strchr(page, '\n') != NULL) { // what is one line is broken by who shows it
        flow(&flowed, *out);
        hr_free(*out);
        *out = text_take(&flowed);
    }
    for (char *blank = *out == NULL ? NULL : strchr(*out, FIXED_BLANK); blank != NULL;
         blank = strchr(blank, FIXED_BLANK)) {
        *blank = ' ';
    }
    if (status == HR_OK && *out == NULL) {
        *out = page[0] == '\0' ? hr_strdup("") : NULL; // of a page with words memory was short before
        status = *out == NULL ? HR_FAIL(err, NOMEM, "no host memory for a page") : HR_OK;
    }
    text_deinit(&filled);
    text_deinit(&flowed);
    return status;
}

void hr_lesson_text_free(char *page)
{
    hr_free(page);
}

hr_status lesson_check_page(const char *page, const char *const *runs, uint32_t count, hr_err *err)
{
    for (const char *at = strchr(page, '{'); at != NULL; at = strchr(at, '{')) {
        quote q;
        const char *next = take_quote(at, &q);
        if (next == NULL) {
            return refuse_brace(at, err);
        }
        HR_TRY(lesson_check_expression(q.expression, runs, count, err));
        at = next;
    }
    return HR_OK;
}
