// SPDX-License-Identifier: Apache-2.0
// What a recipe cannot do: run on after its time, take more than its memory, reach anything outside its environment,
// or read and write outside its folders. Each row is an hint; each must end safely.
#include <sys/stat.h>

#include "base/host_mem.h"
#include "lua/recipe_run.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

// ---- time -------------------------------------------------------------------------------------------------------------

#define FOREVER "while true do end"

static const char *const endless[] = {
    FOREVER,
    "for i = 1, math.huge do end",
    "::again:: goto again",
    "local function f() return f() end f()",
    "while true do pcall(function() " FOREVER " end) end",
    "while true do pcall(pcall, pcall, function() " FOREVER " end) end",
    "while true do pcall(error) end",
    "return pcall(function() " FOREVER " end)",
    "xpcall(function() " FOREVER " end, function() " FOREVER " end)",
    "while true do xpcall(function() " FOREVER " end, function() " FOREVER " end) end",
    "xpcall(error, function() " FOREVER " end)",
    "while true do xpcall(error, function() error() end) end",
    "coroutine.wrap(function() " FOREVER " end)()",
    "while true do coroutine.resume(coroutine.create(function() " FOREVER " end)) end",
    "while true do pcall(coroutine.wrap(function() " FOREVER " end)) end",
    "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
    "local co = coroutine.create(function() pcall(function() coroutine.yield() " FOREVER " end) " FOREVER
    " end)\n"
    "coroutine.resume(co) coroutine.resume(co) " FOREVER,
    "local all = {} for i = 1, 100 do all[i] = coroutine.create(function() coroutine.yield() " FOREVER
    " end) end\n"
    "for i = 1, 100 do coroutine.resume(all[i]) end for i = 1, 100 do coroutine.resume(all[i]) end",
    "local x <close> = setmetatable({}, {__close = function() " FOREVER " end}) " FOREVER,
    "coroutine.wrap(function() local x <close> = setmetatable({}, {__close = function() " FOREVER
    " end}) " FOREVER " end)()",
    "coroutine.wrap(function() local x <close> = setmetatable({}, {__close = function() " FOREVER
    " end}) error() "
    "end)()",
    "local co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() " FOREVER
    " end}) coroutine.yield() end) coroutine.resume(co) coroutine.close(co)",
    "local t = setmetatable({}, {__index = function() " FOREVER " end}) local x = t.x",
    "local t = setmetatable({}, {__newindex = function() " FOREVER " end}) t.x = 1",
    "local m = {__eq = function() " FOREVER " end} local x = setmetatable({}, m) == setmetatable({}, m)",
    "local x = setmetatable({}, {__lt = function() " FOREVER " end}) < 1",
    "local x = setmetatable({}, {__concat = function() " FOREVER " end}) .. 'x'",
    "print(setmetatable({}, {__tostring = function() " FOREVER " end}))",
    "error(setmetatable({}, {__tostring = function() " FOREVER " end}))",
    "for _ in pairs(setmetatable({}, {__pairs = function() " FOREVER " end})) do end",
    "for _ in function() return 1 end do end",
    "string.gsub('x', 'x', function() " FOREVER " end)",
    "string.gsub(('x'):rep(100), 'x', function() pcall(function() " FOREVER " end) end)",
    "string.gsub('x', 'x', setmetatable({}, {__index = function() " FOREVER " end}))",
    "table.sort({3, 2, 1}, function() " FOREVER " end)",
    "while true do pcall(table.sort, {3, 2, 1}, function() error() end) end",
    "load(function() " FOREVER " end)",
    "load(function() return ' ' end)",
    "load(\"" FOREVER "\")()",
    "while true do load('return 1')() end",
};

START_TEST(endless_lua_is_stopped_whatever_it_hides_in)
{
    recipe_check(endless[_i], &short_limits, 3,
                 "needed more than 0.05 s of Lua between two calls of the engine");
}
END_TEST

START_TEST(a_plan_gives_lua_its_time_anew)
{
    recipe_check("hr.preset 'demo'\n"
                 "hr.knobs.device.kind = 'plan'\n"
                 "for round = 1, 60 do\n"
                 "  for k = 1, 200000 do end\n"
                 "  hr.plan()\n"
                 "end\n",
                 &short_limits, 0, "");
}
END_TEST

