// SPDX-License-Identifier: Apache-2.0
// Holes and what pins them: by hand, on heaps of our allocators, and on random snapshots against every window tried.
#include <string.h>

#include "base/host_mem.h"
#include "events/heap_holes.h"
#include "heap.h"
#include "memory/heap_snapshot.h"

static const uint64_t BASE = UINT64_C(1) << 40;

// A region of chunks: positive sizes are in use, negative ones are free.
static void add_region(heap_snapshot *p, uint64_t address, const int64_t *sizes, uint32_t count)
{
    uint64_t bytes = 0, at = address;
    for (uint32_t k = 0; k < count; k++) {
        bytes += (uint64_t)(sizes[k] < 0 ? -sizes[k] : sizes[k]);
    }
    for (uint32_t k = 0; k < count; k++) {
        heap_chunk *c = vec_push(&p->chunks);
        ck_assert_ptr_nonnull(c);
        bool in_use = sizes[k] > 0;
        *c = (heap_chunk){.address = at,
                          .size_bytes = (uint64_t)(in_use ? sizes[k] : -sizes[k]),
                          .region_address = address,
                          .region_bytes = bytes,
                          .in_use = in_use,
                          .tensor = in_use ? p->chunks.count : HR_NO_ID,
                          .allocation_id = in_use ? p->chunks.count : 0};
        c->requested_bytes = in_use ? c->size_bytes : 0;
        at += c->size_bytes;
    }
}

static heap_holes holes_of(const heap_snapshot *p)
{
    heap_holes holes;
    ck_assert_int_eq(heap_holes_of(p, &holes, NULL), HR_OK);
    return holes;
}

START_TEST(each_hole_names_both_of_its_pins)
{
    static const int64_t first[] = {-10, 5, -20, 7, -3}, second[] = {-20};
    heap_snapshot p = {.source = "hand"};
    add_region(&p, BASE, first, 5);
    add_region(&p, BASE + 45, second, 1); // begins where the first ends, and is no neighbour
    heap_holes h = holes_of(&p);
    ck_assert_uint_eq(h.list.count, 4);
    ck_assert_uint_eq(h.bytes, 53);
    const heap_hole *middle = &h.list.data[0], *alone = &h.list.data[1], *low = &h.list.data[2];
    ck_assert_uint_eq(middle->bytes, 20);
    ck_assert_uint_eq(middle->address, BASE + 15);
    ck_assert_uint_eq(middle->first, 2);
    ck_assert_uint_eq(middle->below.chunk, 1);
    ck_assert_uint_eq(middle->below.joined_bytes, 35);
    ck_assert_uint_eq(middle->above.chunk, 3);
    ck_assert_uint_eq(middle->above.joined_bytes, 30);
    ck_assert_uint_eq(alone->first, 5);
    ck_assert_uint_eq(alone->below.chunk, HR_NO_ID);
    ck_assert_uint_eq(alone->above.chunk, HR_NO_ID);
    ck_assert_uint_eq(alone->above.joined_bytes, 20);
    ck_assert_uint_eq(low->below.chunk, HR_NO_ID);
    ck_assert_uint_eq(low->above.chunk, 1);
    ck_assert_uint_eq(low->above.joined_bytes, 35);
    ck_assert_uint_eq(heap_joined_bytes(&p, 3), 30);
    heap_holes_deinit(&h);
    heap_snapshot_deinit(&p);
}
END_TEST

START_TEST(free_neighbours_are_one_hole)
{
    static const int64_t sizes[] = {4, -1, -2, -3, 4};
    heap_snapshot p = {.source = "hand"};
    add_region(&p, BASE, sizes, 5);
    heap_holes h = holes_of(&p);
    ck_assert_uint_eq(h.list.count, 1);
    ck_assert_uint_eq(h.list.data[0].bytes, 6);
    ck_assert_uint_eq(h.list.data[0].count, 3);
    ck_assert_uint_eq(h.list.data[0].above.chunk, 4);
    ck_assert_uint_eq(heap_joined_bytes(&p, 0), 10);
    heap_holes_deinit(&h);
    heap_snapshot_deinit(&p);
}
END_TEST

START_TEST(ages_count_requests)
{
    static const int64_t sizes[] = {4, -1, 4};
    heap_snapshot p = {.source = "hand"};
    add_region(&p, BASE, sizes, 3);
    p.chunks.data[0].since = p.chunks.data[0].allocation_id = 100;
    p.chunks.data[1].since = 130;
    p.chunks.data[2].since = p.chunks.data[2].allocation_id = 0;
    ck_assert_uint_eq(heap_now(&p), 130);
    ck_assert_uint_eq(heap_age(&p.chunks.data[0], 130), 30);
    ck_assert_uint_eq(heap_age(&p.chunks.data[1], 130), 0);
    ck_assert_uint_eq(heap_age(&p.chunks.data[2], 130), HEAP_NO_AGE);
    heap_snapshot_deinit(&p);
}
END_TEST

