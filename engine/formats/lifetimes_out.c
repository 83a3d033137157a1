// SPDX-License-Identifier: Apache-2.0
// Writing lifetimes: only the columns that say something.
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "formats/lifetimes_columns.h"
#include "formats/lifetimes_csv.h"

typedef struct lifetimes_out {
    const lifetimes *l;
    const uint64_t *offsets; // of the caller, or NULL
    bool has[LIFETIMES_COLUMNS];
    text row;
} lifetimes_out;

static uint64_t offset_of(const lifetimes_out *o, uint32_t k)
{
    return o->offsets != NULL ? o->offsets[k] : o->l->list.data[k].offset;
}

static void look(lifetimes_out *o)
{
    o->has[LIFETIMES_ID] = o->has[LIFETIMES_LOWER] = o->has[LIFETIMES_UPPER] = o->has[LIFETIMES_SIZE] = true;
    o->has[LIFETIMES_OFFSET] = o->offsets != NULL;
    for (uint32_t k = 0; k < o->l->list.count; k++) {
        const lifetime *b = &o->l->list.data[k];
        o->has[LIFETIMES_ALIGNMENT] |= b->alignment_bytes != 1;
        o->has[LIFETIMES_HINT] |= b->hint != LIFETIME_NO_OFFSET;
        o->has[LIFETIMES_GAPS] |= b->gap_count > 0;
        o->has[LIFETIMES_OFFSET] |= b->offset != LIFETIME_NO_OFFSET;
    }
}

static void append_heading(lifetimes_out *o)
{
    for (uint32_t c = 0; c < LIFETIMES_COLUMNS; c++) {
        if (o->has[c]) {
            text_append(&o->row, "%s%s", c == 0 ? "" : ",", lifetimes_columns[c].names[0]);
        }
    }
    text_append(&o->row, "\n");
}

static void append_id(text *row, const char *id)
{
    if (strpbrk(id, ",\"\r\n") == NULL) {
        text_append(row, "%s", id);
        return;
    }
    text_append(row, "\"");
    for (const char *c = id; *c != '\0'; c++) {
        text_append_bytes(row, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    }
    text_append(row, "\"");
}

static void append_gaps(lifetimes_out *o, const lifetime *b)
{
    for (uint32_t k = 0; k < b->gap_count; k++) {
        const lifetime_gap *gap = &o->l->gaps.data[b->first_gap + k];
        text_append(&o->row, "%s%" PRIu64 "-%" PRIu64, k == 0 ? "" : " ", gap->lower, gap->upper);
        if (gap->high > 0) {
            text_append(&o->row, "@%" PRIu64 ":%" PRIu64, gap->low, gap->high);
        }
    }
}

static void append_offset(text *row, uint64_t offset)
{
    if (offset != LIFETIME_NO_OFFSET) {
        text_append(row, "%" PRIu64, offset);
    }
}

static void append_row(lifetimes_out *o, uint32_t k)
{
    const lifetime *b = &o->l->list.data[k];
    append_id(&o->row, intern_text(&o->l->ids, b->id));
    text_append(&o->row, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, b->lower, b->upper, b->bytes);
    if (o->has[LIFETIMES_ALIGNMENT]) {
        text_append(&o->row, ",%" PRIu64, b->alignment_bytes);
    }
    if (o->has[LIFETIMES_HINT]) {
        text_append(&o->row, ",");
        append_offset(&o->row, b->hint);
    }
    if (o->has[LIFETIMES_GAPS]) {
        text_append(&o->row, ",");
        append_gaps(o, b);
    }
    if (o->has[LIFETIMES_OFFSET]) {
        text_append(&o->row, ",");
        append_offset(&o->row, offset_of(o, k));
    }
    text_append(&o->row, "\n");
}

static hr_status put_row(lifetimes_out *o, file_writer *w, hr_err *err)
{
    if (o->row.failed) {
        return HR_FAIL(err, NOMEM, "lifetimes: needed memory for one row, had none");
    }
    hr_status status = file_writer_add(w, o->row.data, o->row.length, err);
    o->row.length = 0;
    return status;
}

static hr_status put_rows(lifetimes_out *o, file_writer *w, hr_err *err)
{
    look(o);
    append_heading(o);
    HR_TRY(put_row(o, w, err));
    for (uint32_t k = 0; k < o->l->list.count; k++) {
        append_row(o, k);
        HR_TRY(put_row(o, w, err));
    }
    return HR_OK;
}

hr_status lifetimes_write(const char *path, const lifetimes *l, const uint64_t *offsets, hr_err *err)
{
    file_writer *w;
    lifetimes_out o = {.l = l, .offsets = offsets};
    HR_TRY(file_writer_open(path, &w, err));
    hr_status status = put_rows(&o, w, err);
    text_deinit(&o.row);
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    return file_writer_commit(w, err);
}
