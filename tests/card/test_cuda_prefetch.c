// SPDX-License-Identifier: Apache-2.0
// pipeline.device_prefetch on the cuda device over the emulated card: whatever order the card takes its streams in, eager
// or as a graph, every step trains on its own batch, and the copy of a later one is waited for by nobody but the end of the
// step.
#include "card/reach.h"
#include "unit/small_engine.h"

enum { IMAGES = 27, PAIRS_MAX = 14, STEPS = 10, DEPTHS = 3, ALL_DONE = 77 };

static const char *const depths[DEPTHS] = {"pipeline.device_prefetch=0", "pipeline.device_prefetch=1",
                                           "pipeline.device_prefetch=3"};
static const char *const graphs[] = {"execution.cuda_graph=off", "execution.cuda_graph=on"};

static card_reach card;
static char images[160];

static void open_all(void)
{
    open_preset();
    (void)write_images(IMAGES, 9, images);
}

static hr_engine *open_engine(const char *depth, const char *graph, const char *const *pairs)
{
    const char *all[PAIRS_MAX] = {images, "device.kind=cuda", "execution.mode=graph", depth, graph};
    for (size_t k = 5; *pairs != NULL; k++) {
        ck_assert_uint_lt(k, PAIRS_MAX - 1);
        all[k] = *pairs++;
    }
    return create(all, NULL);
}

static void run_well(hr_engine *e, uint64_t steps)
{
    run_steps(e, steps);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
}

static void train(const char *depth, const char *graph, const char *const *pairs,
                  char sha[HR_SHA256_TEXT_MAX])
{
    hr_engine *e = open_engine(depth, graph, pairs);
    run_well(e, STEPS);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

// ---- the same bits ----------------------------------------------------------------------------------------------

static const char *const ways[][4] = {
    {"batch.remainder=keep"},
    {"batch.remainder=pad", "batch.accumulate=2"},
    {"batch.remainder=drop", "precision.policy=bfloat16"},
    {"batch.remainder=drop", "offload.activations=on", "offload.prefetch=0"},
    {"batch.remainder=drop",
     "compress.prune=polynomial:0.2:0.8:2:9:3"}, // masks are made inside of captured steps
};
enum { WAYS = sizeof ways / sizeof *ways, SEEDS = 2 };

START_TEST(weights_are_the_same_in_whatever_order_streams_run)
{
    char whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX], seed[16];
    const char *pairs[5] = {NULL};
    memcpy(pairs, ways[_i % WAYS], sizeof ways[0]);
    (void)snprintf(seed, sizeof seed, "%d", _i / WAYS + 1);
    ck_assert_int_eq(setenv("CARD_SEED", seed, 1), 0);
    train(depths[0], graphs[0], pairs, whole);
    for (int k = 0; k < DEPTHS; k++) {
        for (int g = 0; g < 2; g++) {
            train(depths[k], graphs[g], pairs, sha);
            ck_assert_msg(strcmp(sha, whole) == 0, "other weights with %s, %s", depths[k], graphs[g]);
        }
    }
}
END_TEST

// ---- what a steady step asks of the card --------------------------------------------------------------------------

enum { STEADY = 4, BATCH_BYTES = 8 * (32 * 32 * 3 * 4 + 4) };

static card_totals steady_steps(const char *depth, const char *graph)
{
    card_totals seen;
    char big[160];
    hr_engine *e = open_engine(depth, graph, (const char *const[]){write_images(400, 9, big), NULL});
    run_well(e, 6);
    card.card_reset();
    run_well(e, STEADY);
    card.card_count(&seen);
    hr_engine_destroy(e);
    return seen;
}

