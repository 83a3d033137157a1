// SPDX-License-Identifier: Apache-2.0
// run --plain says everything in whole sentences on stdout, and its numbers are those of the report in JSON.
#include <check.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "program.h"

static json_t *report_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(value != NULL, "%s", key);
    return value;
}

static uint64_t bytes_of(const json_t *report, const char *key)
{
    return (uint64_t)json_integer_value(member(member(report, "memory"), key));
}

__attribute__((format(printf, 2, 3))) static void assert_says(const char *text, const char *format, ...)
{
    char wanted[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wanted, sizeof wanted, format, arguments);
    va_end(arguments);
    ck_assert_msg(strstr(text, wanted) != NULL, "\"%s\" is not in:\n%s", wanted, text);
}

// Every line is a sentence, and nothing in it moves a cursor.
static void assert_sentences(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        ck_assert_msg(*c == '\n' || !iscntrl((unsigned char)*c), "a control character:\n%s", text);
        bool begins = c == text || c[-1] == '\n';
        ck_assert_msg(!begins || isupper((unsigned char)*c), "no beginning of a sentence: %s", c);
        ck_assert_msg(*c != '\n' || (c > text && c[-1] == '.'), "no end of a sentence:\n%s", text);
    }
    ck_assert(text[0] != '\0' && text[strlen(text) - 1] == '\n');
}

#define SUBJECT "demo -s device.kind=plan --steps 3 -s batch.size="

