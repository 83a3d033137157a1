// SPDX-License-Identifier: Apache-2.0
// Promises of base/text.h and base/vec.h.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/philox.h"
#include "base/text.h"
#include "base/vec.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

START_TEST(appends_grow)
{
    text t = {0};
    for (int i = 0; i < 1000; i++) {
        text_append(&t, "%d,", i);
    }
    text_append_bytes(&t, "end\0in", 6);
    ck_assert(!t.failed);
    ck_assert_uint_eq(t.length, 10 * 2 + 90 * 3 + 900 * 4 + 6);
    ck_assert_int_eq(strncmp(t.data, "0,1,2,", 6), 0);
    ck_assert_mem_eq(t.data + t.length - 6, "end\0in", 7);
    text_deinit(&t);
    ck_assert_ptr_null(t.data);
}
END_TEST

START_TEST(failure_to_grow_stays_and_yields_nothing)
{
    int64_t live = hr_host_mem_live();
    text t = {0};
    text_append(&t, "kept");
    hr_host_mem_fail_at(1);
    for (int i = 0; i < 100; i++) {
        text_append(&t, "more and more");
    }
    ck_assert(t.failed);
    ck_assert_int_eq(strncmp(t.data, "kept", 4), 0);
    ck_assert_ptr_null(text_take(&t));
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(take_hands_over_and_empties)
{
    text t = {0};
    char *empty = text_take(&t);
    ck_assert_str_eq(empty, "");
    hr_free(empty);
    text_append(&t, "%s", "whole");
    char *whole = text_take(&t);
    ck_assert_str_eq(whole, "whole");
    ck_assert_uint_eq(t.length, 0);
    hr_free(whole);
}
END_TEST

START_TEST(copy_says_when_it_cut)
{
    char to[5];
    ck_assert(text_copy(to, sizeof to, "four"));
    ck_assert_str_eq(to, "four");
    ck_assert(!text_copy(to, sizeof to, "fives"));
    ck_assert_str_eq(to, "five");
}
END_TEST

START_TEST(distances_count_edits_and_swaps)
{
    ck_assert_uint_eq(text_distance("", "", 3), 0);
    ck_assert_uint_eq(text_distance("batch", "batch", 3), 0);
    ck_assert_uint_eq(text_distance("batch", "btach", 3), 1);
    ck_assert_uint_eq(text_distance("batch", "batchs", 3), 1);
    ck_assert_uint_eq(text_distance("batch", "atch", 3), 1);
    ck_assert_uint_eq(text_distance("kitten", "sitting", 5), 3);
    ck_assert_uint_eq(text_distance("ca", "abc", 5), 3); // optimal string alignment; true Damerau says 2
    ck_assert_uint_eq(text_distance("kitten", "sitting", 2), 3);
    ck_assert_uint_eq(text_distance("a", "abcdefgh", 2), 3);
}
END_TEST

// The definition, word for word.
static unsigned naive_distance(const char *a, size_t n, const char *b, size_t m)
{
    if (n == 0 || m == 0) {
        return (unsigned)(n + m);
    }
    unsigned best = naive_distance(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]);
    unsigned drop = naive_distance(a, n - 1, b, m) + 1;
    unsigned add = naive_distance(a, n, b, m - 1) + 1;
    best = drop < best ? drop : best;
    best = add < best ? add : best;
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1]) {
        unsigned swap = naive_distance(a, n - 2, b, m - 2) + 1;
        best = swap < best ? swap : best;
    }
    return best;
}

START_TEST(distance_is_the_naive_one)
{
    uint32_t random[4];
    for (uint64_t i = 0; i < 60; i++) {
        char words[2][7] = {"", ""};
        for (unsigned w = 0; w < 2; w++) {
            philox((philox_key){{2, w}}, i, 0, random);
            size_t length = random[0] % 6;
            for (size_t j = 0; j < length; j++) {
                words[w][j] = (char)('a' + (random[1] >> 4 * j) % 3);
            }
        }
        unsigned expected = naive_distance(words[0], strlen(words[0]), words[1], strlen(words[1]));
        ck_assert_uint_eq(text_distance(words[0], words[1], 9), expected);
        ck_assert_uint_eq(text_distance(words[1], words[0], 9), expected);
    }
}
END_TEST

