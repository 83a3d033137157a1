// SPDX-License-Identifier: Apache-2.0
// "headroom.report/1": one shape for plan and run, null where it does not apply. Its fields are rows of
// headroom/report_fields.h.
#include <inttypes.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/event.h"
#include "headroom/report_fields.h"

#include "app/cli/emit.h"
#include "app/cli/report.h"

static void print_by_category(emitter *e, const char *name, const uint64_t *by_category)
{
    emit_object(e, name);
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        emit_count(e, hr_category_name((hr_category)k), by_category[k]);
    }
    emit_end_object(e);
}

static void print_hash(emitter *e, const char *name, uint64_t hash)
{
    char text[20];
    (void)snprintf(text, sizeof text, "%016" PRIx64, hash);
    emit_text(e, name, text);
}

static void print_records(emitter *e, const hr_field *f, const void *record, const hr_report *r)
{
    size_t count = 0;
    const char *first = hr_field_records(f, record, &count);
    emit_array(e, f->name);
    for (size_t k = 0; k < count; k++) {
        emit_row(e, NULL);
        report_emit_fields(e, f->fields, first + k * f->size, r);
        emit_end_object(e);
    }
    emit_end_array(e);
}

static void print_number(emitter *e, const hr_field *f, const void *at)
{
    const bool is_none = f->kind == HR_FIELD_COUNT32 && *(const uint32_t *)at == HR_NO_ID;
    switch ((int)f->kind) {
    case HR_FIELD_COUNT32:
        emit_count(e, f->name, is_none ? HR_NONE : *(const uint32_t *)at);
        break;
    case HR_FIELD_REAL:
    case HR_FIELD_SHARE:
        emit_real(e, f->name, *(const double *)at, EMIT_EXACT);
        break;
    case HR_FIELD_LOSS:
        emit_real(e, f->name, *(const double *)at, EMIT_LOSS);
        break;
    case HR_FIELD_FLAG:
        emit_bool(e, f->name, *(const bool *)at);
        break;
    case HR_FIELD_HASH:
        print_hash(e, f->name, *(const uint64_t *)at);
        break;
    default:
        emit_count(e, f->name, *(const uint64_t *)at);
    }
}

static void print_field(emitter *e, const hr_field *f, const void *record, const hr_report *r)
{
    const void *at = (const char *)record + f->offset;
    switch ((int)f->kind) {
    case HR_FIELD_OBJECT:
        emit_object(e, f->name);
        report_emit_fields(e, f->fields, at, r);
        emit_end_object(e);
        break;
    case HR_FIELD_ROWS:
    case HR_FIELD_LIST:
        print_records(e, f, record, r);
        break;
    case HR_FIELD_BY_CATEGORY:
        print_by_category(e, f->name, at);
        break;
    case HR_FIELD_PAIRS:
        emit_pairs(e, f->name, at);
        break;
    case HR_FIELD_WORD:
        emit_text(e, f->name, f->word(hr_field_word_value(f, record)));
        break;
    case HR_FIELD_TEXT:
    case HR_FIELD_NAME:
        emit_text(e, f->name, f->kind == HR_FIELD_TEXT && *(const char *)at == '\0' ? NULL : at);
        break;
    default:
        print_number(e, f, at);
    }
}

void report_emit_fields(emitter *e, const hr_field *fields, const void *record, const hr_report *r)
{
    for (const hr_field *f = fields; !hr_field_is_end(f); f++) {
        if (f->name != NULL && f->applies != NULL && !f->applies(r)) {
            emit_null(e, f->name);
        } else if (f->name != NULL) {
            print_field(e, f, record, r);
        }
    }
}

void report_print_json(const hr_report *r, FILE *out)
{
    emitter e = {.out = out};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.report/1");
    report_emit_fields(&e, hr_report_fields(), r, r);
    emit_end_object(&e);
}
