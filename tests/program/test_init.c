// SPDX-License-Identifier: Apache-2.0
// Promises of model_init_param: seeded, bounded, and the same everywhere.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/model_from_text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char PRESET[] =
    "model:\n"
    "  input: {shape: [8, 8, 3]}\n"
    "  classes: 10\n"
    "  layers:\n"
    "    - {name: c, kind: conv2d, filters: 12, kernel: 3, padding: same, init: he_uniform}\n"
    "    - {name: n, kind: batch_norm}\n"
    "    - {name: s, kind: conv2d, filters: 12, kernel: 3, padding: same, init: he_uniform}\n"
    "    - {name: pool, kind: max_pool, size: 2}\n"
    "    - {name: flat, kind: flatten}\n"
    "    - {name: last, kind: dense, units: 10}\n";

// Values of a parameter; the caller frees them.
static float *values_of(const hr_model *m, const char *name, uint64_t seed, uint64_t *elements)
{
    for (uint32_t i = 0; i < m->param_count; i++) {
        if (strcmp(m->params[i].name, name) == 0) {
            ck_assert(shape_elements(&m->params[i].shape, elements));
            float *values = malloc(*elements * sizeof *values);
            model_init_param(m, i, seed, values);
            return values;
        }
    }
    ck_abort_msg("no parameter '%s'", name);
}

typedef struct golden {
    const char *name;
    uint64_t index;
    float value;
} golden;

// Computed by a script of its own from the recipe at the top of engine/model/init.c, seed 7.
static const golden goldens[] = {
    {"last/weights", 0, -0x1.0b3024p-3f},   {"last/weights", 1, 0x1.1659f6p-3f},
    {"last/weights", 2, 0x1.6bebf2p-4f},    {"last/weights", 3, 0x1.5d78c4p-5f},
    {"last/weights", 4, -0x1.06b410p-4f},   {"last/weights", 191, 0x1.e5a62cp-6f},
    {"last/weights", 1918, 0x1.df7320p-7f}, {"last/weights", 1919, 0x1.f30a9ep-4f},
    {"c/weights", 0, -0x1.74ca48p-2f},      {"c/weights", 1, -0x1.6f2c88p-5f},
    {"c/weights", 2, 0x1.b7053cp-3f},       {"c/weights", 3, -0x1.946618p-7f},
    {"c/weights", 4, 0x1.670326p-6f},       {"c/weights", 191, -0x1.51ab56p-5f},
};

START_TEST(values_are_those_of_the_recipe)
{
    const golden *g = &goldens[_i];
    hr_model *m = model_from_text(PRESET);
    uint64_t elements;
    float *values = values_of(m, g->name, 7, &elements);
    ck_assert_uint_lt(g->index, elements);
    ck_assert_msg(values[g->index] == g->value, "%s[%llu] is %a", g->name, (unsigned long long)g->index,
                  (double)values[g->index]);
    free(values);
    model_destroy(m);
}
END_TEST

static const char OTHER_RULES[] =
    "model:\n"
    "  input: {shape: [64]}\n"
    "  classes: 64\n"
    "  layers:\n"
    "    - {name: n, kind: dense, units: 64, init: normal, init_scale: 0.02}\n"
    "    - {name: t, kind: dense, units: 64, init: truncated_normal, init_scale: 0.5}\n"
    "    - {name: u, kind: dense, units: 64, init: uniform, init_scale: 0.1}\n"
    "    - {name: sequence, kind: reshape, shape: [4, 16]}\n"
    "    - {name: memory, kind: lstm, units: 16}\n"
    "    - {name: f, kind: dense, units: 16, init: he_normal_fan_out}\n"
    "    - {name: flat, kind: flatten}\n";

// Computed by a script of its own with Python's statistics.NormalDist, seed 7. The two largest of 4096 stand at the end.
static const golden other_goldens[] = {
    {"n/weights", 0, 0x1.12603ep-7f},    {"n/weights", 1, -0x1.13be98p-6f},
    {"n/weights", 2, -0x1.faf036p-7f},   {"n/weights", 3, 0x1.bae496p-5f},
    {"n/weights", 4, -0x1.c503dep-11f},  {"n/weights", 5, -0x1.4489d0p-6f},
    {"n/weights", 6, 0x1.1e7d0ep-5f},    {"n/weights", 7, -0x1.2fda5ep-10f},
    {"n/weights", 8, -0x1.0a043cp-5f},   {"n/weights", 9, 0x1.036276p-5f},
    {"n/weights", 62, 0x1.802504p-9f},   {"n/weights", 63, -0x1.17dd14p-8f},
    {"n/weights", 1000, 0x1.56cba8p-8f}, {"n/weights", 4095, 0x1.69e4c6p-6f},
    {"t/weights", 0, -0x1.66feb4p-1f},   {"t/weights", 1, -0x1.c8e424p-1f},
    {"t/weights", 2, -0x1.c047e4p-1f},   {"t/weights", 3, -0x1.95f48ep-1f},
    {"t/weights", 4, 0x1.90d28ap-9f},    {"t/weights", 5, 0x1.9c80b2p-3f},
    {"u/weights", 0, -0x1.3d35fap-4f},   {"u/weights", 1, 0x1.369876p-4f},
    {"u/weights", 2, 0x1.d04a60p-5f},    {"n/weights", 554, -0x1.5a1e4cp-4f},
    {"n/weights", 2626, 0x1.09a88ep-4f},
};

