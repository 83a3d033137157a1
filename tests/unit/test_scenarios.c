// SPDX-License-Identifier: Apache-2.0
// What every scenario claims, proven by playing it on the allocators that it speaks of.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/replay.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "insight/scenario.h"
#include "insight/scenario_recipe.h"
#include "unit/scenario_play.h"

// ---- allocators -----------------------------------------------------------------------------------------------

typedef enum variant {
    BFC,
    GROWTH,
    GROWTH_ONLY,
    STATIC,
    DIRECT,
    ASYNC,
    ASYNC_TRIMS,
    CACHING,
    EXPANDABLE,
    MAX_SPLIT,
    VARIANTS
} variant;

static const struct {
    const char *kind, *name;
} variants[VARIANTS] = {
    [BFC] = {"bfc", "bfc"},
    [GROWTH] = {"bfc", "bfc with growth"},
    [GROWTH_ONLY] = {"bfc", "bfc with growth, without collection"},
    [STATIC] = {"static", "static"},
    [DIRECT] = {"direct", "direct"},
    [ASYNC] = {"async", "async"},
    [ASYNC_TRIMS] = {"async", "async with a threshold of 0"},
    [CACHING] = {"caching", "caching"},
    [EXPANDABLE] = {"caching", "caching with expandable segments"},
    [MAX_SPLIT] = {"caching", "caching with max_split 32 MiB"},
};

static allocator_config config_of(variant v, uint64_t limit_bytes)
{
    allocator_config c = allocator_config_of(variants[v].kind, limit_bytes);
    c.growth = v == GROWTH || v == GROWTH_ONLY;
    c.garbage_collection = v != GROWTH_ONLY;
    c.release_threshold_bytes = v == ASYNC_TRIMS ? 0 : limit_bytes;
    c.caching.expandable_segments = v == EXPANDABLE;
    c.caching.max_split_bytes = v == MAX_SPLIT ? 32 * HR_MIB : UINT64_MAX;
    return c;
}

static played play(const trace *t, variant v, uint64_t limit_bytes)
{
    const allocator_config config = config_of(v, limit_bytes);
    return play_trace(t, &config);
}

static trace trace_of(const char *name)
{
    trace t;
    hr_err err = {0};
    const hr_scenario *s = hr_scenario_find(name, NULL);
    ck_assert_ptr_nonnull(s);
    ck_assert_msg(scenario_trace(s, &t, &err) == HR_OK, "%s: %s", name, err.sentence);
    return t;
}

static uint64_t limit_of(const char *name)
{
    return hr_scenario_find(name, NULL)->limit_bytes;
}

static void find_presets(void)
{
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0);
    ck_assert_int_eq(setenv("XDG_DATA_HOME", "/nowhere", 1), 0);
}

// ---- all of them ----------------------------------------------------------------------------------------------

START_TEST(every_scenario_is_a_good_trace_with_names_and_the_same_each_time)
{
    for (size_t k = 0; hr_scenario_row(k) != NULL; k++) {
        const hr_scenario *s = hr_scenario_row(k);
        trace one = trace_of(s->name), two = trace_of(s->name);
        hr_err err = {0};
        uint32_t allocations = 0;
        ck_assert_msg(trace_check(&one, &err) == HR_OK, "%s: %s", s->name, err.sentence);
        for (uint32_t n = 0; n < one.events.count; n++) {
            const trace_event *e = &one.events.data[n];
            allocations += e->kind == TRACE_ALLOC ? 1 : 0;
            if (e->kind == TRACE_ALLOC && e->name == HR_NO_ID) {
                ck_abort_msg("%s: event %u has no name", s->name, n);
            }
        }
        ck_assert_uint_gt(allocations, 50);
        ck_assert(one.has_times);
        ck_assert_uint_gt(one.events.data[one.events.count - 1].time_ns, UINT64_C(1000000));
        ck_assert_uint_eq(one.events.count, two.events.count);
        ck_assert_mem_eq(one.events.data, two.events.data, one.events.count * sizeof(trace_event));
        ck_assert_uint_eq(one.lost_frees + one.reused, 0);
        ck_assert_uint_eq(one.device_count, 1);
        trace_deinit(&one);
        trace_deinit(&two);
    }
}
END_TEST

