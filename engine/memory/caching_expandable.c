// SPDX-License-Identifier: Apache-2.0
// Expandable segments: addresses for more than the card holds are reserved once, and handles of 2 MiB (small pool) or
// 20 MiB (large pool) are mapped into them from the lowest address on, so that a segment grows instead of a second
// one being taken. A handle goes back as a whole, or stays.
#include "memory/caching_parts.h"
#include "memory/chunk_tree.h"
#include "memory/counting.h"

uint64_t caching_handle_bytes(const caching *c, caching_pool pool)
{
    return pool == CACHING_SMALL ? CACHING_SMALL_SEGMENT : c->options.large_segment_bytes;
}

static chunk *record(caching *c, uint32_t block)
{
    return &c->chunks.records[block];
}

static bool is_room(const chunk *b)
{
    return caching_state_of(b) == CACHING_FREE || caching_state_of(b) == CACHING_UNMAPPED;
}

// ---- finding addresses ----------------------------------------------------------------------------------------

static bool has_room_from(caching *c, uint32_t block, uint64_t bytes)
{
    uint64_t room_bytes = 0;
    while (room_bytes < bytes && block != CHUNK_NONE && is_room(record(c, block))) {
        room_bytes += record(c, block)->size_bytes;
        block = record(c, block)->next;
    }
    return room_bytes >= bytes;
}

// The lowest unmapped block from which on, or from the free block before it, there is room.
static uint32_t find_room(caching *c, const caching_request *r)
{
    for (uint32_t id = c->queues.data[r->queue].unmapped[r->pool]; id != CHUNK_NONE;
         id = record(c, id)->right) {
        const uint32_t prev = record(c, id)->prev;
        const uint32_t first = prev != CHUNK_NONE && is_room(record(c, prev)) ? prev : id;
        if (has_room_from(c, first, r->bytes)) {
            return first;
        }
    }
    return CHUNK_NONE;
}

// Addresses for nine eighths of the card, in whole handles, all unmapped.
static bool reserve(caching *c, const caching_request *r, uint32_t *block)
{
    const uint64_t handle_bytes = caching_handle_bytes(c, r->pool);
    const uint64_t span_bytes = c->device_bytes + c->device_bytes / 8;
    const uint64_t bytes = (span_bytes + handle_bytes - 1) / handle_bytes * handle_bytes;
    backing *source = c->base.source;
    if (bytes < r->bytes && c->options.order == CACHING_BY_SEGMENT) {
        return false; // older ones keep it, though it will not do
    }
    const uint64_t address = source->reserve(source->context, bytes);
    if (address == 0) {
        return false;
    }
    *block = chunks_add(&c->chunks);
    *record(c, *block) =
        (chunk){.address = address, .size_bytes = bytes, .prev = CHUNK_NONE, .next = CHUNK_NONE};
    chunk_assign(record(c, *block), caching_group(r->queue, r->pool, true));
    caching_insert_unmapped(c, *block);
    caching_number_block(c, *block);
    caching_add_segment(
        c, &(caching_segment){.address = address, .bytes = bytes, .first = *block, .expandable = true});
    return true;
}

// ---- mapping --------------------------------------------------------------------------------------------------

