// SPDX-License-Identifier: Apache-2.0
// `headroom script -i` as a person has it, at a pseudo-terminal, and from a pipe.
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

enum { TEXT_MAX = 1 << 20, LOOKS = 12000, LOOK_NS = 10000000 };

// ---- a terminal -------------------------------------------------------------------------------------------------

typedef struct terminal {
    pid_t pid;
    int master;
    char *text; // all that was shown
    size_t length, seen;
} terminal;

static terminal open_terminal(const char *term, const char *preset)
{
    terminal t = {.text = calloc(1, TEXT_MAX)};
    char home[128], kind[32];
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    ck_assert_ptr_nonnull(t.text);
    snprintf(home, sizeof home, "HOME=%s", program_home());
    snprintf(kind, sizeof kind, "TERM=%s", term);
    t.pid = forkpty(&t.master, NULL, NULL, &size);
    if (t.pid == 0) {
        char locale[] = "LC_ALL=C.UTF-8", wait[] = "OMP_WAIT_POLICY=passive",
             *environment[] = {home, kind, locale, wait, NULL};
        char program[] = HEADROOM_PROGRAM, script[] = "script", option[] = "-i", named[64];
        snprintf(named, sizeof named, "%s", preset == NULL ? "" : preset);
        char *argv[] = {program, script, option, preset == NULL ? NULL : named, NULL};
        execve(program, argv, environment);
        _exit(127);
    }
    ck_assert_int_gt(t.pid, 0);
    ck_assert_int_eq(fcntl(t.master, F_SETFL, O_NONBLOCK), 0);
    return t;
}