START_TEST(every_scenario_says_what_it_is)
{
    for (size_t k = 0; hr_scenario_row(k) != NULL; k++) {
        const hr_scenario *s = hr_scenario_row(k);
        ck_assert_ptr_eq(hr_scenario_find(s->name, NULL), s);
        ck_assert_uint_gt(strlen(s->complaint), 0);
        ck_assert_uint_le(strlen(s->line), 80);
        ck_assert_uint_gt(strlen(s->explanation), strlen(s->line));
        ck_assert_uint_gt(strlen(s->look_at), 20);
        ck_assert_uint_gt(s->limit_bytes, 0);
        for (size_t n = 0; n < k; n++) {
            ck_assert_str_ne(s->name, hr_scenario_row(n)->name);
        }
    }
}
END_TEST

START_TEST(a_name_that_is_nearly_right_is_suggested)
{
    const char *suggestion = NULL;
    ck_assert_ptr_null(hr_scenario_find("growth_boundry", &suggestion));
    ck_assert_str_eq(suggestion, "growth_boundary");
    ck_assert_ptr_null(hr_scenario_find("", &suggestion));
    ck_assert_ptr_null(suggestion);
}
END_TEST

#define BIT(v) (1u << (v))
#define POOLS  (BIT(CACHING) | BIT(EXPANDABLE) | BIT(MAX_SPLIT))
#define ASYNCS (BIT(ASYNC) | BIT(ASYNC_TRIMS))
#define GROWN  (BIT(GROWTH) | BIT(GROWTH_ONLY))

// On the scenario's own limit: who serves everything, and who does not.
static const struct {
    const char *name;
    unsigned serve, fail;
} outcomes[] = {
    {"pinned_holes", BIT(EXPANDABLE) | BIT(MAX_SPLIT) | BIT(BFC) | BIT(STATIC) | ASYNCS, BIT(CACHING)},
    {"alternating_shapes", BIT(BFC) | GROWN | BIT(STATIC) | BIT(DIRECT) | ASYNCS | POOLS, 0},
    {"near_full", BIT(BFC) | BIT(STATIC) | ASYNCS | POOLS, BIT(DIRECT)},
    {"train_and_evaluate", BIT(EXPANDABLE) | BIT(MAX_SPLIT) | BIT(BFC) | BIT(GROWTH) | BIT(STATIC) | ASYNCS,
     BIT(CACHING) | BIT(GROWTH_ONLY)},
    {"two_streams", BIT(BFC) | BIT(STATIC) | ASYNCS | POOLS, 0},
    {"growth_boundary", BIT(BFC) | BIT(STATIC) | ASYNCS | POOLS, GROWN},
    {"region_collection", BIT(BFC) | BIT(GROWTH) | BIT(STATIC) | ASYNCS | POOLS, BIT(GROWTH_ONLY)},
    {"largest_hole", BIT(STATIC) | ASYNCS | POOLS, BIT(BFC) | GROWN},
    {"whole_chunks", BIT(BFC) | BIT(STATIC) | ASYNCS | POOLS, GROWN},
    {"two_copies", 0, BIT(BFC) | GROWN | BIT(STATIC) | BIT(DIRECT) | ASYNCS | POOLS},
    {"retained_predictions", 0, BIT(BFC) | GROWN | BIT(STATIC) | BIT(DIRECT) | ASYNCS | POOLS},
    {"pool_stays", BIT(BFC) | GROWN | BIT(STATIC) | BIT(DIRECT) | ASYNCS | POOLS, 0},
    {"small_tensors", BIT(BFC) | GROWN | BIT(STATIC) | ASYNCS | POOLS, BIT(DIRECT)},
};

START_TEST(on_its_limit_a_scenario_fails_and_fits_where_it_says)
{
    size_t rows = 0;
    while (hr_scenario_row(rows) != NULL) {
        rows++;
    }
    ck_assert_uint_eq(sizeof outcomes / sizeof *outcomes, rows);
    for (size_t k = 0; k < rows; k++) {
        trace t = trace_of(outcomes[k].name);
        for (int v = 0; v < VARIANTS; v++) {
            if (((outcomes[k].serve | outcomes[k].fail) & BIT(v)) == 0) {
                continue;
            }
            const played r = play(&t, (variant)v, limit_of(outcomes[k].name));
            ck_assert_msg((r.failures > 0) == ((outcomes[k].fail & BIT(v)) != 0), "%s on %s: %llu failures",
                          outcomes[k].name, variants[v].name, (unsigned long long)r.failures);
        }
        trace_deinit(&t);
    }
}
END_TEST

// ---- one by one -----------------------------------------------------------------------------------------------

