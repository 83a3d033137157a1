// SPDX-License-Identifier: Apache-2.0
// The model part of an open preset, for the model reader.
#ifndef KNOBS_PRESET_MODEL_H
#define KNOBS_PRESET_MODEL_H

#include "headroom/preset.h"

#include "knobs/yaml.h"

// The mapping with inputs, labels, loss and layers, after `model: NAME` and `extends:` were followed; *file is
// the file it stands in (problems of the model are reported there). Never NULL for an open preset.
const yaml_node *preset_model(const hr_preset *preset, yaml_file **file);

// A section `widths: {LAYER: N}` of a preset: layers of the model that are narrower than it says.
typedef struct preset_widths {
    const yaml_node *node; // a mapping of whole numbers
    yaml_file *file;       // where it stands: what is wrong with it is reported there
} preset_widths;

// Those of the model and of what extends it, from the base to the derived: a later one counts.
const preset_widths *preset_model_widths(const hr_preset *preset, uint32_t *count);

// The files that it was read from, the one that was asked for first; NULL behind the last.
const char *preset_file(const hr_preset *preset, uint32_t k);

// One holder more: the preset stays until each has closed it (hr_preset_close). Any thread.
hr_preset *preset_hold(const hr_preset *preset);

#endif
