// SPDX-License-Identifier: Apache-2.0
// What batches are on their way to a build's device: the types that its programs read, and memory that the device reads
// without another copy. Engine's thread only.
#ifndef TRAIN_WIRE_H
#define TRAIN_WIRE_H

#include "data/pipeline.h"
#include "train/build.h"

// The types alone, of a build that is compiled.
void wire_types(const build *b, const hr_model *model, pipeline_wire *out);
// Does the build's device give pinned memory?
bool wire_is_pinned(const build *b);
// What samples are to the model.
data_form wire_form(const hr_model *model);
// Pinned bytes of the batches in flight, as a run has them; 0 where the device pins none.
uint64_t wire_pinned_bytes(const build *b, const hr_model *model, const hr_knobs *knobs);

#endif
