// SPDX-License-Identifier: Apache-2.0
// The heap that the workbench rebuilds from events against the allocators' own walks and counters, forwards and
// backwards; and what it makes of events that contradict it.
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/heap_record.h"
#include "memory/heap.h"
#include "tests/tui/suite.h"

enum { LIVE_MAX = 200, OPERATIONS = 1500, EVENTS_MAX = 40000, KEPT = 64 };

// ---- an allocator of the engine, and the mirror that listens to it -----------------------------------------------

typedef struct subject {
    const char *name, *kind;
    bool growth, expandable;
    uint64_t limit_bytes, size_max_bytes, release_bytes;
} subject;

static const subject subjects[] = {
    {"bfc", "bfc", false, false, 64 * HR_MIB, HR_MIB, 0},
    {"bfc, growing", "bfc", true, false, 64 * HR_MIB, HR_MIB, 0},
    {"caching", "caching", false, false, 256 * HR_MIB, 4 * HR_MIB, 0},
    {"caching, small", "caching", false, false, 64 * HR_MIB, 64 * HR_KIB, 0},
    {"caching, expandable", "caching", false, true, 256 * HR_MIB, 4 * HR_MIB, 0},
    {"async", "async", false, false, 128 * HR_MIB, 2 * HR_MIB, 8 * HR_MIB},
    {"async, keeps", "async", false, false, 128 * HR_MIB, 2 * HR_MIB, UINT64_MAX},
    {"direct", "direct", false, false, 64 * HR_MIB, HR_MIB, 0},
};

typedef struct listener {
    heap_mirror mirror;
    heap_change *changes;
    size_t count;
    uint64_t events;
} listener;

static void listen(void *context, const hr_event *e)
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

static void bench_open(bench *b, const subject *s, trace_sink sink, void *context)
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

static void bench_close(bench *b)
{
    heap_close(&b->heap);
    MUST(b->listener.mirror.block_count == 0 && b->listener.mirror.region_count == 0);
    heap_mirror_deinit(&b->listener.mirror);
    free(b->listener.changes);
}

// Phases that fill and empty; now and then a step ends.
static void operate(bench *b, unsigned k)
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

static bool judge_chunk(void *context, const heap_chunk *chunk)
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

static void mirror_must_be(const heap_mirror *m, const allocator *a)
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

START_TEST(the_mirror_is_the_heap_of_every_allocator_after_every_request)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        bench b;
        bench_open(&b, &subjects[i], NULL, NULL);
        for (unsigned k = 0; k < OPERATIONS; k++) {
            operate(&b, k);
            mirror_must_be(&b.listener.mirror, b.heap.allocator);
        }
        MUST(b.listener.count > OPERATIONS / 2);
        bench_close(&b);
    }
}
END_TEST

START_TEST(a_planned_heap_is_mirrored_too)
{
    static const uint64_t sizes[] = {1000, 70000, 256, 5000, 123456, 77};
    enum { TENSORS = sizeof sizes / sizeof *sizes };
    pack_buffer buffers[TENSORS];
    uint32_t tags[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++) {
        buffers[i] = (pack_buffer){i, i + 3, sizes[i]};
        tags[i] = i;
    }
    static const subject fixed = {"static", "static", false, false, 64 * HR_MIB, HR_MIB, 0};
    bench b;
    bench_open(&b, &fixed, NULL, NULL);
    allocator_requests step = {buffers, tags, TENSORS};
    uint64_t needed, addresses[TENSORS];
    ck_assert_int_eq(allocator_plan_ahead(b.heap.allocator,
                                          &(allocator_plan){.steps = &step, .step_count = 1}, &needed, NULL),
                     HR_OK);
    ck_assert_int_eq(allocator_follow(b.heap.allocator, 0, NULL), HR_OK);
    for (uint32_t at = 0; at < TENSORS + 3; at++) {
        if (at >= 3) {
            allocator_free(b.heap.allocator, addresses[at - 3]);
            mirror_must_be(&b.listener.mirror, b.heap.allocator);
        }
        if (at < TENSORS) {
            MUST(allocator_alloc(b.heap.allocator, sizes[at], at, &addresses[at], NULL) == HR_OK);
            mirror_must_be(&b.listener.mirror, b.heap.allocator);
        }
    }
    bench_close(&b);
}
END_TEST

// ---- backwards ---------------------------------------------------------------------------------------------------

