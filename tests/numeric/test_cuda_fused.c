// SPDX-License-Identifier: Apache-2.0
// What one instruction does in place of two (TARGET_ADDS, TARGET_CUTS, TARGET_NORMALISES, …): the bits of the two, on the card in every type and
// on the judge, whose optional operands the card's are held against nowhere else.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/two_devices.h"

enum { SKIPPED = 77, SUBJECTS = TWO_TYPES + 1 };
#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

static two_devices two;

// Rows that are whole vectors and not, channels that share a block and fill several.
static const struct {
    int64_t rows, channels;
} tables[] = {{1, 1}, {7, 3}, {64, 8}, {300, 64}, {33, 130}, {5, 2100}, {1025, 24}};
enum { TABLES = sizeof tables / sizeof *tables };

static const hr_act acts[] = {HR_ACT_NONE, HR_ACT_RELU, HR_ACT_RELU6};
enum { ACTS = sizeof acts / sizeof *acts };

// Of one case: where, in which type, and how large.
typedef struct subject {
    op_device device;
    hr_dtype type, wide;
    int64_t rows, channels;
    hr_act act;
} subject;

static subject subject_at(int i, hr_act act)
{
    const int which = i % SUBJECTS, table = i / SUBJECTS;
    const bool judged = which == TWO_TYPES;
    return (subject){.device = judged ? two.judge : two.card,
                     .type = judged ? HR_F64 : two_types[which],
                     .wide = judged ? HR_F64 : HR_F32,
                     .rows = tables[table].rows,
                     .channels = tables[table].channels,
                     .act = act};
}

static void add_drawn(op_trial *t, hr_dtype dtype, const int64_t dims[OP_MAX_RANK], double low, double high)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, dtype, dims);
    op_fill(t->in[k], op_trial_in_count(t, k), &two.state, low, high);
}

static void add_image(op_trial *t, const subject *s)
{
    add_drawn(t, s->type, DIMS(s->rows, s->channels), -3.0, 6.0);
}

static void add_channels(op_trial *t, const subject *s, double low, double high)
{
    add_drawn(t, s->wide, DIMS(s->channels), low, high);
}

static void add_same(op_trial *t, const op_operand *like, const double *values)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, (hr_dtype)like->dtype, like->shape.dim);
    memcpy(t->in[k], values, op_trial_in_count(t, k) * sizeof *values);
}

static void add_inputs_of(op_trial *t, const op_trial *from)
{
    for (uint32_t k = 0; k < from->query.in_count; k++) {
        add_same(t, &from->query.in[k], from->in[k]);
    }
}

static void assert_same(const op_trial *fused, const op_trial *apart, uint32_t k)
{
    ck_assert_mem_eq(fused->out[k], apart->out[k], op_trial_out_count(fused, k) * sizeof *fused->out[k]);
}

// ---- sums -----------------------------------------------------------------------------------------------------

static op_trial normalise(hr_op op, const subject *s)
{
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 1e-3, .momentum = 0.1});
    add_image(&t, s);
    add_channels(&t, s, 0.5, 1.5);
    add_channels(&t, s, -1.0, 1.0);
    add_channels(&t, s, -1.0, 1.0);
    add_channels(&t, s, 0.5, 2.0);
    return t;
}

static void check_sum_behind(hr_op op, const subject *s)
{
    const uint32_t results = op == HR_OP_BATCH_NORM ? 3 : 1;
    op_trial norm = normalise(op, s), sum = op_trial_make(HR_OP_ADD, (op_attr){.act = (int32_t)s->act});
    op_trial fused = op_trial_make(op, norm.query.attr);
    fused.query.attr.act = (int32_t)s->act;
    add_inputs_of(&fused, &norm);
    add_image(&fused, s);
    op_trial_infer_out(&fused, results);
    op_trial_infer_out(&norm, results);
    op_trial_run(&norm, s->device, NULL);
    add_same(&sum, &norm.query.out[0], norm.out[0]);
    add_same(&sum, &fused.query.in[5], fused.in[5]);
    op_trial_infer_out(&sum, 1);
    op_trial_run(&sum, s->device, NULL);
    op_trial_run(&fused, s->device, NULL);
    assert_same(&fused, &sum, 0);
    for (uint32_t k = 1; k < results; k++) {
        assert_same(&fused, &norm, k);
    }
    op_trial_deinit(&norm);
    op_trial_deinit(&sum);
    op_trial_deinit(&fused);
}

