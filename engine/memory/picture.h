// SPDX-License-Identifier: Apache-2.0
// From an allocator to a picture of its heap (trace/heap.h).
#ifndef MEMORY_PICTURE_H
#define MEMORY_PICTURE_H

#include "memory/allocator.h"

// The heap as it is: every chunk, the counters, the next region, and the last refusal. The caller's to deinit. NOMEM
// when host memory is short: *out is empty then.
HR_MUST_CHECK hr_status heap_picture_of(const allocator *a, heap_picture *out, hr_err *err);

#endif
