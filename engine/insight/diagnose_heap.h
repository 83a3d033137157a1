// SPDX-License-Identifier: Apache-2.0
// What the heap of a refusal has to show beside its numbers: who holds it, and what stands around its holes.
#ifndef INSIGHT_DIAGNOSE_HEAP_H
#define INSIGHT_DIAGNOSE_HEAP_H

#include "headroom/report.h"

#include "events/heap.h"

// Whose a chunk in use is; NULL: it has no name.
typedef const char *(*heap_namer)(const void *context, const heap_chunk *c);

// Of snapshots that have names of their own, which are the context.
const char *heap_own_name(const void *snapshot, const heap_chunk *c);

// Adds lines to oom->evidence, whose numbers stand already: the largest blocks in use, and where enough bytes were free the
// largest holes with what pins them. Left out where host memory is short.
void diagnose_heap(const heap_snapshot *p, heap_namer name, const void *context, hr_report_oom *oom);

#endif
