// SPDX-License-Identifier: Apache-2.0
// Trained weights become factors: LAPACK's values beside a plain Jacobi, products beside the weights, the error beside what was
// dropped; what does not fit is left alone.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/half.h"
#include "base/host_mem.h"
#include "base/philox.h"
#include "train/decompose.h"
#include "train/svd.h"

static double draw(uint64_t k)
{
    uint32_t word[4];
    philox(philox_key_of(7, "decompose"), k, 0, word);
    return 2 * (double)philox_uniform(word[0]) - 1;
}

static double *random_matrix(int64_t count, uint64_t seed)
{
    double *a = calloc((size_t)count, sizeof *a);
    ck_assert_ptr_nonnull(a);
    for (int64_t k = 0; k < count; k++) {
        a[k] = draw(seed * 100000 + (uint64_t)k);
    }
    return a;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

// One-sided Jacobi: columns are turned until all are orthogonal; their lengths are the singular values.
static void jacobi(const double *a, int64_t m, int64_t n, double *s)
{
    double *c = calloc((size_t)(m * n), sizeof *c);
    memcpy(c, a, (size_t)(m * n) * sizeof *c);
    for (int sweep = 0; sweep < 60; sweep++) {
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                double alpha = 0, beta = 0, gamma = 0;
                for (int64_t i = 0; i < m; i++) {
                    alpha += c[i * n + p] * c[i * n + p];
                    beta += c[i * n + q] * c[i * n + q];
                    gamma += c[i * n + p] * c[i * n + q];
                }
                if (fabs(gamma) < 1e-300) {
                    continue;
                }
                const double zeta = (beta - alpha) / (2 * gamma);
                const double t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
                const double cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
                for (int64_t i = 0; i < m; i++) {
                    const double x = c[i * n + p], y = c[i * n + q];
                    c[i * n + p] = cosine * x - sine * y;
                    c[i * n + q] = sine * x + cosine * y;
                }
            }
        }
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] = 0;
        for (int64_t i = 0; i < m; i++) {
            s[j] += c[i * n + j] * c[i * n + j];
        }
        s[j] = sqrt(s[j]);
    }
    qsort(s, (size_t)n, sizeof *s, by_size);
    free(c);
}

static const int64_t sizes[][2] = {{5, 3}, {3, 7}, {20, 20}, {40, 13}, {1, 6}, {64, 100}};

START_TEST(lapacks_singular_values_are_jacobis_and_its_product_the_matrix)
{
    const int64_t m = sizes[_i][0], n = sizes[_i][1], k = m < n ? m : n;
    double *a = random_matrix(m * n, (uint64_t)_i), *lost = calloc((size_t)(m * n), sizeof *lost);
    double *u = calloc((size_t)(m * k), sizeof *u), *vt = calloc((size_t)(k * n), sizeof *vt);
    double s[128], plain[128];
    hr_err err = {0};
    memcpy(lost, a, (size_t)(m * n) * sizeof *a);
    ck_assert_msg(svd(lost, m, n, u, s, vt, &err) == HR_OK, "%s: %s", err.sentence, err.hint);
    jacobi(a, m, n, plain);
    for (int64_t r = 0; r < k; r++) {
        ck_assert_double_eq_tol(s[r], plain[r], 1e-10);
        ck_assert(r == 0 || s[r] <= s[r - 1]);
    }
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0;
        for (int64_t r = 0; r < k; r++) {
            sum += u[i / n * k + r] * s[r] * vt[r * n + i % n];
        }
        ck_assert_double_eq_tol(sum, a[i], 1e-10);
    }
    free(a);
    free(lost);
    free(u);
    free(vt);
}
END_TEST

START_TEST(what_is_not_finite_is_refused)
{
    double a[4] = {1, (double)NAN, 2, 3}, u[4], s[2], vt[4];
    hr_err err = {0};
    ck_assert_int_eq(svd(a, 2, 2, u, s, vt, &err), HR_STATE);
    ck_assert_msg(strstr(err.sentence, "weights of 2x2: they are not finite") != NULL, "%s", err.sentence);
}
END_TEST

// ---- a store and a model ------------------------------------------------------------------------------------------------

static model_param params[3];
static const model_layer layer = {.name = "layer", .kind = "dense"};

