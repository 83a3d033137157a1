// SPDX-License-Identifier: Apache-2.0
// No pool: every tensor is a range of the backing, and everything that is held is used.
#include <string.h>

#include "base/host_mem.h"
#include "heap.h"

enum { LIVE_MAX = 300 };

static allocator_config direct_config(uint64_t limit_bytes)
{
    return allocator_config_of("direct", limit_bytes);
}

static heap direct_open(uint64_t limit_bytes, uint64_t granularity_bytes)
{
    allocator_config config = direct_config(limit_bytes);
    backing source;
    ck_assert_int_eq(backing_numbers_open(limit_bytes, granularity_bytes, &source, NULL), HR_OK);
    return heap_over(&config, source, NULL);
}

START_TEST(a_tensor_takes_whole_granules)
{
    heap h = direct_open(16 * HR_MIB, 2 * HR_MIB);
    uint64_t one = heap_alloc(&h, 4), other = heap_alloc(&h, 2 * HR_MIB + 1);
    ck_assert_uint_eq(other, one + 2 * HR_MIB);
    heap_counters c = allocator_get_stats(h.allocator);
    ck_assert_uint_eq(c.requested_bytes, 2 * HR_MIB + 5);
    ck_assert_uint_eq(c.in_use_bytes, 6 * HR_MIB);
    ck_assert_uint_eq(c.pool_bytes, 6 * HR_MIB);
    ck_assert_uint_eq(c.largest_allocation_bytes, 4 * HR_MIB);
    ck_assert_uint_eq(c.largest_free_bytes, 0);
    ck_assert_double_eq(c.fragmentation, 0.0);
    heap_free(&h, one);
    heap_must_be_sound(&h);
    c = allocator_get_stats(h.allocator);
    ck_assert_uint_eq(c.pool_bytes, 4 * HR_MIB);
    ck_assert_uint_eq(c.peak_pool_bytes, 6 * HR_MIB);
    ck_assert_uint_eq(heap_alloc(&h, 1), one); // the backing's lowest gap
    heap_close(&h);
}
END_TEST

START_TEST(the_limit_counts_granules)
{
    heap h = direct_open(5 * HR_MIB, 2 * HR_MIB);
    uint64_t one = heap_alloc(&h, 1);
    (void)heap_alloc(&h, 1);
    ck_assert(heap_refuses(&h, 1)); // 1 MiB is left
    ck_assert_uint_eq(h.allocator->refusal.rounded_bytes, 2 * HR_MIB);
    ck_assert_uint_eq(h.allocator->refusal.driver_bytes, 0);
    heap_free(&h, one);
    ck_assert(heap_refuses(&h, 2 * HR_MIB + 1));
    ck_assert(heap_refuses(&h, UINT64_MAX));
    ck_assert_uint_ne(heap_alloc(&h, 2 * HR_MIB), 0);
    heap_close(&h);
}
END_TEST

// ---- against an array -----------------------------------------------------------------------------------------

typedef struct naive {
    uint64_t address[LIVE_MAX], requested[LIVE_MAX];
    uint32_t count;
    uint64_t granularity_bytes, held_bytes, requested_bytes, peak_bytes;
} naive;

static uint64_t whole(const naive *n, uint64_t bytes)
{
    return (bytes + n->granularity_bytes - 1) / n->granularity_bytes * n->granularity_bytes;
}

typedef struct walked {
    const naive *n;
    uint32_t count;
} walked;

static bool is_known(void *context, const heap_chunk *c)
{
    walked *w = context;
    uint32_t k = 0;
    while (k < w->n->count && w->n->address[k] != c->address) {
        k++;
    }
    MUST(k < w->n->count && c->requested_bytes == w->n->requested[k]);
    MUST(c->size_bytes == whole(w->n, c->requested_bytes) && c->region_bytes == c->size_bytes);
    w->count++;
    return true;
}

