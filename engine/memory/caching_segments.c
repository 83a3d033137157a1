// SPDX-License-Identifier: Apache-2.0
// Where blocks come from once the pools have nothing, and the ladder that is climbed when the driver refuses:
// collect old ones, ask, give oversize ones back and ask, give all that is unsplit back and ask once more.
#include <string.h>

#include "memory/caching_parts.h"
#include "memory/chunk_tree.h"
#include "memory/counting.h"

// ---- segments -------------------------------------------------------------------------------------------------

// How many segments begin at or before the address.
static uint32_t segments_up_to(const caching *c, uint64_t address)
{
    uint32_t low = 0, high = c->segments.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool before = c->segments.data[middle].address <= address;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

uint32_t caching_segment_at(const caching *c, uint64_t address)
{
    return segments_up_to(c, address) - 1;
}

bool caching_reserve_segment(caching *c)
{
    return c->segments.count < CHUNK_ORDERS - 1 && vec_reserve(&c->segments, 1) && vec_reserve(&c->orders, 1);
}

void caching_add_segment(caching *c, const caching_segment *s)
{
    const uint32_t order = caching_enter_order(c), at = segments_up_to(c, s->address);
    caching_segment *slot = &c->segments.data[at];
    memmove(slot + 1, slot, (c->segments.count - at) * sizeof *slot);
    *slot = *s;
    slot->order = order;
    c->segments.count++;
}

void caching_drop_segment(caching *c, uint32_t at)
{
    caching_segment *slot = &c->segments.data[at];
    caching_leave_order(c, slot);
    memmove(slot, slot + 1, (c->segments.count - 1 - at) * sizeof *slot);
    c->segments.count--;
}

static uint64_t left_of(uint64_t end_bytes, uint64_t pool_bytes)
{
    return pool_bytes < end_bytes ? end_bytes - pool_bytes : 0;
}

bool caching_may_grow(const caching *c, uint64_t bytes)
{
    return bytes <= left_of(c->base.counters.limit_bytes, c->base.counters.pool_bytes);
}

static bool take_segment(caching *c, const caching_request *r, uint32_t *block)
{
    backing *source = c->base.source;
    uint64_t address = source->take(source->context, r->segment_bytes);
    if (address == 0) {
        return false;
    }
    *block = chunks_add(&c->chunks);
    caching_number_block(c, *block);
    caching_add_segment(c,
                        &(caching_segment){.address = address, .bytes = r->segment_bytes, .first = *block});
    c->chunks.records[*block] =
        (chunk){.address = address, .size_bytes = r->segment_bytes, .prev = CHUNK_NONE, .next = CHUNK_NONE};
    chunk_assign(&c->chunks.records[*block], caching_group(r->queue, r->pool, false));
    chunk_set_free(&c->chunks.records[*block], c->base.allocation_ids, caching_order_of(c, *block));
    caching_raise(&c->stats, CACHING_SEGMENT, r->pool, 1);
    caching_raise(&c->stats, CACHING_RESERVED_BYTES, r->pool, r->segment_bytes);
    if (r->segment_bytes >= c->options.max_split_bytes) {
        caching_stat_raise(&c->stats.oversize_segments, 1);
    }
    c->stats.device_allocs++;
    count_grown(&c->base, address, r->segment_bytes);
    return true;
}

// Asks the driver. The limit stands for the driver's end, and is looked at before it.
static bool ask_driver(caching *c, const caching_request *r, uint32_t *block)
{
    if (!caching_may_grow(c, r->segment_bytes) && (c->limited || !c->expands)) {
        return false;
    }
    return c->expands ? caching_expand(c, r, block) : take_segment(c, r, block);
}

// ---- giving back ----------------------------------------------------------------------------------------------

// A free block that is a whole ordinary segment.
static bool is_returnable(const chunk *b)
{
    return !caching_is_expandable(b) && !caching_is_split(b);
}

static void give_back(caching *c, uint32_t block)
{
    const chunk *b = &c->chunks.records[block];
    const uint64_t address = b->address, bytes = b->size_bytes;
    const caching_pool pool = caching_pool_of(b);
    caching_remove(c, block);
    caching_drop_segment(c, caching_segment_at(c, address));
    chunks_release(&c->chunks, block);
    c->base.source->give_back(c->base.source->context, address, bytes);
    c->stats.device_frees++;
    caching_lower(&c->stats, CACHING_SEGMENT, pool, 1);
    caching_lower(&c->stats, CACHING_RESERVED_BYTES, pool, bytes);
    if (bytes >= c->options.max_split_bytes) {
        caching_stat_lower(&c->stats.oversize_segments, 1);
    }
    count_shrunk(&c->base, address, bytes);
}

// ---- garbage collection ---------------------------------------------------------------------------------------

typedef struct garbage {
    uint64_t ages, blocks; // of what could be given back
} garbage;

static uint64_t age_of(const caching *c, const chunk *b)
{
    return c->searches - b->allocation_id;
}

static garbage look_for_garbage(const caching *c)
{
    garbage found = {0, 0};
    for (uint32_t q = 0; q < c->queues.count; q++) {
        const uint32_t root = c->queues.data[q].free[CACHING_LARGE];
        for (uint32_t id = chunk_tree_fit(root, c->chunks.records, 0); id != CHUNK_NONE;
             id = chunk_tree_after(root, c->chunks.records, id)) {
            if (is_returnable(&c->chunks.records[id])) {
                found.ages += age_of(c, &c->chunks.records[id]);
                found.blocks++;
            }
        }
    }
    return found;
}

// Gives back all of one queue that are at least so old; how many bytes that were.
static uint64_t sweep(caching *c, uint32_t queue, double least_age, garbage *left)
{
    const uint32_t *root = &c->queues.data[queue].free[CACHING_LARGE];
    uint64_t bytes = 0;
    uint32_t next;
    for (uint32_t id = chunk_tree_fit(*root, c->chunks.records, 0); id != CHUNK_NONE; id = next) {
        const chunk *b = &c->chunks.records[id];
        next = chunk_tree_after(*root, c->chunks.records, id);
        if (is_returnable(b) && (double)age_of(c, b) >= least_age) {
            left->ages -= age_of(c, b);
            left->blocks--;
            bytes += b->size_bytes;
            give_back(c, id);
        }
    }
    return bytes;
}

// Above the threshold: whole free segments of the large pool that have waited longer than the mean go back, and
// again, until the pool is below it. A pass is never broken off, so that collecting stays rare.
static void collect_garbage(caching *c)
{
    const uint64_t threshold_bytes =
        (uint64_t)(c->options.gc_threshold * (double)c->base.counters.limit_bytes);
    if (c->base.counters.pool_bytes <= threshold_bytes) {
        return;
    }
    const uint64_t target_bytes = c->base.counters.pool_bytes - threshold_bytes;
    uint64_t reclaimed_bytes = 0, swept_bytes = 1;
    garbage left = look_for_garbage(c);
    while (reclaimed_bytes < target_bytes && swept_bytes > 0 && left.blocks > 0) {
        const double least_age = (double)left.ages / (double)left.blocks;
        swept_bytes = 0;
        for (uint32_t k = 0; k < c->by_stream.count; k++) {
            swept_bytes += sweep(c, c->by_stream.data[k], least_age, &left);
        }
        reclaimed_bytes += swept_bytes;
    }
}

// ---- the ladder -----------------------------------------------------------------------------------------------

// Gives one oversize block back that is as large as the request, or several, the largest first. True when as much
// as was asked for has gone back.
static bool release_oversize(caching *c, const caching_request *r)
{
    const uint64_t oversize_bytes = c->options.max_split_bytes;
    if (oversize_bytes == UINT64_MAX || c->expands) {
        return false;
    }
    const uint64_t bytes = r->bytes < oversize_bytes ? oversize_bytes : r->bytes;
    const uint32_t *root = &c->queues.data[r->queue].free[r->pool];
    uint32_t block = chunk_tree_fit(*root, c->chunks.records, bytes);
    if (block != CHUNK_NONE) {
        give_back(c, block);
        return true;
    }
    uint64_t released_bytes = 0;
    while (released_bytes < bytes) {
        block = chunk_tree_last(*root, c->chunks.records);
        if (block == CHUNK_NONE || c->chunks.records[block].size_bytes < oversize_bytes) {
            return false;
        }
        released_bytes += c->chunks.records[block].size_bytes;
        give_back(c, block);
    }
    return true;
}

static void release_unsplit(caching *c, uint32_t queue, caching_pool pool)
{
    const uint32_t *root = &c->queues.data[queue].free[pool];
    uint32_t next;
    for (uint32_t id = chunk_tree_fit(*root, c->chunks.records, 0); id != CHUNK_NONE; id = next) {
        next = chunk_tree_after(*root, c->chunks.records, id);
        if (is_returnable(&c->chunks.records[id])) {
            give_back(c, id);
        }
    }
}

static hr_status release_cached(caching *c)
{
    c->stats.synchronizations++;
    caching_settle_events(c);
    for (int pool = CACHING_LARGE; pool >= CACHING_SMALL; pool--) {
        for (uint32_t k = 0; k < c->by_stream.count; k++) {
            release_unsplit(c, c->by_stream.data[k], (caching_pool)pool);
        }
        HR_TRY(caching_unmap_free(c, (caching_pool)pool));
    }
    return HR_OK;
}

hr_status caching_climb(caching *c, const caching_request *r, uint32_t *block)
{
    if (caching_collects(c)) {
        collect_garbage(c);
    }
    if (c->options.refuses_early && !c->limited &&
        r->segment_bytes > left_of(c->device_bytes, c->base.counters.pool_bytes)) {
        c->stats.oom_rejections++;
        return HR_OOM;
    }
    if (ask_driver(c, r, block) || (release_oversize(c, r) && ask_driver(c, r, block))) {
        return HR_OK;
    }
    HR_TRY(release_cached(c));
    c->stats.alloc_retries++;
    if (ask_driver(c, r, block)) {
        return HR_OK;
    }
    c->stats.ooms++;
    return HR_OOM;
}
