// SPDX-License-Identifier: Apache-2.0
// What a heap had for the request that it refused: on heaps of our allocators that are filled, cut to pieces, or kept
// by another stream.
#include <string.h>

#include "events/heap_room.h"
#include "heap.h"
#include "memory/heap_snapshot.h"

static heap open_kind(const char *kind, uint64_t limit_bytes)
{
    allocator_config config = allocator_config_of(kind, limit_bytes);
    return heap_open(&config);
}

static uint64_t alloc_on(heap *h, uint64_t bytes, uint32_t stream, uint32_t tensor)
{
    uint64_t address = 0;
    allocator_request r = {.bytes = bytes, .tensor = tensor, .stream = stream};
    ck_assert_int_eq(allocator_serve(h->allocator, &r, &address, NULL), HR_OK);
    return address;
}

static void must_refuse(heap *h, uint64_t bytes, uint32_t stream)
{
    uint64_t address = 0;
    allocator_request r = {.bytes = bytes, .tensor = 99, .stream = stream};
    ck_assert_int_eq(allocator_serve(h->allocator, &r, &address, NULL), HR_OOM);
}

static heap_room room_at(const heap *h)
{
    heap_snapshot p;
    ck_assert_int_eq(heap_snapshot_of(h->allocator, &p, NULL), HR_OK);
    heap_room room = heap_room_of(&p, NULL, NULL);
    heap_snapshot_deinit(&p);
    return room;
}

// Runs of chunks that are not in use, counted one by one.
static void check_holes(const heap *h, const heap_room *room)
{
    heap_snapshot p;
    uint64_t run_bytes = 0, largest_bytes = 0;
    uint32_t count = 0;
    ck_assert_int_eq(heap_snapshot_of(h->allocator, &p, NULL), HR_OK);
    for (uint32_t k = 0; k < p.chunks.count; k++) {
        const heap_chunk *c = &p.chunks.data[k];
        bool joins = run_bytes > 0 && c[-1].region_address == c->region_address;
        run_bytes = c->in_use ? 0 : joins ? run_bytes + c->size_bytes : c->size_bytes;
        count += !c->in_use && !joins;
        largest_bytes = run_bytes > largest_bytes ? run_bytes : largest_bytes;
    }
    heap_snapshot_deinit(&p);
    ck_assert_uint_eq(room->hole_count, count);
    ck_assert_uint_eq(room->holes[0], largest_bytes);
    for (uint32_t k = 1; k < HEAP_ROOM_HOLES; k++) {
        ck_assert_uint_ge(room->holes[k - 1], room->holes[k]);
        ck_assert((room->holes[k] > 0) == (k < count));
    }
}

START_TEST(a_full_heap_has_no_room)
{
    heap h = open_kind("bfc", 10 * HR_MIB);
    (void)alloc_on(&h, 9 * HR_MIB, 0, 1);
    ck_assert(!room_at(&h).any);
    must_refuse(&h, 2 * HR_MIB + 1, 0);
    heap_room room = room_at(&h);
    ck_assert(room.any);
    ck_assert_uint_eq(room.needed_bytes, 2 * HR_MIB + 256);
    ck_assert_uint_eq(room.limit_bytes, 10 * HR_MIB);
    ck_assert_uint_eq(room.free_bytes, 0); // unsplit: the chunk is the whole region
    ck_assert_uint_eq(room.waste_bytes, HR_MIB);
    ck_assert_uint_eq(room.largest_bytes, 0);
    ck_assert_uint_eq(room.elsewhere_bytes, 0);
    ck_assert(room.window.found);
    ck_assert_uint_eq(room.window.used_bytes, 10 * HR_MIB);
    heap_close(&h);
}
END_TEST

