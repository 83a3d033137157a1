// SPDX-License-Identifier: Apache-2.0
// What updates weights on the cuda device, where its kernels change their way: sums of one block and of many, tiles that
// are not full, vectors and single elements, gradients that are not finite, codes of a byte at every size of a block.
// Against the judge, in float32, float16 and bfloat16.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "numeric/op_draw.h"

static op_device card, judge;

static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
enum { TYPES = sizeof types / sizeof types[0] };

// ---- one trial on both devices --------------------------------------------------------------------------------

// Scales, sums and counts are float32 whatever the gradients are.
static bool is_wide(hr_op op, bool is_out, uint32_t k)
{
    switch ((int)op) {
    case HR_OP_FINITE:
    case HR_OP_SQUARE_SUM:
        return is_out || k > 0;
    case HR_OP_CLIP:
    case HR_OP_UNSCALE:
        return !is_out && k == 1;
    case HR_OP_ADAM8BIT:
        return k == (is_out ? 3 : 4);
    default:
        return op == HR_OP_SCALE_UPDATE;
    }
}

static double as_stored(hr_dtype type, double value)
{
    return type == HR_F16    ? (double)float_of_f16(f16_of_float((float)value))
           : type == HR_BF16 ? (double)float_of_bf16(bf16_of_float((float)value))
                             : (double)(float)value;
}

static void give_type(op_operand *operand, hr_op op, bool is_out, uint32_t k, hr_dtype type)
{
    if (dtype_is_real((hr_dtype)operand->dtype)) {
        operand->dtype = is_wide(op, is_out, k) ? HR_F32 : (uint32_t)type;
    }
}

// t's values become those that the type holds.
static op_trial in_type(op_trial *t, hr_dtype type)
{
    op_trial copy = op_trial_copy(t, HR_F32);
    for (uint32_t k = 0; k < copy.query.in_count; k++) {
        op_operand *operand = &copy.query.in[k];
        give_type(operand, (hr_op)t->query.op, false, k, type);
        for (uint64_t i = 0; dtype_is_real((hr_dtype)operand->dtype) && i < op_trial_in_count(t, k); i++) {
            t->in[k][i] = copy.in[k][i] = as_stored((hr_dtype)operand->dtype, t->in[k][i]);
        }
    }
    for (uint32_t k = 0; k < copy.query.out_count; k++) {
        give_type(&copy.query.out[k], (hr_op)t->query.op, true, k, type);
    }
    return copy;
}

static void compare(const op_trial *t, const op_operand *operand, const char *side, const double *ours,
                    const double *judged)
{
    static const double allowed[HR_DTYPE_COUNT] = {
        [HR_F32] = 1e-6, [HR_F16] = 5e-4, [HR_BF16] = 4e-3, [HR_U8] = 1e-2};
    uint64_t count = 0;
    ck_assert(shape_elements(&operand->shape, &count));
    const double distance = op_distance(ours, judged, count);
    ck_assert_msg(distance <= allowed[operand->dtype], "%s of %u %s: %s is %g from the judge's",
                  op_name((hr_op)t->query.op), (unsigned)op_trial_in_count(t, 0),
                  dtype_name((hr_dtype)operand->dtype), side, distance);
}

// t then holds the judge's values, the result the card's. Gradients, which may hold a NaN, are not compared.
static op_trial run_both(op_trial *t, hr_dtype type, uint64_t update)
{
    step_io io = {.learning_rate = 0.01, .update = update};
    op_trial ours = in_type(t, type);
    op_trial_run(&ours, card, &io);
    op_trial_run(t, judge, &io);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        compare(t, &ours.query.out[k], "an output", ours.out[k], t->out[k]);
    }
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        if (t->query.op != HR_OP_FINITE || k > 0) {
            compare(t, &ours.query.in[k], "an input", ours.in[k], t->in[k]);
        }
    }
    return ours;
}

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

static void judge_in_type(op_trial *t, hr_dtype type, uint64_t update)
{
    op_trial ours = run_both(t, type, update);
    op_trial_deinit(&ours);
    op_trial_deinit(t);
}

#define SEED(value)                                                                                          \
    (op_draw)                                                                                                \
    {                                                                                                        \
        .state = (value), .size = 5                                                                          \
    }

// ---- gradients in range ---------------------------------------------------------------------------------------

static const int64_t lengths[] = {1, 7, 8, 511, 16384, 16385, 100003};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