static void assert_memory_is_said(const char *text, const json_t *report)
{
    char peak[HR_BYTES_TEXT_MAX], left[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    const uint64_t peak_bytes = bytes_of(report, "peak_in_use_bytes"),
                   limit_bytes = bytes_of(report, "limit_bytes");
    const json_t *at_peak = member(member(report, "memory"), "at_peak");
    assert_says(text, " %s at its peak (", hr_bytes_human(peak_bytes, peak));
    assert_says(text, "which is at %s in the %s phase", json_string_value(member(at_peak, "name")),
                json_string_value(member(at_peak, "phase")));
    assert_says(text, "At the peak, %s (%.1f %%) of the limit of %s are left.",
                hr_bytes_human(limit_bytes - peak_bytes, left),
                100 * (double)(limit_bytes - peak_bytes) / (double)limit_bytes,
                hr_bytes_human(limit_bytes, limit));
    ck_assert_uint_gt(bytes_of(report, "waste_bytes"), 0);
    assert_says(text, " and waste %s.", hr_bytes_human(bytes_of(report, "waste_bytes"), peak));
    for (size_t k = 0; k < 3; k++) {
        const json_t *tensor = json_array_get(member(at_peak, "tensors"), k);
        assert_says(text, "%s (%s, ", json_string_value(member(tensor, "name")),
                    json_string_value(member(tensor, "category")));
    }
}

START_TEST(memory_and_what_if_are_those_of_plans)
{
    outcome o = program_run("run " SUBJECT "32 --plain");
    assert_exit(&o, SUBJECT, 0);
    assert_sentences(o.out);
    ck_assert_str_eq(o.err, "");
    json_t *report = report_of("plan " SUBJECT "32 --json", 0),
           *next = report_of("plan " SUBJECT "64 --json", 0);
    char peak[HR_BYTES_TEXT_MAX];
    assert_memory_is_said(o.out, report);
    assert_says(o.out, "Playing demo without arithmetic");
    assert_says(o.out, "It is to do 3 steps.");
    assert_says(o.out, "It is done after step 3");
    assert_says(o.out, "With -s batch.size=64 it would still fit, in %s at the peak",
                hr_bytes_human(bytes_of(next, "peak_in_use_bytes"), peak));
    json_decref(next);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_larger_batch_that_does_not_fit_is_said_with_what_it_misses)
{
    outcome o = program_run("run " SUBJECT "128 --plain");
    assert_exit(&o, SUBJECT, 0);
    assert_says(o.out, "With -s batch.size=256 it would not fit: that needs ");
    assert_says(o.out, " MiB more than there are.");
    outcome_deinit(&o);
}
END_TEST

START_TEST(an_out_of_memory_is_said_with_its_cause_and_every_fix)
{
    outcome o = program_run("run " SUBJECT "256 --plain");
    assert_exit(&o, SUBJECT, 1);
    assert_sentences(o.out);
    json_t *report = report_of("run " SUBJECT "256 --json", 1);
    const json_t *oom = member(report, "oom");
    size_t k;
    json_t *fix;
    assert_says(o.out, "The cause is %s: ", json_string_value(member(oom, "cause")));
    ck_assert_uint_gt(json_array_size(member(oom, "fixes")), 0);
    json_array_foreach(member(oom, "fixes"), k, fix)
    {
        char peak[HR_BYTES_TEXT_MAX];
        assert_says(o.out, "in %s at the peak (planned)",
                    hr_bytes_human((uint64_t)json_integer_value(member(fix, "peak_bytes")), peak));
    }
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

// On the clock of the plan device, so that it is the same on every machine.
START_TEST(each_minute_has_its_sentence)
{
    enum { STEPS = 400 };
    outcome o = program_run("run resnet50 --steps 400 --plain");
    assert_exit(&o, "run resnet50", 0);
    assert_sentences(o.out);
    json_t *report = report_of("plan resnet50 --json", 0);
    const double seconds = json_real_value(member(member(report, "step"), "seconds"));
    int count = 0;
    for (const char *at = o.out; (at = strstr(at, "Step ")) != NULL; at++, count++) {
        const double since_first = (atof(at + 5) - 1) * seconds; // the sentence before is of that step
        ck_assert_double_ge(since_first, 60.0 * (count + 1));
        ck_assert_double_lt(since_first, (60.0 + seconds) * (count + 1));
    }
    ck_assert_int_eq(count, (int)((STEPS - 1) * seconds / (60.0 + seconds)));
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

START_TEST(beside_json_the_sentences_go_to_stderr)
{
    outcome o = program_run("run " SUBJECT "32 --plain --json");
    assert_exit(&o, SUBJECT, 0);
    json_decref(assert_json(&o, SUBJECT));
    assert_sentences(o.err);
    assert_says(o.err, "It is done after step 3");
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_training_says_its_losses)
{
    outcome o = program_run("run demo --steps 2 -s batch.size=2 -s device.kind=reference --plain");
    assert_exit(&o, "run demo", 0);
    assert_sentences(o.out);
    assert_says(o.out,
                "Training demo on generated data: 695,493 parameters, all of them trained, in batches of 2,");
    assert_says(o.out, "The loss went from 2.3");
    assert_says(o.out, "The SHA-256 of the weights is ");
    outcome_deinit(&o);
}
END_TEST

#define TAUGHT                                                                                               \
    "cifar10_separable_cnn_tiny -s device.kind=reference -s pipeline.source=generated -s "                   \
    "pipeline.samples=40 "                                                                                   \
    "-s batch.size=8 -s compress.distill=self -s compress.distill_cache=on --steps 2"

// With --plain in sentences, else in lines on stderr; the loss and its parts as the report has them.
START_TEST(a_teacher_is_heard_before_the_first_step)
{
    outcome o = program_run("run --plain " TAUGHT);
    assert_exit(&o, TAUGHT, 0);
    assert_sentences(o.out);
    const char *begins = strstr(o.out, "The teacher answers 40 samples before the first step.\n");
    const char *ends = strstr(o.out, "The teacher has answered all of them, which took ");
    const char *model = strstr(o.out, "Training cifar10_separable_cnn");
    ck_assert_msg(begins != NULL && ends > begins && model > ends, "%s", o.out);
    assert_says(o.out, " from the labels and ");
    outcome_deinit(&o);
    o = program_run("run --json " TAUGHT);
    assert_exit(&o, TAUGHT, 0);
    json_t *report = assert_json(&o, TAUGHT);
    const json_t *train = member(report, "train");
    assert_says(o.err, "teacher answers 0 of 40\n");
    assert_says(o.err, "teacher answers 40 of 40\n");
    assert_says(o.err, "step 2 of 2  loss %.6f  student %.4f  distill %.4f  peak ",
                json_real_value(member(train, "loss_last")), json_real_value(member(train, "loss_student")),
                json_real_value(member(train, "loss_distill")));
    ck_assert(json_is_integer(member(member(report, "answers"), "peak_in_use_bytes")));
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("plain");
    tcase_add_test(tests, a_teacher_is_heard_before_the_first_step);
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_test(tests, memory_and_what_if_are_those_of_plans);
    tcase_add_test(tests, a_larger_batch_that_does_not_fit_is_said_with_what_it_misses);
    tcase_add_test(tests, an_out_of_memory_is_said_with_its_cause_and_every_fix);
    tcase_add_test(tests, each_minute_has_its_sentence);
    tcase_add_test(tests, beside_json_the_sentences_go_to_stderr);
    tcase_add_test(tests, a_training_says_its_losses);
    Suite *suite = suite_create("plain");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
