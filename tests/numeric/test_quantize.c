// SPDX-License-Identifier: Apache-2.0
// Whole numbers for weights and tables: bit for bit what Keras 3 and TFLite make of the same, and back again within half a step.
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nf4.h"
#include "base/quantize.h"
#include "numeric/fixture.h"
#include "numeric/op_harness.h"

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

static void for_each_of(const char *file, const char *key, void (*check)(const sample *s))
{
    static sample s;
    json_t *root = fixture_open(file);
    size_t k;
    json_t *one;
    json_array_foreach(json_object_get(root, "cases"), k, one)
    {
        const json_t *shape = json_object_get(one, "shape");
        s.stored = one;
        s.rows = (uint64_t)json_integer_value(json_array_get(shape, 0));
        s.columns = (uint64_t)json_integer_value(json_array_get(shape, 1));
        ck_assert_uint_eq(read_bytes(one, key, s.w), s.rows * s.columns * sizeof(float));
        check(&s);
    }
    ck_assert_uint_ge(k, 6);
    json_decref(root);
}

static void for_each(void (*check)(const sample *s))
{
    for_each_of("quantize.json", "weights", check);
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

// Rows of the table as it comes back, in the order of the numbers that Keras looked up.
static void check_back_table(const sample *s, const char *key, const float *back)
{
    static float rows[ROOM];
    int32_t ids[8];
    ck_assert_uint_eq(read_bytes(s->stored, "ids", ids), sizeof ids);
    for (uint64_t k = 0; k < 8; k++) {
        memcpy(rows + k * s->columns, back + (uint64_t)ids[k] * s->columns, s->columns * sizeof *rows);
    }
    check_bytes(s, key, rows, 8 * s->columns * sizeof *rows);
}

static void check_int8_table(const sample *s)
{
    static int8_t q[ROOM];
    static float scale[ROOM], back[ROOM];
    quantize_int8_rows(s->w, s->rows, s->columns, q, scale);
    dequantize_int8_rows(q, scale, s->rows, s->columns, back);
    check_back_table(s, "int8_rows", back);
    check_bytes(s, "int8", q, s->rows * s->columns);
    check_bytes(s, "int8_scale", scale, s->rows * sizeof *scale);
}

static void check_int4_table(const sample *s)
{
    static uint8_t q[ROOM];
    static float scale[ROOM], back[ROOM];
    static int8_t zero[ROOM];
    quantize_int4_rows(s->w, s->rows, s->columns, q, scale, zero);
    dequantize_int4_rows(q, scale, zero, s->rows, s->columns, back);
    check_back_table(s, "int4_rows", back);
    const uint64_t groups = quantize_int4_groups(s->columns);
    check_bytes(s, "int4", q, s->rows * quantize_int4_pitch(s->columns));
    check_bytes(s, "int4_scale", scale, s->rows * groups * sizeof *scale);
    check_bytes(s, "int4_zero", zero, s->rows * groups);
}

START_TEST(tables_are_those_of_keras_to_the_bit)
{
    for_each_of("quantize_tables.json", "table", check_int8_table);
    for_each_of("quantize_tables.json", "table", check_int4_table);
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

// ---- what is not finite ---------------------------------------------------------------------------------------

enum { BAD_ROWS = 150, BAD_COLUMNS = 20, BAD_ROW = 37, BAD_COLUMN = 5 };

static const float bad_values[] = {NAN, INFINITY, -INFINITY};

static void fill_bad(float bad, float w[BAD_ROWS * BAD_COLUMNS])
{
    fixture_uniform(3, "test/quantize", w, BAD_ROWS * BAD_COLUMNS);
    w[BAD_ROW * BAD_COLUMNS + BAD_COLUMN] = bad;
}

static void check_columns(const float *scale, const float *back, const float *w)
{
    for (int c = 0; c < BAD_COLUMNS; c++) {
        ck_assert_int_eq(isnan(scale[c]) != 0, c == BAD_COLUMN);
        for (int r = 0; r < 100; r++) {
            const int at = r * BAD_COLUMNS + c;
            ck_assert(c == BAD_COLUMN ? isnan(back[at]) : fabsf(back[at] - w[at]) < 0.2f);
        }
    }
}

// The scale says so, nothing that is no number becomes a whole one, and other columns are as they were.
START_TEST(what_is_not_finite_comes_back_as_nan)
{
    static float w[BAD_ROWS * BAD_COLUMNS], back[BAD_ROWS * BAD_COLUMNS], scale[ROOM];
    static int8_t q[BAD_ROWS * BAD_COLUMNS], zero[2 * BAD_COLUMNS];
    static uint8_t halves[BAD_ROWS * BAD_COLUMNS];
    fill_bad(bad_values[_i], w);
    quantize_int8(w, BAD_ROWS, BAD_COLUMNS, q, scale);
    dequantize_int8(q, scale, BAD_ROWS, BAD_COLUMNS, back);
    check_columns(scale, back, w);
    ck_assert_int_eq(q[BAD_COLUMN], -127);
    quantize_int4(w, BAD_ROWS, BAD_COLUMNS, halves, scale, zero);
    dequantize_int4(halves, scale, zero, BAD_ROWS, BAD_COLUMNS, back);
    check_columns(scale, back, w);
    ck_assert(!isnan(scale[BAD_COLUMNS + BAD_COLUMN])); // the second group of its column
    ck_assert_int_eq(zero[BAD_COLUMN], -8);
    quantize_int8_rows(w, BAD_ROWS, BAD_COLUMNS, q, scale);
    for (int r = 0; r < BAD_ROWS; r++) {
        ck_assert_int_eq(isnan(scale[r]) != 0, r == BAD_ROW);
    }
    quantize_int8_tflite(w, BAD_ROWS, BAD_COLUMNS, q, scale);
    for (int c = 0; c < BAD_COLUMNS; c++) {
        ck_assert_int_eq(isnan(scale[c]) != 0, c == BAD_COLUMN);
    }
}
END_TEST

static op_trial bad_product(float bad, double where)
{
    op_trial t = op_trial_make(HR_OP_DENSE_INT8, (op_attr){0});
    uint64_t state = 7;
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){BAD_COLUMNS, BAD_ROWS});
    op_trial_add_in(&t, HR_I8, (const int64_t[OP_MAX_RANK]){BAD_ROWS, BAD_COLUMNS});
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){BAD_COLUMNS});
    op_fill(t.in[0], BAD_COLUMNS * BAD_ROWS, &state, -1.0, 1.0);
    for (int k = 0; k < BAD_ROWS * BAD_COLUMNS; k++) {
        t.in[1][k] = (double)op_random_int(&state, -127, 127);
    }
    op_fill(t.in[2], BAD_COLUMNS, &state, 50.0, 500.0);
    t.in[0][BAD_COLUMN * BAD_ROWS + (int)(where * (BAD_ROWS - 1))] = (double)bad;
    op_trial_infer_out(&t, 1);
    return t;
}

