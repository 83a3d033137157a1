// SPDX-License-Identifier: Apache-2.0
// What combine.c and reduce.c share: a tensor as [outer, middle, inner] around neighbouring axes, and the rows of sums
// over the middle.
#ifndef DEVICE_CUDA_COMBINE_H
#define DEVICE_CUDA_COMBINE_H

#include "cuda_device.h"

typedef struct cuda_around {
    int64_t outer, middle, inner;
} cuda_around;

// `count` axes of `shape` from `axis` on are the middle.
cuda_around cuda_around_axes(const hr_shape *shape, int32_t axis, int32_t count);
// What REDUCE and REDUCE_BWD multiply with: 1, or with the flag MEAN a share of the middle.
float cuda_share_of(const op_attr *attr, int64_t middle);

uint64_t cuda_reduce_workspace(const cuda_device *device, const op_query *q);
hr_status cuda_reduce_prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                              uint64_t workspace_bytes, void **state, hr_err *err);
void cuda_reduce_release(cuda_device *device, void *state);
hr_status cuda_reduce_run(const cuda_run *r, hr_err *err);

#endif
