// SPDX-License-Identifier: Apache-2.0
// One value of a preset: what it may be where it stands, and into its knob.
#ifndef KNOBS_PRESET_VALUE_H
#define KNOBS_PRESET_VALUE_H

#include "headroom/preset.h"

#include "knobs/yaml.h"

// Where values go.
typedef struct preset_values {
    hr_knobs *knobs;
    hr_origin *origin; // [HR_KNOB_COUNT]
    bool trust;        // a value may lead out of the file's folder
} preset_values;

// Where a value stands.
typedef struct preset_place {
    yaml_file *file;
    const char *path;
} preset_place;

// Sets the knob of `row` from the node. What is wrong with the value is reported into the file, and HR_OK; NOMEM.
HR_MUST_CHECK hr_status preset_take_value(const preset_values *to, const preset_place *here,
                                          const hr_knob_row *row, const yaml_node *node, hr_err *err);

#endif
