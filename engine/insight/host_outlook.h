// SPDX-License-Identifier: Apache-2.0
// Host memory as a run would have it: what the step program keeps there, and every stage of the input pipeline.
#ifndef INSIGHT_HOST_OUTLOOK_H
#define INSIGHT_HOST_OUTLOOK_H

#include "headroom/report.h"

#include "data/host_plan.h"
#include "data/time_plan.h"
#include "device/device.h"
#include "model/model.h"
#include "program/program.h"

typedef struct host_outlook {
    bool known;              // the pipeline's part
    char why[HR_REASON_MAX]; // it is not
    host_plan pipeline;
    uint64_t offloaded_bytes;
    uint64_t bytes;  // of all; HR_NONE: not known
    time_plan input; // how long the batches of a step take, estimated
} host_outlook;

// `eval` NULL: its batches are of the types of the training batches. Thread-safe.
void host_outlook_make(const hr_knobs *knobs, const hr_model *model, const program *train,
                       const program *eval, const device_ops *device, host_outlook *out);

// Whether batches are made in pinned memory of the device: it has some, and pipeline.pinned is on.
bool host_is_pinned(const device_ops *device, const hr_knobs *knobs);

// Bytes beyond pipeline.ram_limit; 0: none is set, it is kept, or the pipeline's part is not known.
uint64_t host_outlook_beyond(const host_outlook *outlook, const hr_knobs *knobs);

// What samples are to the model.
data_form host_form(const hr_model *model);
// What comes with training samples beside them: the teacher's logits (compress.distill_cache). rank 0: nothing.
data_slot host_answers(const hr_model *model);
// The types of the program's batches, one a slot.
void host_types(const program *p, const hr_model *model, data_type types[DATA_MAX_SLOTS]);
// Host bytes of what the program offloads.
uint64_t host_offloaded_bytes(const program *p);

#endif
