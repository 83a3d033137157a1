// SPDX-License-Identifier: Apache-2.0
// A second caching allocator, as slow and plain as it can be written from the rules of PyTorch's: one array of blocks
// by address, linear searches, nothing shared with the engine but the options and the backing's interface.
#ifndef TESTS_MEMORY_NAIVE_CACHING_H
#define TESTS_MEMORY_NAIVE_CACHING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "heap.h"
#include "memory/allocator.h"

enum { NAIVE_BLOCKS_MAX = 4096 };

typedef enum naive_state { NAIVE_FREE, NAIVE_USED, NAIVE_PENDING, NAIVE_UNMAPPED } naive_state;

typedef struct naive_block {
    uint64_t address, size, requested;
    uint64_t segment, segment_size;  // what the driver gave, or the reservation
    uint64_t born;                   // searches when it became free
    uint64_t nth_segment, nth_block; // taken or reserved as, and a block as
    uint32_t stream, waits;          // waits: a bit for each stream that was recorded
    naive_state state;
    bool small, expandable;
    bool unmapped_now; // by the release that is under way
    bool came;         // just now: what joins takes its nth_block
} naive_block;

typedef struct naive_caching {
    naive_block block[NAIVE_BLOCKS_MAX];
    int count;
    backing *source;
    caching_options o;
    uint64_t limit, device, pool, searches, retries, ooms, rejections;
    uint64_t segments, blocks; // that there have been
    bool fraction;
} naive_caching;

static inline void naive_init(naive_caching *m, const allocator_config *config, backing *source)
{
    memset(m, 0, sizeof *m);
    m->source = source;
    m->o = config->caching;
    m->limit = config->limit_bytes;
    m->device = config->device_bytes ? config->device_bytes : config->limit_bytes;
    m->fraction = config->limit_is_fraction;
    m->o.expandable_segments = m->o.expandable_segments && source->mapping_bytes > 0;
}

// ---- sizes ----------------------------------------------------------------------------------------------------

static inline uint64_t naive_ceil(uint64_t n, uint64_t step)
{
    return n % step == 0 ? n : n - n % step + step;
}

static inline uint64_t naive_round(const caching_options *o, uint64_t n)
{
    if (n < 512) {
        return 512;
    }
    uint64_t power = 1;
    int log2 = 0;
    while (power <= n / 2) {
        power *= 2;
        log2++;
    }
    int at = log2 < 20 ? 0 : log2 > 35 ? 15 : log2 - 20;
    uint64_t d = o->roundup_divisions[at];
    return naive_ceil(n, d > 1 && n > 512 * d ? power / d : 512);
}

static inline uint64_t naive_segment(const caching_options *o, uint64_t rounded)
{
    if (rounded <= 1048576) {
        return 2097152;
    }
    return rounded < 10485760 ? o->large_segment_bytes : naive_ceil(rounded, 2097152);
}

// ---- the array ------------------------------------------------------------------------------------------------

static inline void naive_put(naive_caching *m, naive_block b)
{
    MUST(m->count < NAIVE_BLOCKS_MAX);
    int at = m->count++;
    for (; at > 0 && m->block[at - 1].address > b.address; at--) {
        m->block[at] = m->block[at - 1];
    }
    m->block[at] = b;
}

static inline void naive_erase(naive_caching *m, int at)
{
    m->count--;
    memmove(&m->block[at], &m->block[at + 1], (size_t)(m->count - at) * sizeof m->block[0]);
}

static inline int naive_at(const naive_caching *m, uint64_t address)
{
    for (int i = 0; i < m->count; i++) {
        if (m->block[i].address == address) {
            return i;
        }
    }
    return -1;
}

static inline bool naive_same(const naive_caching *m, int i, int j)
{
    return i >= 0 && j < m->count && m->block[i].segment == m->block[j].segment;
}

static inline bool naive_split(const naive_caching *m, int i)
{
    return naive_same(m, i - 1, i) || naive_same(m, i, i + 1);
}

// Cuts block i; the part behind is a block of the same state. One of both is a new block.
static inline void naive_cut(naive_caching *m, int i, uint64_t bytes, bool low_is_new)
{
    naive_block rest = m->block[i];
    rest.address += bytes;
    rest.size -= bytes;
    rest.came = false;
    m->block[i].size = bytes;
    *(low_is_new ? &m->block[i].nth_block : &rest.nth_block) = ++m->blocks;
    naive_put(m, rest);
}

