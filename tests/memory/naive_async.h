// SPDX-License-Identifier: Apache-2.0
// The stream-ordered pool a second time, from the five rules of memory/async.h alone: one array that tiles all
// addresses, searched from end to end for everything.
#ifndef TESTS_MEMORY_NAIVE_ASYNC_H
#define TESTS_MEMORY_NAIVE_ASYNC_H

#include <string.h>

#include "heap.h"

enum { NAIVE_TILES = 4096, NAIVE_STREAMS = 8, NAIVE_PIECE = 2 << 20 };

typedef enum naive_state { NAIVE_HOLE, NAIVE_USED, NAIVE_FREE } naive_state;

typedef struct naive_tile {
    uint64_t at, bytes; // from the origin
    naive_state state;
    uint32_t owner; // of a hole 0; of what is free or used 1 + index of its stream, 0: everybody's
} naive_tile;

typedef struct naive_async {
    naive_tile tiles[NAIVE_TILES];
    uint32_t count;
    uint32_t streams[NAIVE_STREAMS];
    uint32_t stream_count;
    uint64_t limit_bytes, mapped_bytes;
    uint64_t maps, fail_at; // as the mapper counts
} naive_async;

static inline void naive_open(naive_async *n, uint64_t limit_bytes)
{
    uint64_t pieces = (limit_bytes + NAIVE_PIECE - 1) / NAIVE_PIECE;
    *n = (naive_async){.count = 1, .limit_bytes = limit_bytes};
    n->tiles[0] = (naive_tile){0, pieces * 8 * NAIVE_PIECE, NAIVE_HOLE, 0};
}

static inline void naive_insert(naive_async *n, uint32_t at, naive_tile t)
{
    MUST(n->count < NAIVE_TILES);
    memmove(&n->tiles[at + 1], &n->tiles[at], (n->count - at) * sizeof *n->tiles);
    n->tiles[at] = t;
    n->count++;
}

// Cuts tile k so that it begins (or ends) at `at`; the index of what begins there.
static inline uint32_t naive_cut(naive_async *n, uint64_t at)
{
    uint32_t k = 0;
    while (k < n->count && n->tiles[k].at + n->tiles[k].bytes <= at) {
        k++;
    }
    if (k < n->count && n->tiles[k].at < at) {
        naive_tile high = n->tiles[k];
        n->tiles[k].bytes = at - high.at;
        high.bytes -= at - high.at;
        high.at = at;
        naive_insert(n, k + 1, high);
        k++;
    }
    return k;
}

static inline void naive_merge(naive_async *n)
{
    uint32_t kept = 0;
    for (uint32_t k = 1; k < n->count; k++) {
        naive_tile *a = &n->tiles[kept];
        const naive_tile *b = &n->tiles[k];
        if (a->state == b->state && a->state != NAIVE_USED && a->owner == b->owner) {
            a->bytes += b->bytes;
        } else {
            n->tiles[++kept] = *b;
        }
    }
    n->count = kept + 1;
}

static inline void naive_set(naive_async *n, uint64_t at, uint64_t bytes, naive_state state, uint32_t owner)
{
    uint32_t first = naive_cut(n, at), behind = naive_cut(n, at + bytes);
    for (uint32_t k = first; k < behind; k++) {
        n->tiles[k].state = state;
        n->tiles[k].owner = owner;
    }
}

static inline uint32_t naive_owner(naive_async *n, uint32_t stream)
{
    uint32_t k = 0;
    while (k < n->stream_count && n->streams[k] != stream) {
        k++;
    }
    if (k == n->stream_count) {
        MUST(k < NAIVE_STREAMS);
        n->streams[n->stream_count++] = stream;
    }
    return k + 1;
}

static inline bool naive_usable(const naive_tile *t, uint32_t owner)
{
    return t->state == NAIVE_FREE && (t->owner == owner || t->owner == 0);
}

// Usable bytes of the tiles from k on, in steps of one up or down.
static inline uint64_t naive_reach(const naive_async *n, uint32_t owner, int64_t k, int step)
{
    uint64_t bytes = 0;
    for (; k >= 0 && k < n->count && naive_usable(&n->tiles[k], owner); k += step) {
        bytes += n->tiles[k].bytes;
    }
    return bytes;
}

// Where a request would begin, by rule 3 without mapping; UINT64_MAX: nowhere.
static inline uint64_t naive_find(const naive_async *n, uint32_t owner, uint64_t bytes)
{
    uint64_t best = UINT64_MAX, best_bytes = UINT64_MAX;
    for (uint32_t k = 0; k < n->count; k++) {
        const naive_tile *t = &n->tiles[k];
        if (naive_usable(t, owner) && t->bytes >= bytes && t->bytes < best_bytes) {
            best = t->at;
            best_bytes = t->bytes;
        }
    }
    for (uint32_t k = 0; best == UINT64_MAX && k < n->count; k++) {
        bool begins = naive_usable(&n->tiles[k], owner) && (k == 0 || !naive_usable(&n->tiles[k - 1], owner));
        uint64_t run_bytes = begins ? naive_reach(n, owner, k, 1) : 0;
        if (run_bytes >= bytes && run_bytes < best_bytes) {
            best = n->tiles[k].at;
            best_bytes = run_bytes;
        }
    }
    return best;
}

