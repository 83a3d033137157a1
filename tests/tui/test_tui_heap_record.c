// SPDX-License-Identifier: Apache-2.0
// What the workbench keeps of a step's memory events: whole steps, refused requests, and the way back after a loss.
#include "tests/tui/heap_bench.h"
#include "tests/tui/suite.h"

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

SUITE_MAIN("tui heap record", the_last_whole_step_is_kept_and_its_heap_is_reached_from_now,
           a_step_that_is_too_long_keeps_its_newest_events,
           a_refused_request_ends_the_step_with_the_heap_as_it_was,
           what_a_dry_run_was_refused_is_kept_beside_the_last_step,
           after_lost_events_the_heap_heals_with_the_steps_that_come,
           a_snapshot_brings_the_heap_back_and_what_came_since_is_done_to_it_again,
           a_snapshot_that_contradicts_itself_is_not_taken)
