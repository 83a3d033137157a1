// SPDX-License-Identifier: Apache-2.0
// What hr does: every row of the registration table has an example that runs; knobs are read and turned; plans and
// runs give the report's fields; callbacks come between two steps and change the program.
#include <ctype.h>
#include <stdbool.h>

#include "app/lua/api.h"
#include "lua/recipe_run.h"

#define PLAN "hr.preset 'demo'\nhr.knobs.device.kind = 'plan'\n"

// ---- the table --------------------------------------------------------------------------------------------------------

START_TEST(every_name_has_an_example_that_runs)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    ck_assert_uint_gt(count, 0);
    for (size_t k = 0; k < count; k++) {
        ck_assert_msg(strstr(rows[k].example, rows[k].name) != NULL, "%s", rows[k].name);
        recipe_run r = recipe_run_text(rows[k].example, &test_limits);
        ck_assert_msg(r.code == 0, "%s\n%s", rows[k].example, r.notes);
        recipe_drop(&r);
    }
}
END_TEST

START_TEST(every_row_says_what_it_is_in_one_line)
{
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    for (size_t k = 0; k < count; k++) {
        ck_assert_msg(rows[k].line[0] != '\0' && strchr(rows[k].line, '\n') == NULL, "%s", rows[k].name);
        ck_assert_ptr_nonnull(rows[k].result);
        ck_assert(rows[k].function != NULL);
        ck_assert_msg(k == 0 || strcmp(rows[k - 1].name, rows[k].name) < 0, "%s is out of order",
                      rows[k].name);
    }
}
END_TEST

static char *said_by(void (*say)(FILE *to))
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(to);
    say(to);
    (void)fclose(to);
    return text;
}

START_TEST(the_reference_and_the_stub_have_every_name_option_and_knob)
{
    char *page = said_by(lua_script_print_reference), *stub = said_by(lua_script_print_stub);
    char line[256];
    size_t count = 0;
    const script_api_row *rows = script_api_rows(&count);
    for (size_t k = 0; k < count; k++) {
        (void)snprintf(line, sizeof line, "\n### hr.%s", rows[k].name);
        ck_assert_msg(strstr(page, line) != NULL && strstr(page, rows[k].example) != NULL, "%s",
                      rows[k].name);
        (void)snprintf(line, sizeof line, "%s hr.%s", rows[k].arguments != NULL ? "function" : "",
                       rows[k].name);
        ck_assert_msg(strstr(stub, line + (line[0] == ' ')) != NULL, "%s", line);
        ck_assert((rows[k].arguments == NULL) == (rows[k].parameters == NULL));
        for (const lua_script_field *f = rows[k].options; f != NULL && f->name != NULL; f++) {
            (void)snprintf(line, sizeof line, "\n| `%s` | ", f->name);
            ck_assert_msg(strstr(page, line) != NULL, "%s", line);
            (void)snprintf(line, sizeof line, "\n---@field %s? %s ", f->name, f->type);
            ck_assert_msg(strstr(stub, line) != NULL, "%s", line);
        }
    }
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        (void)snprintf(line, sizeof line, "\n---@field %s ", strchr(hr_knob_rows(NULL)[k].key, '.') + 1);
        ck_assert_msg(strstr(stub, line) != NULL, "%s", line);
    }
    recipe_expect_fine(stub);
    free(page);
    free(stub);
}
END_TEST

// ---- hr.bytes ---------------------------------------------------------------------------------------------------------

