// SPDX-License-Identifier: Apache-2.0
// Lifetimes as minimalloc reads them (google/minimalloc): id, lower, upper, size; half open. Time is the number of the
// allocation or release, counted from 0; what still lives at the end does so until behind the last one. Sizes are
// requested bytes, ids count allocations from 0, rows come in the order of their ends. Of device 0: one file is one
// packing problem.
#ifndef FORMATS_LIFETIMES_WRITE_H
#define FORMATS_LIFETIMES_WRITE_H

#include "formats/exporter.h"

// Columns in an order that nobody writes by hand (minimalloc's is id,lower,upper,size; readers go by the names): the mark
// of a file that may be replaced.
#define TRACE_LIFETIMES_HEADER "lower,upper,size,id\n"

extern const trace_writer trace_writer_lifetimes;

#endif
