// SPDX-License-Identifier: Apache-2.0
// The keys of a preset file, and what to say about a key that is none of them.
#ifndef KNOBS_PRESET_KEYS_H
#define KNOBS_PRESET_KEYS_H

#include <stdbool.h>

#include "headroom/knobs.h"

#include "knobs/yaml.h"

bool preset_is_group(const char *key); // "batch": the first word of some knob
bool preset_is_word(const char *key);  // title, description, extends, model, widths
bool preset_is_number(const hr_knob_row *row);
const hr_knob_row *preset_find_row(const char *group, const char *key); // NULL when unknown

// `node` has a key that is unknown in `group` (NULL: at the left margin).
void preset_report_unknown(yaml_file *file, const char *group, const yaml_node *node);
// `batch: 32`: a group without keys.
void preset_report_bare_group(yaml_file *file, const yaml_node *node);

#endif