START_TEST(a_sum_behind_a_normalisation)
{
    for (int k = 0; k < ACTS; k++) {
        const subject s = subject_at(_i, acts[k]);
        check_sum_behind(HR_OP_BATCH_NORM, &s);
        check_sum_behind(HR_OP_BATCH_NORM_APPLY, &s);
    }
}
END_TEST

// ---- what is normalised while it is read ------------------------------------------------------------------------

// The statistics alone of what `norm` was given: those that it made.
static void check_statistics(const subject *s, const op_trial *norm)
{
    op_trial alone = op_trial_make(HR_OP_BATCH_NORM_STATISTICS, norm->query.attr);
    add_same(&alone, &norm->query.in[0], norm->in[0]);
    add_channels(&alone, s, -1.0, 1.0);
    add_channels(&alone, s, 0.5, 2.0);
    op_trial_infer_out(&alone, 2);
    op_trial_run(&alone, s->device, NULL);
    for (uint32_t k = 0; k < 2; k++) {
        ck_assert_mem_eq(alone.out[k], norm->out[k + 1],
                         op_trial_out_count(&alone, k) * sizeof *alone.out[k]);
    }
    op_trial_deinit(&alone);
}

// Appends what `norm`, which has run, normalises with: gamma, beta, mean and variance.
static void add_norm_of(op_trial *t, const op_trial *norm)
{
    add_same(t, &norm->query.in[1], norm->in[1]);
    add_same(t, &norm->query.in[2], norm->in[2]);
    add_same(t, &norm->query.out[1], norm->out[1]);
    add_same(t, &norm->query.out[2], norm->out[2]);
}

static void check_normalised_summand(hr_op op, const subject *s)
{
    const uint32_t results = op == HR_OP_BATCH_NORM ? 3 : 1;
    op_trial other = normalise(HR_OP_BATCH_NORM, s), apart = normalise(op, s);
    op_trial_infer_out(&other, 3);
    op_trial_run(&other, s->device, NULL);
    check_statistics(s, &other);
    apart.query.attr.act = (int32_t)s->act;
    op_trial fused = op_trial_make(op, apart.query.attr);
    add_inputs_of(&fused, &apart);
    add_same(&fused, &other.query.in[0], other.in[0]);
    add_norm_of(&fused, &other);
    add_same(&apart, &other.query.out[0], other.out[0]);
    op_trial_infer_out(&apart, results);
    op_trial_infer_out(&fused, results);
    op_trial_run(&apart, s->device, NULL);
    op_trial_run(&fused, s->device, NULL);
    for (uint32_t k = 0; k < results; k++) {
        assert_same(&fused, &apart, k);
    }
    op_trial_deinit(&other);
    op_trial_deinit(&apart);
    op_trial_deinit(&fused);
}

START_TEST(a_summand_that_is_normalised_first)
{
    for (int k = 0; k < ACTS; k++) {
        const subject s = subject_at(_i, acts[k]);
        check_normalised_summand(HR_OP_BATCH_NORM, &s);
        check_normalised_summand(HR_OP_BATCH_NORM_APPLY, &s);
    }
}
END_TEST

