// SPDX-License-Identifier: Apache-2.0
// The values of an image's bytes have the bits of one division each, with every instruction set that this processor has.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "data/pixels.h"

enum { MOST = 4096 + 61, SLACK = 64, UNTOUCHED = 0xa5 };

static uint8_t from[MOST];
static _Alignas(64) uint8_t to[SLACK + 8 * MOST + SLACK];

static void wanted_value(pixels_type type, uint8_t byte, uint8_t value[8])
{
    const float f32 = (float)byte / 255.0f;
    const double f64 = (double)byte / 255.0;
    const uint16_t f16 = f16_of_float(f32), bf16 = bf16_of_float(f32);
    const void *const of_type[] = {
        [PIXELS_F32] = &f32, [PIXELS_F64] = &f64, [PIXELS_F16] = &f16, [PIXELS_BF16] = &bf16};
    memcpy(value, of_type[type], pixels_value_bytes(type));
}

// `first` values behind the beginning of a line of memory; what lies around stays.
static void check_one(pixels_isa isa, pixels_type type, uint32_t first, uint32_t count, bool past_caches)
{
    const uint32_t bytes = pixels_value_bytes(type);
    uint8_t *at = to + SLACK + first * bytes;
    memset(to, UNTOUCHED, SLACK + (size_t)(first + count) * bytes + SLACK);
    pixels_write_with(isa, at, type, from, count, past_caches);
    for (uint32_t k = 0; k < count; k++) {
        uint8_t value[8];
        wanted_value(type, from[k], value);
        ck_assert_mem_eq(at + (size_t)k * bytes, value, bytes);
    }
    for (uint32_t k = 0; k < SLACK; k++) {
        ck_assert_uint_eq(at[-1 - (int32_t)k], UNTOUCHED);
        ck_assert_uint_eq(at[(size_t)count * bytes + k], UNTOUCHED);
    }
}

static void check_all(uint32_t first, uint32_t count)
{
    for (int isa = 0; isa < PIXELS_ISA_COUNT; isa++) {
        for (int type = 0; type < PIXELS_TYPE_COUNT && pixels_has((pixels_isa)isa); type++) {
            check_one((pixels_isa)isa, (pixels_type)type, first, count, false);
            check_one((pixels_isa)isa, (pixels_type)type, first, count, true);
        }
    }
}

static void fill(uint32_t step)
{
    for (uint32_t k = 0; k < MOST; k++) {
        from[k] = (uint8_t)(k * step + (k >> 8));
    }
}

START_TEST(every_byte_has_the_bits_of_its_quotient)
{
    fill(1);
    check_all(0, MOST);
    fill(97);
    check_all(1, MOST - 1);
}
END_TEST

START_TEST(any_number_of_them_lies_anywhere)
{
    fill(89);
    for (uint32_t count = 0; count < 100; count++) {
        check_all(count * 7 % 33, count);
    }
}
END_TEST

START_TEST(the_best_instruction_set_gives_the_same_bits)
{
    static uint8_t plain[8 * MOST];
    fill(31);
    for (int type = 0; type < PIXELS_TYPE_COUNT; type++) {
        pixels_write(to, (pixels_type)type, from, MOST, true);
        pixels_write_with(PIXELS_PLAIN, plain, (pixels_type)type, from, MOST, false);
        ck_assert_mem_eq(to, plain, (size_t)MOST * pixels_value_bytes((pixels_type)type));
    }
    ck_assert(pixels_has(PIXELS_PLAIN));
}
END_TEST

START_TEST(a_wide_value_rounds_to_the_narrow_one)
{
    fill(1);
    pixels_write(to, PIXELS_F64, from, 256, false);
    for (uint32_t k = 0; k < 256; k++) {
        double wide;
        memcpy(&wide, to + k * sizeof wide, sizeof wide);
        ck_assert((float)wide == (float)from[k] / 255.0f);
    }
}
END_TEST

START_TEST(planes_become_pixels)
{
    fill(53);
    for (uint32_t channels = 1; channels <= 5; channels++) {
        for (uint32_t pixels = 1; pixels < 800; pixels += pixels < 80 ? 1 : 61) {
            memset(to, UNTOUCHED, sizeof to);
            pixels_of_planes(to, from, pixels, channels);
            for (uint32_t p = 0; p < pixels * channels; p++) {
                ck_assert_uint_eq(to[p], from[p % channels * pixels + p / channels]);
            }
            ck_assert_uint_eq(to[pixels * channels], UNTOUCHED);
        }
    }
}
END_TEST

// What this processor does not have is said: a run of these tests proves nothing of it.
static void say_what_is_missing(void)
{
    static const char *const names[PIXELS_ISA_COUNT] = {"plain", "AVX2", "AVX-512"};
    for (int isa = 0; isa < PIXELS_ISA_COUNT; isa++) {
        if (!pixels_has((pixels_isa)isa)) {
            printf("pixels: %s skipped, this processor does not have it\n", names[isa]);
        }
    }
    fflush(stdout);
}

int main(void)
{
    say_what_is_missing();
    Suite *suite = suite_create("pixels");
    TCase *cases = tcase_create("pixels");
    tcase_add_test(cases, every_byte_has_the_bits_of_its_quotient);
    tcase_add_test(cases, any_number_of_them_lies_anywhere);
    tcase_add_test(cases, the_best_instruction_set_gives_the_same_bits);
    tcase_add_test(cases, a_wide_value_rounds_to_the_narrow_one);
    tcase_add_test(cases, planes_become_pixels);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
