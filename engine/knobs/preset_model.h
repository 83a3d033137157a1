// SPDX-License-Identifier: Apache-2.0
// The model part of an open preset, for the model reader.
#ifndef KNOBS_PRESET_MODEL_H
#define KNOBS_PRESET_MODEL_H

#include "headroom/preset.h"

#include "knobs/yaml.h"

// The mapping with inputs, labels, loss and layers, after `model: NAME` and `extends:` were followed; *file is
// the file it stands in (problems of the model are reported there). Never NULL for an open preset.
const yaml_node *preset_model(const hr_preset *preset, yaml_file **file);

#endif
