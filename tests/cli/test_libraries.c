// SPDX-License-Identifier: Apache-2.0
// What a process maps: oneDNN and the runtimes behind it only where a cpu device computes, libarchive only where a packed
// data set is read. The loader says so itself (LD_DEBUG, ld.so(8)), and of what goes on the kernel does.
#include <check.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

static const char *const heavy[] = {"libdnnl.so", "libgomp.so", "libstdc++.so", "libOpenCL.so",
                                    "libarchive", "libxml2.so", "libicudata"};
enum { HEAVY = sizeof heavy / sizeof *heavy };

static const char *const light[] = {"--version", "knobs", "presets", "plan demo -s device.kind=plan",
                                    "run demo --steps 1 -s device.kind=reference -s batch.size=1"};

START_TEST(who_does_not_compute_maps_no_library_for_it)
{
    outcome o = program_run_with("LD_DEBUG=files", light[_i]);
    assert_exit(&o, light[_i], 0);
    ck_assert_msg(strstr(o.err, "libc.so") != NULL, "the loader did not speak:\n%s", o.err);
    for (int k = 0; k < HEAVY; k++) {
        ck_assert_msg(strstr(o.err, heavy[k]) == NULL, "headroom %s loads %s", light[_i], heavy[k]);
    }
    outcome_deinit(&o);
}
END_TEST

#if HEADROOM_HAVE_ONEDNN
START_TEST(a_run_on_the_cpu_maps_onednn_and_its_threads_wait_passively)
{
    outcome o = program_run_with("LD_DEBUG=files", "run demo --steps 1");
    assert_exit(&o, "run demo --steps 1", 0);
    ck_assert_ptr_nonnull(strstr(o.err, "libdnnl.so"));
    ck_assert_ptr_null(strstr(o.err, "libarchive"));
    outcome_deinit(&o);
    o = program_run_with("OMP_DISPLAY_ENV=true", "run demo --steps 1"); // OpenMP prints what it read
    assert_exit(&o, "run demo --steps 1", 0);
    ck_assert_msg(strstr(o.err, "OMP_WAIT_POLICY = 'PASSIVE'") != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

// ---- the workbench --------------------------------------------------------------------------------------------

static bool file_has(const char *path, const char *word)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strstr(line, word) != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static bool maps(pid_t pid, const char *library)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    return file_has(path, library);
}

static bool a_child_maps(pid_t pid, const char *library)
{
    char path[64], word[32];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *children = fopen(path, "r");
    while (children != NULL && !found && fscanf(children, "%31s", word) == 1) {
        found = maps((pid_t)atoi(word), library);
    }
    if (children != NULL) {
        fclose(children);
    }
    return found;
}

static pid_t start_workbench(int *terminal)
{
    char home[128];
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    snprintf(home, sizeof home, "HOME=%s", program_home());
    const pid_t pid = forkpty(terminal, NULL, NULL, &size);
    if (pid == 0) {
        char kind[] = "TERM=xterm-256color", locale[] = "LC_ALL=C.UTF-8",
             *environment[] = {home, kind, locale, NULL};
        char program[] = HEADROOM_PROGRAM, preset[] = "demo", *argv[] = {program, preset, NULL};
        execve(program, argv, environment);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(fcntl(*terminal, F_SETFL, O_NONBLOCK), 0);
    return pid;
}

START_TEST(the_workbench_leaves_onednn_to_its_processes)
{
    enum { LOOKS = 6000 };
    int terminal = -1;
    bool found = false;
    const pid_t pid = start_workbench(&terminal);
    for (int looks = 0; looks < LOOKS && !found; looks++) {
        char screen[4096];
        while (read(terminal, screen, sizeof screen) > 0) {
        }
        found = a_child_maps(pid, "libdnnl.so");
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_assert_msg(found, "no process of the workbench computes");
    ck_assert(maps(pid, "libc.so"));
    for (int k = 0; k < HEAVY; k++) {
        ck_assert_msg(!maps(pid, heavy[k]), "the workbench maps %s", heavy[k]);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(terminal);
}
END_TEST
#endif

int main(void)
{
    TCase *tests = tcase_create("libraries");
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, who_does_not_compute_maps_no_library_for_it, 0, sizeof light / sizeof *light);
#if HEADROOM_HAVE_ONEDNN
    tcase_add_test(tests, a_run_on_the_cpu_maps_onednn_and_its_threads_wait_passively);
    tcase_add_test(tests, the_workbench_leaves_onednn_to_its_processes);
#endif
    Suite *suite = suite_create("libraries");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