// Windows that overlap, that leave pixels out, that reach beyond the image; channels that are whole vectors, that are not,
// and whose vectors lie in two pixels.
static const struct {
    int64_t n, h, w, c;
    int32_t kernel, stride, pad;
} poolings[] = {{2, 8, 8, 8, 3, 2, 1},  {1, 7, 9, 64, 3, 2, 1},  {3, 6, 5, 3, 2, 2, 0},
                {2, 9, 9, 12, 2, 3, 0}, {4, 12, 11, 1, 5, 3, 2}, {2, 10, 7, 19, 3, 2, 0}};
enum { POOLINGS = sizeof poolings / sizeof *poolings };

static op_attr window_at(int i)
{
    const int32_t pad = poolings[i].pad;
    return (op_attr){.kernel_h = poolings[i].kernel,
                     .kernel_w = poolings[i].kernel,
                     .stride_h = poolings[i].stride,
                     .stride_w = poolings[i].stride,
                     .pad_top = pad,
                     .pad_left = pad,
                     .pad_bottom = pad,
                     .pad_right = pad};
}

// A normalisation of a pooling's image with the activation behind it, that has run.
static op_trial image_norm(int pooling, const subject *s)
{
    subject channels = *s;
    channels.channels = poolings[pooling].c;
    op_trial t =
        op_trial_make(HR_OP_BATCH_NORM, (op_attr){.epsilon = 1e-3, .momentum = 0.1, .act = (int32_t)s->act});
    add_drawn(&t, s->type,
              DIMS(poolings[pooling].n, poolings[pooling].h, poolings[pooling].w, poolings[pooling].c), -3.0,
              6.0);
    add_channels(&t, &channels, -4.0, 8.0);
    add_channels(&t, &channels, -1.0, 1.0);
    add_channels(&t, &channels, -1.0, 1.0);
    add_channels(&t, &channels, 0.5, 2.0);
    op_trial_infer_out(&t, 3);
    op_trial_run(&t, s->device, NULL);
    return t;
}

static void check_pooling(int pooling, const subject *s, uint32_t results)
{
    op_trial norm = image_norm(pooling, s), apart = op_trial_make(HR_OP_MAX_POOL, window_at(pooling));
    op_attr attr = window_at(pooling);
    attr.act = (int32_t)s->act;
    attr.epsilon = norm.query.attr.epsilon;
    op_trial fused = op_trial_make(HR_OP_MAX_POOL, attr);
    add_same(&apart, &norm.query.out[0], norm.out[0]);
    add_same(&fused, &norm.query.in[0], norm.in[0]);
    add_norm_of(&fused, &norm);
    op_trial_infer_out(&apart, results);
    op_trial_infer_out(&fused, results);
    op_trial_run(&apart, s->device, NULL);
    op_trial_run(&fused, s->device, NULL);
    for (uint32_t k = 0; k < results; k++) {
        assert_same(&fused, &apart, k);
    }
    op_trial_deinit(&norm);
    op_trial_deinit(&apart);
    op_trial_deinit(&fused);
}

START_TEST(a_pooling_that_normalises_its_image)
{
    for (int k = 0; k < ACTS; k++) {
        const subject s = subject_at(_i % SUBJECTS, acts[k]);
        check_pooling(_i / SUBJECTS, &s, 1);
        check_pooling(_i / SUBJECTS, &s, 2);
    }
}
END_TEST

static hr_op gradient_of(hr_act act)
{
    return act == HR_ACT_RELU6 ? HR_OP_RELU6_BWD : HR_OP_RELU_BWD;
}

