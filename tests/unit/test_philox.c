// SPDX-License-Identifier: Apache-2.0
// Promises of base/philox.h. The known answers are those of Random123's kat_vectors for philox4x32-10.
#include <check.h>
#include <stdlib.h>

#include "base/philox.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

START_TEST(known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const uint32_t *c = cases[i].counter;
        philox_key key = {{cases[i].key[0], cases[i].key[1]}};
        uint32_t out[4];
        philox(key, (uint64_t)c[1] << 32 | c[0], (uint64_t)c[3] << 32 | c[2], out);
        ck_assert_mem_eq(out, cases[i].answer, sizeof out);
    }
}
END_TEST

START_TEST(keys_differ_by_seed_and_by_purpose)
{
    static const char *const purposes[] = {"", "shuffle", "init/conv1/weights", "init/conv2/weights",
                                           "init/conv1/bias"};
    philox_key keys[COUNT(purposes) * 2];
    for (size_t i = 0; i < COUNT(keys); i++) {
        keys[i] = philox_key_of(i % 2, purposes[i / 2]);
        for (size_t j = 0; j < i; j++) {
            ck_assert(keys[i].word[0] != keys[j].word[0] || keys[i].word[1] != keys[j].word[1]);
        }
    }
    philox_key again = philox_key_of(1, "shuffle");
    ck_assert_uint_eq(again.word[0], keys[3].word[0]);
    ck_assert_uint_eq(again.word[1], keys[3].word[1]);
}
END_TEST

START_TEST(uniform_stays_below_one)
{
    ck_assert(philox_uniform(0) <= 0.0f);
    ck_assert(philox_uniform(UINT32_MAX) < 1.0f);
    ck_assert(philox_uniform(UINT32_C(0x80000000)) == 0.5f);
    double sum = 0;
    for (uint64_t i = 0; i < 25000; i++) {
        uint32_t out[4];
        philox(philox_key_of(7, "mean"), i, 0, out);
        for (unsigned j = 0; j < 4; j++) {
            sum += (double)philox_uniform(out[j]);
        }
    }
    ck_assert_double_eq_tol(sum / 100000, 0.5, 5e-3); // five standard deviations
}
END_TEST

START_TEST(below_reaches_every_value_and_no_more)
{
    unsigned seen[10] = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t out[4];
        philox(philox_key_of(7, "below"), i, 0, out);
        uint64_t value = philox_below(out[0], out[1], COUNT(seen));
        ck_assert_uint_lt(value, COUNT(seen));
        seen[value]++;
    }
    for (size_t i = 0; i < COUNT(seen); i++) {
        ck_assert_uint_gt(seen[i], 50);
    }
    ck_assert_uint_eq(philox_below(UINT32_MAX, UINT32_MAX, UINT64_MAX), UINT64_MAX - 1);
    ck_assert_uint_eq(philox_below(UINT32_MAX, UINT32_MAX, 1), 0);
    ck_assert_uint_eq(philox_below(0, 0, 5), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("philox");
    tcase_add_test(tests, known_answers);
    tcase_add_test(tests, keys_differ_by_seed_and_by_purpose);
    tcase_add_test(tests, uniform_stays_below_one);
    tcase_add_test(tests, below_reaches_every_value_and_no_more);
    Suite *suite = suite_create("philox");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