START_TEST(every_way_back_and_forth_leads_through_the_same_heaps)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        bench b;
        bench_open(&b, &subjects[i], NULL, NULL);
        heap_mirror kept[KEPT] = {{0}}, walked = {0};
        size_t kept_at[KEPT], kept_count = 0;
        for (unsigned k = 0; k < OPERATIONS; k++) {
            operate(&b, k);
            if (k % (OPERATIONS / KEPT + 1) == 0) {
                MUST(heap_mirror_copy(&kept[kept_count], &b.listener.mirror));
                kept_at[kept_count++] = b.listener.count;
            }
        }
        MUST(heap_mirror_copy(&walked, &b.listener.mirror));
        size_t at = b.listener.count;
        for (unsigned hop = 0; hop < 40; hop++) {
            size_t to = next_random(&b.seed) % kept_count;
            while (at > kept_at[to]) {
                MUST(heap_mirror_undo(&walked, &b.listener.changes[--at]));
            }
            while (at < kept_at[to]) {
                MUST(heap_mirror_apply(&walked, &b.listener.changes[at++]));
            }
            MUST(heap_mirror_equal(&walked, &kept[to]));
        }
        while (at > 0) {
            MUST(heap_mirror_undo(&walked, &b.listener.changes[--at]));
        }
        MUST(walked.block_count == 0 && walked.region_count == 0);
        MUST(walked.pool_bytes == 0 && walked.in_use_bytes == 0 && walked.requested_bytes == 0);
        for (size_t k = 0; k < kept_count; k++) {
            heap_mirror_deinit(&kept[k]);
        }
        heap_mirror_deinit(&walked);
        bench_close(&b);
    }
}
END_TEST

// ---- what is not to be trusted -----------------------------------------------------------------------------------

static void must_be_sound(const heap_mirror *m)
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

// Small numbers that meet each other, and now and then any number at all.
static uint64_t wild(uint64_t *seed)
{
    uint64_t x = next_random(seed);
    return x % 16 == 0   ? next_random(seed) >> (x >> 8) % 64
           : x % 16 == 1 ? UINT64_MAX - (x >> 8) % 3
                         : (x >> 8) % 64;
}

static hr_event wild_event(uint64_t *seed)
{
    hr_event e = {.version = HR_EVENT_VERSION};
    e.kind = (uint8_t)(next_random(seed) % 40 == 0 ? next_random(seed) : 1 + next_random(seed) % 5);
    e.category = (uint8_t)next_random(seed);
    e.phase = (uint8_t)(next_random(seed) % 8);
    e.seq = wild(seed);
    e.u.memory = (hr_event_memory){.address = wild(seed),
                                   .requested_bytes = wild(seed),
                                   .allocated_bytes = wild(seed),
                                   .in_use_bytes = wild(seed),
                                   .pool_bytes = wild(seed),
                                   .largest_free_bytes = wild(seed),
                                   .tensor = (uint32_t)wild(seed)};
    return e;
}

START_TEST(events_that_contradict_the_heap_are_refused_and_change_nothing)
{
    for (int joins = 0; joins < 2; joins++) {
        heap_mirror m = {.joins = joins != 0}, before = {0};
        uint64_t seed = 5, refused = 0, taken = 0;
        for (int i = 0; i < 20000; i++) {
            hr_event e = wild_event(&seed);
            heap_change c = heap_change_of(&e);
            MUST(heap_mirror_copy(&before, &m));
            if (!heap_mirror_apply(&m, &c)) {
                MUST(heap_mirror_equal(&before, &m));
                refused++;
            } else {
                must_be_sound(&m);
                heap_mirror back = {0};
                MUST(heap_mirror_copy(&back, &m) && heap_mirror_undo(&back, &c));
                MUST(heap_mirror_equal(&before, &back));
                heap_mirror_deinit(&back);
                taken++;
            }
        }
        ck_assert_uint_gt(taken, 500);
        ck_assert_uint_gt(refused, 5000);
        heap_mirror_deinit(&m);
        heap_mirror_deinit(&before);
    }
}
END_TEST

START_TEST(a_stream_of_nonsense_is_counted_as_damage_and_takes_bounded_memory)
{
    heap_record r = {0};
    uint64_t seed = 6;
    for (int i = 0; i < 60000; i++) {
        hr_event e = wild_event(&seed);
        heap_record_feed(&r, &e);
        if (i % 100 == 0) {
            must_be_sound(&r.now);
            MUST(r.closed <= r.current && r.current <= r.count && r.count <= HEAP_CHANGES_MAX);
        }
    }
    ck_assert_uint_gt(r.damage, 1000);
    heap_record_deinit(&r);
}
END_TEST

