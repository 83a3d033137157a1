// SPDX-License-Identifier: Apache-2.0
// The stream-ordered pool: its five rules one by one, then all of them at random against naive_async.h, with every
// mapping refused once and every host request failing once.
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "mapper.h"
#include "naive_async.h"

enum { LIVE_MAX = 160 };

static heap async_over(mapper *m, uint64_t limit_bytes, uint64_t threshold_bytes)
{
    allocator_config config = allocator_config_of("async", limit_bytes);
    config.release_threshold_bytes = threshold_bytes;
    return heap_over(&config, mapper_backing(m, (limit_bytes + HR_MIB) / (2 * HR_MIB) * 2 * HR_MIB), NULL);
}

static uint64_t alloc_on(heap *h, uint64_t bytes, uint32_t stream)
{
    uint64_t address = 0;
    hr_err err;
    allocator_request r = {.bytes = bytes, .tensor = HR_NO_ID, .stream = stream};
    hr_status status = allocator_serve(h->allocator, &r, &address, &err);
    if (status != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    return address;
}

static uint64_t pool_of(const heap *h)
{
    return allocator_get_stats(h->allocator).pool_bytes;
}

// ---- rule 1: pieces -------------------------------------------------------------------------------------------

START_TEST(pieces_are_mapped_as_they_are_needed)
{
    mapper m = {0};
    heap h = async_over(&m, 16 * HR_MIB, UINT64_MAX);
    ck_assert_uint_eq(m.held_bytes, 0);
    uint64_t first = heap_alloc(&h, 1);
    ck_assert_uint_eq(first, MAPPER_BASE);
    ck_assert_uint_eq(pool_of(&h), 2 * HR_MIB);
    ck_assert_uint_eq(heap_alloc(&h, 257), first + 256);
    ck_assert_uint_eq(heap_alloc(&h, 3 * HR_MIB),
                      first + 768); // one piece and a half, of which one was there
    ck_assert_uint_eq(pool_of(&h), 4 * HR_MIB);
    heap_counters c = allocator_get_stats(h.allocator);
    ck_assert_uint_eq(c.requested_bytes, 3 * HR_MIB + 258);
    ck_assert_uint_eq(c.in_use_bytes, 3 * HR_MIB + 768);
    ck_assert_uint_eq(c.largest_free_bytes, HR_MIB - 768);
    heap_must_be_sound(&h);
    heap_close(&h);
    ck_assert_uint_eq(m.held_bytes, 0);
}
END_TEST

START_TEST(the_limit_counts_pieces)
{
    mapper m = {0};
    heap h = async_over(&m, 5 * HR_MIB, UINT64_MAX);
    (void)heap_alloc(&h, 4 * HR_MIB);
    ck_assert(heap_refuses(&h, 1));
    ck_assert_uint_eq(h.allocator->refusal.rounded_bytes, 256);
    ck_assert(heap_refuses(&h, UINT64_MAX));
    ck_assert_uint_eq(heap_alloc(&h, 0), 0);
    heap_close(&h);
}
END_TEST

// ---- rule 2 and 3: streams ------------------------------------------------------------------------------------

START_TEST(a_stream_reuses_at_once_what_others_must_wait_for)
{
    mapper m = {0};
    heap h = async_over(&m, 64 * HR_MIB, UINT64_MAX);
    uint64_t kept = alloc_on(&h, HR_MIB, 2), freed = alloc_on(&h, 4 * HR_MIB, 1);
    heap_free(&h, freed);
    ck_assert_uint_eq(alloc_on(&h, 4 * HR_MIB, 1), freed);
    heap_free(&h, freed);
    uint64_t other = alloc_on(&h, 4 * HR_MIB, 2);
    ck_assert(other + 4 * HR_MIB <= freed || other >= freed + 4 * HR_MIB);
    heap_free(&h, other);
    allocator_synchronise(h.allocator);
    heap_must_be_sound(&h);
    ck_assert_uint_eq(alloc_on(&h, 4 * HR_MIB, 3), kept + HR_MIB); // all that is free is one piece again
    heap_close(&h);
}
END_TEST

START_TEST(one_stream_alone_needs_no_synchronisation)
{
    mapper m = {0};
    heap h = async_over(&m, 64 * HR_MIB, UINT64_MAX);
    uint64_t a = alloc_on(&h, 3 * HR_MIB, 7), b = alloc_on(&h, 5 * HR_MIB, 7);
    heap_free(&h, a);
    allocator_synchronise(h.allocator);
    heap_free(&h, b);
    ck_assert_uint_eq(heap_look(&h).chunks, 1);
    ck_assert_uint_eq(alloc_on(&h, 8 * HR_MIB, 7), a);
    heap_close(&h);
}
END_TEST

// Everybody's memory on both sides of a stream's own: alone none is enough.
START_TEST(neighbours_serve_together_before_anything_is_mapped)
{
    mapper m = {0};
    heap h = async_over(&m, 64 * HR_MIB, UINT64_MAX);
    uint64_t low = alloc_on(&h, 2 * HR_MIB, 1), middle = alloc_on(&h, 2 * HR_MIB, 1);
    uint64_t high = alloc_on(&h, 2 * HR_MIB, 2);
    heap_free(&h, low);
    heap_free(&h, high);
    allocator_synchronise(h.allocator);
    heap_free(&h, middle);
    ck_assert_uint_eq(heap_look(&h).free_chunks, 3);
    ck_assert_uint_eq(alloc_on(&h, 5 * HR_MIB, 1), low);
    ck_assert_uint_eq(pool_of(&h), 6 * HR_MIB);
    ck_assert_uint_eq(alloc_on(&h, HR_MIB, 2), low + 5 * HR_MIB); // the rest is everybody's still
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// ---- rule 4: the threshold ------------------------------------------------------------------------------------

START_TEST(the_threshold_decides_what_stays)
{
    static const uint64_t thresholds[] = {0, 3 * HR_MIB, 6 * HR_MIB, UINT64_MAX};
    static const uint64_t left[] = {2 * HR_MIB, 2 * HR_MIB, 6 * HR_MIB, 10 * HR_MIB};
    mapper m = {0};
    heap h = async_over(&m, 64 * HR_MIB, thresholds[_i]);
    uint64_t kept = heap_alloc(&h, 100), freed = heap_alloc(&h, 9 * HR_MIB);
    heap_free(&h, freed);
    ck_assert_uint_eq(pool_of(&h), 10 * HR_MIB);
    allocator_synchronise(h.allocator);
    ck_assert_uint_eq(pool_of(&h), left[_i]);
    ck_assert_uint_eq(m.held_bytes, left[_i]);
    heap_must_be_sound(&h);
    heap_free(&h, kept);
    allocator_synchronise(h.allocator);
    ck_assert_uint_eq(pool_of(&h), left[_i] > thresholds[_i] || thresholds[_i] == 0 ? 0 : left[_i]);
    heap_close(&h);
}
END_TEST

START_TEST(a_piece_with_a_used_byte_stays)
{
    mapper m = {0};
    heap h = async_over(&m, 64 * HR_MIB, 0);
    uint64_t p[8];
    for (int k = 0; k < 8; k++) {
        p[k] = heap_alloc(&h, HR_MIB);
    }
    for (int k = 0; k < 8; k += 2) { // half of every piece
        heap_free(&h, p[k]);
    }
    allocator_synchronise(h.allocator);
    ck_assert_uint_eq(pool_of(&h), 8 * HR_MIB);
    heap_free(&h, p[3]); // now the second piece is free, in the middle
    allocator_synchronise(h.allocator);
    heap_view v = heap_look(&h);
    ck_assert_uint_eq(v.regions, 2);
    ck_assert_uint_eq(pool_of(&h), 6 * HR_MIB);
    ck_assert_uint_eq(heap_alloc(&h, 3 * HR_MIB), p[4] - 2 * HR_MIB); // one piece in the hole joins all three
    ck_assert_uint_eq(pool_of(&h), 8 * HR_MIB);
    ck_assert_uint_eq(heap_look(&h).regions, 1);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// ---- rule 5: the ladder ---------------------------------------------------------------------------------------

START_TEST(before_it_refuses_it_synchronises_and_trims)
{
    mapper m = {0};
    heap h = async_over(&m, 8 * HR_MIB, UINT64_MAX);
    uint64_t a = alloc_on(&h, 6 * HR_MIB, 1);
    heap_free(&h, a);
    uint64_t b = alloc_on(&h, 7 * HR_MIB, 2); // stream 1's 6 MiB wait for nobody any more
    ck_assert_uint_eq(b, a);
    ck_assert_uint_eq(pool_of(&h), 8 * HR_MIB);
    heap_free(&h, b);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

typedef struct told {
    char text[512];
} told;

static void tell(void *context, const char *name, uint64_t value)
{
    told *t = context;
    size_t used = strlen(t->text);
    (void)snprintf(t->text + used, sizeof t->text - used, "%s %llu\n", name, (unsigned long long)value);
}

START_TEST(statistics_have_cudas_names)
{
    mapper m = {0};
    told t = {""};
    heap h = async_over(&m, 64 * HR_MIB, 0);
    heap_free(&h, heap_alloc(&h, 5 * HR_MIB));
    allocator_synchronise(h.allocator);
    (void)heap_alloc(&h, 300);
    h.allocator->ops->statistics(h.allocator, tell, &t);
    ck_assert_str_eq(t.text, "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD 0\n"
                             "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT 2097152\n"
                             "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH 6291456\n"
                             "CU_MEMPOOL_ATTR_USED_MEM_CURRENT 512\n"
                             "CU_MEMPOOL_ATTR_USED_MEM_HIGH 5242880\n");
    heap_close(&h);
}
END_TEST

// ---- random requests against the naive pool -------------------------------------------------------------------

typedef struct duel {
    mapper m;
    naive_async naive;
    heap h;
    uint64_t live[LIVE_MAX]; // offsets
    uint32_t count, refused;
    uint64_t seed, threshold_bytes;
    uint32_t streams;
} duel;

static void duel_open(duel *d, uint64_t limit_bytes, uint64_t threshold_bytes, uint32_t streams,
                      uint64_t seed)
{
    *d = (duel){.seed = seed, .threshold_bytes = threshold_bytes, .streams = streams};
    naive_open(&d->naive, limit_bytes);
    d->h = async_over(&d->m, limit_bytes, threshold_bytes);
}

typedef struct comparison {
    const naive_async *naive;
    uint32_t next;
} comparison;

// The walk shows the naive pool's tiles but for its holes, and says of each whose it is.
static bool is_tile(void *context, const heap_chunk *c)
{
    comparison *w = context;
    const naive_async *n = w->naive;
    while (w->next < n->count && n->tiles[w->next].state == NAIVE_HOLE) {
        w->next++;
    }
    MUST(w->next < n->count);
    const naive_tile *t = &n->tiles[w->next++];
    MUST(c->address == MAPPER_BASE + t->at && c->size_bytes == t->bytes);
    MUST(c->in_use == (t->state == NAIVE_USED));
    MUST(c->pending == (t->state == NAIVE_FREE && t->owner != 0 && n->stream_count > 1));
    MUST(c->stream == (t->owner == 0 ? 0 : n->streams[t->owner - 1]));
    return true;
}

static void duel_must_agree(const duel *d)
{
    comparison w = {.naive = &d->naive};
    heap_must_be_sound(&d->h);
    d->h.allocator->ops->walk(d->h.allocator, is_tile, &w);
    while (w.next < d->naive.count) {
        MUST(d->naive.tiles[w.next++].state == NAIVE_HOLE);
    }
    MUST(pool_of(&d->h) == d->naive.mapped_bytes && d->m.held_bytes == d->naive.mapped_bytes);
}

static void duel_request(duel *d)
{
    uint64_t bytes = random_between(&d->seed, 1, UINT64_C(1) << random_between(&d->seed, 6, 23));
    uint64_t address = 0, at = 0;
    allocator_request r = {
        .bytes = bytes, .tensor = 1, .stream = (uint32_t)(next_random(&d->seed) % d->streams) * 3};
    bool expected = naive_alloc(&d->naive, bytes, r.stream, &at);
    hr_status status = allocator_serve(d->h.allocator, &r, &address, NULL);
    MUST(status == (expected ? HR_OK : HR_OOM));
    MUST(!expected || address == MAPPER_BASE + at);
    d->live[d->count] = at;
    d->count += expected;
    d->refused += !expected;
}

static void duel_free(duel *d)
{
    uint64_t k = next_random(&d->seed) % d->count;
    naive_free(&d->naive, d->live[k]);
    heap_free(&d->h, MAPPER_BASE + d->live[k]);
    d->live[k] = d->live[--d->count];
}

static void duel_turn(duel *d)
{
    uint64_t what = next_random(&d->seed) % 100;
    if (what < 2) {
        allocator_synchronise(d->h.allocator);
        naive_synchronise(&d->naive, d->threshold_bytes);
    } else if (d->count < LIVE_MAX && what < 54) {
        duel_request(d);
    } else if (d->count > 0) {
        duel_free(d);
    }
    duel_must_agree(d);
}

START_TEST(random_requests_are_placed_as_by_the_naive_pool)
{
    static duel d;
    static const uint64_t limits[] = {48 * HR_MIB, 31 * HR_MIB + 5, 200 * HR_MIB, 24 * HR_MIB};
    static const uint64_t thresholds[] = {0, 10 * HR_MIB, UINT64_MAX, 7 * HR_MIB};
    duel_open(&d, limits[_i % 4], thresholds[_i / 4 % 4], 1 + (uint32_t)_i % 4, 1000 + (uint64_t)_i);
    for (uint32_t n = 0; n < 3000; n++) {
        duel_turn(&d);
    }
    ck_assert(d.refused > 0 || limits[_i % 4] == 200 * HR_MIB);
    heap_close(&d.h);
    ck_assert_uint_eq(d.m.held_bytes, 0);
}
END_TEST

START_TEST(every_mapping_is_refused_once)
{
    static duel d;
    uint64_t fail_at = 0;
    do {
        duel_open(&d, 200 * HR_MIB, 4 * HR_MIB, 2, 77);
        d.m.fail_at = d.naive.fail_at = ++fail_at;
        for (uint32_t n = 0; n < 600; n++) {
            duel_turn(&d);
        }
        heap_close(&d.h);
    } while (d.m.maps >= fail_at);
    ck_assert_uint_gt(fail_at, 20);
}
END_TEST

// ---- host memory, pages, books --------------------------------------------------------------------------------

static void must_fail_cleanly(uint64_t fail_at)
{
    static mapper m;
    m = (mapper){0};
    heap h = async_over(&m, 64 * HR_MIB, 0);
    uint64_t live[60], seed = 4;
    uint32_t count = 0;
    (void)hr_host_mem_fail_at(fail_at);
    for (uint32_t n = 0; n < 300; n++) {
        uint64_t before = h.allocator->ops->hash(h.allocator);
        if (count < 60 && next_random(&seed) % 3 != 0) {
            allocator_request r = {.bytes = random_between(&seed, 1, 900 * HR_KIB), .stream = n / 40};
            hr_status status = allocator_serve(h.allocator, &r, &live[count], NULL);
            MUST(status == HR_OK || status == HR_NOMEM);
            MUST(status == HR_OK || h.allocator->ops->hash(h.allocator) == before);
            count += status == HR_OK;
        } else if (count > 0) {
            heap_free(&h, live[--count]);
        }
        if (n % 20 == 0) {
            allocator_synchronise(h.allocator);
        }
        heap_must_be_sound(&h);
    }
    (void)hr_host_mem_fail_at(0);
    heap_close(&h);
    MUST(m.held_bytes == 0);
}

START_TEST(every_lack_of_host_memory_changes_nothing)
{
    int64_t live = hr_host_mem_live();
    for (uint64_t fail_at = 1; fail_at <= 24; fail_at++) {
        must_fail_cleanly(fail_at);
    }
    mapper m = {0};
    backing source = mapper_backing(&m, HR_MIB);
    allocator_config config = allocator_config_of("async", HR_MIB);
    allocator *a = NULL;
    for (uint64_t fail_at = 1; fail_at <= 2; fail_at++) {
        (void)hr_host_mem_fail_at(fail_at);
        ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_NOMEM);
        ck_assert_ptr_null(a);
    }
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(a_device_that_cannot_map_is_refused)
{
    hr_err err;
    mapper m = {.no_addresses = true};
    scripted script = {0};
    backing none = mapper_backing(&m, HR_MIB), plain = scripted_backing(&script, false);
    allocator_config config = allocator_config_of("async", HR_MIB);
    allocator *a = NULL;
    ck_assert_int_eq(allocator_create(&config, &none, NULL, &a, &err), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "addresses"));
    ck_assert_int_eq(allocator_create(&config, &plain, NULL, &a, &err), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "maps memory"));
}
END_TEST

START_TEST(pages_and_numbers_have_equal_hashes)
{
    allocator_config config = allocator_config_of("async", 24 * HR_MIB);
    config.release_threshold_bytes = 8 * HR_MIB;
    backing numbers, pages;
    ck_assert_int_eq(backing_numbers_open(config.limit_bytes, 4096, &numbers, NULL), HR_OK);
    ck_assert_int_eq(backing_pages_open(config.limit_bytes, &pages, NULL), HR_OK);
    heap a = heap_over(&config, numbers, NULL), b = heap_over(&config, pages, NULL);
    uint64_t seed = 9, on_a[64], on_b[64];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        if (i % 50 == 0) {
            allocator_synchronise(a.allocator);
            allocator_synchronise(b.allocator);
        } else if (count < 64 && next_random(&seed) % 2 == 0) {
            allocator_request r = {.bytes = random_between(&seed, 1, 2 * HR_MIB), .stream = i % 2};
            hr_status status = allocator_serve(a.allocator, &r, &on_a[count], NULL);
            MUST(allocator_serve(b.allocator, &r, &on_b[count], NULL) == status);
            MUST(status != HR_OK || memset((void *)(uintptr_t)on_b[count], 1, r.bytes) != NULL);
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

START_TEST(its_books_are_small)
{
    mapper m = {0};
    heap h = async_over(&m, 512 * HR_MIB, 0);
    for (uint32_t k = 0; k < 20000; k++) {
        (void)heap_alloc(&h, 100);
    }
    heap_counters c = allocator_get_stats(h.allocator);
    ck_assert_uint_le(h.allocator->ops->metadata(h.allocator), 20000 * 64 + c.pool_bytes / 1000);
    heap_close(&h);
}
END_TEST

static Suite *async_suite(void)
{
    Suite *suite = suite_create("async");
    TCase *rules = tcase_create("rules");
    tcase_add_test(rules, pieces_are_mapped_as_they_are_needed);
    tcase_add_test(rules, the_limit_counts_pieces);
    tcase_add_test(rules, a_stream_reuses_at_once_what_others_must_wait_for);
    tcase_add_test(rules, one_stream_alone_needs_no_synchronisation);
    tcase_add_test(rules, neighbours_serve_together_before_anything_is_mapped);
    tcase_add_loop_test(rules, the_threshold_decides_what_stays, 0, 4);
    tcase_add_test(rules, a_piece_with_a_used_byte_stays);
    tcase_add_test(rules, before_it_refuses_it_synchronises_and_trims);
    tcase_add_test(rules, statistics_have_cudas_names);
    suite_add_tcase(suite, rules);
    TCase *random = tcase_create("random");
    tcase_add_loop_test(random, random_requests_are_placed_as_by_the_naive_pool, 0, 16);
    tcase_add_test(random, every_mapping_is_refused_once);
    suite_add_tcase(suite, random);
    TCase *rest = tcase_create("rest");
    tcase_add_test(rest, every_lack_of_host_memory_changes_nothing);
    tcase_add_test(rest, a_device_that_cannot_map_is_refused);
    tcase_add_test(rest, pages_and_numbers_have_equal_hashes);
    tcase_add_test(rest, its_books_are_small);
    suite_add_tcase(suite, rest);
    return suite;
}

TEST_MAIN(async_suite())
