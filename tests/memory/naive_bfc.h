// SPDX-License-Identifier: Apache-2.0
// A second best-fit allocator, as slow and plain as it can be written from the rules of TensorFlow's: one array of
// chunks by address, linear searches, nothing shared with the engine but the backing's interface. Numbers of chunks
// are kept too, because TensorFlow's dump shows them, and because its queue of timestamps goes by them.
#ifndef TESTS_MEMORY_NAIVE_BFC_H
#define TESTS_MEMORY_NAIVE_BFC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "heap.h"
#include "memory/backing.h"

enum { NAIVE_CHUNKS_MAX = 8192, NAIVE_QUEUE_MAX = 1 << 16 };

typedef struct naive_chunk {
    uint64_t address, size, requested;
    uint64_t region, region_size; // address and size of its region
    uint64_t stamp;               // when it was freed; 0: safe
    int handle;
    bool used;
} naive_chunk;

typedef struct naive_list {
    int count;
    uint64_t item[NAIVE_QUEUE_MAX];
} naive_list;

typedef struct naive_bfc {
    naive_chunk chunk[NAIVE_CHUNKS_MAX];
    int count;
    int spare[NAIVE_CHUNKS_MAX]; // numbers of chunks that are gone; the last one is used first
    int spare_count, handles;
    backing *source;
    uint64_t limit, next_region, pool, in_use, peak_in_use;
    uint64_t spare_bytes;
    bool collect;
    bool timestamped;
    uint64_t clock, frontier;
    uint64_t forced;                        // requests that were served by merging what was not safe
    naive_list queue, next_queue, to_merge; // numbers, numbers, addresses
} naive_bfc;

static inline uint64_t naive_round(uint64_t n)
{
    return (n + 255) / 256 * 256;
}

static inline void naive_init(naive_bfc *m, const allocator_config *c, backing *source)
{
    memset(m, 0, sizeof *m);
    m->source = source;
    m->limit = c->limit_bytes;
    m->collect = c->garbage_collection;
    m->timestamped = c->timestamped;
    m->spare_bytes = 134217728;
    if (c->fragmentation_fraction > 0) {
        m->spare_bytes = (uint64_t)(c->fragmentation_fraction * (double)c->limit_bytes);
    }
    m->next_region = naive_round(c->growth && c->limit_bytes > 2097152 ? 2097152 : c->limit_bytes);
}

static inline void naive_push(naive_list *l, uint64_t item)
{
    MUST(l->count < NAIVE_QUEUE_MAX);
    l->item[l->count++] = item;
}

static inline void naive_insert(naive_bfc *m, int at, naive_chunk c)
{
    MUST(m->count < NAIVE_CHUNKS_MAX);
    memmove(&m->chunk[at + 1], &m->chunk[at], (size_t)(m->count - at) * sizeof c);
    m->chunk[at] = c;
    m->chunk[at].handle = m->spare_count > 0 ? m->spare[--m->spare_count] : m->handles++;
    m->count++;
}

static inline void naive_remove(naive_bfc *m, int at)
{
    m->spare[m->spare_count++] = m->chunk[at].handle;
    m->count--;
    memmove(&m->chunk[at], &m->chunk[at + 1], (size_t)(m->count - at) * sizeof m->chunk[0]);
}

static inline int naive_by_handle(const naive_bfc *m, uint64_t handle)
{
    for (int i = 0; i < m->count; i++) {
        if ((uint64_t)m->chunk[i].handle == handle) {
            return i;
        }
    }
    return -1;
}

static inline int naive_by_address(const naive_bfc *m, uint64_t address)
{
    for (int i = 0; i < m->count; i++) {
        if (m->chunk[i].address == address) {
            return i;
        }
    }
    return -1;
}

static inline bool naive_may_use(const naive_chunk *c, uint64_t freed_before)
{
    return !c->used && (freed_before == 0 || c->stamp <= freed_before);
}

