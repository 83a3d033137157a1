// SPDX-License-Identifier: Apache-2.0
#include "formats/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 60, WORD_MAX = 32 };

void fields_deinit(fields *f)
{
    text_deinit(&f->unquoted);
}

// ---- rows -----------------------------------------------------------------------------------------------------

// Whoever is told of a mistake looks at the line first.
static hr_status show_line(const fields *f, hr_status status, hr_err *err)
{
    hr_err_try(err, "sed -n %" PRIu64 "p '%s'", f->line, f->in->name);
    return status;
}

static hr_status refuse_row(const fields *f, const char *wanted, hr_err *err)
{
    return show_line(f, HR_FAIL(err, READ, "%s:%" PRIu64 ": needed %s", f->in->name, f->line, wanted), err);
}

// A whole line with its end; NULL at the end of the file. *cut: it is longer than a row may be.
static const char *take_line(fields *f, size_t *length, bool *cut)
{
    const bool first = input_offset(f->in) == 0;
    const char *line = input_line(f->in, FIELDS_ROW_MAX, length);
    *cut = f->in->rest_of_line;
    if (line != NULL) {
        *length = (size_t)(input_here(f->in) - line);
        f->next_line++;
    }
    if (first && line != NULL && *length >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) { // a byte order mark
        line += 3;
        *length -= 3;
    }
    return line;
}

static size_t without_end(const char *line, size_t length)
{
    length -= length > 0 && line[length - 1] == '\n';
    length -= length > 0 && line[length - 1] == '\r';
    return length;
}

static bool add_field(fields *f, const char *start, size_t length, size_t column)
{
    if (f->count == FIELDS_MAX) {
        return false;
    }
    f->at[f->count++] = (field){start, (uint32_t)length, (uint32_t)column + 1};
    return true;
}

static hr_status split_plain(fields *f, const char *line, size_t length, hr_err *err)
{
    const char *start = line, *end = line + length;
    for (;;) {
        const char *stop = start;
        while (stop < end && *stop != ',') {
            stop++;
        }
        if (!add_field(f, start, (size_t)(stop - start), (size_t)(start - line))) {
            return refuse_row(f, "at most 64 fields in a row, has more", err);
        }
        if (stop == end) {
            return HR_OK;
        }
        start = stop + 1;
    }
}

// Takes the quotes off the field at line[*at], which begins with one, in place: to[..], returns the length.
static size_t unquote(const char *line, size_t length, size_t *at, char *to, bool *closed)
{
    size_t written = 0, from = *at + 1;
    *closed = false;
    while (from < length && !*closed) {
        if (line[from] != '"') {
            to[written++] = line[from++];
        } else if (from + 1 < length && line[from + 1] == '"') {
            to[written++] = '"';
            from += 2;
        } else {
            *closed = true;
            from++;
        }
    }
    *at = from;
    return written;
}

static size_t pass_blanks(const char *line, size_t length, size_t at)
{
    while (at < length && (line[at] == ' ' || line[at] == '\t')) {
        at++;
    }
    return at;
}

// Splits f->unquoted, a row with quotes. Taking quotes off makes it shorter, so it is done in place.
static hr_status split_quoted(fields *f, hr_err *err)
{
    char *line = f->unquoted.data;
    const size_t length = without_end(line, f->unquoted.length);
    size_t at = 0, to = 0;
    for (;;) {
        const size_t column = at, begun = to;
        size_t first = pass_blanks(line, length, at);
        if (first < length && line[first] == '"') {
            bool closed;
            at = first;
            to += unquote(line, length, &at, line + to, &closed);
            at = pass_blanks(line, length, at);
            if (!closed || (at < length && line[at] != ',')) {
                return refuse_row(f, closed ? "a comma behind a closing quote" : "a closing quote", err);
            }
        } else {
            while (at < length && line[at] != ',') {
                line[to++] = line[at++];
            }
        }
        if (!add_field(f, line + begun, to - begun, column)) {
            return refuse_row(f, "at most 64 fields in a row, has more", err);
        }
        if (at == length) {
            return HR_OK;
        }
        at++;
    }
}

// Whether quotes are open at the end of the bytes, when they were `open` at their start.
static bool ends_open(const char *bytes, size_t length, bool open)
{
    for (const char *quote = bytes; (quote = memchr(quote, '"', length - (size_t)(quote - bytes))) != NULL;
         quote++) {
        open = !open;
    }
    return open;
}

