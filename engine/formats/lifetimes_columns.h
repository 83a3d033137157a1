// SPDX-License-Identifier: Apache-2.0
// The columns of a file of lifetimes: for its reader, its writer, and whoever has to recognise it.
#ifndef FORMATS_LIFETIMES_COLUMNS_H
#define FORMATS_LIFETIMES_COLUMNS_H

#include "formats/fields.h"

enum {
    LIFETIMES_ID,
    LIFETIMES_LOWER,
    LIFETIMES_UPPER,
    LIFETIMES_END,
    LIFETIMES_SIZE,
    LIFETIMES_ALIGNMENT,
    LIFETIMES_HINT,
    LIFETIMES_GAPS,
    LIFETIMES_OFFSET,
    LIFETIMES_COLUMNS
};
_Static_assert((int)LIFETIMES_COLUMNS <= (int)FIELDS_COLUMNS_MAX, "columns fit");

extern const field_column lifetimes_columns[LIFETIMES_COLUMNS];

#endif
