// SPDX-License-Identifier: Apache-2.0
// PyTorch memory snapshots (torch.cuda.memory._dump_snapshot), read as a trace and as a heap for each device.
//
//   device_traces  ─▶ events, the devices' merged by their times: alloc → ALLOC, free_requested → RETIRE,
//                     free_completed → FREE, segment_alloc/map → GROW, segment_free/unmap → SHRINK, oom → REFUSED
//   segments       ─▶ trace.heaps: the state behind the last event
//   both           ─▶ what lived before the first event, which a ring of events has forgotten: blocks that no event
//                     speaks of, and those that are freed first. ALLOC of row TRACE_BEFORE, ahead of everything, by
//                     device and address
//
// Rows are counted over the entries of all devices in the file's order. Streams are numbered as they come, the default
// one 0. An allocation is named by its user_metadata or by the first frame that is a person's Python. Snapshots of
// 2.0 and older (no addresses of blocks, history in the place of frames) are read too.
#ifndef FORMATS_TORCH_SNAPSHOT_H
#define FORMATS_TORCH_SNAPSHOT_H

#include "formats/formats.h"

extern const trace_format trace_format_torch_snapshot;

#endif
