// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/replay.h and insight/replay.h: a replay is the allocator driven by hand.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "insight/play.h"
#include "insight/replay.h"
#include "memory/heap.h"

enum { LIVE_MAX = 64 };

// ---- traces ---------------------------------------------------------------------------------------------------

typedef struct recorder {
    trace t;
    trace_builder b;
    uint32_t row;
} recorder;

static void begin(recorder *r)
{
    *r = (recorder){0};
    trace_builder_init(&r->b, &r->t);
}

static void record(recorder *r, trace_kind kind, uint64_t address, uint64_t bytes, const char *name,
                   uint8_t device)
{
    trace_event e = {.bytes = bytes, .kind = (uint8_t)kind, .device = device, .row = r->row++};
    e.name = name == NULL ? HR_NO_ID : intern_add(&r->t.names, name, strlen(name));
    ck_assert_int_eq(trace_add(&r->b, e, address, NULL), HR_OK);
}

static hr_replay *end(recorder *r)
{
    hr_replay *out = NULL;
    r->t.rows = r->row;
    trace_builder_deinit(&r->b);
    ck_assert_int_eq(trace_check(&r->t, NULL), HR_OK);
    ck_assert_int_eq(replay_of_trace(&r->t, &out, NULL), HR_OK);
    return out;
}

static uint64_t some_bytes(uint64_t *seed)
{
    uint64_t scale = random_between(seed, 0, 13);
    return random_between(seed, 1, UINT64_C(512) << scale);
}

// Allocations and frees in random order, now and then the end of a step, on `devices` devices.
static void record_random(recorder *r, uint64_t seed, uint32_t events, uint8_t devices)
{
    uint8_t owner[LIVE_MAX] = {0};
    bool live[LIVE_MAX] = {false};
    begin(r);
    for (uint32_t k = 0; k < events; k++) {
        uint32_t slot = (uint32_t)random_between(&seed, 0, LIVE_MAX - 1);
        if (random_between(&seed, 0, 40) == 0) {
            record(r, TRACE_STEP, 0, 0, NULL, 0);
        } else if (live[slot]) {
            record(r, TRACE_FREE, 4096 * (1 + (uint64_t)slot), 0, NULL, owner[slot]);
            live[slot] = false;
        } else {
            owner[slot] = (uint8_t)random_between(&seed, 0, devices - 1U);
            record(r, TRACE_ALLOC, 4096 * (1 + (uint64_t)slot), some_bytes(&seed), slot % 3 ? "some" : NULL,
                   owner[slot]);
            live[slot] = true;
        }
    }
}

static hr_knobs knobs_of(const char *const *pairs)
{
    hr_knobs knobs;
    hr_err err;
    hr_replay_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s: %s", *pairs, err.sentence);
    }
    return knobs;
}

