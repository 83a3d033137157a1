// SPDX-License-Identifier: Apache-2.0
// The kinds of layers that a preset's `model:` may have, with their attributes: what a manual and a completion say of them.
// Static tables: any thread.
#ifndef HEADROOM_LAYERS_H
#define HEADROOM_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

enum { HR_LAYER_VALUES_MAX = 160 };

typedef struct hr_layer_kind {
    const char *name;       // "conv2d", as behind `kind:`
    size_t attribute_count; // beside name, kind and inputs
    size_t min_inputs, max_inputs;
} hr_layer_kind;

typedef struct hr_layer_attribute {
    const char *name; // "kernel"
    bool required;
    char values[HR_LAYER_VALUES_MAX];    // "N or [height, width], 1 to 65535"
    char otherwise[HR_LAYER_VALUES_MAX]; // "1": where it is not written; "" when nothing stands for it
} hr_layer_attribute;

bool hr_layer_kind_at(size_t index, hr_layer_kind *kind); // false behind the last
bool hr_layer_attribute_at(size_t kind, size_t index, hr_layer_attribute *attribute);

#endif
