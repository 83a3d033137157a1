// SPDX-License-Identifier: Apache-2.0
// The promise of `fit --max batch.size`, for one preset and one limit: a run of the batch that is answered fits and counts the
// peak that was planned, to the byte; one sample more runs out of memory. That it had to is seen apart from the plan that refuses
// it: with plenty of memory it counts more than the limit.
#ifndef TESTS_CLI_LARGEST_BATCH_H
#define TESTS_CLI_LARGEST_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/engine.h"

enum { LARGEST_BATCH_STEPS = 2, LARGEST_BATCH_LIMITS = 3 };

typedef struct largest_batch {
    uint64_t limit_bytes;
    uint64_t batch;                        // that is answered
    bool is_last;                          // the preset has no batch beyond it: nothing has to run out
    uint64_t planned_bytes, counted_bytes; // peaks of it
    uint64_t beyond_bytes;                 // the peak of one sample more, with plenty
    bool by_cuts;                          // which is within the limit: how the blocks lie keeps it out
    bool by_host; // the host has no room for it: the run says so with plenty of the device, too
} largest_batch;

// Three limits, each between what two batches need that are one sample apart, of `samples` samples, twice and four times as many.
// False where batch 1 cannot be planned, or needs more than `most_bytes`; `why` says it.
bool largest_batch_limits(const hr_preset *preset, const hr_knobs *knobs, uint64_t samples,
                          uint64_t most_bytes, uint64_t limits[LARGEST_BATCH_LIMITS], char *why, size_t size);

// `knobs`: of the cpu device; its limit is set here. False: the promise is broken, and `why` says where.
bool largest_batch_holds(const hr_preset *preset, const hr_knobs *knobs, uint64_t limit_bytes,
                         largest_batch *out, char *why, size_t size);

#endif
