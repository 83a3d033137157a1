// SPDX-License-Identifier: Apache-2.0
// How much memory would do: plays of programs that did not fit, under other limits.
#ifndef INSIGHT_PLAY_LIMIT_H
#define INSIGHT_PLAY_LIMIT_H

#include "insight/play.h"

// What is played, as for play_programs; `failed_bytes` is a limit under which it does not fit.
typedef struct play_case {
    const device_ops *device;
    void *device_context;
    const hr_knobs *knobs;
    const program *const *programs; // NULL entries are skipped
    uint32_t count, steps;
    uint64_t failed_bytes;
} play_case;

enum { PLAY_LIMIT_MOST = 12 };

// What came of one limit.
typedef struct limit_outcome {
    bool fits;
    uint64_t in_use_bytes, pool_bytes; // at most
} limit_outcome;

// Whatever is played under limits: a program, a trace.
typedef struct limit_case {
    hr_status (*play)(void *context, uint64_t limit_bytes, limit_outcome *out, hr_err *err);
    void *context;
    uint64_t failed_bytes; // a limit under which it does not fit
    uint64_t asked_bytes;  // that it asks for at its peak: no limit below will do
} limit_case;

// The smallest limit that was tried and holds all of it; 0: none did. Tried are at most PLAY_LIMIT_MOST limits, all of
// them multiples of a 256th part or so, closing in on the smallest from the peak of a play with plenty. A smaller one
// may do as well: an allocator may like a tighter heap.
HR_MUST_CHECK hr_status limit_smallest(const limit_case *c, uint64_t *fits_bytes, hr_err *err);

// The same of programs. Thread-safe as play_programs.
HR_MUST_CHECK hr_status play_smallest_limit(const play_case *c, uint64_t *fits_bytes, hr_err *err);

#endif
