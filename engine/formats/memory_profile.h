// SPDX-License-Identifier: Apache-2.0
// The events of TensorFlow's Memory Profile as CSV: one row for every MemoryAllocation and MemoryDeallocation, with the
// arguments that BFCAllocator::AddTraceMe gives them (xla/tsl/framework/bfc_allocator.cc, 2024), after time_ns and event:
//
//   bytes_reserved     what is set aside beside the heap: 0, as there, where no sub-allocator reserves a stack
//   bytes_allocated    in use            bytes_available   limit − reserved − in use; empty when no limit is known
//   fragmentation      (free − largest free) / free of the pool; empty when there is no heap to ask
//   tf_op              the operation     id                the step       region_type   the category of the tensor
#ifndef FORMATS_MEMORY_PROFILE_H
#define FORMATS_MEMORY_PROFILE_H

#include "formats/exporter.h"

#define FORMATS_MEMORY_PROFILE_HEADER                                                                        \
    "time_ns,event,allocator_name,bytes_reserved,bytes_allocated,bytes_available,fragmentation,"             \
    "peak_bytes_in_use,requested_bytes,allocation_bytes,addr,tf_op,id,region_type,data_type,shape\n"

extern const trace_writer trace_writer_memory_profile;

#endif
