// SPDX-License-Identifier: Apache-2.0
// Paths of lessons' conditions: fields of a report, knobs, and what the event stream adds.
#include <math.h>
#include <string.h>

#include "headroom/lesson.h"
#include "headroom/report_fields.h"

#include "base/text.h"
#include "knobs/lesson.h"

enum { SEGMENT_MAX = 128 };

// ---- fields of a report ---------------------------------------------------------------------------------------

hr_lesson_value lesson_real(hr_lesson_kind kind, double number)
{
    return (hr_lesson_value){.kind = isfinite(number) ? kind : HR_LESSON_UNKNOWN, .number = number};
}

static hr_lesson_value whole_value(hr_lesson_kind kind, uint64_t number)
{
    return (hr_lesson_value){.kind = number == HR_NONE ? HR_LESSON_UNKNOWN : kind, .number = (double)number};
}

hr_lesson_value lesson_word(const char *word)
{
    hr_lesson_value value = {.kind = word[0] == '\0' ? HR_LESSON_UNKNOWN : HR_LESSON_WORD};
    text_copy(value.word, sizeof value.word, word);
    return value;
}

static double read_real(const void *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t read_whole(const hr_field *field, const void *at)
{
    uint64_t value = 0;
    uint32_t small = 0;
    if (field->kind == HR_FIELD_COUNT32) {
        memcpy(&small, at, sizeof small);
        return small == HR_NO_ID ? HR_NONE : small;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

// False: it is no value of one word or number.
static bool read_field(const hr_field *field, const void *record, hr_lesson_value *out)
{
    const char *at = (const char *)record + field->offset;
    switch (field->kind) {
    case HR_FIELD_BYTES:
        *out = whole_value(HR_LESSON_BYTES, read_whole(field, at));
        return true;
    case HR_FIELD_COUNT:
    case HR_FIELD_COUNT32:
        *out = whole_value(HR_LESSON_COUNT, read_whole(field, at));
        return true;
    case HR_FIELD_REAL:
    case HR_FIELD_LOSS:
        *out = lesson_real(HR_LESSON_REAL, read_real(at));
        return true;
    case HR_FIELD_SHARE:
        *out = lesson_real(HR_LESSON_SHARE, read_real(at));
        return true;
    case HR_FIELD_TEXT:
    case HR_FIELD_NAME:
        *out = lesson_word(at);
        return true;
    case HR_FIELD_FLAG:
        *out = whole_value(HR_LESSON_COUNT, *(const bool *)at);
        return true;
    case HR_FIELD_WORD:
        *out = lesson_word(field->word(hr_field_word_value(field, record)));
        return true;
    case HR_FIELD_HASH:
    case HR_FIELD_PAIRS:
    case HR_FIELD_BY_CATEGORY:
    case HR_FIELD_AMOUNTS:
    case HR_FIELD_OBJECT:
    case HR_FIELD_ROWS:
    case HR_FIELD_LIST:
        break;
    }
    return false;
}

static bool next_segment(const char **path, char segment[SEGMENT_MAX])
{
    const size_t length = strcspn(*path, ".");
    if (length == 0 || length >= SEGMENT_MAX) {
        return false;
    }
    memcpy(segment, *path, length);
    segment[length] = '\0';
    *path += length + ((*path)[length] == '.');
    return true;
}

static const hr_field *find_field(const hr_field *fields, const char *name)
{
    for (; !hr_field_is_end(fields); fields++) {
        if (fields->name != NULL && strcmp(fields->name, name) == 0) {
            return fields;
        }
    }
    return NULL;
}

static bool read_path(const hr_field *fields, const void *record, const hr_report *report, const char *path,
                      hr_lesson_value *out);

// `host.stages.cache.peak_bytes`, `model.layers.count`: a row by its name, or how many there are.
static bool read_rows(const hr_field *field, const void *record, const hr_report *report, const char *path,
                      hr_lesson_value *out)
{
    char segment[SEGMENT_MAX];
    size_t count = 0;
    hr_lesson_value name;
    if (!next_segment(&path, segment)) {
        return false;
    }
    const char *row = report == NULL ? NULL : hr_field_records(field, record, &count);
    if (strcmp(segment, "count") == 0) {
        *out = whole_value(HR_LESSON_COUNT, count);
        return *path == '\0';
    }
    for (size_t k = 0; k < count; k++, row += field->size) {
        if (read_field(field->fields, row, &name) && strcmp(name.word, segment) == 0) {
            return read_path(field->fields, row, report, path, out);
        }
    }
    return read_path(field->fields, NULL, NULL, path, out);
}

static bool read_category(const hr_field *field, const void *record, const char *path, hr_lesson_value *out)
{
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        if (strcmp(hr_category_name((hr_category)k), path) == 0) {
            const uint64_t *bytes =
                record == NULL ? NULL : (const void *)((const char *)record + field->offset);
            *out = whole_value(HR_LESSON_BYTES, bytes == NULL ? HR_NONE : bytes[k]);
            return true;
        }
    }
    return false;
}

// Without a report: whether there is such a path; its value is unknown.
static bool read_path(const hr_field *fields, const void *record, const hr_report *report, const char *path,
                      hr_lesson_value *out)
{
    char segment[SEGMENT_MAX];
    const hr_field *field = next_segment(&path, segment) ? find_field(fields, segment) : NULL;
    *out = (hr_lesson_value){.kind = HR_LESSON_UNKNOWN};
    if (field == NULL) {
        return false;
    }
    if (report != NULL && field->applies != NULL && !field->applies(report)) {
        report = NULL;
        record = NULL;
    }
    if (field->kind == HR_FIELD_OBJECT) {
        record = record == NULL ? NULL : (const char *)record + field->offset;
        return read_path(field->fields, record, report, path, out);
    }
    if (field->kind == HR_FIELD_ROWS || field->kind == HR_FIELD_LIST) {
        return read_rows(field, record, report, path, out);
    }
    if (field->kind == HR_FIELD_BY_CATEGORY) {
        return read_category(field, record, path, out);
    }
    return *path == '\0' && (record == NULL || read_field(field, record, out));
}

// ---- what a run says ----------------------------------------------------------------------------------------------------

static bool read_knob(const hr_lesson_seen *seen, const char *key, hr_lesson_value *out)
{
    char typed[HR_KNOB_TEXT_MAX];
    const hr_knob_row *row = hr_knob_find(key, NULL);
    *out = (hr_lesson_value){.kind = HR_LESSON_UNKNOWN};
    if (row == NULL || seen == NULL) {
        return row != NULL;
    }
    const bool has_value = hr_knob_is_set(&seen->knobs, row->id) || row->preset_default[0] != '\0';
    if (row->type == HR_KNOB_INT && has_value) {
        *out = lesson_real(HR_LESSON_COUNT, (double)hr_knob_int(&seen->knobs, row->id));
    } else if (row->type == HR_KNOB_REAL && has_value) {
        *out = lesson_real(HR_LESSON_REAL, hr_knob_real(&seen->knobs, row->id));
    } else if (row->type == HR_KNOB_BYTES) {
        *out = whole_value(HR_LESSON_BYTES, hr_knob_bytes(&seen->knobs, row->id, HR_NONE));
    } else {
        *out = lesson_word(hr_knob_format(&seen->knobs, row->id, typed));
    }
    return true;
}

static double growth_of(const hr_lesson_events *e)
{
    return e->steps < 2
               ? 0
               : ((double)e->last_floor_bytes - (double)e->first_floor_bytes) / (double)(e->steps - 1);
}

static bool read_event(const hr_lesson_seen *seen, const char *name, hr_lesson_value *out)
{
    static const hr_lesson_events none = {0};
    const hr_lesson_events *e = seen == NULL ? &none : &seen->events;
    if (strcmp(name, "steps") == 0) {
        *out = whole_value(HR_LESSON_COUNT, e->steps);
    } else if (strcmp(name, "allocations") == 0) {
        *out = whole_value(HR_LESSON_COUNT, e->allocations);
    } else if (strcmp(name, "update_bytes") == 0) {
        *out = whole_value(HR_LESSON_BYTES, e->update_bytes);
    } else if (strcmp(name, "lost_loss") == 0) {
        *out = whole_value(HR_LESSON_COUNT, e->lost_loss);
    } else if (strcmp(name, "growth_bytes") == 0) {
        *out = lesson_real(HR_LESSON_BYTES, growth_of(e));
    } else {
        return false;
    }
    return true;
}

// "none" where nothing was refused: words are compared with it.
static bool read_cause(const hr_lesson_seen *seen, hr_lesson_value *out)
{
    *out = seen == NULL ? (hr_lesson_value){.kind = HR_LESSON_UNKNOWN}
                        : lesson_word(hr_oom_cause_name(seen->report.oom.cause));
    return true;
}

bool lesson_read_path(const hr_lesson_seen *seen, const char *path, hr_lesson_value *out)
{
    if (strncmp(path, "knobs.", 6) == 0) {
        return read_knob(seen, path + 6, out);
    }
    if (strncmp(path, "events.", 7) == 0) {
        return read_event(seen, path + 7, out);
    }
    if (strcmp(path, "oom.cause") == 0) {
        return read_cause(seen, out);
    }
    const hr_report *report = seen == NULL ? NULL : &seen->report;
    return read_path(hr_report_fields(), report, report, path, out);
}