static void run(hr_replay *r, const hr_knobs *knobs, hr_replay_result *out)
{
    hr_err err;
    hr_status status = hr_replay_run(r, knobs, NULL, out, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
}

// ---- the allocator driven by hand -----------------------------------------------------------------------------

typedef struct by_hand {
    uint64_t addresses[LIVE_MAX];
    uint64_t in_use, requested, largest_free, pool;
    double fragmentation;
    uint64_t failures, first_failure, first_free, first_largest;
    heap_counters end;
} by_hand;

static void hand_over(by_hand *h, struct heap *on, const trace_event *e)
{
    allocator_request q = {.bytes = e->bytes, .tensor = HR_NO_ID, .stream = e->stream};
    hr_status status = allocator_serve(on->allocator, &q, &h->addresses[e->block], NULL);
    heap_counters c = allocator_get_stats(on->allocator);
    if (status == HR_OK && c.in_use_bytes > h->in_use) {
        h->in_use = c.in_use_bytes;
        h->requested = c.requested_bytes;
        h->largest_free = c.largest_free_bytes;
        h->fragmentation = c.fragmentation;
    } else if (status == HR_OOM && h->failures++ == 0) {
        h->first_failure = e->row;
        h->first_free = c.limit_bytes - c.in_use_bytes;
        h->first_largest = c.largest_free_bytes;
    } else {
        MUST(status == HR_OK || status == HR_OOM);
    }
}

static by_hand drive(const trace *t, const allocator_config *config)
{
    by_hand h = {0};
    backing source;
    ck_assert_int_eq(backing_numbers_open(config->limit_bytes, 2 * HR_MIB, &source, NULL), HR_OK);
    struct heap on = heap_over(config, source, NULL);
    for (uint32_t k = 0; k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        if (e->kind == TRACE_ALLOC) {
            hand_over(&h, &on, e);
        } else if (e->kind == TRACE_FREE && h.addresses[e->block] != 0) {
            allocator_free(on.allocator, h.addresses[e->block]);
        } else if (e->kind == TRACE_STEP) {
            allocator_synchronise(on.allocator);
        }
    }
    h.end = allocator_get_stats(on.allocator);
    heap_close(&on);
    return h;
}

static const char *const settings[][4] = {
    {"allocator.kind=bfc", "device.vram=64MiB"},
    {"allocator.kind=bfc", "device.vram=24MiB"},
    {"allocator.kind=bfc", "allocator.growth=on", "device.vram=64MiB"},
    {"allocator.kind=bfc", "allocator.growth=on", "device.vram=24MiB"},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static void must_equal(const hr_replay_result *got, const by_hand *want)
{
    ck_assert_uint_eq(got->memory.peak_in_use_bytes, want->in_use);
    ck_assert_uint_eq(got->memory.peak_requested_bytes, want->requested);
    ck_assert_uint_eq(got->memory.waste_bytes, want->in_use - want->requested);
    ck_assert_uint_eq(got->memory.largest_free_bytes, want->largest_free);
    ck_assert_double_eq_tol(got->memory.fragmentation, want->fragmentation, 1e-12);
    ck_assert_uint_eq(got->memory.peak_pool_bytes, want->end.peak_pool_bytes);
    ck_assert_uint_eq(got->memory.allocations, want->end.allocations);
    ck_assert_uint_eq(got->failures_total, want->failures);
    ck_assert_uint_eq(got->memory.failures, want->failures);
    ck_assert_int_eq(got->failure_heap != NULL, want->failures > 0);
    if (want->failures > 0) {
        ck_assert_uint_eq(got->failures[0].event, want->first_failure);
        ck_assert_uint_eq(got->failures[0].free_bytes, want->first_free);
        ck_assert_uint_eq(got->failures[0].largest_free_bytes, want->first_largest);
    }
}

static void compare_with_hand(const char *const *pairs)
{
    hr_knobs knobs = knobs_of(pairs);
    allocator_config config = play_allocator_config(&knobs, hr_knob_bytes(&knobs, HR_KNOB_DEVICE_VRAM, 0));
    for (uint64_t seed = 1; seed <= 10; seed++) {
        recorder rec;
        hr_replay_result got;
        record_random(&rec, seed, 3000, 1);
        by_hand want = drive(&rec.t, &config);
        hr_replay *r = end(&rec);
        run(r, &knobs, &got);
        ck_assert_uint_eq(got.memory.limit_bytes, config.limit_bytes);
        must_equal(&got, &want);
        hr_replay_result_deinit(&got);
        hr_replay_close(r);
    }
}

START_TEST(a_replay_is_the_allocator_driven_by_hand)
{
    compare_with_hand(settings[_i]);
}
END_TEST

// Every kind that there is; static alone wants to hear of everything beforehand.
START_TEST(every_kind_of_allocator_replays_as_by_hand)
{
    const char *const *kinds = hr_knob_rows(NULL)[HR_KNOB_ALLOCATOR_KIND].choices;
    static const char *const limits[] = {"device.vram=24MiB", "device.vram=256MiB"};
    for (size_t k = 0; kinds[k] != NULL; k++) {
        char kind[64];
        snprintf(kind, sizeof kind, "allocator.kind=%s", kinds[k]);
        if (strcmp(kinds[k], "static") != 0 && hr_replay_plays(kinds[k])) {
            compare_with_hand((const char *const[]){kind, limits[_i], NULL});
        }
    }
}
END_TEST

START_TEST(small_limits_do_fail_in_these_traces)
{
    uint64_t failures = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        recorder rec;
        hr_replay_result got;
        record_random(&rec, seed, 3000, 1);
        hr_replay *r = end(&rec);
        hr_knobs knobs = knobs_of(settings[1]);
        run(r, &knobs, &got);
        failures += got.failures_total;
        hr_replay_result_deinit(&got);
        hr_replay_close(r);
    }
    ck_assert_uint_gt(failures, 20);
}
END_TEST

START_TEST(every_run_of_a_replay_is_the_same)
{
    recorder rec;
    hr_replay_result first, second;
    record_random(&rec, 7, 3000, 2);
    hr_replay *r = end(&rec);
    hr_knobs knobs = knobs_of(settings[3]);
    run(r, &knobs, &first);
    run(r, &knobs, &second);
    ck_assert_mem_eq(&first.memory, &second.memory, sizeof first.memory);
    ck_assert_mem_eq(first.failures, second.failures, sizeof first.failures);
    hr_replay_result_deinit(&first);
    hr_replay_result_deinit(&second);
    hr_replay_close(r);
}
END_TEST

// ---- failures -------------------------------------------------------------------------------------------------

static hr_replay *of_three_blocks(void)
{
    recorder rec;
    begin(&rec);
    record(&rec, TRACE_ALLOC, 4096, 3 * HR_MIB, "first", 0);
    record(&rec, TRACE_STEP, 0, 0, NULL, 0);
    record(&rec, TRACE_ALLOC, 8192, 6 * HR_MIB, "second", 0);
    record(&rec, TRACE_FREE, 8192, 0, NULL, 0);
    record(&rec, TRACE_FREE, 4096, 0, NULL, 0);
    record(&rec, TRACE_ALLOC, 12288, 7 * HR_MIB, "third", 0);
    return end(&rec);
}

START_TEST(a_replay_goes_on_after_a_failure)
{
    hr_replay_result got;
    hr_replay *r = of_three_blocks();
    hr_knobs knobs = knobs_of((const char *const[]){"device.vram=8MiB", NULL});
    run(r, &knobs, &got);
    ck_assert_uint_eq(got.failures_total, 1);
    ck_assert_uint_eq(got.failure_count, 1);
    ck_assert_uint_eq(got.failures[0].event, 2);
    ck_assert_uint_eq(got.failures[0].step, 1);
    ck_assert_uint_eq(got.failures[0].requested_bytes, 6 * HR_MIB);
    ck_assert_uint_eq(got.failures[0].free_bytes, 5 * HR_MIB);
    ck_assert_uint_eq(got.failures[0].largest_free_bytes, 5 * HR_MIB);
    ck_assert_str_eq(got.failures[0].name, "second");
    ck_assert_uint_eq(got.memory.allocations, 2);
    ck_assert_uint_eq(got.memory.peak_requested_bytes, 7 * HR_MIB);
    ck_assert_uint_eq(got.memory.peak_in_use_bytes, 8 * HR_MIB); // less than twice the request: not split
    ck_assert_uint_eq(got.memory.peak_event, 5);
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

START_TEST(more_failures_are_counted_than_kept)
{
    recorder rec;
    hr_replay_result got;
    begin(&rec);
    for (uint64_t k = 1; k <= 3 * HR_REPLAY_FAILURES_MAX; k++) {
        record(&rec, TRACE_ALLOC, 4096 * k, 3 * HR_MIB, NULL, 0);
    }
    hr_replay *r = end(&rec);
    hr_knobs knobs = knobs_of((const char *const[]){"device.vram=2MiB", NULL});
    run(r, &knobs, &got);
    ck_assert_uint_eq(got.failures_total, 3 * HR_REPLAY_FAILURES_MAX);
    ck_assert_uint_eq(got.failure_count, HR_REPLAY_FAILURES_MAX);
    ck_assert_uint_eq(got.memory.peak_event, HR_NONE);
    ck_assert_uint_eq(got.memory.peak_in_use_bytes, 0);
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

START_TEST(what_failed_when_it_was_recorded_is_asked_for_again)
{
    recorder rec;
    hr_replay_result got;
    begin(&rec);
    record(&rec, TRACE_ALLOC, 4096, 3 * HR_MIB, NULL, 0);
    record(&rec, TRACE_REFUSED, 0, 6 * HR_MIB, "lost", 0);
    record(&rec, TRACE_ALLOC, 8192, HR_MIB, NULL, 0);
    hr_replay *r = end(&rec);
    ck_assert_uint_eq(hr_replay_get_about(r)->refused, 1);
    ck_assert_uint_eq(hr_replay_get_about(r)->peak_requested_bytes, 9 * HR_MIB);
    hr_knobs large = knobs_of((const char *const[]){"device.vram=16MiB", NULL});
    run(r, &large, &got);
    ck_assert_uint_eq(got.served, 1);
    ck_assert_uint_eq(got.failures_total, 0);
    ck_assert_uint_eq(got.memory.peak_in_use_bytes, 9 * HR_MIB);
    hr_replay_result_deinit(&got);
    hr_knobs small = knobs_of((const char *const[]){"device.vram=8MiB", NULL});
    run(r, &small, &got);
    ck_assert_uint_eq(got.served, 0);
    ck_assert_uint_eq(got.failures_total, 1);
    ck_assert_str_eq(got.failures[0].name, "lost");
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

// ---- static ---------------------------------------------------------------------------------------------------

START_TEST(static_plans_the_whole_trace)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        recorder rec;
        hr_replay_result got, bfc;
        record_random(&rec, seed, 1000, 1);
        hr_replay *r = end(&rec);
        uint64_t floor_bytes = hr_replay_get_about(r)->peak_requested_bytes;
        hr_knobs planned = knobs_of((const char *const[]){"allocator.kind=static", NULL});
        hr_knobs best_fit = knobs_of((const char *const[]){"allocator.kind=bfc", NULL});
        run(r, &planned, &got);
        run(r, &best_fit, &bfc);
        ck_assert_uint_eq(got.failures_total + bfc.failures_total, 0);
        ck_assert_uint_ge(got.memory.peak_pool_bytes, floor_bytes);
        ck_assert_uint_le(got.memory.peak_in_use_bytes - floor_bytes, LIVE_MAX * UINT64_C(255));
        ck_assert_uint_eq(got.memory.allocations, bfc.memory.allocations);
        ck_assert_uint_eq(got.memory.peak_in_use_bytes <= got.memory.peak_pool_bytes, 1);
        hr_replay_result_deinit(&got);
        hr_replay_result_deinit(&bfc);
        hr_replay_close(r);
    }
}
END_TEST

START_TEST(a_plan_that_does_not_fit_fails_before_the_first_event)
{
    hr_replay_result got;
    hr_replay *r = of_three_blocks();
    hr_knobs knobs = knobs_of((const char *const[]){"allocator.kind=static", "device.vram=8MiB", NULL});
    run(r, &knobs, &got);
    ck_assert_uint_eq(got.failures_total, 1);
    ck_assert_uint_eq(got.failures[0].event, HR_NONE);
    ck_assert_uint_eq(got.failures[0].requested_bytes, 9 * HR_MIB);
    ck_assert_uint_eq(got.memory.peak_in_use_bytes, HR_NONE);
    ck_assert(isnan(got.memory.fragmentation));
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

// ---- without a limit ------------------------------------------------------------------------------------------

START_TEST(without_a_limit_everything_is_served)
{
    static const char *const kinds[] = {"allocator.growth=off", "allocator.growth=on"};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        recorder rec;
        hr_replay_result got, again;
        char vram[64];
        record_random(&rec, seed, 3000, 1);
        hr_replay *r = end(&rec);
        hr_knobs knobs = knobs_of((const char *const[]){kinds[_i], NULL});
        run(r, &knobs, &got);
        ck_assert_uint_eq(got.failures_total, 0);
        ck_assert_uint_eq(got.memory.limit_bytes, HR_NONE);
        ck_assert_uint_ge(got.memory.peak_pool_bytes, got.memory.peak_in_use_bytes);
        ck_assert_uint_lt(got.memory.peak_pool_bytes, 4 * got.memory.peak_in_use_bytes);
        // The pool it says is one under which it really runs.
        snprintf(vram, sizeof vram, "device.vram=%llu", (unsigned long long)got.memory.peak_pool_bytes);
        hr_knobs limited = knobs_of((const char *const[]){kinds[_i], vram, NULL});
        run(r, &limited, &again);
        ck_assert_uint_eq(again.failures_total, 0);
        ck_assert_uint_eq(again.memory.peak_in_use_bytes, got.memory.peak_in_use_bytes);
        hr_replay_result_deinit(&got);
        hr_replay_result_deinit(&again);
        hr_replay_close(r);
    }
}
END_TEST

START_TEST(a_block_larger_than_anything_is_a_failure_not_an_overflow)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 255, UINT64_C(1) << 63,
                                     (UINT64_C(1) << 50) + 1};
    static const char *const kinds[] = {"allocator.growth=off", "allocator.growth=on",
                                        "allocator.kind=static"};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            recorder rec;
            hr_replay_result got;
            begin(&rec);
            record(&rec, TRACE_ALLOC, 4096, 1000, NULL, 0);
            record(&rec, TRACE_ALLOC, 8192, sizes[s], NULL, 0);
            record(&rec, TRACE_ALLOC, 12288, sizes[s], NULL, 0);
            hr_replay *r = end(&rec);
            hr_knobs knobs = knobs_of((const char *const[]){kinds[k], NULL});
            run(r, &knobs, &got);
            ck_assert_msg(got.failures_total > 0, "%s, size %zu", kinds[k], s);
            hr_replay_result_deinit(&got);
            hr_replay_close(r);
        }
    }
}
END_TEST

