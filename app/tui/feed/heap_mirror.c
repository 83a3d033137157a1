// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/heap_mirror.h"

#include <stdlib.h>
#include <string.h>

static void free_pages(heap_mirror *m, size_t from)
{
    while (m->page_count > from) {
        free(m->pages[--m->page_count].blocks);
    }
}

void heap_mirror_deinit(heap_mirror *m)
{
    free_pages(m, 0);
    free(m->regions);
    free(m->pages);
    *m = (heap_mirror){0};
}

void heap_mirror_clear(heap_mirror *m)
{
    free_pages(m, 0);
    m->region_count = m->block_count = 0;
    m->pool_bytes = m->in_use_bytes = m->requested_bytes = 0;
    m->is_full = m->is_measured = false;
    memset(m->category_bytes, 0, sizeof m->category_bytes);
}

// ---- room -----------------------------------------------------------------------------------------------------

static size_t next_room(size_t room, size_t needed)
{
    size_t doubled = room < 32 ? 64 : 2 * room;
    return doubled < needed ? needed : doubled;
}

static bool has_page_room(heap_mirror *m, size_t count)
{
    if (count <= m->page_room) {
        return true;
    }
    size_t room = next_room(m->page_room, count);
    heap_page *grown = reallocarray(m->pages, room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    m->pages = grown;
    m->page_room = room;
    return true;
}

// An empty page before the one that stands at `at`.
static bool insert_page(heap_mirror *m, size_t at)
{
    heap_page page = {.blocks = reallocarray(NULL, HEAP_PAGE_BLOCKS, sizeof *page.blocks)};
    if (page.blocks == NULL || !has_page_room(m, m->page_count + 1)) {
        free(page.blocks);
        return false;
    }
    memmove(&m->pages[at + 1], &m->pages[at], (m->page_count - at) * sizeof *m->pages);
    m->pages[at] = page;
    m->page_count++;
    return true;
}

static bool has_region_room(heap_mirror *m, size_t count)
{
    if (count <= m->region_room) {
        return true;
    }
    size_t room = next_room(m->region_room, count);
    m->is_full = count > HEAP_REGIONS_MAX;
    heap_region *grown = count > HEAP_REGIONS_MAX ? NULL : reallocarray(m->regions, room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    m->regions = grown;
    m->region_room = room;
    return true;
}

static bool copy_pages(heap_mirror *to, const heap_mirror *from)
{
    while (to->page_count < from->page_count) {
        if (!insert_page(to, to->page_count)) {
            return false;
        }
    }
    free_pages(to, from->page_count);
    for (size_t i = 0; i < to->page_count; i++) {
        heap_page *page = &to->pages[i];
        page->count = from->pages[i].count;
        memcpy(page->blocks, from->pages[i].blocks, page->count * sizeof *page->blocks);
    }
    return true;
}

bool heap_mirror_copy(heap_mirror *to, const heap_mirror *from)
{
    if (!has_region_room(to, from->region_count) || !copy_pages(to, from)) {
        heap_mirror_clear(to);
        return false;
    }
    for (size_t i = 0; i < from->region_count; i++) {
        to->regions[i] = from->regions[i];
    }
    to->block_count = from->block_count;
    to->region_count = from->region_count;
    to->pool_bytes = from->pool_bytes;
    to->in_use_bytes = from->in_use_bytes;
    to->requested_bytes = from->requested_bytes;
    to->is_full = from->is_full;
    to->is_measured = false;
    memcpy(to->category_bytes, from->category_bytes, sizeof to->category_bytes);
    to->joins = from->joins;
    return true;
}

static bool same_block(const heap_block *a, const heap_block *b)
{
    return a->address == b->address && a->bytes == b->bytes && a->requested_bytes == b->requested_bytes &&
           a->tensor == b->tensor && a->category == b->category && a->pending == b->pending;
}

static const heap_block *block_of(const heap_mirror *m, heap_spot s)
{
    return s.page < m->page_count ? &m->pages[s.page].blocks[s.at] : NULL;
}

static heap_spot behind(const heap_mirror *m, heap_spot s)
{
    return s.at + 1 < m->pages[s.page].count ? (heap_spot){s.page, s.at + 1} : (heap_spot){s.page + 1, 0};
}

bool heap_mirror_equal(const heap_mirror *a, const heap_mirror *b)
{
    bool same = a->region_count == b->region_count && a->block_count == b->block_count &&
                a->requested_bytes == b->requested_bytes;
    for (size_t i = 0; same && i < a->region_count; i++) {
        same = a->regions[i].address == b->regions[i].address && a->regions[i].bytes == b->regions[i].bytes;
    }
    heap_spot of_a = {0, 0}, of_b = {0, 0};
    const heap_block *in_a, *in_b;
    while (same && (in_a = block_of(a, of_a)) != NULL && (in_b = block_of(b, of_b)) != NULL) {
        same = same_block(in_a, in_b);
        of_a = behind(a, of_a);
        of_b = behind(b, of_b);
    }
    return same;
}

// ---- finding --------------------------------------------------------------------------------------------------

// The first page whose last block begins at `address` or behind it.
static size_t page_from(const heap_mirror *m, uint64_t address)
{
    size_t low = 0, high = m->page_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const heap_page *p = &m->pages[middle];
        if (p->blocks[p->count - 1].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The first block that begins at `address` or behind it.
static heap_spot block_from(const heap_mirror *m, uint64_t address)
{
    const size_t page = page_from(m, address);
    size_t low = 0, high = page < m->page_count ? m->pages[page].count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->pages[page].blocks[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (heap_spot){page, low};
}

// The block before the spot; NULL: there is none.
static const heap_block *block_before(const heap_mirror *m, heap_spot s)
{
    if (s.at > 0) {
        return &m->pages[s.page].blocks[s.at - 1];
    }
    return s.page > 0 ? &m->pages[s.page - 1].blocks[m->pages[s.page - 1].count - 1] : NULL;
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

// A block that has a byte in the range; else where one that fills it belongs, and false.
static bool is_taken(const heap_mirror *m, uint64_t address, uint64_t bytes, heap_spot *at)
{
    *at = block_from(m, address);
    const heap_block *before = block_before(m, *at), *next = block_of(m, *at);
    if (before != NULL && address - before->address < before->bytes) {
        *at = at->at > 0 ? (heap_spot){at->page, at->at - 1}
                         : (heap_spot){at->page - 1, m->pages[at->page - 1].count - 1};
        return true;
    }
    return next != NULL && next->address - address < bytes;
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

// Where there is room for one more block at the spot; false when host memory is short.
static bool make_room(heap_mirror *m, heap_spot *at)
{
    if (at->page == m->page_count && at->page > 0) {
        *at = (heap_spot){at->page - 1, m->pages[at->page - 1].count};
    }
    if (at->page == m->page_count) {
        return insert_page(m, at->page);
    }
    if (m->pages[at->page].count < HEAP_PAGE_BLOCKS) {
        return true;
    }
    const size_t kept =
        at->at == HEAP_PAGE_BLOCKS ? HEAP_PAGE_BLOCKS : HEAP_PAGE_BLOCKS / 2; // blocks often come in order
    if (!insert_page(m, at->page + 1)) {
        return false;
    }
    heap_page *low = &m->pages[at->page], *high = low + 1;
    high->count = low->count - kept;
    low->count = kept;
    memcpy(high->blocks, &low->blocks[kept], high->count * sizeof *high->blocks);
    *at = at->at >= kept ? (heap_spot){at->page + 1, at->at - kept} : *at;
    return true;
}

static bool add_block(heap_mirror *m, const heap_change *c)
{
    heap_spot at;
    if (c->requested_bytes > c->bytes || is_taken(m, c->address, c->bytes, &at) ||
        region_of(m, c->address, c->bytes) == m->region_count) {
        return false;
    }
    m->is_full = m->block_count == HEAP_BLOCKS_MAX;
    if (m->block_count == HEAP_BLOCKS_MAX || !make_room(m, &at)) {
        return false;
    }
    heap_page *p = &m->pages[at.page];
    memmove(&p->blocks[at.at + 1], &p->blocks[at.at], (p->count - at.at) * sizeof *p->blocks);
    p->blocks[at.at] =
        (heap_block){c->address, c->bytes, c->requested_bytes, c->tensor, c->category, c->pending};
    p->count++;
    m->block_count++;
    m->in_use_bytes += c->bytes;
    m->category_bytes[c->category] += c->bytes;
    m->requested_bytes += c->requested_bytes;
    return true;
}

static void remove_block(heap_mirror *m, heap_spot at)
{
    heap_page *p = &m->pages[at.page];
    m->in_use_bytes -= p->blocks[at.at].bytes;
    m->category_bytes[p->blocks[at.at].category] -= p->blocks[at.at].bytes;
    m->requested_bytes -= p->blocks[at.at].requested_bytes;
    m->block_count--;
    p->count--;
    memmove(&p->blocks[at.at], &p->blocks[at.at + 1], (p->count - at.at) * sizeof *p->blocks);
    if (p->count == 0) {
        free(p->blocks);
        m->page_count--;
        memmove(p, p + 1, (m->page_count - at.page) * sizeof *p);
    }
}

static bool free_block(heap_mirror *m, heap_change *c)
{
    const heap_spot at = block_from(m, c->address);
    const heap_block *b = block_of(m, at);
    if (b == NULL || b->address != c->address || b->bytes != c->bytes) {
        return false;
    }
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
    heap_spot block;
    size_t at = region_of(m, c->address, c->bytes);
    if (at == m->region_count || is_taken(m, c->address, c->bytes, &block)) {
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
        .phase = e->phase < HR_PHASE_COUNT ? e->phase : HR_PHASE_COUNT,
    };
}

static bool is_range(const heap_change *c)
{
    return c->bytes > 0 && c->address <= UINT64_MAX - c->bytes;
}

bool heap_mirror_apply(heap_mirror *m, heap_change *c)
{
    m->is_measured = false;
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

static void remove_blocks(heap_mirror *m, uint64_t address, uint64_t bytes)
{
    heap_spot at;
    while (is_taken(m, address, bytes, &at)) {
        remove_block(m, at);
    }
}

void heap_mirror_yield(heap_mirror *m, const heap_change *c)
{
    bool of_region = c->kind == HR_EVENT_GROW || c->kind == HR_EVENT_SHRINK;
    if (!is_range(c) || (c->kind != HR_EVENT_ALLOC && !of_region)) {
        return;
    }
    remove_blocks(m, c->address, c->bytes);
    size_t end, first = regions_within(m, c->address, c->bytes, &end);
    while (c->kind == HR_EVENT_GROW && end > first) {
        const heap_region gone = m->regions[--end];
        remove_blocks(m, gone.address, gone.bytes);
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
    const heap_spot spot = block_from(m, address + 1);
    const heap_block *before = block_before(m, spot), *next = block_of(m, spot);
    if (before != NULL && address - before->address < before->bytes) {
        *piece = (heap_piece){before->address, before->bytes, before, region};
        return true;
    }
    uint64_t begin = r->address, end = r->address + r->bytes;
    if (before != NULL && before->address + before->bytes > begin) {
        begin = before->address + before->bytes;
    }
    if (next != NULL && next->address < end) {
        end = next->address;
    }
    *piece = (heap_piece){begin, end - begin, NULL, region};
    return true;
}
