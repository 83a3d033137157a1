// SPDX-License-Identifier: Apache-2.0
// Reading: columns, rows, gaps.
#include "formats/lifetimes_csv.h"

#include <string.h>

#include "formats/fields.h"
#include "formats/lifetimes_columns.h"

const field_column lifetimes_columns[LIFETIMES_COLUMNS] = {
    [LIFETIMES_ID] = {{"id", "buffer", "buffer_id"}, true},
    [LIFETIMES_LOWER] = {{"lower", "start", "begin"}, true},
    [LIFETIMES_UPPER] = {{"upper"}, false},
    [LIFETIMES_END] = {{"end"}, false},
    [LIFETIMES_SIZE] = {{"size"}, true},
    [LIFETIMES_ALIGNMENT] = {{"alignment"}, false},
    [LIFETIMES_HINT] = {{"hint"}, false},
    [LIFETIMES_GAPS] = {{"gaps"}, false},
    [LIFETIMES_OFFSET] = {{"offset"}, false},
};

typedef struct lifetimes_csv {
    fields f;
    uint32_t places[LIFETIMES_COLUMNS];
    uint32_t upper;  // the column with the ends
    uint64_t behind; // added to them: 1 where they are the last instants themselves
    lifetimes *l;
} lifetimes_csv;

static hr_status no_memory(const lifetimes_csv *r, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "%s: needed host memory for buffer %u, had none", r->f.in->name,
                   r->l->list.count);
}

static hr_status read_heading(void *context, hr_err *err)
{
    lifetimes_csv *r = context;
    HR_TRY(fields_heading(&r->f, lifetimes_columns, LIFETIMES_COLUMNS, r->places, err));
    const bool has_upper = r->places[LIFETIMES_UPPER] != FIELDS_NONE;
    const bool has_end = r->places[LIFETIMES_END] != FIELDS_NONE;
    if (has_upper == has_end) {
        return fields_refuse(&r->f, r->f.at[r->f.count - 1],
                             "one column 'upper' (behind the last instant) or 'end' (the last instant)", err);
    }
    r->upper = has_upper ? LIFETIMES_UPPER : LIFETIMES_END;
    r->behind = has_end;
    return HR_OK;
}

static hr_status number(lifetimes_csv *r, uint32_t column, uint64_t *out, hr_err *err)
{
    const field t = fields_at(&r->f, r->places[column]);
    return field_to_u64(t, out) ? HR_OK : fields_refuse(&r->f, t, "a whole number from 0 to 2^64-1", err);
}

// An empty field, or no such column, is `otherwise`.
static hr_status optional(lifetimes_csv *r, uint32_t column, uint64_t otherwise, uint64_t *out, hr_err *err)
{
    *out = otherwise;
    return field_trim(fields_at(&r->f, r->places[column])).length == 0 ? HR_OK : number(r, column, out, err);
}

// ---- gaps -----------------------------------------------------------------------------------------------------

// The digits up to `end` (or the end of the text, where `end` is NUL), and passes over both.
static bool take_number(field *t, char end, uint64_t *out)
{
    uint32_t digits = 0;
    while (digits < t->length && t->text[digits] != end) {
        digits++;
    }
    const field part = {t->text, digits, t->column};
    if ((end != '\0' && digits == t->length) || !field_to_u64(part, out)) {
        return false;
    }
    const uint32_t passed = digits + (end != '\0');
    *t = (field){t->text + passed, t->length - passed, t->column + passed};
    return true;
}

// "3-5" or "3-5@0:64"
static bool gap_of(field t, lifetime_gap *gap)
{
    const bool has_window = memchr(t.text, '@', t.length) != NULL;
    *gap = (lifetime_gap){0};
    if (!take_number(&t, '-', &gap->lower) || !take_number(&t, has_window ? '@' : '\0', &gap->upper)) {
        return false;
    }
    return !has_window || (take_number(&t, ':', &gap->low) && take_number(&t, '\0', &gap->high));
}

static field take_word(field *t)
{
    *t = field_trim(*t);
    const char *blank = t->length == 0 ? NULL : memchr(t->text, ' ', t->length);
    const uint32_t length = blank == NULL ? t->length : (uint32_t)(blank - t->text);
    const field word = {t->text, length, t->column};
    *t = (field){t->text + length, t->length - length, t->column + length};
    return word;
}

