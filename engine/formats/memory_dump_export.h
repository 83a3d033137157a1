// SPDX-License-Identifier: Apache-2.0
// A TensorFlow MemoryDump (formats/memory_dump.h) of a run: the heap at the first request that was refused, or at the end
// where none was. Of device 0, as a dump is of one allocator.
#ifndef FORMATS_MEMORY_DUMP_EXPORT_H
#define FORMATS_MEMORY_DUMP_EXPORT_H

#include "formats/exporter.h"

extern const trace_writer trace_writer_memory_dump;

#endif
