// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom run`: what it reports where, and how it ends: by a signal, a full disk or data that fail, with a save.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

START_TEST(a_run_reports_on_stdout_and_goes_on_about_itself_on_stderr)
{
    static const char words[] = "run demo -s device.kind=reference -s batch.size=2 --steps 2";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "training on generated data"));
    ck_assert_ptr_nonnull(strstr(o.out, "memory at the peak"));
    ck_assert_ptr_nonnull(strstr(o.err, "step 2 of 2  loss "));
    ck_assert_ptr_null(strchr(o.err, '\r'));
    ck_assert_ptr_null(strchr(o.err, '\x1b'));
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_run_under_loss_scaling_says_the_scale_and_what_it_skipped)
{
    static const char words[] =
        "run demo -s device.kind=reference -s batch.size=2 -s precision.policy=mixed_float16 --steps 2";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "  loss scale           32768, 0 steps skipped\n"));
    outcome_deinit(&o);
}
END_TEST

static const int gentle[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

START_TEST(a_signal_finishes_the_step_saves_and_reports)
{
    char words[256];
    snprintf(words, sizeof words,
             "run demo -s device.kind=reference -s batch.size=2 --steps 100000 --json -s "
             "train.save=%s/w.safetensors",
             program_home());
    outcome o = program_interrupt(words, gentle[_i]);
    assert_exit(&o, words, 128 + gentle[_i]);
    json_t *report = assert_json(&o, words);
    json_int_t steps = json_integer_value(json_object_get(json_object_get(report, "train"), "steps"));
    ck_assert_int_ge(steps, 1);
    ck_assert_int_lt(steps, 100000);
    ck_assert_ptr_nonnull(strstr(o.err, "headroom: interrupted after step "));
    ck_assert_ptr_nonnull(strstr(o.err, ", saved to "));
    ck_assert_ptr_nonnull(strstr(o.err, "  try: -s train.resume="));
    json_decref(report);
    outcome_deinit(&o);

    snprintf(words, sizeof words,
             "run demo -s device.kind=reference -s batch.size=2 --steps %d --json -s "
             "train.resume=%s/w.safetensors",
             (int)steps + 1, program_home());
    o = program_run(words);
    assert_exit(&o, words, 0);
    report = assert_json(&o, words);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(report, "train"), "steps")),
                     steps + 1);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

static void signal_twice(pid_t child, void *number)
{
    ck_assert_int_eq(kill(child, *(int *)number), 0);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); // so that they are two, within a step
    (void)kill(child, *(int *)number);
}

// `timeout` and a shell whose line was dropped: nobody is impatient.
START_TEST(a_signal_that_comes_twice_does_not_cost_the_save)
{
    static int twice[] = {SIGTERM, SIGHUP};
    char words[256], save[160];
    snprintf(save, sizeof save, "%s/twice.safetensors", program_home());
    snprintf(words, sizeof words,
             "run demo -s device.kind=reference -s batch.size=16 --steps 100000 -s train.save=%s", save);
    outcome o = program_meddle(words, signal_twice, &twice[_i]);
    assert_exit(&o, words, 128 + twice[_i]);
    ck_assert_msg(strstr(o.err, ", saved to ") != NULL, "%s", o.err);
    ck_assert_int_eq(access(save, F_OK), 0);
    outcome_deinit(&o);
}
END_TEST

#define SMALL "-s device.kind=reference -s batch.size=2"

// Who ends a recipe ends its run as a person would.
START_TEST(a_signal_ends_a_recipe_with_a_save)
{
    char words[256], save[160];
    snprintf(save, sizeof save, "%s/headroom-out/s.safetensors", program_home());
    snprintf(words, sizeof words, "%s/train.lua", program_home());
    FILE *f = fopen(words, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "hr.preset 'demo'\nhr.on('step', function() hr.note('step') end)\n"
               "hr.run{steps = 100000, ['device.kind'] = 'reference', ['batch.size'] = 2,\n"
               "       ['train.save'] = 's.safetensors'}\n");
    fclose(f);
    snprintf(words, sizeof words, "script %s/train.lua", program_home());
    ck_assert_int_eq(chdir(program_home()), 0);
    outcome o = program_interrupt(words, gentle[_i]);
    assert_exit(&o, words, 128 + gentle[_i]);
    ck_assert_msg(strstr(o.err, ", saved to headroom-out/s.safetensors.\n") != NULL, "%s", o.err);
    ck_assert_int_eq(access(save, F_OK), 0);
    outcome_deinit(&o);
}
END_TEST

