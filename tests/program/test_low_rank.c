// SPDX-License-Identifier: Apache-2.0
// compress.low_rank as models: which weights become factors of what shapes, by an independent count; that the break-even is F4's; that
// factors begin with the variance of the weights for which they stand; what is refused.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/model_checks.h"

static void set(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static hr_status create(const char *name, const char *rank, hr_model **model, hr_err *err)
{
    hr_preset *preset = NULL;
    hr_preset_search_beside(".");
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, err) == HR_OK, "%s", err->sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    set(&knobs, rank);
    const hr_status status = model_create(preset, &knobs, model, NULL, err);
    hr_preset_close(preset);
    return status;
}

static hr_model *model_of(const char *name, const char *rank)
{
    hr_model *model = NULL;
    hr_err err = {0};
    ck_assert_msg(create(name, rank, &model, &err) == HR_OK, "%s", err.sentence);
    return model;
}

static const model_param *find(const hr_model *m, const char *name)
{
    for (uint32_t k = 0; k < m->param_count; k++) {
        if (strcmp(m->params[k].name, name) == 0) {
            return &m->params[k];
        }
    }
    return NULL;
}

// ---- counts ---------------------------------------------------------------------------------------------------------

// Reference tensorflow.md F4: 10816 x 64 has the break-even rank 63.6 and 348,160 weights, 1,392,640 B, at rank 32.
START_TEST(the_dense_layer_of_the_cifar_network_has_the_published_counts)
{
    hr_model *m = model_of("cifar10_separable_cnn", "compress.low_rank=32");
    assert_shape(&param_of(m, "dense/weights_u")->shape, "10816x32");
    assert_shape(&param_of(m, "dense/weights_v")->shape, "32x64");
    ck_assert_uint_eq(layer_parameters(m, "dense") - 64, 348160);
    ck_assert_ptr_null(find(m, "dense/weights"));
    model_destroy(m);
    m = model_of("cifar10_separable_cnn", "compress.low_rank=63");
    ck_assert_ptr_nonnull(find(m, "dense/weights_u"));
    model_destroy(m);
    hr_err err = {0};
    ck_assert_int_eq(create("cifar10_separable_cnn", "compress.low_rank=64", &m, &err), HR_KNOB);
    ck_assert_msg(strstr(err.sentence, "dense/weights is below rank 63.6") != NULL, "%s", err.sentence);
}
END_TEST

// What the factors of weights are, found by trying every rank.
static bool expect_dense(double share, int64_t m, int64_t n, int64_t *rank)
{
    *rank = 0;
    while ((double)((*rank + 1) * (m + n)) <= share * (double)(m * n)) {
        ++*rank;
    }
    *rank = *rank > 0 ? *rank : 1;
    return *rank * (m + n) < m * n;
}

static void assert_pair(const hr_model *m, const char *weights, const hr_shape *shape, double share)
{
    char name[160];
    int64_t rank;
    const bool shrinks = expect_dense(share, shape->dim[0], shape->dim[1], &rank);
    (void)snprintf(name, sizeof name, "%s_u", weights);
    const model_param *u = find(m, name);
    (void)snprintf(name, sizeof name, "%s_v", weights);
    const model_param *v = find(m, name);
    if (!shrinks || shape->rank != 2) {
        return;
    }
    ck_assert_msg(u != NULL && v != NULL, "%s stays", weights);
    ck_assert_int_eq(u->shape.dim[0], shape->dim[0]);
    ck_assert_int_eq(u->shape.dim[1], rank);
    ck_assert_int_eq(v->shape.dim[0], rank);
    ck_assert_int_eq(v->shape.dim[1], shape->dim[1]);
}

static uint64_t elements_of(const hr_shape *shape)
{
    uint64_t elements = 0;
    ck_assert(shape_elements(shape, &elements));
    return elements;
}

// Every weight is there, or its factors, which are fewer; everything else is as it was.
static uint32_t assert_replaced(const hr_model *base, const hr_model *low, double share)
{
    uint32_t replaced = 0;
    for (uint32_t k = 0; k < base->param_count; k++) {
        const model_param *p = &base->params[k], *same = find(low, p->name);
        uint64_t factors = 0;
        for (uint32_t n = 0; n < low->param_count && same == NULL; n++) {
            const model_param *f = &low->params[n];
            const size_t length = strlen(p->name);
            const bool of_it = f->factor != MODEL_FACTOR_NONE && strncmp(f->name, p->name, length) == 0 &&
                               f->name[length] == '_' && strchr(f->name + length + 1, '_') == NULL;
            factors += of_it ? elements_of(&f->shape) : 0;
        }
        ck_assert(same != NULL ? shape_equal(&same->shape, &p->shape) : factors < elements_of(&p->shape));
        ck_assert_msg(same != NULL || factors > 0, "%s is gone", p->name);
        ck_assert_msg(same != NULL || p->shape.rank == 4 ||
                          (double)factors <= share * (double)elements_of(&p->shape) || factors == 0 ||
                          (int64_t)factors == p->shape.dim[0] + p->shape.dim[1],
                      "%s keeps more than %g", p->name, share);
        if (same == NULL) {
            assert_pair(low, p->name, &p->shape, share);
            replaced++;
        }
    }
    return replaced;
}

