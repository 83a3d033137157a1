// SPDX-License-Identifier: Apache-2.0
// Many knobs at once: hr.with, hr.apply, pairs(hr.knobs); and the small names beside them: hr.has, hr.rng, hr.time.
#include "lua/recipe_run.h"

#define PLAN "hr.preset 'demo'\nhr.knobs.device.kind = 'plan'\n"

START_TEST(what_with_turns_is_turned_back)
{
    recipe_expect_fine(
        PLAN "local a, b = hr.with({batch = {size = 32}, ['device.vram'] = '48MiB'}, function()\n"
             "  assert(hr.knobs.batch.size == 32 and hr.knobs.device.vram == hr.bytes('48MiB'))\n"
             "  hr.knobs.optimizer.kind = 'sgd'\n"
             "  return hr.plan().step.effective_batch, 'two'\n"
             "end)\n"
             "assert(a == 32 and b == 'two' and hr.knobs.batch.size == 128)\n"
             "assert(hr.knobs.device.vram == hr.bytes('64MiB') and hr.knobs.optimizer.kind == 'adam')\n"
             "hr.knobs.workspace.limit = nil\n"
             "hr.with({workspace = {limit = '1MiB'}}, function() end)\n"
             "assert(hr.knobs.workspace.limit == nil)\n");
}
END_TEST

START_TEST(with_turns_back_after_an_error_and_across_a_yield)
{
    recipe_expect_fine(
        PLAN "local ok, e = pcall(hr.with, {batch = {size = 32}}, function() error({'mine'}) end)\n"
             "assert(not ok and e[1] == 'mine' and hr.knobs.batch.size == 128)\n"
             "ok, e = pcall(hr.with, {batch = {size = 32}}, function() hr.knobs.batch.siez = 1 end)\n"
             "assert(not ok and e:find('recipe.lua:5: unknown knob', 1, true), e)\n"
             "assert(hr.knobs.batch.size == 128)\n"
             "assert(not pcall(hr.with, {batch = {siez = 32}}, print) and not pcall(hr.with, {}))\n"
             "assert(not pcall(hr.with, {['batch.size'] = 32, siez = 1}, print))\n"
             "assert(hr.knobs.batch.size == 128)\n"
             "local co = coroutine.wrap(function()\n"
             "  hr.with({batch = {size = 16}}, function() coroutine.yield(hr.knobs.batch.size) end)\n"
             "end)\n"
             "assert(co() == 16 and hr.knobs.batch.size == 16)\n"
             "co()\n"
             "assert(hr.knobs.batch.size == 128)\n");
}
END_TEST

// Of a run under way from the next step on, and back.
START_TEST(with_in_a_callback_turns_the_run)
{
    recipe_expect_fine(
        PLAN "local seen\n"
             "hr.on('step', function(s)\n"
             "  if s.step == 2 then\n"
             "    seen = hr.with({batch = {size = 64}}, function() return hr.knobs.batch.size end)\n"
             "  end\n"
             "  assert(s.samples == 128)\n"
             "end)\n"
             "hr.run{steps = 4}\n"
             "assert(seen == 64 and hr.knobs.batch.size == 128)\n");
}
END_TEST

// Two are asked for and one is refused: neither holds.
START_TEST(what_is_refused_half_way_turns_nothing)
{
    recipe_expect_fine(PLAN "local tried = 0\n"
                            "hr.on('step', function(s)\n"
                            "  assert(s.samples == 128)\n"
                            "  local wrong = {['batch.size'] = 64, ['precision.loss_scale'] = 'dynamic'}\n"
                            "  local fine = pcall(hr.with, wrong, function() end)\n"
                            "  assert(not fine and hr.knobs.batch.size == 128, hr.knobs.batch.size)\n"
                            "  fine = pcall(hr.apply, {'batch.size=64', 'precision.loss_scale=dynamic'})\n"
                            "  assert(not fine and hr.knobs.batch.size == 128, hr.knobs.batch.size)\n"
                            "  tried = tried + 1\n"
                            "end)\n"
                            "hr.run{steps = 3}\n"
                            "assert(tried == 3 and hr.knobs.batch.size == 128)\n");
}
END_TEST

START_TEST(a_group_is_turned_whole_or_not_at_all)
{
    recipe_expect_fine_small(
        "hr.preset 'small.yaml'\n"
        "local steps = 0\n"
        "for k = 1, 4 do\n"
        "  local ok = pcall(function() hr.knobs.batch = {size = 6, accumulate = 0} end)\n"
        "  assert(not ok and hr.knobs.batch.size == 2, hr.knobs.batch.size)\n"
        "end\n"
        "hr.on('step', function(s)\n"
        "  steps = steps + 1\n"
        "  local loose = hr.knobs.precision.loss_scale == 'none'\n"
        "  hr.knobs.precision = loose and {policy = 'mixed_float16', loss_scale = 'dynamic'}\n"
        "    or {policy = 'float32', loss_scale = 'none'}\n"
        "  local ok = pcall(function() hr.knobs.precision = {policy = 'float32', loss_scale = 'dynamic'} "
        "end)\n"
        "  assert(not ok and hr.knobs.precision.policy == (loose and 'mixed_float16' or 'float32'))\n"
        "end)\n"
        "hr.run{steps = 6}\n"
        "assert(steps == 6)\n");
}
END_TEST