START_TEST(more_blocks_than_are_kept_are_damage)
{
    heap_mirror m = {0};
    heap_change region = {.kind = HR_EVENT_GROW, .address = 1 << 20, .bytes = 256u * (HEAP_BLOCKS_MAX + 9)};
    ck_assert(heap_mirror_apply(&m, &region));
    size_t taken = 0;
    for (size_t i = 0; i < HEAP_BLOCKS_MAX + 5; i++) {
        heap_change c = {.kind = HR_EVENT_ALLOC, .address = (1 << 20) + 256 * i, .bytes = 256};
        taken += heap_mirror_apply(&m, &c);
    }
    ck_assert_uint_eq(taken, HEAP_BLOCKS_MAX);
    heap_mirror_deinit(&m);
}
END_TEST

// ---- steps --------------------------------------------------------------------------------------------------------

static const subject growing = {"bfc, growing", "bfc", true, false, 64 * HR_MIB, HR_MIB, 0};

static void record_event(void *context, const hr_event *e)
{
    heap_record_feed(context, e);
}

static void end_step(bench *b, heap_record *r, uint32_t number)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = number, .seq = b->bus.seq++};
    heap_record_feed(r, &e);
}

static uint64_t take(bench *b, uint64_t bytes, uint32_t tensor)
{
    uint64_t address;
    MUST(allocator_alloc(b->heap.allocator, bytes, tensor, &address, NULL) == HR_OK);
    return address;
}

// A step of `count` blocks that come and go.
static void play_step(bench *b, unsigned count)
{
    uint64_t addresses[64];
    for (unsigned i = 0; i < count; i++) {
        addresses[i] = take(b, 1000 + 5000 * i, 100 + i);
    }
    for (unsigned i = 0; i < count; i++) {
        allocator_free(b->heap.allocator, addresses[i]);
    }
}

static void begin_training(bench *b, heap_record *r)
{
    bench_open(b, &growing, record_event, r);
    trace_note(&b->bus, HR_EVENT_BUILD, 0, "built");
    b->bus.phase = HR_PHASE_BUILD;
    (void)take(b, 100000, 1);
    (void)take(b, 200000, 2);
    b->bus.phase = HR_PHASE_FORWARD;
}

// The heap after `at` changes of the closed step.
static void walk_back(const heap_record *r, size_t at, heap_mirror *m)
{
    MUST(heap_mirror_copy(m, &r->now));
    for (size_t i = r->count; i > at; i--) {
        MUST(heap_mirror_undo(m, &r->changes[i - 1]));
    }
}

START_TEST(the_last_whole_step_is_kept_and_its_heap_is_reached_from_now)
{
    heap_record r = {0};
    heap_mirror m = {0};
    bench b;
    begin_training(&b, &r);
    ck_assert_int_eq(r.step.kind, HEAP_STEP_NONE);
    play_step(&b, 8);
    ck_assert_int_eq(r.step.kind, HEAP_STEP_BUILD);
    ck_assert_uint_eq(r.closed, 3); // a region and two weights
    end_step(&b, &r, 1);
    ck_assert_int_eq(r.step.kind, HEAP_STEP_TRAINED);
    ck_assert_uint_eq(r.step.number, 1);
    ck_assert_uint_eq(r.closed, 16);
    play_step(&b, 20); // an evaluation
    hr_event eval = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_EVAL};
    heap_record_feed(&r, &eval);
    play_step(&b, 5); // a step that goes on
    ck_assert_uint_eq(r.closed, 16);
    walk_back(&r, 8, &m); // at its fullest
    ck_assert_uint_eq(m.block_count, 10);
    walk_back(&r, 0, &m);
    ck_assert_uint_eq(m.block_count, 2);
    end_step(&b, &r, 2);
    ck_assert_uint_eq(r.step.number, 2);
    ck_assert_uint_eq(r.closed, 10);
    ck_assert_uint_eq(r.damage, 0);
    heap_mirror_deinit(&m);
    heap_close(&b.heap);
    free(b.listener.changes);
    heap_record_deinit(&r);
}
END_TEST

