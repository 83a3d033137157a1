// SPDX-License-Identifier: Apache-2.0
// What a heap shows by itself of what need not have been there: by names, and by the size of what was asked for.
#ifndef INSIGHT_EVIDENCE_HEAP_H
#define INSIGHT_EVIDENCE_HEAP_H

#include "insight/evidence.h"

// Of a heap with a refusal. A queue that stands already stays.
void evidence_of_heap(const heap_snapshot *p, oom_evidence *out);

#endif
