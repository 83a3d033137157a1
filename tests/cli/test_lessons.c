// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom lesson`: every lesson that ships keeps what it promises, one can be done with the words that it says,
// and what was done is remembered.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "program.h"

enum { TEXT_MAX = 64 * 1024 };

START_TEST(every_lesson_keeps_what_it_promises)
{
    outcome o = program_run("lesson verify");
    assert_exit(&o, "lesson verify", 0);
    ck_assert_str_eq(o.err, "");
    ck_assert_ptr_nonnull(strstr(o.out, "05-batch-size"));
    outcome_deinit(&o);
}
END_TEST

// The lesson with these lines on stdin; what it says. Returns the exit code.
static int do_lesson(const char *lesson, const char *lines, char said[TEXT_MAX])
{
    char command[1024], file[256];
    (void)snprintf(file, sizeof file, "%s/lines", program_home());
    FILE *typed = fopen(file, "w");
    ck_assert_ptr_nonnull(typed);
    ck_assert_int_ge(fputs(lines, typed), 0);
    ck_assert_int_eq(fclose(typed), 0);
    (void)snprintf(command, sizeof command, "HOME=%s XDG_STATE_HOME= '%s' lesson %s <'%s' 2>&1",
                   program_home(), HEADROOM_PROGRAM, lesson, file);
    FILE *program = popen(command, "r");
    ck_assert_ptr_nonnull(program);
    said[fread(said, 1, TEXT_MAX - 1, program)] = '\0';
    const int status = pclose(program);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_said(const char *said, const char *words)
{
    ck_assert_msg(strstr(said, words) != NULL, "'%s' is not in:\n%s", words, said);
}

START_TEST(a_lesson_is_done_with_the_words_that_it_says)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(
        do_lesson("5", "48MiB\nrun\nnext\nset batch.size=64\nrun\nhint\nbatch.size=128\nrun\nquit\n", said),
        0);
    expect_said(said, "No, it is 63.97 MiB");
    expect_said(said, "NO  so well that less than a quarter of the card is left");
    expect_said(said, "The next lesson begins when this one is done");
    expect_said(said, "Hint 1 of 3");
    expect_said(said, "Done, with 1 knob turned (par is 1) and 1 hint.");
}
END_TEST

// What a page prints can be typed as a guess: 63.97 MiB is no whole number of bytes.
START_TEST(a_guess_may_be_a_size_as_it_is_printed)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(do_lesson("5", "63.97 MiB\n", said), 1);
    expect_said(said, "Right: 63.97 MiB");
    ck_assert_int_eq(do_lesson("5", "64\n", said), 1); // in the unit that is asked for
    expect_said(said, "Right: 63.97 MiB");
    ck_assert_int_eq(do_lesson("5", "quit\n", said), 1);
    ck_assert_ptr_null(strstr(said, "As it stands"));
}
END_TEST

START_TEST(what_was_done_is_remembered)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(do_lesson("5", "48MiB\nbatch.size=128\nrun\n", said), 0);
    outcome o = program_run("lesson");
    assert_exit(&o, "lesson", 0);
    expect_said(o.out, "done 05-batch-size");
    expect_said(o.out, "headroom lesson 00-tour is the first");
    outcome_deinit(&o);
    ck_assert_int_eq(do_lesson("4", "", said), 1);
    o = program_run("lesson");
    expect_said(o.out, "     04-fragmentation");
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_sandbox_is_left_without_loss)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(
        do_lesson(
            "5",
            "\nset optimizer.kind=sgd\nset batch.size=64\nsandbox\nset batch.size=8 optimizer.kind=sgd\n"
            "run\ncheck\nback\nknobs\nset batch.size=\nrun\n",
            said),
        1);
    expect_said(said, "optimizer.kind stays as it is in this lesson");
    expect_said(said, "In the sandbox nothing is checked");
    expect_said(said, "batch.size=64   at the start 256");
}
END_TEST

START_TEST(wrong_words_are_answered)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(do_lesson("5", "lots\n\nset batch.sise=3\nset batch.size=0\nhunt\nrunn\n", said), 1);
    expect_said(said, "a number or a size, such as 48MiB");
    expect_said(said, "batch.sise");
    expect_said(said, "try: set batch.size=");
    expect_said(said, "a lesson has no 'hunt' — did you mean 'hint'?");
    outcome o = program_run("lesson batchsize");
    assert_exit(&o, "lesson batchsize", 2);
    expect_said(o.err, "did you mean 'batch-size'?");
    outcome_deinit(&o);
}
END_TEST

