// SPDX-License-Identifier: Apache-2.0
// TensorFlow's (and JAX's: they share the allocator) out-of-memory logs: a whole log file or a pasted piece of one, of any
// version since 2016, with any prefix, other lines in between, colours, lines that a terminal broke at its width, and
// lines that are missing.
//
//   heap of device 0   what the first whole dump in the file shows, else the one with most chunks: source is the
//                      allocator's name, handles from `next`, limit, peaks and counts from `Stats`, next_region_bytes; a
//                      chunk's name is its `by op` or allocation annotation, `since` its action_count, freed_at its
//                      freed_at_count. damaged_regions and missing_bytes say what a cut log does not show.
//                      Logs do not say what was requested for a chunk: it counts as its whole size.
//                      Numbers printed for people ("7.50GiB") are taken as they stand.
//   refusal            the request: exact where the log says the shape and type of the tensor, else as rounded
//   dumps              how many the file begins
//   events             formats/heap_trace.h
#ifndef FORMATS_TENSORFLOW_LOG_H
#define FORMATS_TENSORFLOW_LOG_H

#include "formats/formats.h"

// Recognises every text: it is the last row of the table. A text without a dump is refused.
extern const trace_format trace_format_tensorflow;

#endif