// The fewest pieces in hole k; 0: not even all. *at is where they begin.
static inline uint64_t naive_pieces(const naive_async *n, uint32_t owner, uint32_t k, uint64_t bytes,
                                    uint64_t *at)
{
    const naive_tile *hole = &n->tiles[k];
    uint64_t before = naive_reach(n, owner, (int64_t)k - 1, -1), after = naive_reach(n, owner, k + 1, 1);
    for (uint64_t pieces = 1; pieces <= hole->bytes / NAIVE_PIECE; pieces++) {
        uint64_t more = pieces * NAIVE_PIECE;
        bool whole = more == hole->bytes && before + more + after >= bytes;
        if (before + more >= bytes || whole) {
            *at = hole->at;
            return pieces;
        }
        if (after + more >= bytes) {
            *at = hole->at + hole->bytes - more;
            return pieces;
        }
    }
    return 0;
}

static inline bool naive_map(naive_async *n, uint32_t owner, uint64_t bytes, uint64_t *begin)
{
    uint64_t best_at = 0, best = UINT64_MAX;
    for (uint32_t k = 0; k < n->count; k++) {
        uint64_t at = 0, pieces = n->tiles[k].state == NAIVE_HOLE ? naive_pieces(n, owner, k, bytes, &at) : 0;
        if (pieces > 0 && pieces < best) {
            best = pieces;
            best_at = at;
        }
    }
    if (best == UINT64_MAX || best * NAIVE_PIECE > n->limit_bytes - n->mapped_bytes ||
        ++n->maps == n->fail_at) {
        return false;
    }
    naive_set(n, best_at, best * NAIVE_PIECE, NAIVE_FREE, owner);
    n->mapped_bytes += best * NAIVE_PIECE;
    uint32_t k = naive_cut(n, best_at);
    while (k > 0 && naive_usable(&n->tiles[k - 1], owner)) {
        k--;
    }
    *begin = n->tiles[k].at;
    naive_merge(n);
    return true;
}

static inline bool naive_try(naive_async *n, uint32_t owner, uint64_t bytes, uint64_t *at)
{
    *at = naive_find(n, owner, bytes);
    if (*at == UINT64_MAX && !naive_map(n, owner, bytes, at)) {
        return false;
    }
    naive_set(n, *at, bytes, NAIVE_USED, owner);
    // One used tile, whatever it was cut from.
    uint32_t first = naive_cut(n, *at), behind = naive_cut(n, *at + bytes);
    n->tiles[first].bytes = bytes;
    memmove(&n->tiles[first + 1], &n->tiles[behind], (n->count - behind) * sizeof *n->tiles);
    n->count -= behind - first - 1;
    return true;
}

// Rule 4.
static inline void naive_synchronise(naive_async *n, uint64_t keep_bytes)
{
    for (uint32_t k = 0; n->stream_count > 1 && k < n->count; k++) {
        n->tiles[k].owner = n->tiles[k].state == NAIVE_FREE ? 0 : n->tiles[k].owner;
    }
    naive_merge(n);
    uint64_t top = n->tiles[n->count - 1].at + n->tiles[n->count - 1].bytes;
    for (uint64_t piece = top / NAIVE_PIECE; piece-- > 0 && n->mapped_bytes > keep_bytes;) {
        uint64_t at = piece * NAIVE_PIECE;
        uint32_t k = 0;
        while (n->tiles[k].at + n->tiles[k].bytes <= at) {
            k++;
        }
        if (n->tiles[k].state == NAIVE_FREE && n->tiles[k].at + n->tiles[k].bytes >= at + NAIVE_PIECE) {
            naive_set(n, at, NAIVE_PIECE, NAIVE_HOLE, 0);
            n->mapped_bytes -= NAIVE_PIECE;
        }
    }
    naive_merge(n);
}

// Offset from the origin; false: refused.
static inline bool naive_alloc(naive_async *n, uint64_t bytes, uint32_t stream, uint64_t *at)
{
    if (bytes > n->limit_bytes) {
        return false;
    }
    uint64_t rounded = (bytes + 255) / 256 * 256;
    uint32_t owner = naive_owner(n, stream);
    if (naive_try(n, owner, rounded, at)) {
        return true;
    }
    naive_synchronise(n, 0);
    return naive_try(n, owner, rounded, at);
}

static inline void naive_free(naive_async *n, uint64_t at)
{
    uint32_t k = naive_cut(n, at);
    MUST(n->tiles[k].state == NAIVE_USED && n->tiles[k].at == at);
    n->tiles[k].state = NAIVE_FREE;
    naive_merge(n);
}

#endif
