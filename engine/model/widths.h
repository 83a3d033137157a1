// SPDX-License-Identifier: Apache-2.0
// `widths: {LAYER: N}` of a preset, beside its model: filters or units of a layer, fewer than the model says (knobs/preset_model.h).
// What is wrong with a section is reported into the file it stands in, and counted in b->problems.
#ifndef MODEL_WIDTHS_H
#define MODEL_WIDTHS_H

#include "model/layer_kind.h"
#include "model/names.h"

// The width that the layer in hand was given takes the place of its own, which its file says.
void widths_apply(model_builder *b, const layer_kind *kind, layer_spec *spec);
// What a layer leaves to its readers: its own, or where it is as wide as what it reads, theirs.
model_width widths_left(const model_builder *b, const layer_kind *kind, const char *layer);
// Of what the layer in hand reads.
void widths_follow(model_builder *b, model_width from);
// Behind the layers: names that are no layer's, or those of layers without filters or units.
void widths_refuse_unknown(model_builder *b, const name_table *names);

// The file of the model, or where that is fine, of the widths that are not.
yaml_file *widths_blamed(const model_builder *b);
void widths_forget_problems(const model_builder *b);

#endif