// Requested bytes that live at once: the highest before event `end`, and from there on.
static void peaks(const trace *t, uint32_t end, uint64_t *before_bytes, uint64_t *behind_bytes)
{
    uint64_t *bytes = calloc(t->block_count + 1u, sizeof *bytes), live = 0;
    *before_bytes = *behind_bytes = 0;
    for (uint32_t k = 0; k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        uint64_t *peak = k < end ? before_bytes : behind_bytes;
        if (e->kind == TRACE_ALLOC) {
            live += bytes[e->block] = e->bytes;
        } else if (e->kind == TRACE_FREE) {
            live -= bytes[e->block];
        }
        *peak = live > *peak ? live : *peak;
    }
    free(bytes);
}

static uint64_t free_bytes(const heap_counters *c)
{
    return c->limit_bytes - c->in_use_bytes;
}

// How much of a recipe's pool an allocator takes where there is room.
static uint64_t roomy_pool_bytes(const recipe *r, variant v)
{
    trace t;
    ck_assert_int_eq(recipe_trace(r, &t, NULL), HR_OK);
    const played found = play(&t, v, 64 * HR_GIB);
    ck_assert_uint_eq(found.failures + found.retries, 0);
    trace_deinit(&t);
    return found.end.peak_pool_bytes;
}

static recipe recipe_of(const char *name)
{
    return *scenario_recipe(hr_scenario_find(name, NULL));
}

START_TEST(small_state_pins_large_blocks_unless_it_is_made_before_them)
{
    recipe r = recipe_of("pinned_holes");
    const uint64_t limit_bytes = limit_of("pinned_holes");
    trace late = trace_of("pinned_holes"), early;
    const played pinned = play(&late, CACHING, limit_bytes);
    ck_assert_uint_eq(pinned.failed_bytes, 2352 * HR_MIB);
    ck_assert_uint_lt(pinned.at_failure.in_use_bytes * 100, limit_bytes * 15);
    ck_assert_uint_lt(pinned.at_failure.largest_free_bytes, pinned.failed_bytes);
    ck_assert_uint_gt(pinned.at_failure.pool_bytes - pinned.at_failure.in_use_bytes, pinned.failed_bytes);
    r.phases[0].act = RECIPE_BUILD;
    ck_assert_int_eq(recipe_trace(&r, &early, NULL), HR_OK);
    ck_assert_uint_eq(play(&early, CACHING, limit_bytes).failures, 0);
    trace_deinit(&early);
    trace_deinit(&late);
}
END_TEST

START_TEST(rising_shapes_take_a_second_pool_and_falling_ones_do_not)
{
    const recipe rising = recipe_of("alternating_shapes");
    recipe falling = rising;
    trace t = trace_of("alternating_shapes");
    const uint64_t in_use_bytes = play(&t, CACHING, 64 * HR_GIB).end.peak_in_use_bytes;
    for (uint8_t k = 1; k <= 4; k++) {
        falling.phases[k].program = (uint8_t)(4 - k);
    }
    ck_assert_uint_gt(roomy_pool_bytes(&rising, CACHING), in_use_bytes * 18 / 10);
    ck_assert_uint_lt(roomy_pool_bytes(&falling, CACHING), in_use_bytes * 11 / 10);
    ck_assert_uint_lt(roomy_pool_bytes(&rising, EXPANDABLE), in_use_bytes * 105 / 100);
    trace_deinit(&t);
}
END_TEST

START_TEST(a_card_that_is_nearly_full_is_asked_again_and_again)
{
    trace t = trace_of("near_full");
    const played tight = play(&t, CACHING, limit_of("near_full")), roomy = play(&t, CACHING, 8 * HR_GIB);
    ck_assert_uint_eq(tight.failures, 0);
    ck_assert_uint_eq(tight.retries, 5);
    ck_assert_uint_gt(tight.grows, roomy.grows + 200);
    ck_assert_uint_eq(roomy.retries, 0);
    ck_assert_uint_eq(play(&t, EXPANDABLE, limit_of("near_full")).retries, 0);
    trace_deinit(&t);
}
END_TEST

START_TEST(evaluation_at_another_batch_runs_out_with_half_of_the_card_in_use)
{
    trace t = trace_of("train_and_evaluate");
    const uint64_t limit_bytes = limit_of("train_and_evaluate");
    const played r = play(&t, CACHING, limit_bytes);
    ck_assert_uint_eq(r.failed_bytes, 1568 * HR_MIB);
    ck_assert_uint_lt(r.at_failure.in_use_bytes * 100, limit_bytes * 60);
    ck_assert_uint_gt(free_bytes(&r.at_failure), r.failed_bytes);
    trace_deinit(&t);
}
END_TEST

