// SPDX-License-Identifier: Apache-2.0
// Answers are asked once, by whatever thread, and again in no later process that finds the file whole.
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/build_id.h"
#include "base/file.h"
#include "base/host_mem.h"
#include "program/target.h"

enum { QUERIES = 3000, THREADS = 4 };

static atomic_uint asked;

// An answer that depends on every part of the question.
static hr_status answer(void *context, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    (void)context, (void)err;
    atomic_fetch_add(&asked, 1);
    out->workspace_bytes = (uint64_t)q->in[0].shape.dim[0] * 1000 + q->op + limit;
    out->instead = TARGET_INSTEAD_LIMIT;
    out->reorder_count = 1;
    out->reorder[0].operand = 0x80;
    out->reorder[0].bytes = out->workspace_bytes + 1;
    out->impl =
        q->op == HR_OP_DENSE ? target_impl_name("library", q->in[0].shape.dim[0] % 4 == 1 ? "a" : "b") : NULL;
    return HR_OK;
}

static op_query query_of(uint32_t k)
{
    op_query q = {.op = k % 2 == 0 ? HR_OP_DENSE : HR_OP_RELU, .in_count = 1, .out_count = 1};
    q.in[0].shape = q.out[0].shape = shape_of(2, (const int64_t[]){k + 1, 7});
    return q;
}

static void ask_all(uint64_t limit)
{
    hr_target target = {.name = "counting", .key = 42, .slow_to_ask = true, .ask = answer};
    for (uint32_t k = 0; k < QUERIES; k++) {
        op_query q = query_of(k);
        target_answer a;
        ck_assert_int_eq(target_ask(&target, &q, limit, &a, NULL), HR_OK);
        ck_assert_uint_eq(a.workspace_bytes, (uint64_t)(k + 1) * 1000 + q.op + limit);
        ck_assert_uint_eq(a.instead, TARGET_INSTEAD_LIMIT);
        ck_assert_uint_eq(a.reorder_count, 1);
        ck_assert_uint_eq(a.reorder[0].operand, 0x80);
        ck_assert_uint_eq(a.reorder[0].bytes, a.workspace_bytes + 1);
        ck_assert_pstr_eq(a.impl, q.op != HR_OP_DENSE ? NULL : k % 4 == 0 ? "library a" : "library b");
    }
}

static void *ask_on_a_thread(void *context)
{
    (void)context;
    ask_all(7);
    return NULL;
}

static char path[64];

static void begin(void)
{
    snprintf(path, sizeof path, "/tmp/headroom-memo-%d/deeper/memo", (int)getpid());
    target_forget();
    atomic_store(&asked, 0);
}

static void end(void)
{
    target_forget();
    remove(path);
    char folder[64];
    snprintf(folder, sizeof folder, "/tmp/headroom-memo-%d/deeper", (int)getpid());
    rmdir(folder);
    snprintf(folder, sizeof folder, "/tmp/headroom-memo-%d", (int)getpid());
    rmdir(folder);
}

START_TEST(a_question_is_asked_once_and_its_limit_is_part_of_it)
{
    ask_all(7);
    ask_all(7);
    ck_assert_uint_eq(atomic_load(&asked), QUERIES);
    ask_all(8);
    ck_assert_uint_eq(atomic_load(&asked), 2 * QUERIES);
}
END_TEST

static hr_status guess(void *context, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    out->workspace_bytes = 1;
    return HR_OK;
}

START_TEST(an_estimate_stands_in_for_what_was_not_asked_and_is_forgotten)
{
    const hr_target guesser = {.name = "guessing", .key = 43, .ask = guess};
    target_estimates estimates = {.from = &guesser};
    hr_target hurried = {.name = "counting", .key = 42, .slow_to_ask = true, .ask = answer};
    const op_query first = query_of(0), second = query_of(1);
    target_answer a;
    ck_assert_int_eq(target_ask(&hurried, &first, 7, &a, NULL), HR_OK);
    hurried.estimates = &estimates;
    ck_assert_int_eq(target_ask(&hurried, &first, 7, &a, NULL), HR_OK);
    ck_assert_uint_eq(a.workspace_bytes, 1000 + first.op + 7);
    ck_assert_uint_eq(estimates.count, 0);
    ck_assert_int_eq(target_ask(&hurried, &second, 7, &a, NULL), HR_OK);
    ck_assert_uint_eq(a.workspace_bytes, 1);
    ck_assert_uint_eq(estimates.count, 1);
    ck_assert_uint_eq(atomic_load(&asked), 1);
    hurried.estimates = NULL;
    ck_assert_int_eq(target_ask(&hurried, &second, 7, &a, NULL), HR_OK);
    ck_assert_uint_eq(a.workspace_bytes, 2000 + second.op + 7);
}
END_TEST

