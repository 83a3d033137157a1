// SPDX-License-Identifier: Apache-2.0
// A call that ends the process: a sentence and exit code 4 where somebody has left last words, the end as it was where
// nobody has.
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/last_words.h"
#include "base/shared_library.h"

enum { TEXT_MAX = 2048, CODE = 4 };

static void give_up(void)
{
    abort();
}

static void leave(void)
{
    exit(0); // NOLINT: what a library does
}

static void fault(void)
{
    (void)raise(SIGSEGV);
}

static void go_on(void)
{
}

// What a child says on stderr and how it ends; `after` is called behind its last words.
static int child_of(void (*within)(void), void (*after)(void), char said[TEXT_MAX])
{
    int ends[2], status = 0;
    ssize_t length = 0, got = 0;
    ck_assert_int_eq(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], 2);
        last_words outer = {.calling = "a test called", .hint = "nothing"},
                   inner = {.calling = "a test asked within", .hint = "nothing"};
        last_words_begin(&outer);
        last_words_begin(&inner);
        within();
        last_words_end(&inner);
        last_words_end(&outer);
        after();
        _exit(0);
    }
    close(ends[1]);
    while (length < TEXT_MAX - 1 &&
           (got = read(ends[0], said + length, (size_t)(TEXT_MAX - 1 - length))) > 0) {
        length += got;
    }
    said[length] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static const struct {
    void (*end)(void);
    const char *cause;
    int number; // outside of last words; 0: exit code 0
} all[] = {{give_up, "SIGABRT", SIGABRT}, {leave, "it called exit", 0}, {fault, "SIGSEGV", SIGSEGV}};

START_TEST(who_is_ended_within_says_so)
{
    char said[TEXT_MAX];
    const int status = child_of(all[_i].end, go_on, said);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == CODE, "%d: %s", status, said);
    ck_assert_msg(strstr(said, "a test asked within, which ended the process: ") != NULL, "%s", said);
    ck_assert_msg(strstr(said, all[_i].cause) != NULL, "%s", said);
}
END_TEST

START_TEST(who_is_ended_behind_them_ends_as_ever)
{
    char said[TEXT_MAX];
    const int status = child_of(go_on, all[_i].end, said);
    ck_assert_ptr_null(strstr(said, "which ended the process"));
#ifdef __SANITIZE_ADDRESS__ // it answers a fault by itself
    ck_assert(!WIFEXITED(status) || WEXITSTATUS(status) != CODE);
#else
    ck_assert_msg(all[_i].number == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                                      : WIFSIGNALED(status) && WTERMSIG(status) == all[_i].number,
                  "%d: %s", status, said);
#endif
}
END_TEST

static char cut_path[] = "/tmp/headroom-cut-XXXXXX";

static void open_cut(void)
{
    static const shared_call list[] = {{"cos", 0}};
    void *table[1];
    const shared_library cut = {.soname = cut_path,
                                .needed_by = "a test",
                                .hint = "apt install libc6",
                                .calls = list,
                                .call_count = 1};
    ck_assert_int_ne(shared_library_load(&cut, table, NULL), HR_OK);
}

// The first pages of a library: the loader does not ask how long the file is.
// Who is killed while a library computes was killed, whatever the library does.
START_TEST(who_is_sent_a_signal_ends_of_it)
{
    int status = 0;
    (void)fflush(NULL);
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        last_words words = {.calling = "a test called", .hint = "nothing"};
        last_words_begin(&words);
        (void)!write(ready[1], &byte, 1);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(kill(pid, SIGABRT), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

START_TEST(a_library_that_is_cut_off_is_named)
{
    enum { KEPT = 16384 };
    static char bytes[KEPT];
    char said[TEXT_MAX];
    Dl_info info;
    double (*real)(double) = cos;
    void *address = NULL;
    memcpy(&address, &real, sizeof address);
    ck_assert(dladdr(address, &info) != 0);
    FILE *from = fopen(info.dli_fname, "rb");
    const int to = mkstemp(cut_path);
    ck_assert(from != NULL && to >= 0);
    ck_assert_uint_eq(fread(bytes, 1, KEPT, from), KEPT);
    ck_assert_int_eq(write(to, bytes, KEPT), KEPT);
    (void)fclose(from);
    (void)close(to);
    const int status = child_of(open_cut, go_on, said);
    (void)unlink(cut_path);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == CODE, "%d: %s", status, said);
    ck_assert_msg(strstr(said, cut_path) != NULL && strstr(said, "SIGBUS") != NULL, "%s", said);
}
END_TEST

static void speak(const hr_err *err)
{
    char lines[TEXT_MAX];
    (void)hr_err_format(err, lines, sizeof lines);
    (void)fputs(lines, stderr);
}

START_TEST(an_application_says_it_its_own_way)
{
    char said[TEXT_MAX];
    hr_err_at_end(speak);
    (void)child_of(give_up, go_on, said);
    hr_err_at_end(NULL);
    ck_assert_msg(strncmp(said, "headroom: dependency failed: a test asked within", 48) == 0, "%s", said);
    ck_assert_msg(strstr(said, "\n  try: nothing\n") != NULL, "%s", said);
}
END_TEST

int main(void)
{
    enum { ALL = sizeof all / sizeof *all };
    TCase *tests = tcase_create("last words");
    tcase_add_loop_test(tests, who_is_ended_within_says_so, 0, ALL);
    tcase_add_loop_test(tests, who_is_ended_behind_them_ends_as_ever, 0, ALL);
    tcase_add_test(tests, who_is_sent_a_signal_ends_of_it);
    tcase_add_test(tests, a_library_that_is_cut_off_is_named);
    tcase_add_test(tests, an_application_says_it_its_own_way);
    Suite *suite = suite_create("last words");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
