// SPDX-License-Identifier: Apache-2.0
#include "app/lua/described.h"

#include "headroom/terms.h"

bool described_is_table(const hr_field *field)
{
    return field->kind == HR_FIELD_OBJECT || field->kind == HR_FIELD_ROWS || field->kind == HR_FIELD_LIST;
}

const char *described_type(const hr_field *field)
{
    switch ((int)field->kind) {
    case HR_FIELD_BYTES:
        return "hr.Bytes";
    case HR_FIELD_COUNT:
    case HR_FIELD_COUNT32:
        return "integer";
    case HR_FIELD_REAL:
    case HR_FIELD_SHARE:
    case HR_FIELD_LOSS:
        return "number";
    case HR_FIELD_FLAG:
        return "boolean";
    case HR_FIELD_PAIRS:
        return "string[]";
    case HR_FIELD_BY_CATEGORY:
        return "table<string, hr.Bytes>";
    default:
        return "string";
    }
}

const char *described_line(const char *name)
{
    const hr_term *term = hr_term_find(name);
    return term == NULL ? "" : term->line;
}

static void print_choices(FILE *to, const hr_knob_row *row)
{
    for (int k = 0; row->choices[k] != NULL; k++) {
        fprintf(to, "%s'\"%s\"'", k > 0 ? "|" : "", row->choices[k]);
    }
}

void described_knob_type(FILE *to, const hr_knob_row *row)
{
    static const char *const types[] = {[HR_KNOB_INT] = "integer",
                                        [HR_KNOB_REAL] = "number",
                                        [HR_KNOB_BYTES] = "hr.Size",
                                        [HR_KNOB_TEXT] = "string"};
    if (hr_knob_is_switch(row)) {
        fputs("boolean", to);
    } else if (row->type == HR_KNOB_CHOICE) {
        print_choices(to, row);
    } else {
        fputs(types[row->type], to);
    }
}
