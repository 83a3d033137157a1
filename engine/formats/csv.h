// SPDX-License-Identifier: Apache-2.0
// Events as CSV: time_ns, step, event, address, requested_bytes, allocated_bytes, tensor, stream (DESIGN §7).
#ifndef FORMATS_CSV_H
#define FORMATS_CSV_H

#include "formats/exporter.h"

// The first line of every such file, newline included.
#define EVENTS_CSV_HEADER "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,stream\n"

extern const trace_writer trace_writer_csv;

#endif