// Small, large and strange numbers among plain ones.
static void fill_odd(double *g, int64_t count, op_draw *d, bool strange)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t what = op_draw_int(d, 0, 40);
        const double plain = op_random(&d->state, -1.0, 1.0);
        g[i] = what == 0   ? 0.0
               : what == 1 ? 1e-7 * plain
               : what == 2 ? 1e5 * plain
               : what == 3 ? (strange ? (double)NAN : plain)
               : what == 4 ? (strange ? (double)INFINITY : plain)
                           : plain;
    }
}

// `before`: 0 and 1 are the verdict so far, 2: it begins here.
static op_trial finite_case(int64_t count, int64_t before, bool strange, op_draw *d)
{
    enum { ROWS = 3, ROW = 1 };
    op_trial t = op_trial_make(HR_OP_FINITE, (op_attr){.slot = ROW});
    op_trial_add_in(&t, HR_F64, DIMS(count));
    fill_odd(t.in[0], count, d, strange);
    if (before < 2) {
        op_draw_numbers(d, &t, DIMS(1), before, before);
        op_trial_add_in(&t, HR_F32, DIMS(ROWS, 3));
        op_fill(t.in[2], (uint64_t)3 * ROWS, &d->state, 0.0, 9.0);
    }
    op_trial_add_out(&t, HR_I32, DIMS(1));
    op_trial_add_out(&t, HR_F32, DIMS(ROWS, 3));
    return t;
}

START_TEST(finite_counts_what_the_judge_counts)
{
    op_draw d = SEED((uint64_t)_i);
    open_devices();
    for (int64_t before = 0; before < 3; before++) {
        for (int strange = 0; strange < 2; strange++) {
            op_trial t = finite_case(lengths[_i % LENGTHS], before, strange == 1, &d);
            judge_in_type(&t, types[_i / LENGTHS], 1);
        }
    }
    close_devices();
}
END_TEST

START_TEST(gradients_are_summed_clipped_and_unscaled)
{
    const int64_t count = lengths[_i % LENGTHS];
    op_draw d = SEED((uint64_t)_i);
    open_devices();
    for (int more = 0; more < 2; more++) {
        op_trial sum = op_trial_make(HR_OP_SQUARE_SUM, (op_attr){0});
        op_trial clip = op_trial_make(HR_OP_CLIP, (op_attr){.epsilon = 1.0});
        op_trial scale = op_trial_make(HR_OP_UNSCALE, (op_attr){.scale = more == 1 ? 0.0 : 3.0});
        op_draw_in(&d, &sum, DIMS(count), -1.0, 1.0);
        op_draw_in(&d, &clip, DIMS(count), -1.0, 1.0);
        op_draw_in(&d, &scale, DIMS(count), -9.0, 9.0);
        op_draw_in(&d, &clip, DIMS(1), more == 1 ? 0.0 : 2.0, more == 1 ? 0.5 : 9.0);
        if (more == 1) {
            op_draw_in(&d, &sum, DIMS(1), 0.0, 9.0);
            op_draw_in(&d, &scale, DIMS(1), 1024.0, 1024.5);
        }
        op_trial_add_out(&sum, HR_F64, DIMS(1));
        op_trial_add_out(&clip, HR_F64, DIMS(count));
        op_trial_add_out(&scale, HR_F64, DIMS(count));
        judge_in_type(&sum, types[_i / LENGTHS], 1);
        judge_in_type(&clip, types[_i / LENGTHS], 1);
        judge_in_type(&scale, types[_i / LENGTHS], 1);
    }
    close_devices();
}
END_TEST

// Every way through: finite or not, the last clean step or not, with a floor or without, small and large.
START_TEST(the_loss_scale_follows_the_verdict)
{
    static const double scales[] = {1.0, 1024.0, 1.8446744073709552e19};
    open_devices();
    for (int way = 0; way < 24; way++) {
        const double given[] = {scales[way / 8], 1 + way % 2, way / 2 % 2};
        op_trial t = op_trial_make(HR_OP_SCALE_UPDATE, (op_attr){.count = 3, .epsilon = way / 4 % 2});
        for (uint32_t k = 0; k < 3; k++) {
            op_trial_add_in(&t, k == 0 ? HR_F32 : HR_I32, DIMS(1));
            t.in[k][0] = given[k];
        }
        op_trial_add_out(&t, HR_F32, DIMS(1));
        op_trial_add_out(&t, HR_I32, DIMS(1));
        op_trial ours = run_both(&t, HR_F32, 1);
        ck_assert_double_eq(ours.in[0][0], t.in[0][0]);
        ck_assert_double_eq(ours.in[1][0], t.in[1][0]);
        op_trial_deinit(&ours);
        op_trial_deinit(&t);
    }
    close_devices();
}
END_TEST

