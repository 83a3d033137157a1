// SPDX-License-Identifier: Apache-2.0
// The heap of the last out-of-memory: what shows its cause, and where it is asked for (hr_engine_options.keeps_failure_heap)
// for who wants to see it. Engine's thread only.
#ifndef TRAIN_FAILURE_HEAP_H
#define TRAIN_FAILURE_HEAP_H

#include "train/engine_impl.h"

// Listens to the engine's events: at each out-of-memory the heap is kept in place of an earlier one.
void failure_heap_sink(void *engine, const hr_event *event);
// What the heap alone does not know: whose request it was, of what shape, on which card.
void failure_heap_describe(hr_engine *e, const program *p, const executor_oom *facts);
// The same heap as lines of oom->evidence (insight/diagnose_heap.h); none where host memory was short.
void failure_heap_show(const hr_engine *e, const program *p, bool in_a_step, hr_report_oom *oom);

#endif