static void look(terminal *t)
{
    const ssize_t got = read(t->master, t->text + t->length, TEXT_MAX - 1 - t->length);
    t->length += got > 0 ? (size_t)got : 0;
    t->text[t->length] = '\0';
    if (got <= 0) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

// Waits until the text is shown, behind what was waited for before.
static void shows(terminal *t, const char *text)
{
    const char *at = NULL;
    for (int k = 0; k < LOOKS && at == NULL; k++) {
        at = strstr(t->text + t->seen, text);
        if (at == NULL) {
            look(t);
        }
    }
    ck_assert_msg(at != NULL, "never showed '%s':\n%s", text, t->text + t->seen);
    t->seen = (size_t)(at - t->text) + strlen(text);
}

static void type(terminal *t, const char *keys)
{
    ck_assert_int_eq(write(t->master, keys, strlen(keys)), (ssize_t)strlen(keys));
}

// The line is shown as it is typed; what it gives comes behind it.
static void say(terminal *t, const char *line)
{
    type(t, line);
    type(t, "\r");
    shows(t, "\n");
}

static int close_terminal(terminal *t)
{
    int status = 0;
    pid_t ended = 0;
    for (int k = 0; k < LOOKS && ended == 0; k++) {
        look(t);
        ended = waitpid(t->pid, &status, WNOHANG);
    }
    ck_assert_msg(ended == t->pid && WIFEXITED(status), "it did not end:\n%s", t->text);
    close(t->master);
    free(t->text);
    return WEXITSTATUS(status);
}

// ---- at a terminal ----------------------------------------------------------------------------------------------

START_TEST(values_are_shown_and_variables_stay)
{
    terminal t = open_terminal("xterm-256color", NULL);
    shows(&t, "1> ");
    say(&t, "x = 20");
    shows(&t, "2> ");
    say(&t, "x + 1, 'é'");
    shows(&t, "21\r\né\r\n");
    say(&t, "=x * 2");
    shows(&t, "40\r\n");
    say(&t, "function half(n)");
    shows(&t, "5| ");
    say(&t, "  return n / 2");
    shows(&t, "6| ");
    say(&t, "end");
    shows(&t, "7> ");
    say(&t, "half(5)");
    shows(&t, "2.5\r\n");
    say(&t, "{a = 1, b = {2}}");
    shows(&t, "  a                          1\r\n  b                          {2}\r\n");
    say(&t, "local y = half(nil)");
    shows(&t, "headroom: script failed: console:5: attempt to perform arithmetic on a nil value (local 'n')");
    shows(&t, ">    5 |   return n / 2");
    shows(&t, "at   console:5: in function half");
    shows(&t, "from console:9: in the main chunk");
    say(&t, "x");
    shows(&t, "20\r\n");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(tab_completes_and_says_how_a_function_is_called)
{
    terminal t = open_terminal("xterm-256color", "demo");
    shows(&t, "1> ");
    say(&t, "hr.kno\t.ba\t.si\t");
    shows(&t, "128\r\n");
    say(&t, "hr.knobs['execution.mode'] = 'gr\t");
    shows(&t, "3> ");
    say(&t, "hr.knobs.execution.mode");
    shows(&t, "graph\r\n");
    type(&t, "hr.plan{\t");
    shows(&t, "hr.plan{steps = N, knob = value, …} → hr.Result\r\n");
    shows(&t, "workspace\r\n");
    type(&t, "\3");
    shows(&t, "^C\r\n");
    say(&t, "print('whole')");
    shows(&t, "whole\r\n");
    say(&t, "hr.plan{");
    shows(&t, "6| ");
    say(&t, "  ['batch.si\t = 64}.fits");
    shows(&t, "true\r\n");
    say(&t, "hr.plan{");
    shows(&t, "8| ");
    type(&t, "\3");
    shows(&t, "7> ");
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(ctrl_c_ends_the_chunk_and_keeps_variables_and_weights)
{
    terminal t = open_terminal("xterm-256color", "demo");
    shows(&t, "1> ");
    say(&t, "x, hr.knobs.batch.size, hr.knobs.device.kind = 7, 1, 'reference'");
    shows(&t, "2> ");
    say(&t, "hr.run{steps = 2}.train.steps");
    shows(&t, "2\r\n");
    say(&t, "print 'on'; while true do pcall(function() while true do end end) end");
    shows(&t, "on\r\n");
    type(&t, "\3");
    shows(&t, "headroom: interrupted: console:3: by Ctrl-C");
    shows(&t, "4> ");
    say(&t, "hr.on('step', function(s) print('did', s.step) end); hr.run{steps = 100000}");
    shows(&t, "did\t4\r\n");
    type(&t, "\3");
    shows(&t, "headroom: interrupted: console:4: by Ctrl-C");
    shows(&t, "headroom: the training stands after step ");
    shows(&t, "5> ");
    say(&t, "x, hr.run{steps = 1}.train.steps > 4");
    shows(&t, "7\r\ntrue\r\n");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(a_function_of_c_that_hangs_costs_its_process_and_no_more)
{
    terminal t = open_terminal("xterm-256color", "demo");
    shows(&t, "1> ");
    say(&t, "x, y = 1, 2");
    shows(&t, "2> ");
    say(&t, "print 'on'; ('a'):rep(40):find(('a*'):rep(40) .. 'b')");
    shows(&t, "on\r\n");
    type(&t, "\3");
    shows(&t, "headroom: interrupted: console:2: by Ctrl-C");
    shows(&t,
          "headroom: the console goes on in a new process; lost: knobs that were turned, 2 variables\r\n");
    shows(&t, "3> ");
    say(&t, "x, hr.knobs.batch.size");
    shows(&t, "nil\r\n128\r\n");
    say(&t, "error('late')");
    shows(&t, "console:4: late");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

static pid_t child_of(pid_t pid)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *children = fopen(path, "r");
    ck_assert_ptr_nonnull(children);
    ck_assert_int_eq(fscanf(children, "%d", &child), 1);
    fclose(children);
    return child;
}

START_TEST(a_process_that_is_killed_is_replaced_with_what_was_lost)
{
    terminal t = open_terminal("xterm-256color", "demo");
    shows(&t, "1> ");
    say(&t, "hr.knobs.batch.size, hr.knobs.device.kind = 1, 'reference'");
    shows(&t, "2> ");
    say(&t, "hr.run{steps = 3}.train.steps");
    shows(&t, "3\r\n");
    shows(&t, "3> ");
    ck_assert_int_eq(kill(child_of(t.pid), SIGKILL), 0);
    say(&t, "1 + 1");
    shows(&t, "headroom: the console's process was ");
    shows(&t, "lost: knobs that were turned, the weights of step 3\r\n");
    shows(&t, "4> ");
    say(&t, "1 + 1");
    shows(&t, "2\r\n");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

// Of a recipe's folder and of what it writes, the console has the current one.
START_TEST(a_save_is_not_among_what_was_lost)
{
    char here[4096];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(program_home()), 0);
    terminal t = open_terminal("xterm-256color", "demo");
    ck_assert_int_eq(chdir(here), 0);
    shows(&t, "1> ");
    say(&t, "hr.knobs.batch.size, hr.knobs.device.kind = 1, 'reference'");
    shows(&t, "2> ");
    say(&t, "hr.run{steps = 2}.train.steps");
    shows(&t, "2\r\n");
    say(&t, "hr.save 'two.safetensors'");
    shows(&t, "headroom-out/two.safetensors\r\n");
    shows(&t, "4> ");
    ck_assert_int_eq(kill(child_of(t.pid), SIGKILL), 0);
    say(&t, "1 + 1");
    shows(&t, "lost: knobs that were turned\r\n");
    say(&t, "hr.knobs.batch.size, hr.knobs.device.kind = 1, 'reference'");
    shows(&t, "6> ");
    say(&t, "hr.load 'tw\t; print(hr.run{steps = 1}.train.steps)");
    shows(&t, "3\r\n");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(lines_are_remembered_beyond_the_end)
{
    terminal t = open_terminal("xterm-256color", NULL);
    shows(&t, "1> ");
    say(&t, "print('the last ' .. 'of them')");
    shows(&t, "the last of them\r\n");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
    t = open_terminal("xterm-256color", NULL);
    shows(&t, "1> ");
    type(&t, "\20"); // Ctrl-P
    shows(&t, "of them");
    type(&t, "\r");
    shows(&t, "the last of them\r\n");
    shows(&t, "> "); // before it, the terminal itself would take the key
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(of_two_consoles_that_end_the_later_keeps_the_lines_of_the_other)
{
    terminal one = open_terminal("xterm-256color", NULL), other = open_terminal("xterm-256color", NULL);
    shows(&one, "1> ");
    shows(&other, "1> ");
    say(&one, "print('of ' .. 'one')");
    shows(&one, "of one\r\n");
    say(&other, "print('of the ' .. 'other')");
    shows(&other, "of the other\r\n");
    shows(&one, "> "); // before it, the terminal itself would take the key
    type(&one, "\4");
    ck_assert_int_eq(close_terminal(&one), 0);
    shows(&other, "> ");
    type(&other, "\4");
    ck_assert_int_eq(close_terminal(&other), 0);
    terminal t = open_terminal("xterm-256color", NULL);
    shows(&t, "1> ");
    type(&t, "\20\20\r"); // Ctrl-P
    shows(&t, "of one\r\n");
    shows(&t, "> ");
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(a_terminal_that_only_prints_serves)
{
    terminal t = open_terminal("dumb", NULL);
    shows(&t, "1> ");
    say(&t, "if true then");
    shows(&t, "2| ");
    type(&t, "\3");
    shows(&t, "1> ");
    say(&t, "print(6 * 7)");
    shows(&t, "42\r\n");
    shows(&t, "2> ");
    type(&t, "\4");
    ck_assert_int_eq(close_terminal(&t), 0);
}
END_TEST

START_TEST(a_signal_that_ends_programs_ends_it)
{
    terminal t = open_terminal("xterm-256color", NULL);
    shows(&t, "1> ");
    ck_assert_int_eq(kill(t.pid, SIGTERM), 0);
    ck_assert_int_eq(close_terminal(&t), 128 + SIGTERM);
    t = open_terminal("xterm-256color", NULL);
    shows(&t, "1> ");
    say(&t, "print 'on'; while true do end");
    shows(&t, "on\r\n");
    ck_assert_int_eq(kill(t.pid, SIGTERM), 0);
    ck_assert_int_eq(close_terminal(&t), 128 + SIGTERM);
}
END_TEST

// ---- from a pipe ------------------------------------------------------------------------------------------------

static const struct {
    const char *lines, *words;
    int code;
    const char *out, *err;
} pipes[] = {
    {"x = 1\nx\nfor k = 1, 2 do\nprint(k)\nend\n", "", 0, "1\n1\n2\n", ""},
    {"print 'no end'", "", 0, "no end\n", ""},
    {"", "", 0, "", ""},
    {"hr.knobs.batch.size\n", "demo", 0, "128\n", ""},
    {"print(1)\nerror 'stop'\nprint(2)\n", "", 3, "1\n", "console:2: stop"},
    {"print(1)\nfor k = 1, 2 do\n", "", 3, "1\n", "console:2: 'end' expected near <eof>"},
    {"{{b = 1, name = 'x'}, {b = 22, name = 'longer', t = {}}}\n", "", 0,
     "  b   name\n  1   x\n  22  longer\n", ""},
    {"{3, 'a', {}, w = {1, 'b'}, x = {y = 1}, ['é'] = true}, {}\n", "", 0,
     "  [1]                        3\n  [2]                        \"a\"\n  [3]                        {}\n"
     "  w                          {1, \"b\"}\n  x                          {… 1}\n  é                       "
     "   true\n  {}\n",
     ""},
    {"{[true] = 1, [0] = 5, [1.5] = 2, a = {}, [-3] = 3}\n", "", 0,
     "  a                          {}\n  [-3]                       3\n  [0]                        5\n"
     "  [1.5]                      2\n  [true]                     1\n",
     ""},
    {"'a\\27[2Jb', nil, hr.bytes '1KiB', ('x'):rep(3)\n", "", 0, "a?[2Jb\nnil\n1.00 KiB\nxxx\n", ""},
    {"setmetatable({}, {__tostring = function() return 'itself' end})\n", "", 0, "itself\n", ""},
    {"setmetatable({}, {__tostring = function() error 'never' end})\n", "", 3, "", "console:1: never"},
    {"{setmetatable({}, {__tostring = function() return {} end})}\n", "", 3, "",
     "'__tostring' must return a string"},
    {"#hr.compare(hr.plan(), hr.plan{batch = {size = 64}}) > 3, hr.plan().fits\n", "demo", 0, "true\ntrue\n",
     ""},
    {"hr.knobs.tensor == nil, hr.knobs.offload\n", "demo", 3, "", "unknown group of knobs 'tensor'"},
    {"hr.knobs.batch\n", "demo", 0,
     "  size                       128\n  accumulate                 1\n"
     "  remainder                  \"drop\"\n",
     ""},
    {"t = {}\n"
     "print(pcall(function() while true do t[#t + 1] = ('x'):rep(1 << 20) .. #t end end))\n"
     "print(pcall(function() while true do t = {t} end end))\n"
     "t = nil\nprint(('x'):rep(1 << 24):len())\n",
     "", 0, "false\tnot enough memory\nfalse\tnot enough memory\n16777216\n", ""},
    {"hr.expect(false, 'not so')\n", "", 1, "", "not so"},
    {"io.open('/etc/passwd')\n", "", 3, "", "(global 'io')"},
    {"print(1)\n", "no_such_preset", 2, "", "no_such_preset"},
    {"print(1)\n", "mine.lua", 2, "", "try: headroom script mine.lua"},
    {"print(1)\n", "<&-", 0, "", ""},
    {"print(1)\n", "demo demo", 2, "", "at most"},
};

static char *slurp(const char *name)
{
    char path[160];
    char *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", program_home(), name);
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    if (getdelim(&text, &size, '\0', in) < 0) {
        text = realloc(text, 1);
        text[0] = '\0';
    }
    fclose(in);
    return text;
}

// Runs the lines; what it printed is the caller's.
static int pipe_in(const char *lines, const char *words, char **out, char **err)
{
    char command[1024], path[160];
    snprintf(path, sizeof path, "%s/lines", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(lines, file);
    fclose(file);
    snprintf(command, sizeof command, "cat %s/lines | HOME=%s %s script -i %s >%s/out 2>%s/err",
             program_home(), program_home(), HEADROOM_PROGRAM, words, program_home(), program_home());
    const int status = system(command);
    *out = slurp("out");
    *err = slurp("err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(a_pipe_is_run_without_a_prompt_and_ends_with_the_first_error)
{
    char *out, *err;
    const int code = pipe_in(pipes[_i].lines, pipes[_i].words, &out, &err);
    ck_assert_msg(code == pipes[_i].code, "%s: %d\n%s%s", pipes[_i].lines, code, out, err);
    ck_assert_str_eq(out, pipes[_i].out);
    ck_assert_msg(pipes[_i].err[0] == '\0' ? err[0] == '\0' : strstr(err, pipes[_i].err) != NULL, "%s", err);
    free(out);
    free(err);
}
END_TEST

static const struct {
    const char *lines, *shown; // a part of it
} values[] = {
    {"t = {}\nfor k = 1, 258 do t[('%03d'):format(k)] = k end\nt, {{[true] = 1}}\n",
     "  256                        256\n  … 2 more\n  [1]                        {… 1}\n"},
    {"{['a\\nb'] = ('é'):rep(200)}\n",
     "  a b                        \"ééééééééééééééééééééééééééééééééééééééééééééééééé…\"\n"},
    // what is being shown is emptied, and its names are gone
    {"t = {b = 7}\nfor k = 1, 60 do t['k' .. k .. ('x'):rep(30)] = 1 end\n"
     "t.a = setmetatable({}, {__tostring = function()\n  for k in pairs(t) do t[k] = nil end\n"
     "  for k = 1, 99999 do t[k] = ('Z'):rep(30) .. k end\n  return 'boo'\nend})\nt\n",
     "  a                          boo\n  b                          nil\n"
     "  k10xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  nil\n"},
    // and so are rows, with what heads their columns
    {"r = {}\nempty = setmetatable({}, {__tostring = function()\n"
     "  for k in pairs(r) do r[k] = k end\n  return 'boo'\nend})\n"
     "for k = 1, 9 do r[k] = {a = k == 1 and empty or 1, ['b' .. ('x'):rep(30)] = 1} end\nr\n",
     "  a\n  \n"},
};

START_TEST(any_value_is_shown_and_what_it_does_meanwhile_harms_nothing)
{
    char *out, *err;
    const int code = pipe_in(values[_i].lines, "", &out, &err);
    ck_assert_msg(code == 0 && err[0] == '\0', "%d: %s", code, err);
    ck_assert_msg(strstr(out, values[_i].shown) != NULL, "%s", out);
    free(out);
    free(err);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("console");
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, values_are_shown_and_variables_stay);
    tcase_add_test(tests, tab_completes_and_says_how_a_function_is_called);
    tcase_add_test(tests, ctrl_c_ends_the_chunk_and_keeps_variables_and_weights);
    tcase_add_test(tests, a_function_of_c_that_hangs_costs_its_process_and_no_more);
    tcase_add_test(tests, a_process_that_is_killed_is_replaced_with_what_was_lost);
    tcase_add_test(tests, a_save_is_not_among_what_was_lost);
    tcase_add_test(tests, lines_are_remembered_beyond_the_end);
    tcase_add_test(tests, of_two_consoles_that_end_the_later_keeps_the_lines_of_the_other);
    tcase_add_test(tests, a_terminal_that_only_prints_serves);
    tcase_add_test(tests, a_signal_that_ends_programs_ends_it);
    tcase_add_loop_test(tests, a_pipe_is_run_without_a_prompt_and_ends_with_the_first_error, 0,
                        sizeof pipes / sizeof *pipes);
    tcase_add_loop_test(tests, any_value_is_shown_and_what_it_does_meanwhile_harms_nothing, 0,
                        sizeof values / sizeof *values);
    Suite *suite = suite_create("console");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
