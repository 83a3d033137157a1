// SPDX-License-Identifier: Apache-2.0
// The table of cards against two other sources: its own physical facts (multiprocessors, clocks, bus), from which every
// rate is computed again, and the figures that makers print.
#include <check.h>
#include <math.h>
#include <string.h>

#include "knobs/card_table.h"

// FLOPs of one multiprocessor in one clock, by generation: CUDA C++ Programming Guide, "Throughput of native arithmetic
// instructions", twice for multiply and add; tensor cores from the architecture whitepapers, dense, summed in float32.
typedef struct per_clock {
    const char *name; // of the card's first letters, where a generation sells two kinds; "" all the rest
    uint32_t capability;
    double float32, tf32, float16, bfloat16, float64, vector_float16, vector_bfloat16, vector_float64;
} per_clock;

static const per_clock generations[] = {
    {"", 60, 128, 0, 256, 0, 64, 256, 0, 64},
    {"", 61, 256, 0, 0, 0, 8, 0, 0, 8},
    {"", 70, 128, 0, 1024, 0, 64, 256, 0, 64},
    {"t4", 75, 128, 0, 1024, 0, 4, 256, 0, 4}, // GeForce sums in float32 at half the rate
    {"gtx", 75, 128, 0, 256, 0, 4, 256, 0, 4}, // no tensor cores
    {"", 75, 128, 0, 512, 0, 4, 256, 0, 4},
    {"", 80, 128, 1024, 2048, 2048, 128, 512, 256, 64},
    {"a", 86, 256, 512, 1024, 1024, 4, 256, 256, 4},
    {"rtxa", 86, 256, 512, 1024, 1024, 4, 256, 256, 4},
    {"", 86, 256, 256, 512, 512, 4, 256, 256, 4},
    {"", 87, 256, 1024, 2048, 2048, 4, 512, 512, 4},
    {"l", 89, 256, 512, 1024, 1024, 4, 256, 256, 4},
    {"rtx6000", 89, 256, 512, 1024, 1024, 4, 256, 256, 4},
    {"", 89, 256, 256, 512, 512, 4, 256, 256, 4},
    {"", 90, 256, 2048, 4096, 4096, 256, 512, 512, 128},
    {"", 100, 256, 4096, 8192, 8192, 128, 512, 512, 128},
    {"", 120, 256, 256, 512, 512, 4, 256, 256, 4},
};

static const per_clock *generation_of(const card_row *row)
{
    for (size_t k = 0; k < sizeof generations / sizeof *generations; k++) {
        const per_clock *g = &generations[k];
        if (g->capability == row->capability && strncmp(row->name, g->name, strlen(g->name)) == 0) {
            return g;
        }
    }
    return NULL;
}

static void must_be(const card_row *row, const char *what, double said, double computed, double tolerance)
{
    ck_assert_msg(computed == 0 ? said == 0 : fabs(said / computed - 1) <= tolerance,
                  "%s: %s is %g, and %g by its parts", row->name, what, said, computed);
}

// Makers round to two or three digits.
START_TEST(rates_are_what_multiprocessors_and_clocks_give)
{
    size_t count = 0;
    const card_row *row = &card_rows(&count)[_i];
    const per_clock *g = generation_of(row);
    ck_assert_msg(g != NULL, "%s: nobody knows compute capability %u", row->name, row->capability);
    const double mhz = row->clock_mhz, products = row->tensor_clock_mhz > 0 ? row->tensor_clock_mhz : mhz;
    const double tera = row->multiprocessors * 1e-6;
    const card_tflops *t = &row->tflops;
    must_be(row, "float32", t->float32, g->float32 * mhz * tera, 0.01);
    must_be(row, "tf32", t->tf32, g->tf32 * products * tera, 0.025);
    must_be(row, "float16", t->float16, g->float16 * products * tera, 0.015);
    must_be(row, "bfloat16", t->bfloat16, g->bfloat16 * products * tera, 0.015);
    must_be(row, "float64", t->float64, g->float64 * mhz * tera, 0.02);
    must_be(row, "vector float16", t->vector_float16, g->vector_float16 * mhz * tera, 0.01);
    must_be(row, "vector bfloat16", t->vector_bfloat16, g->vector_bfloat16 * mhz * tera, 0.01);
    must_be(row, "vector float64", t->vector_float64, g->vector_float64 * mhz * tera, 0.02);
}
END_TEST

