// SPDX-License-Identifier: Apache-2.0
// What tf.data's stages hold of host memory, by formulas written down apart from the pipeline: the figures of a data set of 50,000
// images of 32 x 32 x 3, of a list that is stacked, of prefetch, cache and shuffle. Beside its elements a stage holds a few
// bytes of each sample for itself, which the formulas name.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/host_plan.h"

enum {
    IMAGES = 50000,
    PIXELS = 32 * 32 * 3,
    LABEL = 4,
    LABEL_PACKED = 8,
    CACHE_ENTRY = 5,
    POOL_ENTRY = 20,
    NUMBER = 4
};

static const pipeline_wire as_it_is = {.train = {DATA_FLOAT}};

static data_form form_of(uint32_t side)
{
    return (data_form){.count = 2,
                       .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {side, side, 3}},
                                {.type = DATA_IDS, .is_label = true, .classes = 10}}};
}

// Of generated images of that side; `pairs` ends with NULL.
static host_plan plan_of(uint32_t side, const char *const pairs[])
{
    const data_form form = form_of(side);
    hr_knobs knobs;
    data_facts facts;
    hr_err err = {0};
    hr_knobs_init(&knobs);
    for (size_t k = 0; pairs[k] != NULL; k++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, pairs[k], &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(data_facts_read(&knobs, &form, &facts, &err) == HR_OK, "%s", err.sentence);
    return host_plan_make(&knobs, &facts, &as_it_is, false);
}

static uint64_t stage_bytes(const host_plan *plan, const char *name)
{
    for (uint32_t k = 0; k < plan->count; k++) {
        if (strcmp(plan->stages[k].name, name) == 0) {
            return plan->stages[k].bytes;
        }
    }
    return 0;
}

#define PLAN(side, ...) plan_of(side, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(an_array_of_float64_is_eight_times_its_bytes)
{
    const host_plan bytes = PLAN(32, "pipeline.samples=50000", "pipeline.array=uint8");
    const host_plan floats = PLAN(32, "pipeline.samples=50000", "pipeline.array=float32");
    const host_plan doubles = PLAN(32, "pipeline.samples=50000", "pipeline.array=float64");
    const uint64_t labels = (uint64_t)IMAGES * LABEL;
    ck_assert_uint_eq(stage_bytes(&bytes, "source"), 153600000 + labels);
    ck_assert_uint_eq(stage_bytes(&floats, "source"), 614400000 + labels);
    ck_assert_uint_eq(stage_bytes(&doubles, "source"), 1228800000 + labels);
}
END_TEST

START_TEST(slices_copy_the_array_once_more)
{
    const host_plan plan =
        PLAN(32, "pipeline.samples=50000", "pipeline.array=float64", "pipeline.stages=slices,map,batch");
    ck_assert_uint_eq(stage_bytes(&plan, "slices"), 1228800000 + (uint64_t)IMAGES * CACHE_ENTRY);
    ck_assert_uint_eq(stage_bytes(&plan, "source"), 1228800000 + (uint64_t)IMAGES * LABEL);
}
END_TEST

// A list of N float32 images of 224 x 224 x 3 and its stack are 2 N 602,112 bytes; a list has a pointer an image. A stream
// holds the same for any N.
START_TEST(a_list_that_is_stacked_is_there_twice)
{
    const char *const counts[] = {"pipeline.samples=100", "pipeline.samples=1000"};
    uint64_t stacked[2], streamed[2];
    for (int k = 0; k < 2; k++) {
        const host_plan stack =
            PLAN(224, counts[k], "pipeline.array=float32", "pipeline.mode=eager_stack", "pipeline.shuffle=0");
        const host_plan stream = PLAN(224, counts[k], "pipeline.shuffle=0");
        stacked[k] = stack.bytes;
        streamed[k] = stream.bytes;
    }
    ck_assert_uint_eq(stacked[1] - stacked[0], 900 * (2 * UINT64_C(602112) + LABEL + sizeof(void *)));
    ck_assert_uint_eq(streamed[1], streamed[0]);
}
END_TEST

START_TEST(prefetch_holds_its_batches_and_the_steps)
{
    const uint64_t batch = 128 * ((uint64_t)PIXELS * sizeof(float) + LABEL);
    for (uint64_t n = 1; n <= 16; n *= 2) {
        char pair[32];
        (void)snprintf(pair, sizeof pair, "pipeline.prefetch=%d", (int)n);
        const host_plan plan = PLAN(32, "batch.size=128", pair);
        ck_assert_uint_eq(stage_bytes(&plan, "prefetch"), (n + 1) * batch);
    }
}
END_TEST

START_TEST(a_cache_holds_what_stands_in_front_of_it)
{
    const host_plan read =
        PLAN(32, "pipeline.samples=50000", "pipeline.cache=ram", "pipeline.stages=cache,map,batch");
    const host_plan made =
        PLAN(32, "pipeline.samples=50000", "pipeline.cache=ram", "pipeline.stages=map,cache,batch");
    ck_assert_uint_eq(stage_bytes(&read, "cache"), IMAGES * (uint64_t)(PIXELS + CACHE_ENTRY));
    ck_assert_uint_eq(stage_bytes(&made, "cache"),
                      IMAGES * (uint64_t)(PIXELS * 4 + LABEL_PACKED + CACHE_ENTRY));
}
END_TEST

// tf.data's shuffle(1000) over rows of float64 holds 24,576,000 bytes of them; over their numbers, 4 bytes each.
START_TEST(a_shuffle_holds_its_elements_or_their_numbers)
{
    const host_plan elements =
        PLAN(32, "pipeline.array=float64", "pipeline.shuffle=1000", "pipeline.shuffle_of=elements");
    const host_plan numbers = PLAN(32, "pipeline.array=float64", "pipeline.shuffle=1000");
    ck_assert_uint_eq(stage_bytes(&elements, "shuffle"), 24576000 + 1000 * (POOL_ENTRY + 2 * NUMBER));
    ck_assert_uint_eq(stage_bytes(&numbers, "shuffle"), 1000 * NUMBER);
}
END_TEST

START_TEST(samples_on_their_way_grow_with_the_threads)
{
    const host_plan one = PLAN(32, "pipeline.map_threads=1"), two = PLAN(32, "pipeline.map_threads=2");
    const host_plan many = PLAN(32, "pipeline.map_threads=16");
    ck_assert_uint_eq(stage_bytes(&two, "map"), 2 * stage_bytes(&one, "map"));
    ck_assert_uint_eq(stage_bytes(&many, "map"), 16 * stage_bytes(&one, "map"));
    ck_assert_uint_gt(stage_bytes(&one, "map"), PIXELS);
}
END_TEST

START_TEST(half_the_side_is_a_quarter_of_the_bytes)
{
    const host_plan large = PLAN(64, "batch.size=100", "pipeline.prefetch=1");
    const host_plan small = PLAN(32, "batch.size=100", "pipeline.prefetch=1");
    const uint64_t labels = UINT64_C(2) * 100 * LABEL;
    ck_assert_uint_eq(stage_bytes(&large, "prefetch") - labels,
                      4 * (stage_bytes(&small, "prefetch") - labels));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host oracles");
    TCase *cases = tcase_create("host oracles");
    tcase_add_test(cases, an_array_of_float64_is_eight_times_its_bytes);
    tcase_add_test(cases, slices_copy_the_array_once_more);
    tcase_add_test(cases, a_list_that_is_stacked_is_there_twice);
    tcase_add_test(cases, prefetch_holds_its_batches_and_the_steps);
    tcase_add_test(cases, a_cache_holds_what_stands_in_front_of_it);
    tcase_add_test(cases, a_shuffle_holds_its_elements_or_their_numbers);
    tcase_add_test(cases, samples_on_their_way_grow_with_the_threads);
    tcase_add_test(cases, half_the_side_is_a_quarter_of_the_bytes);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
