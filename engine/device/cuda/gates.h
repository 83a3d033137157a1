// SPDX-License-Identifier: Apache-2.0
// Known faults of cuDNN: where it answers and must not be asked. One table, each row with its source; what a row refuses, the
// implementation behind computes, and reports say that cuDNN of this version has a fault there.
#ifndef DEVICE_CUDA_GATES_H
#define DEVICE_CUDA_GATES_H

#include "cuda_device.h"

typedef enum gate_kind { GATE_ATTENTION, GATE_CONVOLUTION } gate_kind;

typedef struct cudnn_case {
    gate_kind kind;
    uint64_t version; // of cuDNN, as cudnnGetVersion has it: 91002 is 9.10.2
    uint32_t compute_major;
    bool backward; // of a convolution: a gradient, or what is computed as one (transposed)
    bool deterministic;
    int64_t queries, keys;        // attention: lengths
    bool of_data;                 // convolution: the gradient is the image's
    bool is_float32, pads_evenly; // convolution: as much behind as before on both axes
    bool odd_channels;            // convolution: those in or those out are no multiple of eight
} cudnn_case;

typedef struct cudnn_gate {
    gate_kind kind;
    uint64_t first, last; // versions, both included
    bool forward, backward;
    bool (*meets)(const cudnn_case *c); // NULL: every case
    const char *fault;                  // "…": what happens there
    const char *source;
} cudnn_gate;

const cudnn_gate *cudnn_gates(uint32_t *count);
// The first row that refuses the case; NULL: none.
const cudnn_gate *cudnn_gate_of(const cudnn_case *c);
// DEVICE error when an attention or a convolution may not be asked of the cuDNN at hand: after cudnn_need.
HR_MUST_CHECK hr_status cudnn_gate_query(const cuda_device *device, const op_query *q, hr_err *err);

#endif