static inline int naive_find(const naive_bfc *m, uint64_t rounded, uint64_t freed_before)
{
    int best = -1;
    for (int i = 0; i < m->count; i++) {
        const naive_chunk *c = &m->chunk[i];
        if (naive_may_use(c, freed_before) && c->size >= rounded &&
            (best < 0 || c->size < m->chunk[best].size)) {
            best = i; // addresses ascend, so the first of a size is the lowest
        }
    }
    return best;
}

// ---- merging --------------------------------------------------------------------------------------------------

static inline bool naive_can_merge(const naive_bfc *m, int low, bool force)
{
    if (low < 0 || low + 1 >= m->count) {
        return false;
    }
    const naive_chunk *a = &m->chunk[low], *b = &m->chunk[low + 1];
    return !a->used && !b->used && a->region == b->region && (force || (a->stamp == 0 && b->stamp == 0));
}

static inline void naive_merge(naive_bfc *m, int low)
{
    naive_chunk *a = &m->chunk[low], *b = &m->chunk[low + 1];
    a->size += b->size;
    a->stamp = a->stamp > b->stamp ? a->stamp : b->stamp;
    naive_remove(m, low + 1);
}

// Where the merged chunk is.
static inline int naive_coalesce(naive_bfc *m, int at, bool force)
{
    if (naive_can_merge(m, at, force)) {
        naive_merge(m, at);
    }
    if (naive_can_merge(m, at - 1, force)) {
        naive_merge(m, --at);
    }
    return at;
}

static inline void naive_sort_queue(naive_bfc *m, bool force)
{
    m->to_merge.count = m->next_queue.count = 0;
    for (int k = 0; k < m->queue.count; k++) {
        int at = naive_by_handle(m, m->queue.item[k]);
        if (at < 0 || m->chunk[at].used) {
            continue;
        }
        if (m->chunk[at].stamp < m->frontier) {
            m->chunk[at].stamp = 0;
        }
        if (m->chunk[at].stamp == 0 || force) {
            naive_push(&m->to_merge, m->chunk[at].address);
        } else {
            naive_push(&m->next_queue, m->queue.item[k]);
        }
    }
    m->queue.count = m->next_queue.count;
    memcpy(m->queue.item, m->next_queue.item, (size_t)m->next_queue.count * sizeof m->queue.item[0]);
}

static inline bool naive_merge_waiting(naive_bfc *m, uint64_t rounded)
{
    bool force = rounded > 0, satisfied = false;
    naive_sort_queue(m, force);
    for (int k = 0; k < m->to_merge.count; k++) {
        int at = naive_by_address(m, m->to_merge.item[k]);
        if (at < 0) {
            continue;
        }
        int handle = m->chunk[at].handle;
        if (satisfied) {
            naive_push(&m->queue, (uint64_t)handle);
            continue;
        }
        at = naive_coalesce(m, at, force);
        if (force && m->chunk[at].handle != handle && m->chunk[at].stamp > 0) {
            naive_push(&m->queue, (uint64_t)m->chunk[at].handle);
        }
        satisfied = force && m->chunk[at].size >= rounded;
    }
    m->forced += satisfied;
    return satisfied;
}

// ---- regions --------------------------------------------------------------------------------------------------

static inline bool naive_extend(naive_bfc *m, uint64_t rounded)
{
    uint64_t available = (m->limit - m->pool) / 256 * 256;
    if (rounded > available) {
        return false;
    }
    bool raised = false;
    for (; rounded > m->next_region; raised = true) {
        m->next_region *= 2;
    }
    uint64_t bytes = m->next_region < available ? m->next_region : available;
    uint64_t address = m->source->take(m->source->context, bytes);
    while (address == 0) {
        volatile float shrunk = (float)bytes; // single precision, whatever the compiler would like
        shrunk *= 0.9f;
        uint64_t fewer = naive_round((uint64_t)shrunk);
        bytes = fewer >= bytes ? bytes - 256 : fewer;
        if (bytes < rounded) {
            return false;
        }
        address = m->source->take(m->source->context, bytes);
    }
    if (!raised) {
        m->next_region *= 2;
        if (m->next_region > UINT64_C(1) << 61) {
            m->next_region /= 2;
        }
    }
    m->pool += bytes;
    int at = 0;
    while (at < m->count && m->chunk[at].address < address) {
        at++;
    }
    naive_insert(m, at,
                 (naive_chunk){.address = address, .size = bytes, .region = address, .region_size = bytes});
    return true;
}

