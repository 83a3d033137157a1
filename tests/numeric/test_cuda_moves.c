// SPDX-License-Identifier: Apache-2.0
// What moves, maps and sums on the cuda device, at the sizes where its kernels change their way: less than a vector, one
// and a few more, rows that vectors cut, sums in parts, entries of tables with many rows. Against the judge in all three
// types, and with the same bits in the place of an input where that may be.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "numeric/bf16_trial.h"
#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"
#include "ops/dropout.h"

static op_device card, judge;

static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
enum { TYPES = sizeof types / sizeof types[0], MOST_COUNT = 40 };

static void open_devices(void)
{
    card = op_device_open(&device_cuda, 1);
    judge = op_device_open(&device_reference, 1);
}

static void close_devices(void)
{
    op_device_close(&card);
    op_device_close(&judge);
}

static op_trial in_type(op_trial *t, hr_dtype type)
{
    const bf16_wide none = {0, 0};
    if (type != HR_F32) {
        half_round_inputs(t, none, type);
        return half_trial(t, none, type);
    }
    op_trial rounded = op_trial_copy(t, HR_F32);
    op_trial_deinit(t);
    *t = rounded;
    return op_trial_copy(t, HR_F32);
}

// Runs `t` on the card, where it may be in place again, and on the judge, whose values it then holds.
static void check(op_trial *t, hr_dtype type, step_io *io)
{
    op_trial ours = in_type(t, type), shared = op_trial_copy(&ours, type);
    op_trial_run(&ours, card, io);
    op_trial_run(t, judge, io);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        const double distance = op_distance(ours.out[k], t->out[k], op_trial_out_count(t, k));
        ck_assert_msg(distance <= op_tolerance((hr_op)t->query.op, type), "%s of %s, %u elements: %g",
                      op_name((hr_op)t->query.op), dtype_name(type), (unsigned)op_trial_out_count(t, k),
                      distance);
    }
    if (op_trial_may_share(&shared)) {
        op_trial_run_in_place(&shared, card, io);
        ck_assert_mem_eq(shared.out[0], ours.out[0], op_trial_out_count(&ours, 0) * sizeof *ours.out[0]);
    }
    op_trial_deinit(&ours);
    op_trial_deinit(&shared);
    op_trial_deinit(t);
}

// ---- maps -----------------------------------------------------------------------------------------------------

START_TEST(any_number_of_elements_is_mapped)
{
    static const hr_op maps[] = {HR_OP_GELU, HR_OP_RELU_BWD, HR_OP_ADD, HR_OP_MULTIPLY_BWD};
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++) {
        for (int64_t count = 1; count <= MOST_COUNT; count++) {
            op_draw d = {.state = (uint64_t)count};
            op_trial t = op_trial_make(maps[m], (op_attr){0});
            for (uint32_t k = 0; k < op_row_of(maps[m])->min_in; k++) {
                op_draw_in(&d, &t, DIMS(count), -2.0, 2.0);
            }
            for (uint32_t k = 0; k < op_row_of(maps[m])->min_out; k++) {
                op_trial_add_out(&t, HR_F64, DIMS(count));
            }
            check(&t, types[_i], NULL);
        }
    }
}
END_TEST

// Between any two types, to the nearest and ties to even; large numbers become infinite.
START_TEST(casts_round_as_the_portable_ones)
{
    enum { COUNT = 3001 };
    const hr_dtype from = types[_i / TYPES], to = types[_i % TYPES];
    uint64_t state = 9;
    op_trial t = op_trial_make(HR_OP_CAST, (op_attr){0});
    op_trial_add_in(&t, from, DIMS(COUNT));
    op_trial_add_out(&t, to, DIMS(COUNT));
    for (uint32_t k = 0; k < COUNT; k++) {
        const int64_t bits = op_random_int(&state, 0, 0xffff);
        const float x =
            k % 2 == 0 ? float_of_f16((uint16_t)(bits & 0x7bff)) : (float)op_random(&state, -9e4, 9e4);
        t.in[0][k] = (double)(from == HR_F16    ? float_of_f16(f16_of_float(x))
                              : from == HR_BF16 ? float_of_bf16(bf16_of_float(x))
                                                : x);
    }
    op_trial_run(&t, card, NULL);
    for (uint32_t k = 0; k < COUNT; k++) {
        const float x = (float)t.in[0][k];
        const float expected = to == HR_F16    ? float_of_f16(f16_of_float(x))
                               : to == HR_BF16 ? float_of_bf16(bf16_of_float(x))
                                               : x;
        ck_assert_msg((float)t.out[0][k] == expected, "%.9g became %.9g", (double)x, t.out[0][k]);
    }
    op_trial_deinit(&t);
}
END_TEST

// ---- sums -----------------------------------------------------------------------------------------------------

// Short and long middles, rows and columns, few sums and many, of vectors and not.
START_TEST(sums_of_any_shape_are_the_judges)
{
    static const struct {
        int64_t dims[OP_MAX_RANK];
        int32_t axis, count;
    } shapes[] = {
        {{3000}, 0, 1},      {{5, 1023}, 1, 1},    {{2, 4096}, 1, 1},     {{900, 8}, 0, 1},
        {{900, 3}, 0, 1},    {{3, 700, 40}, 1, 1}, {{2, 300, 301}, 1, 1}, {{40, 33, 2}, 1, 1},
        {{70, 33, 3}, 0, 2}, {{31, 2500}, 0, 1},   {{2000, 3}, 1, 1},     {{33, 24, 128}, 0, 1},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        op_draw d = {.state = s};
        op_trial t = op_trial_make(HR_OP_REDUCE, (op_attr){.axis = shapes[s].axis,
                                                           .count = shapes[s].count,
                                                           .flags = s % 2 == 0 ? OP_FLAG_MEAN : 0});
        op_draw_in(&d, &t, shapes[s].dims, -1.0, 2.0);
        op_trial_infer_out(&t, 1);
        check(&t, types[_i], NULL);
    }
}
END_TEST