START_TEST(sizes_compare_add_and_print)
{
    recipe_expect_fine(
        "local b = hr.bytes\n"
        "local gib = b('1GiB')\n"
        "assert(gib.bytes == 1 << 30 and b(4096).bytes == 4096 and b(gib) == gib and b('0').bytes == 0)\n"
        "assert(gib < '2GiB' and gib <= '1GiB' and gib > '1023MiB' and '2GiB' > gib and not (gib < 1 << "
        "30))\n"
        "assert(gib < b('2GiB') and gib < 1e12 and 5 < gib and gib >= 1)\n"
        "assert(gib + '1GiB' == b('2GiB') and '1GiB' + gib == 2 * gib and gib + 1 > gib and 1 + gib == gib + "
        "1)\n"
        "assert(gib - '512MiB' == gib / 2 and gib / '512MiB' == 2.0 and gib * 0.5 == b('512MiB'))\n"
        "assert((b(1) - 2).bytes == -1 and tostring(b(1) - 1025) == '-1.00 KiB' and -b(3) == b(0) - 3)\n"
        "assert(tostring(b('1536MiB')) == '1.50 GiB' and 'x' .. gib .. 'y' == 'x1.00 GiBy')\n"
        "assert(('%s'):format(gib) == '1.00 GiB' and gib ~= 1 << 30)\n"
        "for _, wrong in ipairs{'x', '1.5', '3XiB', '-1', 1.5, true, {}, '8388608TiB'} do\n"
        "  assert(not pcall(b, wrong), tostring(wrong))\n"
        "end\n"
        "assert(not pcall(b) and not pcall(b, nil))\n"
        "assert(not pcall(function() return gib + 'x' end) and not pcall(function() return gib < {} end))\n"
        "assert(not pcall(function() return gib * '2' end) and not pcall(function() return gib * gib end))\n"
        "assert(not pcall(function() return b(math.maxinteger) + 1 end))\n"
        "assert(not pcall(function() return b(math.maxinteger) * 2 end))\n"
        "assert(not pcall(function() return gib / 0 end) and not pcall(function() return gib.mib end))\n"
        "assert(not pcall(function() return b(math.mininteger) * -1 end))\n"
        "assert(not pcall(function() return -b(math.mininteger) end))\n"
        "assert(tostring(b(math.mininteger)):sub(1, 1) == '-')\n");
}
END_TEST

// ---- knobs ------------------------------------------------------------------------------------------------------------

START_TEST(knobs_are_read_and_turned)
{
    recipe_expect_fine(
        "hr.preset 'demo'\n"
        "local k = hr.knobs\n"
        "assert(k.batch.size == 128 and k.device.kind == 'cpu' and k.device.vram == hr.bytes('64MiB'))\n"
        "assert(k.allocator.growth == false and k.optimizer.learning_rate == 0.001)\n"
        "assert(k.workspace.limit == nil and k.train.save == '')\n"
        "k.batch.size = 64 assert(k.batch.size == 64)\n"
        "k.batch.size = '32' assert(k.batch.size == 32)\n"
        "k.batch.size = 16.0 assert(k.batch.size == 16)\n"
        "k.allocator.growth = true assert(k.allocator.growth)\n"
        "k.allocator.growth = 'off' assert(not k.allocator.growth)\n"
        "k.device.vram = hr.bytes('48MiB') + 1024 assert(k.device.vram.bytes == 48 * 1024 ^ 2 + 1024)\n"
        "k.device.vram = 1 << 26 assert(k.device.vram == hr.bytes('64MiB'))\n"
        "k.workspace.limit = '1MiB' k.workspace.limit = nil assert(k.workspace.limit == nil)\n"
        "k.optimizer.learning_rate = 0.1 assert(k.optimizer.learning_rate == 0.1)\n"
        "k['batch.size'] = 8 assert(k['batch.size'] == 8)\n"
        "k.batch = {size = 4, remainder = 'keep'} assert(k.batch.size == 4)\n"
        "assert(k.batch.remainder == 'keep')\n"
        "hr.preset 'mlp' assert(k.batch.size ~= 4)\n");
}
END_TEST

