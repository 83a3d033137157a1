// SPDX-License-Identifier: Apache-2.0
// A host allocation, or a range or mapping of the backing, refused at every point in turn: the request fails or is
// served from elsewhere, and the heap is sound.
#include "base/host_mem.h"
#include "memory/caching.h"
#include "refusing.h"

enum { BLOCKS = 150, POINTS_MAX = 600, CONFIGS = 4 };

#define LIMIT (160 * HR_MIB)

static allocator_config config_of(int n)
{
    allocator_config c = allocator_config_of("caching", LIMIT);
    c.caching.expandable_segments = n >= 2;
    c.caching.max_split_bytes = n == 1 ? 24 * HR_MIB : UINT64_MAX;
    c.limit_is_fraction = n % 2 == 1;
    c.device_bytes = 2 * LIMIT;
    c.caching.gc_threshold = n == 1 ? 0.5 : 0;
    return c;
}

static refusing source;

static heap open_heap(int n)
{
    allocator_config config = config_of(n);
    return heap_over(&config, refusing_open(&source, 2 * LIMIT, true), NULL);
}

// A request that fails has changed nothing, but may have given segments back and waited for events.
static void must_be_as_before(const heap *h, const heap_counters *before, uint64_t hash, hr_status status)
{
    heap_counters after = allocator_get_stats(h->allocator);
    ck_assert_uint_le(after.in_use_bytes, before->in_use_bytes);
    ck_assert_uint_le(after.requested_bytes, before->requested_bytes);
    ck_assert_uint_eq(after.allocations, before->allocations);
    bool same_pool = after.pool_bytes == before->pool_bytes && after.in_use_bytes == before->in_use_bytes;
    ck_assert(status != HR_NOMEM || !same_pool || h->allocator->ops->hash(h->allocator) == hash);
}

static uint32_t request(heap *h, uint64_t bytes, uint32_t k, uint64_t *address, hr_status expected)
{
    uint64_t hash = h->allocator->ops->hash(h->allocator);
    heap_counters before = allocator_get_stats(h->allocator);
    allocator_request r = {.bytes = bytes, .tensor = k, .stream = k % 3};
    hr_status status = allocator_serve(h->allocator, &r, address, NULL);
    if (status != HR_OK) {
        ck_assert(status == expected || status == HR_OOM);
        ck_assert_uint_eq(*address, 0);
        must_be_as_before(h, &before, hash, status);
    }
    heap_must_be_sound(h);
    return status == expected ? 1 : 0;
}

static uint32_t share(heap *h, uint64_t address, hr_status expected)
{
    hr_status status = caching_record_stream(h->allocator, address, 1, NULL);
    ck_assert(status == HR_OK || status == expected);
    return status == expected ? 1 : 0;
}

// The same program of requests every time: small and large ones on three streams, some of them shared, a flood that
// is freed, and one more that needs all of the card. How many calls failed with `expected`.
static uint32_t play(heap *h, hr_status expected)
{
    static uint64_t blocks[BLOCKS];
    uint32_t failures = 0;
    uint64_t seed = 5;
    for (uint32_t k = 0; k < BLOCKS; k++) {
        failures += request(h, random_between(&seed, 1, 30 * HR_MIB >> k % 13), k, &blocks[k], expected);
        if (k % 5 == 0 && blocks[k] != 0) {
            failures += share(h, blocks[k], expected);
        }
        if (k >= 20) {
            allocator_free(h->allocator, blocks[k - 20]);
            heap_must_be_sound(h);
        }
        if (k % 31 == 0) {
            caching_events_done(h->allocator, 1);
        }
    }
    for (uint32_t k = BLOCKS - 20; k < BLOCKS; k++) {
        allocator_free(h->allocator, blocks[k]);
    }
    failures += request(h, 140 * HR_MIB, 0, &blocks[0], expected);
    allocator_free(h->allocator, blocks[0]);
    return failures;
}

START_TEST(a_failed_host_allocation_fails_one_call)
{
    int64_t live = hr_host_mem_live();
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        ck_assert_uint_lt(nth, POINTS_MAX);
        source = (refusing){0};
        heap h = open_heap(_i);
        (void)hr_host_mem_fail_at(nth);
        uint32_t failures = play(&h, HR_NOMEM);
        failed_once = hr_host_mem_fail_at(0) >= nth;
        // The numbers need host memory of their own: where they had none, the ladder was climbed.
        ck_assert_uint_le(failures, failed_once ? 1 : 0);
        heap_close(&h);
        ck_assert_uint_eq(source.held_bytes, 0);
        ck_assert_uint_eq(source.reserved_bytes, 0);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(a_refused_range_or_mapping_is_out_of_memory_at_worst)
{
    for (int always = 0; always < 2; always++) {
        bool reached = true;
        for (uint64_t nth = 1; reached; nth++) {
            ck_assert_uint_lt(nth, POINTS_MAX);
            source = (refusing){.fail_at = nth, .always = always == 1};
            heap h = open_heap(_i);
            (void)play(&h, HR_OOM);
            reached = source.asked >= nth;
            heap_close(&h);
            ck_assert_uint_eq(source.held_bytes, 0);
            ck_assert_uint_eq(source.reserved_bytes, 0);
        }
    }
}
END_TEST

START_TEST(a_failed_creation_leaves_nothing)
{
    source = (refusing){0};
    backing b = refusing_open(&source, LIMIT, true);
    int64_t live = hr_host_mem_live();
    allocator_config config = config_of(_i);
    allocator *a = NULL;
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(allocator_create(&config, &b, NULL, &a, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(hr_host_mem_live(), live);
    backing_close(&b);
}
END_TEST

static Suite *faults_suite(void)
{
    Suite *suite = suite_create("caching under faults");
    TCase *faults = tcase_create("faults");
    tcase_add_loop_test(faults, a_failed_host_allocation_fails_one_call, 0, CONFIGS);
    tcase_add_loop_test(faults, a_refused_range_or_mapping_is_out_of_memory_at_worst, 0, CONFIGS);
    tcase_add_loop_test(faults, a_failed_creation_leaves_nothing, 0, CONFIGS);
    suite_add_tcase(suite, faults);
    return suite;
}

TEST_MAIN(faults_suite())
