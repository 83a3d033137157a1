// SPDX-License-Identifier: Apache-2.0
// The ring: nothing lost while it is drained, the oldest lost and counted when it is not, never a torn record.
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "trace/ring.h"

enum { THREAD_EVENTS = 200000, TAKE_MAX = 64 };

// An event whose every word follows from its number, so that a mix of two records shows.
static hr_event numbered(uint64_t n)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_ALLOC, .seq = n, .time_ns = ~n};
    e.u.memory = (hr_event_memory){.address = n * 3,
                                   .requested_bytes = n * 5,
                                   .allocated_bytes = n * 7,
                                   .in_use_bytes = n * 11,
                                   .pool_bytes = n * 13,
                                   .tensor = (uint32_t)n};
    return e;
}

static bool is_whole(const hr_event *e)
{
    hr_event expected = numbered(e->seq);
    return memcmp(e, &expected, sizeof expected) == 0;
}

static trace_ring *ring_of(uint32_t capacity)
{
    trace_ring *ring;
    ck_assert_int_eq(trace_ring_create(capacity, &ring, NULL), HR_OK);
    return ring;
}

static void put_range(trace_ring *ring, uint64_t from, uint64_t to)
{
    for (uint64_t n = from; n < to; n++) {
        hr_event e = numbered(n);
        trace_ring_put(ring, &e);
    }
}

START_TEST(a_drained_ring_loses_nothing)
{
    trace_ring *ring = ring_of(8);
    hr_event out[TAKE_MAX];
    uint64_t lost = 99, next = 0;
    for (uint64_t round = 0; round < 40; round++) {
        put_range(ring, round * 7, round * 7 + 7);
        size_t got = trace_ring_take(ring, out, TAKE_MAX, &lost);
        ck_assert_uint_eq(got, 7);
        ck_assert_uint_eq(lost, 0);
        for (size_t i = 0; i < got; i++) {
            ck_assert_uint_eq(out[i].seq, next++);
            ck_assert(is_whole(&out[i]));
        }
    }
    ck_assert_uint_eq(trace_ring_take(ring, out, TAKE_MAX, &lost), 0);
    trace_ring_destroy(ring);
    trace_ring_destroy(NULL);
}
END_TEST

START_TEST(a_slow_reader_loses_the_oldest_and_is_told_how_many)
{
    trace_ring *ring = ring_of(6); // rounded up to 8
    hr_event out[TAKE_MAX];
    uint64_t lost = 0;
    put_range(ring, 0, 8);
    ck_assert_uint_eq(trace_ring_take(ring, out, 3, &lost), 3);
    ck_assert_uint_eq(lost, 0);
    put_range(ring, 8, 21); // records 13 … 20 remain
    ck_assert_uint_eq(trace_ring_take(ring, out, TAKE_MAX, &lost), 8);
    ck_assert_uint_eq(lost, 10);
    ck_assert_uint_eq(out[0].seq, 13);
    ck_assert_uint_eq(out[7].seq, 20);
    ck_assert_uint_eq(trace_ring_take(ring, out, TAKE_MAX, NULL), 0);
    trace_ring_destroy(ring);
}
END_TEST

START_TEST(a_ring_of_one_keeps_the_newest)
{
    trace_ring *ring = ring_of(0);
    hr_event out[2];
    uint64_t lost = 0;
    put_range(ring, 0, 5);
    ck_assert_uint_eq(trace_ring_take(ring, out, 2, &lost), 1);
    ck_assert_uint_eq(out[0].seq, 4);
    ck_assert_uint_eq(lost, 4);
    trace_ring_destroy(ring);
}
END_TEST

START_TEST(short_memory_and_absurd_sizes_are_refused)
{
    trace_ring *ring;
    int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1; nth <= 2; nth++) {
        (void)hr_host_mem_fail_at(nth);
        ck_assert_int_eq(trace_ring_create(16, &ring, NULL), HR_NOMEM);
        ck_assert_ptr_null(ring);
    }
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(trace_ring_create(UINT32_MAX, &ring, NULL), HR_NOMEM);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

typedef struct race {
    trace_ring *ring;
    atomic_bool done;
    bool gently; // lets the consumer run now and then
} race;

static void *produce(void *context)
{
    race *r = context;
    for (uint64_t n = 0; n < THREAD_EVENTS; n++) {
        hr_event e = numbered(n);
        trace_ring_put(r->ring, &e);
        if (r->gently && n % 32 == 0) {
            sched_yield();
        }
    }
    atomic_store(&r->done, true);
    return NULL;
}

START_TEST(two_threads_never_see_a_torn_record)
{
    race r = {.ring = ring_of(_i == 0 ? 16 : 4096), .gently = _i == 1};
    pthread_t producer;
    ck_assert_int_eq(pthread_create(&producer, NULL, produce, &r), 0);
    uint64_t expected = 0, taken = 0, lost_sum = 0;
    bool done = false;
    for (size_t got = 1; !done || got > 0;) {
        hr_event out[TAKE_MAX];
        uint64_t lost;
        done = atomic_load(&r.done);
        got = trace_ring_take(r.ring, out, TAKE_MAX, &lost);
        lost_sum += lost;
        for (size_t i = 0; i < got; i++) {
            if (!is_whole(&out[i]) || out[i].seq < expected) {
                ck_abort_msg("record %llu is torn or out of order", (unsigned long long)out[i].seq);
            }
            expected = out[i].seq + 1;
        }
        taken += got;
        if (got == 0) {
            sched_yield();
        }
    }
    pthread_join(producer, NULL);
    ck_assert_uint_eq(taken + lost_sum, THREAD_EVENTS);
    ck_assert_uint_eq(expected, THREAD_EVENTS); // the newest is never lost
    trace_ring_destroy(r.ring);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ring");
    TCase *single = tcase_create("one thread"), *threads = tcase_create("two threads");
    tcase_add_test(single, a_drained_ring_loses_nothing);
    tcase_add_test(single, a_slow_reader_loses_the_oldest_and_is_told_how_many);
    tcase_add_test(single, a_ring_of_one_keeps_the_newest);
    tcase_add_test(single, short_memory_and_absurd_sizes_are_refused);
    suite_add_tcase(suite, single);
    tcase_add_loop_test(threads, two_threads_never_see_a_torn_record, 0, 2);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