// Joins all blocks of equal state that touch each other in one segment, if they are free or unmapped.
static inline void naive_join(naive_caching *m)
{
    for (int i = 0; i + 1 < m->count;) {
        naive_block *a = &m->block[i], *b = &m->block[i + 1];
        if (a->state == b->state && (a->state == NAIVE_FREE || a->state == NAIVE_UNMAPPED) &&
            naive_same(m, i, i + 1)) {
            a->size += b->size;
            a->born = a->born > b->born ? a->born : b->born; // the one that came just now is the youngest
            a->unmapped_now = a->unmapped_now || b->unmapped_now;
            a->nth_block = b->came ? b->nth_block : a->nth_block;
            a->came = a->came || b->came;
            naive_erase(m, i + 1);
        } else {
            i++;
        }
    }
    for (int i = 0; i < m->count; i++) {
        m->block[i].came = false;
    }
}

// ---- search ---------------------------------------------------------------------------------------------------

static inline bool naive_in(const naive_block *b, uint32_t stream, bool small)
{
    return b->stream == stream && b->small == small;
}

static inline bool naive_before(const naive_caching *m, int i, int j)
{
    const naive_block *a = &m->block[i], *b = &m->block[j];
    uint64_t x = a->address, y = b->address;
    if (a->size != b->size) {
        return a->size < b->size;
    }
    if (m->o.order == CACHING_BY_BLOCK) {
        x = a->nth_block;
        y = b->nth_block;
    } else if (m->o.order == CACHING_BY_SEGMENT && a->nth_segment != b->nth_segment) {
        x = a->nth_segment;
        y = b->nth_segment;
    }
    return x < y;
}

// The first free block of at least `size` that comes behind block `last` (-1: any).
static inline int naive_behind(const naive_caching *m, uint32_t stream, bool small, uint64_t size, int last)
{
    int best = -1;
    for (int i = 0; i < m->count; i++) {
        const naive_block *b = &m->block[i];
        if (b->state == NAIVE_FREE && naive_in(b, stream, small) && b->size >= size &&
            (last < 0 || naive_before(m, last, i)) && (best < 0 || naive_before(m, i, best))) {
            best = i;
        }
    }
    return best;
}

static inline uint64_t naive_reach(const naive_caching *m, int i)
{
    bool grows = naive_same(m, i, i + 1) && m->block[i + 1].state == NAIVE_UNMAPPED;
    return m->block[i].size + (grows ? m->block[i + 1].size : 0);
}

static inline int naive_search(naive_caching *m, uint64_t n, uint32_t stream, bool small)
{
    m->searches += m->fraction && m->o.gc_threshold > 0 && !small ? 1 : 0;
    int i = naive_behind(m, stream, small, n, -1);
    while (i >= 0 && m->o.expandable_segments) {
        int next = naive_behind(m, stream, small, m->block[i].size, i);
        if (next < 0 || naive_reach(m, next) >= naive_reach(m, i)) {
            break;
        }
        i = next;
    }
    if (i < 0) {
        return -1;
    }
    if (n < m->o.max_split_bytes && m->block[i].size >= m->o.max_split_bytes) {
        return -1;
    }
    if (n >= m->o.max_split_bytes && m->block[i].size >= n + m->o.max_non_split_rounding_bytes) {
        return -1;
    }
    return i;
}

// ---- giving back ----------------------------------------------------------------------------------------------

static inline void naive_give_back(naive_caching *m, int i)
{
    m->source->give_back(m->source->context, m->block[i].address, m->block[i].size);
    m->pool -= m->block[i].size;
    naive_erase(m, i);
}

static inline bool naive_whole(const naive_caching *m, int i)
{
    const naive_block *b = &m->block[i];
    return b->state == NAIVE_FREE && !b->expandable && b->size == b->segment_size;
}

static inline void naive_collect(naive_caching *m)
{
    uint64_t threshold = (uint64_t)(m->o.gc_threshold * (double)m->limit);
    while (m->pool > threshold) {
        double sum = 0, count = 0;
        for (int i = 0; i < m->count; i++) {
            if (naive_whole(m, i) && !m->block[i].small) {
                sum += (double)(m->searches - m->block[i].born);
                count += 1;
            }
        }
        if (count == 0) {
            return;
        }
        for (int i = m->count - 1; i >= 0; i--) {
            if (naive_whole(m, i) && !m->block[i].small &&
                (double)(m->searches - m->block[i].born) >= sum / count) {
                naive_give_back(m, i);
            }
        }
    }
}

static inline bool naive_release_oversize(naive_caching *m, uint64_t n, uint32_t stream, bool small)
{
    if (m->o.max_split_bytes == UINT64_MAX || m->o.expandable_segments) {
        return false;
    }
    uint64_t wanted = n > m->o.max_split_bytes ? n : m->o.max_split_bytes, got = 0;
    int i = naive_behind(m, stream, small, wanted, -1);
    if (i >= 0) {
        naive_give_back(m, i);
        return true;
    }
    while (got < wanted) {
        int largest = -1;
        for (i = 0; i < m->count; i++) {
            const naive_block *b = &m->block[i];
            if (b->state == NAIVE_FREE && naive_in(b, stream, small) && b->size >= m->o.max_split_bytes &&
                (largest < 0 || naive_before(m, largest, i))) {
                largest = i;
            }
        }
        if (largest < 0) {
            return false;
        }
        got += m->block[largest].size;
        naive_give_back(m, largest);
    }
    return true;
}

