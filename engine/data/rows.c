// SPDX-License-Identifier: Apache-2.0
#include "data/rows.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/text.h"

enum { PIECE_BYTES = 64 << 10, NUMBER_TEXT_MAX = 128 };

// ---- where rows end -------------------------------------------------------------------------------------------

static bool in_quotes(const row_walk *w)
{
    return w->at == ROW_QUOTED || w->at == ROW_QUOTE_IN_QUOTED;
}

// One character, whatever it is. True where it ends a row.
static bool walk_one(row_walk *w, char c)
{
    const bool was_before = w->at == ROW_BEFORE;
    w->offset++;
    if (w->at == ROW_QUOTED) {
        w->at = c == '"' ? ROW_QUOTE_IN_QUOTED : ROW_QUOTED;
        return false;
    }
    if (c == '\n' || (was_before && c == '\r')) { // of an empty line
        w->at = ROW_BEFORE;
        return !was_before;
    }
    if (was_before) {
        w->begin = w->offset - 1;
    }
    w->at = c == ',' ? ROW_FIELD_BEGINS : c == '"' && w->at != ROW_PLAIN ? ROW_QUOTED : ROW_PLAIN;
    return false;
}

// Through characters of a row that has begun, none of them a quote. Returns how many; true in *ended at a line end.
static size_t walk_plain(row_walk *w, const char *bytes, size_t count, bool *ended)
{
    const char *end = memchr(bytes, '\n', count);
    const size_t passed = end != NULL ? (size_t)(end - bytes) + 1 : count;
    *ended = end != NULL;
    w->at = *ended ? ROW_BEFORE : bytes[passed - 1] == ',' ? ROW_FIELD_BEGINS : ROW_PLAIN;
    w->offset += passed;
    return passed;
}

size_t row_walk_on(row_walk *w, const char *bytes, size_t count, bool *ended)
{
    size_t at = 0;
    *ended = false;
    while (at < count && !*ended) {
        if (w->quoteless <= w->offset) {
            const char *quote = memchr(bytes + at, '"', count - at);
            w->quoteless = w->offset + (quote != NULL ? (size_t)(quote - bytes) : count) - at;
        }
        const uint64_t plain = w->quoteless - w->offset;
        if (plain > 0 && w->at != ROW_BEFORE && !in_quotes(w)) {
            at += walk_plain(w, bytes + at, plain < count - at ? plain : count - at, ended);
        } else {
            *ended = walk_one(w, bytes[at++]);
        }
    }
    return at;
}

bool row_walk_is_open(const row_walk *w)
{
    return w->at != ROW_BEFORE;
}

// ---- fields ---------------------------------------------------------------------------------------------------

row_cursor row_begin(const char *row, size_t count)
{
    while (count > 0 && (row[count - 1] == '\n' || row[count - 1] == '\r')) {
        count--;
    }
    return (row_cursor){.at = row, .end = row + count, .after_comma = count > 0};
}

static bool quoted_field(row_cursor *c, row_field *out)
{
    const char *begin = ++c->at;
    while (c->at < c->end) {
        if (*c->at == '"') {
            if (c->end - c->at < 2 || c->at[1] != '"') {
                break;
            }
            c->at++;
        }
        c->at++;
    }
    *out = (row_field){begin, (uint32_t)(c->at - begin)};
    if (c->at == c->end) {
        return false;
    }
    c->at++;
    return c->at == c->end || *c->at == ',';
}

