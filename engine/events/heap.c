// SPDX-License-Identifier: Apache-2.0
#include "events/heap.h"

void heap_snapshot_deinit(heap_snapshot *p)
{
    vec_deinit(&p->chunks);
    intern_deinit(&p->names);
    *p = (heap_snapshot){0};
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void heap_snapshot_count(heap_snapshot *p)
{
    heap_counters *c = &p->counters;
    uint64_t region = 0, largest_free_bytes = 0;
    c->requested_bytes = c->in_use_bytes = c->pool_bytes = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *chunk = &p->chunks.data[k];
        if (k == 0 || chunk->region_address != region) {
            region = chunk->region_address;
            c->pool_bytes += chunk->region_bytes;
        }
        c->requested_bytes += chunk->in_use ? chunk->requested_bytes : 0;
        c->in_use_bytes += chunk->in_use ? chunk->size_bytes : 0;
        largest_free_bytes =
            chunk->in_use ? largest_free_bytes : max_of(largest_free_bytes, chunk->size_bytes);
    }
    uint64_t free_bytes = c->pool_bytes - c->in_use_bytes;
    c->largest_free_bytes = largest_free_bytes;
    c->fragmentation = free_bytes == 0 ? 0.0 : 1.0 - (double)largest_free_bytes / (double)free_bytes;
    c->peak_requested_bytes = max_of(c->peak_requested_bytes, c->requested_bytes);
    c->peak_in_use_bytes = max_of(c->peak_in_use_bytes, c->in_use_bytes);
    c->peak_pool_bytes = max_of(c->peak_pool_bytes, c->pool_bytes);
}
