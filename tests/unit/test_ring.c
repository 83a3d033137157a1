// SPDX-License-Identifier: Apache-2.0
// The ring: nothing lost while it is drained, the oldest lost and counted when it is not, never a torn record; what
// another process can do with its memory, and what a forged one does to a reader.
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "events/ring.h"

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

static trace_reader *reader_of(const trace_ring *ring)
{
    trace_reader *reader;
    ck_assert_int_eq(trace_reader_of(ring, &reader, NULL), HR_OK);
    return reader;
}

// Through the descriptor, as another process has it.
static trace_reader *stranger_of(const trace_ring *ring)
{
    hr_err err = {0};
    trace_reader *reader;
    ck_assert_msg(trace_reader_open(trace_ring_fd(ring), &reader, &err) == HR_OK, "%s", err.sentence);
    return reader;
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
    trace_reader *reader = _i == 0 ? reader_of(ring) : stranger_of(ring);
    hr_event out[TAKE_MAX];
    uint64_t lost = 99, next = 0;
    for (uint64_t round = 0; round < 40; round++) {
        ck_assert(!trace_reader_waits(reader));
        put_range(ring, round * 7, round * 7 + 7);
        ck_assert(trace_reader_waits(reader));
        size_t got = trace_reader_take(reader, out, TAKE_MAX, &lost);
        ck_assert_uint_eq(got, 7);
        ck_assert_uint_eq(lost, 0);
        for (size_t i = 0; i < got; i++) {
            ck_assert_uint_eq(out[i].seq, next++);
            ck_assert(is_whole(&out[i]));
        }
    }
    ck_assert_uint_eq(trace_reader_take(reader, out, TAKE_MAX, &lost), 0);
    ck_assert_uint_eq(trace_reader_taken(reader), trace_ring_put_count(ring));
    trace_reader_close(reader);
    trace_reader_close(NULL);
    trace_ring_destroy(ring);
    trace_ring_destroy(NULL);
}
END_TEST

START_TEST(a_slow_reader_loses_the_oldest_and_is_told_how_many)
{
    trace_ring *ring = ring_of(6); // rounded up to 8
    trace_reader *slow = reader_of(ring), *quick = stranger_of(ring);
    hr_event out[TAKE_MAX];
    uint64_t lost = 0;
    put_range(ring, 0, 8);
    ck_assert_uint_eq(trace_reader_take(slow, out, 3, &lost), 3);
    ck_assert_uint_eq(lost, 0);
    for (uint64_t k = 8; k < 21; k++) { // records 13 … 20 remain
        put_range(ring, k, k + 1);
        ck_assert_uint_eq(trace_reader_take(quick, out, TAKE_MAX, &lost), k == 8 ? 8 : 1);
        ck_assert_uint_eq(lost, k == 8);
    }
    ck_assert_uint_eq(trace_reader_take(slow, out, TAKE_MAX, &lost), 8);
    ck_assert_uint_eq(lost, 10);
    ck_assert_uint_eq(out[0].seq, 13);
    ck_assert_uint_eq(out[7].seq, 20);
    ck_assert_uint_eq(trace_reader_take(slow, out, TAKE_MAX, NULL), 0);
    trace_reader_close(slow);
    trace_reader_close(quick);
    trace_ring_destroy(ring);
}
END_TEST

START_TEST(a_ring_of_one_keeps_the_newest)
{
    trace_ring *ring = ring_of(0);
    trace_reader *reader = reader_of(ring);
    hr_event out[2];
    uint64_t lost = 0;
    put_range(ring, 0, 5);
    ck_assert_uint_eq(trace_reader_take(reader, out, 2, &lost), 1);
    ck_assert_uint_eq(out[0].seq, 4);
    ck_assert_uint_eq(lost, 4);
    trace_reader_close(reader);
    trace_ring_destroy(ring);
}
END_TEST

START_TEST(what_a_reader_has_outlives_the_producer)
{
    trace_ring *ring = ring_of(8);
    trace_reader *reader = stranger_of(ring);
    hr_event out[TAKE_MAX];
    put_range(ring, 0, 5);
    atomic_store(&trace_ring_heartbeat(ring)->position.step, 12);
    atomic_store(&trace_ring_heartbeat(ring)->position.instr, 34);
    trace_ring_destroy(ring);
    ck_assert_uint_eq(trace_reader_take(reader, out, TAKE_MAX, NULL), 5);
    trace_heartbeat_copy heartbeat = trace_reader_heartbeat(reader);
    ck_assert_uint_eq(heartbeat.step, 12);
    ck_assert_uint_eq(heartbeat.instr, 34);
    ck_assert_uint_eq(heartbeat.saved_step, UINT64_MAX);
    trace_reader_close(reader);
}
END_TEST

START_TEST(nobody_who_has_the_descriptor_can_write_or_resize)
{
    trace_ring *ring = ring_of(8);
    int fd = trace_ring_fd(ring);
    struct stat info;
    char path[64];
    ck_assert_int_eq(fstat(fd, &info), 0);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_ne(ftruncate(fd, 0), 0);
    ck_assert_int_ne(ftruncate(fd, 2 * info.st_size), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd); // opened anew, for writing
    int again = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    ck_assert_int_eq(write(again, "x", 1), -1);
    close(again);
    trace_ring_destroy(ring);
}
END_TEST