static const char *const devices[] = {"reference",
#ifdef TEST_DEVICE
                                      TEST_DEVICE
#elif HEADROOM_HAVE_ONEDNN
                                      "cpu"
#endif
};
enum { DEVICES = sizeof devices / sizeof *devices };

// ---- tables on devices ----------------------------------------------------------------------------------------

// Of the model's float32 table: q, scale and int4's zero point, as the device makes them.
static void add_table(op_trial *t, const sample *s, op_device device, bool four)
{
    const hr_op op = four ? HR_OP_QUANTIZE_INT4 : HR_OP_QUANTIZE_INT8;
    op_trial q = op_trial_make(op, (op_attr){.flags = OP_FLAG_TRANSPOSE});
    op_trial_add_in(&q, HR_F32, (const int64_t[OP_MAX_RANK]){(int64_t)s->rows, (int64_t)s->columns});
    for (uint64_t k = 0; k < s->rows * s->columns; k++) {
        q.in[0][k] = (double)s->w[k];
    }
    op_trial_infer_out(&q, four ? 3 : 2);
    op_trial_run(&q, device, NULL);
    for (uint32_t k = 0; k < q.query.out_count; k++) {
        op_trial_add_in(t, (hr_dtype)q.query.out[k].dtype, q.query.out[k].shape.dim);
        memcpy(t->in[k + 1], q.out[k], op_trial_out_count(&q, k) * sizeof(double));
    }
    op_trial_deinit(&q);
}