// The rest of a row whose first line has quotes: lines up to the one in which they are closed.
static hr_status gather(fields *f, const char *line, size_t length, hr_err *err)
{
    f->unquoted.length = 0;
    bool open = false, cut = false;
    while (line != NULL && !cut) {
        open = ends_open(line, length, open);
        text_append_bytes(&f->unquoted, line, length);
        if (f->unquoted.failed) {
            return HR_FAIL(err, NOMEM, "%s:%" PRIu64 ": needed memory for one row, had none", f->in->name,
                           f->line);
        }
        if (!open) {
            return HR_OK;
        }
        line = f->unquoted.length > FIELDS_ROW_MAX ? NULL : take_line(f, &length, &cut);
    }
    HR_TRY(input_status(f->in, err));
    return refuse_row(f, "a closing quote within a mebibyte", err);
}

static hr_status split(fields *f, const char *line, size_t length, size_t bare, hr_err *err)
{
    if (memchr(line, '"', bare) == NULL) {
        HR_TRY(split_plain(f, line, bare, err));
    } else {
        HR_TRY(gather(f, line, length, err));
        HR_TRY(split_quoted(f, err));
    }
    return f->width == 0 || f->count <= f->width
               ? HR_OK
               : fields_refuse(f, f->at[f->width],
                               "no more fields than the heading has (text with commas in quotes)", err);
}

hr_status fields_next(fields *f, bool *more, hr_err *err)
{
    size_t length, bare;
    bool cut;
    *more = false;
    f->count = 0;
    const char *line;
    do {
        f->line = f->next_line + 1;
        line = take_line(f, &length, &cut);
        if (line == NULL) {
            return input_status(f->in, err);
        }
        bare = without_end(line, length);
    } while (bare == 0);
    if (cut) {
        return refuse_row(f, "rows of at most a mebibyte, has a longer one", err);
    }
    *more = true;
    f->rows++;
    return split(f, line, length, bare, err);
}

hr_status fields_each(fields *f, fields_row heading, fields_row row, void *context, hr_err *err)
{
    bool more;
    HR_TRY(fields_next(f, &more, err));
    if (more) {
        HR_TRY(heading(context, err));
    }
    while (more) {
        HR_TRY(fields_next(f, &more, err));
        if (more) {
            HR_TRY(row(context, err));
        }
    }
    return HR_OK;
}

// ---- headings -------------------------------------------------------------------------------------------------

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

field field_trim(field t)
{
    while (t.length > 0 && (t.text[0] == ' ' || t.text[0] == '\t')) {
        t.text++;
        t.length--;
        t.column++;
    }
    while (t.length > 0 && (t.text[t.length - 1] == ' ' || t.text[t.length - 1] == '\t')) {
        t.length--;
    }
    return t;
}

bool field_is(field t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.text, word, t.length) == 0;
}

// Column names are compared without regard to case.
static bool is_named(field t, const char *name)
{
    uint32_t k = 0;
    while (k < t.length && name[k] != '\0' && lower(t.text[k]) == lower(name[k])) {
        k++;
    }
    return k == t.length && name[k] == '\0';
}

// Which column has the name; `count` when none.
static uint32_t column_of(field t, const field_column *columns, uint32_t count)
{
    for (uint32_t c = 0; c < count; c++) {
        for (size_t n = 0; n < sizeof columns[c].names / sizeof *columns[c].names; n++) {
            if (columns[c].names[n] != NULL && is_named(t, columns[c].names[n])) {
                return c;
            }
        }
    }
    return count;
}

// An unknown column whose name is near that of one that the file lacks is taken for a mistake.
static hr_status refuse_misspelt(const fields *f, field t, const field_column *columns, uint32_t count,
                                 const uint32_t *places, hr_err *err)
{
    char word[WORD_MAX];
    const char *lacking[FIELDS_COLUMNS_MAX];
    uint32_t lacking_count = 0;
    if (t.length >= sizeof word) {
        return HR_OK;
    }
    for (uint32_t k = 0; k < t.length; k++) {
        word[k] = lower(t.text[k]);
    }
    word[t.length] = '\0';
    for (uint32_t c = 0; c < count; c++) {
        if (places[c] == FIELDS_NONE) {
            lacking[lacking_count++] = columns[c].names[0];
        }
    }
    char wanted[WORD_MAX * 3];
    const char *near = text_nearest(word, lacking, lacking_count);
    snprintf(wanted, sizeof wanted, "a column of this format (did you mean '%s'?)", near == NULL ? "" : near);
    return near == NULL ? HR_OK : fields_refuse(f, t, wanted, err);
}

static hr_status places_of(const fields *f, const field_column *columns, uint32_t count, uint32_t *places,
                           hr_err *err)
{
    for (uint32_t c = 0; c < count; c++) {
        places[c] = FIELDS_NONE;
    }
    for (uint32_t k = 0; k < f->count; k++) {
        const uint32_t c = column_of(field_trim(f->at[k]), columns, count);
        if (c < count && places[c] != FIELDS_NONE) {
            return fields_refuse(f, f->at[k], "each column once", err);
        }
        if (c < count) {
            places[c] = k;
        }
    }
    return HR_OK;
}

