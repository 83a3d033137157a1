// SPDX-License-Identifier: Apache-2.0
// PyTorch's out-of-memory message, word for word, as of 2.15 (c10/cuda/CUDACachingAllocator.cpp).
#ifndef FORMATS_TORCH_OOM_H
#define FORMATS_TORCH_OOM_H

#include "base/text.h"
#include "events/heap.h"

typedef struct torch_process {
    uint32_t pid;
    bool is_own;
    uint64_t bytes;
} torch_process;

// What PyTorch asks the driver and NVML for its message.
typedef struct torch_driver {
    uint32_t device;
    uint64_t total_bytes, free_bytes;
    const torch_process *processes; // in NVML's order
    uint32_t process_count;         // 0: NVML does not say
    uint64_t allowed_bytes;         // per_process_memory_fraction of the total; 0: no such limit
    bool expandable_segments;       // the settings
    bool refuses_early;             // throw_on_cudamalloc_oom: has a message of its own
} torch_driver;

// One line, without an end of line. `p` is a heap that has refused a request; of its chunks, those that are used and
// not pending are what PyTorch calls allocated.
void torch_oom_write(const heap_snapshot *p, const torch_driver *d, text *out);

#endif
