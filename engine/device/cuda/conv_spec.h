// SPDX-License-Identifier: Apache-2.0
// A convolution as a graph of cuDNN. Private to conv.c.
#ifndef DEVICE_CUDA_CONV_SPEC_H
#define DEVICE_CUDA_CONV_SPEC_H

#include "conv_places.h"
#include "graph.h"

// Weights lie as [rows, columns]: HWIO's window times channels of a group, and filters. cuDNN wants them transposed.
void conv_weights_matrix(const op_query *q, int64_t *rows, int64_t *columns);

// Is the bias added, and the activation done, by the library? If not, they come behind it.
bool conv_fuses_bias(const op_query *q);
bool conv_fuses_act(const op_query *q);

// The graph; tensor k of it is operand k of the convolution, which may be inside: then `*result` is what is written.
void conv_spec(const op_query *q, graph_spec *spec, uint8_t *result);

// The same as PyTorch has it: nothing is done behind the convolution.
void conv_pytorch_spec(const op_query *q, const pytorch_images *images, graph_spec *spec);

// target_answer's workspace alone, and whose; none, and why (`instead`), where cuDNN has no engine for it. DEVICE error where the
// limit refuses it, or cuDNN is not there.
HR_MUST_CHECK hr_status conv_pytorch_workspace(cuda_device *device, const op_query *q,
                                               const pytorch_images *images, uint64_t limit_bytes,
                                               target_answer *out, hr_err *err);

#endif
