// SPDX-License-Identifier: Apache-2.0
// Waiting for memory: TensorFlow's gpu_allocator_retry_test.cc mirrored (retry_success, no_retry_fail,
// retry_insufficient_fail), in time that passes only when everyone sleeps.
#include <pthread.h>

#include "base/host_mem.h"
#include "heap.h"
#include "memory/bfc.h"
#include "memory/retry.h"

#define SECOND_NS UINT64_C(1000000000)
#define HOUR_NS   (3600 * SECOND_NS) // by the system's clock: who needs it hangs until the test is stopped

enum { CONSUMERS = 3, CAPACITY = 2, BLOCK_BYTES = 256, ROUNDS = 2000 };

// ---- a clock --------------------------------------------------------------------------------------------------

// When all who are left sleep, the last one to lie down finds that his time is over. Guarded by the retry's lock.
typedef struct sleepers {
    uint64_t now_ns;
    uint32_t awake, asleep;
    uint64_t slept; // times
} sleepers;

static uint64_t sleepers_now_ns(void *context)
{
    return ((sleepers *)context)->now_ns;
}

static void sleepers_sleep(void *context, pthread_cond_t *wake, pthread_mutex_t *lock, uint64_t until_ns)
{
    sleepers *s = context;
    s->slept++;
    s->awake--;
    s->asleep++;
    if (s->awake == 0) {
        s->now_ns = until_ns;
        (void)pthread_cond_broadcast(wake);
    } else {
        (void)pthread_cond_wait(wake, lock);
    }
    s->awake++;
    s->asleep--;
}

static void one_leaves(allocator *h, void *context)
{
    (void)h;
    ((sleepers *)context)->awake--;
}

// ---- consumers ------------------------------------------------------------------------------------------------

typedef struct table {
    heap heap;
    retry *retry;
    sleepers sleepers;
    uint32_t consumers;
    pthread_barrier_t all_asked;
    bool meets; // everyone has asked for a first block before anyone goes on
    uint32_t blocks_needed, rounds;
    uint64_t wait_ns;
} table;

typedef struct consumer {
    table *table;
    pthread_t thread;
    uint32_t rounds, failures;
} consumer;

static uint32_t take_blocks(consumer *c, uint64_t address[CAPACITY])
{
    table *t = c->table;
    uint32_t taken = 0;
    bool served = true;
    allocator_request r = {.bytes = BLOCK_BYTES, .tensor = HR_NO_ID};
    while (served && taken < t->blocks_needed) {
        served = retry_serve(t->retry, &r, t->wait_ns, &address[taken], NULL) == HR_OK;
        if (t->meets && taken == 0) {
            (void)pthread_barrier_wait(&t->all_asked);
        }
        taken += served;
    }
    return taken;
}

static void *consume(void *context)
{
    consumer *c = context;
    table *t = c->table;
    while (c->failures == 0 && c->rounds < t->rounds) {
        uint64_t address[CAPACITY];
        uint32_t taken = take_blocks(c, address);
        c->failures += taken < t->blocks_needed;
        for (uint32_t i = 0; i < taken; i++) {
            retry_free(t->retry, address[i]);
        }
        c->rounds++;
    }
    retry_act(t->retry, one_leaves, &t->sleepers);
    return NULL;
}

// So many consumers of a heap of two blocks.
static void dine(table *t, consumer all[CONSUMERS])
{
    allocator_config config = bfc_config(CAPACITY * BLOCK_BYTES, false);
    retry_clock clock = {.context = &t->sleepers, .now_ns = sleepers_now_ns, .sleep = sleepers_sleep};
    t->heap = heap_open(&config);
    t->sleepers = (sleepers){.awake = t->consumers};
    ck_assert_int_eq(retry_open(t->heap.allocator, &clock, &t->retry, NULL), HR_OK);
    ck_assert_int_eq(pthread_barrier_init(&t->all_asked, NULL, t->consumers), 0);
    for (uint32_t i = 0; i < t->consumers; i++) {
        all[i] = (consumer){.table = t};
        ck_assert_int_eq(pthread_create(&all[i].thread, NULL, consume, &all[i]), 0);
    }
    for (uint32_t i = 0; i < t->consumers; i++) {
        ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
    }
    ck_assert_uint_eq(allocator_get_stats(t->heap.allocator).in_use_bytes, 0);
    retry_close(t->retry);
    heap_close(&t->heap);
    (void)pthread_barrier_destroy(&t->all_asked);
}

START_TEST(retry_success)
{
    consumer all[CONSUMERS];
    table t = {.consumers = 3, .blocks_needed = 1, .rounds = ROUNDS, .wait_ns = SECOND_NS};
    dine(&t, all);
    for (int i = 0; i < CONSUMERS; i++) {
        ck_assert_uint_eq(all[i].failures, 0);
        ck_assert_uint_eq(all[i].rounds, ROUNDS);
    }
    ck_assert_uint_eq(t.sleepers.now_ns, 0); // nobody's time was over
}
END_TEST

START_TEST(no_retry_fail)
{
    consumer all[CONSUMERS];
    table t = {.consumers = 3, .blocks_needed = 1, .rounds = 1, .wait_ns = 0, .meets = true};
    dine(&t, all);
    ck_assert_uint_eq(all[0].failures + all[1].failures + all[2].failures, 1);
    ck_assert_uint_eq(t.sleepers.slept, 0);
}
END_TEST