static const char *missing_column(const field_column *columns, uint32_t count, const uint32_t *places)
{
    uint32_t c = 0;
    while (c < count && (!columns[c].needed || places[c] != FIELDS_NONE)) {
        c++;
    }
    return c < count ? columns[c].names[0] : NULL;
}

hr_status fields_heading(fields *f, const field_column *columns, uint32_t count, uint32_t *places,
                         hr_err *err)
{
    HR_TRY(places_of(f, columns, count, places, err));
    f->width = f->count;
    for (uint32_t k = 0; k < f->count; k++) {
        const field t = field_trim(f->at[k]);
        if (column_of(t, columns, count) == count) {
            HR_TRY(refuse_misspelt(f, t, columns, count, places, err));
        }
    }
    const char *missing = missing_column(columns, count, places);
    return missing == NULL
               ? HR_OK
               : show_line(f,
                           HR_FAIL(err, READ, "%s:%" PRIu64 ": needed a column '%s' in the heading, has none",
                                   f->in->name, f->line, missing),
                           err);
}

static bool has_column(const fields *f, const field_column *columns, uint32_t count, uint32_t column)
{
    uint32_t k = 0;
    while (k < f->count && column_of(field_trim(f->at[k]), columns, count) != column) {
        k++;
    }
    return k < f->count;
}

bool fields_begin_with(const char *start, size_t bytes, const field_column *columns, uint32_t count)
{
    const char *end = memchr(start, '\n', bytes);
    const size_t line = end == NULL ? bytes : (size_t)(end - start);
    bool more = false;
    input in;
    input_of_memory(&in, "", start, line);
    fields f = {.in = &in};
    bool fits = memchr(start, '\0', line) == NULL && fields_next(&f, &more, NULL) == HR_OK && more;
    for (uint32_t c = 0; fits && c < count; c++) {
        fits = !columns[c].needed || has_column(&f, columns, count, c);
    }
    fields_deinit(&f);
    return fits;
}

// ---- fields ---------------------------------------------------------------------------------------------------

field fields_at(const fields *f, uint32_t place)
{
    if (place < f->count) {
        return f->at[place];
    }
    const field last = f->count == 0 ? (field){"", 0, 1} : f->at[f->count - 1];
    return (field){"", 0, last.column + last.length};
}

static bool to_number(field t, uint64_t base, uint64_t *out)
{
    uint64_t value = 0;
    for (uint32_t k = 0; k < t.length; k++) {
        const char c = lower(t.text[k]);
        const uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
                                                      : base;
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *out = value;
    return t.length > 0;
}

static bool has_0x(field t)
{
    return t.length > 2 && t.text[0] == '0' && lower(t.text[1]) == 'x';
}

static field behind(field t, uint32_t count)
{
    return (field){t.text + count, t.length - count, t.column + count};
}

bool field_to_u64(field t, uint64_t *out)
{
    t = field_trim(t);
    return has_0x(t) ? to_number(behind(t, 2), 16, out) : to_number(t, 10, out);
}

bool field_to_address(field t, uint64_t *out)
{
    t = field_trim(t);
    if (field_is(t, "(nil)")) {
        *out = 0;
        return true;
    }
    return to_number(has_0x(t) ? behind(t, 2) : t, 16, out);
}

hr_status fields_refuse(const fields *f, field t, const char *wanted, hr_err *err)
{
    char shown[SHOWN_MAX + 1]; // what an untrusted file says reaches a terminal as printable characters only
    uint32_t k = 0;
    t = field_trim(t);
    for (; k < t.length && k < SHOWN_MAX; k++) {
        shown[k] = t.text[k] >= ' ' && t.text[k] <= '~' ? t.text[k] : '?';
    }
    shown[k] = '\0';
    hr_status status = HR_FAIL(err, READ, "%s:%" PRIu64 ":%" PRIu32 ": needed %s, had '%s%s'", f->in->name,
                               f->line, t.column, wanted, shown, k < t.length ? "..." : "");
    return show_line(f, status, err);
}

hr_status fields_number(const fields *f, uint32_t place, uint64_t most, uint64_t *out, hr_err *err)
{
    const field t = fields_at(f, place);
    *out = 0;
    if (t.length == 0 || (field_to_u64(t, out) && *out <= most)) {
        return HR_OK;
    }
    return fields_refuse(f, t, most == UINT64_MAX ? "a whole number below 2^64" : "a smaller whole number",
                         err);
}