static const char *const wrong_knobs[] = {
    "hr.knobs.batch.size = 0",
    "hr.knobs.batch.size = 1.5",
    "hr.knobs.batch.size = {}",
    "hr.knobs.batch.size = nil",
    "hr.knobs.batch.size = true",
    "hr.knobs.batch.size = 'many'",
    "hr.knobs.batch.size = 0/0",
    "hr.knobs.device.vram = hr.bytes(0) - 1",
    "hr.knobs.device.kind = 'abacus'",
    "hr.knobs.device.kind = 'cpu\\0plan'",
    "hr.knobs.train.save = ('x'):rep(1000)",
    "hr.knobs.batch = 64",
    "hr.knobs.batch = {64}",
    "hr.knobs.batch = {siez = 64}",
    "hr.knobs[1] = {}",
    "local x = hr.knobs.batch[{}]",
    "hr.plan{batch = 64}",
    "hr.plan{size = 64}",
    "hr.plan{['batch.siez'] = 64}",
    "hr.plan{3}",
    "hr.plan(3)",
    "hr.plan{steps = 0}",
    "hr.plan{steps = 1.5}",
    "hr.plan{steps = 'three'}",
    "hr.plan{until_oom = true}",
    "hr.run{steps = -1}",
    "hr.run{train = {steps = 0}}",
    "hr.on('setp', print)",
    "hr.on('step', 3)",
    "hr.on('step')",
    "hr.preset()",
    "hr.preset('no such preset')",
    "hr.note()",
    "hr.expect()",
    "hr.stop()",
};

START_TEST(what_is_wrong_is_refused_and_changes_nothing)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "hr.preset 'demo'\n"
                   "assert(not pcall(function() %s end), 'was taken')\n"
                   "assert(hr.knobs.batch.size == 128 and hr.knobs.device.kind == 'cpu')\n"
                   "assert(hr.knobs.device.vram == hr.bytes('64MiB') and hr.knobs.train.save == '')\n",
                   wrong_knobs[_i]);
    if (strstr(wrong_knobs[_i], "hr.expect") != NULL) {
        recipe_expect_failure("hr.expect()", 3, "bad argument #1 to 'expect'");
    } else {
        recipe_expect_fine(text);
    }
}
END_TEST

START_TEST(nothing_can_be_asked_before_a_preset)
{
    recipe_expect_failure("hr.plan()", 3, "try: hr.preset \"demo\" above this line");
    recipe_expect_failure("hr.run{steps = 1}", 3, "there is no model before a preset");
    recipe_expect_failure("local x = hr.knobs.batch.size", 3, "there are no knobs before a preset");
    recipe_expect_failure("hr.knobs.batch.size = 1", 3, "there are no knobs before a preset");
}
END_TEST

// ---- plans and runs ---------------------------------------------------------------------------------------------------

START_TEST(a_result_has_the_fields_of_the_report)
{
    recipe_expect_fine(
        PLAN "local r = hr.plan{steps = 3}\n"
             "assert(r.fits and r.oom == nil and r.preset == 'demo' and r.device.kind == 'plan')\n"
             "assert(r.model.parameters == 695493 and #r.model.layers > 0 and r.device.card == nil)\n"
             "assert(r.model.layers[1].name == 'separable_conv2d' and r.model.layers[1].parameters == 155)\n"
             "local m = r.memory\n"
             "assert(m.limit_bytes == hr.bytes('64MiB') and m.peak_requested_bytes <= m.peak_in_use_bytes)\n"
             "assert(m.peak_in_use_bytes <= m.peak_pool_bytes and m.peak_pool_bytes <= m.limit_bytes)\n"
             "assert(m.waste_bytes == m.peak_in_use_bytes - m.at_peak.by_category.weights * 0 - (function()\n"
             "  local sum = hr.bytes(0) for _, b in pairs(m.at_peak.by_category) do sum = sum + b end return "
             "sum end)())\n"
             "assert(m.saved_for_backward_bytes.bytes == 232320 * 128 and #m.heap_hash == 16)\n"
             "assert(m.at_peak.phase and m.at_peak.name and m.at_peak.tensors[1].bytes >= "
             "m.at_peak.tensors[2].bytes)\n"
             "assert(r.step.instructions > 0 and r.step.flops > 0 and r.train.steps == 3 and "
             "r.train.loss_last == nil)\n"
             "assert(r.evaluation.peak_in_use_bytes == nil and r.driver.process_bytes == nil)\n"
             "assert(r.transfer.h2d_bytes_per_step > 0 and type(r.host.stages) == 'table')\n");
}
END_TEST