// 80 columns hold what a lesson says, errors and all; at a terminal the prompt stands before what is typed.
START_TEST(what_a_lesson_says_fits_eighty_columns)
{
    static const char *const some[] = {"0", "3", "8", "14", "22", "40", "49"};
    static char said[TEXT_MAX];
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        (void)do_lesson(
            some[k],
            "x\n\n\n\n\nrun\nknobs\nknobs pipeline.stages\nknobs bach.size\nhint\nhint\nhint\n"
            "set no.knob.has.such.a.long.name.as.this.one.has=1\nset execution.mod=graph\n"
            "sandbox\nset device.vram=1 batch.size=1 execution.mode=graph\nrun\nback\nhunt\nhelp\n",
            said);
        for (const char *at = said; *at != '\0';) {
            size_t columns = 0, bytes = strcspn(at, "\n");
            for (size_t n = 0; n < bytes; n++) {
                columns += ((unsigned char)at[n] & 0xC0) != 0x80;
            }
            ck_assert_msg(columns <= 80, "lesson %s: %.*s", some[k], (int)bytes, at);
            at += bytes + (at[bytes] == '\n');
        }
    }
}
END_TEST

// A hint of some other time is shown again before the next, and counted once; knobs stand in a row each.
START_TEST(hints_are_counted_once_and_knobs_are_few_rows)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(do_lesson("5", "48MiB\nhint\nquit\n", said), 1);
    ck_assert_int_eq(do_lesson("5", "48MiB\nhint\nknobs\nknobs batch.size\nbatch.size=128\nrun\n", said), 0);
    expect_said(said, "Hint 1 of 3");
    expect_said(said, "    batch.size=256\n    knobs KEY says what one does");
    expect_said(said, "samples in memory at once");
    expect_said(said, "and 1 hint.");
}
END_TEST

// What the engine refuses is what a lesson does not keep, and the rest of it is looked at.
START_TEST(what_a_lesson_does_not_keep_is_said)
{
    char file[256], command[512];
    (void)snprintf(file, sizeof file, "%s/lesson.yaml", program_home());
    FILE *lesson = fopen(file, "w");
    ck_assert_ptr_nonnull(lesson);
    (void)fputs("title: T\nline: about\npreset: demo\nknobs: device.kind=plan batch.size=256\npar: 1\n"
                "fails: [oom.cause = capacity]\nfacts: [memory.peak_in_use_bytes < 1]\nunlocked: [batch]\n"
                "ask:\n  - question: 'Is {train.loss_last} it?'\n    choices: [a, b]\n    answer: 1\n"
                "    because: 'It is {train.loss_last}.'\n"
                "goals: [{want: it fits, that: oom.cause = none}]\npages: [a]\nafter: [b]\nhints: [a, b, c]\n"
                "solution: train.save_every=5\nless: [train.save_every=5, batch.size=128]\n",
                lesson);
    ck_assert_int_eq(fclose(lesson), 0);
    (void)snprintf(command, sizeof command, "lesson verify %s", file);
    outcome o = program_run(command);
    assert_exit(&o, command, 1);
    expect_said(o.out, "its solution is refused: ");
    expect_said(o.out, "question 1: a figure of it is not known: Is unknown it?");
    expect_said(o.out, "line 13: a figure of the page is not known");
    expect_said(o.out, "as it claims does not hold: memory.peak_in_use_bytes < 1");
    outcome_deinit(&o);
}
END_TEST

