// SPDX-License-Identifier: Apache-2.0
// Buffers with the times between which they live: what a packer takes, and what minimalloc's files hold
// (formats/lifetimes_csv.h). Times are numbers without a unit; a buffer lives in [lower, upper).
#ifndef FORMATS_LIFETIMES_H
#define FORMATS_LIFETIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/intern.h"
#include "base/vec.h"

#define LIFETIME_NO_OFFSET UINT64_MAX

// A part of the lifetime in which the buffer holds nothing, or only its bytes [low, high).
typedef struct lifetime_gap {
    uint64_t lower, upper; // within the lifetime
    uint64_t low, high;    // both 0: nothing
} lifetime_gap;

typedef struct lifetime {
    uint64_t lower, upper; // lower < upper
    uint64_t bytes;
    uint64_t alignment_bytes; // at least 1, not necessarily a power of two
    uint64_t hint, offset;    // LIFETIME_NO_OFFSET where the file says none
    uint32_t id;              // in lifetimes.ids
    uint32_t first_gap, gap_count;
} lifetime;

// Starts zeroed.
typedef struct lifetimes {
    VEC(lifetime) list; // in the order of the file
    VEC(lifetime_gap) gaps;
    intern ids; // all different: number k is that of list[k]
} lifetimes;

void lifetimes_deinit(lifetimes *l);

// The same lifetimes in instants that are 0, 1, 2 … without holes, as pack_buffer wants them: births[k] < deaths[k] of
// list[k], and two of them meet exactly when the lifetimes do. Gaps are not looked at: whoever packs without them packs
// safely. NOMEM.
HR_MUST_CHECK hr_status lifetimes_instants(const lifetimes *l, uint32_t *births, uint32_t *deaths,
                                           hr_err *err);

#endif