// The original leaves it to chance that each of its threads holds one block and wants another; here two of them do.
START_TEST(retry_insufficient_fail)
{
    consumer all[CONSUMERS];
    table t = {.consumers = 2, .blocks_needed = 2, .rounds = 1, .wait_ns = SECOND_NS, .meets = true};
    dine(&t, all);
    ck_assert_uint_ge(all[0].failures + all[1].failures, 1);
    ck_assert_uint_eq(t.sleepers.now_ns, SECOND_NS);
}
END_TEST

// ---- the system's clock ---------------------------------------------------------------------------------------

typedef struct waiting {
    retry *retry;
    allocator_request request;
    uint64_t address;
    hr_status status;
} waiting;

static void *wait_for_memory(void *context)
{
    waiting *w = context;
    w->status = retry_serve(w->retry, &w->request, HOUR_NS, &w->address, NULL);
    return NULL;
}

static void count_oom(void *context, const hr_event *event)
{
    *(uint32_t *)context += event->kind == HR_EVENT_OOM;
}

START_TEST(every_release_wakes_who_waits)
{
    trace_bus bus;
    uint32_t ooms = 0;
    scripted script = {0};
    trace_bus_init(&bus);
    ck_assert(trace_attach(&bus, count_oom, &ooms));
    allocator_config config = bfc_config(2 * BLOCK_BYTES, false);
    heap h = heap_over(&config, scripted_backing(&script, false), &bus);
    retry *r = NULL;
    pthread_t thread;
    ck_assert_int_eq(retry_open(h.allocator, NULL, &r, NULL), HR_OK);
    uint64_t first = heap_alloc(&h, BLOCK_BYTES), second = heap_alloc(&h, BLOCK_BYTES);
    waiting w = {.retry = r, .request = {.bytes = 2 * BLOCK_BYTES, .tensor = HR_NO_ID}};
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_memory, &w), 0);
    retry_free(r, first); // not enough yet
    retry_free(r, second);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(w.status, HR_OK);
    ck_assert_uint_eq(w.address, first);
    ck_assert_uint_eq(ooms, 0);
    retry_free(r, w.address);
    retry_close(r);
    heap_close(&h);
}
END_TEST

static void pass_the_frontier(allocator *h, void *context)
{
    bfc_set_safe_frontier(h, *(uint64_t *)context);
}

START_TEST(a_frontier_that_moves_wakes_too)
{
    allocator_config config = bfc_config(2 * BLOCK_BYTES, false);
    config.timestamped = true;
    config.garbage_collection = false;
    heap h = heap_open(&config);
    retry *r = NULL;
    pthread_t thread;
    uint64_t frontier = 3;
    ck_assert_int_eq(retry_open(h.allocator, NULL, &r, NULL), HR_OK);
    uint64_t first = heap_alloc(&h, BLOCK_BYTES), second = heap_alloc(&h, BLOCK_BYTES);
    retry_free(r, first);
    retry_free(r, second);
    waiting w = {.retry = r, .request = {.bytes = 2 * BLOCK_BYTES, .freed_before = 1, .tensor = HR_NO_ID}};
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_memory, &w), 0);
    retry_act(r, pass_the_frontier, &frontier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(w.address, first);
    retry_close(r);
    heap_close(&h);
}
END_TEST

START_TEST(time_ends_with_the_full_record)
{
    allocator_config config = bfc_config(BLOCK_BYTES, false);
    heap h = heap_open(&config);
    retry *r = NULL;
    hr_err err;
    uint64_t address = 1;
    allocator_request request = {.bytes = 2 * BLOCK_BYTES, .tensor = 5};
    ck_assert_int_eq(retry_open(h.allocator, NULL, &r, NULL), HR_OK);
    ck_assert_int_eq(retry_serve(r, &request, 1000, &address, &err), HR_OOM);
    ck_assert_uint_eq(address, 0);
    ck_assert_ptr_nonnull(strstr(err.sentence, "bfc allocator: needed 512 B in one piece"));
    ck_assert(h.allocator->refusal.any);
    ck_assert_uint_eq(h.allocator->refusal.tensor, 5);
    request.bytes = 0;
    ck_assert_int_eq(retry_serve(r, &request, 1000, &address, &err), HR_OK);
    ck_assert_uint_eq(address, 0);
    retry_close(r);
    heap_close(&h);
}
END_TEST

START_TEST(host_memory_that_fails_is_no_reason_to_wait)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    retry *r = NULL;
    uint64_t address = 1;
    allocator_request request = {.bytes = BLOCK_BYTES, .tensor = HR_NO_ID};
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(retry_open(h.allocator, NULL, &r, NULL), HR_NOMEM);
    ck_assert_ptr_null(r);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(retry_open(h.allocator, NULL, &r, NULL), HR_OK);
    (void)hr_host_mem_fail_at(1);
    hr_status status = retry_serve(r, &request, HOUR_NS, &address, NULL);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(status, HR_OK); // there was some at the second hint
    retry_free(r, address);
    retry_close(r);
    heap_close(&h);
}
END_TEST

static Suite *retry_suite(void)
{
    Suite *suite = suite_create("retry");
    TCase *tensorflow = tcase_create("gpu_allocator_retry_test");
    tcase_add_test(tensorflow, retry_success);
    tcase_add_test(tensorflow, no_retry_fail);
    tcase_add_test(tensorflow, retry_insufficient_fail);
    suite_add_tcase(suite, tensorflow);
    TCase *waits = tcase_create("waiting");
    tcase_add_test(waits, every_release_wakes_who_waits);
    tcase_add_test(waits, a_frontier_that_moves_wakes_too);
    tcase_add_test(waits, time_ends_with_the_full_record);
    tcase_add_test(waits, host_memory_that_fails_is_no_reason_to_wait);
    suite_add_tcase(suite, waits);
    return suite;
}

TEST_MAIN(retry_suite())
