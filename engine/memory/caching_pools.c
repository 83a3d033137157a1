// SPDX-License-Identifier: Apache-2.0
// Free blocks: found by best fit on their own stream, cut, and joined again.
#include "memory/caching_parts.h"
#include "memory/chunk_tree.h"
#include "memory/counting.h"

// ---- queues ---------------------------------------------------------------------------------------------------

// Where in by_stream the stream is, or would be.
static uint32_t place_of(const caching *c, uint32_t stream)
{
    uint32_t low = 0, high = c->by_stream.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool before = c->queues.data[c->by_stream.data[middle]].stream < stream;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

static hr_status add_queue(caching *c, uint32_t stream, uint32_t at)
{
    if (c->queues.count == CACHING_QUEUES_MAX || vec_push(&c->by_stream) == NULL) {
        return HR_NOMEM;
    }
    caching_queue *added = vec_push(&c->queues);
    if (added == NULL) {
        c->by_stream.count--;
        return HR_NOMEM;
    }
    *added = (caching_queue){
        .stream = stream, .free = {CHUNK_NONE, CHUNK_NONE}, .unmapped = {CHUNK_NONE, CHUNK_NONE}};
    for (uint32_t k = c->by_stream.count - 1; k > at; k--) {
        c->by_stream.data[k] = c->by_stream.data[k - 1];
    }
    c->by_stream.data[at] = c->queues.count - 1;
    return HR_OK;
}

hr_status caching_find_queue(caching *c, uint32_t stream, uint32_t *queue)
{
    if (c->last_queue >= c->queues.count || c->queues.data[c->last_queue].stream != stream) {
        uint32_t at = place_of(c, stream);
        bool known = at < c->by_stream.count && c->queues.data[c->by_stream.data[at]].stream == stream;
        if (!known) {
            HR_TRY(add_queue(c, stream, at));
        }
        c->last_queue = c->by_stream.data[at];
    }
    *queue = c->last_queue;
    return HR_OK;
}

uint32_t caching_group(uint32_t queue, caching_pool pool, bool expandable)
{
    return queue << CACHING_QUEUE_SHIFT | (pool == CACHING_SMALL ? CACHING_IN_SMALL : 0u) |
           (expandable ? CACHING_EXPANDABLE : 0u);
}

static caching_queue *queue_of(caching *c, uint32_t block)
{
    return &c->queues.data[caching_queue_of(&c->chunks.records[block])];
}

// ---- trees and lists ------------------------------------------------------------------------------------------

// A free block's number is the search it was put back at: what its age is reckoned from.
void caching_insert(caching *c, uint32_t block)
{
    chunk *b = &c->chunks.records[block];
    caching_set_state(b, CACHING_FREE);
    chunk_number(b, c->searches);
    chunk_tree_add(&queue_of(c, block)->free[caching_pool_of(b)], c->chunks.records, block);
}

void caching_remove(caching *c, uint32_t block)
{
    caching_pool pool = caching_pool_of(&c->chunks.records[block]);
    chunk_tree_remove(&queue_of(c, block)->free[pool], c->chunks.records, block);
}

void caching_insert_unmapped(caching *c, uint32_t block)
{
    chunk *records = c->chunks.records;
    caching_set_state(&records[block], CACHING_UNMAPPED);
    uint32_t *link = &queue_of(c, block)->unmapped[caching_pool_of(&records[block])];
    while (*link != CHUNK_NONE && records[*link].address < records[block].address) {
        link = &records[*link].right;
    }
    records[block].right = *link;
    *link = block;
}

void caching_remove_unmapped(caching *c, uint32_t block)
{
    chunk *records = c->chunks.records;
    uint32_t *link = &queue_of(c, block)->unmapped[caching_pool_of(&records[block])];
    while (*link != block) {
        link = &records[*link].right;
    }
    *link = records[block].right;
}

// ---- the search -----------------------------------------------------------------------------------------------

// How large a block can become where it is.
static uint64_t reach_of(const caching *c, uint32_t block)
{
    const chunk *b = &c->chunks.records[block];
    bool grows = b->next != CHUNK_NONE && caching_state_of(&c->chunks.records[b->next]) == CACHING_UNMAPPED;
    return b->size_bytes + (grows ? c->chunks.records[b->next].size_bytes : 0);
}

// A block before unmapped space counts as large as it could become: the search goes on while the next one reaches
// less far.
static uint32_t least_reach(const caching *c, uint32_t root, uint32_t block)
{
    uint32_t next = chunk_tree_after(root, c->chunks.records, block);
    while (next != CHUNK_NONE && reach_of(c, next) < reach_of(c, block)) {
        block = next;
        next = chunk_tree_after(root, c->chunks.records, block);
    }
    return block;
}

// Oversize blocks are kept for oversize requests, and those take none that is much too large.
static bool is_rejected(const caching_options *o, uint64_t bytes, uint64_t block_bytes)
{
    return bytes < o->max_split_bytes ? block_bytes >= o->max_split_bytes
                                      : block_bytes - bytes >= o->max_non_split_rounding_bytes;
}

uint32_t caching_fit(caching *c, const caching_request *r)
{
    const uint32_t *root = &c->queues.data[r->queue].free[r->pool];
    if (r->pool == CACHING_LARGE && caching_collects(c)) {
        c->searches++;
    }
    uint32_t block = chunk_tree_fit(*root, c->chunks.records, r->bytes);
    if (block != CHUNK_NONE && c->expands) {
        block = least_reach(c, *root, block);
    }
    if (block == CHUNK_NONE || is_rejected(&c->options, r->bytes, c->chunks.records[block].size_bytes)) {
        return CHUNK_NONE;
    }
    caching_remove(c, block);
    return block;
}

// ---- cutting and joining --------------------------------------------------------------------------------------

uint32_t caching_cut(caching *c, uint32_t block, uint64_t bytes, caching_side fresh)
{
    uint32_t rest = chunks_add(&c->chunks);
    chunk *whole = &c->chunks.records[block];
    c->chunks.records[rest] = (chunk){
        .address = whole->address + bytes,
        .size_bytes = whole->size_bytes - bytes,
        .since = whole->since,
        .order = whole->order,
        .group = whole->group,
        .prev = block,
        .next = whole->next,
    };
    if (whole->next != CHUNK_NONE) {
        c->chunks.records[whole->next].prev = rest;
    }
    whole->next = rest;
    whole->size_bytes = bytes;
    caching_pass_number(c, block, rest);
    caching_number_block(c, fresh == CACHING_LOW ? block : rest);
    return rest;
}

// Two neighbours, in no tree, in the lower one's record.
static void join_into(caching *c, uint32_t low_block, uint32_t high_block)
{
    chunk *low = &c->chunks.records[low_block], *high = &c->chunks.records[high_block];
    low->size_bytes += high->size_bytes;
    low->since = low->since > high->since ? low->since : high->since;
    low->next = high->next;
    if (high->next != CHUNK_NONE) {
        c->chunks.records[high->next].prev = low_block;
    }
    chunks_release(&c->chunks, high_block);
}

static bool take_neighbour(caching *c, uint32_t neighbour, caching_state state, caching_joined *joined)
{
    if (neighbour == CHUNK_NONE || caching_state_of(&c->chunks.records[neighbour]) != state) {
        return false;
    }
    joined->count++;
    joined->bytes += c->chunks.records[neighbour].size_bytes;
    if (state == CACHING_FREE) {
        caching_remove(c, neighbour);
    } else {
        caching_remove_unmapped(c, neighbour);
    }
    return true;
}

caching_joined caching_join(caching *c, uint32_t block, caching_state state)
{
    caching_joined joined = {.block = block};
    const uint32_t order = c->chunks.records[block].order;
    uint32_t prev = c->chunks.records[block].prev, next = c->chunks.records[block].next;
    if (take_neighbour(c, prev, state, &joined)) {
        caching_pass_number(c, block, prev);
        join_into(c, prev, block);
        joined.block = prev;
    }
    if (take_neighbour(c, next, state, &joined)) {
        join_into(c, joined.block, next);
    }
    c->chunks.records[joined.block].order = order & (CHUNK_ORDERS - 1);
    return joined;
}

// Free blocks with a neighbour that is not free: by how much there are more or less of them.
static void count_inactive(caching *c, caching_pool pool, caching_family family, uint64_t more, uint64_t less)
{
    if (more > less) {
        caching_raise(&c->stats, family, pool, more - less);
    } else if (less > more) {
        caching_lower(&c->stats, family, pool, less - more);
    }
}

void caching_complete_free(caching *c, uint32_t block)
{
    chunk *b = &c->chunks.records[block];
    const uint64_t address = b->address, size_bytes = b->size_bytes, requested_bytes = b->requested_bytes;
    const uint32_t tensor = b->tensor, stream = queue_of(c, block)->stream;
    const caching_pool pool = caching_pool_of(b);
    chunk_set_free(b, c->base.allocation_ids, caching_order_of(c, block));
    caching_joined joined = caching_join(c, block, CACHING_FREE);
    caching_insert(c, joined.block);
    const chunk *whole = &c->chunks.records[joined.block];
    if (!caching_is_expandable(whole)) {
        bool split = caching_is_split(whole);
        count_inactive(c, pool, CACHING_INACTIVE_SPLIT, split ? 1 : 0, joined.count);
        count_inactive(c, pool, CACHING_INACTIVE_SPLIT_BYTES, split ? whole->size_bytes : 0, joined.bytes);
    }
    caching_lower(&c->stats, CACHING_ACTIVE, pool, 1);
    caching_lower(&c->stats, CACHING_ACTIVE_BYTES, pool, size_bytes);
    caching_lower(&c->stats, CACHING_REQUESTED_BYTES, pool, requested_bytes);
    count_freed(&c->base, address, requested_bytes, size_bytes, tensor, stream);
}