// ---- windows --------------------------------------------------------------------------------------------------

START_TEST(the_cheapest_window_holds_the_fewest_used_bytes)
{
    static const int64_t sizes[] = {-8, 50, -40, 6, -30, 9, -5, 60};
    heap_snapshot p = {.source = "hand"};
    add_region(&p, BASE, sizes, 8);
    heap_window w = heap_cheapest_window(&p, 70, NULL, NULL);
    ck_assert(w.found);
    ck_assert_uint_eq(w.first, 2); // 40 + 6 + 30
    ck_assert_uint_eq(w.count, 3);
    ck_assert_uint_eq(w.bytes, 76);
    ck_assert_uint_eq(w.used_bytes, 6);
    ck_assert_uint_eq(w.used_chunks, 1);
    w = heap_cheapest_window(&p, 40, NULL, NULL);
    ck_assert_uint_eq(w.used_chunks, 0); // a hole is there already
    ck_assert(!heap_cheapest_window(&p, 209, NULL, NULL).found);
    ck_assert(!heap_cheapest_window(&(heap_snapshot){0}, 1, NULL, NULL).found);
    heap_snapshot_deinit(&p);
}
END_TEST

static bool is_not_small(void *context, const heap_chunk *c)
{
    return !c->in_use || c->size_bytes >= *(const uint64_t *)context;
}

START_TEST(what_must_stay_parts_the_heap)
{
    static const int64_t sizes[] = {-40, 6, -30, 9, -5, 60};
    uint64_t least = 7;
    heap_snapshot p = {.source = "hand"};
    add_region(&p, BASE, sizes, 6);
    heap_window w = heap_cheapest_window(&p, 44, is_not_small, &least);
    ck_assert(w.found);
    ck_assert_uint_eq(w.first, 2); // 30 + 9 + 5
    ck_assert_uint_eq(w.count, 3);
    least = 100;
    ck_assert(!heap_cheapest_window(&p, 44, is_not_small, &least).found);
    heap_snapshot_deinit(&p);
}
END_TEST

// ---- oracles --------------------------------------------------------------------------------------------------

static void random_snapshot(heap_snapshot *p, uint64_t *seed)
{
    uint64_t address = BASE;
    uint32_t regions = (uint32_t)random_between(seed, 1, 4);
    for (uint32_t r = 0; r < regions; r++) {
        int64_t sizes[24];
        uint32_t count = (uint32_t)random_between(seed, 1, 24);
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < count; k++) {
            sizes[k] = (int64_t)random_between(seed, 1, 40);
            bytes += (uint64_t)sizes[k];
            sizes[k] = next_random(seed) % 2 == 0 ? sizes[k] : -sizes[k];
        }
        add_region(p, address, sizes, count);
        address += bytes + next_random(seed) % 2; // regions touch, or do not
    }
}

// Every window tried, by the definition.
static heap_window naive_window(const heap_snapshot *p, uint64_t bytes, uint64_t least)
{
    heap_window best = {.found = false};
    for (uint32_t first = 0; first < p->chunks.count; first++) {
        heap_window w = {.found = true, .first = first};
        for (uint32_t k = first; k < p->chunks.count; k++) {
            const heap_chunk *c = &p->chunks.data[k];
            if (c->region_address != p->chunks.data[first].region_address || !is_not_small(&least, c)) {
                break;
            }
            w.count++;
            w.bytes += c->size_bytes;
            w.used_bytes += c->in_use ? c->size_bytes : 0;
            w.used_chunks += c->in_use ? 1 : 0;
            bool is_first = !best.found;
            bool less = w.used_bytes < best.used_bytes ||
                        (w.used_bytes == best.used_bytes && w.used_chunks < best.used_chunks) ||
                        (w.used_bytes == best.used_bytes && w.used_chunks == best.used_chunks &&
                         w.bytes < best.bytes);
            if (w.bytes >= bytes && (is_first || less)) {
                best = w;
            }
        }
    }
    return best;
}

// Runs of free chunks, all of them, each between chunks in use: a run cut short would name a free pin.
static void naive_holes(const heap_snapshot *p, const heap_holes *holes)
{
    uint64_t bytes = 0, found = 0;
    for (uint32_t k = 0; k < holes->list.count; k++) {
        const heap_hole *h = &holes->list.data[k];
        uint64_t sum = 0;
        for (uint32_t j = h->first; j < h->first + h->count; j++) {
            MUST(!p->chunks.data[j].in_use);
            sum += p->chunks.data[j].size_bytes;
            found++;
        }
        MUST(sum == h->bytes && h->address == p->chunks.data[h->first].address);
        MUST(k == 0 || holes->list.data[k - 1].bytes >= h->bytes);
        MUST(h->below.chunk == HR_NO_ID ? h->address == p->chunks.data[h->first].region_address
                                        : p->chunks.data[h->below.chunk].in_use);
        MUST(h->above.chunk == HR_NO_ID || p->chunks.data[h->above.chunk].in_use);
        bytes += sum;
    }
    uint64_t free_chunks = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        free_chunks += p->chunks.data[k].in_use ? 0 : 1;
    }
    MUST(found == free_chunks && bytes == holes->bytes);
}

