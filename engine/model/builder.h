// SPDX-License-Identifier: Apache-2.0
// A model under construction. Layers append parameters, values and nodes here; shapes come from the rows of the
// operations. A problem is reported into the preset's file, and marks the layer in hand as broken: from then on
// its nodes are not built, and the layers that read it are checked but not expanded.
#ifndef MODEL_BUILDER_H
#define MODEL_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_mem.h"
#include "base/vec.h"
#include "knobs/yaml.h"
#include "model/model.h"

enum {
    MODEL_NAME_MAX = 64,      // characters of a layer's name
    MODEL_MAX_PROBLEMS = 100, // then reading stops
    MODEL_MAX_LAYERS = 32768, // a short file of repeats may not ask for more
};
// Elements of one parameter, and of one value per sample. Far above what any card holds, and far enough below
// 2^64 that a batch of it still fits into 64 bits.
#define MODEL_MAX_ELEMENTS (UINT64_C(1) << 40)

// The parameters of a layer, and which layer declared them.
typedef struct param_span {
    uint32_t layer, first, end;
} param_span;

// What "$sequence" stands for while a model is read (sizes.c).
typedef struct model_sizes {
    const hr_knobs *knobs;
    const yaml_node *written; // the `sizes` of the model; NULL: it has none
    uint64_t used;            // bit per child of `written`
} model_sizes;

// A width of a layer that a preset has changed, and the section where it stands; NULL: none.
typedef struct model_width {
    const yaml_node *node;
    const struct preset_widths *section;
} model_width;

// All of them (widths.c).
typedef struct model_widths {
    const struct preset_widths *sections; // from the base to the derived
    uint32_t count;
    model_width here, last; // behind the layer in hand or what it reads; that was read last
} model_widths;

typedef struct model_builder {
    hr_model model; // first: the finished model is this very object (model_destroy)
    arena names;    // every name of the model
    VEC(model_param) params;
    VEC(model_value) values;
    VEC(model_node) nodes;
    VEC(model_layer) layers;
    VEC(model_loss) losses, layer_losses; // that were written, of layers
    yaml_file *file;                      // while building
    model_sizes sizes;                    // the same
    model_widths widths;                  // the same
    const yaml_node *node;                // of the layer in hand; NULL outside layers
    uint32_t layer;                       // in hand; HR_NO_ID outside layers
    param_span shared; // what the layer in hand takes its parameters from; layer HR_NO_ID: it has its own
    uint32_t problems; // reported so far
    bool broken;       // the layer in hand has a problem
    bool nomem;        // host memory ran short: nothing of the model is valid
} model_builder;

// An output of a node: "LAYER/suffix", or the bare suffix outside layers.
typedef struct node_out {
    const char *suffix;
    bool batched;
} node_out;

void builder_deinit(model_builder *b); // the arrays and names; not *b itself

// Reports at a place of the file. In a layer the sentence begins with it: "layer 'conv1' (conv2d): …".
void builder_problem_at(model_builder *b, uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// The same at the layer in hand.
void builder_problem(model_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void builder_nomem(model_builder *b);

// All of these return HR_NO_ID once the layer in hand is broken or memory is short.
//
// `param` is complete but for name and layer. Of a layer that shares, the other layer's parameter of this suffix.
uint32_t builder_param(model_builder *b, const char *suffix, const model_param *param);
uint32_t builder_value(model_builder *b, const node_out *out, const op_operand *operand);
// `node` is complete but for layer and outputs, whose shapes are inferred; out[0..node->out_count) names them.
// Returns the first output.
uint32_t builder_node(model_builder *b, const model_node *node, const node_out *out);
// A loss that layers have by themselves, beside those that are written: the value that a node gave, and what it judges.
void builder_layer_loss(model_builder *b, uint32_t value, uint32_t prediction, double weight);
// A view of `input` with `shape` (batch included) and as many elements.
uint32_t builder_reshape(model_builder *b, uint32_t input, const hr_shape *shape, const char *suffix);

model_ref ref_value(uint32_t index);
model_ref ref_param(uint32_t index);

enum { SHAPE_TEXT_MAX = 128 };
// The shape of one sample: dim[0] left out. Returns text.
const char *sample_shape_text(const hr_shape *shape, char text[SHAPE_TEXT_MAX]);

#endif
