// SPDX-License-Identifier: Apache-2.0
// How a training in a process of its own ends: what ended it and where, what is saved before, and going on from there.
#include <sys/prctl.h>

#include "session/end.h"
#include "unit/session_use.h"

static int serve_role(const char *role);

// ---- what ended it --------------------------------------------------------------------------------------------

static const struct {
    int number;
    const char *says;
} deaths[] = {
    {SIGKILL, "killed from outside (SIGKILL)"},
    {SIGSEGV, "ended by SIGSEGV: it touched memory that is not its own"},
    {SIGBUS, "ended by SIGBUS"},
    {SIGABRT, "ended by SIGABRT"},
    {SIGTERM, "ended by SIGTERM: another process told it to end"},
    {SIGFPE, "ended by SIGFPE"},
    {SIGILL, "ended by SIGILL"},
    {SIGUSR1, "ended by signal"},
};

START_TEST(what_ended_a_worker_is_told_with_its_place)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 3);
    kill(use_child(), deaths[_i].number);
    hr_session_end end = use_wait_end(s);
    use_read(s, &n);
    ck_assert_int_eq(end.signal, deaths[_i].number);
    ck_assert_int_eq(end.exit_code, -1);
    ck_assert(!end.by_us);
    ck_assert_uint_ge(end.step, 3);
    ck_assert_uint_eq(end.saved_step, HR_NONE);
    ck_assert(n.lost > 0 || end.step == n.steps || end.step == n.steps + 1);
    ck_assert_msg(strstr(end.sentence, deaths[_i].says) != NULL, "%s", end.sentence);
    ck_assert_msg(strstr(end.sentence, end.instr == HR_NO_ID ? "between two steps" : "at instruction") !=
                      NULL,
                  "%s", end.sentence);
    ck_assert(!hr_session_send(s, &(hr_command){.kind = HR_COMMAND_PAUSE}));
    use_stop(s);
}
END_TEST

START_TEST(an_end_in_words)
{
    static const struct {
        int exit_code, signal;
        bool by_us, kernel, heartbeat, evaluates;
        uint32_t instr;
        const char *last, *says;
    } ends[] = {
        {0, 0, false, false, true, false, HR_NO_ID, "", "the training was ended"},
        {-1, SIGKILL, false, true, true, false, 7, "",
         "the worker was killed by the kernel (SIGKILL): out of host memory, in step 13 at instruction 7"},
        {-1, SIGKILL, true, true, true, false, HR_NO_ID, "",
         "the worker was killed from here (SIGKILL), between two steps, with 12 done"},
        {-1, SIGKILL, false, false, true, true, 7, "",
         "the worker was killed from outside (SIGKILL), in the evaluation after step 12"},
        {-1, SIGABRT, false, false, true, false, 9, "free(): invalid pointer",
         "the worker was ended by SIGABRT: it gave up: a library found itself in a state that must not be, "
         "in step 13 at "
         "instruction 9; the last it said: free(): invalid pointer"},
        {3, 0, false, false, false, false, 0, "",
         "the worker was ended with exit code 3, before it said anything"},
    };
    const trace_heartbeat_copy base = {.step = 12, .saved_step = 10};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        child c = {.exit_code = ends[k].exit_code, .signal = ends[k].signal, .reaped = true};
        hr_session_end end = {.by_us = ends[k].by_us};
        trace_heartbeat_copy heartbeat = base;
        (void)snprintf(c.last_line, sizeof c.last_line, "%s", ends[k].last);
        heartbeat.instr = ends[k].instr;
        heartbeat.evaluates = ends[k].evaluates;
        end_describe(&end, &c, ends[k].heartbeat ? &heartbeat : NULL, ends[k].kernel);
        ck_assert_str_eq(end.sentence, ends[k].says);
        ck_assert_uint_eq(end.saved_step, ends[k].heartbeat ? 10 : HR_NONE);
        ck_assert_uint_eq(end.instr, ends[k].evaluates || !ends[k].heartbeat ? HR_NO_ID : ends[k].instr);
    }
}
END_TEST

