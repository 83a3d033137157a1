// SPDX-License-Identifier: Apache-2.0
// Whole-number tiles of every instruction set that runs here against sums in int64: exact, to the last number, at odd depths and
// widths and where every number is as large as it gets.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "device_cpu/gemm.h"
#include "device_cpu/int8.h"
#include "numeric/fixture.h"

enum { DEPTH_MOST = 5000, UNITS = 37 };

static int8_t b[DEPTH_MOST * UNITS];
static int16_t a[INT8_ROWS * (DEPTH_MOST + 1)], panel[(DEPTH_MOST + 1) * INT8_COLUMNS];
static float drawn[DEPTH_MOST * UNITS];

static void draw(uint64_t seed, int64_t depth, int64_t row, bool extreme)
{
    fixture_uniform(seed, "test/int8/b", drawn, (uint64_t)(depth * UNITS));
    for (int64_t k = 0; k < depth * UNITS; k++) {
        const int drawn_number = (int)(drawn[k] * 255) - 127;
        b[k] = (int8_t)(extreme ? (drawn_number < -120 ? -127 : 127) : drawn_number);
    }
    memset(a, 0, sizeof a);
    fixture_uniform(seed, "test/int8/a", drawn, (uint64_t)(INT8_ROWS * depth));
    for (int64_t r = 0; r < INT8_ROWS; r++) {
        for (int64_t k = 0; k < depth; k++) {
            a[r * row + k] = (int16_t)(extreme ? 127 : (int)(drawn[r * depth + k] * 255) - 127);
        }
    }
}

static void check(const int8_tiles *tiles, int64_t depth, int64_t rows, int64_t column)
{
    const int64_t row = depth + depth % 2, left = UNITS - column;
    const int64_t columns = left < INT8_COLUMNS ? left : INT8_COLUMNS;
    int32_t sums[INT8_ROWS * INT8_COLUMNS];
    tiles->pack(b + column, depth, UNITS, columns, panel);
    tiles->run(a, row, panel, row / 2, rows, sums);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < INT8_COLUMNS; c++) {
            int64_t sum = 0;
            for (int64_t k = 0; c < columns && k < depth; k++) {
                sum += (int64_t)a[r * row + k] * b[k * UNITS + column + c];
            }
            ck_assert_msg(sums[r * INT8_COLUMNS + c] == sum, "%s, depth %d, row %d, column %d: %d, not %d",
                          tiles->name, (int)depth, (int)r, (int)c, sums[r * INT8_COLUMNS + c], (int)sum);
        }
    }
}

START_TEST(sums_are_exact)
{
    static const uint32_t lanes[] = {4, 8, 16};
    static const int64_t depths[] = {1, 2, 3, 16, 31, 257, DEPTH_MOST - 1};
    gemm_keep_to(lanes[_i]);
    const int8_tiles *tiles = int8_tiles_here();
    ck_assert(lanes[_i] > 4 || strcmp(tiles->name, "plain") == 0);
    for (size_t k = 0; k < sizeof depths / sizeof *depths; k++) {
        for (int extreme = 0; extreme < 2; extreme++) {
            draw((uint64_t)k, depths[k], depths[k] + depths[k] % 2, extreme == 1);
            for (int64_t rows = 1; rows <= INT8_ROWS; rows++) {
                for (int64_t column = 0; column < UNITS; column += INT8_COLUMNS) {
                    check(tiles, depths[k], rows, column);
                }
            }
        }
    }
}
END_TEST

START_TEST(the_deepest_sum_is_an_int32)
{
    ck_assert_int_le(INT64_C(127) * 127 * INT8_DEPTH_MAX, INT32_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_int8");
    TCase *all = tcase_create("tiles");
    tcase_add_loop_test(all, sums_are_exact, 0, 3);
    tcase_add_test(all, the_deepest_sum_is_an_int32);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