START_TEST(a_callback_that_never_ends_is_stopped)
{
    recipe_check("hr.preset 'demo'\n"
                 "hr.knobs.device.kind = 'plan'\n"
                 "hr.on('step', function() pcall(function() " FOREVER " end) end)\n"
                 "while true do pcall(hr.run, {steps = 5}) end\n",
                 &short_limits, 3, "recipe.lua:3: needed more than 0.05 s of Lua");
}
END_TEST

// ---- memory -----------------------------------------------------------------------------------------------------------

static const char *const greedy[] = {
    "local t = {} while true do t[#t + 1] = {} end",
    "local s = 'x' while true do s = s .. s end",
    "local s = ('x'):rep(1 << 30)",
    "local s = ('x'):rep(1 << 10, ('y'):rep(1 << 20))",
    "local s = string.gsub(('x'):rep(1 << 16), 'x', ('y'):rep(1 << 16))",
    "local s = table.concat({('x'):rep(1 << 23), ('x'):rep(1 << 23)})",
    "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
    "local s = string.pack('s', ('x'):rep(1 << 23))",
    "local t = table.pack(string.byte(('x'):rep(900000), 1, -1), string.byte(('x'):rep(900000), 1, -1))",
    "coroutine.wrap(function() local s = ('x'):rep(1 << 30) end)()",
    "hr.preset 'demo' hr.knobs.device.kind = 'plan' hr.on('step', function() local s = ('x'):rep(1 << 30) "
    "end)\n"
    "hr.run{steps = 2}",
};

START_TEST(memory_beyond_the_limit_is_refused_with_its_line)
{
    recipe_expect_failure(greedy[_i], 3, "needed more than 16.00 MiB of memory for Lua");
}
END_TEST

START_TEST(a_recipe_may_catch_that_memory_was_refused)
{
    recipe_expect_fine("for k = 1, 10 do assert(not pcall(string.rep, 'x', 1 << 40)) end\n"
                       "local ok, e = pcall(function() local t = {} while true do t[#t + 1] = {} end end)\n"
                       "assert(not ok and e == 'not enough memory')\n"
                       "local f, e = load(function() return ('x'):rep(1 << 20) end)\n"
                       "assert(not f and e == 'not enough memory')\n"
                       "local function deep() return 1 + deep() end\n"
                       "local ok, e = pcall(deep)\n"
                       "assert(not ok and #tostring(e) > 0)\n");
}
END_TEST

// ---- the environment --------------------------------------------------------------------------------------------------

