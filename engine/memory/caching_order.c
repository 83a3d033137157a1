// SPDX-License-Identifier: Apache-2.0
// Which of several free blocks of one size comes first (caching_order). A free block carries its order beside its size,
// 24 bits of it: when the numbers are used up, what there is is numbered anew in the order it has.
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "memory/caching_parts.h"

// ---- segments -------------------------------------------------------------------------------------------------

uint32_t caching_segment_rank(const caching *c, const caching_segment *s)
{
    uint32_t low = 0, high = c->orders.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool before = c->orders.data[middle] < s->order;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

static void set_order(chunk *b, uint32_t order)
{
    if (caching_is_free(b)) {
        chunk_set_free(b, b->since, order);
    }
}

static void number_segments_anew(caching *c)
{
    for (uint32_t k = 0; k < c->segments.count; k++) {
        caching_segment *s = &c->segments.data[k];
        s->order = caching_segment_rank(c, s);
        for (uint32_t id = s->first; id != CHUNK_NONE; id = c->chunks.records[id].next) {
            set_order(&c->chunks.records[id], s->order);
        }
    }
    for (uint32_t k = 0; k < c->orders.count; k++) {
        c->orders.data[k] = k;
    }
    c->next_order = c->orders.count;
}

uint32_t caching_enter_order(caching *c)
{
    if (c->options.order != CACHING_BY_SEGMENT) {
        return 0;
    }
    if (c->next_order == CHUNK_ORDERS) {
        number_segments_anew(c);
    }
    c->orders.data[c->orders.count++] = c->next_order;
    return c->next_order++;
}

void caching_leave_order(caching *c, const caching_segment *s)
{
    if (c->options.order == CACHING_BY_SEGMENT) {
        const uint32_t at = caching_segment_rank(c, s);
        uint32_t *order = &c->orders.data[at];
        memmove(order, order + 1, (c->orders.count - 1 - at) * sizeof *order);
        c->orders.count--;
    }
}

// ---- blocks ---------------------------------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Every block as number << 32 | record, ascending; `most` of them have room.
static uint32_t list_blocks(const caching *c, uint64_t *blocks)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->segments.count; k++) {
        for (uint32_t id = c->segments.data[k].first; id != CHUNK_NONE; id = c->chunks.records[id].next) {
            blocks[count++] = (uint64_t)c->numbers.data[id] << 32 | id;
        }
    }
    qsort(blocks, count, sizeof *blocks, compare);
    return count;
}

static bool number_blocks_anew(caching *c)
{
    uint64_t *blocks = hr_calloc(c->chunks.used + 1u, sizeof *blocks);
    if (blocks == NULL) {
        return false;
    }
    const uint32_t count = list_blocks(c, blocks);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t id = (uint32_t)blocks[k];
        c->numbers.data[id] = k;
        set_order(&c->chunks.records[id], k);
    }
    c->next_order = count;
    hr_free(blocks);
    return true;
}

uint32_t *caching_block_ranks(const caching *c)
{
    if (c->options.order != CACHING_BY_BLOCK) {
        return NULL;
    }
    uint64_t *blocks = hr_calloc(c->chunks.used + 1u, sizeof *blocks);
    uint32_t *ranks = hr_calloc(c->chunks.used + 1u, sizeof *ranks);
    const uint32_t count = blocks == NULL || ranks == NULL ? 0 : list_blocks(c, blocks);
    for (uint32_t k = 0; k < count; k++) {
        ranks[(uint32_t)blocks[k]] = k;
    }
    hr_free(blocks);
    return ranks;
}

bool caching_reserve_blocks(caching *c, uint32_t fresh)
{
    if (!chunks_reserve(&c->chunks, fresh)) {
        return false;
    }
    if (c->options.order != CACHING_BY_BLOCK) {
        return true;
    }
    if (c->numbers.count < c->chunks.capacity) {
        if (!vec_reserve(&c->numbers, c->chunks.capacity - c->numbers.count)) {
            return false;
        }
        c->numbers.count = c->chunks.capacity;
    }
    return c->next_order <= CHUNK_ORDERS - fresh ||
           (number_blocks_anew(c) && c->next_order <= CHUNK_ORDERS - fresh);
}

void caching_number_block(caching *c, uint32_t block)
{
    if (c->options.order == CACHING_BY_BLOCK) {
        c->numbers.data[block] = c->next_order++;
    }
}

void caching_pass_number(caching *c, uint32_t from, uint32_t to)
{
    if (c->options.order == CACHING_BY_BLOCK) {
        c->numbers.data[to] = c->numbers.data[from];
    }
}

uint32_t caching_order_of(const caching *c, uint32_t block)
{
    switch (c->options.order) {
    case CACHING_BY_SEGMENT:
        return c->segments.data[caching_segment_at(c, c->chunks.records[block].address)].order;
    case CACHING_BY_BLOCK:
        return c->numbers.data[block];
    case CACHING_BY_ADDRESS:
        break;
    }
    return 0;
}
