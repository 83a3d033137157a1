// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_TEXT_MAX = 2048, HOME_TEXT_MAX = 64, SETTINGS_MAX = 8 };

static const char passive[] = "OMP_WAIT_POLICY=passive";

static char home[HOME_TEXT_MAX];
static const char *used = HEADROOM_PROGRAM;

void program_use(const char *path)
{
    used = path;
}

const char *program_home(void)
{
    if (home[0] == '\0') {
        strcpy(home, "/tmp/headroom-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(home));
    }
    return home;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void program_remove_home(void)
{
    if (home[0] != '\0') {
        nftw(home, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        home[0] = '\0';
    }
}

static char *contents(int file)
{
    struct stat info;
    ck_assert_int_eq(fstat(file, &info), 0);
    char *text = calloc(1, (size_t)info.st_size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(pread(file, text, (size_t)info.st_size, 0), info.st_size);
    return text;
}

// Splits `words` in place; argv[0] is the program.
static void split(char *words, char *argv[PROGRAM_MAX_WORDS + 2])
{
    int count = 0;
    static char kept[PATH_MAX];
    ck_assert_uint_lt(strlen(used), sizeof kept);
    argv[count++] = strcpy(kept, used);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        ck_assert_int_le(count, PROGRAM_MAX_WORDS);
        argv[count++] = word;
    }
    argv[count] = NULL;
}

static pid_t start(const char *setting, const char *words, int out, int err)
{
    char copy[WORDS_TEXT_MAX], home_setting[HOME_TEXT_MAX + 8], more[WORDS_TEXT_MAX];
    char path[] = "PATH=/usr/bin:/bin", terminal[] = "TERM=xterm", locale[] = "LC_ALL=C.UTF-8";
    char *argv[PROGRAM_MAX_WORDS + 2];
    char *environment[5 + SETTINGS_MAX] = {home_setting, path, terminal, locale};
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    ck_assert_uint_lt(strlen(words), sizeof copy);
    ck_assert_uint_lt(strlen(setting), sizeof more);
    strcpy(more, setting);
    char *one = strtok(more, "\n");
    for (size_t k = 4; one != NULL; k++, one = strtok(NULL, "\n")) {
        ck_assert_uint_lt(k, 4 + SETTINGS_MAX);
        environment[k] = one;
    }
    snprintf(home_setting, sizeof home_setting, "HOME=%s", program_home());
    split(strcpy(copy, words), argv);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    ck_assert_int_eq(posix_spawn(&child, argv[0], &actions, NULL, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static outcome finish(pid_t child, int out, int err)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        ck_assert_int_eq(errno, EINTR);
    }
    outcome o = {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                 .out = contents(out),
                 .err = contents(err)};
    close(out);
    close(err);
    return o;
}

outcome program_run_with(const char *setting, const char *words)
{
    int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
    ck_assert(out >= 0 && err >= 0);
    return finish(start(setting, words, out, err), out, err);
}

outcome program_run(const char *words)
{
    return program_run_with(passive, words);
}

outcome program_meddle(const char *words, void (*meddle)(pid_t child, void *context), void *context)
{
    int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
    struct stat info = {0};
    ck_assert(out >= 0 && err >= 0);
    pid_t child = start(passive, words, out, err);
    while (waitid(P_PID, (id_t)child, NULL, WEXITED | WNOHANG | WNOWAIT) == 0 && info.st_size == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        fstat(err, &info);
    }
    meddle(child, context);
    return finish(child, out, err);
}

static void send_signal(pid_t child, void *number)
{
    kill(child, *(int *)number);
}

outcome program_interrupt(const char *words, int signal_number)
{
    return program_meddle(words, send_signal, &signal_number);
}

outcome program_interrupt_after(const char *words, double seconds, int signal_number)
{
    int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
    const struct timespec pause = {.tv_sec = (time_t)seconds,
                                   .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    ck_assert(out >= 0 && err >= 0);
    const pid_t child = start(passive, words, out, err);
    nanosleep(&pause, NULL);
    kill(child, signal_number);
    return finish(child, out, err);
}

void outcome_deinit(outcome *o)
{
    free(o->out);
    free(o->err);
    *o = (outcome){0};
}

void assert_exit(const outcome *o, const char *words, int exit_code)
{
    ck_assert_msg(o->exit_code == exit_code, "headroom %s: exit code %d, expected %d\n%s%s", words,
                  o->exit_code, exit_code, o->out, o->err);
}

json_t *assert_json(const outcome *o, const char *words)
{
    json_error_t problem;
    json_t *document = json_loads(o->out, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    ck_assert_msg(document != NULL, "headroom %s: line %d: %s\n%s", words, problem.line, problem.text,
                  o->out);
    return document;
}

json_t *program_json(const char *words)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *document = assert_json(&o, words);
    outcome_deinit(&o);
    return document;
}
