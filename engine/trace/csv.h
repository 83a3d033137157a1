// SPDX-License-Identifier: Apache-2.0
// Events as CSV: time_ns, step, event, address, requested_bytes, allocated_bytes, tensor, stream (DESIGN §7).
#ifndef TRACE_CSV_H
#define TRACE_CSV_H

#include "headroom/event.h"
#include "headroom/status.h"

typedef struct trace_csv trace_csv;

// The first line of every such file, newline included.
#define TRACE_CSV_HEADER "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,stream\n"

// Name of a tensor id of the current program, for the tensor column; NULL when unknown.
typedef const char *(*trace_tensor_name)(void *context, uint32_t tensor);

// Written whole or not at all: the file appears at close.
HR_MUST_CHECK hr_status trace_csv_open(const char *path, trace_tensor_name name, void *context,
                                       trace_csv **out, hr_err *err);
void trace_csv_sink(void *csv, const hr_event *event); // a trace_sink; a write error is kept until close
HR_MUST_CHECK hr_status trace_csv_close(trace_csv *csv, hr_err *err); // frees csv in every case

#endif