static void assert_all_trained(const hr_model *m)
{
    for (uint32_t k = 0; k < m->param_count; k++) {
        ck_assert_int_eq(m->params[k].trainable, m->params[k].category == HR_CATEGORY_WEIGHTS);
    }
}

START_TEST(weights_become_factors_where_these_are_fewer)
{
    static const struct {
        const char *pair;
        double share;
    } ratios[] = {{"compress.low_rank=ratio:0.5", 0.5}, {"compress.low_rank=ratio:0.8", 0.8}};
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_preset_search_beside(".");
    ck_assert_int_eq(hr_preset_list("models", &entries, &count, NULL), HR_OK);
    for (size_t k = 0; k < count; k++) {
        for (size_t r = 0; r < COUNT(ratios) && strstr(entries[k].name, "_tiny") != NULL; r++) {
            hr_model *base = model_of(entries[k].name, "compress.low_rank=none");
            hr_model *low = model_of(entries[k].name, ratios[r].pair);
            assert_consistent(low);
            assert_all_trained(low);
            ck_assert_uint_gt(assert_replaced(base, low, ratios[r].share), 0);
            ck_assert_uint_lt(low->parameters, base->parameters);
            model_destroy(base);
            model_destroy(low);
        }
    }
    hr_preset_list_free(entries);
}
END_TEST

// ---- one of each -----------------------------------------------------------------------------------------------------

#define TEXT(knobs)                                                                                          \
    "device: {vram: 1GiB}\n" knobs "model:\n"                                                                \
    "  name: small\n"                                                                                        \
    "  input: {shape: [12, 12, 16]}\n"                                                                       \
    "  classes: 4\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n"                                                                                            \
    "    - {name: wide, kind: conv2d, filters: 24, kernel: 3, stride: 2, padding: 1, activation: relu}\n"    \
    "    - {name: thin, kind: conv2d, filters: 24, kernel: 1, stride: 2}\n"                                  \
    "    - {name: apart, kind: conv2d, filters: 24, kernel: 3, groups: 2}\n"                                 \
    "    - {kind: flatten}\n"                                                                                \
    "    - {name: inner, kind: dense, units: 40, activation: relu}\n"                                        \
    "    - {name: last, kind: dense, units: 4}\n"

static const model_node *giver(const hr_model *m, model_ref ref)
{
    ck_assert(!ref.is_param);
    return giver_of(m, ref.index);
}

static const model_node *node_of(const hr_model *m, const char *value)
{
    return giver_of(m, (uint32_t)(value_of(m, value) - m->values));
}

static const char *param_name(const hr_model *m, model_ref ref)
{
    ck_assert(ref.is_param);
    return m->params[ref.index].name;
}

// The first product has no bias, the last the layer's; the kernel with its stride and padding is the middle one.
START_TEST(a_convolution_is_tucker_2)
{
    hr_model *m = model_from_text(TEXT("compress: {low_rank: 8}\n"));
    const model_node *v = node_of(m, "wide/conv"), *core = giver(m, v->in[0]), *u = giver(m, core->in[0]);
    ck_assert_str_eq(param_name(m, v->in[1]), "wide/weights_v");
    ck_assert_str_eq(param_name(m, v->in[2]), "wide/bias");
    ck_assert_str_eq(param_name(m, core->in[1]), "wide/weights_core");
    ck_assert_str_eq(param_name(m, u->in[1]), "wide/weights_u");
    ck_assert_uint_eq(core->in_count, 2);
    ck_assert_int_eq(core->attr.stride_h, 2);
    ck_assert_int_eq(core->attr.pad_top, 1);
    ck_assert_int_eq(u->attr.stride_h, 1);
    ck_assert_int_eq(v->attr.kernel_w, 1);
    assert_shape(&param_of(m, "wide/weights_u")->shape, "1x1x16x8");
    assert_shape(&param_of(m, "wide/weights_core")->shape, "3x3x8x8");
    assert_shape(&param_of(m, "wide/weights_v")->shape, "1x1x8x24");
    model_destroy(m);
}
END_TEST

START_TEST(single_pixels_are_two_products_and_groups_stay)
{
    hr_model *m = model_from_text(TEXT("compress: {low_rank: 8}\n"));
    const model_node *v = node_of(m, "thin/out"), *u = giver(m, v->in[0]);
    ck_assert_int_eq(u->attr.stride_h, 2); // where it is cheaper
    ck_assert_int_eq(v->attr.stride_h, 1);
    assert_shape(&param_of(m, "thin/weights_u")->shape, "1x1x24x8");
    assert_shape(&param_of(m, "thin/weights_v")->shape, "1x1x8x24");
    assert_shape(&param_of(m, "apart/weights")->shape, "3x3x12x24");
    assert_shape(&param_of(m, "last/weights")->shape, "40x4"); // 8 is above its rank
    assert_shape(&param_of(m, "inner/weights_u")->shape, "24x8");
    model_destroy(m);
}
END_TEST

