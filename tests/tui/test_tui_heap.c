// SPDX-License-Identifier: Apache-2.0
// The heap that the workbench rebuilds from events against the allocators' own walks and counters, forwards and
// backwards; and what it makes of events that contradict it.
#include "app/tui/screens/memory/cells.h"
#include "tests/tui/heap_bench.h"
#include "tests/tui/suite.h"

enum { OPERATIONS = 1500, KEPT = 64 };

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

enum { MILLION = 1000000, SCATTER = 7368787 /* without a common factor */ };

// Blocks of 1 KiB, the k-th in a scattered order.
static heap_change scattered(uint32_t k, hr_event_kind kind)
{
    const uint64_t at = (uint64_t)k * SCATTER % MILLION;
    return (heap_change){.kind = (uint8_t)kind,
                         .address = (UINT64_C(1) << 40) + 1024 * at,
                         .bytes = at % 3 == 0 ? 1024 : 768,
                         .requested_bytes = 700,
                         .tensor = k,
                         .category = (uint8_t)(at % HR_CATEGORY_COUNT)};
}

static void fill_million(heap_mirror *m)
{
    heap_change region = {
        .kind = HR_EVENT_GROW, .address = UINT64_C(1) << 40, .bytes = UINT64_C(1024) * MILLION};
    MUST(heap_mirror_apply(m, &region));
    for (uint32_t k = 0; k < MILLION; k++) {
        heap_change c = scattered(k, HR_EVENT_ALLOC);
        MUST(heap_mirror_apply(m, &c));
    }
}

// Every place of the region is looked at: the block that is there, or the hole behind it.
static void million_must_be(const heap_mirror *m, const uint32_t *held)
{
    heap_walk walk = {0};
    heap_piece piece;
    uint64_t category_bytes[HR_CATEGORY_COUNT + 1] = {0};
    size_t blocks = 0;
    while (heap_mirror_next(m, &walk, &piece)) {
        const uint64_t at = (piece.address - (UINT64_C(1) << 40)) / 1024;
        if (piece.block != NULL) {
            MUST(held[at] == piece.block->tensor + 1 && piece.address % 1024 == 0);
            category_bytes[piece.block->category] += piece.bytes;
            blocks++;
        }
    }
    MUST(blocks == m->block_count);
    for (int k = 0; k <= HR_CATEGORY_COUNT; k++) {
        MUST(m->category_bytes[k] == category_bytes[k]);
    }
}

START_TEST(a_million_blocks_come_and_go)
{
    heap_mirror m = {0}, copy = {0};
    uint32_t *held = calloc(MILLION, sizeof *held);
    fill_million(&m);
    for (uint32_t k = 0; k < MILLION; k++) {
        held[(uint64_t)k * SCATTER % MILLION] = k + 1;
    }
    ck_assert_uint_eq(m.block_count, MILLION);
    million_must_be(&m, held);
    ck_assert(heap_mirror_copy(&copy, &m) && heap_mirror_equal(&copy, &m));
    for (uint32_t k = 0; k < MILLION; k++) {
        heap_change c = scattered(k, HR_EVENT_FREE);
        if (k % 5 != 0) {
            MUST(heap_mirror_apply(&m, &c));
            held[(uint64_t)k * SCATTER % MILLION] = 0;
        }
    }
    ck_assert_uint_eq(m.block_count, MILLION / 5);
    million_must_be(&m, held);
    ck_assert(!heap_mirror_equal(&copy, &m));
    ck_assert(heap_mirror_copy(&copy, &m) && heap_mirror_equal(&copy, &m));
    heap_mirror_deinit(&copy);
    heap_mirror_deinit(&m);
    free(held);
}
END_TEST

static hr_event memory_event(const heap_record *r, const heap_change *c, uint64_t seq)
{
    const bool grows = c->kind == HR_EVENT_GROW;
    return (hr_event){.version = HR_EVENT_VERSION,
                      .kind = c->kind,
                      .seq = seq,
                      .category = c->category,
                      .phase = HR_PHASE_BUILD,
                      .u.memory = {.address = c->address,
                                   .requested_bytes = c->requested_bytes,
                                   .allocated_bytes = c->bytes,
                                   .tensor = c->tensor,
                                   .in_use_bytes = r->now.in_use_bytes + (grows ? 0 : c->bytes),
                                   .pool_bytes = r->now.pool_bytes + (grows ? c->bytes : 0)}};
}

// Counts halves of the map that hold what a walk of its own finds there; both ways of asking are one answer.
START_TEST(a_million_blocks_have_a_map)
{
    heap_record r = {0};
    heap_scene v = {0};
    map_scale s;
    heap_change c = {.kind = HR_EVENT_GROW, .address = UINT64_C(1) << 40, .bytes = UINT64_C(1024) * MILLION};
    hr_event begin = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_BUILD}, e = memory_event(&r, &c, 1);
    heap_record_feed(&r, &begin);
    heap_record_feed(&r, &e);
    for (uint32_t k = 0; k < MILLION; k++) {
        c = scattered(k, HR_EVENT_ALLOC);
        e = memory_event(&r, &c, 2 + k);
        heap_record_feed(&r, &e);
    }
    hr_event step = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = 1};
    heap_record_feed(&r, &step);
    ck_assert_uint_eq(r.damage, 0);
    ck_assert(heap_scene_take(&v, &r));
    ck_assert_uint_eq(v.heap.block_count, MILLION);
    ck_assert_uint_eq(heap_mirror_largest_free(&v.heap), 256);
    ck_assert(map_scale_make(&s, &v, 45, 130));
    const map_half *halves = map_halves(&s, &v);
    ck_assert_ptr_nonnull(halves);
    map_reader reader = map_read(&s, &v);
    for (int k = 0; k < 2 * 45 * 130; k++) {
        const map_half half = map_next(&reader);
        MUST(half.kind == halves[k].kind && half.address == halves[k].address && half.band == halves[k].band);
    }
    heap_scene_seek(&v, v.count - 1); // one block less: another moment
    ck_assert(map_halves(&s, &v) == halves && v.map->of[1] == v.count - 1);
    heap_scene_move(&v, 1);
    heap_scene_move(&v, -1);
    heap_scene_deinit(&v);
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
    ck_assert(m.is_full);
    heap_mirror_deinit(&m);
}
END_TEST

SUITE_MAIN("tui heap", the_mirror_is_the_heap_of_every_allocator_after_every_request,
           a_planned_heap_is_mirrored_too, every_way_back_and_forth_leads_through_the_same_heaps,
           events_that_contradict_the_heap_are_refused_and_change_nothing,
           a_stream_of_nonsense_is_counted_as_damage_and_takes_bounded_memory, a_million_blocks_come_and_go,
           a_million_blocks_have_a_map, more_blocks_than_are_kept_are_damage)