static const char *tables_on; // the device

static void check_rows_of(const sample *s, bool four)
{
    static float made[ROOM];
    int32_t ids[8];
    op_device device = op_device_open(test_device(tables_on), 2);
    const hr_op op = four ? HR_OP_EMBEDDING_INT4 : HR_OP_EMBEDDING_INT8;
    op_trial t = op_trial_make(op, (op_attr){.count = four ? (int32_t)s->columns : 0});
    op_trial_add_in(&t, HR_I32, (const int64_t[OP_MAX_RANK]){2, 4});
    ck_assert_uint_eq(read_bytes(s->stored, "ids", ids), sizeof ids);
    for (int k = 0; k < 8; k++) {
        t.in[0][k] = ids[k];
    }
    add_table(&t, s, device, four);
    op_trial_infer_out(&t, 1);
    op_trial_run(&t, device, NULL);
    const uint64_t count = op_trial_out_count(&t, 0);
    for (uint64_t k = 0; k < count; k++) {
        made[k] = (float)t.out[0][k];
    }
    check_bytes(s, four ? "int4_rows" : "int8_rows", made, count * sizeof *made);
    op_trial_deinit(&t);
    op_device_close(&device);
}

static void check_int8_rows(const sample *s)
{
    check_rows_of(s, false);
}

static void check_int4_rows(const sample *s)
{
    check_rows_of(s, true);
}

START_TEST(rows_that_are_looked_up_are_those_of_keras_to_the_bit)
{
    tables_on = devices[_i];
    for_each_of("quantize_tables.json", "table", check_int8_rows);
    for_each_of("quantize_tables.json", "table", check_int4_rows);
}
END_TEST

static void check_product(const sample *s, hr_op op, const char *key)
{
    static float x[ROOM], theirs[ROOM];
    op_device device = op_device_open(test_device(tables_on), 2);
    op_trial t = op_trial_make(op, (op_attr){.flags = OP_FLAG_TRANSPOSE});
    const uint64_t rows = read_bytes(s->stored, "input", x) / sizeof *x / s->columns;
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){(int64_t)rows, (int64_t)s->columns});
    for (uint64_t k = 0; k < rows * s->columns; k++) {
        t.in[0][k] = (double)x[k];
    }
    add_table(&t, s, device, op == HR_OP_DENSE_INT4_WEIGHTS);
    op_trial_infer_out(&t, 1);
    op_trial_run(&t, device, NULL);
    const uint64_t count = op_trial_out_count(&t, 0);
    ck_assert_uint_eq(read_bytes(s->stored, key, theirs), count * sizeof *theirs);
    for (uint64_t k = 0; k < count; k++) {
        const double apart = fabs(t.out[0][k] - (double)theirs[k]);
        ck_assert_msg(apart <= 2e-5 * (1 + fabs((double)theirs[k])),
                      "%s %llu of %llux%llu: %.9g, theirs %.9g", key, (unsigned long long)k,
                      (unsigned long long)s->rows, (unsigned long long)s->columns, t.out[0][k],
                      (double)theirs[k]);
    }
    op_trial_deinit(&t);
    op_device_close(&device);
}

static void check_int8_product(const sample *s)
{
    check_product(s, HR_OP_DENSE_INT8, "int8_product");
}

static void check_int4_product(const sample *s)
{
    check_product(s, HR_OP_DENSE_INT4_WEIGHTS, "int4_product");
}

// Their own ReversibleEmbedding's: the scales of the table's rows are those of the units.
START_TEST(products_with_a_tied_table_are_those_of_keras)
{
    tables_on = devices[_i];
    for_each_of("quantize_tables.json", "table", check_int8_product);
    for_each_of("quantize_tables.json", "table", check_int4_product);
}
END_TEST

// A row of the input that is not finite, wherever that stands, makes its row of the product NaN and no other.
START_TEST(a_row_that_is_not_finite_gives_nan)
{
    for (int place = 0; place <= 4; place++) {
        op_trial t = bad_product(bad_values[_i / DEVICES], place / 4.0);
        op_device device = op_device_open(test_device(devices[_i % DEVICES]), 2);
        op_trial_run(&t, device, NULL);
        for (int k = 0; k < BAD_COLUMNS * BAD_COLUMNS; k++) {
            ck_assert_int_eq(isnan(t.out[0][k]) != 0, k / BAD_COLUMNS == BAD_COLUMN);
        }
        op_device_close(&device);
        op_trial_deinit(&t);
    }
}
END_TEST

