// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/status.h, of the names behind the public enumerations, and of hr_report_deinit.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/engine.h"
#include "headroom/event.h"
#include "headroom/report.h"
#include "headroom/status.h"

#include "base/host_mem.h"

START_TEST(success_leaves_the_error_untouched)
{
    hr_err err = {.status = HR_DATA, .sentence = "before"};
    ck_assert_int_eq(hr_err_set(NULL, HR_NOMEM, __FILE__, __LINE__, "x"), HR_NOMEM);
    hr_err_try(NULL, "y");
    ck_assert_str_eq(err.sentence, "before");
}
END_TEST

START_TEST(failure_says_which_needed_had_and_what_to_try)
{
    hr_err err;
    ck_assert_int_eq(HR_FAIL(&err, OOM, "conv1/out: needed %d MiB, had %d MiB", 12, 4), HR_OOM);
    char text[512];
    int length = hr_err_format(&err, text, sizeof text);
    ck_assert_str_eq(text, "headroom: memory failed: conv1/out: needed 12 MiB, had 4 MiB.\n"
                           "  try: -s batch.size=N with a smaller N\n");
    ck_assert_int_eq(length, (int)strlen(text));
    hr_err_try(&err, "-s batch.size=%d", 64);
    hr_err_format(&err, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\n  try: -s batch.size=64\n"));
    ck_assert_ptr_nonnull(strstr(err.file, "test_status.c"));
    ck_assert_int_gt(err.line, 0);
}
END_TEST

START_TEST(new_failure_forgets_the_old_attempt)
{
    hr_err err;
    (void)HR_FAIL(&err, OOM, "first");
    hr_err_try(&err, "something");
    (void)HR_FAIL(&err, DATA, "second");
    ck_assert_str_eq(err.hint, "");
}
END_TEST

START_TEST(sentence_may_be_built_from_the_error_itself)
{
    hr_err err;
    (void)HR_FAIL(&err, READ, "cannot be opened");
    (void)HR_FAIL(&err, SAVE, "run.safetensors: %s", err.sentence);
    ck_assert_str_eq(err.sentence, "run.safetensors: cannot be opened");
}
END_TEST

START_TEST(long_sentence_is_cut_and_terminated)
{
    char lengthy[2 * HR_ERR_TEXT_MAX];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    hr_err err;
    (void)HR_FAIL(&err, DATA, "%s", lengthy);
    ck_assert_uint_eq(strlen(err.sentence), HR_ERR_TEXT_MAX - 1);
    char small[16];
    ck_assert_int_gt(hr_err_format(&err, small, sizeof small), HR_ERR_TEXT_MAX);
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
}
END_TEST

START_TEST(full_stop_is_added_only_where_one_is_missing)
{
    char text[512];
    hr_err err;
    (void)HR_FAIL(&err, DATA, "Already whole.");
    hr_err_format(&err, text, sizeof text);
    ck_assert_ptr_null(strstr(text, ".."));
    (void)HR_FAIL(&err, PRESET, "a.yaml:1:2: wrong\n  batch:\n  ^");
    hr_err_format(&err, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "^\n  try: "));
}
END_TEST

START_TEST(what_a_person_has_ended_did_not_fail)
{
    char text[512];
    hr_err err;
    (void)HR_FAIL(&err, INTERRUPTED, "after step 3");
    hr_err_format(&err, text, sizeof text);
    ck_assert_str_eq(text, "headroom: interrupted after step 3.\n  try: the same command again\n");
}
END_TEST

START_TEST(every_row_has_a_name_a_sentence_and_an_exit_code)
{
    for (int i = HR_OK + 1; i < HR_STATUS_COUNT; i++) {
        hr_status status = (hr_status)i;
        int code = hr_status_exit_code(status);
        ck_assert_int_gt((int)strlen(hr_status_name(status)), 0);
        ck_assert_int_gt((int)strlen(hr_status_what(status)), 0);
        ck_assert_int_gt((int)strlen(hr_status_try(status)), 0);
        ck_assert((code >= 1 && code <= 5) || code == 130);
    }
    ck_assert_int_eq(hr_status_exit_code(HR_OK), 0);
    ck_assert_str_eq(hr_status_name((hr_status)HR_STATUS_COUNT), "STATE");
    ck_assert_int_eq(hr_status_exit_code((hr_status)-1), 1);
}
END_TEST

