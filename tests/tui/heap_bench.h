// SPDX-License-Identifier: Apache-2.0
// An allocator of the engine, a mirror that listens to it, and the allocator's own walk as judge.
#ifndef TESTS_TUI_HEAP_BENCH_H
#define TESTS_TUI_HEAP_BENCH_H

#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/feed/heap_record.h"
#include "memory/heap.h"

enum { LIVE_MAX = 200, EVENTS_MAX = 40000 };

typedef struct subject {
    const char *name, *kind;
    bool growth, expandable;
    uint64_t limit_bytes, size_max_bytes, release_bytes;
} subject;

typedef struct listener {
    heap_mirror mirror;
    heap_change *changes;
    size_t count;
    uint64_t events;
} listener;

static inline void listen(void *context, const hr_event *e)
{
    listener *l = context;
    if (e->kind == HR_EVENT_OOM) {
        return;
    }
    heap_change c = heap_change_of(e);
    MUST(heap_mirror_apply(&l->mirror, &c));
    MUST(l->mirror.in_use_bytes == e->u.memory.in_use_bytes);
    MUST(l->mirror.pool_bytes == e->u.memory.pool_bytes);
    MUST(l->count < EVENTS_MAX);
    l->changes[l->count++] = c;
}

typedef struct bench {
    trace_bus bus;
    listener listener;
    heap heap;
    uint64_t live[LIVE_MAX];
    size_t live_count;
    uint64_t seed;
    const subject *subject;
} bench;

static inline void bench_open(bench *b, const subject *s, trace_sink sink, void *context)
{
    backing source;
    memset(b, 0, sizeof *b);
    b->subject = s;
    b->seed = 11;
    b->listener.mirror.joins = s->expandable || strcmp(s->kind, "async") == 0;
    b->listener.changes = calloc(EVENTS_MAX, sizeof *b->listener.changes);
    trace_bus_init(&b->bus);
    MUST(trace_attach(&b->bus, sink == NULL ? listen : sink, sink == NULL ? &b->listener : context));
    MUST(backing_numbers_open(s->limit_bytes, 4096, &source, NULL) == HR_OK);
    allocator_config config = allocator_config_of(s->kind, s->limit_bytes);
    config.growth = s->growth;
    config.caching.expandable_segments = s->expandable;
    config.release_threshold_bytes = s->release_bytes;
    b->heap = heap_over(&config, source, &b->bus);
}

static inline void bench_close(bench *b)
{
    heap_close(&b->heap);
    MUST(b->listener.mirror.block_count == 0 && b->listener.mirror.region_count == 0);
    heap_mirror_deinit(&b->listener.mirror);
    free(b->listener.changes);
}

// Phases that fill and empty; now and then a step ends.
static inline void operate(bench *b, unsigned k)
{
    uint64_t x = next_random(&b->seed);
    bool fills = x % 100 < (k / 200 % 2 == 0 ? 70 : 30);
    if (k % 97 == 96) {
        allocator_synchronise(b->heap.allocator);
    } else if (b->live_count == 0 || (fills && b->live_count < LIVE_MAX)) {
        uint64_t address, bytes = random_between(&b->seed, 1, b->subject->size_max_bytes >> (x >> 8) % 12);
        if (allocator_alloc(b->heap.allocator, bytes, (uint32_t)k, &address, NULL) == HR_OK) {
            b->live[b->live_count++] = address;
        }
    } else {
        size_t at = (x >> 16) % b->live_count;
        allocator_free(b->heap.allocator, b->live[at]);
        b->live[at] = b->live[--b->live_count];
    }
}

// ---- the walk as judge -------------------------------------------------------------------------------------------

typedef struct judge {
    const heap_mirror *mirror;
    heap_walk walk;
    heap_piece piece; // free neighbours of the allocator's are one hole here
    uint64_t left_bytes;
    uint64_t blocks;
} judge;

static inline bool judge_chunk(void *context, const heap_chunk *chunk)
{
    judge *j = context;
    if (j->left_bytes == 0) {
        MUST(heap_mirror_next(j->mirror, &j->walk, &j->piece));
        MUST(j->piece.address == chunk->address);
        j->left_bytes = j->piece.bytes;
    }
    const heap_region *r = &j->mirror->regions[j->piece.region];
    MUST(r->address == chunk->region_address && r->bytes == chunk->region_bytes);
    MUST((j->piece.block != NULL) == chunk->in_use);
    MUST(chunk->size_bytes <= j->left_bytes);
    if (chunk->in_use) {
        MUST(chunk->size_bytes == j->piece.bytes);
        MUST(chunk->requested_bytes == j->piece.block->requested_bytes);
        MUST(chunk->tensor == j->piece.block->tensor);
        j->blocks++;
    }
    j->left_bytes -= chunk->size_bytes;
    return true;
}

static inline void mirror_must_be(const heap_mirror *m, const allocator *a)
{
    judge j = {.mirror = m};
    heap_counters stats = allocator_get_stats(a);
    a->ops->walk(a, judge_chunk, &j);
    MUST(j.left_bytes == 0 && j.blocks == m->block_count);
    MUST(!heap_mirror_next(m, &j.walk, &j.piece));
    MUST(m->requested_bytes == stats.requested_bytes && m->in_use_bytes == stats.in_use_bytes);
    MUST(heap_mirror_largest_free(m) == stats.largest_free_bytes);
    MUST(fabs(heap_mirror_fragmentation(m) - stats.fragmentation) < 1e-12);
}

static inline void must_be_sound(const heap_mirror *m)
{
    uint64_t pool_bytes = 0, in_use_bytes = 0, requested_bytes = 0, end = 0;
    for (size_t i = 0; i < m->region_count; i++) {
        MUST(m->regions[i].bytes > 0 && m->regions[i].address >= end);
        end = m->regions[i].address + m->regions[i].bytes;
        MUST(end > m->regions[i].address);
        pool_bytes += m->regions[i].bytes;
    }
    heap_walk walk = {0};
    heap_piece piece;
    size_t blocks = 0;
    uint64_t walked_bytes = 0;
    while (heap_mirror_next(m, &walk, &piece)) {
        heap_piece found;
        MUST(piece.bytes > 0 && heap_mirror_at(m, piece.address + piece.bytes / 2, &found));
        MUST(found.address == piece.address && found.bytes == piece.bytes && found.block == piece.block);
        in_use_bytes += piece.block == NULL ? 0 : piece.bytes;
        requested_bytes += piece.block == NULL ? 0 : piece.block->requested_bytes;
        walked_bytes += piece.bytes;
        blocks += piece.block != NULL;
    }
    MUST(blocks == m->block_count && walked_bytes == pool_bytes);
    MUST(m->pool_bytes == pool_bytes && m->in_use_bytes == in_use_bytes);
    MUST(m->requested_bytes == requested_bytes && requested_bytes <= in_use_bytes);
}

#endif