START_TEST(two_streams_hold_two_caches_and_flush_each_others)
{
    const recipe two = recipe_of("two_streams");
    recipe one = two;
    trace t = trace_of("two_streams");
    one.phases[2].stream = 0;
    ck_assert_uint_gt(roomy_pool_bytes(&two, CACHING), roomy_pool_bytes(&one, CACHING) * 18 / 10);
    ck_assert_uint_eq(play(&t, CACHING, limit_of("two_streams")).retries, 5); // of five changes
    ck_assert_uint_eq(play(&t, EXPANDABLE, limit_of("two_streams")).retries, 5);
    ck_assert_uint_lt(roomy_pool_bytes(&two, ASYNC_TRIMS), roomy_pool_bytes(&one, CACHING));
    trace_deinit(&t);
}
END_TEST

START_TEST(chunks_that_are_handed_out_whole_waste_a_quarter_of_the_pool)
{
    trace t = trace_of("whole_chunks");
    const played grown = play(&t, GROWTH, limit_of("whole_chunks")),
                 once = play(&t, BFC, limit_of("whole_chunks"));
    ck_assert_uint_gt(grown.waste_at_peak_bytes * 4, limit_of("whole_chunks"));
    ck_assert_uint_lt(once.waste_at_peak_bytes, HR_MIB);
    trace_deinit(&t);
}
END_TEST

START_TEST(a_region_boundary_splits_what_one_region_would_hold)
{
    trace t = trace_of("growth_boundary");
    const played grown = play(&t, GROWTH, limit_of("growth_boundary"));
    ck_assert_uint_eq(grown.failed_bytes / HR_MIB, 1570); // logits
    ck_assert_uint_gt(free_bytes(&grown.at_failure), grown.failed_bytes);
    ck_assert_uint_lt(grown.at_failure.largest_free_bytes, grown.failed_bytes);
    ck_assert_uint_gt(grown.grows, 5);
    trace_deinit(&t);
}
END_TEST

START_TEST(collection_serves_what_nine_tenths_of_free_memory_could_not)
{
    trace t = trace_of("region_collection");
    const uint64_t limit_bytes = limit_of("region_collection");
    const played kept = play(&t, GROWTH_ONLY, limit_bytes), collected = play(&t, GROWTH, limit_bytes);
    ck_assert_uint_eq(kept.failures, 3); // each time VGG-16 comes
    ck_assert_uint_lt(kept.at_failure.in_use_bytes * 10, limit_bytes);
    ck_assert_uint_eq(kept.shrinks, 0);
    ck_assert_uint_ge(collected.shrinks, 3);
    trace_deinit(&t);
}
END_TEST

START_TEST(the_largest_hole_is_smaller_than_a_request_half_as_large_as_what_is_free)
{
    trace t = trace_of("largest_hole");
    const played r = play(&t, BFC, limit_of("largest_hole"));
    ck_assert_uint_eq(r.failed_bytes, 294 * HR_MIB);
    ck_assert_uint_gt(free_bytes(&r.at_failure), r.failed_bytes * 19 / 10);
    ck_assert_uint_lt(r.at_failure.largest_free_bytes, r.failed_bytes);
    ck_assert_uint_lt(r.at_failure.in_use_bytes * 100, r.at_failure.limit_bytes * 70);
    trace_deinit(&t);
}
END_TEST

// What bfc needs beyond what lives at once, in percent.
static uint64_t holes_percent(const recipe *r)
{
    trace t;
    uint64_t needed_bytes, nothing;
    ck_assert_int_eq(recipe_trace(r, &t, NULL), HR_OK);
    peaks(&t, t.events.count, &needed_bytes, &nothing);
    uint64_t limit_bytes = needed_bytes;
    while (play(&t, BFC, limit_bytes).failures > 0) {
        limit_bytes += needed_bytes / 100;
    }
    trace_deinit(&t);
    return (limit_bytes - needed_bytes) * 100 / needed_bytes;
}