static op_trial product_of(int64_t rows, int64_t depth, int64_t units)
{
    op_trial t = op_trial_make(HR_OP_DENSE_INT8, (op_attr){0});
    uint64_t state = 11;
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){rows, depth});
    op_trial_add_in(&t, HR_I8, (const int64_t[OP_MAX_RANK]){depth, units});
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){units});
    op_fill(t.in[0], (uint64_t)(rows * depth), &state, -1.0, 1.0);
    for (int64_t k = 0; k < depth * units; k++) {
        t.in[1][k] = (double)op_random_int(&state, -127, 127);
    }
    op_fill(t.in[2], (uint64_t)units, &state, 50.0, 500.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// However many threads share the rows of a layer of few units: blocks of one, of a few, of an odd number.
START_TEST(threads_change_no_bit_of_a_product)
{
    static const int64_t rows[] = {1, 63, 128, 255, 257, 512}, depths[] = {33, 64, 256},
                         units[] = {10, 64, 65};
    enum { SHAPES = sizeof depths / sizeof *depths };
    for (int k = 0; k < SHAPES * SHAPES; k++) {
        op_trial one = product_of(rows[_i / DEVICES], depths[k / SHAPES], units[k % SHAPES]);
        op_device alone = op_device_open(test_device(devices[_i % DEVICES]), 1);
        op_trial_run(&one, alone, NULL);
        op_device_close(&alone);
        for (uint32_t threads = 2; threads <= 5; threads++) {
            op_trial more = product_of(rows[_i / DEVICES], depths[k / SHAPES], units[k % SHAPES]);
            op_device device = op_device_open(test_device(devices[_i % DEVICES]), threads);
            op_trial_run(&more, device, NULL);
            ck_assert_mem_eq(one.out[0], more.out[0], op_trial_out_count(&one, 0) * sizeof *one.out[0]);
            op_device_close(&device);
            op_trial_deinit(&more);
        }
        op_trial_deinit(&one);
    }
}
END_TEST

static op_trial bad_weights(hr_op op, bool by_row, float bad)
{
    static float w[BAD_ROWS * BAD_COLUMNS];
    op_trial t = op_trial_make(op, (op_attr){.flags = by_row ? OP_FLAG_TRANSPOSE : 0});
    fill_bad(bad, w);
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){BAD_ROWS, BAD_COLUMNS});
    for (int k = 0; k < BAD_ROWS * BAD_COLUMNS; k++) {
        t.in[0][k] = (double)w[k];
    }
    op_trial_infer_out(&t, op == HR_OP_QUANTIZE_INT8 ? 2 : 3);
    return t;
}

START_TEST(devices_make_the_same_of_weights_that_are_not_finite)
{
    static const hr_op ops[] = {HR_OP_QUANTIZE_INT8, HR_OP_QUANTIZE_INT4};
    for (size_t o = 0; o < 2 * sizeof ops / sizeof *ops; o++) {
        const bool by_row = o % 2 == 1;
        op_trial made[DEVICES];
        for (int d = 0; d < DEVICES; d++) {
            op_device device = op_device_open(test_device(devices[d]), 2);
            made[d] = bad_weights(ops[o / 2], by_row, bad_values[_i]);
            op_trial_run(&made[d], device, NULL);
            op_device_close(&device);
            ck_assert(isnan(made[d].out[1][by_row ? BAD_ROW : BAD_COLUMN]));
        }
        for (uint32_t k = 0; k < made[0].query.out_count; k++) {
            for (uint64_t n = 0; n < op_trial_out_count(&made[0], k); n++) {
                const double judge = made[0].out[k][n], other = made[DEVICES - 1].out[k][n];
                ck_assert(judge == other || (isnan(judge) && isnan(other)));
            }
        }
        for (int d = 0; d < DEVICES; d++) {
            op_trial_deinit(&made[d]);
        }
    }
}
END_TEST

