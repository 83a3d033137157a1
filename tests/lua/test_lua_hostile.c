// SPDX-License-Identifier: Apache-2.0
// Functions of C that do not come back, which no hook of Lua can interrupt: the recipe's process ends, with the line and
// the sentence that endless Lua has, and nothing of it stays. This program is the recipe's process too.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "app/lua/lua_script.h"
#include "lua/hostile.h"
#include "lua/recipe_run.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const script_limits patient_limits = {.memory_bytes = UINT64_C(256) << 20,
                                             .lua_ns = UINT64_C(600000000000)};
static const script_limits hasty_limits = {.memory_bytes = UINT64_C(256) << 20, .lua_ns = 50000000};

// ---- a recipe and who watches it --------------------------------------------------------------------------------

// The process that a person would start, with what it says in files of the recipe's folder.
static pid_t start_watched(recipe_run *r, const char *text, const script_limits *limits)
{
    char out[96], notes[96];
    recipe_make(r);
    recipe_put(r, "recipe.lua", text, strlen(text));
    (void)snprintf(out, sizeof out, "%s/out", r->folder);
    (void)snprintf(notes, sizeof notes, "%s/notes", r->folder);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int to_out = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        int to_notes = open(notes, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        (void)dup2(to_out, STDOUT_FILENO);
        (void)dup2(to_notes, STDERR_FILENO);
        _exit(script_run_process(r->file, 0, NULL, limits));
    }
    return pid;
}

static char *slurp(const recipe_run *r, const char *name)
{
    char path[160];
    char *text = calloc(1, 8192);
    (void)snprintf(path, sizeof path, "%s/%s", r->folder, name);
    FILE *f = fopen(path, "rb");
    if (f != NULL) {
        (void)!fread(text, 1, 8191, f);
        (void)fclose(f);
    }
    return text;
}

static void take_words(recipe_run *r)
{
    free(r->out);
    free(r->notes);
    r->out = slurp(r, "out");
    r->notes = slurp(r, "notes");
}

static void wait_for_note(recipe_run *r, const char *word)
{
    do {
        (void)usleep(10000);
        take_words(r);
    } while (strstr(r->notes, word) == NULL);
}

// Nothing is left of it: no process, no file beside what it was given and what it said.
static void expect_nothing_left(const recipe_run *r)
{
    int status = 0, files = 0;
    ck_assert_int_eq(waitpid(-1, &status, WNOHANG), -1); // orphans come to us
    DIR *folder = opendir(r->folder);
    while (readdir(folder) != NULL) {
        files++;
    }
    (void)closedir(folder);
    ck_assert_int_eq(files, 2 + 3);
}

static recipe_run finish(recipe_run *r, pid_t pid)
{
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    take_words(r);
    expect_nothing_left(r);
    return *r;
}

static void check_watched(const char *text, const script_limits *limits, int code, const char *sentence)
{
    recipe_run r;
    pid_t pid = start_watched(&r, text, limits);
    (void)finish(&r, pid);
    ck_assert_msg(r.code == code && strstr(r.notes, sentence) != NULL,
                  "%s\n-- code %d, wanted %d and '%s'\n%s%s", text, r.code, code, sentence, r.out, r.notes);
    recipe_drop(&r);
}

static void become_subreaper(void)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

// ---- time -------------------------------------------------------------------------------------------------------

START_TEST(what_does_not_come_back_is_stopped_with_its_line)
{
    become_subreaper();
    check_watched(hostile[_i], &hasty_limits, 3,
                  "recipe.lua:3: needed more than 0.05 s of Lua between two calls of the engine\n");
}
END_TEST

START_TEST(ctrl_c_ends_what_does_not_come_back)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r, hostile[_i], &patient_limits);
    wait_for_note(&r, "ready");
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    (void)finish(&r, pid);
    ck_assert_msg(r.code == 130 && strstr(r.notes, "headroom: interrupted: ") != NULL &&
                      strstr(r.notes, "recipe.lua:3: by Ctrl-C\n") != NULL,
                  "%s\n%d %s", hostile[_i], r.code, r.notes);
    recipe_drop(&r);
}
END_TEST