// ---- devices, about, heaps ------------------------------------------------------------------------------------

START_TEST(every_device_has_an_allocator_of_its_own)
{
    recorder rec;
    hr_replay_result got;
    begin(&rec);
    record(&rec, TRACE_ALLOC, 4096, 3 * HR_MIB, NULL, 0);
    record(&rec, TRACE_ALLOC, 4096, 7 * HR_MIB, NULL, 2);
    record(&rec, TRACE_ALLOC, 8192, 6 * HR_MIB, NULL, 0);
    record(&rec, TRACE_ALLOC, 12288, 3 * HR_MIB, NULL, 0);
    hr_replay *r = end(&rec);
    const hr_replay_about *about = hr_replay_get_about(r);
    ck_assert_uint_eq(about->device_count, 3);
    ck_assert_uint_eq(about->device, 0);
    ck_assert_uint_eq(about->peak_requested_bytes, 12 * HR_MIB);
    hr_knobs knobs = knobs_of((const char *const[]){"device.vram=10MiB", NULL});
    run(r, &knobs, &got);
    ck_assert_uint_eq(got.device_count, 3);
    ck_assert_uint_eq(got.devices[0].peak_requested_bytes, 9 * HR_MIB);
    ck_assert_uint_eq(got.devices[1].peak_in_use_bytes, HR_NONE);
    ck_assert_uint_eq(got.devices[2].peak_requested_bytes, 7 * HR_MIB);
    ck_assert_uint_eq(got.failures_total, 1);
    ck_assert_uint_eq(got.failures[0].device, 0);
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

// bfc without growth and without a limit: what one device needs says nothing of another's region.
START_TEST(every_device_has_a_region_of_its_own_size)
{
    recorder rec;
    hr_replay_result got;
    begin(&rec);
    record(&rec, TRACE_ALLOC, 4096, 12 * HR_MIB, NULL, 0);
    record(&rec, TRACE_ALLOC, 4096, 3 * HR_MIB, NULL, 1);
    hr_replay *r = end(&rec);
    hr_knobs knobs = knobs_of((const char *const[]){"allocator.kind=bfc", NULL});
    run(r, &knobs, &got);
    ck_assert_uint_eq(got.devices[0].peak_pool_bytes, 12 * HR_MIB);
    ck_assert_uint_eq(got.devices[1].peak_pool_bytes, 3 * HR_MIB);
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

START_TEST(the_recorded_pool_counts_what_stood_before)
{
    recorder rec;
    begin(&rec);
    record(&rec, TRACE_GROW, 0, 20 * HR_MIB, NULL, 0);
    record(&rec, TRACE_ALLOC, 4096, 3 * HR_MIB, NULL, 0);
    record(&rec, TRACE_GROW, 0, 2 * HR_MIB, NULL, 0);
    record(&rec, TRACE_SHRINK, 0, 20 * HR_MIB, NULL, 0);
    heap_snapshot *at_the_end = hr_calloc(1, sizeof *at_the_end);
    MUST(at_the_end != NULL);
    heap_chunk *c = vec_push(&at_the_end->chunks);
    MUST(c != NULL);
    *c = (heap_chunk){.address = 4096,
                      .size_bytes = 5 * HR_MIB,
                      .region_address = 4096,
                      .region_bytes = 5 * HR_MIB,
                      .requested_bytes = 3 * HR_MIB,
                      .in_use = true};
    heap_snapshot_count(at_the_end);
    rec.t.heaps[0] = at_the_end;
    hr_replay *r = end(&rec);
    const hr_replay_about *about = hr_replay_get_about(r);
    ck_assert_uint_eq(about->recorded.peak_pool_bytes,
                      (22 + 3) * HR_MIB); // 5 at the end, 2 of them seen to come
    ck_assert_uint_eq(about->recorded.limit_bytes, HR_NONE);
    ck_assert_uint_eq(about->recorded.in_use_bytes, 5 * HR_MIB);
    ck_assert(!about->is_heap);
    hr_replay_close(r);
}
END_TEST

START_TEST(a_heap_shows_its_holes_and_who_pins_them)
{
    recorder rec;
    hr_replay_result got;
    hr_heap_hole holes[4];
    hr_heap_cell cells[8];
    size_t count = 0;
    char sentence[256];
    begin(&rec);
    record(&rec, TRACE_ALLOC, 1, HR_MIB, "a", 0);
    record(&rec, TRACE_ALLOC, 2, 2 * HR_MIB, "b", 0);
    record(&rec, TRACE_ALLOC, 3, HR_MIB, "c", 0);
    record(&rec, TRACE_FREE, 2, 0, NULL, 0);
    record(&rec, TRACE_ALLOC, 4, 5 * HR_MIB, "d", 0);
    hr_replay *r = end(&rec);
    hr_knobs knobs = knobs_of((const char *const[]){"device.vram=8MiB", NULL});
    hr_replay_options options = {.wants_peak_heap = true};
    ck_assert_int_eq(hr_replay_run(r, &knobs, &options, &got, NULL), HR_OK);
    ck_assert_ptr_nonnull(got.failure_heap);
    ck_assert_uint_eq(hr_heap_pool_bytes(got.failure_heap), 8 * HR_MIB);
    ck_assert_uint_eq(hr_heap_chunk_count(got.failure_heap), 4);
    ck_assert_int_eq(hr_heap_holes(got.failure_heap, holes, 4, &count, NULL), HR_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(holes[0].bytes, 4 * HR_MIB);
    ck_assert_str_eq(holes[0].before.name, "c");
    ck_assert_uint_eq(holes[0].before.joined_bytes, 7 * HR_MIB); // with the hole in front of it
    ck_assert_ptr_null(holes[0].after.name);
    ck_assert_uint_eq(holes[1].bytes, 2 * HR_MIB);
    ck_assert_str_eq(holes[1].before.name, "a");
    ck_assert_uint_eq(holes[1].before.age, 2);
    ck_assert_str_eq(holes[1].after.name, "c");
    ck_assert_uint_eq(holes[1].after.bytes, HR_MIB);
    ck_assert_int_eq(hr_heap_diagnose(got.failure_heap, sentence, sizeof sentence), HR_OOM_FRAGMENTATION);
    ck_assert_ptr_nonnull(strstr(sentence, "d needs 5.00 MiB in one"));
    ck_assert_int_eq(hr_heap_holes(got.failure_heap, holes, 1, &count, NULL), HR_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(holes[0].bytes, 4 * HR_MIB);
    hr_heap_map(got.failure_heap, cells, 8);
    static const double used[] = {1, 0, 0, 1, 0, 0, 0, 0};
    for (int k = 0; k < 8; k++) {
        ck_assert_double_eq_tol(cells[k].used, used[k], 1e-9);
        ck_assert_double_eq_tol(cells[k].requested, used[k], 1e-9);
    }
    hr_heap_map(got.failure_heap, cells, 1);
    ck_assert_double_eq_tol(cells[0].used, 0.25, 1e-9);
    ck_assert_ptr_nonnull(got.peak_heap);
    ck_assert_int_eq(hr_heap_holes(got.peak_heap, holes, 4, &count, NULL), HR_OK);
    ck_assert_uint_eq(count, 1); // behind a, b, c
    ck_assert_int_eq(hr_heap_diagnose(got.peak_heap, sentence, sizeof sentence), HR_OOM_NONE);
    ck_assert_str_eq(sentence, "");
    hr_replay_result_deinit(&got);
    hr_replay_close(r);
}
END_TEST

// ---- what goes wrong ------------------------------------------------------------------------------------------

START_TEST(knobs_that_cannot_go_together_are_refused)
{
    hr_replay_result got;
    hr_err err;
    hr_replay *r = of_three_blocks();
    hr_knobs knobs = knobs_of((const char *const[]){"allocator.kind=static", "allocator.growth=on", NULL});
    ck_assert_int_eq(hr_replay_run(r, &knobs, NULL, &got, &err), HR_CONSTRAINT);
    hr_knobs parts = knobs_of((const char *const[]){"device.logical=4MiB,4MiB", "device.vram=6MiB", NULL});
    ck_assert_int_eq(hr_replay_run(r, &parts, NULL, &got, &err), HR_CONSTRAINT);
    hr_knobs secret = knobs_of((const char *const[]){"allocator.kind=async_driver", NULL});
    ck_assert_int_eq(hr_replay_run(r, &secret, NULL, &got, &err), HR_CONSTRAINT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "the pool of a card's own driver"));
    ck_assert(!hr_replay_plays("async_driver") && hr_replay_plays("async"));
    hr_replay_close(r);
    ck_assert(hr_replay_knob_applies(HR_KNOB_ALLOCATOR_KIND));
    ck_assert(hr_replay_knob_applies(HR_KNOB_DEVICE_VRAM));
    ck_assert(!hr_replay_knob_applies(HR_KNOB_BATCH_SIZE));
    ck_assert(!hr_replay_knob_applies(HR_KNOB_DEVICE_KIND));
    ck_assert(hr_replay_knob_concerns(HR_KNOB_ALLOCATOR_GROWTH, "bfc"));
    ck_assert(!hr_replay_knob_concerns(HR_KNOB_ALLOCATOR_GROWTH, "static"));
    ck_assert(hr_replay_knob_concerns(HR_KNOB_DEVICE_VRAM, "static"));
    // What a knob's row says of whom it is for names allocators that there are.
    const char *const *kinds = hr_knob_rows(NULL)[HR_KNOB_ALLOCATOR_KIND].choices;
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        bool someone = false;
        for (size_t k = 0; kinds[k] != NULL; k++) {
            someone |= hr_replay_plays(kinds[k]) && hr_replay_knob_concerns((hr_knob_id)id, kinds[k]);
        }
        ck_assert_msg(someone == hr_replay_knob_applies((hr_knob_id)id), "%s", hr_knob_rows(NULL)[id].key);
    }
}
END_TEST

static bool stop_at_once(void *context)
{
    ++*(int *)context;
    return true;
}

START_TEST(a_replay_can_be_stopped)
{
    int asked = 0;
    hr_replay_result got;
    hr_err err;
    hr_replay *r = of_three_blocks();
    hr_knobs knobs = knobs_of((const char *const[]){"device.vram=8MiB", NULL});
    hr_replay_options options = {.stop = stop_at_once, .stop_context = &asked};
    ck_assert_int_eq(hr_replay_run(r, &knobs, &options, &got, &err), HR_INTERRUPTED);
    ck_assert_int_eq(asked, 1);
    hr_replay_close(r);
}
END_TEST

START_TEST(every_host_memory_failure_is_said_and_nothing_leaks)
{
    static const char *const pairs[][3] = {
        {"device.vram=16MiB", NULL}, {"allocator.kind=static", NULL}, {NULL}};
    for (size_t s = 0; s < sizeof pairs / sizeof *pairs; s++) {
        recorder rec;
        hr_replay_result got;
        record_random(&rec, 11, 400, 2);
        hr_replay *r = end(&rec);
        hr_knobs knobs = knobs_of(pairs[s]);
        hr_replay_options options = {.wants_peak_heap = true};
        hr_status status = HR_NOMEM;
        uint64_t failed = 0;
        for (uint64_t nth = 1; status == HR_NOMEM; nth++) {
            int64_t live = hr_host_mem_live();
            (void)hr_host_mem_fail_at(nth);
            status = hr_replay_run(r, &knobs, &options, &got, NULL);
            (void)hr_host_mem_fail_at(0);
            ck_assert(status == HR_OK || status == HR_NOMEM);
            failed += status == HR_NOMEM;
            hr_replay_result_deinit(&got);
            ck_assert_int_eq(hr_host_mem_live(), live);
        }
        ck_assert_uint_gt(failed, 5);
        hr_replay_close(r);
    }
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    hr_replay *r = NULL;
    hr_err err;
    ck_assert_int_eq(hr_replay_open("/nowhere/at/all.pickle", &r, &err), HR_READ);
    ck_assert_ptr_null(r);
    ck_assert_ptr_nonnull(strstr(err.sentence, "/nowhere/at/all.pickle"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("replay");
    tcase_add_loop_test(tests, a_replay_is_the_allocator_driven_by_hand, 0, SETTINGS);
    tcase_add_loop_test(tests, every_kind_of_allocator_replays_as_by_hand, 0, 2);
    tcase_add_test(tests, small_limits_do_fail_in_these_traces);
    tcase_add_test(tests, every_run_of_a_replay_is_the_same);
    tcase_add_test(tests, a_replay_goes_on_after_a_failure);
    tcase_add_test(tests, more_failures_are_counted_than_kept);
    tcase_add_test(tests, what_failed_when_it_was_recorded_is_asked_for_again);
    tcase_add_test(tests, static_plans_the_whole_trace);
    tcase_add_test(tests, a_plan_that_does_not_fit_fails_before_the_first_event);
    tcase_add_loop_test(tests, without_a_limit_everything_is_served, 0, 2);
    tcase_add_test(tests, a_block_larger_than_anything_is_a_failure_not_an_overflow);
    tcase_add_test(tests, every_device_has_an_allocator_of_its_own);
    tcase_add_test(tests, every_device_has_a_region_of_its_own_size);
    tcase_add_test(tests, the_recorded_pool_counts_what_stood_before);
    tcase_add_test(tests, a_heap_shows_its_holes_and_who_pins_them);
    tcase_add_test(tests, knobs_that_cannot_go_together_are_refused);
    tcase_add_test(tests, a_replay_can_be_stopped);
    tcase_add_test(tests, every_host_memory_failure_is_said_and_nothing_leaks);
    tcase_add_test(tests, a_missing_file_is_named);
    Suite *suite = suite_create("replay");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