START_TEST(a_kill_of_ours_says_so)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 1);
    hr_session_kill(s);
    hr_session_end end = use_wait_end(s);
    ck_assert(end.by_us);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert(!use_wait_readable(s, 0) || (use_read(s, &n), true));
    use_stop(s);
}
END_TEST

START_TEST(stopping_is_quick_at_any_time)
{
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    for (int k = 0; k < 12; k++) {
        hr_session *s = use_start(&options);
        if (k % 3 > 0) {
            use_run(s, 0);
        }
        usleep((useconds_t)(k * 2000));
        if (k % 4 == 3) {
            hr_session_suspend(s, true); // a stopped worker is woken to end
        }
        use_stop(s);
    }
    use_stop(NULL);
}
END_TEST

START_TEST(a_save_that_fails_at_the_end_is_told)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_err err = {0};
    char path[128], folder[128], pair[160];
    ck_assert_int_eq(mkdir(use_file("gone", folder), 0700), 0);
    (void)snprintf(pair, sizeof pair, "train.save=%s", use_file("gone/end.safetensors", path));
    hr_knobs knobs = use_knobs((const char *const[]){pair, NULL});
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 2);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(hr_session_stop(s, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, path));
}
END_TEST

START_TEST(what_was_asked_for_before_the_end_is_done)
{
    char path[128];
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    for (int k = 0; k < 10; k++) {
        seen n = {.state = HR_ENGINE_PAUSED};
        hr_session *s = use_start(&options);
        use_run(s, 0);
        use_read_until(s, &n, use_has_steps, 1);
        use_send(s, HR_COMMAND_SAVE, 0, 0, use_file("asked.safetensors", path));
        use_stop(s);
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

START_TEST(a_save_at_the_end_is_written)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    char path[128], pair[160];
    (void)snprintf(pair, sizeof pair, "train.save=%s", use_file("end.safetensors", path));
    hr_knobs knobs = use_knobs((const char *const[]){pair, NULL});
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 2);
    use_stop(s);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

static void weights_at(const char *const *pairs, uint64_t steps, char sha[HR_SHA256_TEXT_MAX])
{
    uint64_t version = 0;
    hr_report report;
    hr_knobs knobs = use_knobs(pairs);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start_inline(&options);
    use_run_inline(s, steps);
    ck_assert(hr_session_report(s, &version, &report));
    ck_assert_uint_eq(report.train.steps, steps);
    memcpy(sha, report.train.weights_sha256, HR_SHA256_TEXT_MAX);
    hr_report_deinit(&report);
    use_stop(s);
}

static hr_report wait_report(hr_session *s, uint64_t steps)
{
    uint64_t version = 0;
    hr_report report = {.preset = ""};
    for (int k = 0; k < USE_WAIT_MS / 20; k++) {
        hr_report_deinit(&report);
        bool any = hr_session_report(s, &version, &report);
        if (any && report.train.steps == steps && report.train.weights_sha256[0] != '\0') {
            return report;
        }
        use_pause(s);
    }
    ck_abort_msg("no report of step %llu came", (unsigned long long)steps);
    return report;
}

// Pausing saves. After a kill the training goes on from there, to the weights of one that was never killed.
START_TEST(a_killed_training_goes_on_from_its_autosave)
{
    static const char *const until_20[] = {"train.steps=20", NULL};
    char path[128], whole[HR_SHA256_TEXT_MAX];
    seen n = {.state = HR_ENGINE_IDLE};
    hr_knobs knobs = use_knobs(until_20);
    hr_session_options options = use_options(&knobs);
    options.autosave_path = use_file("auto.safetensors", path);
    hr_session *s = use_start(&options);
    use_run(s, 7);
    use_read_until(s, &n, use_has_saved, 7);
    use_run(s, 5);
    use_read_until(s, &n, use_has_steps, 8);
    hr_session_kill(s);
    hr_session_end end = use_wait_end(s);
    ck_assert(end.saved_step == 7 || end.saved_step == 12);
    use_stop(s);

    options.resume_path = path;
    n = (seen){.state = HR_ENGINE_PAUSED};
    s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(n.steps, 20 - end.saved_step);
    hr_report report = wait_report(s, 20);
    weights_at(until_20, 20, whole);
    ck_assert_str_eq(report.train.weights_sha256, whole);
    hr_report_deinit(&report);
    kill(use_child(), SIGKILL);
    end = use_wait_end(s);
    ck_assert_uint_eq(end.saved_step, 20);
    use_stop(s);
}
END_TEST

// Of every signal that lets it: what was trained stands in the user's file and in the autosave, to the step.
static const int gentle[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU};

START_TEST(a_worker_that_is_told_to_end_keeps_what_it_trained)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    char save[128], path[128], pair[160];
    (void)snprintf(pair, sizeof pair, "train.save=%s", use_file("end.safetensors", save));
    hr_knobs knobs = use_knobs((const char *const[]){pair, NULL});
    hr_session_options options = use_options(&knobs);
    options.autosave_path = use_file("auto.safetensors", path);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 3);
    kill(use_child(), gentle[_i]);
    hr_session_end end = use_wait_end(s);
    ck_assert_int_eq(end.signal, gentle[_i]);
    ck_assert_uint_ge(end.saved_step, 3);
    ck_assert_uint_eq(end.saved_step, end.step);
    ck_assert_int_eq(access(save, F_OK), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    use_stop(s);
}
END_TEST