// What differs only where a name is cut has one name; what does not fit in the table is still named.
START_TEST(equal_names_are_one_and_none_is_lost)
{
    char name[2 * TARGET_IMPL_MAX];
    ck_assert_ptr_eq(target_impl_name("own", "tiles"), target_impl_name("", "own tiles"));
    ck_assert_str_eq(target_impl_name("cublaslt", ""), "cublaslt");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_uint_eq(strlen(target_impl_name("own", name)), TARGET_IMPL_MAX - 1);
    for (int k = 0; k < 20000; k++) {
        snprintf(name, sizeof name, "eng%d", k);
        const char *kept = target_impl_name("cudnn", name);
        ck_assert_str_ne(kept, "");
        ck_assert_ptr_eq(target_impl_name("cudnn", name), kept);
    }
    ck_assert_str_eq(target_impl_name("own", "tiles"), "own tiles");
}
END_TEST

START_TEST(threads_agree)
{
    pthread_t threads[THREADS];
    for (int k = 0; k < THREADS; k++) {
        ck_assert_int_eq(pthread_create(&threads[k], NULL, ask_on_a_thread, NULL), 0);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
    }
    ck_assert_uint_ge(atomic_load(&asked), QUERIES);
    ck_assert_uint_le(atomic_load(&asked), THREADS * QUERIES);
}
END_TEST

START_TEST(the_file_brings_the_answers_back)
{
    ask_all(7);
    ck_assert(target_memo_save(path));
    ck_assert_msg(!target_memo_save(path), "nothing new was written again");
    target_forget();
    target_memo_load(path);
    ask_all(7);
    ck_assert_uint_eq(atomic_load(&asked), QUERIES);
    ck_assert(!target_memo_save(path));
}
END_TEST

// Writes the first `bytes` of data with one byte changed.
static void damage(const char *data, size_t bytes, size_t changed)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    for (size_t k = 0; k < bytes; k++) {
        fputc(k == changed ? data[k] ^ 0x10 : data[k], file);
    }
    fclose(file);
}

START_TEST(a_damaged_file_is_as_if_it_were_not_there)
{
    char *data = NULL;
    size_t bytes = 0;
    ask_all(7);
    ck_assert(target_memo_save(path));
    ck_assert_int_eq(file_read(path, UINT64_C(1) << 30, &data, &bytes, NULL), HR_OK);
    for (int round = 0; round < 12; round++) {
        atomic_store(&asked, 0);
        if (round < 6) {
            damage(data, bytes * (size_t)round / 6, SIZE_MAX);
        } else {
            damage(data, bytes, (bytes - 1) * (size_t)(round - 6) / 5);
        }
        target_forget();
        target_memo_load(path);
        op_query q = query_of(1);
        target_answer a;
        ck_assert_int_eq(
            target_ask(&(hr_target){.name = "counting", .key = 42, .ask = answer}, &q, 7, &a, NULL), HR_OK);
        ck_assert_uint_eq(atomic_load(&asked), 1);
    }
    hr_free(data);
}
END_TEST

START_TEST(the_program_knows_its_build)
{
    ck_assert_uint_ne(build_id_hash(), 0);
    ck_assert_uint_eq(build_id_hash(), build_id_hash());
}
END_TEST

START_TEST(no_file_can_be_written_and_nothing_is_lost)
{
    ask_all(7);
    for (uint64_t nth = 1; nth < 12; nth++) {
        file_fail_at(nth);
        (void)target_memo_save(path);
        file_fail_at(0);
        ask_all(7);
    }
    ck_assert_uint_eq(atomic_load(&asked), QUERIES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("target memo");
    TCase *tests = tcase_create("memo");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_question_is_asked_once_and_its_limit_is_part_of_it);
    tcase_add_test(tests, an_estimate_stands_in_for_what_was_not_asked_and_is_forgotten);
    tcase_add_test(tests, equal_names_are_one_and_none_is_lost);
    tcase_add_test(tests, threads_agree);
    tcase_add_test(tests, the_file_brings_the_answers_back);
    tcase_add_test(tests, a_damaged_file_is_as_if_it_were_not_there);
    tcase_add_test(tests, the_program_knows_its_build);
    tcase_add_test(tests, no_file_can_be_written_and_nothing_is_lost);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