// The ring of events and the save are larger than allowed: the run goes on without watchers, and says which file it was.
START_TEST(a_file_that_may_not_be_so_large_has_a_sentence)
{
    char words[256];
    const struct rlimit small = {64 << 10, 64 << 10};
    snprintf(words, sizeof words, "run demo " SMALL " --steps 2 -s train.save=%s/large.safetensors",
             program_home());
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", program_home(), 1), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    outcome o = program_run(words);
    assert_exit(&o, words, 5);
    ck_assert_msg(strstr(o.err, "large.safetensors: cannot be written: File too large") != NULL, "%s", o.err);
    ck_assert_ptr_nonnull(strstr(o.err, "headroom: ended after step 2, nothing saved: "));
    outcome_deinit(&o);
}
END_TEST

static void write_images(const char *name, size_t images)
{
    static const char image[3073];
    char path[192];
    snprintf(path, sizeof path, "%s/%s", program_home(), name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (size_t k = 0; k < images; k++) {
        ck_assert_uint_eq(fwrite(image, sizeof image, 1, f), 1);
    }
    fclose(f);
}

static void truncate_file(pid_t child, void *path)
{
    (void)child;
    ck_assert_int_eq(truncate(path, 3073), 0);
}

// The images go while it trains.
START_TEST(data_that_fail_after_good_steps_end_with_a_save_and_say_so)
{
    char words[300], path[192];
    const int saves = _i == 0;
    write_images("data_batch_1.bin", 200);
    write_images("test_batch.bin", 4);
    snprintf(words, sizeof words, "run demo " SMALL " --steps 100000 -s pipeline.path=%s -s train.save=%s%s",
             program_home(), saves ? program_home() : "", saves ? "/d.safetensors" : "");
    snprintf(path, sizeof path, "%s/data_batch_1.bin", program_home());
    outcome o = program_meddle(words, truncate_file, path);
    assert_exit(&o, words, 5);
    const char *first = strstr(o.err, "headroom: data failed: "),
               *last = strstr(o.err, "headroom: ended after step ");
    ck_assert_msg(first != NULL && last != NULL && first < last, "%s", o.err);
    ck_assert_ptr_nonnull(strstr(last, saves ? ", saved to " : ", nothing saved: train.save is not set.\n"));
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_run_with_nothing_left_to_do_measures_nothing)
{
    char words[256];
    snprintf(words, sizeof words, "run demo " SMALL " --steps 2 -s train.save=%s/done.safetensors",
             program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);

    snprintf(words, sizeof words, "run demo " SMALL " --steps 1 -s train.resume=%s/done.safetensors",
             program_home());
    o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(
        strstr(o.out, "already at step 2: nothing to train; --steps counts from the beginning\n"));
    ck_assert_ptr_null(strstr(o.out, "memory"));
    outcome_deinit(&o);

    strcat(words, " --json");
    o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    const json_t *memory = json_object_get(report, "memory");
    ck_assert(json_is_null(json_object_get(memory, "peak_in_use_bytes")));
    ck_assert(json_is_null(json_object_get(memory, "at_peak")));
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(report, "train"), "steps")), 2);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_loss_that_is_no_number_is_said)
{
    static const char words[] = "run demo " SMALL " --steps 20 -s optimizer.learning_rate=1000";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.err, "step 20 of 20  loss nan  ") != NULL, "%s", o.err);
    ck_assert_ptr_nonnull(strstr(o.err, "headroom: the loss is no longer a number.\n"
                                        "  try: -s optimizer.learning_rate=100\n"));
    ck_assert_ptr_nonnull(strstr(o.out, "at first, nan at last\n  the loss is no longer a number\n"));
    outcome_deinit(&o);
}
END_TEST

