// SPDX-License-Identifier: Apache-2.0
// hr.replay: traces from below the recipe's folder or by a scenario's name, on the allocators that are named, as a table
// with the names of the JSON.
#include "lua/recipe_run.h"

static const char rmm_log[] = "Thread,Time,Action,Pointer,Size,Stream\n"
                              "1,10:00:00:000001,allocate,0x1000,3145728,0\n"
                              "1,10:00:00:000002,allocate,0x2000,6291456,0\n"
                              "1,10:00:00:000003,free,0x1000,3145728,0\n"
                              "1,10:00:00:000004,allocate,0x3000,1048576,0\n";

static void expect(const char *text, int code, const char *sentence)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "log.csv", rmm_log, strlen(rmm_log));
    recipe_put(&r, "recipe.lua", text, strlen(text));
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == code && strstr(r.notes, sentence) != NULL,
                  "%s\n-- code %d, wanted %d and '%s'\n%s%s", text, r.code, code, sentence, r.out, r.notes);
    recipe_drop(&r);
}

START_TEST(a_replay_has_the_names_of_the_json)
{
    expect(
        "local r = hr.replay('log.csv', {allocators = {'bfc', 'static'}, ['device.vram'] = '8MiB'})\n"
        "local t, bfc, planned = r.trace, r.allocators[1], r.allocators[2]\n"
        "assert(#r.allocators == 2 and bfc.name == 'bfc' and planned.name == 'static')\n"
        "assert(t.file == 'log.csv' and t.rows == 4 and t.allocations == 3 and t.blocks == 2 and t.devices "
        "== 1)\n"
        "assert(t.peak_requested_bytes == hr.bytes('9MiB') and t.recorded.limit_bytes == nil and t.format == "
        "'rmm')\n"
        "assert(bfc.memory.limit_bytes == hr.bytes('8MiB') and bfc.failures_total == 1 and #bfc.failures == "
        "1)\n"
        "local f = bfc.failures[1]\n"
        "assert(f.event == 1 and f.requested_bytes == hr.bytes('6MiB') and f.free_bytes == hr.bytes('5MiB') "
        "and f.step == 0)\n"
        "assert(f.largest_free_bytes == hr.bytes('5MiB') and f.device == 0 and f.name == nil)\n"
        "assert(bfc.memory.allocations == 2 and bfc.memory.at_peak.event == 0)\n"
        "assert(bfc.cause == 'capacity' and bfc.sentence:find('capacity: ') == 1 and t.recorded.cause == "
        "nil)\n"
        "local hole = bfc.holes[1]\n"
        "assert(hole.bytes == hr.bytes('5MiB') and hole.after == nil and hole.before.name == nil)\n"
        "assert(hole.before.bytes == hr.bytes('3MiB') and hole.before.joined_bytes == hr.bytes('8MiB'))\n"
        "assert(planned.failures[1].event == nil and planned.memory.peak_in_use_bytes == nil)\n",
        0, "");
}
END_TEST

START_TEST(all_allocators_play_when_none_is_named)
{
    expect("local r = hr.replay('log.csv')\n"
           "assert(#r.allocators >= 2)\n"
           "for _, a in ipairs(r.allocators) do\n"
           "  assert(a.failures_total == 0 and a.memory.limit_bytes == nil)\n"
           "  assert(a.memory.peak_pool_bytes >= a.memory.peak_in_use_bytes)\n"
           "  assert(a.memory.waste_bytes == a.memory.peak_in_use_bytes - a.memory.peak_requested_bytes)\n"
           "end\n"
           "assert(#hr.replay('log.csv', {allocators = {}}).allocators == 0)\n"
           "local names = setmetatable({}, {__len = function() return 1 end, __index = function()\n"
           "  pcall(hr.replay, 'none.csv')\n" // takes away the trace that is open
           "  return 'bfc'\n"
           "end})\n"
           "assert(#hr.replay('log.csv', {allocators = names}).allocators == 1)\n",
           0, "");
}
END_TEST

START_TEST(knobs_reach_the_allocators_that_listen)
{
    expect("local r = hr.replay('log.csv', {allocators = {'bfc', 'static'}, allocator = {growth = true}})\n"
           "local off = hr.replay('log.csv', {allocators = {'bfc'}})\n"
           "assert(r.allocators[1].memory.peak_pool_bytes > off.allocators[1].memory.peak_pool_bytes)\n"
           "assert(r.allocators[2].failures_total == 0)\n",
           0, "");
}
END_TEST

static const struct {
    const char *text, *sentence;
    int code;
} wrong[] = {
    {"hr.replay()", "string expected", 3},
    {"hr.replay('log.csv', 3)", "table expected", 3},
    {"hr.replay('log.csv', {allocators = 'bfc'})", "table expected", 3},
    {"hr.replay('log.csv', {allocators = {true}})", "allocators is a list of names", 3},
    {"hr.replay('log.csv', {allocators = {'bcf'}})", "did you mean 'bfc'", 3},
    {"hr.replay('log.csv', {batch = {size = 3}})", "batch.size changes nothing in a replay", 3},
    {"hr.replay('log.csv', {allocators = {'static'}, allocator = {growth = true}})",
     "allocator.growth: none of these allocators listens to it", 3},
    {"hr.replay('log.csv', {allocator = {kind = 'bfc'}})", "had allocator.kind", 3},
    {"hr.replay('log.csv', {allocators = {'bfc'}, ['allocator.kind'] = 'static'})", "had allocator.kind", 3},
    {"hr.replay('log.csv', {['device.vram'] = 'much'})", "device.vram", 3},
    {"hr.replay('/etc/passwd')", "a recipe may not use '/etc/passwd'", 3},
    {"hr.replay('../log.csv')", "a recipe may not use '../log.csv'", 3},
    {"hr.replay('recipe.lua')", "it looks like none of them", 5},
    {"hr.replay('missing.csv')", "missing.csv", 5},
};

START_TEST(what_is_wrong_is_said_at_its_line)
{
    expect(wrong[_i].text, wrong[_i].code, wrong[_i].sentence);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lua_replay");
    tcase_add_test(tests, a_replay_has_the_names_of_the_json);
    tcase_add_test(tests, all_allocators_play_when_none_is_named);
    tcase_add_test(tests, knobs_reach_the_allocators_that_listen);
    tcase_add_loop_test(tests, what_is_wrong_is_said_at_its_line, 0, sizeof wrong / sizeof *wrong);
    Suite *suite = suite_create("lua_replay");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