START_TEST(a_step_that_is_too_long_keeps_its_newest_events)
{
    heap_record r = {0};
    heap_mirror m = {0};
    bench b;
    begin_training(&b, &r);
    for (unsigned i = 0; i < 900; i++) {
        play_step(&b, 20);
    }
    end_step(&b, &r, 1);
    ck_assert_uint_eq(r.closed, HEAP_STEP_CHANGES_MAX);
    ck_assert_uint_eq(r.step.missing + r.closed, 900 * 40);
    walk_back(&r, 0, &m);
    must_be_sound(&m);
    heap_mirror_deinit(&m);
    heap_close(&b.heap);
    free(b.listener.changes);
    heap_record_deinit(&r);
}
END_TEST

START_TEST(a_refused_request_ends_the_step_with_the_heap_as_it_was)
{
    heap_record r = {0};
    heap_mirror m = {0};
    bench b;
    begin_training(&b, &r);
    play_step(&b, 4);
    end_step(&b, &r, 1);
    uint64_t held = take(&b, 30 * HR_MIB, 7), address;
    ck_assert_int_eq(allocator_alloc(b.heap.allocator, 60 * HR_MIB, 8, &address, NULL), HR_OOM);
    heap_counters stats = allocator_get_stats(b.heap.allocator);
    allocator_free(b.heap.allocator, held);
    ck_assert(r.refused.any && r.refused.is_recorded);
    ck_assert_int_eq(r.step.kind, HEAP_STEP_REFUSED);
    ck_assert_int_eq(r.changes[r.closed - 1].kind, HR_EVENT_OOM);
    walk_back(&r, r.closed, &m);
    ck_assert_uint_eq(m.in_use_bytes, stats.in_use_bytes);
    ck_assert_uint_eq(heap_mirror_largest_free(&m), stats.largest_free_bytes);
    ck_assert_uint_eq(r.refused.largest_free_bytes, stats.largest_free_bytes);
    heap_mirror_deinit(&m);
    heap_close(&b.heap);
    free(b.listener.changes);
    heap_record_deinit(&r);
}
END_TEST

START_TEST(what_a_dry_run_was_refused_is_kept_beside_the_last_step)
{
    heap_record r = {0};
    bench b;
    begin_training(&b, &r);
    play_step(&b, 4);
    end_step(&b, &r, 1);
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_OOM};
    e.u.memory =
        (hr_event_memory){.requested_bytes = 5, .in_use_bytes = 60 * HR_MIB, .pool_bytes = 64 * HR_MIB};
    heap_record_feed(&r, &e);
    ck_assert(r.refused.any && !r.refused.is_recorded);
    ck_assert_int_eq(r.step.kind, HEAP_STEP_TRAINED);
    ck_assert_uint_eq(r.damage, 0);
    play_step(&b, 4);
    end_step(&b, &r, 2);
    ck_assert(!r.refused.any);
    heap_close(&b.heap);
    free(b.listener.changes);
    heap_record_deinit(&r);
}
END_TEST

// ---- losses -------------------------------------------------------------------------------------------------------

typedef struct leaky {
    heap_record *record;
    bool leaks;
    uint64_t lost;
} leaky;

static void feed_leaky(void *context, const hr_event *e)
{
    leaky *l = context;
    if (l->leaks) {
        l->lost++;
        return;
    }
    if (l->lost > 0) {
        heap_record_lost(l->record, l->lost);
        l->lost = 0;
    }
    heap_record_feed(l->record, e);
}

START_TEST(after_lost_events_the_heap_heals_with_the_steps_that_come)
{
    heap_record r = {0};
    leaky l = {.record = &r};
    bench b;
    bench_open(&b, &growing, feed_leaky, &l);
    uint64_t first = take(&b, 3 * HR_MIB, 1);
    play_step(&b, 40);
    end_step(&b, &r, 1);
    uint64_t addresses[10];
    for (unsigned i = 0; i < 10; i++) {
        addresses[i] = take(&b, 60000, 50 + i);
    }
    l.leaks = true;
    for (unsigned i = 0; i < 10; i++) {
        allocator_free(b.heap.allocator, addresses[i]);
    }
    l.leaks = false;
    play_step(&b, 40); // its blocks lie where the lost ones were
    ck_assert_int_eq(r.step.kind, HEAP_STEP_NONE);
    end_step(&b, &r, 2);
    play_step(&b, 40);
    end_step(&b, &r, 3);
    ck_assert_int_eq(r.step.kind, HEAP_STEP_TRAINED);
    ck_assert_uint_eq(r.lost_events, 10);
    mirror_must_be(&r.now, b.heap.allocator);
    allocator_free(b.heap.allocator, first);
    heap_close(&b.heap);
    free(b.listener.changes);
    heap_record_deinit(&r);
}
END_TEST

