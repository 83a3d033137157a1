// SPDX-License-Identifier: Apache-2.0
// Training works: the demo learns the generated set, and one seed at one thread count gives one set of weights.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static json_t *report_of(const char *words)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static const json_t *trained(const json_t *report, const char *key)
{
    return json_object_get(json_object_get(report, "train"), key);
}

START_TEST(the_demo_learns_what_it_has_not_seen)
{
    json_t *report = report_of("run demo --steps 320 --json");
    ck_assert_str_eq(json_string_value(trained(report, "data")), "generated");
    ck_assert_double_gt(json_real_value(trained(report, "eval_accuracy")), 0.9);
    ck_assert_double_lt(json_real_value(trained(report, "loss_last")),
                        json_real_value(trained(report, "loss_first")));
    json_decref(report);
}
END_TEST

#if HEADROOM_SANITIZED
#define DEMO "run demo --steps 4 --json"
#else
#define DEMO "run demo --steps 12 --json"
#endif

static const char *const runs[] = {
    DEMO " -s threads.count=2 -s train.seed=3",
    DEMO " -s threads.count=2 -s train.seed=3 -s execution.mode=graph",
    DEMO " -s threads.count=2 -s train.seed=3 -s execution.mode=graph -s "
         "allocator.kind=static",
};

START_TEST(one_seed_and_thread_count_give_the_same_weights)
{
    json_t *first = report_of(runs[_i]), *second = report_of(runs[_i]);
    const char *sha256 = json_string_value(trained(first, "weights_sha256"));
    ck_assert_uint_eq(strlen(sha256), 64);
    ck_assert_str_eq(sha256, json_string_value(trained(second, "weights_sha256")));
    json_decref(first);
    json_decref(second);
}
END_TEST

START_TEST(eager_graph_and_static_give_the_same_weights_and_another_seed_others)
{
    json_t *eager = report_of(runs[0]), *graph = report_of(runs[1]), *packed = report_of(runs[2]);
    json_t *other = report_of(DEMO " -s threads.count=2 -s train.seed=4");
    const char *sha256 = json_string_value(trained(eager, "weights_sha256"));
    ck_assert_str_eq(sha256, json_string_value(trained(graph, "weights_sha256")));
    ck_assert_str_eq(sha256, json_string_value(trained(packed, "weights_sha256")));
    ck_assert_str_ne(sha256, json_string_value(trained(other, "weights_sha256")));
    json_decref(eager);
    json_decref(graph);
    json_decref(packed);
    json_decref(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("training");
    TCase *cases = tcase_create("training");
    tcase_set_timeout(cases, 120);
#if HEADROOM_HAVE_ONEDNN
    if (!HEADROOM_SANITIZED) {
        tcase_add_test(cases, the_demo_learns_what_it_has_not_seen);
    }
    tcase_add_loop_test(cases, one_seed_and_thread_count_give_the_same_weights, 0,
                        (int)(sizeof runs / sizeof *runs));
    tcase_add_test(cases, eager_graph_and_static_give_the_same_weights_and_another_seed_others);
#endif
    tcase_add_checked_fixture(cases, NULL, program_remove_home);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
