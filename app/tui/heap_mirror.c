// SPDX-License-Identifier: Apache-2.0
#include "app/tui/heap_mirror.h"

#include <stdlib.h>
#include <string.h>

void heap_mirror_deinit(heap_mirror *m)
{
    free(m->regions);
    free(m->blocks);
    *m = (heap_mirror){0};
}

void heap_mirror_clear(heap_mirror *m)
{
    m->region_count = m->block_count = 0;
    m->pool_bytes = m->in_use_bytes = m->requested_bytes = 0;
}

// ---- room -----------------------------------------------------------------------------------------------------

static size_t next_room(size_t room, size_t needed)
{
    size_t doubled = room < 32 ? 64 : 2 * room;
    return doubled < needed ? needed : doubled;
}

static bool has_block_room(heap_mirror *m, size_t count)
{
    if (count <= m->block_room) {
        return true;
    }
    size_t room = next_room(m->block_room, count);
    heap_block *grown = count > HEAP_BLOCKS_MAX ? NULL : reallocarray(m->blocks, room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    m->blocks = grown;
    m->block_room = room;
    return true;
}

static bool has_region_room(heap_mirror *m, size_t count)
{
    if (count <= m->region_room) {
        return true;
    }
    size_t room = next_room(m->region_room, count);
    heap_region *grown = count > HEAP_REGIONS_MAX ? NULL : reallocarray(m->regions, room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    m->regions = grown;
    m->region_room = room;
    return true;
}

bool heap_mirror_copy(heap_mirror *to, const heap_mirror *from)
{
    heap_mirror_clear(to);
    if (!has_block_room(to, from->block_count) || !has_region_room(to, from->region_count)) {
        return false;
    }
    for (size_t i = 0; i < from->block_count; i++) {
        to->blocks[i] = from->blocks[i];
    }
    for (size_t i = 0; i < from->region_count; i++) {
        to->regions[i] = from->regions[i];
    }
    to->block_count = from->block_count;
    to->region_count = from->region_count;
    to->pool_bytes = from->pool_bytes;
    to->in_use_bytes = from->in_use_bytes;
    to->requested_bytes = from->requested_bytes;
    to->joins = from->joins;
    return true;
}

static bool same_block(const heap_block *a, const heap_block *b)
{
    return a->address == b->address && a->bytes == b->bytes && a->requested_bytes == b->requested_bytes &&
           a->tensor == b->tensor && a->category == b->category && a->pending == b->pending;
}

bool heap_mirror_equal(const heap_mirror *a, const heap_mirror *b)
{
    bool same = a->region_count == b->region_count && a->block_count == b->block_count &&
                a->requested_bytes == b->requested_bytes;
    for (size_t i = 0; same && i < a->region_count; i++) {
        same = a->regions[i].address == b->regions[i].address && a->regions[i].bytes == b->regions[i].bytes;
    }
    for (size_t i = 0; same && i < a->block_count; i++) {
        same = same_block(&a->blocks[i], &b->blocks[i]);
    }
    return same;
}

// ---- finding --------------------------------------------------------------------------------------------------

// The first block that begins at `address` or behind it.
static size_t block_from(const heap_mirror *m, uint64_t address)
{
    size_t low = 0, high = m->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->blocks[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static size_t region_from(const heap_mirror *m, uint64_t address)
{
    size_t low = 0, high = m->region_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->regions[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Ranges never wrap: apply refuses those that would.
static bool holds(const heap_region *r, uint64_t address, uint64_t bytes)
{
    return address >= r->address && address - r->address <= r->bytes &&
           bytes <= r->bytes - (address - r->address);
}

// The region that holds the whole range; region_count: none does.
static size_t region_of(const heap_mirror *m, uint64_t address, uint64_t bytes)
{
    size_t at = region_from(m, address);
    if (at < m->region_count && holds(&m->regions[at], address, bytes)) {
        return at;
    }
    return at > 0 && holds(&m->regions[at - 1], address, bytes) ? at - 1 : m->region_count;
}

// The first block that has a byte in the range; `*end` is behind the last one.
static size_t blocks_within(const heap_mirror *m, uint64_t address, uint64_t bytes, size_t *end)
{
    size_t first = block_from(m, address);
    if (first > 0 && address - m->blocks[first - 1].address < m->blocks[first - 1].bytes) {
        first--;
    }
    *end = block_from(m, address + bytes);
    return first;
}

static size_t regions_within(const heap_mirror *m, uint64_t address, uint64_t bytes, size_t *end)
{
    size_t first = region_from(m, address);
    if (first > 0 && address - m->regions[first - 1].address < m->regions[first - 1].bytes) {
        first--;
    }
    *end = region_from(m, address + bytes);
    return first;
}

// ---- blocks ---------------------------------------------------------------------------------------------------

static bool add_block(heap_mirror *m, const heap_change *c)
{
    size_t end, at = blocks_within(m, c->address, c->bytes, &end);
    if (at != end || c->requested_bytes > c->bytes || region_of(m, c->address, c->bytes) == m->region_count ||
        !has_block_room(m, m->block_count + 1)) {
        return false;
    }
    memmove(&m->blocks[at + 1], &m->blocks[at], (m->block_count - at) * sizeof *m->blocks);
    m->blocks[at] =
        (heap_block){c->address, c->bytes, c->requested_bytes, c->tensor, c->category, c->pending};
    m->block_count++;
    m->in_use_bytes += c->bytes;
    m->requested_bytes += c->requested_bytes;
    return true;
}

static void remove_block(heap_mirror *m, size_t at)
{
    m->in_use_bytes -= m->blocks[at].bytes;
    m->requested_bytes -= m->blocks[at].requested_bytes;
    m->block_count--;
    memmove(&m->blocks[at], &m->blocks[at + 1], (m->block_count - at) * sizeof *m->blocks);
}

static size_t block_at(const heap_mirror *m, const heap_change *c)
{
    size_t at = block_from(m, c->address);
    bool same = at < m->block_count && m->blocks[at].address == c->address && m->blocks[at].bytes == c->bytes;
    return same ? at : m->block_count;
}

static bool free_block(heap_mirror *m, heap_change *c)
{
    size_t at = block_at(m, c);
    if (at == m->block_count) {
        return false;
    }
    const heap_block *b = &m->blocks[at];
    c->requested_bytes = b->requested_bytes;
    c->tensor = b->tensor;
    c->category = b->category;
    c->pending = b->pending;
    remove_block(m, at);
    return true;
}

// ---- regions --------------------------------------------------------------------------------------------------

static void remove_region(heap_mirror *m, size_t at)
{
    m->region_count--;
    memmove(&m->regions[at], &m->regions[at + 1], (m->region_count - at) * sizeof *m->regions);
}

static bool insert_region(heap_mirror *m, size_t at, heap_region r)
{
    if (!has_region_room(m, m->region_count + 1)) {
        return false;
    }
    memmove(&m->regions[at + 1], &m->regions[at], (m->region_count - at) * sizeof *m->regions);
    m->regions[at] = r;
    m->region_count++;
    return true;
}

static bool touch(const heap_region *low, const heap_region *high)
{
    return high->address - low->address == low->bytes;
}

static bool add_region(heap_mirror *m, const heap_change *c)
{
    size_t end, at = regions_within(m, c->address, c->bytes, &end);
    if (at != end || !insert_region(m, at, (heap_region){c->address, c->bytes})) {
        return false;
    }
    m->pool_bytes += c->bytes;
    if (m->joins && at + 1 < m->region_count && touch(&m->regions[at], &m->regions[at + 1])) {
        m->regions[at].bytes += m->regions[at + 1].bytes;
        remove_region(m, at + 1);
    }
    if (m->joins && at > 0 && touch(&m->regions[at - 1], &m->regions[at])) {
        m->regions[at - 1].bytes += m->regions[at].bytes;
        remove_region(m, at);
    }
    return true;
}

// Cuts the range out of its region; what lies before and behind it stays.
static bool cut_region(heap_mirror *m, const heap_change *c)
{
    size_t end, first = blocks_within(m, c->address, c->bytes, &end);
    size_t at = region_of(m, c->address, c->bytes);
    if (first != end || at == m->region_count) {
        return false;
    }
    heap_region whole = m->regions[at];
    uint64_t before = c->address - whole.address, behind = whole.bytes - before - c->bytes;
    if (!m->joins && before + behind > 0) {
        return false; // a region that came at once goes at once
    }
    if (before > 0 && behind > 0 && !insert_region(m, at + 1, (heap_region){c->address + c->bytes, behind})) {
        return false;
    }
    if (before > 0) {
        m->regions[at].bytes = before;
    } else if (behind > 0) {
        m->regions[at] = (heap_region){c->address + c->bytes, behind};
    } else {
        remove_region(m, at);
    }
    m->pool_bytes -= c->bytes;
    return true;
}

// ---- changes --------------------------------------------------------------------------------------------------

heap_change heap_change_of(const hr_event *e)
{
    const hr_event_memory *what = &e->u.memory;
    bool refused = e->kind == HR_EVENT_OOM;
    return (heap_change){
        .address = what->address,
        .requested_bytes = what->requested_bytes,
        .bytes = refused ? what->largest_free_bytes : what->allocated_bytes,
        .tensor = what->tensor,
        .instr = e->instr,
        .seq = (uint32_t)e->seq,
        .kind = e->kind,
        .category = e->category < HR_CATEGORY_COUNT ? e->category : HR_CATEGORY_COUNT,
        .phase = e->phase < HR_PHASE_COUNT ? e->phase : HR_PHASE_BUILD,
    };
}

static bool is_range(const heap_change *c)
{
    return c->bytes > 0 && c->address <= UINT64_MAX - c->bytes;
}

bool heap_mirror_apply(heap_mirror *m, heap_change *c)
{
    if (c->kind != HR_EVENT_OOM && !is_range(c)) {
        return false;
    }
    switch (c->kind) {
    case HR_EVENT_ALLOC:
        return add_block(m, c);
    case HR_EVENT_FREE:
        return free_block(m, c);
    case HR_EVENT_GROW:
        return add_region(m, c);
    case HR_EVENT_SHRINK:
        return cut_region(m, c);
    default:
        return c->kind == HR_EVENT_OOM;
    }
}

bool heap_mirror_undo(heap_mirror *m, const heap_change *c)
{
    heap_change back = *c;
    static const uint8_t opposite[] = {[HR_EVENT_ALLOC] = HR_EVENT_FREE,
                                       [HR_EVENT_FREE] = HR_EVENT_ALLOC,
                                       [HR_EVENT_GROW] = HR_EVENT_SHRINK,
                                       [HR_EVENT_SHRINK] = HR_EVENT_GROW,
                                       [HR_EVENT_OOM] = HR_EVENT_OOM};
    if (c->kind < HR_EVENT_ALLOC || c->kind > HR_EVENT_OOM) {
        return false;
    }
    back.kind = opposite[c->kind];
    return heap_mirror_apply(m, &back);
}

void heap_mirror_yield(heap_mirror *m, const heap_change *c)
{
    bool of_region = c->kind == HR_EVENT_GROW || c->kind == HR_EVENT_SHRINK;
    if (!is_range(c) || (c->kind != HR_EVENT_ALLOC && !of_region)) {
        return;
    }
    size_t end, first = blocks_within(m, c->address, c->bytes, &end);
    while (end > first) {
        remove_block(m, --end);
    }
    first = regions_within(m, c->address, c->bytes, &end);
    while (c->kind == HR_EVENT_GROW && end > first) {
        heap_region gone = m->regions[--end];
        size_t last, block = blocks_within(m, gone.address, gone.bytes, &last);
        while (last > block) {
            remove_block(m, --last);
        }
        m->pool_bytes -= gone.bytes;
        remove_region(m, end);
    }
}

// ---- snapshots ------------------------------------------------------------------------------------------------

static bool restore_chunk(heap_mirror *m, const hr_session_chunk *c)
{
    heap_change region = {.kind = HR_EVENT_GROW, .address = c->region_address, .bytes = c->region_bytes};
    heap_change block = {.kind = HR_EVENT_ALLOC,
                         .address = c->address,
                         .bytes = c->size_bytes,
                         .requested_bytes = c->requested_bytes,
                         .tensor = c->tensor,
                         .category = c->category < HR_CATEGORY_COUNT ? c->category : HR_CATEGORY_COUNT,
                         .pending = c->pending};
    bool known = region_of(m, c->region_address, c->region_bytes) < m->region_count;
    return (known || heap_mirror_apply(m, &region)) && (!c->in_use || heap_mirror_apply(m, &block));
}

bool heap_mirror_restore(heap_mirror *m, const hr_session_heap *heap)
{
    heap_mirror_clear(m);
    for (size_t i = 0; i < heap->count; i++) {
        if (!restore_chunk(m, &heap->chunks[i])) {
            heap_mirror_clear(m);
            return false;
        }
    }
    return true;
}

// ---- looking at it (and heap_walk.c) --------------------------------------------------------------------------

bool heap_mirror_at(const heap_mirror *m, uint64_t address, heap_piece *piece)
{
    size_t region = region_of(m, address, 1);
    if (region == m->region_count) {
        return false;
    }
    const heap_region *r = &m->regions[region];
    size_t next = block_from(m, address + 1);
    const heap_block *before = next > 0 ? &m->blocks[next - 1] : NULL;
    if (before != NULL && address - before->address < before->bytes) {
        *piece = (heap_piece){before->address, before->bytes, before, region};
        return true;
    }
    uint64_t begin = r->address, end = r->address + r->bytes;
    if (before != NULL && before->address + before->bytes > begin) {
        begin = before->address + before->bytes;
    }
    if (next < m->block_count && m->blocks[next].address < end) {
        end = m->blocks[next].address;
    }
    *piece = (heap_piece){begin, end - begin, NULL, region};
    return true;
}
