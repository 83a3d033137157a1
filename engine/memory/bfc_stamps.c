// SPDX-License-Identifier: Apache-2.0
// Timestamps: what is freed waits, un-merged, until the safe frontier has passed its stamp. As TensorFlow's, the queue
// may name a chunk twice that was used again and freed again, names none of the rests that were split off a waiting
// chunk, and forgets a chunk that a forced merge has made larger at its upper end; a chunk that is merged into its
// lower neighbour looks no further up, so that safe neighbours may stay apart. All of that decides what merges when.
#include "memory/bfc_impl.h"

uint64_t bfc_counter_next(bfc_counter *counter)
{
    return ++counter->last;
}

void bfc_share_counter(allocator *a, bfc_counter *counter)
{
    bfc_of(a)->counter = counter;
}

void bfc_set_safe_frontier(allocator *a, uint64_t stamp)
{
    bfc *b = bfc_of(a);
    b->safe_frontier = stamp > b->safe_frontier ? stamp : b->safe_frontier;
}

bool bfc_reserve_waiting(bfc *b)
{
    return vec_reserve(&b->waiting,
                       b->chunks.indexed + 1); // every living block may be freed before the next request
}

void bfc_let_wait(bfc *b, uint32_t id)
{
    chunk_set_free(&b->chunks.records[id], bfc_counter_next(b->counter), 0);
    bins_add(&b->bins, b->chunks.records, id);
    b->waiting.data[b->waiting.count++] = id;
}

// Takes a free chunk out of its bin, and puts what it has become into one.
static uint32_t merge(bfc *b, uint32_t id, bool by_force)
{
    bins_remove(&b->bins, b->chunks.records, id);
    uint32_t merged = bfc_coalesce(b, id, by_force);
    bins_add(&b->bins, b->chunks.records, merged);
    return merged;
}

void bfc_merge_safe(bfc *b)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < b->waiting.count; k++) {
        chunk *c = &b->chunks.records[b->waiting.data[k]];
        if (bfc_is_free(c) && c->since < b->safe_frontier) {
            c->since = 0;
        }
    }
    for (uint32_t k = 0; k < b->waiting.count; k++) {
        uint32_t id = b->waiting.data[k];
        const chunk *c = &b->chunks.records[id];
        if (bfc_is_free(c) && c->since == 0) {
            (void)merge(b, id, false);
        } else if (bfc_is_free(c)) {
            b->waiting.data[kept++] = id;
        }
    }
    b->waiting.count = kept;
}

// Each chunk of the queue makes at most one new entry, so the queue is rewritten where it stands.
bool bfc_merge_by_force(bfc *b, uint64_t rounded_bytes)
{
    bool satisfied = false;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < b->waiting.count; k++) {
        uint32_t id = b->waiting.data[k];
        if (!bfc_is_free(&b->chunks.records[id])) {
            continue;
        }
        if (satisfied) {
            b->waiting.data[kept++] = id;
            continue;
        }
        uint32_t merged = merge(b, id, true);
        if (merged != id && b->chunks.records[merged].since > 0) {
            b->waiting.data[kept++] = merged;
        }
        satisfied = b->chunks.records[merged].size_bytes >= rounded_bytes;
    }
    b->waiting.count = kept;
    return satisfied;
}
