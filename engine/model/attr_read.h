// SPDX-License-Identifier: Apache-2.0
// From a YAML node to the value of an attribute, under its row's type and range.
#ifndef MODEL_ATTR_READ_H
#define MODEL_ATTR_READ_H

#include "model/layer_kind.h"

attr_value attr_default(const attr_row *row);
// Reports what is wrong at the node; *out is then untouched.
void attr_read(model_builder *b, const attr_row *row, const yaml_node *node, attr_value *out);

#endif
