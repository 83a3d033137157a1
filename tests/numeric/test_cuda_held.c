// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers become real ones on a card bit for bit as base/quantize.h and base/nf4.h make them, whatever they
// are held as, in every type and width: rows of whole pieces, and such as are none.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_harness.h"
#include "ops/held.h"

enum { MOST_ROWS = 300, MOST_COLUMNS = 264, MOST_BYTES = MOST_ROWS * MOST_COLUMNS * 4 };

static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
static const int64_t shapes[][2] = {{1, 1}, {129, 7}, {300, 12}, {128, 40}, {257, 264}, {3, 258}};
enum { TYPES = sizeof types / sizeof *types, SHAPES = sizeof shapes / sizeof *shapes };

static unsigned char room[HELD_PARTS][MOST_BYTES];
static float w[MOST_ROWS * MOST_COLUMNS], back[MOST_ROWS * MOST_COLUMNS];

static double number_at(const void *part, hr_dtype dtype, uint64_t k)
{
    return dtype == HR_I8   ? (double)((const int8_t *)part)[k]
           : dtype == HR_U8 ? (double)((const uint8_t *)part)[k]
                            : (double)((const float *)part)[k];
}

// A column and a block have a value that is not finite, and so no scale.
static void draw(uint64_t count, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t k = 0; k < count; k++) {
        w[k] = (float)op_random(&state, -3.0, 3.0);
    }
    w[count / 2] = count > 1 ? INFINITY : w[0];
}

static op_trial trial_of(const hr_shape *shape, held_as as, hr_dtype type)
{
    op_trial t = op_trial_make(HR_OP_DEQUANTIZE, (op_attr){.rule = (int32_t)as});
    held_parts parts;
    held_parts_of(shape, as, &parts);
    for (uint32_t p = 0; p < parts.count; p++) {
        op_trial_add_in(&t, (hr_dtype)parts.part[p].dtype, parts.part[p].shape.dim);
        for (uint64_t k = 0; k < op_trial_in_count(&t, p); k++) {
            t.in[p][k] = number_at(room[p], (hr_dtype)parts.part[p].dtype, k);
        }
    }
    op_trial_add_out(&t, type, shape->dim);
    return t;
}

START_TEST(a_card_has_their_bits)
{
    void *const parts[HELD_PARTS] = {room[0], room[1], room[2]};
    const void *const made[HELD_PARTS] = {room[0], room[1], room[2]};
    const hr_dtype type = types[_i % TYPES];
    const held_as as = (held_as)(HELD_INT8 + _i / TYPES);
    op_device card = op_device_open(&device_cuda, 1);
    for (uint32_t s = 0; s < SHAPES; s++) {
        const hr_shape shape = {.rank = 2, .dim = {shapes[s][0], shapes[s][1]}};
        const uint64_t count = (uint64_t)(shape.dim[0] * shape.dim[1]);
        draw(count, 1 + s);
        held_make(&shape, as, w, parts);
        held_back(&shape, as, made, back);
        op_trial t = trial_of(&shape, as, type);
        op_trial_run(&t, card, NULL);
        for (uint64_t k = 0; k < count; k++) {
            double judged = (double)back[k];
            if (type != HR_F32) {
                half_round(&judged, 1, type);
            }
            ck_assert_msg(t.out[0][k] == judged || (isnan(t.out[0][k]) && isnan(judged)),
                          "%s, %s, %dx%d, %u: %a, not %a", held_name(as), dtype_name(type), (int)shape.dim[0],
                          (int)shape.dim[1], (unsigned)k, t.out[0][k], judged);
        }
        op_trial_deinit(&t);
    }
    op_device_close(&card);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_held");
    TCase *all = tcase_create("bits");
    tcase_add_loop_test(all, a_card_has_their_bits, 0, TYPES * (HELD_COUNT - HELD_INT8));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