static void must_agree(const heap *h, const naive *n)
{
    heap_counters c = allocator_get_stats(h->allocator);
    walked w = {.n = n};
    MUST(c.in_use_bytes == n->held_bytes && c.pool_bytes == n->held_bytes);
    MUST(c.requested_bytes == n->requested_bytes && c.peak_pool_bytes == n->peak_bytes);
    heap_must_be_sound(h);
    h->allocator->ops->walk(h->allocator, is_known, &w);
    MUST(w.count == n->count);
}

START_TEST(random_requests_are_served_as_by_an_array)
{
    static naive n;
    n = (naive){.granularity_bytes = _i == 0 ? 4096 : 2 * HR_MIB};
    heap h = direct_open(512 * HR_MIB, n.granularity_bytes);
    uint64_t seed = 5;
    for (uint32_t i = 0; i < 6000; i++) {
        if (n.count < LIVE_MAX && next_random(&seed) % 9 < 5) {
            uint64_t bytes = random_between(&seed, 1, UINT64_C(1) << random_between(&seed, 8, 25)),
                     address = 0;
            bool fits = whole(&n, bytes) <= 512 * HR_MIB - n.held_bytes;
            hr_status status = allocator_alloc(h.allocator, bytes, i, &address, NULL);
            MUST(status == (fits ? HR_OK : HR_OOM));
            n.address[n.count] = address;
            n.requested[n.count] = bytes;
            n.count += fits;
            n.held_bytes += fits ? whole(&n, bytes) : 0;
            n.requested_bytes += fits ? bytes : 0;
            n.peak_bytes = n.held_bytes > n.peak_bytes ? n.held_bytes : n.peak_bytes;
        } else if (n.count > 0) {
            uint64_t k = next_random(&seed) % n.count;
            heap_free(&h, n.address[k]);
            n.held_bytes -= whole(&n, n.requested[k]);
            n.requested_bytes -= n.requested[k];
            n.count--;
            n.address[k] = n.address[n.count];
            n.requested[k] = n.requested[n.count];
        }
        if (i % 7 == 0 || i > 5900) {
            must_agree(&h, &n);
        }
    }
    heap_close(&h);
}
END_TEST

START_TEST(pages_and_numbers_have_equal_hashes)
{
    allocator_config config = direct_config(24 * HR_MIB);
    backing numbers, pages;
    ck_assert_int_eq(backing_numbers_open(config.limit_bytes, 4096, &numbers, NULL), HR_OK);
    ck_assert_int_eq(backing_pages_open(config.limit_bytes, &pages, NULL), HR_OK);
    heap a = heap_over(&config, numbers, NULL), b = heap_over(&config, pages, NULL);
    uint64_t seed = 9, on_a[64], on_b[64];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        if (count < 64 && next_random(&seed) % 2 == 0) {
            uint64_t bytes = random_between(&seed, 1, HR_MIB);
            hr_status status = allocator_alloc(a.allocator, bytes, i, &on_a[count], NULL);
            MUST(allocator_alloc(b.allocator, bytes, i, &on_b[count], NULL) == status);
            count += status == HR_OK;
        } else if (count > 0) {
            uint64_t k = next_random(&seed) % count;
            heap_free(&a, on_a[k]);
            heap_free(&b, on_b[k]);
            count--;
            on_a[k] = on_a[count];
            on_b[k] = on_b[count];
        }
        MUST(a.allocator->ops->hash(a.allocator) == b.allocator->ops->hash(b.allocator));
    }
    heap_close(&a);
    heap_close(&b);
}
END_TEST

