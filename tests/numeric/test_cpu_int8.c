// SPDX-License-Identifier: Apache-2.0
// Whole-number tiles of every instruction set that runs here: sums against int64, exact to the last number, at odd depths and widths and
// where every number is as large as it gets; rows of the input against base/quantize.h, and what becomes of sums, to the bit.
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantize.h"
#include "device_cpu/gemm.h"
#include "device_cpu/int8.h"
#include "numeric/fixture.h"

enum { DEPTH_MOST = 3000, UNITS = 150, ROW_MOST = DEPTH_MOST + INT8_DEPTH_STEP };

static const uint32_t lanes[] = {4, 8, 16};
enum { SETS = sizeof lanes / sizeof *lanes };

static int8_t b[DEPTH_MOST * UNITS], turned[UNITS * DEPTH_MOST];
static int16_t a[INT8_ROWS * ROW_MOST], panels[INT8_PANELS * INT8_DEPTH * INT8_COLUMNS];
static float drawn[DEPTH_MOST * UNITS];

static const int8_tiles *tiles_of(int set)
{
    gemm_keep_to(lanes[set]);
    const int8_tiles *tiles = int8_tiles_here();
    ck_assert(lanes[set] > 4 || strcmp(tiles->name, "plain") == 0);
    return tiles;
}

static void draw(uint64_t seed, int64_t depth, bool extreme)
{
    fixture_uniform(seed, "test/int8/b", drawn, (uint64_t)(depth * UNITS));
    for (int64_t k = 0; k < depth * UNITS; k++) {
        const int drawn_number = (int)(drawn[k] * 255) - 127;
        b[k] = (int8_t)(extreme ? (drawn_number < -120 ? -127 : 127) : drawn_number);
        turned[k % UNITS * depth + k / UNITS] = b[k];
    }
    memset(a, 0, sizeof a);
    fixture_uniform(seed, "test/int8/a", drawn, (uint64_t)(INT8_ROWS * depth));
    for (int64_t r = 0; r < INT8_ROWS; r++) {
        for (int64_t k = 0; k < depth; k++) {
            a[r * ROW_MOST + k] = (int16_t)(extreme ? 127 : (int)(drawn[r * depth + k] * 255) - 127);
        }
    }
}

static int64_t least_of(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static void check_sums(const int8_tiles *tiles, const int32_t *sums, int64_t depth, int64_t rows,
                       int64_t column)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < INT8_GROUP; c++) {
            int64_t sum = 0;
            for (int64_t k = 0; column + c < UNITS && k < depth; k++) {
                sum += (int64_t)a[r * ROW_MOST + k] * b[k * UNITS + column + c];
            }
            ck_assert_msg(sums[r * INT8_GROUP + c] == sum, "%s, depth %d, row %d, column %d: %d, not %d",
                          tiles->name, (int)depth, (int)r, (int)(column + c), sums[r * INT8_GROUP + c],
                          (int)sum);
        }
    }
}

// In parts of the depth, as the product goes.
static void check(const int8_tiles *tiles, int64_t depth, int64_t rows, int64_t column, bool of_table)
{
    int32_t sums[INT8_ROWS * INT8_GROUP];
    for (int64_t k = 0; k < depth; k += INT8_DEPTH) {
        const int64_t part = least_of(depth - k, INT8_DEPTH);
        const int64_t columns = least_of(UNITS - column, INT8_GROUP), step = INT8_DEPTH * INT8_COLUMNS;
        memset(panels, 0x7f, sizeof panels);
        if (of_table) {
            tiles->pack_turned(turned + column * depth + k, part, depth, columns, panels, step);
        } else {
            tiles->pack(b + k * UNITS + column, part, UNITS, columns, panels, step);
        }
        for (int64_t n = 0; n < INT8_PANELS; n++) {
            const int8_tile t = {a + k,
                                 panels + n * INT8_DEPTH * INT8_COLUMNS,
                                 sums + n * INT8_COLUMNS,
                                 ROW_MOST,
                                 INT8_GROUP,
                                 (part + 1) / 2,
                                 rows,
                                 k > 0};
            tiles->run(&t);
        }
    }
    check_sums(tiles, sums, depth, rows, column);
}

