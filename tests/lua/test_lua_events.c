// SPDX-License-Identifier: Apache-2.0
// hr.on: which events come, in which order, with which fields; handlers come and go one by one.
#include "app/lua/events.h"
#include "lua/recipe_run.h"

#define PLAN  "hr.preset 'demo'\nhr.knobs.device.kind = 'plan'\n"
#define SMALL "hr.preset 'small.yaml'\n"
#define LOG                                                                                                  \
    "local log = {}\n"                                                                                       \
    "local function take(name) return hr.on(name, function(e) log[#log + 1] = name .. ' ' .. (e.step or "    \
    "'-') end) end\n"

START_TEST(events_come_in_the_order_of_a_training)
{
    recipe_expect_fine(
        PLAN LOG
        "for _, name in ipairs{'train_begin', 'rebuild', 'epoch_begin', 'step_begin', 'before_update',\n"
        "                      'step', 'train_end'} do take(name) end\n"
        "hr.run{steps = 2}\n"
        "assert(table.concat(log, ', ') == 'train_begin 0, rebuild 0, epoch_begin 0, step_begin 1, ' ..\n"
        "  'before_update 1, step 1, step_begin 2, before_update 2, step 2, train_end 2',\n"
        "  table.concat(log, ', '))\n"
        "log = {}\n"
        "hr.run{steps = 1}\n"
        "assert(table.concat(log, ', ') == 'train_begin 2, step_begin 3, before_update 3, step 3, ' ..\n"
        "  'train_end 3', table.concat(log, ', '))\n");
}
END_TEST

START_TEST(an_epoch_ends_with_its_evaluation_and_another_begins)
{
    recipe_expect_fine_small(
        SMALL LOG "for _, name in ipairs{'epoch_begin', 'epoch', 'evaluation', 'save'} do take(name) end\n"
                  "local loss\n"
                  "hr.on('evaluation', function(e) loss = e.eval_loss assert(e.samples > 0) end)\n"
                  "hr.on('epoch', function(e)\n"
                  "  assert(e.epoch == 1 and e.eval_loss == loss and e.steps_per_epoch == e.step)\n"
                  "  hr.stop()\n"
                  "end)\n"
                  "local r = hr.run{steps = 1000, batch = {size = 500}, device = {vram = '64MiB'},\n"
                  "                 train = {save = 'all.safetensors'}}\n"
                  "local n = r.train.steps\n"
                  "assert(table.concat(log, ', ') == ('epoch_begin 0, evaluation %d, epoch %d, save %d')\n"
                  "  :format(n, n, n), table.concat(log, ', '))\n"
                  "log = {}\n"
                  "hr.run{steps = 1, batch = {size = 500}, device = {vram = '64MiB'}}\n"
                  "assert(log[1] == 'epoch_begin ' .. n, log[1])\n");
}
END_TEST

START_TEST(a_run_of_epochs_ends_with_them)
{
    recipe_expect_fine_small(
        SMALL "hr.knobs.batch.size = 500\nhr.knobs.device.vram = '64MiB'\n"
              "local ended, per = 0\n"
              "hr.on('epoch', function(e) ended = e.epoch per = e.steps_per_epoch assert(e.eval_loss) end)\n"
              "local r = hr.run{epochs = 2}\n"
              "assert(ended == 2 and r.train.steps == 2 * per, r.train.steps)\n"
              "hr.run{steps = 3}\n"
              "assert(hr.run{epochs = 1}.train.steps == 3 * per and ended == 3)\n"
              "assert(hr.run{epochs = 1, steps = 2}.train.steps == 3 * per + 2)\n"
              "local ok, e = pcall(hr.run, {epochs = 0})\n"
              "assert(e:find('epochs needs a whole number from 1', 1, true), e)\n"
              "ok, e = pcall(hr.run, {epochs = 1, fresh = true, device = {kind = 'plan'}})\n"
              "assert(e:find('needs data that is read, and device.kind=plan reads none', 1, true), e)\n");
}
END_TEST

// What is of the moment is there while the callback runs.
START_TEST(a_step_says_what_the_moment_is_like)
{
    recipe_expect_fine_small(
        SMALL
        "local kept\n"
        "hr.on('step', function(s)\n"
        "  kept = s\n"
        "  assert(s.learning_rate == hr.knobs.optimizer.learning_rate and s.loss_scale == nil)\n"
        "  local sum = 0\n"
        "  for name, bytes in pairs(s.by_category) do sum = sum + bytes.bytes end\n"
        "  assert(s.in_use_bytes.bytes >= sum and sum > 0 and s.pool_bytes >= s.in_use_bytes)\n"
        "  assert(s.fragmentation >= 0 and s.largest_free_bytes <= s.pool_bytes - s.in_use_bytes)\n"
        "  assert(s.by_category.weights > 0 and s.wait_seconds >= 0 and s.examples_per_second > 0)\n"
        "end)\n"
        "hr.run{steps = 2}\n"
        "assert(kept.in_use_bytes == nil and kept.by_category == nil and kept.loss and kept.step == 2)\n");
}
END_TEST

