// SPDX-License-Identifier: Apache-2.0
// The knob table in the forms that other programs and documents read.
#ifndef APP_CLI_KNOBS_H
#define APP_CLI_KNOBS_H

#include <stdbool.h>

#include "headroom/knobs.h"

enum { KNOB_GROUP_MAX = 32, KNOB_RANGE_MAX = 96 };

// "batch" of "batch.size", "size" of it.
void knob_group(const hr_knob_row *row, char group[KNOB_GROUP_MAX]);
const char *knob_leaf(const hr_knob_row *row);
// Whether `row` is the first of its group in the table.
bool knob_begins_group(const hr_knob_row *row);
// "1 to 1048576 samples", "sgd, momentum, adam", "a text".
const char *knob_range(const hr_knob_row *row, char range[KNOB_RANGE_MAX]);
// The default as it is shown: "none" where there is none.
const char *knob_default(const hr_knob_row *row);

void knobs_print_json(void);
// A JSON schema (draft 2020-12) for preset files.
void knobs_print_schema(void);
void knobs_print_markdown(void);

#endif
