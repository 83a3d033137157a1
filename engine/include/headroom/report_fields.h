// SPDX-License-Identifier: Apache-2.0
// The fields of a report, one row each: JSON "headroom.report/1", the Lua table and the message between processes are
// walks over these rows. A new field is a member of headroom/report.h and a row in base/report_fields.c.
#ifndef HEADROOM_REPORT_FIELDS_H
#define HEADROOM_REPORT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/report.h"

typedef enum hr_field_kind {
    HR_FIELD_BYTES,       // uint64_t; HR_NONE: null
    HR_FIELD_COUNT,       // uint64_t; HR_NONE: null
    HR_FIELD_COUNT32,     // uint32_t; HR_NO_ID: null
    HR_FIELD_REAL,        // double, 0 or more; not finite: null
    HR_FIELD_SHARE,       // double, 0 to 1; not finite: null
    HR_FIELD_LOSS,        // double, shown as a float32; not finite: null
    HR_FIELD_TEXT,        // char[size]; "": null
    HR_FIELD_NAME,        // char[size]; "": a name that is empty
    HR_FIELD_FLAG,        // bool
    HR_FIELD_HASH,        // uint64_t, shown as 16 hexadecimal digits
    HR_FIELD_WORD,        // an enum, or a bool of size 1, below `most`; shown as word(value)
    HR_FIELD_PAIRS,       // char[size], "a.b=1 c.d=2"; shown as a list
    HR_FIELD_BY_CATEGORY, // uint64_t[HR_CATEGORY_COUNT], bytes
    HR_FIELD_AMOUNTS,     // uint64_t[size / 8]
    HR_FIELD_OBJECT,      // `fields` of the record at `offset` of this one
    HR_FIELD_ROWS, // an array of at most `most` records of `size` bytes; uint32_t how many at count_offset
    HR_FIELD_LIST, // a pointer to records of `size` bytes, owned by the report; size_t how many at count_offset
} hr_field_kind;

typedef struct hr_field {
    const char *name; // a term; NULL: it is not shown, only carried between processes
    hr_field_kind kind;
    size_t offset, size;
    bool (*applies)(const hr_report *report); // NULL: always; where it does not, null is shown
    const struct hr_field *fields;            // OBJECT, ROWS, LIST
    size_t count_offset;
    uint32_t most;
    const char *(*word)(uint32_t value);
} hr_field;

#define HR_FIELD(type, member, shown, of)                                                                    \
    {                                                                                                        \
        .name = (shown), .kind = HR_FIELD_##of, .offset = offsetof(type, member),                            \
        .size = sizeof((type *)NULL)->member                                                                 \
    }
#define HR_FIELD_END                                                                                         \
    {                                                                                                        \
        .name = NULL, .size = 0                                                                              \
    }

const hr_field *hr_report_fields(void);
const hr_field *hr_oom_fields(void); // of an hr_report_oom

static inline bool hr_field_is_end(const hr_field *field)
{
    return field->size == 0 && field->kind != HR_FIELD_OBJECT;
}

// The uint32_t of a WORD, whatever its size.
uint32_t hr_field_word_value(const hr_field *field, const void *record);
// Of ROWS and LIST: the first record and how many there are.
const void *hr_field_records(const hr_field *field, const void *record, size_t *count);

#endif