START_TEST(nearest_is_near_or_nothing)
{
    static const char *const words[] = {"batch.size", "batch.remainder", "device.kind", "device.vram"};
    ck_assert_str_eq(text_nearest("batch.szie", words, COUNT(words)), "batch.size");
    ck_assert_str_eq(text_nearest("batchsize", words, COUNT(words)), "batch.size");
    ck_assert_str_eq(text_nearest("device.vram", words, COUNT(words)), "device.vram");
    static const char *const kinds[] = {"pool", "max_pool", "max", "global_avg_pool"};
    ck_assert_str_eq(text_nearest("max_pooling2d", kinds, COUNT(kinds)),
                     "max_pool"); // the longest that it begins with
    ck_assert_str_eq(text_nearest("global", kinds, COUNT(kinds)), "global_avg_pool");
    ck_assert_ptr_null(text_nearest("avg", kinds, COUNT(kinds)));
    ck_assert_ptr_null(text_nearest("learning", words, COUNT(words)));
    ck_assert_ptr_null(text_nearest("", words, COUNT(words)));
    ck_assert_ptr_null(text_nearest("x", words, 0));
    char lengthy[4096];
    memset(lengthy, 'b', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    ck_assert_ptr_null(text_nearest(lengthy, words, COUNT(words)));
}
END_TEST

START_TEST(whole_numbers_are_strict)
{
    int64_t value = 0;
    ck_assert(text_to_int("-9223372036854775808", &value) && value == INT64_MIN);
    ck_assert(text_to_int("+12", &value) && value == 12);
    static const char *const wrong[] = {"",  " 1",  "1 ",  "1.0", "0x1", "9223372036854775808",
                                        "-", "+-1", "one", "1\n"};
    value = 5;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        ck_assert_msg(!text_to_int(wrong[i], &value), "'%s'", wrong[i]);
    }
    ck_assert_int_eq(value, 5);
}
END_TEST

START_TEST(real_numbers_are_strict)
{
    double value = 0;
    ck_assert(text_to_real("1e-3", &value) && fabs(value - 0.001) < 1e-18);
    ck_assert(text_to_real(".5", &value) && value > 0.49 && value < 0.51);
    ck_assert(text_to_real("-2", &value) && value < -1.9);
    static const char *const wrong[] = {"",      " 1",    "1 ",   "nan", "inf", "-inf",
                                        "0x1p3", "1e999", "1.5f", "e5",  ".",   "1e"};
    value = 5;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        ck_assert_msg(!text_to_real(wrong[i], &value), "'%s'", wrong[i]);
    }
    ck_assert(value > 4.9 && value < 5.1);
}
END_TEST

START_TEST(vector_keeps_its_elements)
{
    VEC(uint64_t) v = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t *element = vec_push(&v);
        ck_assert_ptr_nonnull(element);
        ck_assert_uint_eq(*element, 0);
        *element = i * i;
    }
    ck_assert_uint_eq(v.count, 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(v.data[i], i * i);
    }
    vec_deinit(&v);
    ck_assert_uint_eq(v.count, 0);
    ck_assert_uint_eq(v.capacity, 0);
}
END_TEST

START_TEST(vector_is_unchanged_when_memory_is_short)
{
    VEC(int) v = {0};
    int *first = vec_push(&v);
    ck_assert_ptr_nonnull(first);
    *first = 42;
    hr_host_mem_fail_at(1);
    int pushed = 0;
    while (vec_push(&v) != NULL) {
        pushed++;
    }
    ck_assert_uint_eq(v.count, 1 + (unsigned)pushed);
    ck_assert_uint_eq(v.count, v.capacity);
    ck_assert_int_eq(v.data[0], 42);
    ck_assert_ptr_nonnull(vec_push(&v)); // it failed once only
    vec_deinit(&v);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, appends_grow);
    tcase_add_test(tests, failure_to_grow_stays_and_yields_nothing);
    tcase_add_test(tests, take_hands_over_and_empties);
    tcase_add_test(tests, copy_says_when_it_cut);
    tcase_add_test(tests, distances_count_edits_and_swaps);
    tcase_add_test(tests, distance_is_the_naive_one);
    tcase_add_test(tests, nearest_is_near_or_nothing);
    tcase_add_test(tests, whole_numbers_are_strict);
    tcase_add_test(tests, real_numbers_are_strict);
    tcase_add_test(tests, vector_keeps_its_elements);
    tcase_add_test(tests, vector_is_unchanged_when_memory_is_short);
    Suite *suite = suite_create("text");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
