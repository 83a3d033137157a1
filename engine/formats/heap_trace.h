// SPDX-License-Identifier: Apache-2.0
// A heap as a trace, so that other allocators can be asked what they would have done with it: what was in use stands
// before the file began (TRACE_BEFORE), the oldest first where ages are known, else by address; behind it comes, as row 0
// and as an allocation, the request that could not be served. A replay that serves it says so.
#ifndef FORMATS_HEAP_TRACE_H
#define FORMATS_HEAP_TRACE_H

#include "formats/trace.h"

// Fills an empty trace and takes the snapshot over as its heap of device 0; *p is empty afterwards. NOMEM, READ (beyond
// 2^32 − 2 chunks): the snapshot is the trace's all the same.
HR_MUST_CHECK hr_status trace_of_heap(trace *t, heap_snapshot *p, hr_err *err);

#endif