START_TEST(overrides_hold_for_one_call)
{
    recipe_expect_fine(PLAN
                       "local small = hr.plan{batch = {size = 8}}.memory.peak_in_use_bytes\n"
                       "assert(small == hr.plan{['batch.size'] = 8}.memory.peak_in_use_bytes)\n"
                       "assert(small < hr.plan().memory.peak_in_use_bytes and hr.knobs.batch.size == 128)\n"
                       "local r = hr.run{steps = 2, batch = {size = 8}}\n"
                       "assert(r.memory.peak_in_use_bytes == small and hr.knobs.batch.size == 128)\n");
}
END_TEST

START_TEST(a_plan_that_does_not_fit_says_why)
{
    recipe_expect_fine(
        PLAN "local r = hr.plan{batch = {size = 256}}\n"
             "assert(not r.fits and r.oom.cause == 'capacity' and r.memory.peak_in_use_bytes == nil)\n"
             "assert(r.oom.requested_bytes > r.oom.largest_free_bytes and r.oom.tensor and r.oom.try)\n"
             "assert(r.oom.limit_bytes == r.memory.limit_bytes and r.oom.by_category.weights > 0)\n");
}
END_TEST

START_TEST(every_fix_is_a_list_of_pairs_that_fits)
{
    recipe_expect_fine(PLAN "local r = hr.plan{batch = {size = 256}}\n"
                            "assert(#r.oom.fixes >= 1 and #r.oom.fixes <= 3)\n"
                            "for _, fix in ipairs(r.oom.fixes) do\n"
                            "  local knobs = {batch = {size = 256}}\n"
                            "  for _, pair in ipairs(fix.knobs) do\n"
                            "    local key, value = pair:match('^([%w_.]+)=(.+)$')\n"
                            "    if key == 'batch.size' then knobs.batch = nil end\n"
                            "    knobs[key] = value\n"
                            "  end\n"
                            "  local planned = hr.plan(knobs)\n"
                            "  assert(planned.fits and planned.memory.peak_in_use_bytes == fix.peak_bytes)\n"
                            "  assert(planned.step.seconds == fix.seconds)\n"
                            "end\n");
}
END_TEST

START_TEST(what_to_try_is_said_as_the_recipe_would_say_it)
{
    recipe_run r = recipe_run_text(PLAN "hr.run{steps = 2, batch = {size = 256}}", &test_limits);
    const char *words = strstr(r.notes, "\n  try: hr.knobs.");
    ck_assert_msg(words != NULL && strstr(words, " = \"") != NULL && strstr(words, "-s ") == NULL, "%s",
                  r.notes);
    ck_assert_ptr_nonnull(strstr(words, "; hr.knobs."));
    ck_assert_ptr_nonnull(strstr(words, ", or hr.knobs.batch.size = 128; hr.knobs.batch.accumulate = 2\n"));
    recipe_drop(&r);
}
END_TEST

START_TEST(a_run_is_what_the_plan_said)
{
    recipe_expect_fine(PLAN "for _, mode in ipairs{'eager', 'graph'} do\n"
                            "  hr.knobs.execution.mode = mode\n"
                            "  local plan, run = hr.plan(), hr.run{steps = 3, fresh = true}\n"
                            "  for name, value in pairs(plan.memory) do\n"
                            "    assert(type(value) == 'table' or value == run.memory[name], name)\n"
                            "  end\n"
                            "  assert(run.train.steps == 3)\n"
                            "end\n");
}
END_TEST

START_TEST(out_of_memory_ends_a_run_as_asked)
{
    recipe_expect_failure(PLAN "hr.run{steps = 3, batch = {size = 256}}", 1,
                          "recipe.lua:3: capacity: the step asks for 102.5 MiB");
    recipe_expect_fine(PLAN "local r = hr.run{until_oom = true, batch = {size = 256}}\n"
                            "assert(not r.fits and r.oom.cause == 'capacity' and r.train.steps == 0)\n"
                            "hr.on('step', function(s) hr.knobs.batch.size = hr.knobs.batch.size + 8 end)\n"
                            "local r = hr.run{until_oom = true}\n"
                            "assert(not r.fits and r.train.steps == 2 and hr.knobs.batch.size == 144)\n");
}
END_TEST

// ---- callbacks --------------------------------------------------------------------------------------------------------