static inline uint64_t naive_handle(const naive_caching *m, bool small)
{
    return small ? 2097152 : m->o.large_segment_bytes;
}

// Handle by handle: those that lie in the free block as a whole go. What is left of it before and behind is new.
static inline void naive_unmap_block(naive_caching *m, int i)
{
    const uint64_t handle = naive_handle(m, m->block[i].small);
    const uint64_t offset = m->block[i].address - m->block[i].segment;
    uint64_t before = naive_ceil(offset, handle) - offset;
    if (before + handle > m->block[i].size) {
        return;
    }
    if (before > 0) {
        naive_cut(m, i++, before, true);
    }
    for (m->block[i].came = true; i < m->count && m->block[i].state == NAIVE_FREE; i++) {
        naive_block *b = &m->block[i];
        if (!naive_same(m, i - (b->came ? 0 : 1), i) || b->size < handle) {
            break;
        }
        m->source->unmap(m->source->context, b->address, handle);
        m->pool -= handle;
        if (b->size > handle) {
            naive_cut(m, i, handle, false);
        }
        m->block[i].state = NAIVE_UNMAPPED;
        m->block[i].unmapped_now = true;
    }
    naive_join(m);
}

// Large blocks first, by stream and in their order.
static inline void naive_unmap(naive_caching *m)
{
    for (int small = 0; small <= 1; small++) {
        for (uint32_t stream = 0; stream < 32; stream++) {
            uint64_t addresses[NAIVE_BLOCKS_MAX];
            int count = 0;
            for (int i = naive_behind(m, stream, small, 0, -1); i >= 0;
                 i = naive_behind(m, stream, small, 0, i)) {
                addresses[count++] = m->block[i].address;
            }
            for (int k = 0; m->o.expandable_segments && k < count; k++) {
                naive_unmap_block(m, naive_at(m, addresses[k]));
            }
        }
    }
    for (int i = m->count - 1; i >= 0; i--) {
        naive_block *b = &m->block[i];
        if (b->unmapped_now && b->size == b->segment_size) {
            m->source->release(m->source->context, b->address, b->size);
            naive_erase(m, i);
        } else {
            b->unmapped_now = false;
        }
    }
}

static inline void naive_settle(naive_caching *m, int i)
{
    m->block[i].state = NAIVE_FREE;
    m->block[i].requested = m->block[i].waits = 0;
    m->block[i].born = m->searches;
    m->block[i].came = true;
    naive_join(m);
}

// A stream (−1: every stream) has got past all releases.
static inline void naive_events(naive_caching *m, int stream)
{
    for (int i = 0; i < m->count; i++) {
        naive_block *b = &m->block[i];
        if (b->state == NAIVE_PENDING) {
            b->waits &= stream < 0 ? 0 : ~(1u << stream);
            if (b->waits == 0) {
                naive_settle(m, i);
                i = -1;
            }
        }
    }
}

static inline void naive_release_cached(naive_caching *m)
{
    naive_events(m, -1);
    for (int i = m->count - 1; i >= 0; i--) {
        if (naive_whole(m, i)) {
            naive_give_back(m, i);
        }
    }
    naive_unmap(m);
}

// ---- taking ---------------------------------------------------------------------------------------------------

static inline bool naive_room(const naive_block *b)
{
    return b->state == NAIVE_FREE || b->state == NAIVE_UNMAPPED;
}

static inline bool naive_map(naive_caching *m, int i, uint64_t bytes)
{
    uint64_t mapped = naive_ceil(bytes, naive_handle(m, m->block[i].small));
    if ((!m->fraction && m->pool + mapped > m->limit) ||
        !m->source->map(m->source->context, m->block[i].address, mapped)) {
        return false;
    }
    if (m->block[i].size > mapped) {
        naive_cut(m, i, mapped, false);
    }
    m->block[i].state = NAIVE_FREE;
    m->block[i].born = m->searches;
    m->block[i].came = true;
    m->pool += mapped;
    naive_join(m);
    return true;
}

