// SPDX-License-Identifier: Apache-2.0
// Texts by number against a plain list of texts.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "base/intern.h"

enum { TEXTS = 3000, LENGTH_MAX = 40, DRAWS = 20000 };

typedef struct plain_list {
    char texts[TEXTS][LENGTH_MAX];
    uint32_t count;
} plain_list;

static uint32_t plain_find(const plain_list *l, const char *wanted)
{
    uint32_t n = 0;
    while (n < l->count && strcmp(l->texts[n], wanted) != 0) {
        n++;
    }
    return n;
}

// A text of few possible ones, some with the same beginning, now and then empty.
static size_t draw_text(uint64_t *state, char to[LENGTH_MAX])
{
    *state = hash64_mix(*state, 1);
    uint64_t which = *state % 2500;
    size_t length =
        which == 0 ? 0
                   : (size_t)snprintf(to, LENGTH_MAX, "layer/%u/%u", (unsigned)(which % 7), (unsigned)which);
    memset(to + length, 0, LENGTH_MAX - length);
    return which % 3 == 0 && length > 6 ? length - 1 : length; // cut: the same bytes, another text
}

START_TEST(numbers_are_those_of_a_plain_list)
{
    static plain_list list;
    int64_t live = hr_host_mem_live();
    intern n = {0};
    uint64_t state = 7;
    list.count = 0;
    ck_assert_uint_eq(intern_find(&n, "x", 1), INTERN_NONE);
    for (uint32_t k = 0; k < DRAWS; k++) {
        char drawn[LENGTH_MAX], exact[LENGTH_MAX] = "";
        size_t length = draw_text(&state, drawn);
        memcpy(exact, drawn, length);
        uint32_t expected = plain_find(&list, exact);
        uint32_t found = intern_find(&n, drawn, length);
        ck_assert_uint_eq(found, expected == list.count ? INTERN_NONE : expected);
        if (expected == list.count) {
            memcpy(list.texts[list.count++], exact, sizeof exact);
        }
        ck_assert_uint_eq(intern_add(&n, drawn, length), expected);
        ck_assert_uint_eq(intern_count(&n), list.count);
    }
    for (uint32_t k = 0; k < list.count; k++) {
        ck_assert_str_eq(intern_text(&n, k), list.texts[k]);
    }
    ck_assert_ptr_null(intern_text(&n, list.count));
    ck_assert_ptr_null(intern_text(&n, INTERN_NONE));
    intern_deinit(&n);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(a_nul_ends_a_text)
{
    intern n = {0};
    ck_assert_uint_eq(intern_add(&n, "ab\0cd", 5), 0);
    ck_assert_uint_eq(intern_add(&n, "ab", 2), 0);
    ck_assert_uint_eq(intern_find(&n, "ab\0xy", 5), 0);
    ck_assert_uint_eq(intern_add(&n, "\0", 1), 1);
    ck_assert_uint_eq(intern_add(&n, "", 0), 1);
    ck_assert_str_eq(intern_text(&n, 0), "ab");
    ck_assert_str_eq(intern_text(&n, 1), "");
    intern_deinit(&n);
}
END_TEST

// Every request fails once: the text is not there, the others keep their numbers, and it can be added later.
START_TEST(short_memory_changes_nothing)
{
    int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        intern n = {0};
        char name[16];
        uint32_t refused = INTERN_NONE;
        (void)hr_host_mem_fail_at(nth);
        for (uint32_t k = 0; k < 200; k++) {
            size_t length = (size_t)snprintf(name, sizeof name, "text %u", k);
            uint32_t before = intern_count(&n), number = intern_add(&n, name, length);
            if (number == INTERN_NONE) {
                ck_assert_uint_eq(refused, INTERN_NONE);
                refused = k;
                ck_assert_uint_eq(intern_count(&n), before);
                ck_assert_uint_eq(intern_find(&n, name, length), INTERN_NONE);
                number = intern_add(&n, name, length);
            }
            ck_assert_uint_eq(number, k);
        }
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(refused != INTERN_NONE, failed);
        ck_assert_str_eq(intern_text(&n, 199), "text 199");
        intern_deinit(&n);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("intern");
    tcase_add_test(tests, numbers_are_those_of_a_plain_list);
    tcase_add_test(tests, a_nul_ends_a_text);
    tcase_add_test(tests, short_memory_changes_nothing);
    Suite *suite = suite_create("intern");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