typedef struct snapshot {
    hr_session_chunk chunks[512];
    hr_session_heap heap;
} snapshot;

static bool add_chunk(void *context, const heap_chunk *c)
{
    snapshot *s = context;
    MUST(s->heap.count < sizeof s->chunks / sizeof *s->chunks);
    s->chunks[s->heap.count++] = (hr_session_chunk){.address = c->address,
                                                    .size_bytes = c->size_bytes,
                                                    .requested_bytes = c->requested_bytes,
                                                    .region_address = c->region_address,
                                                    .region_bytes = c->region_bytes,
                                                    .tensor = c->tensor,
                                                    .in_use = c->in_use,
                                                    .pending = c->pending};
    return true;
}

static void take_snapshot(snapshot *s, const bench *b)
{
    *s = (snapshot){.heap = {.seq = b->bus.seq, .chunks = s->chunks}};
    b->heap.allocator->ops->walk(b->heap.allocator, add_chunk, s);
}

START_TEST(a_snapshot_brings_the_heap_back_and_what_came_since_is_done_to_it_again)
{
    for (unsigned since = 0; since < 2; since++) {
        heap_record r = {0};
        leaky l = {.record = &r};
        static snapshot s;
        bench b;
        bench_open(&b, &growing, feed_leaky, &l);
        (void)take(&b, 3 * HR_MIB, 1);
        end_step(&b, &r, 1);
        l.leaks = true;
        (void)take(&b, 9 * HR_MIB, 2); // a region that nobody heard of
        l.leaks = false;
        uint64_t gone = take(&b, 70000, 3);
        take_snapshot(&s, &b);
        uint64_t late = since == 0 ? 0 : take(&b, 1234567, 4);
        if (since > 0) {
            allocator_free(b.heap.allocator, gone);
        }
        snapshot early = {.heap = {.seq = 0}};
        ck_assert(!heap_record_restore(&r, &early.heap)); // from before the loss
        ck_assert(heap_record_restore(&r, &s.heap));
        mirror_must_be(&r.now, b.heap.allocator);
        allocator_free(b.heap.allocator, late);
        play_step(&b, 6);
        end_step(&b, &r, 2);
        play_step(&b, 6);
        end_step(&b, &r, 3);
        ck_assert_int_eq(r.step.kind, HEAP_STEP_TRAINED);
        mirror_must_be(&r.now, b.heap.allocator);
        heap_close(&b.heap);
        free(b.listener.changes);
        heap_record_deinit(&r);
    }
}
END_TEST

START_TEST(a_snapshot_that_contradicts_itself_is_not_taken)
{
    hr_session_chunk chunks[] = {{.address = 4096,
                                  .size_bytes = 512,
                                  .requested_bytes = 5,
                                  .region_address = 4096,
                                  .region_bytes = 1024,
                                  .in_use = true},
                                 {.address = 4352,
                                  .size_bytes = 512,
                                  .requested_bytes = 5,
                                  .region_address = 4096,
                                  .region_bytes = 1024,
                                  .in_use = true}};
    heap_mirror m = {0};
    ck_assert(!heap_mirror_restore(&m, &(hr_session_heap){.chunks = chunks, .count = 2}));
    ck_assert_uint_eq(m.region_count, 0);
    ck_assert(heap_mirror_restore(&m, &(hr_session_heap){.chunks = chunks, .count = 1}));
    ck_assert_uint_eq(m.in_use_bytes, 512);
    heap_mirror_deinit(&m);
}
END_TEST

SUITE_MAIN("tui heap", the_mirror_is_the_heap_of_every_allocator_after_every_request,
           a_planned_heap_is_mirrored_too, every_way_back_and_forth_leads_through_the_same_heaps,
           events_that_contradict_the_heap_are_refused_and_change_nothing,
           a_stream_of_nonsense_is_counted_as_damage_and_takes_bounded_memory,
           more_blocks_than_are_kept_are_damage, the_last_whole_step_is_kept_and_its_heap_is_reached_from_now,
           a_step_that_is_too_long_keeps_its_newest_events,
           a_refused_request_ends_the_step_with_the_heap_as_it_was,
           what_a_dry_run_was_refused_is_kept_beside_the_last_step,
           after_lost_events_the_heap_heals_with_the_steps_that_come,
           a_snapshot_brings_the_heap_back_and_what_came_since_is_done_to_it_again,
           a_snapshot_that_contradicts_itself_is_not_taken)
