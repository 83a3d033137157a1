// SPDX-License-Identifier: Apache-2.0
// Reads the `model:` mapping of a preset into a builder.
#ifndef MODEL_READ_H
#define MODEL_READ_H

#include "model/builder.h"

// Fills *b (zeroed, but for b->file) from the mapping. What is wrong with the model is reported into the file and
// counted in b->problems; b->nomem says that memory ran short. Only without either is b->model complete.
void model_read(model_builder *b, const yaml_node *root, const char *default_name);

// The part of it that reads the list of layers, in a file of its own.
void model_read_layers(model_builder *b, const yaml_node *layers);

// What layers and models may be called: 1 to MODEL_NAME_MAX of these characters.
bool model_is_name(const yaml_node *node);
#define MODEL_NAME_RULE "a name has 1 to 64 letters, digits, '_', '-' or '.', and nothing else"
// A copy that lives as long as the model; NULL (b->nomem) when memory is short.
const char *model_keep_name(model_builder *b, const char *name);

#endif
