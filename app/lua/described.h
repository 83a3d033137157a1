// SPDX-License-Identifier: Apache-2.0
// What the reference (reference.c) and the stub (stub.c) both say of values: types of fields and of knobs, as LuaLS writes
// them.
#ifndef APP_LUA_DESCRIBED_H
#define APP_LUA_DESCRIBED_H

#include <stdio.h>

#include "headroom/knobs.h"
#include "headroom/report_fields.h"

enum { DESCRIBED_NAME_MAX = 96 };

// The type of a field that holds a value: "hr.Bytes", "integer", "string", …
const char *described_type(const hr_field *field);
// Of a field that is a table of its own, or a list of such.
bool described_is_table(const hr_field *field);
// What a name means, from the glossary; "" when it has none.
const char *described_line(const char *name);
// The type of a knob when it is read, with its values.
void described_knob_type(FILE *to, const hr_knob_row *row);

#endif
