// SPDX-License-Identifier: Apache-2.0
// Whole numbers for weights: bit for bit what Keras 3 and TFLite make of the same weights, and back again within half a step.
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantize.h"
#include "numeric/fixture.h"

enum { SIDE_MOST = 320, ROOM = SIDE_MOST * 64 };

typedef struct sample {
    const json_t *stored;
    uint64_t rows, columns;
    float w[ROOM];
} sample;

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static uint64_t read_bytes(const json_t *from, const char *key, void *to)
{
    const char *text = json_string_value(json_object_get(from, key));
    ck_assert_msg(text != NULL, "the fixture has no %s", key);
    const size_t bytes = strlen(text) / 2;
    ck_assert_uint_le(bytes, ROOM * sizeof(float));
    for (size_t k = 0; k < bytes; k++) {
        ((uint8_t *)to)[k] = (uint8_t)(digit(text[2 * k]) << 4 | digit(text[2 * k + 1]));
    }
    return bytes;
}

static void check_bytes(const sample *s, const char *key, const void *made, uint64_t bytes)
{
    static uint8_t stored[ROOM * sizeof(float)];
    ck_assert_uint_eq(read_bytes(s->stored, key, stored), bytes);
    for (uint64_t k = 0; k < bytes; k++) {
        ck_assert_msg(stored[k] == ((const uint8_t *)made)[k],
                      "%llux%llu: byte %llu of %s is %02x, stored %02x", (unsigned long long)s->rows,
                      (unsigned long long)s->columns, (unsigned long long)k, key, ((const uint8_t *)made)[k],
                      stored[k]);
    }
}

static void for_each(void (*check)(const sample *s))
{
    static sample s;
    json_t *root = fixture_open("quantize.json");
    size_t k;
    json_t *one;
    json_array_foreach(json_object_get(root, "cases"), k, one)
    {
        const json_t *shape = json_object_get(one, "shape");
        s.stored = one;
        s.rows = (uint64_t)json_integer_value(json_array_get(shape, 0));
        s.columns = (uint64_t)json_integer_value(json_array_get(shape, 1));
        ck_assert_uint_eq(read_bytes(one, "weights", s.w), s.rows * s.columns * sizeof(float));
        check(&s);
    }
    ck_assert_uint_ge(k, 6);
    json_decref(root);
}

static void check_int8(const sample *s)
{
    static int8_t q[ROOM];
    static float scale[ROOM];
    quantize_int8(s->w, s->rows, s->columns, q, scale);
    check_bytes(s, "int8", q, s->rows * s->columns);
    check_bytes(s, "int8_scale", scale, s->columns * sizeof *scale);
}

START_TEST(int8_weights_are_those_of_keras_to_the_bit)
{
    for_each(check_int8);
}
END_TEST

static void check_rows(const sample *s)
{
    static float x[ROOM], scale[ROOM];
    static int8_t q[ROOM];
    const uint64_t rows = read_bytes(s->stored, "input", x) / sizeof *x / s->rows;
    quantize_int8_rows(x, rows, s->rows, q, scale);
    check_bytes(s, "rows", q, rows * s->rows);
    check_bytes(s, "rows_scale", scale, rows * sizeof *scale);
}

START_TEST(rows_of_an_input_are_those_of_keras_to_the_bit)
{
    for_each(check_rows);
}
END_TEST

static void check_int4(const sample *s)
{
    static uint8_t q[ROOM];
    static float scale[ROOM], back[ROOM];
    static int8_t zero[ROOM];
    quantize_int4(s->w, s->rows, s->columns, q, scale, zero);
    const uint64_t groups = quantize_int4_groups(s->rows);
    check_bytes(s, "int4", q, s->rows * quantize_int4_pitch(s->columns));
    check_bytes(s, "int4_scale", scale, groups * s->columns * sizeof *scale);
    check_bytes(s, "int4_zero", zero, groups * s->columns);
    dequantize_int4(q, scale, zero, s->rows, s->columns, back);
    check_bytes(s, "int4_weights", back, s->rows * s->columns * sizeof *back);
}

START_TEST(int4_weights_of_odd_sizes_too_are_those_of_keras_to_the_bit)
{
    for_each(check_int4);
}
END_TEST

static void check_tflite(const sample *s)
{
    static int8_t q[ROOM];
    static float scale[ROOM];
    if (json_object_get(s->stored, "tflite") != NULL) {
        quantize_int8_tflite(s->w, s->rows, s->columns, q, scale);
        check_bytes(s, "tflite", q, s->rows * s->columns);
        check_bytes(s, "tflite_scale", scale, s->columns * sizeof *scale);
    }
}

START_TEST(int8_weights_of_tflite_are_its_own_to_the_bit)
{
    for_each(check_tflite);
}
END_TEST

static void check_back(const sample *s)
{
    static int8_t q[ROOM];
    static float scale[ROOM], back[ROOM];
    quantize_int8(s->w, s->rows, s->columns, q, scale);
    dequantize_int8(q, scale, s->rows, s->columns, back);
    for (uint64_t k = 0; k < s->rows * s->columns; k++) {
        ck_assert(fabsf(back[k] - s->w[k]) <= 0.501f / scale[k % s->columns]);
    }
}

START_TEST(int8_goes_back_within_half_a_step)
{
    for_each(check_back);
}
END_TEST

START_TEST(int4_goes_back_within_a_step_and_a_half)
{
    static float w[ROOM], back[ROOM], scale[ROOM];
    static uint8_t q[ROOM];
    static int8_t zero[ROOM];
    const uint64_t rows = 1 + (uint64_t)_i * 37, columns = 1 + (uint64_t)_i * 5;
    fixture_uniform((uint64_t)_i, "test/quantize", w, rows * columns);
    for (uint64_t k = 0; k < rows * columns; k++) {
        w[k] = 2 * w[k] - 1;
    }
    quantize_int4(w, rows, columns, q, scale, zero);
    dequantize_int4(q, scale, zero, rows, columns, back);
    for (uint64_t k = 0; k < rows * columns; k++) {
        const float step = scale[k / columns / QUANTIZE_BLOCK * columns + k % columns];
        ck_assert(fabsf(back[k] - w[k]) <= 1.501f * step); // the zero point is rounded, and values are cut
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *all = tcase_create("weights");
    tcase_add_test(all, int8_weights_are_those_of_keras_to_the_bit);
    tcase_add_test(all, rows_of_an_input_are_those_of_keras_to_the_bit);
    tcase_add_test(all, int4_weights_of_odd_sizes_too_are_those_of_keras_to_the_bit);
    tcase_add_test(all, int8_weights_of_tflite_are_its_own_to_the_bit);
    tcase_add_test(all, int8_goes_back_within_half_a_step);
    tcase_add_loop_test(all, int4_goes_back_within_a_step_and_a_half, 0, 9);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