// The bytes of a ring of 8 in memory that is not (yet) sealed.
static int copy_of_ring(size_t *bytes)
{
    struct stat info;
    trace_ring *ring = ring_of(8);
    ck_assert_int_eq(fstat(trace_ring_fd(ring), &info), 0);
    *bytes = (size_t)info.st_size;
    uint8_t *data = malloc(*bytes);
    ck_assert_int_eq(pread(trace_ring_fd(ring), data, *bytes, 0), info.st_size);
    int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(pwrite(fd, data, *bytes, 0), info.st_size);
    free(data);
    trace_ring_destroy(ring);
    return fd;
}

static hr_status seal_and_open(int fd)
{
    trace_reader *reader = NULL;
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    hr_status status = trace_reader_open(fd, &reader, NULL);
    ck_assert_int_eq(reader != NULL, status == HR_OK);
    hr_event out[TAKE_MAX];
    if (reader != NULL) {
        (void)trace_reader_take(reader, out, TAKE_MAX, NULL); // whatever stands there: it ends
    }
    trace_reader_close(reader);
    return status;
}

START_TEST(a_forged_ring_is_refused_or_harmless)
{
    enum { CAPACITY_AT = 16, ABOUT_BYTES = 32, COUNTED_BYTES = 72, HEAD_BYTES = 256 };
    size_t bytes;
    trace_reader *reader;
    int fd = copy_of_ring(&bytes);
    ck_assert_int_eq(trace_reader_open(fd, &reader, NULL), HR_READ); // it could be cut under the reader
    ck_assert_int_eq(seal_and_open(fd), HR_OK);
    close(fd);
    for (size_t at = 0; at < COUNTED_BYTES; at++) {
        for (int bit = 0; bit < 8; bit++) {
            uint8_t byte;
            fd = copy_of_ring(&bytes);
            ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
            byte ^= (uint8_t)(1 << bit);
            ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
            ck_assert_int_eq(seal_and_open(fd), at < ABOUT_BYTES ? HR_READ : HR_OK);
            close(fd);
        }
    }
    for (off_t size = 0; size < (off_t)bytes; size += 61) {
        fd = copy_of_ring(&bytes);
        ck_assert_int_eq(ftruncate(fd, size), 0);
        ck_assert_int_eq(seal_and_open(fd), HR_READ);
        close(fd);
    }
    for (uint64_t capacity = 8; capacity <= 1 << 24; capacity *= 2) { // as large as it says, and too large
        fd = copy_of_ring(&bytes);
        const off_t size = (off_t)(bytes + (capacity - 8) * ((bytes - HEAD_BYTES) / 8));
        ck_assert_int_eq(pwrite(fd, &capacity, sizeof capacity, CAPACITY_AT), sizeof capacity);
        ck_assert_int_eq(ftruncate(fd, size), 0);
        ck_assert_int_eq(seal_and_open(fd), capacity <= 1 << 20 ? HR_OK : HR_READ);
        close(fd);
    }
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(trace_reader_open(fd, &reader, NULL), HR_READ);
    close(fd);
    ck_assert_int_eq(trace_reader_open(-1, &reader, NULL), HR_READ);
}
END_TEST

START_TEST(short_memory_and_absurd_sizes_are_refused)
{
    trace_ring *ring;
    trace_reader *reader;
    int64_t live = hr_host_mem_live();
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(trace_ring_create(16, &ring, NULL), HR_NOMEM);
    ck_assert_ptr_null(ring);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(trace_ring_create(UINT32_MAX, &ring, NULL), HR_NOMEM);
    ck_assert_int_eq(hr_host_mem_live(), live);
    ring = ring_of(8);
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(trace_reader_of(ring, &reader, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(trace_reader_open(trace_ring_fd(ring), &reader, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    trace_ring_destroy(ring);
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
    race r = {.ring = ring_of(_i % 2 == 0 ? 16 : 4096), .gently = _i % 2 == 1};
    trace_reader *reader = _i < 2 ? reader_of(r.ring) : stranger_of(r.ring);
    pthread_t producer;
    ck_assert_int_eq(pthread_create(&producer, NULL, produce, &r), 0);
    uint64_t expected = 0, taken = 0, lost_sum = 0;
    bool done = false;
    for (size_t got = 1; !done || got > 0;) {
        hr_event out[TAKE_MAX];
        uint64_t lost;
        done = atomic_load(&r.done);
        got = trace_reader_take(reader, out, TAKE_MAX, &lost);
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
    trace_reader_close(reader);
    trace_ring_destroy(r.ring);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ring");
    TCase *single = tcase_create("one thread"), *threads = tcase_create("two threads");
    tcase_add_loop_test(single, a_drained_ring_loses_nothing, 0, 2);
    tcase_add_test(single, a_slow_reader_loses_the_oldest_and_is_told_how_many);
    tcase_add_test(single, a_ring_of_one_keeps_the_newest);
    tcase_add_test(single, what_a_reader_has_outlives_the_producer);
    tcase_add_test(single, nobody_who_has_the_descriptor_can_write_or_resize);
    tcase_add_test(single, a_forged_ring_is_refused_or_harmless);
    tcase_add_test(single, short_memory_and_absurd_sizes_are_refused);
    suite_add_tcase(suite, single);
    tcase_add_loop_test(threads, two_threads_never_see_a_torn_record, 0, 4);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
