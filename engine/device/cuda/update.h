// SPDX-License-Identifier: Apache-2.0
// What all optimizers on the card compute from an update.
#ifndef DEVICE_CUDA_UPDATE_H
#define DEVICE_CUDA_UPDATE_H

#include "cuda_device.h"

// Where it stands whether the gradients are finite (int32), the last operand; 0: nothing forbids the update.
CUdeviceptr cuda_verdict_of(const cuda_run *r);
// What weight decay leaves of a weight.
double cuda_kept_of(const op_query *q, const step_io *io);

#endif