// Frees a chunk for real and looks what hole is there.
static void naive_join(heap_snapshot *p, uint32_t chunk)
{
    uint64_t expected = heap_joined_bytes(p, chunk);
    bool was_used = p->chunks.data[chunk].in_use, seen = false;
    p->chunks.data[chunk].in_use = false;
    heap_holes holes = holes_of(p);
    for (uint32_t k = 0; k < holes.list.count; k++) {
        const heap_hole *h = &holes.list.data[k];
        if (chunk >= h->first && chunk < h->first + h->count) {
            MUST(h->bytes == expected);
            seen = true;
        }
    }
    MUST(seen);
    heap_holes_deinit(&holes);
    p->chunks.data[chunk].in_use = was_used;
}

START_TEST(random_heaps_agree_with_every_window_tried)
{
    uint64_t seed = 31 + (uint64_t)_i;
    for (int n = 0; n < 150; n++) {
        heap_snapshot p = {.source = "random"};
        random_snapshot(&p, &seed);
        heap_holes holes = holes_of(&p);
        naive_holes(&p, &holes);
        heap_holes_deinit(&holes);
        naive_join(&p, (uint32_t)(next_random(&seed) % p.chunks.count));
        for (uint64_t bytes = 1; bytes < 400; bytes += random_between(&seed, 1, 25)) {
            uint64_t least = next_random(&seed) % 12;
            heap_window a = heap_cheapest_window(&p, bytes, is_not_small, &least);
            heap_window b = naive_window(&p, bytes, least);
            MUST(a.found == b.found && a.used_bytes == b.used_bytes && a.used_chunks == b.used_chunks);
            MUST(a.bytes == b.bytes && a.first == b.first && a.count == b.count);
        }
        heap_snapshot_deinit(&p);
    }
}
END_TEST

// ---- our own heaps --------------------------------------------------------------------------------------------

START_TEST(the_largest_hole_is_the_largest_free_chunk)
{
    static const char *const kinds[] = {"bfc", "async", "direct"};
    allocator_config config = allocator_config_of(kinds[_i], 64 * HR_MIB);
    heap h = heap_open(&config);
    uint64_t live[100], seed = 3;
    uint32_t count = 0;
    for (int n = 0; n < 500; n++) {
        if (count < 100 && next_random(&seed) % 5 < 3) {
            live[count++] = heap_alloc(&h, random_between(&seed, 1, 300 * HR_KIB));
        } else if (count > 0) {
            uint64_t k = next_random(&seed) % count;
            heap_free(&h, live[k]);
            live[k] = live[--count];
        }
        heap_snapshot p;
        ck_assert_int_eq(heap_snapshot_of(h.allocator, &p, NULL), HR_OK);
        heap_holes holes = holes_of(&p);
        MUST((holes.list.count == 0 ? 0 : holes.list.data[0].bytes) == p.counters.largest_free_bytes);
        MUST(holes.bytes == p.counters.pool_bytes - p.counters.in_use_bytes);
        heap_holes_deinit(&holes);
        heap_snapshot_deinit(&p);
    }
    heap_close(&h);
}
END_TEST

START_TEST(short_host_memory_is_an_error)
{
    static const int64_t sizes[] = {-1};
    heap_snapshot p = {.source = "hand"};
    heap_holes holes;
    add_region(&p, BASE, sizes, 1);
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(heap_holes_of(&p, &holes, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    ck_assert_uint_eq(holes.list.count, 0);
    heap_snapshot_deinit(&p);
}
END_TEST

static Suite *holes_suite(void)
{
    Suite *suite = suite_create("heap holes");
    TCase *cases = tcase_create("holes");
    tcase_add_test(cases, each_hole_names_both_of_its_pins);
    tcase_add_test(cases, free_neighbours_are_one_hole);
    tcase_add_test(cases, ages_count_requests);
    tcase_add_test(cases, the_cheapest_window_holds_the_fewest_used_bytes);
    tcase_add_test(cases, what_must_stay_parts_the_heap);
    tcase_add_loop_test(cases, random_heaps_agree_with_every_window_tried, 0, 4);
    tcase_add_loop_test(cases, the_largest_hole_is_the_largest_free_chunk, 0, 3);
    tcase_add_test(cases, short_host_memory_is_an_error);
    suite_add_tcase(suite, cases);
    return suite;
}

TEST_MAIN(holes_suite())
