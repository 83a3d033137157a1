// SPDX-License-Identifier: Apache-2.0
// Two layers that read the same and whose sum goes on have equal gradients, which a graph computes once: whatever is
// done to gradients is then done as often as in eager mode, where there are two.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: max_pool, size: 8}\n"                                                                      \
    "    - {name: flat, kind: flatten}\n"                                                                    \
    "    - {name: left, kind: dense, units: 12, input: flat}\n"                                              \
    "    - {name: right, kind: dense, units: 12, input: flat}\n"                                             \
    "    - {kind: add, inputs: [left, right], activation: relu}\n"                                           \
    "    - {kind: dense, units: 10}\n"

#include "unit/small_engine.h"

enum { STEPS = 3, CASES = 5, PAIRS = 4 };

static const char *const cases[CASES][PAIRS] = {
    {"precision.loss_scale=128"},
    {"precision.loss_scale=128", "optimizer.fused_backward=on"},
    {"precision.loss_scale=128", "batch.accumulate=2"},
    {"precision.loss_scale=1024", "optimizer.clip_norm=0.5"},
    {"precision.policy=mixed_float16", "precision.loss_scale=dynamic", "optimizer.clip_norm=0.5"},
};

static void train(const char *const *options, const char *mode, char sha[HR_SHA256_TEXT_MAX])
{
    const char *pairs[PAIRS + 3] = {mode, "optimizer.kind=sgd"};
    for (int k = 0; k < PAIRS && options[k] != NULL; k++) {
        pairs[2 + k] = options[k];
    }
    hr_engine *e = create(pairs, &(hr_engine_options){.plan_only = false});
    run_steps(e, STEPS);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

START_TEST(what_is_done_to_gradients_is_done_once)
{
    char eager[HR_SHA256_TEXT_MAX], graph[HR_SHA256_TEXT_MAX];
    train(cases[_i], "execution.mode=eager", eager);
    train(cases[_i], "execution.mode=graph", graph);
    ck_assert_str_eq(graph, eager);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("equal gradients");
    TCase *tests = tcase_create("equal gradients");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_loop_test(tests, what_is_done_to_gradients_is_done_once, 0, CASES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
