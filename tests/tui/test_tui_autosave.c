// SPDX-License-Identifier: Apache-2.0
// Whose autosaves stay: all that were ever whole, of workbenches that are no more the newest three.
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/tui/feed/autosave.h"
#include "tests/tui/suite.h"

static char folder[] = "/tmp/headroom-autosave-XXXXXX";

static pid_t dead(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return pid;
}

static void make(char path[PATH_MAX], const char *name, time_t written)
{
    const struct timeval times[] = {{written, 0}, {written, 0}};
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    ck_assert_int_eq(utimes(path, times), 0);
}

static void write_host(char host[HOST_NAME_MAX + 1])
{
    memset(host, 0, HOST_NAME_MAX + 1);
    ck_assert_int_eq(gethostname(host, HOST_NAME_MAX), 0);
}

// Whether the file is there after a workbench has looked for its own name.
static bool stays(const char *name)
{
    char path[PATH_MAX], state[PATH_MAX], own[PATH_MAX];
    make(path, name, time(NULL));
    snprintf(state, sizeof state, "%s/workbench", folder);
    autosave_name(state, own, sizeof own);
    ck_assert_ptr_nonnull(strstr(own, folder));
    const bool there = access(path, F_OK) == 0;
    (void)unlink(path);
    return there;
}

START_TEST(only_what_was_never_whole_is_removed)
{
    char host[HOST_NAME_MAX + 1], name[NAME_MAX];
    const int gone = (int)dead();
    write_host(host);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(name, sizeof name, "autosave-%s-%d.save.%d-0.tmp", host, gone, gone + 1);
    ck_assert(!stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.save", host, gone);
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.left.save", host, gone);
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.save.1-0.tmp", host, (int)getppid());
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%sx-%d.save.1-0.tmp", host, gone); // another machine's
    ck_assert(stays(name));
    snprintf(name, sizeof name, "autosave-%s-%d.save.mine", host, gone);
    ck_assert(stays(name));
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(of_the_dead_the_newest_three_are_kept)
{
    static const int order[] = {3, 1, 4, 0, 2}; // by age
    char host[HOST_NAME_MAX + 1], name[NAME_MAX], path[5][PATH_MAX], own[PATH_MAX], state[PATH_MAX];
    autosave_file *files = calloc(AUTOSAVES_SEEN_MAX, sizeof *files);
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    write_host(host);
    ck_assert(files != NULL && mkdtemp(folder) != NULL);
    for (int k = 0; k < 5; k++) {
        snprintf(name, sizeof name, "autosave-%s-%d%s.save", host, (int)dead(), k == 4 ? ".left" : "");
        make(path[k], name, 1000 + order[k]);
    }
    snprintf(name, sizeof name, "autosave-%s-%d.save", host, (int)getppid()); // lives
    make(own, name, time(NULL));
    snprintf(state, sizeof state, "%s/workbench", folder);
    ck_assert_uint_eq(autosave_dead(state, files), 5);
    for (int k = 0; k < 5; k++) {
        ck_assert_int_eq(files[k].written, 1004 - k);
    }
    ck_assert(files[2].left && !files[0].left);
    autosave_prune(own);
    for (int k = 0; k < 5; k++) {
        ck_assert_int_eq(access(path[k], F_OK) == 0, order[k] >= 2);
    }
    ck_assert_int_eq(access(own, F_OK), 0);
    ck_assert(autosave_leave(&files[0]) && !autosave_leave(&files[0]));
    ck_assert_uint_eq(autosave_dead(state, files), 3);
    ck_assert(files[0].left);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(unlink(files[k].path), 0);
    }
    ck_assert(unlink(own) == 0 && rmdir(folder) == 0);
    free(files);
}
END_TEST

// Processes of containers are numbered alike, and so are those of a machine that was started again.
START_TEST(a_save_of_somebody_who_had_our_number_is_not_written_over)
{
    char host[HOST_NAME_MAX + 1], name[NAME_MAX], path[PATH_MAX], own[PATH_MAX], state[PATH_MAX];
    autosave_file *files = calloc(AUTOSAVES_SEEN_MAX, sizeof *files);
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    write_host(host);
    ck_assert(files != NULL && mkdtemp(folder) != NULL);
    snprintf(name, sizeof name, "autosave-%s-%d.save", host, (int)getpid());
    snprintf(state, sizeof state, "%s/workbench", folder);
    for (int k = 1; k <= 2; k++) {
        make(path, name, 1000 + k);
        autosave_name(state, own, sizeof own);
        ck_assert_str_eq(own, path);
        ck_assert_int_ne(access(own, F_OK), 0);
        ck_assert_uint_eq(autosave_dead(state, files), (unsigned)k);
        ck_assert(files[0].written == 1000 + k && !files[0].left);
    }
    ck_assert(unlink(files[0].path) == 0 && unlink(files[1].path) == 0 && rmdir(folder) == 0);
    free(files);
}
END_TEST

// A process that lives has a number that the workbench had before: after a start of the machine, say.
START_TEST(what_was_written_before_a_process_began_is_not_its_own)
{
    char host[HOST_NAME_MAX + 1], name[NAME_MAX], path[PATH_MAX], state[PATH_MAX];
    autosave_file *files = calloc(AUTOSAVES_SEEN_MAX, sizeof *files);
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    write_host(host);
    ck_assert(files != NULL && mkdtemp(folder) != NULL);
    snprintf(name, sizeof name, "autosave-%s-%d.save", host, (int)getppid());
    snprintf(state, sizeof state, "%s/workbench", folder);
    make(path, name, time(NULL));
    ck_assert_uint_eq(autosave_dead(state, files), 0);
    make(path, name, 1000);
    ck_assert_uint_eq(autosave_dead(state, files), 1);
    ck_assert(unlink(path) == 0 && rmdir(folder) == 0);
    free(files);
}
END_TEST

START_TEST(two_workbenches_have_two_names)
{
    char path[PATH_MAX], pid[32];
    autosave_name("/tmp/workbench", path, sizeof path);
    snprintf(pid, sizeof pid, "-%d.save", (int)getpid());
    ck_assert_ptr_nonnull(strstr(path, pid));
    autosave_name(NULL, path, sizeof path);
    ck_assert_str_eq(path, "");
    autosave_name("/tmp/workbench", path, 20);
    ck_assert_str_eq(path, "");
}
END_TEST

SUITE_MAIN("tui autosave", only_what_was_never_whole_is_removed, of_the_dead_the_newest_three_are_kept,
           a_save_of_somebody_who_had_our_number_is_not_written_over,
           what_was_written_before_a_process_began_is_not_its_own, two_workbenches_have_two_names)