START_TEST(a_moment_ends_with_an_error_too)
{
    recipe_expect_fine_small(SMALL "local kept\n"
                                   "hr.on('step', function(s) kept = s error('enough') end)\n"
                                   "assert(not pcall(hr.run, {steps = 2}))\n"
                                   "assert(kept.step == 1 and kept.learning_rate == nil)\n"
                                   "hr.preset 'small.yaml'\n"
                                   "assert(kept.learning_rate == nil and kept.by_category == nil)\n"
                                   "hr.on('step', nil)\n"
                                   "hr.on('evaluation', function(e) kept = e error('enough') end)\n"
                                   "assert(not pcall(hr.eval))\n"
                                   "assert(kept.eval_loss and kept.in_use_bytes == nil)\n"
                                   "hr.on('evaluation', nil)\n"
                                   "hr.on('before_update', function(e) kept = e error('enough') end)\n"
                                   "assert(not pcall(hr.run, {steps = 2}))\n"
                                   "assert(kept.step == 1 and kept.in_use_bytes == nil)\n");
}
END_TEST

// Also where nobody listened as it did, and where a sweep trained others meanwhile.
START_TEST(an_epoch_begins_once)
{
    recipe_expect_fine_small(SMALL "hr.run{steps = 1}\n"
                                   "hr.on('epoch_begin', function() error('again') end)\n"
                                   "hr.run{steps = 1}\n"
                                   "hr.on('epoch_begin', nil)\n"
                                   "hr.sweep({['batch.size'] = {2}}, {steps = 1})\n"
                                   "hr.on('epoch_begin', function() error('again') end)\n"
                                   "hr.run{steps = 1}\n");
}
END_TEST

// Also a value that is none.
START_TEST(what_a_callback_raises_within_a_step_comes_out)
{
    recipe_expect_fine_small(SMALL "for _, value in ipairs{'text', 3, false, {}} do\n"
                                   "  hr.on('before_update', function() error(value, 0) end)\n"
                                   "  local ok, e = pcall(hr.run, {steps = 1})\n"
                                   "  assert(not ok and e == value, e)\n"
                                   "  hr.on('before_update', nil)\n"
                                   "end\n"
                                   "hr.on('before_update', function() error(nil) end)\n"
                                   "local ok, e = pcall(hr.run, {steps = 1})\n"
                                   "assert(not ok and e == nil)\n");
}
END_TEST

START_TEST(a_wrong_name_is_told_with_the_right_ones)
{
    recipe_expect_fine(
        PLAN
        "local ok, e = pcall(hr.on, 'setp', print)\n"
        "assert(e:find(\"recipe.lua:3: there is no event 'setp' — did you mean 'step'? There are alloc, \"\n"
        "  .. 'before_update, epoch, ', 1, true), e)\n"
        "hr.on('step', function(s)\n"
        "  local ok, e = pcall(function() return s.los end)\n"
        "  assert(e:find(\"recipe.lua:7: the event step has no field 'los' — did you mean 'loss'? \"\n"
        "    .. 'There are step, loss, samples', 1, true), e)\n"
        "  assert(s[1] == nil)\n"
        "end)\n"
        "local r = hr.run{steps = 1}\n"
        "local ok, e = pcall(function() return r.memory.peak end)\n"
        "assert(e:find(\"recipe.lua:13: no field of a result is called 'peak' here\", 1, true), e)\n"
        "assert(e:find('There are limit_bytes, peak_pool_bytes', 1, true) or\n"
        "  e:find('there are limit_bytes, peak_pool_bytes', 1, true), e)\n");
}
END_TEST

START_TEST(every_error_under_pcall_is_a_text_with_its_place)
{
    recipe_expect_fine(
        PLAN
        "for _, call in ipairs{\n"
        "  {hr.plan, 3}, {hr.run, {steps = 0}}, {hr.on, 'step', 3}, {hr.on, 'step', print, {above = 1}},\n"
        "  {hr.stop}, {hr.bytes, 'x'}, {hr.bytes}, {hr.save}, {hr.save, 'x'}, {hr.load, '../x'}, {hr.apply, "
        "{}},\n"
        "  {hr.with, {}}, {hr.preset, 'nothing'}, {hr.fit, {keep = 'x'}}, {hr.replay, 'x'}, {hr.eval},\n"
        "} do\n"
        "  local ok, e = pcall(table.unpack(call))\n"
        "  assert(not ok and type(e) == 'string' and e:find('recipe.lua:8: ', 1, true), e)\n"
        "end\n");
}
END_TEST