START_TEST(a_sum_before_the_gradient_of_a_rectifier)
{
    for (int k = 1; k < ACTS; k++) {
        const subject s = subject_at(_i, acts[k]);
        op_trial sum = op_trial_make(HR_OP_ADD, (op_attr){0});
        op_trial fused = op_trial_make(gradient_of(s.act), (op_attr){0});
        op_trial apart = op_trial_make(gradient_of(s.act), (op_attr){0});
        for (int n = 0; n < 3; n++) { // y, and the two gradients
            add_image(&fused, &s);
        }
        fused.in[0][0] = 0.0;
        op_trial_add_out(&fused, s.type, fused.query.in[0].shape.dim);
        add_same(&sum, &fused.query.in[1], fused.in[1]);
        add_same(&sum, &fused.query.in[2], fused.in[2]);
        op_trial_infer_out(&sum, 1);
        op_trial_run(&sum, s.device, NULL);
        add_same(&apart, &fused.query.in[0], fused.in[0]);
        add_same(&apart, &sum.query.out[0], sum.out[0]);
        op_trial_add_out(&apart, s.type, fused.query.in[0].shape.dim);
        op_trial_run(&apart, s.device, NULL);
        op_trial_run(&fused, s.device, NULL);
        assert_same(&fused, &apart, 0);
        op_trial_deinit(&sum);
        op_trial_deinit(&fused);
        op_trial_deinit(&apart);
    }
}
END_TEST

// The gradient of a normalisation of rows, with or without a mean, of `s`; `more` is added to dx, NULL: nothing.
static op_trial gradient_of_rows(hr_op op, const subject *s, const op_trial *drawn, const op_trial *more)
{
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 1e-3});
    add_inputs_of(&t, drawn);
    if (more != NULL) {
        add_same(&t, &more->query.in[0], more->in[0]);
    }
    op_trial_add_out(&t, s->type, DIMS(s->rows, s->channels));
    for (uint32_t k = op == HR_OP_LAYER_NORM_BWD ? 2 : 1; k > 0; k--) {
        op_trial_add_out(&t, s->wide, DIMS(s->channels));
    }
    op_trial_run(&t, s->device, NULL);
    return t;
}

static void check_sum_behind_rows(hr_op op, const subject *s)
{
    op_trial drawn = op_trial_make(op, (op_attr){0}), more = op_trial_make(HR_OP_ADD, (op_attr){0});
    add_image(&drawn, s); // x and dy
    add_image(&drawn, s);
    add_channels(&drawn, s, 0.5, 1.5);
    for (int k = op == HR_OP_LAYER_NORM_BWD ? 2 : 1; k > 0; k--) { // mean, rstd
        add_drawn(&drawn, s->wide, DIMS(s->rows), 0.5, 1.5);
    }
    add_image(&more, s);
    op_trial fused = gradient_of_rows(op, s, &drawn, &more), apart = gradient_of_rows(op, s, &drawn, NULL);
    add_same(&more, &apart.query.out[0], apart.out[0]);
    op_trial_infer_out(&more, 1);
    op_trial_run(&more, s->device, NULL);
    assert_same(&fused, &more, 0);
    for (uint32_t k = 1; k < fused.query.out_count; k++) {
        assert_same(&fused, &apart, k);
    }
    op_trial_deinit(&drawn);
    op_trial_deinit(&more);
    op_trial_deinit(&fused);
    op_trial_deinit(&apart);
}

START_TEST(a_sum_behind_the_gradient_of_a_normalisation_of_rows)
{
    const subject s = subject_at(_i, HR_ACT_NONE);
    check_sum_behind_rows(HR_OP_LAYER_NORM_BWD, &s);
    check_sum_behind_rows(HR_OP_RMS_NORM_BWD, &s);
}
END_TEST

// ---- cuts -----------------------------------------------------------------------------------------------------

static void add_gradient_results(op_trial *t, const subject *s)
{
    op_trial_add_out(t, s->type, DIMS(s->rows, s->channels));
    op_trial_add_out(t, s->wide, DIMS(s->channels));
    op_trial_add_out(t, s->wide, DIMS(s->channels));
}