// ---- adafactor ------------------------------------------------------------------------------------------------

static void add_updated(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK], double low)
{
    op_draw_in(d, t, dims, low, 1.0);
    op_trial_add_out(t, HR_F64, dims);
}

static const int64_t variables[][OP_MAX_RANK] = {
    {1},       {16384},   {16385},       {40001},   // vectors of one block and of many
    {1, 1},    {64, 128}, {65, 256},     {70, 131}, // one tile, a second one with a few rows or columns
    {3, 5, 8}, {200, 24}, {2, 3, 33, 9},            // many matrices
};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

static op_trial adafactor_case(const int64_t dims[OP_MAX_RANK], bool keras, op_draw *d)
{
    int64_t rows[OP_MAX_RANK] = {0}, columns[OP_MAX_RANK] = {0};
    uint32_t rank = 0;
    op_trial t = op_trial_make(keras ? HR_OP_ADAFACTOR_KERAS : HR_OP_ADAFACTOR,
                               (op_attr){.beta1 = 1e-3, .beta2 = -0.8, .epsilon = 1e-30, .rate = 0.04});
    while (rank < OP_MAX_RANK && dims[rank] != 0) {
        rank++;
    }
    for (uint32_t k = 0; k + 1 < rank; k++) {
        rows[k] = dims[k];
        columns[k] = k + 2 < rank ? dims[k] : dims[k + 1];
    }
    add_updated(d, &t, dims, -1.0);
    op_draw_in(d, &t, dims, -1.0, 1.0);
    if (rank > 1) {
        add_updated(d, &t, rows, 0.01);
        add_updated(d, &t, columns, 0.01);
    }
    if (rank < 2 || keras) {
        add_updated(d, &t, dims, 0.01);
    }
    return t;
}

START_TEST(adafactor_is_the_judges_at_every_shape)
{
    const int64_t *dims = variables[_i % VARIABLES];
    op_draw d = SEED((uint64_t)_i);
    open_devices();
    for (int keras = 0; keras < (dims[1] == 0 ? 1 : 2); keras++) {
        op_trial t = adafactor_case(dims, keras == 1, &d);
        judge_in_type(&t, types[_i / VARIABLES], 1 + (uint64_t)_i % 3);
    }
    close_devices();
}
END_TEST

// So many that tiles become higher and blocks take more than one.
START_TEST(adafactor_is_the_judges_with_many_tiles)
{
    op_draw d = SEED(1);
    open_devices();
    op_trial t = adafactor_case(DIMS(1025, 65, 1), false, &d);
    judge_in_type(&t, HR_F32, 2);
    close_devices();
}
END_TEST

// ---- adam in bytes --------------------------------------------------------------------------------------------

// Every code is among the moments; `size` is that of m, its square that of v.
static op_trial adam8bit_case(int64_t count, double size, op_draw *d)
{
    const int64_t blocks = (count + 255) / 256;
    op_trial t =
        op_trial_make(HR_OP_ADAM8BIT, (op_attr){.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7, .rate = 0.04});
    add_updated(d, &t, DIMS(count), -1.0);
    op_draw_in(d, &t, DIMS(count), -size, size);
    for (uint32_t k = 2; k < 4; k++) {
        op_trial_add_in(&t, HR_U8, DIMS(count));
        op_trial_add_out(&t, HR_U8, DIMS(count));
        for (int64_t i = 0; i < count; i++) {
            t.in[k][i] = (double)((i * (k == 2 ? 37 : 11)) % 256);
        }
    }
    op_trial_add_in(&t, HR_F32, DIMS(2, blocks));
    op_trial_add_out(&t, HR_F32, DIMS(2, blocks));
    for (int64_t i = 0; i < 2 * blocks; i++) {
        t.in[4][i] = (i < blocks ? size : size * size) * (1.0 + (double)(i % 7));
    }
    return t;
}