// File and line, three lines of source, the callers; nothing of ours between them.
START_TEST(an_error_in_a_callback_shows_its_way_there)
{
    static const char recipe[] = PLAN "hr.on('step', function(s)\n"
                                      "  hr.with({['batch.size'] = 4}, function()\n"
                                      "    local x = s.step + nil\n"
                                      "  end)\n"
                                      "end)\n"
                                      "hr.run{steps = 3}\n";
    recipe_run r = recipe_run_text(recipe, &test_limits);
    const char *lines[] = {"recipe.lua:5: attempt to perform arithmetic",
                           "\n       4 |   hr.with(",
                           "\n  >    5 |     local x = s.step + nil\n",
                           "\n       6 |   end)\n",
                           "recipe.lua:5: in the function of line 4\n",
                           "recipe.lua:4: in the function of line 3\n",
                           "recipe.lua:8: in the main chunk\n"};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        ck_assert_msg(strstr(r.notes, lines[k]) != NULL, "'%s' is not in\n%s", lines[k], r.notes);
    }
    ck_assert_ptr_null(strstr(r.notes, "[C]"));
    recipe_drop(&r);
}
END_TEST

// ---- handlers ---------------------------------------------------------------------------------------------------------

START_TEST(a_handler_is_taken_away_alone)
{
    recipe_expect_fine(PLAN "local calls = ''\n"
                            "local a = hr.on('step', function() calls = calls .. 'a' end)\n"
                            "local b = hr.on('step', function() calls = calls .. 'b' end)\n"
                            "assert(tostring(a) == 'hr.on(\"step\", …)')\n"
                            "hr.run{steps = 1}\n"
                            "a:off() a:off()\n"
                            "assert(tostring(a) == 'hr.on(\"step\", …), off')\n"
                            "hr.run{steps = 2}\n"
                            "hr.on('step', nil)\n"
                            "b:off()\n"
                            "hr.run{steps = 1}\n"
                            "assert(calls == 'abbb', calls)\n");
}
END_TEST

START_TEST(a_list_may_change_while_it_is_walked)
{
    recipe_expect_fine(PLAN "local calls, b = ''\n"
                            "local a\n"
                            "a = hr.on('step', function(s)\n"
                            "  calls = calls .. 'a'\n"
                            "  if s.step == 1 then\n"
                            "    hr.on('step', function() calls = calls .. 'c' end)\n"
                            "    b:off()\n"
                            "    a:off()\n"
                            "  end\n"
                            "end)\n"
                            "b = hr.on('step', function() calls = calls .. 'b' end)\n"
                            "hr.run{steps = 2}\n"
                            "assert(calls == 'ac', calls)\n");
}
END_TEST

START_TEST(large_allocations_are_told)
{
    recipe_expect_fine(
        PLAN "local all, large, least = 0, 0, nil\n"
             "local h = hr.on('alloc', function(a)\n"
             "  all = all + 1\n"
             "  assert(a.allocated_bytes >= a.requested_bytes and a.in_use_bytes <= a.pool_bytes)\n"
             "  assert(a.category and a.phase and a.step <= 1)\n"
             "end)\n"
             "hr.on('alloc', function(a) large = large + 1 assert(a.requested_bytes >= '1MiB') end,\n"
             "      {above = '1MiB'})\n"
             "hr.run{steps = 2}\n"
             "assert(all > large and large > 0)\n"
             "local before = large\n"
             "h:off()\n"
             "hr.run{steps = 1}\n"
             "assert(large > before)\n");
}
END_TEST

// ---- within a step, and what goes wrong -------------------------------------------------------------------------------

START_TEST(before_an_update_one_looks_and_turns_nothing)
{
    recipe_expect_fine_small(
        SMALL
        "local seen = 0\n"
        "hr.on('before_update', function(u)\n"
        "  seen = seen + 1\n"
        "  assert(u.step == seen and u.in_use_bytes > 0 and u.by_category.gradients > 0)\n"
        "  for _, call in ipairs{function() hr.knobs.batch.size = 4 end, function() hr.save('x') end, "
        "hr.eval,\n"
        "                        function() hr.load('x') end, function() hr.apply{'batch.size=4'} end} do\n"
        "    local ok, e = pcall(call)\n"
        "    assert(not ok and e:find('before_update function looks on', 1, true), e)\n"
        "  end\n"
        "end)\n"
        "local r = hr.run{steps = 3}\n"
        "assert(seen == 3)\n"
        "hr.on('before_update', nil)\n"
        "assert(hr.run{steps = 3, fresh = true}.train.weights_sha256 == r.train.weights_sha256)\n");
    recipe_check_small(SMALL
                       "hr.on('before_update', function(u)\n  if u.step == 2 then error('mine') end\nend)\n"
                       "hr.run{steps = 5}\n",
                       3, "recipe.lua:3: mine");
    recipe_check_small(SMALL "hr.on('before_update', function() error({}) end)\n"
                             "local ok, e = pcall(hr.run, {steps = 5})\n"
                             "assert(not ok and type(e) == 'table')\n"
                             "hr.on('before_update', nil)\n"
                             "assert(hr.run{steps = 2}.train.steps == 3)\n",
                       0, "");
}
END_TEST

