// SPDX-License-Identifier: Apache-2.0
// A second best-fit allocator, as slow and plain as it can be written from the rules of TensorFlow's: one array of
// chunks by address, linear searches, nothing shared with the engine but the backing's interface.
#ifndef TESTS_MEMORY_NAIVE_BFC_H
#define TESTS_MEMORY_NAIVE_BFC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "heap.h"
#include "memory/backing.h"

enum { NAIVE_CHUNKS_MAX = 8192 };

typedef struct naive_chunk {
    uint64_t address, size, requested;
    uint64_t region, region_size; // address and size of its region
    bool used;
} naive_chunk;

typedef struct naive_bfc {
    naive_chunk chunk[NAIVE_CHUNKS_MAX];
    int count;
    backing *source;
    uint64_t limit, next_region, pool, in_use, peak_in_use;
    bool collect;
} naive_bfc;

static inline uint64_t naive_round(uint64_t n)
{
    return (n + 255) / 256 * 256;
}

static inline void naive_init(naive_bfc *m, uint64_t limit, bool growth, bool collect, backing *source)
{
    memset(m, 0, sizeof *m);
    m->source = source;
    m->limit = limit;
    m->collect = collect;
    uint64_t first = growth && limit > 2097152 ? 2097152 : limit;
    m->next_region = naive_round(first);
}

static inline void naive_insert(naive_bfc *m, int at, naive_chunk c)
{
    MUST(m->count < NAIVE_CHUNKS_MAX);
    memmove(&m->chunk[at + 1], &m->chunk[at], (size_t)(m->count - at) * sizeof c);
    m->chunk[at] = c;
    m->count++;
}

static inline void naive_remove(naive_bfc *m, int at)
{
    m->count--;
    memmove(&m->chunk[at], &m->chunk[at + 1], (size_t)(m->count - at) * sizeof m->chunk[0]);
}

static inline int naive_find(const naive_bfc *m, uint64_t rounded)
{
    int best = -1;
    for (int i = 0; i < m->count; i++) {
        const naive_chunk *c = &m->chunk[i];
        if (!c->used && c->size >= rounded && (best < 0 || c->size < m->chunk[best].size)) {
            best = i; // addresses ascend, so the first of a size is the lowest
        }
    }
    return best;
}

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

// Is the region that begins at chunk `at` one free chunk?
static inline bool naive_is_free_region(const naive_bfc *m, int at)
{
    return !m->chunk[at].used && m->chunk[at].size == m->chunk[at].region_size;
}

static inline bool naive_collect(naive_bfc *m, uint64_t rounded)
{
    uint64_t sum = 0;
    for (int i = 0; i < m->count; i++) {
        sum += naive_is_free_region(m, i) ? m->chunk[i].size : 0;
    }
    if (!m->collect || sum == 0 || rounded > m->limit - m->pool + sum) {
        return false;
    }
    for (int i = m->count - 1; i >= 0; i--) {
        if (naive_is_free_region(m, i)) {
            m->source->give_back(m->source->context, m->chunk[i].address, m->chunk[i].size);
            m->pool -= m->chunk[i].size;
            naive_remove(m, i);
        }
    }
    return true;
}

static inline uint64_t naive_alloc(naive_bfc *m, uint64_t bytes)
{
    uint64_t rounded = naive_round(bytes);
    int at = naive_find(m, rounded);
    if (at < 0 && naive_extend(m, rounded)) {
        at = naive_find(m, rounded);
    }
    if (at < 0 && naive_collect(m, rounded) && naive_extend(m, rounded)) {
        at = naive_find(m, rounded);
    }
    if (at < 0) {
        return 0;
    }
    naive_chunk *c = &m->chunk[at];
    if (c->size / 2 >= rounded || c->size - rounded >= 134217728) {
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

static inline void naive_join_next(naive_bfc *m, int at)
{
    if (at >= 0 && at + 1 < m->count && !m->chunk[at].used && !m->chunk[at + 1].used &&
        m->chunk[at].region == m->chunk[at + 1].region) {
        m->chunk[at].size += m->chunk[at + 1].size;
        naive_remove(m, at + 1);
    }
}

static inline void naive_free(naive_bfc *m, uint64_t address)
{
    int at = 0;
    while (at < m->count && m->chunk[at].address != address) {
        at++;
    }
    MUST(at < m->count);
    m->in_use -= m->chunk[at].size;
    m->chunk[at].used = false;
    m->chunk[at].requested = 0;
    naive_join_next(m, at);
    naive_join_next(m, at - 1);
}

#endif