// Maps whole handles for the first `bytes` of an unmapped block, which joins the free blocks around it. False when
// the driver refuses; nothing has changed then.
static bool map(caching *c, uint32_t *block, uint64_t bytes)
{
    chunk *b = record(c, *block);
    backing *source = c->base.source;
    const uint64_t address = b->address;
    const caching_pool pool = caching_pool_of(b);
    const uint64_t handle_bytes = caching_handle_bytes(c, pool);
    const uint64_t mapped_bytes = (bytes + handle_bytes - 1) / handle_bytes * handle_bytes;
    if ((!c->limited && !caching_may_grow(c, mapped_bytes)) ||
        !source->map(source->context, address, mapped_bytes)) {
        return false;
    }
    caching_remove_unmapped(c, *block);
    chunk_set_free(b, c->base.allocation_ids, caching_order_of(c, *block));
    if (mapped_bytes < b->size_bytes) {
        caching_insert_unmapped(c, caching_cut(c, *block, mapped_bytes, CACHING_HIGH));
    }
    *block = caching_join(c, *block, CACHING_FREE).block;
    caching_insert(c, *block);
    caching_raise(&c->stats, CACHING_RESERVED_BYTES, pool, mapped_bytes);
    c->stats.device_allocs++;
    count_grown(&c->base, address, mapped_bytes);
    return true;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool caching_expand(caching *c, const caching_request *r, uint32_t *block)
{
    uint32_t id = find_room(c, r);
    if (id == CHUNK_NONE && !reserve(c, r, &id)) {
        return false;
    }
    if (caching_state_of(record(c, id)) == CACHING_UNMAPPED &&
        !map(c, &id, min_of(record(c, id)->size_bytes, r->bytes))) {
        return false;
    }
    while (record(c, id)->size_bytes < r->bytes) { // what follows a free block is unmapped
        uint32_t next = record(c, id)->next;
        if (!map(c, &next, min_of(record(c, next)->size_bytes, r->bytes - record(c, id)->size_bytes))) {
            return false;
        }
        id = next;
    }
    caching_remove(c, id);
    *block = id;
    return true;
}

// ---- unmapping ------------------------------------------------------------------------------------------------

// Unmaps the whole handles inside a free block; what lies before and behind them stays free. The unmapped block, or
// CHUNK_NONE when the block has no whole handle. Takes two records at most.
static uint32_t unmap(caching *c, const caching_segment *s, uint32_t block)
{
    const chunk *b = record(c, block);
    const caching_pool pool = caching_pool_of(b);
    const uint64_t handle_bytes = caching_handle_bytes(c, pool);
    const uint64_t begin = (b->address - s->address + handle_bytes - 1) / handle_bytes * handle_bytes;
    const uint64_t end = (b->address - s->address + b->size_bytes) / handle_bytes * handle_bytes;
    if (begin >= end) {
        return CHUNK_NONE;
    }
    const uint64_t address = s->address + begin, bytes = end - begin;
    caching_remove(c, block);
    uint32_t middle = block;
    if (address > record(c, block)->address) {
        middle = caching_cut(c, block, address - record(c, block)->address, CACHING_LOW);
        chunk_set_free(record(c, block), record(c, block)->since, caching_order_of(c, block));
        caching_insert(c, block);
    }
    if (record(c, middle)->size_bytes > bytes) {
        const uint32_t behind = caching_cut(c, middle, bytes, CACHING_HIGH);
        chunk_set_free(record(c, behind), record(c, behind)->since, caching_order_of(c, behind));
        caching_insert(c, behind);
    }
    middle = caching_join(c, middle, CACHING_UNMAPPED).block;
    caching_insert_unmapped(c, middle);
    c->base.source->unmap(c->base.source->context, address, bytes);
    caching_lower(&c->stats, CACHING_RESERVED_BYTES, pool, bytes);
    c->stats.device_frees++;
    count_shrunk(&c->base, address, bytes);
    return middle;
}

static void release(caching *c, uint32_t at)
{
    const caching_segment s = c->segments.data[at];
    caching_remove_unmapped(c, s.first);
    chunks_release(&c->chunks, s.first);
    caching_drop_segment(c, at);
    c->base.source->release(c->base.source->context, s.address, s.bytes);
}

// What stays free of a block comes back into the tree, has no whole handle and is passed over where it is met again.
static hr_status unmap_queue(caching *c, const uint32_t *root)
{
    enum { PARTS = 2 };
    uint32_t next;
    for (uint32_t id = chunk_tree_fit(*root, c->chunks.records, 0); id != CHUNK_NONE; id = next) {
        if (!caching_reserve_blocks(c, PARTS + CACHING_FRESH)) {
            return HR_NOMEM;
        }
        next = chunk_tree_after(*root, c->chunks.records, id);
        const uint32_t at = caching_segment_at(c, record(c, id)->address);
        const uint32_t unmapped = unmap(c, &c->segments.data[at], id);
        if (unmapped != CHUNK_NONE && !caching_is_split(record(c, unmapped))) {
            release(c, at);
        }
    }
    return HR_OK;
}

hr_status caching_unmap_free(caching *c, caching_pool pool)
{
    for (uint32_t k = 0; c->expands && k < c->by_stream.count; k++) {
        HR_TRY(unmap_queue(c, &c->queues.data[c->by_stream.data[k]].free[pool]));
    }
    return HR_OK;
}