START_TEST(a_loss_that_is_not_finite_is_told)
{
    recipe_expect_fine_small(SMALL "local first\n"
                                   "hr.on('nonfinite', function(e)\n"
                                   "  first = first or e.step\n"
                                   "  assert(e.loss ~= e.loss or e.loss == math.huge)\n"
                                   "  hr.stop()\n"
                                   "end)\n"
                                   "hr.on('step', function(s) assert(first ~= s.step or s.loss == nil) end)\n"
                                   "hr.run{steps = 20, optimizer = {kind = 'sgd', learning_rate = 1000}, "
                                   "precision = {policy = 'mixed_float16', loss_scale = '1e9'}}\n"
                                   "assert(first and first > 1)\n");
}
END_TEST

START_TEST(a_loss_scale_that_changes_is_told)
{
    recipe_expect_fine_small(
        SMALL "local scales, skipped = {}, 0\n"
              "hr.on('scale', function(e) scales[#scales + 1] = e.loss_scale end)\n"
              "hr.on('nonfinite', function(e) if e.skipped then skipped = skipped + 1 end end)\n"
              "local r = hr.run{steps = 6, precision = {policy = 'mixed_float16', loss_scale = 'dynamic'},\n"
              "                 optimizer = {kind = 'sgd', learning_rate = 0}}\n"
              "assert(#scales >= 1 and skipped == r.train.skipped_steps, skipped)\n");
}
END_TEST

START_TEST(the_reference_and_the_stub_have_every_event_and_field)
{
    char *page = NULL, *stub = NULL, line[160];
    size_t length = 0;
    FILE *to = open_memstream(&page, &length);
    lua_script_print_reference(to);
    (void)fclose(to);
    to = open_memstream(&stub, &length);
    lua_script_print_stub(to);
    (void)fclose(to);
    for (int k = 0; k < SCRIPT_EVENT_COUNT; k++) {
        const script_event_row *row = &script_event_rows[k];
        ck_assert(k == 0 || strcmp(script_event_rows[k - 1].name, row->name) < 0);
        (void)snprintf(line, sizeof line, "\n### \"%s\"\n\n%s\n", row->name, row->line);
        ck_assert_msg(strstr(page, line) != NULL, "%s", row->name);
        (void)snprintf(line, sizeof line, "---@overload fun(event: '\"%s\"'", row->name);
        ck_assert_msg(strstr(stub, line) != NULL, "%s", row->name);
        for (const lua_script_field *f = row->fields; f != NULL && f->name != NULL; f++) {
            (void)snprintf(line, sizeof line, "\n---@field %s %s ", f->name, f->type);
            ck_assert_msg(strstr(stub, line) != NULL, "%s", f->name);
        }
    }
    free(page);
    free(stub);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_events");
    TCase *tc = tcase_create("events");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, events_come_in_the_order_of_a_training);
    tcase_add_test(tc, a_run_of_epochs_ends_with_them);
    tcase_add_test(tc, an_epoch_ends_with_its_evaluation_and_another_begins);
    tcase_add_test(tc, a_step_says_what_the_moment_is_like);
    tcase_add_test(tc, a_moment_ends_with_an_error_too);
    tcase_add_test(tc, an_epoch_begins_once);
    tcase_add_test(tc, what_a_callback_raises_within_a_step_comes_out);
    tcase_add_test(tc, a_wrong_name_is_told_with_the_right_ones);
    tcase_add_test(tc, every_error_under_pcall_is_a_text_with_its_place);
    tcase_add_test(tc, an_error_in_a_callback_shows_its_way_there);
    tcase_add_test(tc, a_handler_is_taken_away_alone);
    tcase_add_test(tc, a_list_may_change_while_it_is_walked);
    tcase_add_test(tc, large_allocations_are_told);
    tcase_add_test(tc, before_an_update_one_looks_and_turns_nothing);
    tcase_add_test(tc, a_loss_that_is_not_finite_is_told);
    tcase_add_test(tc, a_loss_scale_that_changes_is_told);
    tcase_add_test(tc, the_reference_and_the_stub_have_every_event_and_field);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
