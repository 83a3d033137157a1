// SPDX-License-Identifier: Apache-2.0
// One training step as it is planned, whole: every instruction with the bytes that live after it, every tensor with
// its birth and death, every layer with what it costs, every event of the allocator. Timeline, Program, Model and the
// planned heap are views of this.
#ifndef HEADROOM_STEP_PLAN_H
#define HEADROOM_STEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/report.h"

typedef struct hr_step_plan_instr {
    uint32_t name, line; // texts: "conv1/conv2d_bwd_weights"; the listing's line without its number
    uint32_t impl;       // text: who computes it; "" where nobody does
    uint32_t layer;      // index of layers, HR_NO_ID
    uint32_t tensor;     // alloc and free: index of tensors; else HR_NO_ID
    uint8_t phase, lane; // hr_phase (HR_PHASE_COUNT: a recorded step does not say it), hr_lane
    bool is_alloc, is_free;
    bool again;     // a recomputation
    uint32_t event; // events before it, the first time it is executed
    uint64_t flops, bytes_moved;
    double seconds; // from the cost model; NaN when the device cannot tell
    // After it, the first time it is executed (of a loop: in the first round). What the allocator holds is 0 behind the
    // instruction that is refused; what the step asks for goes on.
    uint64_t in_use_bytes, pool_bytes;
    uint64_t requested_bytes, by_category[HR_CATEGORY_COUNT];
} hr_step_plan_instr;

typedef struct hr_step_plan_tensor {
    uint32_t name, dtype, shape; // texts
    uint8_t category;            // hr_category; HR_CATEGORY_COUNT: a recorded step does not say it
    bool persistent, saved;      // saved: kept from forward to backward
    uint32_t layer;              // HR_NO_ID
    uint32_t owner; // tensor whose bytes it lies in (a view, a result in place); its own id when it owns them
    uint32_t born, died;      // instruction of its alloc and free; HR_NO_ID: before, or not within the step
    uint64_t bytes;           // requested
    uint64_t allocated_bytes; // of its chunk; 0: it owns none, lies on the host, or was not reached
    uint64_t address;         // the owner's; 0 where nobody has bytes
} hr_step_plan_tensor;

typedef struct hr_step_plan_layer {
    uint32_t name, kind, output_shape;    // texts; the shape is per sample
    uint64_t parameters, parameter_bytes; // HR_NONE, as below: a recorded step does not say it
    uint64_t
        activation_bytes; // activations that its forward instructions make, this batch; of a recorded step all that
                          // its blocks ask for
    uint64_t saved_bytes; // of its activations, what is kept for backward; each storage once
    uint64_t flops;       // of one step, all phases
    double seconds;       // of one step, all phases; NaN when the device cannot tell
    // What compress.* makes of it. 0: it has no weights, no factors or adapters.
    uint64_t width;             // of its largest weights: filters or units
    uint32_t rank_in, rank_out; // largest of its products; different of a Tucker-2 core alone
    double sparsity;            // that its masks reach at the end of the schedule; NaN: it has none
} hr_step_plan_layer;

typedef struct hr_step_plan {
    hr_step_plan_instr *instrs;
    hr_step_plan_tensor *tensors; // index = the program's tensor id = hr_event_memory.tensor
    hr_step_plan_layer *layers;
    // Memory events of build and first step, in order, addresses as planned; an OOM is the last. Of a loop's further rounds
    // only what they leave behind: regions that came and went, and tensors that are never freed. time_ns is 0.
    hr_event *events;
    size_t build_events; // how many of them belong to the build
    size_t instr_count, tensor_count, layer_count, event_count;
    char *texts; // NUL-terminated, one after the other; texts[0] is ""
    size_t texts_bytes;
    bool fits;
    uint64_t limit_bytes, missing_bytes;
    // First attainment of the largest in_use, as a plan has it: over two steps, so that it may be of a later round, or of
    // the second step where something is retained. Of a step that does not fit: before it was refused.
    uint64_t peak_in_use_bytes;
    uint32_t peak_instr;    // HR_NO_ID: while building
    uint32_t refused_instr; // where it does not fit; HR_NO_ID: it fits, or while building
    double step_seconds;    // NaN when the device cannot tell
    hr_time_basis step_basis;
    uint32_t rounds; // batches of one step (batch.accumulate)
} hr_step_plan;

const char *hr_step_plan_text(const hr_step_plan *p, uint32_t text); // "" beyond the end
// Frees everything and zeroes it. NULL is fine.
void hr_step_plan_deinit(hr_step_plan *p);

#endif