static const char *const shut[] = {
    "for _, name in ipairs{'io', 'os', 'package', 'debug', 'dofile', 'loadfile', 'collectgarbage', 'warn'} "
    "do\n"
    "  assert(_G[name] == nil and _ENV[name] == nil, name)\n"
    "end\n"
    "assert(string.dump == nil and _G._G == _G)",
    // bytecode
    "assert(not load('\\27Lua'))\n"
    "assert(not load('\\27LuaT', 'x', 't'))\n"
    "assert(not pcall(load, 'return 1', 'x', 'b'))\n"
    "assert(not load('\\27LuaT', 'x', 'bt'))\n"
    "assert(not load(function() return '\\27LuaT' end, 'x', 'bt'))\n"
    "assert(load('return 1', 'x', 'bt')() == 1 and load('return x', 'x', 't', {x = 2})() == 2)\n"
    "assert(load('return x', 'x', nil, {x = 3})() == 3 and load('return _G')() == _G)",
    // finalizers
    "assert(not pcall(setmetatable, {}, {__gc = print}))\n"
    "assert(not pcall(setmetatable, {}, {__gc = false}))\n"
    "local m = {} setmetatable({}, m) m.__gc = error\n"
    "for k = 1, 1e5 do local t = {} end",
    // metatables of others
    "assert(getmetatable('') == 'string' and getmetatable('').__index == nil)\n"
    "assert(not pcall(setmetatable, '', {}))\n"
    "assert(not pcall(function() getmetatable('').__index = print end))\n"
    "string.upper = nil assert(('x').upper == nil and ('x'):rep(2) == 'xx')",
    "local b = hr.bytes(1)\n"
    "for _, x in ipairs{hr, hr.knobs, hr.knobs.batch, b} do\n"
    "  assert(type(getmetatable(x)) == 'string' and type(x) == 'userdata')\n"
    "  assert(not pcall(setmetatable, x, {}) and not pcall(rawset, x, 'y', 1) and not pcall(rawget, x, "
    "'y'))\n"
    "  assert(not pcall(next, x) and not pcall(function() x.nonsense = 1 end))\n"
    "end\n"
    "assert(not pcall(function() hr.plan = print end) and not pcall(function() hr.knobs = {} end))",
    // shadowing what the sandbox itself is made of changes nothing
    "local keep = pcall\n"
    "setmetatable(_G, {__index = function(_, name) return name end}) assert(io == 'io')\n"
    "pcall, error, print, tostring, string = nil\n"
    "assert(not keep(hr.bytes, 'x'))",
    // errors of every kind can be thrown and caught
    "for _, e in ipairs{1, true, {}, 'x', print, coroutine.create(print), hr, hr.bytes(1)} do\n"
    "  local ok, caught = pcall(error, e)\n"
    "  assert(not ok and rawequal(caught, e))\n"
    "  local ok, caught = xpcall(error, function(x) return x end, e)\n"
    "  assert(not ok and rawequal(caught, e))\n"
    "end\n"
    "assert(select('#', pcall(error)) == 2)",
    // pcall, xpcall and coroutines keep their meaning
    "local function three(...) return ..., 1, 2, 3 end\n"
    "assert(select('#', pcall(three)) == 5 and select(5, xpcall(three, print, 9)) == 3)\n"
    "local ok, a, b = xpcall(error, function(e) return e .. '!', 7 end, 'x') assert(not ok and a == 'x!' and "
    "b == 7)\n"
    "local co = coroutine.wrap(function(...)\n"
    "  local ok, got = pcall(function(...) return coroutine.yield(...) end, ...) assert(ok and got == 5)\n"
    "  local ok, got = pcall(function() coroutine.yield(1) error('late', 0) end) assert(not ok and got == "
    "'late')\n"
    "  local ok, got = xpcall(function() return coroutine.yield(2) end, print) assert(ok and got == 6)\n"
    "  local ok, got = xpcall(function() coroutine.yield(3) error('e', 0) end, function(e) "
    "coroutine.yield(4)\n"
    "    return e .. e end) assert(not ok and got == 'ee')\n"
    "  return 'end'\n"
    "end)\n"
    "assert(co('a') == 'a' and co(5) == 1 and co() == 2 and co(6) == 3 and co() == 4 and co() == 'end')\n"
    "local ok, e = pcall(co) assert(not ok and e:find('cannot resume dead coroutine', 1, true))\n"
    "local closed = false\n"
    "local co = coroutine.wrap(function()\n"
    "  local x <close> = setmetatable({}, {__close = function() closed = true end}) error({1})\n"
    "end)\n"
    "local ok, e = pcall(co) assert(not ok and e[1] == 1 and closed)",
    // the same numbers in every run
    "local a = math.random() math.randomseed(1) assert(math.random() == a)",
};

START_TEST(the_environment_is_what_the_list_allows)
{
    recipe_expect_fine(shut[_i]);
}
END_TEST

START_TEST(what_is_printed_cannot_steer_the_terminal)
{
    recipe_run r = recipe_run_text("print('\\27[31mred\\7 \\u{9b}2J \\127 \\0 é\\ttab')\n"
                                   "hr.note('\\27]0;title')\n"
                                   "error('\\27[2J')\n",
                                   &test_limits);
    ck_assert_str_eq(r.out, "?[31mred? ?2J ? ? é\ttab\n");
    ck_assert_ptr_null(strchr(r.notes, 27));
    ck_assert_ptr_nonnull(strstr(r.notes, "note: ?]0;title\n"));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_forged_chunk_name_shows_no_foreign_file)
{
    recipe_run r = recipe_run_text("load('error(\"x\")', '@/etc/passwd')()", &test_limits);
    ck_assert_int_eq(r.code, 3);
    ck_assert_ptr_null(strstr(r.notes, "root:"));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_recipe_in_bytecode_is_refused)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "recipe.lua", "\x1bLuaT\0\x19\x93\r\n", 10);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_int_eq(r.code, 3);
    ck_assert_ptr_nonnull(strstr(r.notes, "attempt to load a binary chunk"));
    recipe_drop(&r);
}
END_TEST

// ---- files ------------------------------------------------------------------------------------------------------------

static void put_text(const recipe_run *r, const char *name, const char *text)
{
    recipe_put(r, name, text, strlen(text));
}

