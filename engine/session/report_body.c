// SPDX-License-Identifier: Apache-2.0
// A report as a message: every row of headroom/report_fields.h in its order, in one walk for both ways.
#include <float.h>
#include <string.h>

#include "headroom/report_fields.h"

#include "session/codec.h"
#include "session/messages.h"

enum { REPORT_BYTES_MAX = 16 << 20 }; // a row of 20 bytes becomes one of 200

static void walk_fields(codec *c, const hr_field *fields, void *record);

// Bytes in a message of a record whose texts are empty and whose lists are too.
static size_t least_bytes(const hr_field *fields)
{
    size_t bytes = 0;
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        const bool is_long = f->kind == HR_FIELD_BYTES || f->kind == HR_FIELD_COUNT;
        bytes += is_long ? sizeof(uint64_t) : sizeof(uint32_t);
    }
    return bytes;
}

static void walk_word(codec *c, const hr_field *f, void *record)
{
    uint32_t value = hr_field_word_value(f, record);
    codec_row(c, &value, f->most);
    char *at = (char *)record + f->offset;
    if (f->size == sizeof(bool)) {
        *(bool *)at = value != 0;
    } else {
        memcpy(at, &value, sizeof value);
    }
}

static void walk_rows(codec *c, const hr_field *f, void *record)
{
    char *from = record;
    uint32_t *count = (void *)(from + f->count_offset);
    codec_row(c, count, f->most + 1);
    for (uint32_t k = 0; k < *count; k++) {
        walk_fields(c, f->fields, from + f->offset + k * f->size);
    }
}

static void walk_list(codec *c, const hr_field *f, void *record)
{
    char *from = record;
    size_t *count = (void *)(from + f->count_offset);
    void **first = (void *)(from + f->offset);
    codec_array(c, count, first, f->size, least_bytes(f->fields));
    for (size_t k = 0; k < *count && !codec_is_bad(c); k++) {
        walk_fields(c, f->fields, (char *)*first + k * f->size);
    }
}

static void walk_amounts(codec *c, uint64_t *amounts, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        codec_u64(c, &amounts[k]);
    }
}

static void walk_field(codec *c, const hr_field *f, void *record)
{
    void *at = (char *)record + f->offset;
    switch (f->kind) {
    case HR_FIELD_BYTES:
    case HR_FIELD_COUNT:
    case HR_FIELD_HASH:
        codec_u64(c, at);
        break;
    case HR_FIELD_COUNT32:
        codec_u32(c, at);
        break;
    case HR_FIELD_REAL:
    case HR_FIELD_SHARE:
        codec_amount(c, at, f->kind == HR_FIELD_SHARE ? 1 : DBL_MAX);
        break;
    case HR_FIELD_LOSS:
        codec_real(c, at);
        break;
    case HR_FIELD_TEXT:
    case HR_FIELD_NAME:
    case HR_FIELD_PAIRS:
        codec_text(c, at, f->size);
        break;
    case HR_FIELD_FLAG:
        codec_bool(c, at);
        break;
    case HR_FIELD_WORD:
        walk_word(c, f, record);
        break;
    case HR_FIELD_BY_CATEGORY:
    case HR_FIELD_AMOUNTS:
        walk_amounts(c, at, f->size / sizeof(uint64_t));
        break;
    case HR_FIELD_OBJECT:
        walk_fields(c, f->fields, at);
        break;
    case HR_FIELD_ROWS:
        walk_rows(c, f, record);
        break;
    case HR_FIELD_LIST:
        walk_list(c, f, record);
        break;
    }
}

static void walk_fields(codec *c, const hr_field *fields, void *record)
{
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        walk_field(c, f, record);
    }
}

void put_report(wire_out *out, const hr_report *report)
{
    hr_report copy = *report;
    walk_fields(&(codec){.out = out}, hr_report_fields(), &copy);
}

bool get_report(const wire_message *m, hr_report *report)
{
    wire_in in = {.data = m->body, .bytes = m->bytes, .bad = m->bytes > REPORT_BYTES_MAX};
    *report = (hr_report){0};
    walk_fields(&(codec){.in = &in}, hr_report_fields(), report);
    if (!wire_in_is_done(&in)) {
        hr_report_deinit(report);
        return false;
    }
    return true;
}
