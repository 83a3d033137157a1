// SPDX-License-Identifier: Apache-2.0
// What to keep for backward and what to compute again, under a budget: the cheapest path of segments.
//
//   0 ──segment──▶ 2 ──segment──▶ 3 ──────segment──────▶ 7      nodes are places between layers
//
// A segment keeps some bytes until backward has come to it, and needs others at once while it is computed, first or
// again. Beside them lies what the segments before it keep; of those behind it nothing is left by then. Segments
// between the same places are choices. Of all paths whose segments stay within the budget the cheapest is found, of
// equally cheap ones one that keeps least: labels (kept, cost) at each node that no other one beats in both, as in Rotor (Beaumont and
// others, 2019), but that each segment is computed again once. Where a node has more labels than labels_max, those that are
// near in what they keep are one, the cheapest, and that which keeps least stays: then the path may be a little dearer, but there is one where there is one,
// and it is within the budget, too.
#ifndef PROGRAM_REMAT_H
#define PROGRAM_REMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct remat_edge {
    uint32_t from, to; // nodes, from < to
    uint32_t choice;   // the caller's
    uint64_t kept_bytes;
    uint64_t peak_bytes; // the most that it needs at once beside what the segments before it keep
    uint64_t cost;       // of computing again
} remat_edge;

typedef struct remat_graph {
    const remat_edge *edges; // in ascending order of `from`
    uint32_t edge_count;
    uint32_t last; // paths lead from node 0 to this one
} remat_graph;

typedef struct remat_path {
    bool found;
    uint64_t cost, peak_bytes;
    uint32_t *edges; // [count] indices, in their order; the caller frees it with hr_free
    uint32_t count;
} remat_path;

// Not found is a result, without edges. NOMEM only.
HR_MUST_CHECK hr_status remat_solve(const remat_graph *g, uint64_t budget_bytes, uint32_t labels_max,
                                    remat_path *out, hr_err *err);

#endif