START_TEST(a_save_that_cannot_be_written_is_told_once)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    options.autosave_path = "/nonexistent/auto.safetensors";
    hr_session *s = use_start(&options);
    use_run(s, 3);
    hr_err err = use_wait_error(s);
    ck_assert_ptr_nonnull(strstr(err.sentence, "/nonexistent"));
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    use_stop(s);
}
END_TEST

// ---- the owner ------------------------------------------------------------------------------------------------

// A process that starts a training, tells its worker's id and sleeps.
static int serve_owner(void)
{
    hr_session *s = NULL;
    hr_preset *preset = NULL;
    if (hr_preset_open(getenv("TEST_PRESET"), false, &preset, NULL, NULL) != HR_OK) {
        return 1;
    }
    const hr_session_options options = {.preset = getenv("TEST_PRESET"), .knobs = hr_preset_knobs(preset)};
    if (hr_session_start(&options, &s, NULL) != HR_OK) {
        return 1;
    }
    pid_t worker = use_find_child();
    return write(STDOUT_FILENO, &worker, sizeof worker) == sizeof worker ? pause() : 1;
}

static int serve_role(const char *role)
{
    return strcmp(role, "owner") == 0 ? serve_owner() : hr_session_serve(role, NULL);
}

START_TEST(a_worker_dies_with_its_owner)
{
    int ends[2], status = 0;
    pid_t worker = 0;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe(ends), 0);
    setenv("TEST_PRESET", use_preset, 1);
    pid_t owner = fork();
    if (owner == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "headroom", "@owner", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &worker, sizeof worker), sizeof worker);
    kill(owner, SIGKILL);
    ck_assert_int_eq(waitpid(owner, &status, 0), owner);
    ck_assert_int_eq(waitpid(worker, &status, 0), worker); // it came to us, and ended
    close(ends[0]);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("session_life");
    TCase *life = tcase_create("life");
    tcase_add_checked_fixture(life, use_setup, use_teardown);
    tcase_add_loop_test(life, what_ended_a_worker_is_told_with_its_place, 0, sizeof deaths / sizeof *deaths);
    tcase_add_test(life, an_end_in_words);
    tcase_add_test(life, a_kill_of_ours_says_so);
    tcase_add_test(life, stopping_is_quick_at_any_time);
    tcase_add_test(life, a_save_that_fails_at_the_end_is_told);
    tcase_add_test(life, what_was_asked_for_before_the_end_is_done);
    tcase_add_test(life, a_save_at_the_end_is_written);
    tcase_add_test(life, a_killed_training_goes_on_from_its_autosave);
    tcase_add_loop_test(life, a_worker_that_is_told_to_end_keeps_what_it_trained, 0,
                        sizeof gentle / sizeof *gentle);
    tcase_add_test(life, a_save_that_cannot_be_written_is_told_once);
    tcase_add_test(life, a_worker_dies_with_its_owner);
    suite_add_tcase(suite, life);
    return suite;
}

USE_MAIN(make_suite)