// batch_norm_bwd of what `norm` was given and has made; dy follows x.
static op_trial gradient_of_norm(const op_trial *norm, const op_operand *like, const double *dy)
{
    op_attr attr = norm->query.attr;
    attr.act = HR_ACT_NONE;
    op_trial t = op_trial_make(HR_OP_BATCH_NORM_BWD, attr);
    add_same(&t, &norm->query.in[0], norm->in[0]);
    add_same(&t, like, dy);
    add_same(&t, &norm->query.in[1], norm->in[1]);
    add_same(&t, &norm->query.out[1], norm->out[1]);
    add_same(&t, &norm->query.out[2], norm->out[2]);
    return t;
}

START_TEST(the_gradient_of_a_rectifier_before_that_of_a_normalisation)
{
    for (int k = 1; k < ACTS; k++) {
        const subject s = subject_at(_i, acts[k]);
        op_trial norm = normalise(HR_OP_BATCH_NORM, &s);
        norm.query.attr.act = (int32_t)s.act;
        for (uint64_t n = 0; n < op_trial_in_count(&norm, 1); n++) {
            norm.in[1][n] *= 4.0; // beyond six, too
        }
        op_trial_infer_out(&norm, 3);
        op_trial_run(&norm, s.device, NULL);
        op_trial cut = op_trial_make(gradient_of(s.act), (op_attr){0});
        add_same(&cut, &norm.query.out[0], norm.out[0]);
        add_image(&cut, &s);
        op_trial_add_out(&cut, s.type, cut.query.in[0].shape.dim);
        op_trial_run(&cut, s.device, NULL);
        op_trial apart = gradient_of_norm(&norm, &cut.query.out[0], cut.out[0]);
        add_gradient_results(&apart, &s);
        op_trial fused = gradient_of_norm(&norm, &cut.query.in[1], cut.in[1]);
        add_same(&fused, &norm.query.in[2], norm.in[2]);
        fused.query.attr.act = (int32_t)s.act;
        add_gradient_results(&fused, &s);
        op_trial_run(&apart, s.device, NULL);
        op_trial_run(&fused, s.device, NULL);
        for (uint32_t n = 0; n < 3; n++) {
            assert_same(&fused, &apart, n);
        }
        op_trial_deinit(&norm);
        op_trial_deinit(&cut);
        op_trial_deinit(&apart);
        op_trial_deinit(&fused);
    }
}
END_TEST

// Of x, a and b alike: with b or without, and what y behind the normalisation let through.
static void check_gate(const subject *s, bool two_gradients)
{
    op_trial norm = normalise(HR_OP_BATCH_NORM, s);
    op_trial_infer_out(&norm, 3);
    op_trial_run(&norm, s->device, NULL);
    op_trial cut = op_trial_make(gradient_of(s->act), (op_attr){0});
    for (int k = 0; k < (two_gradients ? 3 : 2); k++) { // y, a, b
        add_image(&cut, s);
    }
    op_trial_add_out(&cut, s->type, cut.query.in[0].shape.dim);
    op_trial_run(&cut, s->device, NULL);
    op_trial apart = gradient_of_norm(&norm, &cut.query.out[0], cut.out[0]);
    add_gradient_results(&apart, s);
    op_trial gated = gradient_of_norm(&norm, &cut.query.in[1], cut.in[1]);
    gated.query.attr.act = (int32_t)s->act;
    add_same(&gated, &cut.query.in[0], cut.in[0]);
    if (two_gradients) {
        add_same(&gated, &cut.query.in[2], cut.in[2]);
    }
    add_gradient_results(&gated, s);
    op_trial_add_out(&gated, s->type, cut.query.in[0].shape.dim);
    op_trial_run(&apart, s->device, NULL);
    op_trial_run(&gated, s->device, NULL);
    for (uint32_t n = 0; n < 3; n++) {
        assert_same(&gated, &apart, n);
    }
    ck_assert_mem_eq(gated.out[3], cut.out[0], op_trial_out_count(&cut, 0) * sizeof *cut.out[0]);
    op_trial_deinit(&norm);
    op_trial_deinit(&cut);
    op_trial_deinit(&apart);
    op_trial_deinit(&gated);
}