// A model of one layer whose weights [kh, kw, m, n] (kh 0: [m, n]) have factors of these ranks.
static hr_model model_of(int64_t kernel, int64_t m, int64_t n, int64_t in, int64_t out)
{
    const bool image = kernel > 0;
    uint32_t count = 0;
    params[count++] = (model_param){.name = "layer/weights_u",
                                    .factor = MODEL_FACTOR_U,
                                    .shape = image ? shape_of(4, (const int64_t[]){1, 1, m, in})
                                                   : shape_of(2, (const int64_t[]){m, in})};
    if (kernel > 1) {
        params[count++] = (model_param){.name = "layer/weights_core",
                                        .factor = MODEL_FACTOR_CORE,
                                        .shape = shape_of(4, (const int64_t[]){kernel, kernel, in, out})};
    }
    params[count++] = (model_param){.name = "layer/weights_v",
                                    .factor = MODEL_FACTOR_V,
                                    .shape = image ? shape_of(4, (const int64_t[]){1, 1, out, n})
                                                   : shape_of(2, (const int64_t[]){out, n})};
    return (hr_model){
        .name = "one", .params = params, .param_count = count, .layers = &layer, .layer_count = 1};
}

static hr_shape weights_shape(int64_t kernel, int64_t m, int64_t n)
{
    return kernel > 0 ? shape_of(4, (const int64_t[]){kernel, kernel, m, n})
                      : shape_of(2, (const int64_t[]){m, n});
}

static void add_weights(store *s, const hr_shape *shape, const double *values)
{
    stored_tensor *t = store_add(s, "layer/weights", shape, HR_F64, HR_CATEGORY_WEIGHTS);
    ck_assert_ptr_nonnull(t);
    memcpy(t->data, values, t->bytes);
}

static const double *values_of(const store *s, const char *name)
{
    const stored_tensor *t = store_find(s, name);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->dtype, HR_F64);
    return t->data;
}

// |W − factors|² by the definition.
static double lost_of(const store *s, const double *w, int64_t kernel, int64_t m, int64_t n, int64_t in,
                      int64_t out)
{
    const double *u = values_of(s, "layer/weights_u"), *v = values_of(s, "layer/weights_v");
    const double *core = kernel > 1 ? values_of(s, "layer/weights_core") : NULL;
    const int64_t area = kernel > 1 ? kernel * kernel : 1;
    double lost = 0;
    for (int64_t k = 0; k < area * m * n; k++) {
        const int64_t p = k / (m * n), i = k / n % m, j = k % n;
        double made = 0;
        for (int64_t a = 0; a < in; a++) {
            for (int64_t b = 0; b < out; b++) {
                const double middle = core != NULL ? core[(p * in + a) * out + b] : a == b ? 1.0 : 0.0;
                made += u[i * in + a] * middle * v[b * n + j];
            }
        }
        lost += (w[k] - made) * (w[k] - made);
    }
    return lost;
}

static const struct {
    int64_t kernel, m, n, in, out;
} cases[] = {{0, 12, 9, 9, 9},  {0, 12, 9, 4, 4}, {0, 5, 30, 2, 2},  {1, 8, 6, 3, 3},
             {3, 8, 10, 8, 10}, {3, 8, 10, 3, 5}, {2, 40, 3, 12, 3}, {3, 4, 64, 2, 30}};

START_TEST(factors_are_the_weights_but_for_what_the_error_says)
{
    const int64_t kernel = cases[_i].kernel, m = cases[_i].m, n = cases[_i].n, in = cases[_i].in,
                  out = cases[_i].out;
    const hr_shape shape = weights_shape(kernel, m, n);
    const int64_t area = kernel > 0 ? kernel * kernel : 1;
    double *w = random_matrix(area * m * n, 50 + (uint64_t)_i), whole = 0;
    const hr_model model = model_of(kernel, m, n, in, out);
    store s = {0};
    decomposed_list list = {0};
    hr_err err = {0};
    add_weights(&s, &shape, w);
    ck_assert_msg(decompose_store(&s, &model, &list, &err) == HR_OK, "%s", err.sentence);
    for (int64_t k = 0; k < area * m * n; k++) {
        whole += w[k] * w[k];
    }
    const double lost = lost_of(&s, w, kernel, m, n, in, out);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.data[0].name, "layer");
    ck_assert_double_eq_tol(list.data[0].lost, lost, 1e-10);
    ck_assert_double_eq_tol(decomposed_error(&list.data[0]), sqrt(lost / whole), 1e-5);
    if (in == (m < n || kernel > 1 ? m : n) && out == n) { // full rank: the dense function
        ck_assert_double_lt(lost, 1e-20);
    }
    if (kernel < 2) { // what was dropped
        double plain[128], dropped = 0;
        jacobi(w, m, n, plain);
        for (int64_t r = in; r < (m < n ? m : n); r++) {
            dropped += plain[r] * plain[r];
        }
        ck_assert_double_eq_tol(sqrt(lost), sqrt(dropped), 1e-7);
    }
    store_deinit(&s);
    vec_deinit(&list);
    free(w);
}
END_TEST