START_TEST(the_line_is_shown_as_other_errors_show_it)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r,
                              "print 'before'\n"
                              "local function deep()\n"
                              "  string.rep('', 1 << 62)\n"
                              "end\n"
                              "deep()\n",
                              &hasty_limits);
    (void)finish(&r, pid);
    ck_assert_int_eq(r.code, 3);
    ck_assert_str_eq(r.out, "before\n");
    ck_assert_ptr_nonnull(strstr(r.notes, "headroom: script failed: "));
    ck_assert_ptr_nonnull(strstr(r.notes, "       2 | local function deep()\n"
                                          "  >    3 |   string.rep('', 1 << 62)\n"));
    ck_assert_ptr_nonnull(strstr(r.notes, "\n  try: end the loop earlier"));
    ck_assert_ptr_nonnull(strstr(r.notes, ":5: in the main chunk\n"));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_file_that_is_gone_is_named_all_the_same)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r, hostile[0], &patient_limits);
    wait_for_note(&r, "ready");
    ck_assert_int_eq(unlink(r.file), 0);
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    take_words(&r);
    ck_assert_ptr_nonnull(strstr(r.notes, "recipe.lua:3: by Ctrl-C\n  try: "));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_forged_place_shows_no_foreign_file)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r, "load('string.rep(\"\", 1 << 62)', '@/etc/passwd')()", &hasty_limits);
    (void)finish(&r, pid);
    ck_assert_int_eq(r.code, 3);
    ck_assert_ptr_null(strstr(r.notes, "root:"));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_callback_that_does_not_come_back_is_stopped)
{
    become_subreaper();
    check_watched("hr.preset 'demo'\n"
                  "hr.knobs.device.kind = 'plan'\n"
                  "hr.on('step', function() string.rep('', 1 << 62) end)\n"
                  "hr.run{steps = 5}\n",
                  &hasty_limits, 3, "recipe.lua:3: needed more than 0.05 s of Lua");
}
END_TEST

START_TEST(calls_of_the_engine_take_none_of_luas_time)
{
    become_subreaper();
    check_watched("hr.preset 'demo'\n"
                  "hr.knobs.device.kind = 'plan'\n"
                  "for round = 1, 60 do\n"
                  "  for k = 1, 100000 do end\n"
                  "  hr.plan()\n"
                  "end\n",
                  &hasty_limits, 0, "");
}
END_TEST

START_TEST(memory_beyond_the_limit_is_an_error_of_memory)
{
    become_subreaper();
    check_watched("local t = {}\nwhile true do t[#t + 1] = ('x'):rep(1e6) .. #t end", &patient_limits, 3,
                  "recipe.lua:2: needed more than 256.0 MiB of memory for Lua");
}
END_TEST

// ---- lives ------------------------------------------------------------------------------------------------------

static const struct {
    int number;
    const char *said;
} gentle[] = {{SIGINT, "by Ctrl-C"}, {SIGTERM, "by SIGTERM"}, {SIGHUP, "by SIGHUP"}};