START_TEST(a_knob_turned_in_a_step_callback_holds_from_the_next_step)
{
    recipe_expect_fine(
        PLAN "local samples, peaks = {}, {}\n"
             "hr.on('step', function(s)\n"
             "  assert(s.step == #samples + 1 and s.loss == nil and s.seconds >= 0)\n"
             "  samples[s.step], peaks[s.step] = s.samples, s.peak_in_use_bytes\n"
             "  assert(s.floor_in_use_bytes <= s.peak_in_use_bytes)\n"
             "  if s.step == 2 then hr.knobs.batch.size = 64 assert(hr.knobs.batch.size == 64) end\n"
             "  if s.step == 4 then hr.knobs.optimizer.kind = 'sgd' end\n"
             "end)\n"
             "local r = hr.run{steps = 6}\n"
             "assert(table.concat(samples, ' ') == '128 128 64 64 64 64')\n"
             "assert(peaks[1] == peaks[2] and peaks[2] > peaks[3] and peaks[3] == peaks[4])\n"
             "assert(peaks[4] > peaks[5] and r.train.steps == 6 and hr.knobs.optimizer.kind == 'sgd')\n"
             "assert(r.memory.peak_in_use_bytes == hr.plan().memory.peak_in_use_bytes)\n");
}
END_TEST

START_TEST(an_oom_callback_turns_a_knob_and_the_run_goes_on)
{
    recipe_expect_fine(PLAN
                       "local seen = {}\n"
                       "hr.on('step', function(s) if s.step == 2 then hr.knobs.batch.size = 512 end end)\n"
                       "hr.on('oom', function(o)\n"
                       "  seen[#seen + 1] = hr.knobs.batch.size\n"
                       "  assert(o.cause == 'capacity' and o.requested_bytes > o.largest_free_bytes)\n"
                       "  hr.knobs.batch.size = hr.knobs.batch.size // 2\n"
                       "  return true\n"
                       "end)\n"
                       "local r = hr.run{steps = 5}\n"
                       "assert(r.fits and r.train.steps == 5 and table.concat(seen, ' ') == '512 256')\n"
                       "assert(hr.knobs.batch.size == 128)\n");
}
END_TEST

START_TEST(an_oom_callback_must_turn_something_to_go_on)
{
    recipe_expect_failure(PLAN "hr.on('oom', function() return true end)\n"
                               "hr.run{steps = 3, batch = {size = 256}}\n",
                          3, "recipe.lua:4: an oom callback returned true but turned no knob");
    recipe_expect_failure(PLAN "hr.on('oom', function() hr.knobs.batch.size = 8 end)\n"
                               "hr.run{steps = 3, batch = {size = 256}}\n",
                          1, "capacity");
}
END_TEST

START_TEST(callbacks_add_up_and_can_be_taken_away)
{
    recipe_expect_fine(PLAN "local calls = ''\n"
                            "hr.on('step', function() calls = calls .. 'a' end)\n"
                            "hr.on('step', function() calls = calls .. 'b' end)\n"
                            "hr.run{steps = 2} assert(calls == 'abab')\n"
                            "hr.on('step', nil)\n"
                            "hr.run{steps = 2} assert(calls == 'abab')\n");
}
END_TEST

START_TEST(a_run_within_a_run_is_refused_and_a_plan_is_not)
{
    recipe_expect_fine(PLAN "local checked = false\n"
                            "hr.on('step', function(s)\n"
                            "  assert(not pcall(hr.run, {steps = 1}) and not pcall(hr.preset, 'mlp'))\n"
                            "  assert(hr.plan().memory.peak_in_use_bytes == s.peak_in_use_bytes)\n"
                            "  checked = true\n"
                            "end)\n"
                            "hr.run{steps = 1} assert(checked)\n");
}
END_TEST

START_TEST(after_a_failed_callback_the_next_run_is_whole)
{
    recipe_expect_fine(PLAN "hr.on('step', function() error({'mine'}) end)\n"
                            "local ok, e = pcall(hr.run, {steps = 3})\n"
                            "assert(not ok and e[1] == 'mine')\n"
                            "hr.on('step', nil)\n"
                            "hr.knobs.batch.size = 16\n"
                            "assert(hr.knobs.batch.size == 16 and hr.run{steps = 3}.train.steps == 4)\n"
                            "local co = coroutine.wrap(function() return hr.run{steps = 2}.train.steps end)\n"
                            "assert(co() == 6)\n");
}
END_TEST