static hr_status fails(void)
{
    return HR_DATA;
}

static hr_status tries(int *reached)
{
    HR_TRY(HR_OK);
    *reached = 1;
    HR_TRY(fails());
    *reached = 2;
    return HR_OK;
}

START_TEST(try_returns_the_first_failure)
{
    int reached = 0;
    ck_assert_int_eq(tries(&reached), HR_DATA);
    ck_assert_int_eq(reached, 1);
}
END_TEST

START_TEST(category_letters_are_those_of_the_screens)
{
    char letters[HR_CATEGORY_COUNT + 1] = "";
    for (int i = 0; i < HR_CATEGORY_COUNT; i++) {
        letters[i] = hr_category_letter((hr_category)i);
        ck_assert_int_gt((int)strlen(hr_category_name((hr_category)i)), 2);
    }
    ck_assert_str_eq(letters, "WCGOUATISRX");
    ck_assert_str_eq(hr_category_name(HR_CATEGORY_TEMPORARIES), "temporaries");
}
END_TEST

START_TEST(numbers_beyond_a_table_have_the_name_question_mark)
{
    ck_assert_str_eq(hr_category_name((hr_category)(HR_CATEGORY_COUNT + 1)), "?");
    ck_assert_str_eq(hr_category_name((hr_category)HR_CATEGORY_COUNT), "unknown"); // a recorded step's
    ck_assert_int_eq(hr_category_letter((hr_category)-1), '?');
    ck_assert_str_eq(hr_phase_name((hr_phase)99), "?");
    ck_assert_str_eq(hr_event_name((hr_event_kind)HR_EVENT_COUNT), "?");
    ck_assert_str_eq(hr_oom_cause_name((hr_oom_cause)-7), "?");
    ck_assert_str_eq(hr_engine_state_name((hr_engine_state)HR_ENGINE_STATE_COUNT), "?");
}
END_TEST

START_TEST(names_are_those_of_traces_and_reports)
{
    ck_assert_str_eq(hr_event_name(HR_EVENT_ALLOC), "alloc");
    ck_assert_str_eq(hr_event_name(HR_EVENT_OOM), "oom");
    ck_assert_str_eq(hr_phase_name(HR_PHASE_BACKWARD), "backward");
    ck_assert_str_eq(hr_oom_cause_name(HR_OOM_FRAGMENTATION), "fragmentation");
    ck_assert_str_eq(hr_engine_state_name(HR_ENGINE_OOM), "out of memory");
}
END_TEST

START_TEST(report_gives_everything_back)
{
    int64_t before = hr_host_mem_live();
    hr_report *report = calloc(1, sizeof *report);
    report->model.layers = hr_calloc(3, sizeof *report->model.layers);
    report->memory.at_peak.tensors = hr_calloc(2, sizeof *report->memory.at_peak.tensors);
    report->memory.at_peak.tensor_count = 2;
    hr_report_deinit(report);
    ck_assert_int_eq(hr_host_mem_live(), before);
    ck_assert_ptr_null(report->model.layers);
    ck_assert_uint_eq(report->memory.at_peak.tensor_count, 0);
    hr_report_deinit(report);
    hr_report_deinit(NULL);
    free(report);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("status");
    tcase_add_test(tests, success_leaves_the_error_untouched);
    tcase_add_test(tests, failure_says_which_needed_had_and_what_to_try);
    tcase_add_test(tests, new_failure_forgets_the_old_attempt);
    tcase_add_test(tests, sentence_may_be_built_from_the_error_itself);
    tcase_add_test(tests, long_sentence_is_cut_and_terminated);
    tcase_add_test(tests, full_stop_is_added_only_where_one_is_missing);
    tcase_add_test(tests, what_a_person_has_ended_did_not_fail);
    tcase_add_test(tests, every_row_has_a_name_a_sentence_and_an_exit_code);
    tcase_add_test(tests, try_returns_the_first_failure);
    tcase_add_test(tests, category_letters_are_those_of_the_screens);
    tcase_add_test(tests, numbers_beyond_a_table_have_the_name_question_mark);
    tcase_add_test(tests, names_are_those_of_traces_and_reports);
    tcase_add_test(tests, report_gives_everything_back);
    Suite *suite = suite_create("status");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
