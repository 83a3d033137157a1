// SPDX-License-Identifier: Apache-2.0
// Dropout's mask as ops/dropout.h promises it: a function of seed, salt, update, sample and element and of nothing
// else, on every device; as many elements as the rate says; the same one in backward and in micro-batches.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "numeric/op_harness.h"
#include "ops/dropout.h"

// Another file that includes this one may say which device is tested, and in which type.
#ifndef TEST_DEVICE
#define TEST_DEVICE "reference"
#define TEST_TYPE   HR_F64
#endif

enum { SAMPLES = 6, ELEMENTS = 3000, MANY = 40000 };

static const op_attr some = {.rate = 0.3, .salt = 77};

static op_trial trial_of(op_attr attr, int64_t samples, const double *values, uint32_t outputs)
{
    op_trial t = op_trial_make(HR_OP_DROPOUT, attr);
    op_trial_add_in(&t, TEST_TYPE, (const int64_t[OP_MAX_RANK]){samples, ELEMENTS});
    memcpy(t.in[0], values, (size_t)(samples * ELEMENTS) * sizeof *values);
    op_trial_infer_out(&t, outputs);
    return t;
}

static double *ones(uint64_t count)
{
    double *values = calloc(count, sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = 1.0;
    }
    return values;
}

// The mask by the header's words alone, with the hash spelt out.
START_TEST(the_mask_is_the_one_that_the_header_describes)
{
    const uint64_t seed = 5, update = 9, sample = UINT64_C(1) << 40;
    const dropout_draw d = dropout_begin(&some, seed, update);
    const uint64_t purpose = hash64("dropout", 7, seed);
    const uint64_t mixed = hash64_mix(hash64_mix(purpose, some.salt), update);
    const philox_key key = {{(uint32_t)mixed, (uint32_t)(mixed >> 32)}};
    for (uint64_t e = 0; e < 1000; e++) {
        uint32_t word[4];
        philox(key, e / 64 * 16 + e % 16, sample, word);
        const bool kept = (double)word[e / 16 % 4] >= floor(0.3 * 0x1p32);
        ck_assert_msg(dropout_keeps(&d, sample, e) == kept, "element %u", (unsigned)e);
    }
}
END_TEST

// Five standard deviations of a binomial count.
static void require_share(double share, double expected, const char *what)
{
    const double deviation = sqrt(expected * (1.0 - expected) / MANY);
    ck_assert_msg(fabs(share - expected) <= 5.0 * deviation, "%s: %g, expected %g", what, share, expected);
}

START_TEST(as_many_are_kept_as_the_rate_says)
{
    static const double rates[] = {0.0, 0.1, 0.5, 0.999};
    const op_attr a = {.rate = rates[_i], .salt = 3};
    const dropout_draw d = dropout_begin(&a, 1, 1);
    uint64_t kept = 0;
    for (uint64_t e = 0; e < MANY; e++) {
        kept += dropout_keeps(&d, e / 700, e % 700);
    }
    require_share((double)kept / MANY, 1.0 - rates[_i], "kept");
    ck_assert(rates[_i] > 0.0 || kept == MANY);
}
END_TEST

// Two masks that have nothing to do with one another agree with probability p² + q².
START_TEST(another_seed_salt_update_or_sample_is_another_mask)
{
    op_attr salted = some;
    salted.salt++;
    const dropout_draw one = dropout_begin(&some, 1, 1);
    const dropout_draw other[] = {dropout_begin(&some, 2, 1), dropout_begin(&salted, 1, 1),
                                  dropout_begin(&some, 1, 2), one};
    const uint64_t shift = _i == 3 ? 1 : 0;
    uint64_t agree = 0;
    for (uint64_t e = 0; e < MANY; e++) {
        agree += dropout_keeps(&one, 5, e) == dropout_keeps(&other[_i], 5 + shift, e);
    }
    require_share((double)agree / MANY, 0.7 * 0.7 + 0.3 * 0.3, "agreement");
}
END_TEST

