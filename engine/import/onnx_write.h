// SPDX-License-Identifier: Apache-2.0
// The layers of a walk as the text of a preset.
#ifndef IMPORT_ONNX_WRITE_H
#define IMPORT_ONNX_WRITE_H

#include "onnx_walk.h"

// Appends the keys of a preset to model and its groups to knobs. False with the graph's status set where the layers cannot
// be written; a memory failure is kept by the texts.
bool onnx_write(walk *w, const char *name, text *model, text *knobs);

#endif