START_TEST(every_gentle_signal_saves_the_run_under_way)
{
    recipe_run r;
    char path[128], before[1024], command[160], text[512];
    become_subreaper();
    (void)snprintf(path, sizeof path, "/tmp/headroom-hostile-%d", (int)getpid());
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(text, sizeof text,
                   "hr.preset 'demo'\n"
                   "hr.knobs.device.kind = 'reference' hr.knobs.batch.size = 1\n"
                   "hr.knobs.train.save = 'kept'\n"
                   "hr.on('step', function(s) hr.note('step ' .. s.step) end)\n"
                   "hr.run{steps = 100000}\n");
    ck_assert_int_eq(setenv("HEADROOM_DATA", getcwd(before, sizeof before), 1), 0);
    ck_assert_int_eq(chdir(path), 0);
    pid_t pid = start_watched(&r, text, &patient_limits);
    wait_for_note(&r, "step 1");
    ck_assert_int_eq(kill(pid, gentle[_i].number), 0);
    (void)finish(&r, pid);
    ck_assert_msg(r.code == 128 + gentle[_i].number && strstr(r.notes, gentle[_i].said) != NULL, "%d %s",
                  r.code, r.notes);
    ck_assert_int_eq(access("headroom-out/kept", R_OK), 0);
    recipe_drop(&r);
    ck_assert_int_eq(chdir(before), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", path);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_exit_code_names_the_signal_that_ended_what_hung)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r, hostile[0], &patient_limits);
    wait_for_note(&r, "ready");
    ck_assert_int_eq(kill(pid, gentle[_i].number), 0);
    (void)finish(&r, pid);
    ck_assert_int_eq(r.code, 128 + gentle[_i].number);
    ck_assert_ptr_nonnull(strstr(r.notes, gentle[_i].said));
    recipe_drop(&r);
}
END_TEST

START_TEST(steps_that_a_callback_takes_with_it_are_told_of)
{
    become_subreaper();
    check_watched("hr.preset 'demo'\n"
                  "hr.knobs.device.kind = 'reference' hr.knobs.batch.size = 1\n"
                  "hr.on('step', function(s) if s.step == 2 then string.rep('', 1 << 62) end end)\n"
                  "hr.run{steps = 5}\n",
                  &hasty_limits, 3,
                  "\nheadroom: ended after step 2, not saved: a callback did not come back");
}
END_TEST

START_TEST(a_recipe_dies_with_who_started_it)
{
    recipe_run r;
    int status = 0;
    become_subreaper();
    pid_t pid = start_watched(&r, hostile[0], &patient_limits);
    wait_for_note(&r, "ready");
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_gt(waitpid(-1, &status, 0), 0); // it came to us, and ended
    ck_assert_int_eq(WTERMSIG(status), SIGKILL);
    expect_nothing_left(&r);
    recipe_drop(&r);
}
END_TEST

// The child of `pid`, which has one.
static pid_t child_of(pid_t pid)
{
    char path[64];
    int child = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%d", &child), 1);
    (void)fclose(f);
    return child;
}

START_TEST(a_recipe_that_is_killed_is_told_of)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r, hostile[0], &patient_limits);
    wait_for_note(&r, "ready");
    ck_assert_int_eq(kill(child_of(pid), SIGSEGV), 0);
    (void)finish(&r, pid);
    ck_assert_int_eq(r.code, 3);
    ck_assert_ptr_nonnull(strstr(r.notes, "recipe.lua: its process was ended by SIGSEGV"));
    ck_assert_ptr_nonnull(strstr(r.notes, "\n  try: "));
    recipe_drop(&r);
}
END_TEST

START_TEST(the_terminals_signals_reach_the_recipe_once_and_through_its_watcher)
{
    recipe_run r;
    become_subreaper();
    pid_t pid = start_watched(&r, hostile[0], &patient_limits);
    wait_for_note(&r, "ready");
    ck_assert_int_eq(kill(child_of(pid), SIGINT), 0); // as the terminal does to the group
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    (void)finish(&r, pid);
    ck_assert_int_eq(r.code, 130);
    ck_assert_ptr_nonnull(strstr(r.notes, "recipe.lua:3: by Ctrl-C\n"));
    recipe_drop(&r);
}
END_TEST

static Suite *hostile_suite(void)
{
    Suite *suite = suite_create("lua_hostile");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, what_does_not_come_back_is_stopped_with_its_line, 0, COUNT(hostile));
    tcase_add_loop_test(tc, ctrl_c_ends_what_does_not_come_back, 0, COUNT(hostile));
    tcase_add_test(tc, the_line_is_shown_as_other_errors_show_it);
    tcase_add_test(tc, a_file_that_is_gone_is_named_all_the_same);
    tcase_add_test(tc, a_forged_place_shows_no_foreign_file);
    tcase_add_test(tc, a_callback_that_does_not_come_back_is_stopped);
    tcase_add_test(tc, calls_of_the_engine_take_none_of_luas_time);
    tcase_add_test(tc, memory_beyond_the_limit_is_an_error_of_memory);
    tcase_add_loop_test(tc, every_gentle_signal_saves_the_run_under_way, 0, COUNT(gentle));
    tcase_add_loop_test(tc, the_exit_code_names_the_signal_that_ended_what_hung, 0, COUNT(gentle));
    tcase_add_test(tc, steps_that_a_callback_takes_with_it_are_told_of);
    tcase_add_test(tc, a_recipe_dies_with_who_started_it);
    tcase_add_test(tc, a_recipe_that_is_killed_is_told_of);
    tcase_add_test(tc, the_terminals_signals_reach_the_recipe_once_and_through_its_watcher);
    suite_add_tcase(suite, tc);
    return suite;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "@recipe") == 0) {
        (void)signal(SIGSEGV, SIG_DFL); // a sanitizer makes an exit code of it
        hr_preset_search_beside(".");
        return lua_script_serve(argc - 2, argv + 2);
    }
    SRunner *runner = srunner_create(hostile_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