START_TEST(a_run_that_computes_has_losses_and_a_hash)
{
    recipe_expect_fine_small(
        "hr.preset 'small.yaml'\n"
        "local losses = {}\n"
        "hr.on('step', function(s) losses[s.step] = s.loss assert(s.seconds > 0) end)\n"
        "local r = hr.run{steps = 8}\n"
        "assert(#losses == 8 and losses[1] == r.train.loss_first and losses[8] == r.train.loss_last)\n"
        "assert(#r.train.weights_sha256 == 64 and r.train.data == 'generated')\n"
        "assert(r.step.seconds_source == 'measured' and #r.host.stages > 0)\n"
        "hr.on('step', nil)\n"
        "assert(hr.run{steps = 8, fresh = true}.train.weights_sha256 == r.train.weights_sha256)\n"
        "hr.on('step', function(s) if s.step == 4 then hr.knobs.batch.size = 4 end end)\n"
        "local turned = hr.run{steps = 8, fresh = true}\n"
        "assert(turned.train.weights_sha256 ~= r.train.weights_sha256 and turned.train.steps == 8)\n"
        "assert(turned.train.loss_first == r.train.loss_first)\n");
}
END_TEST

START_TEST(an_epoch_callback_comes_with_its_evaluation)
{
    recipe_expect_fine_small(
        "hr.preset 'small.yaml'\n"
        "local epochs = {}\n"
        "hr.on('epoch', function(e) epochs[#epochs + 1] = e hr.stop() end)\n"
        "local r = hr.run{steps = 1000000, batch = {size = 500}, device = {vram = '64MiB'}}\n"
        "assert(#epochs == 1 and epochs[1].step == r.train.steps and epochs[1].loss == r.train.loss_last)\n"
        "assert(epochs[1].eval_accuracy == r.train.eval_accuracy and epochs[1].eval_loss > 0)\n"
        "assert(r.evaluation.peak_in_use_bytes > 0 and epochs[1].epoch == 1)\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_api");
    TCase *tc = tcase_create("api");
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, every_name_has_an_example_that_runs);
    tcase_add_test(tc, every_row_says_what_it_is_in_one_line);
    tcase_add_test(tc, the_reference_and_the_stub_have_every_name_option_and_knob);
    tcase_add_test(tc, sizes_compare_add_and_print);
    tcase_add_test(tc, knobs_are_read_and_turned);
    tcase_add_loop_test(tc, what_is_wrong_is_refused_and_changes_nothing, 0,
                        (int)(sizeof wrong_knobs / sizeof *wrong_knobs));
    tcase_add_test(tc, nothing_can_be_asked_before_a_preset);
    tcase_add_test(tc, a_result_has_the_fields_of_the_report);
    tcase_add_test(tc, overrides_hold_for_one_call);
    tcase_add_test(tc, what_to_try_is_said_as_the_recipe_would_say_it);
    tcase_add_test(tc, every_fix_is_a_list_of_pairs_that_fits);
    tcase_add_test(tc, a_plan_that_does_not_fit_says_why);
    tcase_add_test(tc, a_run_is_what_the_plan_said);
    tcase_add_test(tc, out_of_memory_ends_a_run_as_asked);
    tcase_add_test(tc, a_knob_turned_in_a_step_callback_holds_from_the_next_step);
    tcase_add_test(tc, an_oom_callback_turns_a_knob_and_the_run_goes_on);
    tcase_add_test(tc, an_oom_callback_must_turn_something_to_go_on);
    tcase_add_test(tc, callbacks_add_up_and_can_be_taken_away);
    tcase_add_test(tc, a_run_within_a_run_is_refused_and_a_plan_is_not);
    tcase_add_test(tc, after_a_failed_callback_the_next_run_is_whole);
    tcase_add_test(tc, a_run_that_computes_has_losses_and_a_hash);
    tcase_add_test(tc, an_epoch_callback_comes_with_its_evaluation);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