static hr_status read_gaps(lifetimes_csv *r, lifetime *buffer, hr_err *err)
{
    field rest = fields_at(&r->f, r->places[LIFETIMES_GAPS]);
    buffer->first_gap = r->l->gaps.count;
    for (field word = take_word(&rest); word.length > 0; word = take_word(&rest)) {
        lifetime_gap gap;
        if (!gap_of(word, &gap)) {
            return fields_refuse(&r->f, word, "gaps as 3-5 or 3-5@0:64, with blanks between them", err);
        }
        if (__builtin_add_overflow(gap.upper, r->behind, &gap.upper) || gap.lower >= gap.upper ||
            gap.lower < buffer->lower || gap.upper > buffer->upper) {
            return fields_refuse(&r->f, word, "gaps that begin before they end, within the lifetime", err);
        }
        if (gap.low > gap.high || gap.high > buffer->bytes) {
            return fields_refuse(&r->f, word, "bytes of a gap within the buffer's size", err);
        }
        lifetime_gap *added = vec_push(&r->l->gaps);
        if (added == NULL) {
            return no_memory(r, err);
        }
        *added = gap;
        buffer->gap_count++;
    }
    return HR_OK;
}

// ---- rows -----------------------------------------------------------------------------------------------------

static hr_status read_id(lifetimes_csv *r, uint32_t *id, hr_err *err)
{
    const field t = fields_at(&r->f, r->places[LIFETIMES_ID]);
    if (t.length == 0 || memchr(t.text, '\0', t.length) != NULL) {
        return fields_refuse(&r->f, t, "a buffer's id", err);
    }
    *id = intern_add(&r->l->ids, t.text, t.length);
    if (*id == INTERN_NONE) {
        return no_memory(r, err);
    }
    return *id == r->l->list.count ? HR_OK : fields_refuse(&r->f, t, "every id once", err);
}

static hr_status read_row(void *context, hr_err *err)
{
    lifetimes_csv *r = context;
    lifetime buffer = {0};
    HR_TRY(read_id(r, &buffer.id, err));
    HR_TRY(number(r, LIFETIMES_LOWER, &buffer.lower, err));
    HR_TRY(number(r, r->upper, &buffer.upper, err));
    HR_TRY(number(r, LIFETIMES_SIZE, &buffer.bytes, err));
    HR_TRY(optional(r, LIFETIMES_ALIGNMENT, 1, &buffer.alignment_bytes, err));
    HR_TRY(optional(r, LIFETIMES_HINT, LIFETIME_NO_OFFSET, &buffer.hint, err));
    HR_TRY(optional(r, LIFETIMES_OFFSET, LIFETIME_NO_OFFSET, &buffer.offset, err));
    const field upper = fields_at(&r->f, r->places[r->upper]);
    if (__builtin_add_overflow(buffer.upper, r->behind, &buffer.upper) || buffer.lower >= buffer.upper) {
        return fields_refuse(&r->f, upper, "a lifetime that ends behind its beginning", err);
    }
    if (buffer.alignment_bytes == 0) {
        return fields_refuse(&r->f, fields_at(&r->f, r->places[LIFETIMES_ALIGNMENT]),
                             "an alignment of at least 1", err);
    }
    HR_TRY(read_gaps(r, &buffer, err));
    lifetime *added = vec_push(&r->l->list);
    if (added == NULL) {
        return no_memory(r, err);
    }
    *added = buffer;
    return HR_OK;
}

hr_status lifetimes_read_input(input *in, lifetimes *l, hr_err *err)
{
    *l = (lifetimes){0};
    lifetimes_csv r = {.f.in = in, .l = l};
    hr_status status = fields_each(&r.f, read_heading, read_row, &r, err);
    if (status == HR_OK && r.f.rows == 0) {
        status = HR_FAIL(
            err, READ, "%s: needed a heading with the columns id, lower, upper and size, is empty", in->name);
    }
    fields_deinit(&r.f);
    if (status != HR_OK) {
        lifetimes_deinit(l);
    }
    return status;
}

hr_status lifetimes_read(const char *path, lifetimes *l, hr_err *err)
{
    input in;
    *l = (lifetimes){0};
    HR_TRY(input_open(&in, path, err));
    hr_status status = lifetimes_read_input(&in, l, err);
    input_close(&in);
    return status;
}
