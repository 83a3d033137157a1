// SPDX-License-Identifier: Apache-2.0
// TensorFlow's MemoryDump: the heap that TF_BFC_MEMORY_DUMP=PREFIX has it write when it runs out of memory, as a
// Protocol Buffers message (bfc_memory_map.proto):
//
//   1 allocator_name                                            source
//   2 BinSummary*  1 bin 2 total_bytes_in_use 3 total_bytes_in_bin 4 total_chunks_in_use 5 total_chunks_in_bin
//   3 MemChunk*    1 address 2 size 3 requested_size 4 bin 5 op_name 6 freed_at_count 7 action_count 8 in_use 9 step_id
//   4 SnapShot*    1 action_count 2 size: bytes in use over time; not read, not written
//   5 MemAllocatorStats  1 num_allocs 2 bytes_in_use 3 peak_bytes_in_use 4 largest_alloc_size 5 fragmentation_metric
//
// It knows no regions: chunks that touch make one (events/heap_tiles.h), no limit, and not the request that failed.
// A chunk's `since` is its action_count. Events: formats/heap_trace.h.
#ifndef FORMATS_MEMORY_DUMP_H
#define FORMATS_MEMORY_DUMP_H

#include "events/heap.h"
#include "formats/formats.h"

extern const trace_format trace_format_memory_dump;

// Written whole or not at all. WRITE, NOMEM.
HR_MUST_CHECK hr_status memory_dump_write(const char *path, const heap_snapshot *p, hr_err *err);

#endif
