// SPDX-License-Identifier: Apache-2.0
// A dictionary of a snapshot that is not yet part of anything: what torch_parts.c and torch_items.c share, nobody else's.
#ifndef FORMATS_TORCH_RECORD_H
#define FORMATS_TORCH_RECORD_H

#include "formats/pickle.h"
#include "formats/torch_keys.h"
#include "formats/torch_parts.h"

typedef struct torch_record {
    uint32_t present; // bit by key
    uint64_t fields
        [TORCH_KEYS]; // a number; a text's number; of a list what it stands for, TORCH_NONE when it is empty
} torch_record;

_Static_assert(TORCH_KEYS <= 32, "present has a bit for each key");

extern const char *const torch_words[TORCH_WORDS];

static inline bool torch_has(const torch_record *r, torch_word key)
{
    return r->present >> key & 1;
}

static inline uint64_t torch_field(const torch_record *r, torch_word key, uint64_t otherwise)
{
    return torch_has(r, key) ? r->fields[key] : otherwise;
}

// What a record describes. READ where a number is out of its range, NOMEM.
HR_MUST_CHECK hr_status torch_read_row(torch_parts *parts, const pickle *p, const torch_record *r,
                                       torch_row *row, hr_err *err);
// `past`: the latest entry of its history, or an empty record.
HR_MUST_CHECK hr_status torch_read_block(const pickle *p, const torch_record *r, const torch_record *past,
                                         torch_block *b, hr_err *err);
HR_MUST_CHECK hr_status torch_read_segment(torch_parts *parts, const pickle *p, const torch_record *r,
                                           torch_segment *s, hr_err *err);

#endif