START_TEST(bandwidth_is_what_bus_and_data_rate_give)
{
    size_t count = 0;
    const card_row *row = &card_rows(&count)[_i];
    must_be(row, "bandwidth", row->memory_gbytes, row->bus_bits * row->pin_gbits / 8, 0.02);
}
END_TEST

START_TEST(no_row_is_there_twice_and_all_say_where_they_are_from)
{
    size_t count = 0;
    const card_row *rows = card_rows(&count);
    for (size_t k = 0; k < count; k++) {
        ck_assert_uint_gt(strlen(rows[k].source), 10);
        ck_assert_uint_lt(strlen(rows[k].source), 160);
        ck_assert(rows[k].year >= 2016 && rows[k].year <= 2026);
        for (size_t i = 0; i < k; i++) {
            ck_assert_str_ne(rows[i].name, rows[k].name);
            ck_assert_str_ne(rows[i].title, rows[k].title);
        }
    }
}
END_TEST

// As printed: cores and GB/s of GeForce on nvidia.com, TFLOP/s (float16 summed in float32, dense) and GB/s of the others
// in their data sheets. 0: not printed.
static const struct {
    const char *name;
    unsigned cores, lanes; // lanes: cores of a multiprocessor
    double float16_tflops, gbytes;
} printed[] = {
    {"p100-16g", 3584, 64, 18.7, 732},
    {"gtx1080-ti-11g", 3584, 128, 0, 484},
    {"v100-16g", 5120, 64, 125, 900},
    {"v100-32g", 5120, 64, 125, 900},
    {"t4-16g", 2560, 64, 65, 320},
    {"gtx1650-4g", 896, 64, 0, 128},
    {"rtx2060-6g", 1920, 64, 0, 336},
    {"rtx2060-super-8g", 2176, 64, 0, 448},
    {"rtx2070-8g", 2304, 64, 0, 448},
    {"rtx2070-super-8g", 2560, 64, 0, 448},
    {"rtx2080-8g", 2944, 64, 0, 448},
    {"rtx2080-super-8g", 3072, 64, 0, 496},
    {"rtx2080-ti-11g", 4352, 64, 53.8, 616},
    {"rtx3050-6g", 2304, 128, 0, 168},
    {"rtx3050-8g", 2560, 128, 0, 224},
    {"rtx3060-8g", 3584, 128, 0, 240},
    {"rtx3060-12g", 3584, 128, 0, 360},
    {"rtx3060-ti-8g", 4864, 128, 0, 448},
    {"rtx3070-8g", 5888, 128, 40.6, 448},
    {"rtx3070-ti-8g", 6144, 128, 0, 608},
    {"rtx3080-10g", 8704, 128, 59.5, 760},
    {"rtx3080-12g", 8960, 128, 0, 912},
    {"rtx3080-ti-12g", 10240, 128, 0, 912},
    {"rtx3090-24g", 10496, 128, 71, 936},
    {"rtx3090-ti-24g", 10752, 128, 80, 1008},
    {"rtx3050-laptop-4g", 2048, 128, 0, 192},
    {"rtx3050-ti-laptop-4g", 2560, 128, 0, 192},
    {"rtx3060-laptop-6g", 3840, 128, 0, 336},
    {"rtx3070-laptop-8g", 5120, 128, 0, 448},
    {"rtx3070-ti-laptop-8g", 5888, 128, 0, 448},
    {"rtx3080-laptop-8g", 6144, 128, 0, 448},
    {"rtx3080-laptop-16g", 6144, 128, 0, 448},
    {"rtx3080-ti-laptop-16g", 7424, 128, 0, 512},
    {"a10-24g", 9216, 128, 125, 600},
    {"a30-24g", 3584, 64, 165, 933},
    {"a40-48g", 10752, 128, 149.7, 696},
    {"rtxa6000-48g", 10752, 128, 154.8, 768},
    {"a100-40g", 6912, 64, 312, 1555},
    {"a100-80g", 6912, 64, 312, 2039},
    {"jetson-orin-nano-8g", 1024, 128, 16.75, 102},
    {"jetson-orin-nx-16g", 1024, 128, 15, 102.4},
    {"jetson-agx-orin-32g", 1792, 128, 27, 204.8},
    {"jetson-agx-orin-64g", 2048, 128, 42.5, 204.8},
    {"rtx4060-8g", 3072, 128, 0, 272},
    {"rtx4060-ti-8g", 4352, 128, 0, 288},
    {"rtx4060-ti-16g", 4352, 128, 0, 288},
    {"rtx4070-12g", 5888, 128, 0, 504},
    {"rtx4070-super-12g", 7168, 128, 0, 504},
    {"rtx4070-ti-12g", 7680, 128, 0, 504},
    {"rtx4070-ti-super-16g", 8448, 128, 0, 672},
    {"rtx4080-16g", 9728, 128, 97.5, 716.8},
    {"rtx4080-super-16g", 10240, 128, 0, 736},
    {"rtx4090-24g", 16384, 128, 165.2, 1008},
    {"rtx4050-laptop-6g", 2560, 128, 0, 192},
    {"rtx4060-laptop-8g", 3072, 128, 0, 256},
    {"rtx4070-laptop-8g", 4608, 128, 0, 256},
    {"rtx4080-laptop-12g", 7424, 128, 0, 432},
    {"rtx4090-laptop-16g", 9728, 128, 0, 576},
    {"l4-24g", 7424, 128, 121, 300},
    {"l40s-48g", 18176, 128, 362.05, 864},
    {"rtx6000-ada-48g", 18176, 128, 0, 960},
    {"h100-pcie-80g", 14592, 128, 756, 2000},
    {"h100-80g", 16896, 128, 989, 3350},
    {"h100-nvl-94g", 16896, 128, 835.5, 3900},
    {"gh200-96g", 16896, 128, 989, 4000},
    {"h200-141g", 16896, 128, 989, 4800},
    {"b200-180g", 18944, 128, 2250, 7700},
    {"rtx5050-8g", 2560, 128, 0, 320},
    {"rtx5060-8g", 3840, 128, 0, 448},
    {"rtx5060-ti-8g", 4608, 128, 0, 448},
    {"rtx5060-ti-16g", 4608, 128, 0, 448},
    {"rtx5070-12g", 6144, 128, 0, 672},
    {"rtx5070-ti-16g", 8960, 128, 0, 896},
    {"rtx5080-16g", 10752, 128, 112.6, 960},
    {"rtx5090-32g", 21760, 128, 209.5, 1792},
    {"rtx5050-laptop-8g", 2560, 128, 0, 384},
    {"rtx5060-laptop-8g", 3328, 128, 0, 384},
    {"rtx5070-laptop-8g", 4608, 128, 0, 384},
    {"rtx5070-ti-laptop-12g", 5888, 128, 0, 672},
    {"rtx5080-laptop-16g", 7680, 128, 0, 896},
    {"rtx5090-laptop-24g", 10496, 128, 0, 896},
};
enum { PRINTED = sizeof printed / sizeof *printed };