// ---- nf4 ------------------------------------------------------------------------------------------------------

static uint64_t read_floats(const json_t *root, const char *key, float *to)
{
    const json_t *list = json_object_get(root, key);
    for (size_t k = 0; k < json_array_size(list); k++) {
        to[k] = strtof(json_string_value(json_array_get(list, k)), NULL);
    }
    return json_array_size(list);
}

// Values, a block of tiny ones, a block of zeros, and a last block that is not whole.
START_TEST(nf4_is_that_of_bitsandbytes_to_the_bit)
{
    static float w[ROOM], scale[ROOM], theirs[ROOM], back[ROOM];
    static uint8_t q[ROOM];
    json_t *root = fixture_open("nf4.json");
    const json_t *bytes = json_object_get(root, "q");
    const uint64_t count = read_floats(root, "values", w);
    ck_assert_uint_eq(read_floats(root, "levels", theirs), NF4_LEVELS);
    ck_assert_mem_eq(theirs, nf4_levels, sizeof nf4_levels);
    quantize_nf4(w, count, q, scale);
    ck_assert_uint_eq(read_floats(root, "scale", theirs), nf4_blocks(count));
    ck_assert_mem_eq(theirs, scale, nf4_blocks(count) * sizeof *scale);
    ck_assert_uint_eq(json_array_size(bytes), nf4_bytes(count));
    for (size_t k = 0; k < nf4_bytes(count); k++) {
        ck_assert_int_eq(q[k], json_integer_value(json_array_get(bytes, k)));
    }
    dequantize_nf4(q, scale, count, back);
    ck_assert_uint_eq(read_floats(root, "back", theirs), count);
    for (uint64_t k = 0; k < count; k++) {
        ck_assert_msg(theirs[k] == back[k], "%llu: %a, theirs %a", (unsigned long long)k, (double)back[k],
                      (double)theirs[k]);
    }
    json_decref(root);
}
END_TEST

START_TEST(nf4_of_a_block_that_is_not_finite_is_nan)
{
    float w[NF4_BLOCK + 2] = {[3] = INFINITY, [NF4_BLOCK] = 1}, scale[2], back[NF4_BLOCK + 2];
    uint8_t q[NF4_BLOCK / 2 + 1];
    quantize_nf4(w, NF4_BLOCK + 2, q, scale);
    dequantize_nf4(q, scale, NF4_BLOCK + 2, back);
    ck_assert(isnan(back[0]) && isnan(back[3]) && back[NF4_BLOCK] == 1);
}
END_TEST

int main(void)
{
#ifdef TEST_DEVICE
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
#endif
    Suite *suite = suite_create("quantize");
    TCase *all = tcase_create("weights");
    tcase_add_test(all, int8_weights_are_those_of_keras_to_the_bit);
    tcase_add_test(all, rows_of_an_input_are_those_of_keras_to_the_bit);
    tcase_add_test(all, int4_weights_of_odd_sizes_too_are_those_of_keras_to_the_bit);
    tcase_add_test(all, tables_are_those_of_keras_to_the_bit);
    tcase_add_loop_test(all, rows_that_are_looked_up_are_those_of_keras_to_the_bit, 0, DEVICES);
    tcase_add_loop_test(all, products_with_a_tied_table_are_those_of_keras, 0, DEVICES);
    tcase_add_test(all, int8_weights_of_tflite_are_its_own_to_the_bit);
    tcase_add_test(all, int8_goes_back_within_half_a_step);
    tcase_add_loop_test(all, int4_goes_back_within_a_step_and_a_half, 0, 9);
    tcase_add_loop_test(all, what_is_not_finite_comes_back_as_nan, 0, 3);
    tcase_add_loop_test(all, a_row_that_is_not_finite_gives_nan, 0, 3 * DEVICES);
    tcase_add_loop_test(all, threads_change_no_bit_of_a_product, 0, 6 * DEVICES);
    tcase_add_loop_test(all, devices_make_the_same_of_weights_that_are_not_finite, 0, 3);
    tcase_add_test(all, nf4_is_that_of_bitsandbytes_to_the_bit);
    tcase_add_test(all, nf4_of_a_block_that_is_not_finite_is_nan);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
