// SPDX-License-Identifier: Apache-2.0
// What compress.* makes of a model that was read: layers get more parameters, or others. The result is a model like any
// other: its parameters are in canonical order, new ones behind those of their layer, and a value that was read keeps its name.
#ifndef MODEL_COMPRESS_H
#define MODEL_COMPRESS_H

#include "headroom/knobs.h"

#include "model/builder.h"

// Rewrites the builder's nodes and parameters as the knobs say; nothing where they say nothing. KNOB error where the model
// has no layer for it; the model is then not valid.
HR_MUST_CHECK hr_status model_compress(model_builder *b, const hr_knobs *knobs, const char *model,
                                       hr_err *err);

#endif
