// SPDX-License-Identifier: Apache-2.0
// A training goes on from one hr.run to the next; what was saved is loaded under the name that it was given.
#include "lua/recipe_run.h"

#define SMALL "hr.preset 'small.yaml'\n"

// Two runs are one longer run, to the bit; and knobs that are turned between them are those of one turned on the way.
START_TEST(two_runs_are_one)
{
    recipe_expect_fine_small(
        SMALL "local whole = hr.run{steps = 8}\n"
              "hr.run{steps = 3, fresh = true}\n"
              "local parts = hr.run{steps = 5}\n"
              "assert(parts.train.weights_sha256 == whole.train.weights_sha256)\n"
              "assert(parts.train.steps == 8 and parts.train.loss_first == whole.train.loss_first)\n"
              "assert(parts.memory.peak_in_use_bytes == whole.memory.peak_in_use_bytes)\n"
              "local h = hr.on('step', function(s)\n"
              "  if s.step == 4 then hr.knobs.batch.size = 6 hr.knobs.optimizer.kind = 'sgd' end\n"
              "end)\n"
              "local turned = hr.run{steps = 8, fresh = true}\n"
              "h:off()\n"
              "hr.knobs.batch.size = 2 hr.knobs.optimizer.kind = 'adam'\n"
              "hr.run{steps = 4, fresh = true}\n"
              "local between = hr.run{steps = 4, batch = {size = 6}, optimizer = {kind = 'sgd'}}\n"
              "assert(between.train.weights_sha256 == turned.train.weights_sha256)\n"
              "assert(hr.knobs.batch.size == 2 and hr.knobs.optimizer.kind == 'adam')\n");
}
END_TEST

START_TEST(what_would_lose_the_weights_is_refused_with_what_to_try)
{
    recipe_check(
        "hr.preset 'gpt2_124m_tiny'\nhr.knobs.device.kind = 'cpu'\nhr.run{steps = 1, batch = {size = 1}}\n"
        "hr.run{steps = 1, compress = {lora = 'none', low_rank = 'ratio:0.5'}}\n",
        &test_limits, 1, "hr.run{fresh = true, …} begins anew with it");
}
END_TEST

// Of two knobs that are legal only together one is refused before the other.
START_TEST(knobs_that_are_legal_together_are_turned_together)
{
    recipe_expect_fine_small(
        SMALL "hr.run{steps = 1}\n"
              "hr.run{steps = 1, precision = {policy = 'mixed_float16', loss_scale = 'dynamic'}}\n"
              "hr.run{steps = 1, precision = {policy = 'float32', loss_scale = 'none'}}\n"
              "assert(hr.run{steps = 1}.train.steps == 4)\n");
}
END_TEST

START_TEST(out_of_memory_keeps_the_weights)
{
    recipe_expect_fine_small(
        SMALL "hr.run{steps = 3}\n"
              "local r = hr.run{steps = 3, batch = {size = 4096}, until_oom = true}\n"
              "assert(not r.fits)\n"
              "local ok = pcall(hr.run, {steps = 3, batch = {size = 4096}})\n"
              "assert(not ok)\n"
              "local last = hr.run{steps = 2}\n"
              "assert(last.train.steps == 5)\n"
              "assert(hr.run{steps = 5, fresh = true}.train.weights_sha256 == last.train.weights_sha256)\n");
}
END_TEST

START_TEST(what_was_saved_is_loaded_under_its_name)
{
    recipe_expect_fine_small(
        SMALL "hr.run{steps = 3}\n"
              "assert(hr.save('three.safetensors') == 'headroom-out/three.safetensors')\n"
              "local six = hr.run{steps = 3}.train.weights_sha256\n"
              "for _, path in ipairs{'three.safetensors', 'headroom-out/three.safetensors'} do\n"
              "  hr.load(path)\n"
              "  local r = hr.run{steps = 3}\n"
              "  assert(r.train.steps == 6 and r.train.weights_sha256 == six)\n"
              "end\n"
              "assert(hr.run{steps = 3}.train.steps == 9)\n"
              "hr.load('three.safetensors')\n"
              "local r = hr.run{steps = 6, fresh = true}\n"
              "assert(r.train.steps == 6 and r.train.weights_sha256 == six)\n"
              "assert(hr.knobs.train.resume == '')\n");
}
END_TEST

START_TEST(what_cannot_be_loaded_leaves_the_training)
{
    recipe_expect_fine_small(SMALL "hr.run{steps = 3}\n"
                                   "local ok, e = pcall(hr.load, 'no.safetensors')\n"
                                   "assert(not ok and e:find('no.safetensors', 1, true), e)\n"
                                   "assert(not pcall(hr.load, 'recipe.lua'))\n"
                                   "assert(hr.run{steps = 1}.train.steps == 4)\n");
}
END_TEST

START_TEST(a_run_that_is_refused_forgets_no_save)
{
    recipe_expect_fine_small(
        SMALL "hr.run{steps = 3}\n"
              "hr.save('three.safetensors')\n"
              "hr.load('three.safetensors')\n"
              "assert(not pcall(hr.run, {fresh = true, stesp = 1}))\n"
              "assert(not pcall(hr.run, {fresh = true, steps = 0}))\n"
              "assert(hr.run{steps = 1}.train.steps == 4)\n"
              "local resume = 'three.safetensors'\n"
              "assert(hr.run{fresh = true, steps = 1, train = {resume = resume}}.train.steps == 4)\n"
              "assert(hr.knobs.train.resume == '')\n");
}
END_TEST

