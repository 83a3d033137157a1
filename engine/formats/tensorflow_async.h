// SPDX-License-Identifier: Apache-2.0
// What TensorFlow logs when its cudaMallocAsync allocator runs out (GpuCudaMallocAsyncAllocator::AllocateRaw, 2.6 to
// 2.19): the refusal with what CUDA has left, statistics, living allocations counted by size, the pool's attributes.
//
// TensorFlow counts what was asked for, CUDA what the pool handed out. A snapshot knows the largest allocation as it was
// rounded (to 256 B) only.
#ifndef FORMATS_TENSORFLOW_ASYNC_H
#define FORMATS_TENSORFLOW_ASYNC_H

#include "base/text.h"
#include "events/heap.h"

typedef struct tensorflow_async_options {
    uint32_t device;                  // "gpu_async_0"
    uint64_t total_bytes, free_bytes; // of the card, as CUDA reports them
    const char *shape, *type, *where; // of the tensor and its device; shape NULL: the last line is left out
} tensorflow_async_options;

// `out->failed` is true when host memory was short.
void tensorflow_async_dump(const heap_snapshot *p, const tensorflow_async_options *options, text *out);

#endif
