// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes: where the file of a model has a whole number it may also have `$sequence`, `$width*4` or
// `$resolution/16*$resolution/16`. What they stand for are the knobs model.*; the model says which it has, and their
// defaults:
//
//   sizes: {sequence: 1024, depth: 12}
#ifndef MODEL_SIZES_H
#define MODEL_SIZES_H

#include "model/builder.h"

// Whether the word is a size or a product with one.
bool size_is_symbolic(const yaml_node *node);
// What it stands for: factors and divisors from left to right, every quotient whole. False, with *why a sentence's end
// ("no size is called 'depht'"), when it stands for nothing.
enum { SIZE_WHY_MAX = 192 };
bool size_value(model_builder *b, const yaml_node *node, int64_t *value, char why[SIZE_WHY_MAX]);

// Behind the layers: a size that stands nowhere would be a knob that changes nothing.
void sizes_refuse_unused(model_builder *b);
// Whether every knob of model.* that is set is a size of this model. KNOB error.
HR_MUST_CHECK hr_status sizes_check_knobs(const model_builder *b, const char *model, hr_err *err);

#endif