START_TEST(it_is_recomputation_that_makes_the_holes)
{
    recipe r = *scenario_recipe(hr_scenario_find("largest_hole", NULL));
    ck_assert_uint_gt(holes_percent(&r), 15);
    for (int k = 0; k < RECIPE_KNOBS && r.programs[0].knobs[k] != NULL; k++) {
        if (strncmp(r.programs[0].knobs[k], "checkpoint", 10) == 0) {
            r.programs[0].knobs[k] = "checkpoint.strategy=none";
        }
    }
    ck_assert_uint_lt(holes_percent(&r), 2);
}
END_TEST

START_TEST(two_copies_of_one_variable_are_the_peak_and_no_step_is)
{
    trace t = trace_of("two_copies");
    const uint64_t limit_bytes = limit_of("two_copies");
    uint32_t build_end = 0;
    uint64_t build_bytes, step_bytes;
    for (uint32_t k = 0; k < t.events.count; k++) {
        const trace_event *e = &t.events.data[k];
        const char *name = intern_text(&t.names, e->name);
        build_end = name != NULL && strstr(name, ":initial") != NULL ? k + 3 : build_end;
    }
    peaks(&t, build_end, &build_bytes, &step_bytes);
    ck_assert_uint_gt(build_bytes, limit_bytes);
    ck_assert_uint_lt(step_bytes, limit_bytes);
    const played r = play(&t, BFC, limit_bytes);
    ck_assert_uint_lt(r.first_failure, build_end);
    ck_assert_uint_gt(r.failed_bytes * 2, limit_bytes);
    trace_deinit(&t);
}
END_TEST

START_TEST(what_is_retained_rises_by_the_same_bytes_every_step)
{
    trace t = trace_of("retained_predictions");
    const uint64_t limit_bytes = limit_of("retained_predictions");
    uint64_t *bytes = calloc(t.block_count + 1u, sizeof *bytes), live = 0, last = 0, rise = 0;
    uint32_t steps = 0;
    for (uint32_t k = 0; k < t.events.count; k++) {
        const trace_event *e = &t.events.data[k];
        if (e->kind == TRACE_ALLOC) {
            live += bytes[e->block] = e->bytes;
        } else if (e->kind == TRACE_FREE) {
            live -= bytes[e->block];
        } else if (e->kind == TRACE_STEP) {
            ck_assert(steps < 2 || live - last == rise);
            rise = live - last;
            last = live;
            steps++;
        }
    }
    ck_assert_uint_eq(steps, 12);
    ck_assert_uint_eq(rise, UINT64_C(1024) * 50257 * sizeof(float));
    const played early = play(&t, BFC, limit_bytes), late = play(&t, BFC, limit_bytes + 2 * rise);
    ck_assert_uint_gt(early.steps_before_failure, 2);
    ck_assert_uint_ge(late.steps_before_failure, early.steps_before_failure + 1);
    free(bytes);
    trace_deinit(&t);
}
END_TEST

START_TEST(a_pool_stays_where_it_is_kept_and_goes_where_it_is_not)
{
    trace t = trace_of("pool_stays");
    const uint64_t limit_bytes = limit_of("pool_stays");
    for (int v = 0; v < VARIANTS; v++) {
        const played r = play(&t, (variant)v, limit_bytes);
        const bool goes = v == DIRECT || v == ASYNC_TRIMS;
        ck_assert_uint_eq(r.end.in_use_bytes, 0);
        ck_assert_msg(goes ? r.end.pool_bytes == 0 : r.end.pool_bytes > 3 * HR_GIB, "%s", variants[v].name);
    }
    trace_deinit(&t);
}
END_TEST

START_TEST(ranges_of_their_own_make_small_tensors_large)
{
    trace t = trace_of("small_tensors");
    const played cut = play(&t, GROWTH, 4 * HR_GIB), own = play(&t, DIRECT, 4 * HR_GIB);
    ck_assert_uint_gt(own.end.peak_pool_bytes, 10 * cut.end.peak_pool_bytes);
    ck_assert_uint_gt(own.waste_at_peak_bytes, 10 * own.end.peak_requested_bytes);
    trace_deinit(&t);
}
END_TEST

