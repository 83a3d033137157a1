// SPDX-License-Identifier: Apache-2.0
// What a person reads when a recipe fails: the right line of the right file, a mark, something to try, the exit code.
#include "lua/recipe_run.h"

typedef struct blame_case {
    const char *text;
    int code, line;
    const char *sentence; // behind "recipe.lua:LINE: "
} blame_case;

#define DEMO "hr.preset 'demo'\n"

static const blame_case cases[] = {
    {DEMO "\nhr.knobs.batch.siez = 64\n", 3, 3, "unknown knob 'batch.siez' — did you mean 'batch.size'?"},
    {DEMO "local x = hr.knobs.batch.siez\n", 3, 2, "unknown knob 'batch.siez' — did you mean 'batch.size'?"},
    {DEMO "hr.knobs.bach.size = 64\n", 3, 2, "unknown group of knobs 'bach' — did you mean 'batch'?"},
    {DEMO "hr.run{step = 10}\n", 3, 2,
     "hr.run has no option or group of knobs 'step' — did you mean 'steps'?"},
    {DEMO "hr.plan{batch_size = 10}\n", 3, 2,
     "hr.plan has no option or group of knobs 'batch_size' — did you mean 'batch.size'?"},
    {DEMO "hr.knobs.checkpoint_strategy = 'sqrt'\n", 3, 2,
     "unknown group of knobs 'checkpoint_strategy' — did you mean 'checkpoint.strategy'?"},
    {DEMO "hr.run(10)\n", 3, 2, "hr.run takes a table such as {steps = 10}, had a number"},
    {DEMO "hr.plan{batch = {siez = 1}}\n", 3, 2, "unknown knob 'batch.siez' — did you mean 'batch.size'?"},
    {DEMO "local function turn(n)\n  hr.knobs.batch.size = n\nend\nturn(64)\nturn(0)\n", 3, 3,
     "batch.size: needs a whole number from 1"},
    {DEMO "print(hr.plan().memory.peak_in_use_byte)\n", 3, 2,
     "no field of a result is called 'peak_in_use_byte' here — did you mean 'peak_in_use_bytes'?"},
    {DEMO "print(hr.plan().fit)\n", 3, 2, "no field of a result is called 'fit' here"},
    {"hr.paln()\n", 3, 1, "hr has no 'paln' — did you mean 'plan'?"},
    {"hr.plan = print\n", 3, 1, "hr is read-only: 'plan' cannot be set"},
    {"\n\nlocal x = = 1\n", 3, 3, "unexpected symbol near '='"},
    {"local t = {\n1 2}\n", 3, 2, "'}' expected"},
    {"local t\nprint(t.x)\n", 3, 2, "attempt to index a nil value (local 't')"},
    {"io.write('x')\n", 3, 1, "attempt to index a nil value (global 'io')"},
    {"error('mine')\n", 3, 1, "mine"},
    {"local function check(x)\n  error('wants a number', 2)\nend\ncheck('a')\n", 3, 4, "wants a number"},
    {"error('bare', 0)\n", 3, 1, "bare"},
    {"assert(false, 'said so')\n", 3, 1, "said so"},
    {"\nerror()\n", 3, 2, "the error is a nil, not a text"},
    {"error({})\n", 3, 1, "the error is a table, not a text"},
    {"error(setmetatable({}, {__tostring = function() return 'shown' end}))\n", 3, 1, "shown"},
    {"error(setmetatable({}, {__tostring = error}))\n", 3, 1, "the error cannot be shown"},
    {"error(setmetatable({}, {__tostring = function() return {} end}))\n", 3, 1, "the error"},
    {"hr.expect(1 == 2, 'one is two')\n", 1, 1, "one is two"},
    {"hr.expect(nil)\n", 1, 1, "what was expected is not so"},
    {"local ok, e = pcall(error, 'x')\nerror(e, 0)\n", 3, 2, "x"},
    {"local ok, e = pcall(function()\n  error('inner')\nend)\nerror(e, 0)\n", 3, 2, "inner"},
    {"coroutine.wrap(function()\n  error('in a coroutine')\nend)()\n", 3, 2, "in a coroutine"},
    {"string.rep()\n", 3, 1, "bad argument #1 to 'rep' (string expected, got no value)"},
    {"('x'):find('[')\n", 3, 1, "malformed pattern (missing ']')"},
    {"table.insert({}, 1, 2, 3)\n", 3, 1, "wrong number of arguments to 'insert'"},
    {"table.sort(1)\n", 3, 1, "bad argument #1 to 'sort' (table expected, got number)"},
    {"hr.bytes('3XiB')\n", 3, 1, "'3XiB' is not a size such as \"512MiB\" or \"3GiB\""},
    {"hr.preset 'dmeo'\n", 3, 1, "no preset is called 'dmeo'"},
    {"require 'nothing'\n", 5, 1, ""},
    {DEMO
     "hr.knobs.device.kind = 'plan'\nhr.on('step', function(s)\n  if s.step == 2 then\n    error('in step')\n"
     "  end\nend)\nhr.run{steps = 3}\n",
     3, 5, "in step"},
    {DEMO "hr.knobs.device.kind = 'plan'\nhr.on('step', function(s) hr.knobs.batch.size = -1 "
          "end)\nhr.run{steps = 3}\n",
     3, 3, "batch.size: needs a whole number"},
    {DEMO "hr.knobs.precision.policy = 'float64'\nhr.plan()\n", 3, 3,
     "precision.policy=float64 needs device.kind"},
    {DEMO "hr.knobs.pipeline.path = 'none'\nhr.knobs.device.kind = 'reference'\nhr.run{steps = 1, batch = "
          "{size = 1}}\n",
     5, 4, ""},
};