// Where the lowest unmapped block begins from which on, or from the free block before which, n bytes have room.
static inline uint64_t naive_find_room(const naive_caching *m, uint64_t n, uint32_t stream, bool small)
{
    for (int i = 0; i < m->count; i++) {
        if (m->block[i].state != NAIVE_UNMAPPED || !naive_in(&m->block[i], stream, small)) {
            continue;
        }
        int first = naive_same(m, i - 1, i) && naive_room(&m->block[i - 1]) ? i - 1 : i;
        uint64_t room = 0;
        for (int j = first; naive_same(m, first, j) && naive_room(&m->block[j]); j++) {
            room += m->block[j].size;
        }
        if (room >= n) {
            return m->block[first].address;
        }
    }
    return 0;
}

static inline int naive_expand(naive_caching *m, uint64_t n, uint32_t stream, bool small)
{
    uint64_t at = naive_find_room(m, n, stream, small);
    if (at == 0) {
        uint64_t bytes = naive_ceil(m->device + m->device / 8, naive_handle(m, small));
        if ((bytes < n && m->o.order == CACHING_BY_SEGMENT) ||
            (at = m->source->reserve(m->source->context, bytes)) == 0) {
            return -1;
        }
        naive_put(m, (naive_block){.address = at,
                                   .size = bytes,
                                   .segment = at,
                                   .segment_size = bytes,
                                   .nth_segment = ++m->segments,
                                   .nth_block = ++m->blocks,
                                   .stream = stream,
                                   .state = NAIVE_UNMAPPED,
                                   .small = small,
                                   .expandable = true});
    }
    for (;;) { // what begins at `at` grows until it is large enough
        int i = naive_at(m, at);
        uint64_t have = m->block[i].state == NAIVE_FREE ? m->block[i].size : 0;
        if (have >= n) {
            return i;
        }
        int next = have == 0 ? i : i + 1;
        uint64_t missing = n - have;
        if (!naive_map(m, next, missing < m->block[next].size ? missing : m->block[next].size)) {
            return -1;
        }
    }
}

static inline int naive_driver(naive_caching *m, uint64_t n, uint32_t stream, bool small)
{
    uint64_t bytes = naive_segment(&m->o, n);
    if ((m->fraction || !m->o.expandable_segments) && m->pool + bytes > m->limit) {
        return -1;
    }
    if (m->o.expandable_segments) {
        return naive_expand(m, n, stream, small);
    }
    uint64_t address = m->source->take(m->source->context, bytes);
    if (address == 0) {
        return -1;
    }
    m->pool += bytes;
    naive_put(m, (naive_block){.address = address,
                               .size = bytes,
                               .segment = address,
                               .segment_size = bytes,
                               .born = m->searches,
                               .nth_segment = ++m->segments,
                               .nth_block = ++m->blocks,
                               .stream = stream,
                               .small = small});
    return naive_at(m, address);
}

static inline int naive_ladder(naive_caching *m, uint64_t n, uint32_t stream, bool small)
{
    if (m->fraction && m->o.gc_threshold > 0) {
        naive_collect(m);
    }
    if (!m->fraction && m->o.refuses_early && m->pool + naive_segment(&m->o, n) > m->device) {
        m->rejections++;
        return -1;
    }
    int i = naive_driver(m, n, stream, small);
    if (i < 0 && naive_release_oversize(m, n, stream, small)) {
        i = naive_driver(m, n, stream, small);
    }
    if (i < 0) {
        naive_release_cached(m);
        m->retries++;
        i = naive_driver(m, n, stream, small);
        m->ooms += i < 0 ? 1 : 0;
    }
    return i;
}

// ---- requests -------------------------------------------------------------------------------------------------

static inline uint64_t naive_alloc(naive_caching *m, uint64_t bytes, uint32_t stream)
{
    uint64_t n = naive_round(&m->o, bytes);
    bool small = n <= 1048576;
    int i = naive_search(m, n, stream, small);
    if (i < 0) {
        i = naive_ladder(m, n, stream, small);
    }
    if (i < 0) {
        return 0;
    }
    uint64_t left = m->block[i].size - n;
    bool split = small || m->o.expandable_segments ? left >= 512 : n < m->o.max_split_bytes && left > 1048576;
    if (split) {
        naive_cut(m, i, n, true);
        m->block[i + 1].born = m->searches;
    }
    m->block[i].state = NAIVE_USED;
    m->block[i].requested = bytes;
    return m->block[i].address;
}

static inline void naive_record(naive_caching *m, uint64_t address, uint32_t stream)
{
    naive_block *b = &m->block[naive_at(m, address)];
    b->waits |= b->stream == stream ? 0 : 1u << stream;
}

static inline void naive_free(naive_caching *m, uint64_t address)
{
    int i = naive_at(m, address);
    MUST(i >= 0 && m->block[i].state == NAIVE_USED);
    if (m->block[i].waits != 0) {
        m->block[i].state = NAIVE_PENDING;
    } else {
        naive_settle(m, i);
    }
}

#endif