START_TEST(a_callback_saves_and_goes_back)
{
    recipe_expect_fine_small(
        SMALL "local back = false\n"
              "hr.on('step', function(s)\n"
              "  if s.step == 2 then hr.save('two') end\n"
              "  if s.step == 5 and not back then back = true hr.load('two') end\n"
              "end)\n"
              "local r = hr.run{steps = 6}\n"
              "assert(back and r.train.steps == 6)\n"
              "hr.on('step', nil)\n"
              "assert(hr.run{steps = 6, fresh = true}.train.weights_sha256 == r.train.weights_sha256)\n");
}
END_TEST

START_TEST(only_what_lies_below_is_written_and_read)
{
    recipe_check_small(SMALL "hr.run{steps = 1}\nhr.save('../x')\n", 3, "a recipe may not use '../x'");
    recipe_check_small(SMALL "hr.run{steps = 1}\nhr.save('/tmp/x')\n", 3, "a recipe may not use '/tmp/x'");
    recipe_check_small(SMALL "hr.load('/etc/passwd')\n", 3, "a recipe may not use '/etc/passwd'");
    recipe_check_small(SMALL "hr.save('x')\n", 3, "there is no training to save before a run");
    recipe_check_small(SMALL "hr.load('no.safetensors')\nhr.run{steps = 1}\n", 5, "no.safetensors");
}
END_TEST

// An evaluation leaves the training as it was, in a run and between two.
START_TEST(an_evaluation_changes_nothing)
{
    recipe_expect_fine_small(SMALL
                             "hr.knobs.batch.size = 500\n"
                             "hr.knobs.device.vram = '64MiB'\n"
                             "local plain = hr.run{steps = 4}\n"
                             "hr.run{steps = 2, fresh = true}\n"
                             "local e = hr.eval()\n"
                             "assert(e.samples > 0 and e.eval_loss > 0 and e.eval_accuracy >= 0)\n"
                             "local again = hr.eval()\n"
                             "assert(again.eval_loss == e.eval_loss)\n"
                             "local r = hr.run{steps = 2}\n"
                             "assert(r.train.weights_sha256 == plain.train.weights_sha256)\n"
                             "assert(r.memory.peak_in_use_bytes == plain.memory.peak_in_use_bytes)\n"
                             "local told, within = 0\n"
                             "hr.on('evaluation', function() told = told + 1 end)\n"
                             "hr.on('step', function(s) if s.step == 2 then within = hr.eval() end end)\n"
                             "r = hr.run{steps = 4, fresh = true}\n"
                             "assert(within.eval_loss == e.eval_loss and told == 1)\n"
                             "assert(r.train.weights_sha256 == plain.train.weights_sha256)\n"
                             "hr.save('four')\n"
                             "hr.on('step', nil)\n"
                             "hr.load('four')\n"
                             "assert(hr.eval().eval_loss < e.eval_loss and told == 2)\n"
                             "assert(hr.run{steps = 1}.train.steps == 5)\n");
    recipe_check_small(SMALL "hr.knobs.device.kind = 'plan'\nhr.eval()\n", 1,
                       "recipe.lua:3: a plan computes nothing that could be evaluated");
}
END_TEST

// A recipe's own __index runs as the options are read, and may call whatever a recipe may.
START_TEST(options_that_plan_themselves_are_read_first)
{
    recipe_expect_fine(
        "hr.preset 'demo' hr.knobs.device.kind = 'plan'\n"
        "local refused = {optimizer = {fused_backward = true}, batch = {accumulate = 4}}\n"
        "local steps = {__index = function(_, k)\n"
        "  assert(k ~= 'steps' or not pcall(hr.plan, refused))\n"
        "end}\n"
        "assert(hr.plan(setmetatable({}, steps)).fits)\n"
        "assert(hr.run(setmetatable({until_oom = false, fresh = true, steps = 2}, steps)).fits)\n");
}
END_TEST

START_TEST(another_preset_is_another_training)
{
    recipe_expect_fine_small(SMALL "hr.run{steps = 3}\n" SMALL
                                   "assert(hr.run{steps = 2}.train.steps == 2)\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_training");
    TCase *tc = tcase_create("training");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, two_runs_are_one);
    tcase_add_test(tc, what_would_lose_the_weights_is_refused_with_what_to_try);
    tcase_add_test(tc, knobs_that_are_legal_together_are_turned_together);
    tcase_add_test(tc, out_of_memory_keeps_the_weights);
    tcase_add_test(tc, what_was_saved_is_loaded_under_its_name);
    tcase_add_test(tc, what_cannot_be_loaded_leaves_the_training);
    tcase_add_test(tc, a_run_that_is_refused_forgets_no_save);
    tcase_add_test(tc, a_callback_saves_and_goes_back);
    tcase_add_test(tc, only_what_lies_below_is_written_and_read);
    tcase_add_test(tc, an_evaluation_changes_nothing);
    tcase_add_test(tc, options_that_plan_themselves_are_read_first);
    tcase_add_test(tc, another_preset_is_another_training);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