START_TEST(an_error_names_the_line_that_made_it)
{
    const blame_case *c = &cases[_i];
    char place[300], mark[16];
    recipe_run r = recipe_run_text(c->text, &test_limits);
    (void)snprintf(place, sizeof place, "%s:%d: ", r.file, c->line);
    (void)snprintf(mark, sizeof mark, "  > %4d | ", c->line);
    const char *at = strstr(r.notes, place);
    ck_assert_msg(r.code == c->code && strncmp(r.notes, "headroom: ", 10) == 0 && at != NULL &&
                      strncmp(at + strlen(place), c->sentence, strlen(c->sentence)) == 0 &&
                      strstr(r.notes, mark) != NULL && strstr(r.notes, "\n  try: ") != NULL,
                  "%s-- code %d, wanted %d at line %d: %s\n%s", c->text, r.code, c->code, c->line,
                  c->sentence, r.notes);
    ck_assert_msg(strstr(r.notes, "[C]") == NULL, "%s", r.notes);
    recipe_drop(&r);
}
END_TEST

START_TEST(a_message_is_whole)
{
    recipe_run r = recipe_run_text("hr.preset 'demo'\n"
                                   "local function tune()\n"
                                   "  hr.knobs.batch.siez = 64\n"
                                   "end\n"
                                   "tune()\n",
                                   &test_limits);
    char wanted[2048];
    (void)snprintf(wanted, sizeof wanted,
                   "headroom: knob failed: %s:3: unknown knob 'batch.siez' — did you mean 'batch.size'?\n"
                   "       2 | local function tune()\n"
                   "  >    3 |   hr.knobs.batch.siez = 64\n"
                   "         |            ^~~~~~~~~~\n"
                   "       4 | end\n"
                   "  try: headroom knobs\n"
                   "  at   %s:3: in function tune\n"
                   "  from %s:5: in the main chunk\n",
                   r.file, r.file, r.file);
    ck_assert_str_eq(r.notes, wanted);
    recipe_drop(&r);
}
END_TEST

START_TEST(the_mark_stands_under_what_is_meant)
{
    recipe_run r = recipe_run_text("print('é') nonsense()\n", &test_limits);
    ck_assert_ptr_nonnull(strstr(r.notes, "\n         |            ^~~~~~~~\n"));
    recipe_drop(&r);
}
END_TEST

