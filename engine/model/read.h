// SPDX-License-Identifier: Apache-2.0
// Reads the `model:` mapping of a preset into a builder.
#ifndef MODEL_READ_H
#define MODEL_READ_H

#include "model/builder.h"

// Fills *b (zeroed, but for b->file and b->sizes.knobs) from the mapping. What is wrong with the model is reported into the file and
// counted in b->problems; b->nomem says that memory ran short. Only without either is b->model complete.
void model_read(model_builder *b, const yaml_node *root, const char *default_name);

#endif