START_TEST(rows_have_what_makers_print)
{
    size_t count = 0;
    const card_row *row = card_rows(&count);
    ck_assert_uint_eq(count, PRINTED); // a new row brings its printed figures
    while (strcmp(row->name, printed[_i].name) != 0) {
        row++;
        ck_assert_msg(row < card_rows(&count) + count, "%s is missing", printed[_i].name);
    }
    ck_assert_msg(row->multiprocessors * printed[_i].lanes == printed[_i].cores, "%s: %u multiprocessors",
                  row->name, row->multiprocessors);
    must_be(row, "bandwidth", row->memory_gbytes, printed[_i].gbytes, 0.005);
    if (printed[_i].float16_tflops > 0) {
        must_be(row, "float16", row->tflops.float16, printed[_i].float16_tflops, 0.012);
    }
}
END_TEST

int main(void)
{
    size_t count = 0;
    (void)card_rows(&count);
    Suite *suite = suite_create("card_table");
    TCase *all = tcase_create("rows");
    tcase_add_loop_test(all, rates_are_what_multiprocessors_and_clocks_give, 0, (int)count);
    tcase_add_loop_test(all, bandwidth_is_what_bus_and_data_rate_give, 0, (int)count);
    tcase_add_test(all, no_row_is_there_twice_and_all_say_where_they_are_from);
    tcase_add_loop_test(all, rows_have_what_makers_print, 0, PRINTED);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