bool row_next(row_cursor *c, row_field *out, bool *good)
{
    *good = true;
    if (!c->after_comma) {
        return false;
    }
    if (c->at < c->end && *c->at == '"') {
        *good = quoted_field(c, out);
        if (!*good) {
            c->at = c->end;
        }
    } else {
        const char *comma = memchr(c->at, ',', (size_t)(c->end - c->at));
        const char *stop = comma != NULL ? comma : c->end;
        *out = (row_field){c->at, (uint32_t)(stop - c->at)};
        c->at = stop;
    }
    c->after_comma = c->at < c->end; // a comma stands here
    c->at += c->after_comma;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

row_field row_trim(row_field f)
{
    while (f.length > 0 && is_blank(f.text[0])) {
        f.text++;
        f.length--;
    }
    while (f.length > 0 && is_blank(f.text[f.length - 1])) {
        f.length--;
    }
    return f;
}

// Digits with at most one point, up to 19 of them and 22 behind the point: the quotient of two doubles that are exact
// is the nearest one (Clinger, "How to read floating point numbers accurately", PLDI 1990). False for all else.
static bool short_number(row_field f, double *out)
{
    static const double ten_to[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool is_negative = f.length > 0 && f.text[0] == '-';
    uint64_t digits = 0;
    uint32_t count = 0, behind = 0;
    bool has_point = false;
    for (uint32_t i = is_negative; i < f.length; i++) {
        const char c = f.text[i];
        if (c == '.' && !has_point) {
            has_point = true;
        } else if (c >= '0' && c <= '9' && count < 19) {
            digits = digits * 10 + (uint64_t)(c - '0');
            count++;
            behind += has_point;
        } else {
            return false;
        }
    }
    if (count == 0 || digits > UINT64_C(1) << 53) {
        return false;
    }
    const double value = (double)digits / ten_to[behind];
    *out = is_negative ? -value : value;
    return true;
}

bool row_number(row_field f, double *out)
{
    char copy[NUMBER_TEXT_MAX];
    f = row_trim(f);
    if (short_number(f, out)) {
        return true;
    }
    if (f.length == 0 || f.length >= sizeof copy || memchr(f.text, '\0', f.length) != NULL) {
        return false;
    }
    memcpy(copy, f.text, f.length);
    copy[f.length] = '\0';
    if (!text_to_real(copy, out) || !isfinite((float)*out)) {
        return false;
    }
    *out = fabs(*out) < DBL_MIN ? 0.0 : *out; // a thread may take it for zero
    return true;
}

// ---- the index ------------------------------------------------------------------------------------------------

// What is done with each row that was found: it is counted, then kept.
typedef struct finding {
    const blob *file;
    uint8_t *piece;
    uint64_t seen;     // rows, the heading included
    bool heading_only; // then it is done
    uint64_t heading;
    uint32_t heading_bytes;
    uint64_t most_bytes;
    row_index *into; // of the second pass; NULL in the first
} finding;

static hr_status row_was_found(finding *f, const row_walk *w, hr_err *err)
{
    const uint64_t bytes = w->offset - w->begin;
    if (bytes > ROWS_MOST_BYTES) {
        return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed rows of at most %d bytes, had more",
                       f->file->name, w->begin, ROWS_MOST_BYTES);
    }
    if (f->seen++ == 0) {
        f->heading = w->begin;
        f->heading_bytes = (uint32_t)bytes;
        return HR_OK;
    }
    if (f->seen > ROWS_MOST + UINT64_C(1)) {
        const hr_status status =
            HR_FAIL(err, DATA, "%s: needed at most %d rows, had more", f->file->name, ROWS_MOST);
        hr_err_try(err, "head -n 30000000 '%s' >part.csv, then -s pipeline.path=part.csv", f->file->name);
        return status;
    }
    f->most_bytes = bytes > f->most_bytes ? bytes : f->most_bytes;
    if (f->into == NULL) {
        return HR_OK;
    }
    if (f->into->count + UINT64_C(2) > f->into->held_bytes / sizeof(uint64_t)) {
        return HR_FAIL(err, DATA, "%s: needed a file that stays as it is, had more rows in it than before",
                       f->file->name);
    }
    f->into->offset[f->into->count++] = w->begin;
    f->into->offset[f->into->count] = w->offset;
    return HR_OK;
}

static bool is_done(const finding *f)
{
    return f->heading_only && f->seen > 0;
}

static hr_status walk_piece(finding *f, row_walk *w, const char *bytes, uint32_t count, hr_err *err)
{
    for (size_t at = 0; at < count && !is_done(f);) {
        bool ended;
        at += row_walk_on(w, bytes + at, count - at, &ended);
        if (ended) {
            HR_TRY(row_was_found(f, w, err));
        }
        if (w->offset - w->begin > ROWS_MOST_BYTES && row_walk_is_open(w)) {
            return row_was_found(f, w, err);
        }
    }
    return HR_OK;
}

// Where the text begins: behind the mark of UTF-8 that some programs write.
static hr_status text_begin(const blob *file, uint64_t *offset, hr_err *err)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf};
    uint8_t room[sizeof mark];
    const uint8_t *bytes;
    *offset = 0;
    if (file->size_bytes >= sizeof mark) {
        HR_TRY(blob_at(file, 0, sizeof mark, room, &bytes, err));
        *offset = memcmp(bytes, mark, sizeof mark) == 0 ? sizeof mark : 0;
    }
    return HR_OK;
}

