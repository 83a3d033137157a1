// SPDX-License-Identifier: Apache-2.0
// From programs to lifetimes: what an allocator that plans is told before a build (memory/allocator.h). Instants are
// instruction indices; a loop's rounds allocate the same tensors at the same places.
#ifndef DEVICE_PACKING_H
#define DEVICE_PACKING_H

#include <stdint.h>

#include "headroom/status.h"

#include "memory/allocator.h"
#include "program/program.h"

// Announces the persistent tensors of programs[0], in canonical order, and the step of every program: step k is
// programs[k], an empty one where that is NULL. *needed_bytes and errors as of allocator_plan_ahead; CHECK error as
// well for a tensor that its program never frees, since no block of fixed size holds a leak.
HR_MUST_CHECK hr_status packing_announce(allocator *heap, const program *const *programs, uint32_t count,
                                         uint64_t *needed_bytes, hr_err *err);

#endif