static const double sizes[] = {1.0, 1e-3, 1e-9, 1e-17};
static const int64_t coded[] = {1, 255, 256, 257, 5003};
enum { SIZES = sizeof sizes / sizeof sizes[0], CODED = sizeof coded / sizeof coded[0] };

// Where rounding decides between two codes, they are neighbours.
START_TEST(codes_are_the_judges_or_their_neighbours)
{
    const int64_t count = coded[_i % CODED];
    op_draw d = SEED((uint64_t)_i);
    open_devices();
    op_trial t = adam8bit_case(count, sizes[_i / CODED % SIZES], &d);
    op_trial ours = run_both(&t, types[_i / CODED / SIZES], 3);
    int64_t different = 0;
    for (uint32_t k = 2; k < 4; k++) {
        for (int64_t i = 0; i < count; i++) {
            ck_assert_double_le(fabs(ours.in[k][i] - t.in[k][i]), 1.0);
            different += ours.in[k][i] != t.in[k][i];
        }
    }
    ck_assert_int_le(different, 1 + count / 1000);
    op_trial_deinit(&ours);
    op_trial_deinit(&t);
    close_devices();
}
END_TEST

// ---- lstm -----------------------------------------------------------------------------------------------------

// As many units as make a card take them in vectors, and one step of a single unit.
START_TEST(lstm_is_the_judges_in_vectors)
{
    const bool many = _i % 2 == 0;
    const int64_t samples = many ? 32768 : 1, units = many ? 8 : 1, steps = many ? 2 : 1;
    op_draw d = SEED((uint64_t)_i);
    open_devices();
    op_trial t = op_trial_make(HR_OP_LSTM, (op_attr){0});
    op_draw_in(&d, &t, DIMS(samples, steps, 4 * units), -2.0, 2.0);
    op_draw_in(&d, &t, DIMS(units, 4 * units), -0.2, 0.2);
    op_trial_infer_out(&t, 3);
    op_trial ours = run_both(&t, types[_i / 2], 1);
    op_trial_deinit(&ours);
    double *dy = calloc((size_t)(samples * steps * units), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, (uint64_t)(samples * steps * units), &d.state, -1.0, 1.0);
    op_trial backward = op_trial_backward(&t, 0, dy);
    judge_in_type(&backward, types[_i / 2], 1);
    op_trial_deinit(&t);
    free(dy);
    close_devices();
}
END_TEST

START_TEST(gru_is_the_judges_in_vectors)
{
    const bool many = _i % 2 == 0;
    const int64_t samples = many ? 32768 : 1, units = many ? 8 : 1, steps = many ? 2 : 1;
    op_draw d = SEED((uint64_t)_i);
    open_devices();
    op_trial t = op_trial_make(HR_OP_GRU, (op_attr){0});
    op_draw_in(&d, &t, DIMS(samples, steps, 3 * units), -2.0, 2.0);
    op_draw_in(&d, &t, DIMS(units, 3 * units), -0.2, 0.2);
    op_draw_in(&d, &t, DIMS(3 * units), -0.5, 0.5);
    op_trial_infer_out(&t, 2);
    op_trial ours = run_both(&t, types[_i / 2], 1);
    op_trial_deinit(&ours);
    double *dy = calloc((size_t)(samples * steps * units), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, (uint64_t)(samples * steps * units), &d.state, -1.0, 1.0);
    op_trial backward = op_trial_backward(&t, 0, dy);
    judge_in_type(&backward, types[_i / 2], 1);
    op_trial_deinit(&t);
    free(dy);
    close_devices();
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_updates");
    TCase *all = tcase_create("against the judge");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, finite_counts_what_the_judge_counts, 0, TYPES * LENGTHS);
    tcase_add_loop_test(all, gradients_are_summed_clipped_and_unscaled, 0, TYPES * LENGTHS);
    tcase_add_test(all, the_loss_scale_follows_the_verdict);
    tcase_add_loop_test(all, adafactor_is_the_judges_at_every_shape, 0, TYPES * VARIABLES);
    tcase_add_test(all, adafactor_is_the_judges_with_many_tiles);
    tcase_add_loop_test(all, codes_are_the_judges_or_their_neighbours, 0, TYPES * SIZES * CODED);
    tcase_add_loop_test(all, lstm_is_the_judges_in_vectors, 0, TYPES * 2);
    tcase_add_loop_test(all, gru_is_the_judges_in_vectors, 0, TYPES * 2);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