START_TEST(an_error_in_a_module_shows_the_module)
{
    recipe_run r;
    static const char module[] = "\nlocal x = nil + 1\n";
    recipe_make(&r);
    recipe_put(&r, "part.lua", module, strlen(module));
    recipe_put(&r, "recipe.lua", "require 'part'", 14);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_int_eq(r.code, 3);
    ck_assert_msg(strstr(r.notes, "/part.lua:2: attempt to perform arithmetic on a nil value\n") != NULL,
                  "%s", r.notes);
    ck_assert_ptr_nonnull(strstr(r.notes, "  >    2 | local x = nil + 1\n"));
    ck_assert_ptr_nonnull(strstr(r.notes, "/recipe.lua:1: in the main chunk\n"));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_failed_check_counts_even_when_it_was_caught)
{
    recipe_expect_failure("pcall(hr.expect, false, 'quietly')\n", 1, "headroom: check failed: quietly\n");
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_no_lua_error)
{
    recipe_run r;
    recipe_make(&r);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_int_eq(r.code, 5);
    ck_assert_ptr_nonnull(strstr(r.notes, "recipe.lua: No such file or directory"));
    char *big = calloc(1, SCRIPT_SOURCE_BYTES_MAX + 2);
    ck_assert_ptr_nonnull(big);
    memset(big, '\n', SCRIPT_SOURCE_BYTES_MAX + 1);
    recipe_put(&r, "recipe.lua", big, SCRIPT_SOURCE_BYTES_MAX + 1);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_int_eq(r.code, 5);
    recipe_put(&r, "recipe.lua", big, SCRIPT_SOURCE_BYTES_MAX);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_int_eq(r.code, 0);
    free(big);
    recipe_drop(&r);
}
END_TEST

START_TEST(a_line_for_the_shell_keeps_the_numbers)
{
    recipe_expect_fine("#!/usr/bin/env headroom script\nassert(true)\n");
    recipe_expect_failure("#!/usr/bin/env headroom script\nerror('x')\n", 3, "recipe.lua:2: x");
    recipe_expect_fine("#!");
    recipe_expect_fine("");
}
END_TEST

static volatile sig_atomic_t interrupted;

START_TEST(an_interrupt_ends_the_recipe_wherever_it_is)
{
    static const char *const texts[] = {
        "while true do pcall(function() while true do end end) end",
        "hr.preset 'demo' hr.knobs.device.kind = 'plan' pcall(hr.run, {steps = 1000000000})",
        "hr.preset 'demo' hr.knobs.device.kind = 'plan' while true do pcall(hr.plan) end",
    };
    recipe_run r;
    char *out = NULL;
    size_t length = 0;
    recipe_make(&r);
    recipe_put(&r, "recipe.lua", texts[_i], strlen(texts[_i]));
    script_options options = {.limits = test_limits,
                              .out = stdout,
                              .notes = open_memstream(&out, &length),
                              .interrupted = &interrupted};
    interrupted = SIGINT;
    ck_assert_int_eq(script_main(r.file, 0, NULL, &options), 130);
    (void)fclose(options.notes);
    ck_assert_msg(strncmp(out, "headroom: interrupted: ", 23) == 0 && strstr(out, ":1: by Ctrl-C\n") != NULL,
                  "%s", out);
    free(out);
    recipe_drop(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_errors");
    TCase *tc = tcase_create("errors");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, an_error_names_the_line_that_made_it, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tc, a_message_is_whole);
    tcase_add_test(tc, the_mark_stands_under_what_is_meant);
    tcase_add_test(tc, an_error_in_a_module_shows_the_module);
    tcase_add_test(tc, a_failed_check_counts_even_when_it_was_caught);
    tcase_add_test(tc, a_file_that_cannot_be_read_is_no_lua_error);
    tcase_add_test(tc, a_line_for_the_shell_keeps_the_numbers);
    tcase_add_loop_test(tc, an_interrupt_ends_the_recipe_wherever_it_is, 0, 3);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
