// SPDX-License-Identifier: Apache-2.0
// checkpoint.strategy=budget in runs on the cpu device: the peak that is counted is within the budget, under each allocator, and the
// weights are those of a run without it.
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "short_runs.h"

enum { STEPS = 3 };

static const char *const models[] = {"resnet18_tiny",  "unet_tiny",        "mobilenet_v2_tiny",
                                     "gpt2_124m_tiny", "densenet121_tiny", "vgg16_tiny"};
static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
static const char *const kinds[] = {"allocator.kind=bfc", "allocator.kind=caching", "allocator.kind=async",
                                    "allocator.kind=direct"};
enum { MODELS = sizeof models / sizeof *models, MODES = 2, KINDS = 4 };

typedef struct outcome {
    bool ran;
    uint64_t peak_bytes;
    char sha256[HR_SHA256_TEXT_MAX];
    hr_err err;
} outcome;

static outcome run(const char *model, const char *const *pairs)
{
    outcome o = {0};
    hr_report report = {0};
    hr_engine *e = start(model, pairs);
    hr_command command = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = STEPS};
    ck_assert_int_eq(hr_engine_command(e, &command, NULL), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(e, &idle);
    }
    o.ran = hr_engine_steps(e) == STEPS;
    o.err = *hr_engine_error(e);
    if (o.ran) {
        ck_assert_int_eq(hr_engine_report(e, &report, NULL), HR_OK);
        o.peak_bytes = report.memory.peak_in_use_bytes;
        memcpy(o.sha256, report.train.weights_sha256, sizeof o.sha256);
        hr_report_deinit(&report);
    }
    hr_engine_destroy(e);
    return o;
}

static void stay_within(const char *model, const char *mode, const char *kind, const char *offload)
{
    char budget[64] = "checkpoint.strategy=none", sends[64] = "offload.activations=off";
    const char *const pairs[] = {mode, kind, "batch.size=16", "execution.fuse=off", budget, sends, NULL};
    const outcome plain = run(model, pairs);
    ck_assert_msg(plain.ran, "%s: %s", model, plain.err.sentence);
    uint64_t before = plain.peak_bytes;
    uint32_t kept = 0;
    snprintf(sends, sizeof sends, "offload.activations=%s", offload);
    for (uint64_t tenth = 10; tenth >= 4; tenth--) {
        const uint64_t bytes = plain.peak_bytes / 10 * tenth + plain.peak_bytes % 10;
        snprintf(budget, sizeof budget, "checkpoint.strategy=budget:%" PRIu64 "B", bytes);
        const outcome o = run(model, pairs);
        if (o.ran) {
            ck_assert_msg(o.peak_bytes <= bytes, "%s, %s: %" PRIu64, model, budget, o.peak_bytes);
            ck_assert_uint_le(o.peak_bytes, before);
            ck_assert_msg(strcmp(o.sha256, plain.sha256) == 0, "%s: other weights with %s", model, budget);
            before = o.peak_bytes;
            kept++;
        } else {
            ck_assert_msg(strstr(o.err.sentence, "cannot be kept: the smallest peak") != NULL, "%s",
                          o.err.sentence);
        }
    }
    // Of vgg16_tiny weights are most of the peak.
    ck_assert_msg(kept >= 2 || strcmp(model, "vgg16_tiny") == 0, "%s, %s: only the plain peak can be kept",
                  model, mode);
}

START_TEST(a_run_stays_within_its_budget_and_learns_the_same_to_the_bit)
{
    stay_within(models[_i / MODES], modes[_i % MODES], kinds[_i % KINDS], "off");
}
END_TEST

START_TEST(a_run_that_may_send_stays_within_its_budget_and_learns_the_same_to_the_bit)
{
    stay_within(models[_i], modes[_i % MODES], kinds[(_i + 1) % KINDS], "on");
}
END_TEST

// What the advice says is typed, and a KiB less: it is in KiB, and no more than one above the peak.
START_TEST(the_smallest_peak_that_is_said_can_be_kept)
{
    char budget[96] = "checkpoint.strategy=budget:1KiB";
    const char *const pairs[] = {modes[_i % MODES], "batch.size=16", budget, NULL};
    const outcome refused = run(models[_i / MODES], pairs);
    ck_assert(!refused.ran);
    ck_assert_int_eq(refused.err.status, HR_CONSTRAINT);
    const char *advice = strstr(refused.err.hint, "checkpoint.strategy=budget:");
    ck_assert_msg(advice != NULL, "%s", refused.err.hint);
    snprintf(budget, sizeof budget, "%.*s", (int)strcspn(advice, ","), advice);
    const outcome kept = run(models[_i / MODES], pairs);
    ck_assert_msg(kept.ran, "%s: %s", budget, kept.err.sentence);
    uint64_t said = 0;
    ck_assert(hr_bytes_parse(strchr(budget, ':') + 1, &said));
    snprintf(budget, sizeof budget, "checkpoint.strategy=budget:%" PRIu64 "B", said - 1024);
    const outcome below = run(models[_i / MODES], pairs);
    ck_assert_msg(!below.ran, "%s: kept with %" PRIu64 ", said was %" PRIu64, budget, below.peak_bytes, said);
    ck_assert_int_eq(below.err.status, HR_CONSTRAINT);
}
END_TEST

START_TEST(the_smallest_peak_that_is_said_is_above_that_of_no_other_strategy)
{
    static const char *const others[] = {"selective", "blocks", "sqrt", "every:2", "every:4"};
    char strategy[96] = "checkpoint.strategy=budget:1KiB";
    const char *const pairs[] = {modes[_i % MODES], "batch.size=16", strategy, NULL};
    const outcome refused = run(models[_i / MODES], pairs);
    const char *advice = strstr(refused.err.hint, "budget:");
    ck_assert_msg(advice != NULL, "%s", refused.err.hint);
    snprintf(strategy, sizeof strategy, "checkpoint.strategy=%.*s", (int)strcspn(advice, ","), advice);
    const outcome kept = run(models[_i / MODES], pairs);
    ck_assert(kept.ran);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        snprintf(strategy, sizeof strategy, "checkpoint.strategy=%s", others[k]);
        const outcome other = run(models[_i / MODES], pairs);
        ck_assert_msg(kept.peak_bytes <= other.peak_bytes, "%s: %" PRIu64 ", said %" PRIu64, others[k],
                      other.peak_bytes, kept.peak_bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("budget_runs");
    TCase *tests = tcase_create("budget_runs");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, a_run_stays_within_its_budget_and_learns_the_same_to_the_bit, 0,
                        MODELS * MODES);
    tcase_add_loop_test(tests, a_run_that_may_send_stays_within_its_budget_and_learns_the_same_to_the_bit, 0,
                        MODELS);
    tcase_add_loop_test(tests, the_smallest_peak_that_is_said_can_be_kept, 0, MODELS * MODES);
    tcase_add_loop_test(tests, the_smallest_peak_that_is_said_is_above_that_of_no_other_strategy, 0,
                        MODELS * MODES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