START_TEST(a_replay_comes_to_the_same_as_playing_by_hand)
{
    static const variant judged[] = {BFC, GROWTH, DIRECT, ASYNC};
    for (size_t k = 0; hr_scenario_row(k) != NULL; k++) {
        const hr_scenario *scenario = hr_scenario_row(k);
        trace t = trace_of(scenario->name);
        hr_replay *replay = NULL;
        ck_assert_int_eq(hr_replay_open(scenario->name, &replay, NULL), HR_OK);
        for (size_t n = 0; n < sizeof judged / sizeof *judged; n++) {
            const variant v = judged[n];
            const played by_hand = play(&t, v, scenario->limit_bytes);
            hr_replay_result r;
            hr_knobs knobs;
            char limit[64];
            hr_replay_knobs_init(&knobs);
            snprintf(limit, sizeof limit, "device.vram=%lluMiB",
                     (unsigned long long)(scenario->limit_bytes / HR_MIB));
            ck_assert_int_eq(hr_knobs_set_pair(&knobs, limit, NULL), HR_OK);
            ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_ALLOCATOR_KIND, variants[v].kind, NULL), HR_OK);
            ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_ALLOCATOR_GROWTH, v == GROWTH ? "on" : "off", NULL),
                             HR_OK);
            ck_assert_int_eq(hr_replay_run(replay, &knobs, NULL, &r, NULL), HR_OK);
            ck_assert_msg(r.failures_total == by_hand.failures &&
                              r.memory.peak_in_use_bytes == by_hand.end.peak_in_use_bytes &&
                              r.memory.peak_pool_bytes == by_hand.end.peak_pool_bytes,
                          "%s on %s", scenario->name, variants[v].name);
            hr_replay_result_deinit(&r);
        }
        hr_replay_close(replay);
        trace_deinit(&t);
    }
}
END_TEST

// ---- faults ---------------------------------------------------------------------------------------------------

START_TEST(short_host_memory_makes_no_trace)
{
    const hr_scenario *s = hr_scenario_find("two_copies", NULL);
    trace warm = trace_of(s->name); // tables that stay with the process
    trace_deinit(&warm);
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth += 1 + nth / 8) {
        trace t;
        (void)hr_host_mem_fail_at(nth);
        hr_status status = scenario_trace(s, &t, NULL);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert(failed ? status == HR_NOMEM : status == HR_OK);
        ck_assert(!failed || t.events.count == 0);
        trace_deinit(&t);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(without_its_models_there_is_no_trace)
{
    trace t;
    hr_err err = {0};
    ck_assert_int_eq(setenv("HEADROOM_DATA", "/nowhere", 1), 0);
    ck_assert_int_ne(scenario_trace(hr_scenario_find("growth_boundary", NULL), &t, &err), HR_OK);
    ck_assert_ptr_nonnull(strstr(err.sentence, "gpt2_124m"));
    ck_assert_uint_eq(t.events.count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenarios");
    TCase *cases = tcase_create("claims");
    tcase_add_checked_fixture(cases, find_presets, NULL);
    tcase_add_test(cases, every_scenario_is_a_good_trace_with_names_and_the_same_each_time);
    tcase_add_test(cases, every_scenario_says_what_it_is);
    tcase_add_test(cases, a_name_that_is_nearly_right_is_suggested);
    tcase_add_test(cases, on_its_limit_a_scenario_fails_and_fits_where_it_says);
    tcase_add_test(cases, small_state_pins_large_blocks_unless_it_is_made_before_them);
    tcase_add_test(cases, rising_shapes_take_a_second_pool_and_falling_ones_do_not);
    tcase_add_test(cases, a_card_that_is_nearly_full_is_asked_again_and_again);
    tcase_add_test(cases, evaluation_at_another_batch_runs_out_with_half_of_the_card_in_use);
    tcase_add_test(cases, two_streams_hold_two_caches_and_flush_each_others);
    tcase_add_test(cases, chunks_that_are_handed_out_whole_waste_a_quarter_of_the_pool);
    tcase_add_test(cases, a_region_boundary_splits_what_one_region_would_hold);
    tcase_add_test(cases, collection_serves_what_nine_tenths_of_free_memory_could_not);
    tcase_add_test(cases, the_largest_hole_is_smaller_than_a_request_half_as_large_as_what_is_free);
    tcase_add_test(cases, it_is_recomputation_that_makes_the_holes);
    tcase_add_test(cases, two_copies_of_one_variable_are_the_peak_and_no_step_is);
    tcase_add_test(cases, what_is_retained_rises_by_the_same_bytes_every_step);
    tcase_add_test(cases, a_pool_stays_where_it_is_kept_and_goes_where_it_is_not);
    tcase_add_test(cases, ranges_of_their_own_make_small_tensors_large);
    tcase_add_test(cases, a_replay_comes_to_the_same_as_playing_by_hand);
    tcase_add_test(cases, short_host_memory_makes_no_trace);
    tcase_add_test(cases, without_its_models_there_is_no_trace);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