// Its terminal has gone: what is read later is the file that stderr went to, and its last word is what was kept.
START_TEST(a_hang_up_ends_with_what_was_kept)
{
    char command[1024];
    const char *home = program_home();
    (void)snprintf(command, sizeof command,
                   "HOME=%s; export HOME; " HEADROOM_PROGRAM
                   " run demo -s device.kind=reference -s batch.size=2 --steps 100000 "
                   "-s train.save=%s/hup.safetensors >/dev/full 2>%s/hup & p=$!; "
                   "until grep -q step %s/hup; do sleep 0.05; done; kill -HUP $p; wait $p; test $? = 129 && "
                   "grep -q 'saved to' %s/hup && ! grep -q 'writing failed' %s/hup",
                   home, home, home, home, home, home);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(an_interruption_claims_no_save_that_was_not_written)
{
    char words[256];
    snprintf(
        words, sizeof words,
        "run demo -s device.kind=plan --plain --json --steps 100000000 -s train.save=%s/none.safetensors",
        program_home());
    outcome o = program_interrupt(words, SIGINT);
    assert_exit(&o, words, 130);
    ck_assert_msg(strstr(o.err, ", nothing saved: the plan device has no weights.") != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_same_save_is_said_once)
{
    char words[256];
    snprintf(words, sizeof words,
             "run demo " SMALL " --steps 2 -s train.save_every=1 -s train.save=%s/once.safetensors",
             program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.err, "  step 1\n"));
    const char *last = strstr(o.err, "  step 2\n");
    ck_assert_msg(last != NULL && strstr(last + 1, "  step 2\n") == NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(steps_of_the_plan_device_are_played_not_trained)
{
    static const char words[] = "run demo -s device.kind=plan --steps 2";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "played on the plan device: no arithmetic, nothing trained"));
    ck_assert(strstr(o.out, "training") == NULL && strstr(o.err, "loss") == NULL);
    ck_assert_ptr_nonnull(strstr(o.out, " simulated\n  step time"));
    ck_assert_ptr_nonnull(strstr(o.out, "estimated as an A100 takes it"));
    outcome_deinit(&o);
}
END_TEST

// The bytes of a row of the text report, in the unit it is printed in.
static double row_bytes(const char *table, const char *label)
{
    static const char units[] = "BKMGT";
    double bytes = 0;
    char unit = 'B';
    const char *row = strstr(table, label);
    if (row != NULL) {
        ck_assert_int_eq(sscanf(row + strlen(label), "%lf %c", &bytes, &unit), 2);
    }
    for (const char *u = strchr(units, unit); u != units; u--) {
        bytes *= 1024;
    }
    return bytes;
}

START_TEST(rows_of_an_oom_add_up)
{
    static const char *const labels[] = {"W weights ",     "G gradients ", "O optimizer ",
                                         "A activations ", "I input ",     "  waste "};
    static const char words[] = "plan demo -s batch.size=512";
    double sum = 0;
    outcome o = program_run(words);
    assert_exit(&o, words, 1);
    const char *table = strstr(o.out, "memory when it ran out");
    ck_assert(table != NULL && strstr(table, "  waste ") != NULL);
    for (size_t k = 0; k < COUNT(labels); k++) {
        sum += row_bytes(table, labels[k]);
    }
    ck_assert_double_eq_tol(sum, row_bytes(table, "  in use "), 64 * 1024); // of the printed digits
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_limit_says_what_set_it)
{
    static const char words[] = "plan demo -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=1GiB";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, " plan, rtx3070-8g, limit 1.00 GiB (device.vram)\n"));
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("run command");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_test(tests, a_run_reports_on_stdout_and_goes_on_about_itself_on_stderr);
    tcase_add_test(tests, a_run_under_loss_scaling_says_the_scale_and_what_it_skipped);
    tcase_add_test(tests, a_run_with_nothing_left_to_do_measures_nothing);
    tcase_add_test(tests, a_loss_that_is_no_number_is_said);
    tcase_add_test(tests, a_hang_up_ends_with_what_was_kept);
    tcase_add_test(tests, an_interruption_claims_no_save_that_was_not_written);
    tcase_add_test(tests, the_same_save_is_said_once);
    tcase_add_test(tests, steps_of_the_plan_device_are_played_not_trained);
    tcase_add_test(tests, rows_of_an_oom_add_up);
    tcase_add_test(tests, the_limit_says_what_set_it);
    tcase_add_loop_test(tests, a_signal_finishes_the_step_saves_and_reports, 0,
                        sizeof gentle / sizeof *gentle);
    tcase_add_test(tests, a_file_that_may_not_be_so_large_has_a_sentence);
    tcase_add_loop_test(tests, a_signal_that_comes_twice_does_not_cost_the_save, 0, 2);
    tcase_add_loop_test(tests, a_signal_ends_a_recipe_with_a_save, 0, 3);
    tcase_add_loop_test(tests, data_that_fail_after_good_steps_end_with_a_save_and_say_so, 0, 2);
    Suite *suite = suite_create("run command");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