START_TEST(require_reads_below_the_folder_of_the_recipe_only)
{
    recipe_run r;
    char path[128];
    recipe_make(&r);
    (void)snprintf(path, sizeof path, "%s/sub", r.folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/link.lua", r.folder);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    put_text(&r, "sub/part.lua", "count = (count or 0) + 1 return {name = ...}");
    put_text(&r, "again.lua", "return require 'again'");
    put_text(&r, "recipe.lua",
             "assert(require 'sub.part' == require 'sub.part' and require('sub.part').name == 'sub.part' and "
             "count == 1)\n"
             "for _, name in ipairs{'../x', '/etc/passwd', '..etc', 'sub..part', '', 'sub/part', '.x', "
             "'link', 'none',\n"
             "                     'again', 'x\\0y', ('x'):rep(5000)} do\n"
             "  assert(not pcall(require, name), name)\n"
             "end\n");
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    recipe_drop(&r);
}
END_TEST

START_TEST(knobs_name_no_file_outside)
{
    recipe_expect_fine("hr.preset 'demo'\n"
                       "for _, path in ipairs{'/etc/passwd', '../x', 'a/../../b', '..'} do\n"
                       "  assert(not pcall(function() hr.knobs.train.save = path end), path)\n"
                       "  assert(not pcall(function() hr.knobs.train.resume = path end), path)\n"
                       "  assert(not pcall(function() hr.knobs.pipeline.path = path end), path)\n"
                       "  assert(not pcall(function() hr.knobs.pipeline.cache_path = path end), path)\n"
                       "  assert(not pcall(hr.plan, {train = {save = path}}), path)\n"
                       "  assert(not pcall(hr.plan, {['pipeline.path'] = path}), path)\n"
                       "  assert(not pcall(hr.plan, {['compress.distill_weights'] = path}), path)\n"
                       "  assert(not pcall(hr.plan, {['compress.distill'] = path .. '.yaml'}), path)\n"
                       "  assert(not pcall(hr.plan, {['device.card'] = path .. '.yaml'}), path)\n"
                       "  assert(not pcall(hr.load, path) and not pcall(hr.save, path), path)\n"
                       "  assert(not pcall(hr.preset, path .. '.yaml'), path)\n"
                       "end\n"
                       "assert(hr.knobs.train.save == '' and hr.knobs.pipeline.path == '')\n");
}
END_TEST

START_TEST(saves_go_below_headroom_out)
{
    recipe_run r;
    char before[1024];
    recipe_make(&r);
    put_text(&r, "recipe.lua",
             "hr.preset 'demo'\n"
             "hr.knobs.train.save = 'w.safetensors'\n"
             "assert(hr.knobs.train.save == 'headroom-out/w.safetensors')\n"
             "hr.knobs.train.save = 'headroom-out/v'\n"
             "assert(hr.knobs.train.save == 'headroom-out/v')\n"
             "assert(not pcall(function() hr.knobs.train.save = 'link/v' end))\n"
             "assert(not pcall(function() hr.knobs.train.save = 'away' end))\n"
             "hr.knobs.pipeline.cache = 'file'\n"
             "hr.knobs.pipeline.cache_path = '.'\n"
             "assert(hr.knobs.pipeline.cache_path == 'headroom-out/.')\n"
             "assert(not pcall(function() hr.knobs.pipeline.cache_path = 'link' end))\n"
             "assert(not pcall(hr.load, 'away'))\n"
             "assert(hr.knobs.train.resume ~= 'headroom-out/away')\n"
             "assert(not pcall(hr.export, 'away.json', 1) and not pcall(hr.export, 'link/x.json', 1))\n"
             "assert(hr.export('fine.json', 1) == 'headroom-out/fine.json')\n");
    hr_preset_search_beside(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(r.folder), 0);
    ck_assert_int_eq(mkdir("headroom-out", 0700), 0);
    ck_assert_int_eq(symlink("/tmp", "headroom-out/link"), 0);
    ck_assert_int_eq(symlink("/etc/passwd", "headroom-out/away"), 0);
    ck_assert_int_eq(symlink("/etc/passwd", "headroom-out/away.json"), 0);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    recipe_drop(&r);
}
END_TEST

START_TEST(what_the_person_typed_may_be_used_as_it_is)
{
    recipe_run r;
    char typed[] = "/tmp/headroom-lua-typed.safetensors";
    char *argv[] = {typed};
    recipe_make(&r);
    put_text(&r, "recipe.lua",
             "hr.preset 'demo'\n"
             "hr.knobs.train.save = hr.args[1]\n"
             "assert(hr.knobs.train.save == hr.args[1] and #hr.args == 1)\n");
    recipe_start(&r, 1, argv, &test_limits);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    recipe_drop(&r);
}
END_TEST

START_TEST(a_preset_beside_the_recipe_is_bound_as_the_recipe_is)
{
    recipe_run r;
    recipe_make(&r);
    put_text(&r, "tame.yaml", "extends: demo\nbatch: {size: 4}\n");
    put_text(&r, "wild.yaml", "extends: demo\ntrain: {save: /tmp/headroom-lua-wild}\n");
    put_text(&r, "curious.yaml", "extends: demo\npipeline: {path: /etc}\n");
    put_text(&r, "recipe.lua",
             "hr.preset 'tame.yaml' assert(hr.knobs.batch.size == 4)\n"
             "hr.preset './tame.yaml'\n"
             "assert(not pcall(hr.preset, 'wild.yaml') and not pcall(hr.preset, 'curious.yaml'))\n"
             "assert(hr.knobs.batch.size == 4)\n");
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    recipe_drop(&r);
}
END_TEST

// ---- faults -----------------------------------------------------------------------------------------------------------

static const char busy_recipe[] =
    "hr.preset 'demo'\n"
    "hr.knobs.device.kind = 'plan'\n"
    "local t = {}\n"
    "hr.on('step', function(s) t[#t + 1] = ('%d'):format(s.step):gsub('%d', '<%0>') end)\n"
    "hr.on('oom', function() hr.knobs.batch.size = 8 return true end)\n"
    "hr.run{steps = 3, batch = {size = 512}}\n"
    "print(coroutine.wrap(function() return pcall(hr.plan) end)())\n";

START_TEST(every_small_memory_ends_in_an_error_not_in_a_crash)
{
    recipe_run r;
    recipe_make(&r);
    put_text(&r, "recipe.lua", busy_recipe);
    script_limits limits = {.memory_bytes = 0, .lua_ns = test_limits.lua_ns};
    do {
        limits.memory_bytes += 499;
        recipe_start(&r, 0, NULL, &limits);
        ck_assert_msg(r.code == 0 || r.code == 1 || r.code == 3, "%d", r.code);
        ck_assert_msg(r.code == 0 || strstr(r.notes, "headroom: ") != NULL, "%s", r.notes);
    } while (r.code != 0);
    recipe_drop(&r);
}
END_TEST

START_TEST(every_request_of_the_engine_may_fail_once)
{
    recipe_run r;
    recipe_make(&r);
    put_text(&r, "recipe.lua", busy_recipe);
    recipe_start(&r, 0, NULL, &test_limits); // what the engine keeps for the life of the program
    int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1;; nth += 7) {
        (void)hr_host_mem_fail_at(nth);
        recipe_start(&r, 0, NULL, &test_limits);
        bool passed = hr_host_mem_fail_at(0) < nth;
        ck_assert_msg(passed ? r.code == 0 : r.code == 0 || r.code == 1, "%d %s", r.code, r.notes);
        ck_assert_int_eq(hr_host_mem_live(), live);
        if (passed) {
            break;
        }
    }
    recipe_drop(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_sandbox");
    TCase *tc = tcase_create("sandbox");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, endless_lua_is_stopped_whatever_it_hides_in, 0, COUNT(endless));
    tcase_add_test(tc, a_plan_gives_lua_its_time_anew);
    tcase_add_test(tc, a_callback_that_never_ends_is_stopped);
    tcase_add_loop_test(tc, memory_beyond_the_limit_is_refused_with_its_line, 0, COUNT(greedy));
    tcase_add_test(tc, a_recipe_may_catch_that_memory_was_refused);
    tcase_add_loop_test(tc, the_environment_is_what_the_list_allows, 0, COUNT(shut));
    tcase_add_test(tc, what_is_printed_cannot_steer_the_terminal);
    tcase_add_test(tc, a_forged_chunk_name_shows_no_foreign_file);
    tcase_add_test(tc, a_recipe_in_bytecode_is_refused);
    tcase_add_test(tc, require_reads_below_the_folder_of_the_recipe_only);
    tcase_add_test(tc, knobs_name_no_file_outside);
    tcase_add_test(tc, saves_go_below_headroom_out);
    tcase_add_test(tc, what_the_person_typed_may_be_used_as_it_is);
    tcase_add_test(tc, a_preset_beside_the_recipe_is_bound_as_the_recipe_is);
    tcase_add_test(tc, every_small_memory_ends_in_an_error_not_in_a_crash);
    tcase_add_test(tc, every_request_of_the_engine_may_fail_once);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