START_TEST(the_device_keeps_what_the_header_says)
{
    op_device device = op_device_open(test_device(TEST_DEVICE), 1);
    double *x = ones(SAMPLES * ELEMENTS);
    step_io io = {.seed = 5 + (uint64_t)_i, .update = 9, .first_sample = (UINT64_C(1) << 40) + 3};
    const dropout_draw d = dropout_begin(&some, io.seed, io.update);
    op_trial t = trial_of(some, SAMPLES, x, 1);
    op_trial_run(&t, device, &io);
    for (uint64_t e = 0; e < SAMPLES * ELEMENTS; e++) {
        const bool kept = dropout_keeps(&d, io.first_sample + e / ELEMENTS, e % ELEMENTS);
        if ((t.out[0][e] != 0.0) != kept) {
            ck_abort_msg("element %u", (unsigned)e);
        }
    }
    op_trial_deinit(&t);
    free(x);
    op_device_close(&device);
}
END_TEST

// Samples of a batch that begins at `first`, in parts of `part` samples.
static void run_in_parts(op_device device, int64_t part, uint64_t first, double *result)
{
    double *x = ones(SAMPLES * ELEMENTS);
    for (int64_t n = 0; n < SAMPLES; n += part) {
        step_io io = {.seed = 3, .update = 4, .first_sample = first + (uint64_t)n};
        op_trial t = trial_of(some, part, x, 1);
        op_trial_run(&t, device, &io);
        memcpy(result + n * ELEMENTS, t.out[0], (size_t)(part * ELEMENTS) * sizeof *result);
        op_trial_deinit(&t);
    }
    free(x);
}

START_TEST(micro_batches_have_the_masks_of_the_whole_batch)
{
    static double whole[SAMPLES * ELEMENTS], parts[SAMPLES * ELEMENTS];
    op_device device = op_device_open(test_device(TEST_DEVICE), 1);
    run_in_parts(device, SAMPLES, 1000, whole);
    run_in_parts(device, _i == 0 ? 1 : 2, 1000, parts);
    ck_assert_mem_eq(whole, parts, sizeof whole);
    op_device_close(&device);
}
END_TEST

START_TEST(backward_drops_what_forward_dropped)
{
    op_device device = op_device_open(test_device(TEST_DEVICE), 1);
    step_io io = {.seed = 8, .update = 2, .first_sample = 12};
    double *x = ones(SAMPLES * ELEMENTS);
    op_trial graph = trial_of(some, SAMPLES, x, 1), eager = trial_of(some, SAMPLES, x, 2);
    op_trial_run(&graph, device, &io);
    op_trial_run(&eager, device, &io);
    const uint64_t bytes = SAMPLES * ELEMENTS * sizeof *x;
    ck_assert_mem_eq(graph.out[0], eager.out[0], bytes);
    for (uint32_t g = 0; g < 2; g++) {
        op_trial backward = op_trial_backward(g == 0 ? &graph : &eager, g, x);
        op_trial_run(&backward, device, &io);
        ck_assert_mem_eq(backward.out[0], graph.out[0], bytes); // of ones, as x was
        op_trial_deinit(&backward);
    }
    op_trial_deinit(&graph);
    op_trial_deinit(&eager);
    free(x);
    op_device_close(&device);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("dropout");
    TCase *all = tcase_create("mask");
    tcase_add_test(all, the_mask_is_the_one_that_the_header_describes);
    tcase_add_loop_test(all, as_many_are_kept_as_the_rate_says, 0, 4);
    tcase_add_loop_test(all, another_seed_salt_update_or_sample_is_another_mask, 0, 4);
    tcase_add_loop_test(all, the_device_keeps_what_the_header_says, 0, 3);
    tcase_add_loop_test(all, micro_batches_have_the_masks_of_the_whole_batch, 0, 2);
    tcase_add_test(all, backward_drops_what_forward_dropped);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