START_TEST(the_hash_knows_places_and_sizes)
{
    heap h = direct_open(HR_MIB, 4096);
    const allocator_ops *ops = h.allocator->ops;
    uint64_t empty = ops->hash(h.allocator), low = heap_alloc(&h, 4096);
    uint64_t at_low = ops->hash(h.allocator), high = heap_alloc(&h, 4096);
    heap_free(&h, low);
    ck_assert_uint_ne(ops->hash(h.allocator), at_low); // the next tensor would lie elsewhere
    heap_free(&h, high);
    ck_assert_uint_eq(ops->hash(h.allocator), empty);
    low = heap_alloc(&h, 4096);
    ck_assert_uint_eq(ops->hash(h.allocator), at_low);
    heap_free(&h, low);
    (void)heap_alloc(&h, 4097);
    ck_assert_uint_ne(ops->hash(h.allocator), at_low);
    heap_close(&h);
}
END_TEST

// ---- failures -------------------------------------------------------------------------------------------------

START_TEST(every_refusal_of_the_backing_changes_nothing)
{
    for (uint64_t fail_at = 1; fail_at <= 40; fail_at++) {
        scripted script = {.fail_at = fail_at};
        allocator_config config = direct_config(HR_MIB);
        heap h = heap_over(&config, scripted_backing(&script, false), NULL);
        for (uint64_t k = 1; k <= 40; k++) {
            uint64_t address = 0, before = h.allocator->ops->hash(h.allocator);
            hr_status status = allocator_alloc(h.allocator, k * 100, 0, &address, NULL);
            MUST(status == (k == fail_at ? HR_OOM : HR_OK));
            MUST(status == HR_OK || h.allocator->ops->hash(h.allocator) == before);
            MUST(status == HR_OK || h.allocator->refusal.driver_bytes == (k * 100 + 255) / 256 * 256);
            heap_must_be_sound(&h);
        }
        heap_close(&h);
        ck_assert_uint_eq(script.held_bytes, 0);
    }
}
END_TEST

START_TEST(every_lack_of_host_memory_changes_nothing)
{
    int64_t live = hr_host_mem_live();
    for (uint64_t fail_at = 1; fail_at < 12; fail_at++) {
        heap h = direct_open(4 * HR_MIB, 4096);
        (void)hr_host_mem_fail_at(fail_at);
        for (uint32_t k = 0; k < 200; k++) {
            uint64_t address = 0, before = h.allocator->ops->hash(h.allocator);
            hr_status status = allocator_alloc(h.allocator, 5000, k, &address, NULL);
            MUST(status == HR_OK || status == HR_NOMEM || status == HR_OOM); // OOM: the backing's own lack
            MUST(status == HR_OK || h.allocator->ops->hash(h.allocator) == before);
            heap_must_be_sound(&h);
        }
        (void)hr_host_mem_fail_at(0);
        heap_close(&h);
    }
    allocator *a = NULL;
    allocator_config config = direct_config(HR_MIB);
    backing none = {0};
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(allocator_create(&config, &none, NULL, &a, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(its_books_are_small)
{
    heap h = direct_open(HR_GIB, 4096);
    for (uint32_t k = 0; k < 20000; k++) {
        (void)heap_alloc(&h, 100);
    }
    heap_counters c = allocator_get_stats(h.allocator);
    ck_assert_uint_le(h.allocator->ops->metadata(h.allocator), 20000 * 64 + c.pool_bytes / 1000);
    heap_close(&h);
}
END_TEST

static Suite *direct_suite(void)
{
    Suite *suite = suite_create("direct");
    TCase *requests = tcase_create("requests");
    tcase_add_test(requests, a_tensor_takes_whole_granules);
    tcase_add_test(requests, the_limit_counts_granules);
    tcase_add_loop_test(requests, random_requests_are_served_as_by_an_array, 0, 2);
    tcase_add_test(requests, pages_and_numbers_have_equal_hashes);
    tcase_add_test(requests, the_hash_knows_places_and_sizes);
    suite_add_tcase(suite, requests);
    TCase *failures = tcase_create("failures");
    tcase_add_test(failures, every_refusal_of_the_backing_changes_nothing);
    tcase_add_test(failures, every_lack_of_host_memory_changes_nothing);
    tcase_add_test(failures, its_books_are_small);
    suite_add_tcase(suite, failures);
    return suite;
}

TEST_MAIN(direct_suite())
