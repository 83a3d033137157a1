// SPDX-License-Identifier: Apache-2.0
// Where the allocators' regions come from on a card.
#ifndef DEVICE_CUDA_BACKING_H
#define DEVICE_CUDA_BACKING_H

#include "device_impl.h"

#define CUDA_GRANULARITY_BYTES (2 * 1024 * 1024) // of everything that a card gives

// Pieces mapped into addresses of our own, placed by memory/address_space.h as a plan's numbers are, so that equal
// requests get equal offsets. Where the driver cannot map: ranges of cuMemAlloc, in whole pieces of 2 MiB, wherever the driver
// has them. The backing is closed before the
// device. Memory that is given back is waited for first while something that was enqueued may still use it.
// A plan's numbers of the same kind: they map where the card's driver does, and on a device that plans.
HR_MUST_CHECK hr_status cuda_numbers_open(cuda_device *device, uint64_t capacity_bytes, backing *out,
                                          hr_err *err);
HR_MUST_CHECK hr_status cuda_backing_open(cuda_device *device, uint64_t capacity_bytes, backing *out,
                                          hr_err *err);

// Ranges of the driver's pool (cuMemAllocFromPoolAsync), in the order of the compute lane. A request that is refused is
// tried once more when everything is done and all that is free has left the pool.
HR_MUST_CHECK hr_status cuda_pool_open(cuda_device *device, uint64_t capacity_bytes, backing *out,
                                       hr_err *err);

#endif
