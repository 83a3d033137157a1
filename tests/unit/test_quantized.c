// SPDX-License-Identifier: Apache-2.0
// compress.quantize: training is as without it, bit for bit and byte for byte; evaluations compute with whole numbers, nearly as
// well, and alike on every device; what is averaged is what becomes whole numbers.
#include <math.h>

#include "unit/small_engine.h"

static const char *const modes[] = {"int8", "int8_weights", "int4_weights"};
enum { MODES = sizeof modes / sizeof *modes, STEPS = 3 };

static double evaluated; // loss of the last evaluation

static void hear(void *context, const hr_event *event)
{
    (void)context;
    evaluated = event->kind == HR_EVENT_EVAL ? event->u.step.loss : evaluated;
}

// An epoch of two steps with its evaluation.
static hr_report trained(const char *device, const char *mode, const char *more, double *loss)
{
    char images[160], kind[64], quantize[64];
    const hr_engine_options options = {.sink = hear};
    (void)snprintf(kind, sizeof kind, "device.kind=%s", device);
    (void)snprintf(quantize, sizeof quantize, "compress.quantize=%s", mode);
    const char *const pairs[] = {write_images(16, 24, images), kind, quantize,
                                 "pipeline.shuffle=0",         more, NULL};
    evaluated = (double)NAN;
    hr_engine *e = create(pairs, &options);
    run_steps(e, STEPS);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    *loss = evaluated;
    ck_assert_msg(isfinite(*loss), "%s %s", device, mode);
    return r;
}

START_TEST(training_is_as_without_it)
{
    double plain_loss, loss;
    hr_report plain = trained("reference", "none", NULL, &plain_loss);
    hr_report r = trained("reference", modes[_i], NULL, &loss);
    ck_assert_str_eq(r.train.weights_sha256, plain.train.weights_sha256);
    ck_assert_uint_eq(r.memory.peak_in_use_bytes, plain.memory.peak_in_use_bytes);
    ck_assert_uint_eq(r.memory.static_bytes, plain.memory.static_bytes);
    ck_assert_uint_eq(r.memory.heap_hash, plain.memory.heap_hash);
    hr_report_deinit(&plain);
    hr_report_deinit(&r);
}
END_TEST

START_TEST(an_evaluation_is_another_one_and_nearly_as_good)
{
    double plain_loss, loss;
    hr_report plain = trained("reference", "none", NULL, &plain_loss);
    hr_report r = trained("reference", modes[_i], NULL, &loss);
    ck_assert(loss != plain_loss);
    ck_assert_msg(fabs(loss - plain_loss) < 0.05 * plain_loss, "%g, %g", loss, plain_loss);
    hr_report_deinit(&plain);
    hr_report_deinit(&r);
}
END_TEST

#if HEADROOM_HAVE_ONEDNN
START_TEST(devices_evaluate_alike)
{
    double judged, loss;
    hr_report judge = trained("reference", modes[_i], NULL, &judged);
    hr_report r = trained("cpu", modes[_i], NULL, &loss);
    ck_assert_msg(fabs(loss - judged) < 2e-3 * judged, "%.9g, %.9g", loss, judged);
    hr_report_deinit(&judge);
    hr_report_deinit(&r);
}
END_TEST
#endif

START_TEST(averages_become_whole_numbers)
{
    double loss, averaged, plain;
    hr_report a = trained("reference", modes[_i], NULL, &loss);
    hr_report b = trained("reference", modes[_i], "optimizer.ema=0.9", &averaged);
    hr_report c = trained("reference", "none", "optimizer.ema=0.9", &plain);
    ck_assert(averaged != loss);
    ck_assert(averaged != plain);
    ck_assert(fabs(averaged - plain) < 0.05 * plain);
    hr_report_deinit(&a);
    hr_report_deinit(&b);
    hr_report_deinit(&c);
}
END_TEST

START_TEST(other_policies_evaluate_too)
{
    static const char *const policies[] = {"precision.policy=mixed_bfloat16", "precision.policy=float16",
                                           "precision.policy=float64", "execution.mode=graph"};
    double loss, plain;
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        hr_report a = trained("reference", "none", policies[k], &plain);
        hr_report b = trained("reference", modes[_i], policies[k], &loss);
        ck_assert_msg(fabs(loss - plain) < 0.05 * plain, "%s: %g, %g", policies[k], loss, plain);
        hr_report_deinit(&a);
        hr_report_deinit(&b);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantized");
    TCase *tests = tcase_create("compress.quantize");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_loop_test(tests, training_is_as_without_it, 0, MODES);
    tcase_add_loop_test(tests, an_evaluation_is_another_one_and_nearly_as_good, 0, MODES);
#if HEADROOM_HAVE_ONEDNN
    tcase_add_loop_test(tests, devices_evaluate_alike, 0, MODES);
#endif
    tcase_add_loop_test(tests, averages_become_whole_numbers, 0, MODES);
    tcase_add_loop_test(tests, other_policies_evaluate_too, 0, MODES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