START_TEST(a_heap_in_pieces_names_what_stands_between)
{
    static const struct {
        const char *kind;
        uint64_t largest, window, used; // MiB
    } expected[] = {
        {"bfc", 2, 5, 1}, // tensor 3 between two holes
        {"async", 4, 6,
         2}, // two whole pieces were unmapped before it refused; tensor 5 stands between what is left
    };
    heap h = open_kind(expected[_i].kind, 16 * HR_MIB);
    uint64_t p[8];
    for (uint32_t k = 0; k < 8; k++) {
        p[k] = alloc_on(&h, k == 3 ? HR_MIB : k == 7 ? 3 * HR_MIB : 2 * HR_MIB, 0, k);
    }
    for (uint32_t k = 0; k < 8; k += 2) {
        heap_free(&h, p[k]);
    }
    must_refuse(&h, 5 * HR_MIB, 0);
    heap_room room = room_at(&h);
    check_holes(&h, &room);
    ck_assert_uint_ge(room.hole_count, 2);
    ck_assert_uint_eq(room.free_bytes, 8 * HR_MIB);
    ck_assert_uint_eq(room.largest_bytes, expected[_i].largest * HR_MIB);
    ck_assert_uint_eq(room.window.bytes, expected[_i].window * HR_MIB);
    ck_assert_uint_eq(room.window.used_bytes, expected[_i].used * HR_MIB);
    ck_assert_uint_eq(room.window.used_chunks, 1);
    heap_close(&h);
}
END_TEST

START_TEST(what_is_left_to_grow_is_a_piece)
{
    heap h = open_kind("async", 16 * HR_MIB);
    (void)alloc_on(&h, 6 * HR_MIB, 0, 1);
    must_refuse(&h, 11 * HR_MIB, 0);
    ck_assert_uint_eq(room_at(&h).largest_bytes, 10 * HR_MIB);
    heap_close(&h);
}
END_TEST

// PyTorch's blocks are of one stream: 12 MiB cached on stream 1, in a segment that a live block keeps, are nothing
// to stream 2.
START_TEST(another_streams_memory_is_elsewhere)
{
    heap h = open_kind("caching", 24 * HR_MIB);
    uint64_t freed = alloc_on(&h, 9 * HR_MIB, 1, 1);
    (void)alloc_on(&h, 5 * HR_MIB, 1, 2);
    heap_free(&h, freed);
    must_refuse(&h, 8 * HR_MIB, 2);
    heap_room room = room_at(&h);
    ck_assert_uint_ge(room.elsewhere_bytes, 8 * HR_MIB);
    ck_assert_uint_eq(room.elsewhere_stream, 1);
    ck_assert_uint_lt(room.largest_bytes, 8 * HR_MIB);
    ck_assert(!room.window.found); // nothing in the heap is this stream's
    heap_close(&h);
}
END_TEST

static heap_chunk chunk_of(heap_region_kind kind, uint32_t stream, bool pending)
{
    return (heap_chunk){.size_bytes = 1, .region_kind = (uint8_t)kind, .stream = stream, .pending = pending};
}

START_TEST(who_may_use_what)
{
    heap_chunk c = chunk_of(HEAP_REGION_PLAIN, 3, false);
    ck_assert(heap_may_use(&c, HR_MIB, 0)); // everybody's
    c.pending = true;
    ck_assert(!heap_may_use(&c, HR_MIB, 0) && heap_may_use(&c, HR_MIB, 3));
    c = chunk_of(HEAP_REGION_SMALL, 3, false);
    ck_assert(heap_may_use(&c, HR_MIB, 3) && !heap_may_use(&c, HR_MIB + 512, 3) && !heap_may_use(&c, 1, 2));
    c = chunk_of(HEAP_REGION_LARGE, 3, false);
    ck_assert(!heap_may_use(&c, HR_MIB, 3) && heap_may_use(&c, HR_MIB + 512, 3));
    c = chunk_of(HEAP_REGION_EXPANDABLE, 3, false);
    ck_assert(heap_may_use(&c, 1, 3) && heap_may_use(&c, HR_GIB, 3) && !heap_may_use(&c, 1, 0));
    c = chunk_of(HEAP_REGION_PLAIN, 0, false);
    c.freed_at = 7;
    ck_assert(!heap_may_use(&c, 1, 0));
    c.freed_at = 0;
    c.in_use = true;
    ck_assert(!heap_may_use(&c, 1, 0));
}
END_TEST

static Suite *room_suite(void)
{
    Suite *suite = suite_create("heap room");
    TCase *cases = tcase_create("room");
    tcase_add_test(cases, a_full_heap_has_no_room);
    tcase_add_loop_test(cases, a_heap_in_pieces_names_what_stands_between, 0, 2);
    tcase_add_test(cases, what_is_left_to_grow_is_a_piece);
    tcase_add_test(cases, another_streams_memory_is_elsewhere);
    tcase_add_test(cases, who_may_use_what);
    suite_add_tcase(suite, cases);
    return suite;
}

TEST_MAIN(room_suite())
