// SPDX-License-Identifier: Apache-2.0
#include "data/autotune.h"

enum { BUFFER_STEP_FROM = 2048 };

static double output_ns(const autotune_measures *m, uint32_t threads)
{
    const double made = m->made > 0 ? (double)m->made : 1;
    return ((double)m->draw_ns + (double)m->making_ns / threads) / made;
}

uint32_t autotune_climb(const autotune_limits *limits, const autotune_measures *m, uint32_t prefetch,
                        hr_tune_reason *why)
{
    const double processing_ns = output_ns(m, 1);
    uint32_t threads = limits->least.threads;
    for (;;) {
        const uint64_t buffered = threads * limits->sample_bytes + prefetch * limits->batch_bytes;
        *why = threads >= limits->most.threads                         ? HR_TUNE_ALL
               : output_ns(m, threads) < processing_ns / limits->cores ? HR_TUNE_CORES
               : buffered > limits->budget_bytes                       ? HR_TUNE_BUDGET
                                                                       : HR_TUNE_REASON_COUNT;
        if (*why != HR_TUNE_REASON_COUNT) {
            return threads;
        }
        threads++;
    }
}

bool autotune_consumed(autotune_buffer *b, uint64_t ready, uint64_t most, uint64_t batch_bytes,
                       uint64_t used_bytes, uint64_t budget_bytes)
{
    if (!b->was_full) {
        b->was_full = ready == b->limit;
        return false;
    }
    if (ready != 0) {
        return false;
    }
    const uint64_t wanted = b->limit >= BUFFER_STEP_FROM ? b->limit + BUFFER_STEP_FROM : b->limit * 2;
    const uint64_t limit = wanted < most ? wanted : most;
    b->was_full = false;
    const uint64_t left_bytes = used_bytes < budget_bytes ? budget_bytes - used_bytes : 0;
    if (limit <= b->limit || (batch_bytes > 0 && limit - b->limit > left_bytes / batch_bytes)) {
        return false;
    }
    b->limit = limit;
    return true;
}
