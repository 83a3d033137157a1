// SPDX-License-Identifier: Apache-2.0
// What batches are on their way to a build's device: the types that its programs read, and memory that the device reads
// without another copy. Engine's thread only.
#ifndef TRAIN_WIRE_H
#define TRAIN_WIRE_H

#include "data/pipeline.h"
#include "insight/host_outlook.h"
#include "train/build.h"

// The types alone, of a build that is compiled.
void wire_types(const build *b, const hr_model *model, pipeline_wire *out);
// The host memory that a run of this build would have.
void wire_foresee(const build *b, const hr_model *model, const hr_knobs *knobs, host_outlook *out);

#endif
