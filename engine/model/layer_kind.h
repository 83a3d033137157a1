// SPDX-License-Identifier: Apache-2.0
// The kinds of layers: one row per kind with the attributes a person may write and the function that expands it
// into operations. The reader is generic over these rows; a new kind is a row and an expand function.
#ifndef MODEL_LAYER_KIND_H
#define MODEL_LAYER_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/builder.h"

typedef enum attr_type {
    ATTR_TYPE_INT,
    ATTR_TYPE_PAIR, // N or [height, width]
    ATTR_TYPE_REAL,
    ATTR_TYPE_CHOICE,  // one of the row's words, stored as its index
    ATTR_TYPE_PADDING, // same, valid or N
    ATTR_TYPE_SHAPE,   // [a, b, …], per sample
} attr_type;

typedef enum attr_id {
    ATTR_NONE, // ends a kind's list
    ATTR_UNITS,
    ATTR_FILTERS,
    ATTR_KERNEL,
    ATTR_SIZE,
    ATTR_STRIDE,
    ATTR_POOL_STRIDE, // written `stride` too; 0: as size
    ATTR_PADDING,
    ATTR_GROUPS,
    ATTR_MULTIPLIER,
    ATTR_BIAS,
    ATTR_ACTIVATION, // hr_act
    ATTR_INIT,       // index into LAYER_INITS
    ATTR_EPSILON,
    ATTR_MOMENTUM,
    ATTR_SHAPE,
    ATTR_COUNT
} attr_id;

typedef struct attr_pair {
    int32_t h, w;
} attr_pair;

typedef struct attr_padding {
    bool same; // TensorFlow's: as many outputs as the stride allows, the odd pixel at the bottom and right
    int32_t amount; // otherwise: on each of the four sides
} attr_padding;

typedef union attr_value {
    int64_t integer; // INT, CHOICE
    double real;
    attr_pair pair;
    attr_padding padding;
    hr_shape shape; // without the batch
} attr_value;

enum { ATTR_MAX_CHOICES = 4 };

typedef struct attr_row {
    const char *name;
    attr_type type;
    bool required;
    double min, max; // INT, PAIR, REAL, PADDING amount, SHAPE dimensions; inclusive
    double fallback; // when not written: the number, both of a pair, a choice's index; padding: valid
    const char *choices[ATTR_MAX_CHOICES + 1];
} attr_row;

enum { LAYER_MAX_INPUTS = 2, LAYER_MAX_ATTRS = 8 };

// One layer as it was written, defaults filled in.
typedef struct layer_spec {
    uint32_t input[LAYER_MAX_INPUTS]; // values
    attr_value value[ATTR_COUNT];     // those of the kind's list
} layer_spec;

typedef enum layer_needs { LAYER_NEEDS_ANY, LAYER_NEEDS_IMAGE, LAYER_NEEDS_FEATURES } layer_needs;

typedef struct layer_kind {
    const char *name;
    uint32_t inputs; // 1: `input`, the layer before it by default; 2: `inputs` must be written
    layer_needs needs;
    uint8_t attrs[LAYER_MAX_ATTRS + 1]; // attr_id, ended by ATTR_NONE
    // Returns the layer's output "NAME/out", HR_NO_ID when the layer is broken.
    uint32_t (*expand)(model_builder *b, const layer_spec *spec);
} layer_kind;

enum { LAYER_KIND_COUNT = 11 };

const layer_kind *layer_kind_at(size_t index);     // 0 … LAYER_KIND_COUNT - 1
const layer_kind *layer_kind_of(const char *name); // NULL when there is none
const attr_row *attr_row_of(attr_id id);

#endif
