// SPDX-License-Identifier: Apache-2.0
// Events as a PyTorch memory snapshot, for PyTorch's viewer and for whatever reads its pickles.
//
//   alloc → alloc · free → free_requested, free_completed · oom → oom
//   grow, shrink → segment_alloc, segment_free, or segment_map, segment_unmap where a heap grows within its regions
//   the heaps at the end → segments
//
// An entry names its tensor, and the operation that it is taken for, in the one frame of its stack (name, filename).
// The entries of device 0 go to the file as they come; those of other devices wait in host memory until the end.
#ifndef FORMATS_TORCH_SNAPSHOT_WRITE_H
#define FORMATS_TORCH_SNAPSHOT_WRITE_H

#include "formats/exporter.h"

extern const trace_writer trace_writer_torch_snapshot;

#endif
