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