// A rank for which the weights are exact in one mode loses nothing more than the other mode's dropped values.
START_TEST(of_channels_that_are_a_product_tucker_loses_nothing)
{
    enum { KERNEL = 3, M = 10, N = 12, IN = 3, OUT = 4 };
    const hr_shape shape = weights_shape(KERNEL, M, N);
    double *u = random_matrix(M * IN, 1), *core = random_matrix(9 * IN * OUT, 2),
           *v = random_matrix(OUT * N, 3);
    double *w = calloc(9 * M * N, sizeof *w);
    for (int64_t k = 0; k < 9 * M * N; k++) {
        for (int64_t c = 0; c < IN * OUT; c++) {
            w[k] += u[k / N % M * IN + c / OUT] * core[k / (M * N) * IN * OUT + c] * v[c % OUT * N + k % N];
        }
    }
    const hr_model model = model_of(KERNEL, M, N, IN, OUT);
    store s = {0};
    decomposed_list list = {0};
    add_weights(&s, &shape, w);
    ck_assert_int_eq(decompose_store(&s, &model, &list, NULL), HR_OK);
    ck_assert_double_lt(lost_of(&s, w, KERNEL, M, N, IN, OUT), 1e-20);
    store_deinit(&s);
    vec_deinit(&list);
    free(u);
    free(core);
    free(v);
    free(w);
}
END_TEST

START_TEST(other_types_are_read)
{
    const hr_shape shape = weights_shape(0, 2, 2);
    const hr_model model = model_of(0, 2, 2, 1, 1);
    const float values[] = {3, 0, 0, 0.5f};
    store s = {0};
    decomposed_list list = {0};
    stored_tensor *t = store_add(&s, "layer/weights", &shape, HR_BF16, HR_CATEGORY_WEIGHTS);
    for (int k = 0; k < 4; k++) {
        ((uint16_t *)t->data)[k] = bf16_of_float(values[k]);
    }
    ck_assert_int_eq(decompose_store(&s, &model, &list, NULL), HR_OK);
    ck_assert_double_eq_tol(list.data[0].lost, 0.25, 1e-12);
    ck_assert_double_eq_tol(fabs(values_of(&s, "layer/weights_u")[0]), sqrt(3),
                            1e-12); // half of it on either side
    store_deinit(&s);
    vec_deinit(&list);
}
END_TEST

START_TEST(what_does_not_fit_or_is_there_is_left_alone)
{
    const hr_shape other = weights_shape(0, 4, 3), same = weights_shape(0, 3, 4);
    const hr_model model = model_of(0, 3, 4, 1, 1);
    double *w = random_matrix(12, 9);
    decomposed_list list = {0};
    store s = {0};
    ck_assert_int_eq(decompose_store(&s, &model, &list, NULL), HR_OK); // no weights
    add_weights(&s, &other, w);
    ck_assert_int_eq(decompose_store(&s, &model, &list, NULL), HR_OK); // of another shape
    ck_assert_uint_eq(s.tensors.count, 1);
    store_deinit(&s);
    s = (store){0};
    add_weights(&s, &same, w);
    ck_assert_ptr_nonnull(store_add(&s, "layer/weights_u", &params[0].shape, HR_F32, HR_CATEGORY_WEIGHTS));
    ck_assert_int_eq(decompose_store(&s, &model, &list, NULL), HR_OK); // factors were saved
    ck_assert_uint_eq(s.tensors.count, 2);
    ck_assert_uint_eq(list.count, 0);
    store_deinit(&s);
    free(w);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    const hr_shape shape = weights_shape(3, 4, 5);
    const hr_model model = model_of(3, 4, 5, 2, 3);
    double *w = random_matrix(9 * 20, 4);
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status == HR_NOMEM; nth++) {
        const int64_t live = hr_host_mem_live();
        store s = {0};
        decomposed_list list = {0};
        add_weights(&s, &shape, w);
        hr_host_mem_fail_at(nth);
        status = decompose_store(&s, &model, &list, NULL);
        (void)hr_host_mem_fail_at(0);
        ck_assert(status == HR_OK || status == HR_NOMEM);
        store_deinit(&s);
        vec_deinit(&list);
        ck_assert_int_eq(hr_host_mem_live(), live);
        ck_assert_uint_lt(nth, 100);
    }
    free(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decompose");
    TCase *tcase = tcase_create("decompose");
    tcase_add_loop_test(tcase, lapacks_singular_values_are_jacobis_and_its_product_the_matrix, 0, 6);
    tcase_add_test(tcase, what_is_not_finite_is_refused);
    tcase_add_loop_test(tcase, factors_are_the_weights_but_for_what_the_error_says, 0, 8);
    tcase_add_test(tcase, of_channels_that_are_a_product_tucker_loses_nothing);
    tcase_add_test(tcase, other_types_are_read);
    tcase_add_test(tcase, what_does_not_fit_or_is_there_is_left_alone);
    tcase_add_test(tcase, each_allocation_may_fail);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
