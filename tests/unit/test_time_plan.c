// SPDX-License-Identifier: Apache-2.0
// What a plan says of the time that batches take: more work is more of it, more threads less up to the cores, a cache takes
// the place of what it keeps, and a share that waits follows from both times.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/machine.h"
#include "data/time_plan.h"

static const data_form form = {.count = 2,
                               .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                        {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static const pipeline_wire wire = {.train = {DATA_FLOAT, DATA_IDS}};

static hr_knobs knobs_of(const char *const *pairs)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, NULL) == HR_OK, "%s", *pairs);
    }
    return knobs;
}

#define WITH(...) knobs_of((const char *const[]){__VA_ARGS__, NULL})

// A file whose records cost something.
static data_facts facts_of(double fetch_byte_ns)
{
    static const data_source_ops ops = {.fetch = NULL};
    data_facts facts = {.source = {.ops = &ops,
                                   .form = form,
                                   .info = {.train_samples = 1000, .eval_samples = 100},
                                   .raw_bytes = 3072,
                                   .cost = {.fetch_byte_ns = fetch_byte_ns, .make_value_ns = 0.4}}};
    facts.raw_bytes[DATA_TRAIN] = 3072000;
    facts.raw_bytes[DATA_EVAL] = 307200;
    return facts;
}

static double seconds(hr_knobs knobs)
{
    const data_facts facts = facts_of(2);
    return time_plan_make(&knobs, &facts, &wire).input_seconds;
}

static void near(double had, double wanted)
{
    ck_assert_msg(fabs(had - wanted) <= 1e-9 * fabs(wanted), "%.17g, not %.17g", had, wanted);
}

START_TEST(a_step_takes_its_samples_over_the_threads_that_have_a_core)
{
    const double one = seconds(WITH("batch.size=100", "pipeline.map_threads=1"));
    near(one, 100 * (3072 * 2 + 3073 * 0.4) * 1e-9);
    near(seconds(WITH("batch.size=50", "batch.accumulate=2", "pipeline.map_threads=1")), one);
    near(seconds(WITH("batch.size=300", "pipeline.map_threads=1")), 3 * one);
    near(seconds(WITH("batch.size=100", "pipeline.map_threads=64")), one / hr_machine_cores());
    near(seconds(WITH("batch.size=100", "pipeline.resident=on")), 0);
}
END_TEST

START_TEST(a_cache_takes_the_place_of_what_it_keeps)
{
    const double all = seconds(WITH("pipeline.map_threads=1"));
    const double raw = seconds(WITH("pipeline.map_threads=1", "pipeline.cache=ram"));
    const double slices = seconds(WITH("pipeline.map_threads=1", "pipeline.stages=slices,shuffle,map,batch"));
    ck_assert(raw < all);
    near(slices, raw);
    ck_assert(seconds(WITH("pipeline.map_threads=1", "pipeline.cache=ram",
                           "pipeline.stages=map,cache,batch")) < all);
}
END_TEST

START_TEST(what_a_source_costs_is_known_or_nothing_is)
{
    const hr_knobs knobs = WITH("batch.size=8");
    data_facts facts = facts_of(2);
    const time_plan known = time_plan_make(&knobs, &facts, &wire);
    facts.source.cost = (data_cost){0};
    const time_plan unknown = time_plan_make(&knobs, &facts, &wire);
    ck_assert(isnan(unknown.input_seconds));
    ck_assert(isnan(time_plan_stall(&unknown, 1)));
    ck_assert(isnan(time_plan_stall(&known, (double)NAN)));
}
END_TEST

START_TEST(a_queue_hides_what_the_step_outlasts)
{
    const data_facts facts = facts_of(2);
    const hr_knobs with = WITH("pipeline.prefetch=2"), none = WITH("pipeline.prefetch=0"),
                   left_out = WITH("pipeline.stages=shuffle,map,batch");
    ck_assert(time_plan_make(&with, &facts, &wire).has_queue);
    ck_assert(!time_plan_make(&none, &facts, &wire).has_queue);
    ck_assert(!time_plan_make(&left_out, &facts, &wire).has_queue);
    near(time_plan_stall(&(time_plan){1, true}, 2), 0);
    near(time_plan_stall(&(time_plan){4, true}, 1), 0.75); // three of four seconds
    near(time_plan_stall(&(time_plan){1, false}, 3), 0.25);
    for (double input = 0; input < 10; input += 0.5) {
        const double stall = time_plan_stall(&(time_plan){input, true}, 2);
        ck_assert(stall >= 0 && stall < 1 && stall <= time_plan_stall(&(time_plan){input, false}, 2));
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("time plan");
    tcase_add_test(tests, a_step_takes_its_samples_over_the_threads_that_have_a_core);
    tcase_add_test(tests, a_cache_takes_the_place_of_what_it_keeps);
    tcase_add_test(tests, what_a_source_costs_is_known_or_nothing_is);
    tcase_add_test(tests, a_queue_hides_what_the_step_outlasts);
    Suite *suite = suite_create("time plan");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