START_TEST(sums_are_exact)
{
    static const int64_t depths[] = {1, 2, 3, 16, 31, 257, INT8_DEPTH + 1, DEPTH_MOST - 1};
    const int8_tiles *tiles = tiles_of(_i);
    for (size_t k = 0; k < sizeof depths / sizeof *depths; k++) {
        for (int extreme = 0; extreme < 2; extreme++) {
            draw((uint64_t)k, depths[k], extreme == 1);
            for (int64_t rows = 1; rows <= INT8_ROWS; rows++) {
                for (int64_t column = 0; column < UNITS; column += INT8_GROUP) {
                    check(tiles, depths[k], rows, column, false);
                    check(tiles, depths[k], rows, column, true);
                }
            }
        }
    }
}
END_TEST

static void check_row(const int8_tiles *tiles, const float *x, int64_t depth)
{
    int8_t wanted[ROW_MOST];
    float scale = 0;
    quantize_int8_rows(x, 1, (uint64_t)depth, wanted, &scale);
    memset(a, 0x7f, sizeof a);
    const float inverse = tiles->quantize(x, depth, a), expected = 1 / scale;
    ck_assert(isnan(expected) ? isnan(inverse) : memcmp(&inverse, &expected, sizeof inverse) == 0);
    for (int64_t k = 0; k < depth; k++) {
        ck_assert_msg(a[k] == wanted[k], "%s, %d of %d: %d, not %d", tiles->name, (int)k, (int)depth, a[k],
                      wanted[k]);
    }
    for (int64_t k = depth; k % INT8_DEPTH_STEP != 0; k++) {
        ck_assert_int_eq(a[k], 0);
    }
}

// Ties lie at the half levels of a row whose largest is 127; what is not finite spoils its row alone.
START_TEST(rows_are_those_of_keras_to_the_bit)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, FLT_MIN, -0.0F, 1e-9F};
    const int8_tiles *tiles = tiles_of(_i);
    for (int64_t depth = 1; depth <= 80; depth++) {
        fixture_uniform((uint64_t)depth, "test/int8/x", drawn, (uint64_t)depth);
        check_row(tiles, drawn, depth);
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            const int64_t at = (int64_t)k * 7 % depth;
            const float had = drawn[at];
            drawn[at] = odd[k];
            check_row(tiles, drawn, depth);
            drawn[at] = had;
        }
        for (int64_t k = 0; k < depth; k++) {
            drawn[k] = k == 0 ? -127 : (float)(k - 40) + 0.5F;
        }
        check_row(tiles, drawn, depth);
    }
}
END_TEST

START_TEST(results_are_the_same_bits_with_every_set)
{
    float f[4 * INT8_COLUMNS], y[INT8_ROWS][INT8_COLUMNS + 1];
    int32_t sums[INT8_ROWS * INT8_COLUMNS];
    const int8_tiles *tiles = tiles_of(_i);
    fixture_uniform(1, "test/int8/finish", f, sizeof f / sizeof *f);
    for (int k = 0; k < INT8_ROWS * INT8_COLUMNS; k++) {
        sums[k] = (k * 7919 - 200000) * (k % 3 + 1) * 11;
    }
    for (int64_t columns = 1; columns <= INT8_COLUMNS; columns++) {
        const int8_tile t = {.sums = sums, .sums_row = INT8_COLUMNS, .rows = INT8_ROWS};
        const int8_finish how = {
            f, f + INT8_COLUMNS, f + 2 * INT8_COLUMNS, y[0], INT8_COLUMNS + 1, columns, -1e5F, 6e5F};
        memset(y, 0, sizeof y);
        tiles->finish(&t, &how);
        for (int k = 0; k < INT8_ROWS * (INT8_COLUMNS + 1); k++) {
            const int r = k / (INT8_COLUMNS + 1), c = k % (INT8_COLUMNS + 1);
            const float scale = c < columns ? f[c] * how.row_inverse[r] : 0;
            const float value = c < columns ? fmaf((float)sums[r * INT8_COLUMNS + c], scale, how.bias[c]) : 0;
            ck_assert(y[r][c] == fminf(fmaxf(value, how.floor), how.ceiling));
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
    tcase_add_loop_test(all, sums_are_exact, 0, SETS);
    tcase_add_loop_test(all, rows_are_those_of_keras_to_the_bit, 0, SETS);
    tcase_add_loop_test(all, results_are_the_same_bits_with_every_set, 0, SETS);
    tcase_add_test(all, the_deepest_sum_is_an_int32);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