START_TEST(normal_values_are_those_of_the_recipe)
{
    const golden *g = &other_goldens[_i];
    hr_model *m = model_from_text(OTHER_RULES);
    uint64_t elements;
    float *values = values_of(m, g->name, 7, &elements);
    ck_assert_uint_lt(g->index, elements);
    ck_assert_msg(values[g->index] == g->value, "%s[%llu] is %a", g->name, (unsigned long long)g->index,
                  (double)values[g->index]);
    free(values);
    model_destroy(m);
}
END_TEST

// Mean and variance of n values: within five standard deviations of their own; nothing beyond `limit`.
static void assert_moments(const hr_model *m, const char *name, double deviation, double limit)
{
    uint64_t elements;
    float *values = values_of(m, name, 3, &elements);
    double sum = 0, squares = 0, largest = 0;
    for (uint64_t i = 0; i < elements; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
        largest = fmax(largest, fabs((double)values[i]));
    }
    const double n = (double)elements;
    ck_assert_double_lt(fabs(sum / n), 5 * deviation / sqrt(n));
    ck_assert_double_lt(fabs(squares / n / (deviation * deviation) - 1), 5 * sqrt(2 / n));
    ck_assert_double_le(largest, limit);
    free(values);
}

START_TEST(normal_values_have_their_moments)
{
    hr_model *m = model_from_text(OTHER_RULES);
    assert_moments(m, "n/weights", 0.02, 7 * 0.02);
    assert_moments(m, "t/weights", 0.5 * 0.87962566103423978, 1.0); // the deviation that is left within two
    assert_moments(m, "f/weights", sqrt(2.0 / 16), 7);
    model_destroy(m);
}
END_TEST

START_TEST(a_forget_gate_begins_open)
{
    hr_model *m = model_from_text(OTHER_RULES);
    uint64_t elements;
    float *values = values_of(m, "memory/bias", 1, &elements);
    ck_assert_uint_eq(elements, 64);
    for (uint64_t i = 0; i < elements; i++) {
        ck_assert(values[i] == (i >= 16 && i < 32 ? 1.0f : 0.0f));
    }
    free(values);
    model_destroy(m);
}
END_TEST

static void assert_uniform(const hr_model *m, const char *name, double limit)
{
    uint64_t elements;
    float *values = values_of(m, name, 1, &elements);
    double sum = 0, largest = 0;
    for (uint64_t i = 0; i < elements; i++) {
        sum += (double)values[i];
        largest = fmax(largest, fabs((double)values[i]));
    }
    ck_assert_double_le(largest, limit * (1 + 1e-7));
    ck_assert_double_gt(largest, 0.95 * limit);
    // The mean of n uniform values has the standard deviation limit / sqrt(3 n): five of them.
    ck_assert_double_lt(fabs(sum / (double)elements), 5 * limit / sqrt(3.0 * (double)elements));
    free(values);
}

START_TEST(uniform_values_fill_their_interval)
{
    hr_model *m = model_from_text(PRESET);
    assert_uniform(m, "last/weights", sqrt(6.0 / (192 + 10)));
    assert_uniform(m, "c/weights", sqrt(6.0 / (3 * 3 * 3)));
    assert_uniform(m, "s/weights", sqrt(6.0 / (3 * 3 * 12)));
    model_destroy(m);
}
END_TEST

static void assert_constant(const hr_model *m, const char *name, float expected)
{
    uint64_t elements;
    float *values = values_of(m, name, 1, &elements);
    for (uint64_t i = 0; i < elements; i++) {
        ck_assert(values[i] == expected);
    }
    free(values);
}

START_TEST(biases_and_statistics_are_constant)
{
    hr_model *m = model_from_text(PRESET);
    assert_constant(m, "last/bias", 0.0f);
    assert_constant(m, "n/gamma", 1.0f);
    assert_constant(m, "n/beta", 0.0f);
    assert_constant(m, "n/moving_mean", 0.0f);
    assert_constant(m, "n/moving_variance", 1.0f);
    model_destroy(m);
}
END_TEST

START_TEST(seed_and_name_choose_the_values)
{
    hr_model *m = model_from_text(PRESET);
    uint64_t elements;
    float *first = values_of(m, "last/weights", 1, &elements);
    float *again = values_of(m, "last/weights", 1, &elements);
    float *other_seed = values_of(m, "last/weights", 2, &elements);
    float *other_name = values_of(m, "s/weights", 1, &elements);
    ck_assert_mem_eq(first, again, 1000 * sizeof *first);
    ck_assert_mem_ne(first, other_seed, 16 * sizeof *first);
    ck_assert_mem_ne(first, other_name, 16 * sizeof *first);
    free(first);
    free(again);
    free(other_seed);
    free(other_name);
    model_destroy(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init");
    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, values_are_those_of_the_recipe, 0, COUNT(goldens));
    tcase_add_loop_test(core, normal_values_are_those_of_the_recipe, 0, COUNT(other_goldens));
    tcase_add_test(core, normal_values_have_their_moments);
    tcase_add_test(core, a_forget_gate_begins_open);
    tcase_add_test(core, uniform_values_fill_their_interval);
    tcase_add_test(core, biases_and_statistics_are_constant);
    tcase_add_test(core, seed_and_name_choose_the_values);
    suite_add_tcase(suite, core);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