START_TEST(a_steady_step_still_waits_once_and_copies_one_batch)
{
    const card_totals before = steady_steps(depths[0], graphs[_i]);
    for (uint32_t k = 1; k < DEPTHS; k++) {
        const uint64_t depth = k == 1 ? 1 : 3;
        const card_totals seen = steady_steps(depths[k], graphs[_i]);
        ck_assert_uint_eq(seen.allocations, 0);
        ck_assert_uint_eq(seen.synchronisations, before.synchronisations);
        ck_assert_uint_eq(seen.to_card_bytes, before.to_card_bytes);
        ck_assert_uint_eq(seen.from_card_bytes, before.from_card_bytes);
        ck_assert_uint_eq(seen.on_card_bytes - before.on_card_bytes, STEADY * depth * BATCH_BYTES);
        ck_assert_uint_eq(seen.graph_launches, _i == 1 ? STEADY : 0);
        // The batch is copied beside the graph, not by it: x, labels, scalars.
        ck_assert_uint_eq(card.card_calls("cuMemcpyHtoDAsync_v2"), STEADY * 3);
    }
}
END_TEST

// The copy of the later batch fails, and the step that was captured is on its way by then: the host reads that batch while
// the card computes.
START_TEST(a_later_batch_is_read_behind_the_launch)
{
    char big[160];
    hr_engine *e = open_engine(depths[1], graphs[1], (const char *const[]){write_images(400, 9, big), NULL});
    run_well(e, 6);
    card.card_reset();
    card.card_fail("cuMemcpyHtoDAsync_v2", 2, CUDA_ERROR_INVALID_VALUE); // the first brings scalars
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_uint_eq(card.card_calls("cuGraphLaunch"), 1);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(every_batch_held_ahead_takes_its_bytes)
{
    for (int planned = 0; planned < 2; planned++) {
        const hr_engine_options options = {.plan_only = planned == 1};
        hr_engine *e = create((const char *[]){images, "device.kind=cuda", depths[2], NULL}, &options);
        run_well(e, 3);
        hr_report r = report_of(e);
        ck_assert_uint_eq(r.memory.at_peak.by_category[HR_CATEGORY_INPUT], 4 * BATCH_BYTES);
        ck_assert_uint_eq(r.h2d_bytes_per_step, BATCH_BYTES);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
}
END_TEST

// Only scalars go to the card; a step of several rounds waits for no batch.
START_TEST(a_resident_batch_is_not_copied)
{
    static const char *const rounds[] = {"batch.accumulate=1", "batch.accumulate=2"};
    card_totals seen;
    char big[160];
    hr_engine *e = open_engine(
        "pipeline.resident=on", graphs[_i % 2],
        (const char *const[]){write_images(400, 9, big), "batch.remainder=drop", rounds[_i / 2], NULL});
    run_well(e, 6);
    card.card_reset();
    run_well(e, STEADY);
    card.card_count(&seen);
    ck_assert_uint_lt(seen.to_card_bytes, STEADY * 1024);
    ck_assert_uint_eq(seen.on_card_bytes, 0);
    ck_assert_uint_eq(seen.synchronisations, STEADY);
    ck_assert_uint_eq(seen.graph_launches, _i % 2 == 1 ? STEADY : 0);
    hr_report r = report_of(e);
    ck_assert_uint_eq(r.h2d_bytes_per_step, 0);
    ck_assert_uint_eq(r.memory.at_peak.by_category[HR_CATEGORY_INPUT], BATCH_BYTES);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// ---- batches in pinned memory -------------------------------------------------------------------------------------

static uint64_t host_bytes(const hr_report *r, const char *stage)
{
    for (uint32_t k = 0; k < r->host.stage_count; k++) {
        if (strcmp(r->host.stages[k].name, stage) == 0) {
            return r->host.stages[k].peak_bytes;
        }
    }
    return 0;
}

// The step's and those that wait: of two bytes where the first layer reads two bytes.
START_TEST(what_is_pinned_is_what_was_planned)
{
    static const struct {
        const char *pairs[3];
        uint64_t batches, value_bytes;
    } rows[] = {{{"execution.mode=eager", "pipeline.prefetch=2", "precision.policy=mixed_bfloat16"}, 3, 4},
                {{"execution.mode=graph", "pipeline.prefetch=0", "precision.policy=mixed_bfloat16"}, 1, 2},
                {{"execution.mode=graph", "pipeline.prefetch=5", "precision.policy=float16"}, 6, 2},
                {{"execution.mode=graph", "pipeline.pinned=off", "precision.policy=float16"}, 3, 2}};
    for (int planned = 0; planned < 2; planned++) {
        const hr_engine_options options = {.plan_only = planned == 1};
        const char *const *pairs = rows[_i].pairs;
        hr_engine *e = create(
            (const char *[]){images, "device.kind=cuda", pairs[0], pairs[1], pairs[2], NULL}, &options);
        run_well(e, 3);
        hr_report r = report_of(e);
        const bool pins = strcmp(pairs[1], "pipeline.pinned=off") != 0;
        const uint64_t bytes = rows[_i].batches * 8 * (32 * 32 * 3 * rows[_i].value_bytes + 4);
        ck_assert_uint_eq(host_bytes(&r, "pinned"), pins ? bytes : 0);
        ck_assert_uint_eq(host_bytes(&r, "prefetch"), pins ? 0 : bytes);
        ck_assert_str_eq(r.host.refused, "");
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
}
END_TEST

START_TEST(a_host_that_pins_nothing_trains_all_the_same_and_says_so)
{
    char whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    train(depths[1], graphs[0], (const char *const[]){NULL}, whole);
    card.card_reset();
    card.card_fail("cuMemHostAlloc", 3, CUDA_ERROR_OUT_OF_MEMORY); // the second batch's first slot
    hr_engine *e = open_engine(depths[1], graphs[0], (const char *const[]){NULL});
    run_well(e, STEPS);
    hr_report r = report_of(e);
    ck_assert_uint_eq(host_bytes(&r, "pinned"), BATCH_BYTES);
    ck_assert_uint_eq(host_bytes(&r, "prefetch"), 2 * BATCH_BYTES);
    ck_assert_str_eq(r.host.refused, "no pinned host memory: needed 96.00 KiB");
    hr_report_deinit(&r);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
}
END_TEST

static hr_engine *trained_half(void)
{
    hr_engine *e = open_engine(depths[1], graphs[0], (const char *const[]){NULL});
    run_well(e, STEPS / 2);
    return e;
}

// The device that pinned the batches is closed by a rebuild; they stay, unless what they are has changed.
START_TEST(batches_outlive_the_device_that_pinned_them)
{
    static const struct {
        hr_knob_id knob;
        const char *value;
        bool same; // weights
        uint64_t pinned_bytes;
    } rows[] = {{HR_KNOB_ALLOCATOR_KIND, "caching", true, 3 * BATCH_BYTES},
                {HR_KNOB_PIPELINE_PREFETCH, "1", true, 2 * BATCH_BYTES},
                {HR_KNOB_PIPELINE_PINNED, "off", true, 0},
                {HR_KNOB_PRECISION_POLICY, "bfloat16", false, 3 * 8 * (32 * 32 * 3 * 2 + 4)},
                {HR_KNOB_DEVICE_KIND, "reference", false, 0}};
    char whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    train(depths[1], graphs[0], (const char *const[]){NULL}, whole);
    hr_engine *e = trained_half();
    ck_assert_int_eq(turn(e, rows[_i].knob, rows[_i].value), HR_OK);
    run_well(e, STEPS - STEPS / 2);
    hr_report r = report_of(e);
    ck_assert_uint_eq(host_bytes(&r, "pinned"), rows[_i].pinned_bytes);
    hr_report_deinit(&r);
    weights_of(e, sha);
    ck_assert(!rows[_i].same || strcmp(sha, whole) == 0);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        puts("skipped: libcuda.so.1 is not the emulated card");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda prefetch");
    TCase *cases = tcase_create("cuda prefetch");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, open_all, close_preset);
    tcase_add_loop_test(cases, weights_are_the_same_in_whatever_order_streams_run, 0, WAYS * SEEDS);
    tcase_add_loop_test(cases, a_steady_step_still_waits_once_and_copies_one_batch, 0, 2);
    tcase_add_test(cases, a_later_batch_is_read_behind_the_launch);
    tcase_add_test(cases, every_batch_held_ahead_takes_its_bytes);
    tcase_add_loop_test(cases, a_resident_batch_is_not_copied, 0, 4);
    tcase_add_loop_test(cases, what_is_pinned_is_what_was_planned, 0, 4);
    tcase_add_test(cases, a_host_that_pins_nothing_trains_all_the_same_and_says_so);
    tcase_add_loop_test(cases, batches_outlive_the_device_that_pinned_them, 0, 5);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