START_TEST(the_gradient_of_a_rectifier_as_a_result_of_that_of_a_normalisation)
{
    for (int k = 1; k < ACTS; k++) {
        const subject s = subject_at(_i, acts[k]);
        check_gate(&s, false);
        check_gate(&s, true);
    }
}
END_TEST

START_TEST(the_gradient_of_a_pooling_in_that_of_the_normalisation_before_it)
{
    const int pooling = _i / SUBJECTS;
    subject s = subject_at(_i % SUBJECTS, HR_ACT_NONE);
    s.channels = poolings[pooling].c;
    op_trial norm = image_norm(pooling, &s), pool = op_trial_make(HR_OP_MAX_POOL, window_at(pooling));
    add_same(&pool, &norm.query.out[0], norm.out[0]);
    op_trial_infer_out(&pool, 2);
    op_trial_run(&pool, s.device, NULL);
    op_trial back = op_trial_make(HR_OP_MAX_POOL_BWD_INDEX, window_at(pooling));
    add_same(&back, &pool.query.out[1], pool.out[1]);
    add_drawn(&back, s.type, pool.query.out[0].shape.dim, -3.0, 6.0);
    op_trial_add_out(&back, s.type, norm.query.in[0].shape.dim);
    op_trial_run(&back, s.device, NULL);
    op_trial apart = gradient_of_norm(&norm, &back.query.out[0], back.out[0]);
    op_trial fused = gradient_of_norm(&norm, &back.query.in[1], back.in[1]);
    add_same(&fused, &back.query.in[0], back.in[0]);
    const double epsilon = fused.query.attr.epsilon;
    fused.query.attr = window_at(pooling);
    fused.query.attr.epsilon = epsilon;
    op_trial *const both[] = {&apart, &fused};
    for (int k = 0; k < 2; k++) {
        op_trial_add_out(both[k], s.type, norm.query.in[0].shape.dim);
        op_trial_add_out(both[k], s.wide, DIMS(s.channels));
        op_trial_add_out(both[k], s.wide, DIMS(s.channels));
        op_trial_run(both[k], s.device, NULL);
    }
    for (uint32_t k = 0; k < 3; k++) {
        assert_same(&fused, &apart, k);
    }
    op_trial_deinit(&norm);
    op_trial_deinit(&pool);
    op_trial_deinit(&back);
    op_trial_deinit(&apart);
    op_trial_deinit(&fused);
}
END_TEST

static void open_devices(void)
{
    two_devices_open(&two);
}

static void close_devices(void)
{
    two_devices_close(&two);
}

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return SKIPPED;
    }
    Suite *suite = suite_create("cuda_fused");
    TCase *c = tcase_create("as two instructions");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, a_sum_behind_a_normalisation, 0, TABLES * SUBJECTS);
    tcase_add_loop_test(c, a_sum_before_the_gradient_of_a_rectifier, 0, TABLES * SUBJECTS);
    tcase_add_loop_test(c, a_sum_behind_the_gradient_of_a_normalisation_of_rows, 0, TABLES * SUBJECTS);
    tcase_add_loop_test(c, the_gradient_of_a_rectifier_before_that_of_a_normalisation, 0, TABLES * SUBJECTS);
    tcase_add_loop_test(c, the_gradient_of_a_rectifier_as_a_result_of_that_of_a_normalisation, 0,
                        TABLES * SUBJECTS);
    tcase_add_loop_test(c, a_summand_that_is_normalised_first, 0, TABLES * SUBJECTS);
    tcase_add_loop_test(c, a_pooling_that_normalises_its_image, 0, POOLINGS * SUBJECTS);
    tcase_add_loop_test(c, the_gradient_of_a_pooling_in_that_of_the_normalisation_before_it, 0,
                        POOLINGS * SUBJECTS);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