// A lesson that keeps all that it promises, and one promise of it after the other broken.
START_TEST(each_promise_that_is_broken_is_found)
{
    static const char good[] =
        "title: T\nline: about\npreset: demo\nknobs: device.kind=plan batch.size=256\n"
        "par: 1\nruns: {half: batch.size=128}\nfails: [oom.cause = capacity]\n"
        "facts: [half.memory.peak_in_use_bytes < 64MiB]\nunlocked: [batch.size]\n"
        "batch: 128\nask:\n  - {question: how, answer: half.memory.peak_in_use_bytes}\n"
        "goals: [{want: it fits, that: oom.cause = none}]\n"
        "pages: ['Text {half.memory.peak_in_use_bytes}.']\nafter: [b]\n"
        "hints: [smaller, half of it, set batch.size=128]\nsolution: batch.size=128\n"
        "less: [batch.size=64]\n";
    static const struct {
        const char *from, *to, *said;
    } broken[] = {
        {"", "", NULL},
        {"cause = capacity", "cause = fragmentation",
         "line 7: of its start does not hold: oom.cause = fragmentation (it is capacity)"},
        {"plan batch.size=256", "plan batch.size=128", "its start reaches all goals"},
        {"solution: batch.size=128", "solution: batch.size=256",
         "its solution does not pass: it fits (capacity)"},
        {"[batch.size]", "[batch]", NULL},
        {"solution: batch.size=128", "solution: batch.size=32 batch.accumulate=4",
         "its par is 1, and its solution turns 2 knobs"},
        {"less: [batch.size=64]", "less: [batch.size=128]", "doing less passes: batch.size=128"},
        {"batch: 128\n", "batch: 1\n", "doing less passes: its solution with half the batch"},
        {"< 64MiB", "< 32MiB", "as it claims does not hold: half.memory.peak_in_use_bytes < 32MiB"},
        {"half of it", "try 128", "hint 2 gives the answer away: batch.size=128"},
        {"[smaller,", "[batch.size=128 it is,", "hint 1 gives the answer away: batch.size=128"},
        {"answer: half.memory.peak_in_use_bytes", "answer: half.train.loss_last",
         "question 1: its answer is no number"},
        {"Text {half", "123456789 123456789 123456789 123456789 123456789 123456789 123456789 {half",
         "with its figures it is longer than 76 columns"},
        {"[b]", "['It is {train.loss_last}.']", "a figure of the page is not known"},
    };
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        char file[256], command[512], content[2048];
        const char *at = strstr(good, broken[k].from);
        ck_assert_ptr_nonnull(at);
        (void)snprintf(content, sizeof content, "%.*s%s%s", (int)(at - good), good, broken[k].to,
                       at + strlen(broken[k].from));
        (void)snprintf(file, sizeof file, "%s/lesson.yaml", program_home());
        FILE *lesson = fopen(file, "w");
        ck_assert_ptr_nonnull(lesson);
        ck_assert_int_ge(fputs(content, lesson), 0);
        ck_assert_int_eq(fclose(lesson), 0);
        (void)snprintf(command, sizeof command, "lesson verify %s", file);
        outcome o = program_run(command);
        ck_assert_msg(o.exit_code == (broken[k].said != NULL), "%s: %s%s", broken[k].to, o.out, o.err);
        expect_said(o.out, broken[k].said != NULL ? broken[k].said : "start fails, solution passes");
        outcome_deinit(&o);
    }
}
END_TEST

// The exit status is of the session: a lesson that was passed before is not passed by leaving it.
START_TEST(a_lesson_is_passed_by_what_is_done_now)
{
    static char said[TEXT_MAX];
    ck_assert_int_eq(do_lesson("5", "48MiB\nbatch.size=128\nrun\n", said), 0);
    ck_assert_int_eq(do_lesson("5", "\nquit\n", said), 1);
}
END_TEST

START_TEST(the_book_has_every_lesson)
{
    outcome list = program_run("lesson"), book = program_run("lesson --book");
    assert_exit(&book, "lesson --book", 0);
    unsigned chapters = 0, lessons = 0, pictures = 0, fences = 0;
    for (const char *at = strstr(book.out, "\n## "); at != NULL; at = strstr(at + 1, "\n## ")) {
        chapters++;
    }
    for (const char *at = list.out; *at != '\0' && *at != '\n'; at = strchr(at, '\n') + 1) {
        lessons += at[5] != ' '; // a line that goes on stands further in
    }
    ck_assert_uint_ge(lessons, 2);
    ck_assert_uint_eq(chapters, lessons);
    for (const char *at = strstr(book.out, "\n```"); at != NULL; at = strstr(at + 1, "\n```")) {
        fences++;
        pictures += strncmp(at, "\n```text\n headroom  ", 20) == 0;
    }
    ck_assert_uint_eq(pictures, lessons); // the workbench where each begins
    ck_assert_uint_eq(fences % 2, 0);
    expect_said(book.out, "1bench 2memory 3timeline"); // and not another program's
    expect_said(book.out, "runs out of memory");
    expect_said(book.out, "```\n  weights       W   what is learned\n"); // a table stays one
    ck_assert_ptr_null(strstr(book.out, "{start"));
    expect_said(book.out, "**99.5**\n\nPlain convolutions"); // of the start, not of what solves lesson 37
    outcome_deinit(&list);
    outcome_deinit(&book);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lessons");
    TCase *tests = tcase_create("lessons");
    tcase_add_test(tests, every_lesson_keeps_what_it_promises);
    tcase_add_test(tests, a_lesson_is_done_with_the_words_that_it_says);
    tcase_add_test(tests, a_guess_may_be_a_size_as_it_is_printed);
    tcase_add_test(tests, what_was_done_is_remembered);
    tcase_add_test(tests, the_sandbox_is_left_without_loss);
    tcase_add_test(tests, wrong_words_are_answered);
    tcase_add_test(tests, what_a_lesson_says_fits_eighty_columns);
    tcase_add_test(tests, hints_are_counted_once_and_knobs_are_few_rows);
    tcase_add_test(tests, what_a_lesson_does_not_keep_is_said);
    tcase_add_test(tests, each_promise_that_is_broken_is_found);
    tcase_add_test(tests, a_lesson_is_passed_by_what_is_done_now);
    tcase_add_test(tests, the_book_has_every_lesson);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
