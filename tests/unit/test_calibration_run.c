// SPDX-License-Identifier: Apache-2.0
// One program of a calibration, here on the reference device: every instruction that costs something is a sample, and
// what goes wrong on the way leaves nothing behind.
#include <check.h>

#include "base/host_mem.h"
#include "insight/calibrate_run.h"

static const char images[] = "model:\n"
                             "  name: images\n"
                             "  input: {shape: [8, 8, 3]}\n"
                             "  classes: 4\n"
                             "  loss: softmax_cross_entropy\n"
                             "  layers:\n"
                             "    - {kind: conv2d, filters: 4, kernel: 3}\n"
                             "    - {kind: batch_norm, activation: relu}\n"
                             "    - {kind: depthwise_conv2d, kernel: 3}\n"
                             "    - {kind: flatten}\n"
                             "    - {kind: dense, units: 4}\n";
static const char words[] = "model:\n"
                            "  name: words\n"
                            "  input: {type: int32, classes: 16, shape: [8]}\n"
                            "  classes: 16\n"
                            "  loss: softmax_cross_entropy\n"
                            "  layers:\n"
                            "    - {kind: embedding, units: 8}\n"
                            "    - {kind: layer_norm}\n"
                            "    - {kind: attention, heads: 2}\n"
                            "    - {kind: dense, units: 16}\n";

// A clock on which an instruction takes a tick.
typedef struct ticker {
    uint64_t ns, tick_ns;
} ticker;

static uint64_t tick(void *context)
{
    ticker *t = context;
    return t->ns += t->tick_ns;
}

static ticker slow = {0, 1000};
static calibration_time until = {.now_ns = tick, .context = &slow, .until_ns = UINT64_MAX};
static calibration_outcome outcome;

static hr_status run(const char *preset, const char *optimizer, calibration_samples *samples, hr_err *err)
{
    const calibration_program what = {.name = "test", .preset = preset, .batch = 2, .optimizer = optimizer};
    const device_options options = {0};
    void *context = NULL;
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    HR_TRY(device_reference.open(&options, &context, err));
    hr_status status =
        calibration_run(&device_reference, context, &what, "float32", &knobs, &until, samples, &outcome, err);
    device_reference.close(context);
    return status;
}

static void assert_has(const calibration_samples *s, cost_family family)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        found += s->data[k].family == family;
    }
    ck_assert_msg(found > 0, "%s", cost_family_name(family));
}

START_TEST(every_instruction_that_costs_something_is_a_sample)
{
    static const cost_family of_images[] = {COST_CONV,   COST_CONV_WEIGHTS, COST_DEPTHWISE, COST_NORM,
                                            COST_UPDATE, COST_PRODUCT,      COST_COPY};
    static const cost_family of_words[] = {COST_EMBEDDING, COST_ATTENTION, COST_NORM, COST_REDUCTION};
    calibration_samples samples = {0};
    ck_assert_int_eq(run(images, "adam", &samples, NULL), HR_OK);
    for (size_t k = 0; k < sizeof of_images / sizeof *of_images; k++) {
        assert_has(&samples, of_images[k]);
    }
    const uint32_t before = samples.count;
    ck_assert_int_eq(run(words, "sgd", &samples, NULL), HR_OK); // appended
    ck_assert_uint_gt(samples.count, before);
    for (size_t k = 0; k < sizeof of_words / sizeof *of_words; k++) {
        assert_has(&samples, of_words[k]);
    }
    for (uint32_t k = 0; k < samples.count; k++) {
        const rate_sample *s = &samples.data[k];
        ck_assert(s->family != COST_NOTHING && s->seconds > 0 && s->width == RATE_FLOAT32);
        ck_assert(s->flops >= 0 && s->bytes > 0);
    }
    ck_assert_uint_eq(outcome.sample_begin, before);
    ck_assert_uint_eq(outcome.sample_begin + outcome.sample_count, samples.count);
    ck_assert_uint_eq(outcome.steps, CALIBRATION_STEPS_LEAST); // its share was nothing
    ck_assert_double_eq_tol(outcome.seconds, outcome.sample_count * 1e-6, 1e-9);
    ck_assert_double_eq_tol(outcome.fastest_seconds, outcome.seconds, 1e-9);
    vec_deinit(&samples);
}
END_TEST

// Wherever in a step the time ends: what was measured until then is given, nothing is left behind, and no instruction
// begins later.
START_TEST(when_the_time_is_over_it_stops_between_two_instructions)
{
    calibration_samples first = {0};
    ck_assert_int_eq(run(images, "adam", &first, NULL), HR_OK); // what is kept for good is there now
    vec_deinit(&first);
    const int64_t live = hr_host_mem_live();
    uint32_t with_samples = 0;
    for (uint64_t instructions = 0; instructions < 400; instructions += 7) {
        calibration_samples samples = {0};
        slow = (ticker){0, 1000};
        until.until_ns = 2000 * instructions;
        ck_assert_int_eq(run(images, "adam", &samples, NULL), HR_OK);
        ck_assert_uint_le(slow.ns, until.until_ns + 5000);
        ck_assert((samples.count > 0) == (outcome.steps >= CALIBRATION_STEPS_LEAST));
        with_samples += samples.count > 0;
        vec_deinit(&samples);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    until.until_ns = UINT64_MAX;
    ck_assert_uint_gt(with_samples, 0);
    ck_assert_uint_lt(with_samples, 50);
}
END_TEST

START_TEST(a_program_that_is_wrong_says_so)
{
    calibration_samples samples = {0};
    hr_err err = {0};
    ck_assert_int_ne(run("model: {layers: []}\n", "adam", &samples, &err), HR_OK);
    ck_assert_str_ne(err.sentence, "");
    ck_assert_int_ne(run(images, "no rule", &samples, &err), HR_OK);
    ck_assert_uint_eq(samples.count, 0);
}
END_TEST

START_TEST(a_request_for_host_memory_that_fails_leaves_nothing_behind)
{
    calibration_samples samples = {0};
    ck_assert_int_eq(run(images, "adam", &samples, NULL), HR_OK); // what is kept for good is there now
    vec_deinit(&samples);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    uint64_t nth = 1;
    for (; status != HR_OK; nth += 1 + nth / 16) {
        (void)hr_host_mem_fail_at(nth);
        status = run(images, "adam", &samples, NULL);
        const bool failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_msg(failed || status == HR_OK, "request %llu", (unsigned long long)nth);
        status = failed ? HR_NOMEM : HR_OK;
        vec_deinit(&samples);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_uint_gt(nth, 100); // all of them were met on the way
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibration_run");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, every_instruction_that_costs_something_is_a_sample);
    tcase_add_test(all, when_the_time_is_over_it_stops_between_two_instructions);
    tcase_add_test(all, a_program_that_is_wrong_says_so);
    tcase_add_test(all, a_request_for_host_memory_that_fails_leaves_nothing_behind);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