START_TEST(another_preset_within_keeps_its_own_knobs)
{
    recipe_expect_fine(PLAN "hr.with({batch = {size = 32}}, function() hr.preset 'mlp' end)\n"
                            "local size = hr.knobs.batch.size\n"
                            "hr.preset 'mlp'\n"
                            "assert(hr.knobs.batch.size == size)\n");
}
END_TEST

START_TEST(every_fix_can_be_applied)
{
    recipe_expect_fine(
        PLAN "local oom = hr.plan{batch = {size = 256}}.oom\n"
             "for k, fix in ipairs(oom.fixes) do\n"
             "  hr.with({batch = {size = 256}}, function()\n"
             "    hr.apply(fix)\n"
             "    assert(hr.plan().memory.peak_in_use_bytes == fix.peak_bytes)\n"
             "  end)\n"
             "end\n"
             "hr.preset 'demo'\n"
             "hr.knobs.device.kind = 'plan'\n"
             "hr.apply{'batch.size=64', 'device.vram=48MiB'}\n"
             "assert(hr.knobs.batch.size == 64 and hr.knobs.device.vram == hr.bytes('48MiB'))\n"
             "hr.apply(hr.fit{}.fastest)\n"
             "assert(hr.plan().fits)\n"
             "for _, wrong in ipairs{{}, {'batch.size'}, {3}, {'batch.siez=3'}, {'batch.size=0'}} do\n"
             "  assert(not pcall(hr.apply, wrong))\n"
             "end\n"
             "assert(not pcall(hr.apply) and not pcall(hr.apply, 'batch.size=64'))\n");
}
END_TEST

START_TEST(an_oom_callback_applies_a_fix)
{
    recipe_expect_fine(
        PLAN "local applied = 0\n"
             "hr.on('oom', function(o) hr.apply(o.fixes[1]) applied = applied + 1 return true end)\n"
             "local r = hr.run{steps = 3, batch = {size = 256}}\n"
             "assert(r.fits and r.train.steps == 3 and applied == 1)\n");
}
END_TEST

START_TEST(knobs_can_be_gone_through)
{
    recipe_expect_fine(
        PLAN "local count, found = 0, {}\n"
             "for key, value in pairs(hr.knobs) do\n"
             "  count = count + 1\n"
             "  found[key] = value\n"
             "  assert(hr.knobs[key] == value or key:find('^[%w_]+%.[%w_]+$'))\n"
             "end\n"
             "assert(count > 100 and found['batch.size'] == 128 and found['device.kind'] == 'plan')\n"
             "local names = {}\n"
             "for key, value in pairs(hr.knobs.batch) do names[#names + 1] = key end\n"
             "assert(table.concat(names, ' ') == 'size accumulate remainder')\n");
}
END_TEST

START_TEST(has_asks_without_raising)
{
    recipe_expect_fine(
        "assert(hr.has('run') and hr.has('has') and hr.has('checkpoint.strategy'))\n"
        "assert(not hr.has('') and not hr.has('batch') and not hr.has('rum') and not hr.has('batch.siez'))\n"
        "assert(not pcall(hr.has))\n");
}
END_TEST

START_TEST(one_seed_gives_the_same_numbers_everywhere)
{
    recipe_expect_fine(
        "local r = hr.rng(1)\n"
        "assert(('%.17g'):format(r()) == '0.5665615751722809')\n"
        "local a, b = hr.rng(5), hr.rng(6)\n"
        "local counts, same = {}, 0\n"
        "for k = 1, 6000 do\n"
        "  local x, y = a(6), b(6)\n"
        "  counts[x] = (counts[x] or 0) + 1\n"
        "  same = same + (x == y and 1 or 0)\n"
        "end\n"
        "for k = 1, 6 do assert(counts[k] > 850 and counts[k] < 1150, counts[k]) end\n"
        "assert(#counts == 6 and same < 1150)\n"
        "for k = 1, 100 do\n"
        "  local u, n = r(), r(-3, 3)\n"
        "  assert(u >= 0 and u < 1 and n >= -3 and n <= 3)\n"
        "end\n"
        "assert(r(math.mininteger, math.maxinteger) ~= r(math.mininteger, math.maxinteger))\n"
        "assert(r(3, 3) == 3 and not pcall(r, 0) and not pcall(r, 2, 1) and not pcall(r, 1.5))\n"
        "local t = hr.time()\n"
        "assert(t >= 0 and hr.time() >= t)\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_turning");
    TCase *tc = tcase_create("turning");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_with_turns_is_turned_back);
    tcase_add_test(tc, with_turns_back_after_an_error_and_across_a_yield);
    tcase_add_test(tc, with_in_a_callback_turns_the_run);
    tcase_add_test(tc, what_is_refused_half_way_turns_nothing);
    tcase_add_test(tc, a_group_is_turned_whole_or_not_at_all);
    tcase_add_test(tc, another_preset_within_keeps_its_own_knobs);
    tcase_add_test(tc, every_fix_can_be_applied);
    tcase_add_test(tc, an_oom_callback_applies_a_fix);
    tcase_add_test(tc, knobs_can_be_gone_through);
    tcase_add_test(tc, has_asks_without_raising);
    tcase_add_test(tc, one_seed_gives_the_same_numbers_everywhere);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