START_TEST(a_ratio_is_the_share_of_weights_that_stay)
{
    hr_model *m = model_from_text(TEXT("compress: {low_rank: 'ratio:0.5'}\n"));
    const hr_shape *core = &param_of(m, "wide/weights_core")->shape;
    const int64_t in = core->dim[2], out = core->dim[3];
    const int64_t kept = 16 * in + 9 * in * out + out * 24, full = 9 * 16 * 24;
    ck_assert_int_le(2 * kept, full);
    ck_assert_int_gt(2 * (16 * (in + 1) + 9 * (in + 1) * (out + 1) + (out + 1) * 24), full);
    ck_assert_double_eq_tol((double)in / 16, (double)out / 24, 1.0 / 16);
    model_destroy(m);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    fail_every_allocation(TEXT("compress: {low_rank: 8}\n"), HR_OK);
}
END_TEST

// ---- the beginning ---------------------------------------------------------------------------------------------------

static double *values_of(const hr_model *m, const char *name, uint64_t seed)
{
    const model_param *p = param_of(m, name);
    const uint64_t elements = elements_of(&p->shape);
    float *f = calloc(elements, sizeof *f);
    double *d = calloc(elements, sizeof *d);
    ck_assert(f != NULL && d != NULL);
    model_init_param(m, (uint32_t)(p - m->params), seed, f);
    for (uint64_t k = 0; k < elements; k++) {
        d[k] = (double)f[k];
    }
    free(f);
    return d;
}

// Mean square of the elements of u·v, over seeds.
static double square_of_product(const hr_model *m, const char *layer, int64_t rows, int64_t rank,
                                int64_t columns)
{
    enum { SEEDS = 20 };
    char name[2][64];
    double sum = 0;
    (void)snprintf(name[0], sizeof name[0], "%s/weights_u", layer);
    (void)snprintf(name[1], sizeof name[1], "%s/weights_v", layer);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        double *u = values_of(m, name[0], seed), *v = values_of(m, name[1], seed);
        for (int64_t k = 0; k < rows * columns; k++) {
            double y = 0;
            for (int64_t r = 0; r < rank; r++) {
                y += u[k / columns * rank + r] * v[r * columns + k % columns];
            }
            sum += y * y;
        }
        free(u);
        free(v);
    }
    return sum / (double)(SEEDS * rows * columns);
}

START_TEST(factors_begin_with_the_variance_of_their_weights)
{
    hr_model *m = model_from_text(TEXT("compress: {low_rank: 8}\n"));
    const double inner = square_of_product(m, "inner", 24, 8, 40); // Glorot's: 2 / (24 + 40)
    ck_assert_double_eq_tol(inner * 32, 1, 0.1);
    const double thin = square_of_product(m, "thin", 24, 8, 24);
    ck_assert_double_eq_tol(thin * 24, 1, 0.1);
    const model_param *u = param_of(m, "wide/weights_u"), *core = param_of(m, "wide/weights_core"),
                      *v = param_of(m, "wide/weights_v");
    const double wide = 8 * 8 * u->init_scale * core->init_scale * v->init_scale;
    ck_assert_double_eq_tol(u->init_scale * core->init_scale * v->init_scale * wide * 9 * 20, 1, 1e-9);
    model_destroy(m);
}
END_TEST

START_TEST(a_rank_that_helps_no_layer_is_refused)
{
    static const struct {
        const char *rank, *sentence;
    } rows[] = {
        {"compress.low_rank=65",
         "=65 is above the full rank of every layer of model mlp_tiny: dense/weights has 64"},
        {"compress.low_rank=48",
         "=48 makes no layer of model mlp_tiny smaller: dense/weights is below rank 48.0"},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        hr_model *m = NULL;
        hr_err err = {0};
        ck_assert_int_eq(create("mlp_tiny", rows[k].rank, &m, &err), HR_KNOB);
        ck_assert_ptr_null(m);
        ck_assert_msg(strstr(err.sentence, rows[k].sentence) != NULL, "%s", err.sentence);
        ck_assert_str_eq(err.hint, "-s compress.low_rank=ratio:0.5");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("low rank");
    TCase *tcase = tcase_create("low rank");
    tcase_add_test(tcase, the_dense_layer_of_the_cifar_network_has_the_published_counts);
    tcase_add_test(tcase, weights_become_factors_where_these_are_fewer);
    tcase_add_test(tcase, a_convolution_is_tucker_2);
    tcase_add_test(tcase, single_pixels_are_two_products_and_groups_stay);
    tcase_add_test(tcase, a_ratio_is_the_share_of_weights_that_stay);
    tcase_add_test(tcase, each_allocation_may_fail);
    tcase_add_test(tcase, factors_begin_with_the_variance_of_their_weights);
    tcase_add_test(tcase, a_rank_that_helps_no_layer_is_refused);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