static hr_status walk_file(finding *f, hr_err *err)
{
    row_walk w = {0};
    f->seen = 0;
    HR_TRY(text_begin(f->file, &w.offset, err));
    while (w.offset < f->file->size_bytes && !is_done(f)) {
        const uint64_t left = f->file->size_bytes - w.offset;
        const uint32_t count = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
        const uint8_t *bytes;
        HR_TRY(blob_at(f->file, w.offset, count, f->piece, &bytes, err));
        HR_TRY(walk_piece(f, &w, (const char *)bytes, count, err));
    }
    if (row_walk_is_open(&w)) {
        HR_TRY(row_was_found(f, &w, err));
    }
    return HR_OK;
}

static hr_status take_offsets(finding *f, row_index *out, hr_err *err)
{
    const uint64_t count = f->seen; // the rows and one end
    if (count < 2) {
        return HR_FAIL(err, DATA, "%s: needed a heading and 1 to %d rows, had %" PRIu64 " lines",
                       f->file->name, ROWS_MOST, count);
    }
    out->offset = hr_calloc(count, sizeof *out->offset);
    if (out->offset == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %" PRIu64 " bytes for where its rows begin, had less",
                       f->file->name, count * sizeof *out->offset);
    }
    out->held_bytes = count * sizeof *out->offset;
    return HR_OK;
}

uint32_t row_index_bytes(const row_index *r, uint32_t index)
{
    const uint64_t bytes = r->offset[index + 1] - r->offset[index];
    return bytes < r->most_bytes ? (uint32_t)bytes : r->most_bytes;
}

static hr_status find_all(finding *f, row_index *out, hr_err *err)
{
    HR_TRY(walk_file(f, err));
    HR_TRY(take_offsets(f, out, err));
    const uint64_t expected = f->seen;
    f->into = out;
    HR_TRY(walk_file(f, err));
    if (f->seen != expected) {
        return HR_FAIL(err, DATA, "%s: needed a file that stays as it is, had fewer rows in it than before",
                       f->file->name);
    }
    out->most_bytes = (uint32_t)f->most_bytes;
    return HR_OK;
}

hr_status row_find_heading(const blob *file, uint64_t *offset, uint32_t *bytes, hr_err *err)
{
    finding f = {.file = file, .heading_only = true, .piece = hr_calloc(PIECE_BYTES, 1)};
    if (f.piece == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %d bytes, had less", file->name, PIECE_BYTES);
    }
    const hr_status status = walk_file(&f, err);
    hr_free(f.piece);
    *offset = f.heading;
    *bytes = f.heading_bytes;
    return status;
}

hr_status row_index_make(const blob *file, row_index *out, hr_err *err)
{
    *out = (row_index){0};
    finding f = {.file = file, .piece = hr_calloc(PIECE_BYTES, 1)};
    if (f.piece == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %d bytes, had less", file->name, PIECE_BYTES);
    }
    const hr_status status = find_all(&f, out, err);
    hr_free(f.piece);
    if (status != HR_OK) {
        row_index_free(out);
    }
    return status;
}

void row_index_free(row_index *r)
{
    hr_free(r->offset);
    *r = (row_index){0};
}
