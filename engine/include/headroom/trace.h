// SPDX-License-Identifier: Apache-2.0
// A run's allocations in a file, while it runs.
#ifndef HEADROOM_TRACE_H
#define HEADROOM_TRACE_H

#include "headroom/engine.h"
#include "headroom/status.h"

typedef struct hr_trace hr_trace;

// From here on every memory event of the engine becomes a row of `path`: time_ns, step, event, address,
// requested_bytes, allocated_bytes, tensor, stream. Lossless; tensors keep their names over rebuilds. The engine's
// thread; the engine must outlive the trace, which the caller closes.
HR_MUST_CHECK hr_status hr_trace_open(hr_engine *engine, const char *path, hr_trace **out, hr_err *err);
// Writes the file whole, or not at all. Frees `trace` in every case; NULL is fine.
HR_MUST_CHECK hr_status hr_trace_close(hr_trace *trace, hr_err *err);

#endif