// Is the region of which chunk `at` is the first without a used chunk?
static inline bool naive_is_free_region(const naive_bfc *m, int at)
{
    if (m->chunk[at].address != m->chunk[at].region) {
        return false;
    }
    for (int i = at; i < m->count && m->chunk[i].region == m->chunk[at].region; i++) {
        if (m->chunk[i].used) {
            return false;
        }
    }
    return true;
}

static inline void naive_give_back(naive_bfc *m, int at)
{
    uint64_t region = m->chunk[at].region, size = m->chunk[at].region_size;
    while (at < m->count && m->chunk[at].region == region) {
        naive_remove(m, at);
    }
    m->source->give_back(m->source->context, region, size);
    m->pool -= size;
}

static inline bool naive_collect(naive_bfc *m, uint64_t rounded)
{
    uint64_t sum = 0;
    for (int i = 0; i < m->count; i++) {
        sum += naive_is_free_region(m, i) ? m->chunk[i].region_size : 0;
    }
    if (!m->collect || sum == 0 || rounded > m->limit - m->pool + sum) {
        return false;
    }
    for (int i = 0; i < m->count;) {
        if (naive_is_free_region(m, i)) {
            naive_give_back(m, i);
        } else {
            i++;
        }
    }
    return true;
}

// ---- requests -------------------------------------------------------------------------------------------------

static inline int naive_search(naive_bfc *m, uint64_t rounded, uint64_t freed_before)
{
    int at = naive_find(m, rounded, freed_before);
    if (at < 0 && naive_extend(m, rounded)) {
        at = naive_find(m, rounded, freed_before);
    }
    if (at < 0 && freed_before == 0 && naive_merge_waiting(m, rounded)) {
        at = naive_find(m, rounded, freed_before);
    }
    if (at < 0 && naive_collect(m, rounded) && naive_extend(m, rounded)) {
        at = naive_find(m, rounded, freed_before);
    }
    return at;
}

static inline uint64_t naive_alloc(naive_bfc *m, uint64_t bytes, uint64_t freed_before)
{
    uint64_t rounded = naive_round(bytes);
    naive_merge_waiting(m, 0);
    int at = naive_search(m, rounded, freed_before);
    if (at < 0) {
        return 0;
    }
    naive_chunk *c = &m->chunk[at];
    if (c->size / 2 >= rounded || c->size - rounded >= m->spare_bytes) {
        naive_chunk rest = *c;
        rest.address += rounded;
        rest.size -= rounded;
        c->size = rounded;
        naive_insert(m, at + 1, rest);
    }
    c->used = true;
    c->requested = bytes;
    m->in_use += c->size;
    m->peak_in_use = m->in_use > m->peak_in_use ? m->in_use : m->peak_in_use;
    return c->address;
}

static inline void naive_free(naive_bfc *m, uint64_t address)
{
    int at = naive_by_address(m, address);
    MUST(at >= 0);
    m->in_use -= m->chunk[at].size;
    m->chunk[at].used = false;
    m->chunk[at].requested = 0;
    if (m->timestamped) {
        m->chunk[at].stamp = ++m->clock;
        naive_push(&m->queue, (uint64_t)m->chunk[at].handle);
    } else {
        (void)naive_coalesce(m, at, false);
    }
}

#endif