// ---- dropout --------------------------------------------------------------------------------------------------

START_TEST(masks_are_the_contracts_bit_for_bit)
{
    static const int64_t sizes[] = {1, 7, 8, 15, 16, 17, 24, 63, 64, 65, 72, 128, 200, 257};
    step_io io = {.seed = 11, .update = 5, .first_sample = UINT64_C(1) << 33};
    const op_attr attr = {.rate = 0.4, .salt = 99};
    const dropout_draw drawn = dropout_begin(&attr, io.seed, io.update);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint64_t per_sample = (uint64_t)sizes[s];
        op_draw d = {.state = s};
        op_trial t = op_trial_make(HR_OP_DROPOUT, attr);
        op_draw_in(&d, &t, DIMS(5, sizes[s]), -1.0, 1.0);
        op_trial_infer_out(&t, 2);
        op_trial ours = in_type(&t, types[_i]);
        op_trial_run(&ours, card, &io);
        for (uint64_t k = 0; k < 5 * per_sample; k++) {
            const bool keeps = dropout_keeps(&drawn, io.first_sample + k / per_sample, k % per_sample);
            ck_assert_msg((ours.out[1][k] == 1.0) == keeps && (ours.out[1][k] == 0.0) != keeps,
                          "element %u of %u", (unsigned)k, (unsigned)per_sample);
        }
        op_trial_deinit(&ours);
        check(&t, types[_i], &io);
    }
}
END_TEST

// The smallest threshold that an element does not reach is one above the word that was drawn for it.
static uint32_t drawn_word(dropout_draw drawn, uint64_t sample, uint64_t element)
{
    uint32_t word = 0;
    for (int bit = 31; bit >= 0; bit--) {
        drawn.threshold = word | UINT32_C(1) << bit;
        word = dropout_keeps(&drawn, sample, element) ? drawn.threshold : word;
    }
    return word;
}

START_TEST(a_word_at_the_threshold_is_kept)
{
    enum { COUNT = 40 };
    step_io io = {.seed = 3, .update = 2};
    op_attr attr = {.rate = 0.5, .salt = 1};
    for (uint64_t element = 0; element < COUNT; element += 3) {
        const dropout_draw drawn = dropout_begin(&attr, io.seed, io.update);
        attr.rate = (double)drawn_word(drawn, 0, element) / 4294967296.0;
        op_draw d = {.state = element};
        op_trial t = op_trial_make(HR_OP_DROPOUT, attr);
        op_draw_in(&d, &t, DIMS(1, COUNT), 1.0, 2.0);
        op_trial_infer_out(&t, 2);
        op_trial ours = in_type(&t, types[_i]);
        op_trial_run(&ours, card, &io);
        ck_assert_double_eq(ours.out[1][element], 1.0);
        op_trial_deinit(&ours);
        check(&t, types[_i], &io);
    }
}
END_TEST

// ---- tables ---------------------------------------------------------------------------------------------------

// Every row of one entry, of a few, of many; entries that nobody names and numbers outside.
START_TEST(gradients_of_tables_add_every_row)
{
    static const int64_t shapes[][3] = {{3000, 1, 3}, {600, 2, 264}, {5000, 4, 8}, {700, 300, 5},
                                        {33, 1, 300}, {9000, 40, 2}}; // rows, entries, features
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int64_t rows = shapes[s][0], entries = shapes[s][1], features = shapes[s][2];
        op_draw d = {.state = s};
        op_trial t = op_trial_make(HR_OP_EMBEDDING_BWD, (op_attr){0});
        op_draw_numbers(&d, &t, DIMS(rows), -1, entries);
        op_draw_in(&d, &t, DIMS(rows, features), -1.0, 1.0);
        op_trial_add_out(&t, HR_F64, DIMS(entries, features));
        op_trial copy = in_type(&t, types[_i]), again = op_trial_copy(&copy, types[_i]);
        op_trial_run(&copy, card, NULL);
        op_trial_run(&again, card, NULL);
        ck_assert_mem_eq(copy.out[0], again.out[0], (size_t)(entries * features) * sizeof *copy.out[0]);
        op_trial_deinit(&copy);
        op_trial_deinit(&again);
        check(&t, types[_i], NULL);
    }
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_moves");
    TCase *all = tcase_create("at the edges");
    tcase_add_checked_fixture(all, open_devices, close_devices);
    tcase_add_loop_test(all, any_number_of_elements_is_mapped, 0, TYPES);
    tcase_add_loop_test(all, casts_round_as_the_portable_ones, 0, TYPES * TYPES);
    tcase_add_loop_test(all, sums_of_any_shape_are_the_judges, 0, TYPES);
    tcase_add_loop_test(all, masks_are_the_contracts_bit_for_bit, 0, TYPES);
    tcase_add_loop_test(all, a_word_at_the_threshold_is_kept, 0, TYPES);
    tcase_add_loop_test(all, gradients_of_tables_add_every_row, 0, TYPES);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
