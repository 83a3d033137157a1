// SPDX-License-Identifier: Apache-2.0
// What is in a training: the elements of its weights, which a recipe may set, and the norm of its gradients.
#include "lua/recipe_run.h"

#define SMALL "hr.preset 'small.yaml'\n"

// Plain gradient descent at rate 1 subtracts the gradient itself.
#define DESCENT "hr.knobs.optimizer.kind = 'sgd'\nhr.knobs.optimizer.learning_rate = 1\n"
#define MOVED                                                                                                \
    "local function all()\n"                                                                                 \
    "  local list = {}\n"                                                                                    \
    "  for _, w in ipairs(hr.weights('', {values = true})) do table.move(w.values, 1, #w.values, #list + "   \
    "1, list) end\n"                                                                                         \
    "  return list\n"                                                                                        \
    "end\n"                                                                                                  \
    "local function moved(a, b)\n"                                                                           \
    "  local sum = 0\n"                                                                                      \
    "  for k = 1, #a do sum = sum + (a[k] - b[k]) ^ 2 end\n"                                                 \
    "  return sum ^ 0.5\n"                                                                                   \
    "end\n"                                                                                                  \
    "local function near(a, b) return math.abs(a - b) <= 2e-4 * b end\n"

// ---- the norm of the gradients ------------------------------------------------------------------------------------------

static const char *const settings[] = {
    "",
    "hr.knobs.device.kind = 'cpu' hr.knobs.execution.mode = 'graph'\n",
    "hr.knobs.batch.accumulate = 3\n",
    "hr.knobs.device.kind = 'cpu' hr.knobs.batch.accumulate = 2\n",
    "hr.knobs.precision.policy = 'mixed_float16' hr.knobs.precision.loss_scale = 'dynamic'\n",
    "hr.knobs.precision.policy = 'mixed_float16' hr.knobs.precision.loss_scale = 1024\n",
    "hr.knobs.device.kind = 'cpu' hr.knobs.precision.policy = 'mixed_bfloat16'\n",
    "hr.knobs.execution.as = 'pytorch'\n",
};

START_TEST(the_norm_is_that_of_what_the_weights_move_by)
{
    char text[4096];
    (void)snprintf(text, sizeof text,
                   SMALL DESCENT MOVED
                   "%s"
                   "hr.run{steps = 1}\n"
                   "local before, seen = all(), 0\n"
                   "local h = hr.on('before_update', function(u)\n"
                   "  seen = u.gradient_norm\n"
                   "  assert(u.gradient_norm == seen)\n"
                   "end)\n"
                   "local shown\n"
                   "hr.on('step', function(s) shown = s.gradient_norm end, {gradient_norm = true})\n"
                   "hr.run{steps = 1}\n"
                   "local went = moved(before, all())\n"
                   "assert(went > 0 and near(seen, went), seen .. ' for ' .. went)\n"
                   "assert(shown == seen)\n"
                   "h:off()\n"
                   "before = all()\n"
                   "hr.run{steps = 1}\n"
                   "assert(near(shown, moved(before, all())))\n",
                   settings[_i]);
    recipe_expect_fine_small(text);
}
END_TEST

// Each gradient counts once, whoever takes it.
START_TEST(the_norm_is_the_same_for_every_optimizer)
{
    recipe_expect_fine("hr.preset 'mlp_tiny'\n"
                       "local norm, first\n"
                       "hr.on('step', function(s) norm = s.gradient_norm end, {gradient_norm = true})\n"
                       "local function check(knobs)\n"
                       "  hr.with(knobs, function() hr.run{steps = 1, fresh = true} end)\n"
                       "  first = first or norm\n"
                       "  assert(norm == first, norm .. ' for ' .. first)\n"
                       "end\n"
                       "for _, kind in ipairs{'sgd', 'momentum', 'rmsprop', 'adam', 'adamw', 'adafactor', "
                       "'adafactor_keras', "
                       "'lion', 'adam8bit'} do\n"
                       "  check{['optimizer.kind'] = kind}\n"
                       "end\n"
                       "check{['offload.optimizer'] = true}\n"
                       "check{['optimizer.ema'] = 0.9}\n"
                       "check{['optimizer.clip_norm'] = 0.1, ['execution.as'] = 'pytorch'}\n"
                       "check{['compress.prune'] = 'constant:0.5'}\n"
                       "check{['allocator.kind'] = 'static', ['execution.mode'] = 'graph'}\n");
}
END_TEST

// It is what optimizer.clip_norm judges, not what it leaves.
START_TEST(the_norm_is_taken_before_clipping)
{
    recipe_expect_fine_small(
        SMALL DESCENT MOVED
        "local norms = {}\n"
        "hr.on('step', function(s) norms[#norms + 1] = s.gradient_norm end, {gradient_norm = true})\n"
        "hr.run{steps = 1}\n"
        "hr.run{steps = 1, fresh = true, optimizer = {clip_norm = 0.01}}\n"
        "assert(#norms == 2 and norms[1] == norms[2] and norms[1] > 0.01)\n"
        "local before = all()\n"
        "hr.run{steps = 1, optimizer = {clip_norm = 0.01}}\n"
        "assert(near(moved(before, all()), 0.01))\n");
}
END_TEST

// Where it cannot be had it is nil, and nobody's bits are other ones because somebody asked.
START_TEST(who_asks_changes_nothing)
{
    recipe_expect_fine_small(
        SMALL
        "local sha = hr.run{steps = 4}.train.weights_sha256\n"
        "local some = 0\n"
        "local h = hr.on('step', function(s) some = some + s.gradient_norm end, {gradient_norm = true})\n"
        "assert(hr.run{steps = 4, fresh = true}.train.weights_sha256 == sha and some > 0)\n"
        "h:off()\n"
        "hr.on('step', function(s) assert(s.gradient_norm == nil) end)\n"
        "hr.run{steps = 1}\n"
        "h = hr.on('before_update', function(u) assert(u.gradient_norm == nil) end)\n"
        "local m = hr.model()\n"
        "table.insert(m.layers, 3, {kind = 'dense', units = 12})\n"
        "hr.model(m)\n"
        "hr.run{steps = 1, fresh = true, optimizer = {fused_backward = true}}\n"
        "hr.run{steps = 1, fresh = true, device = {kind = 'plan'}}\n"
        "local ok, e = pcall(hr.on, 'alloc', print, {gradient_norm = true})\n"
        "assert(not ok and e:find('gradient_norm is an option of \"step\", had it with \"alloc\"', 1, true), "
        "e)\n"
        "ok, e = pcall(hr.on, 'step', print, {above = 3})\n"
        "assert(not ok and e:find('above is an option of \"alloc\"', 1, true), e)\n");
}
END_TEST

// With several rounds a step's gradients are there behind the last of them.
START_TEST(before_update_comes_behind_the_last_round)
{
    recipe_expect_fine_small(SMALL "local allocated, told = 0, 0\n"
                                   "hr.knobs.device.kind = 'plan'\n"
                                   "hr.on('before_update', function(u) told = told + 1 end)\n"
                                   "hr.run{steps = 2, batch = {accumulate = 3}}\n"
                                   "hr.run{steps = 2, fresh = true, optimizer = {fused_backward = true}}\n"
                                   "assert(told == 4, told)\n");
}
END_TEST

// What no table of ours has is a mistake, wherever it came from.
START_TEST(a_mistyped_field_of_any_answer_is_an_error)
{
    static const struct {
        const char *value, *says;
    } wrong[] = {
        {"hr.weights()[1].nrom", "'nrom' here — did you mean 'norm'?"},
        {"hr.eval().eval_los", "'eval_los' here — did you mean 'eval_loss'?"},
        {"hr.fit{keep = 'batch,precision'}.fastets", "'fastets' here — did you mean 'fastest'?"},
        {"hr.replay('growth_boundary').trace.fromat", "'fromat' here — did you mean 'format'?"},
        {"hr.replay('growth_boundary').allocators[1].failures[1].requested", "'requested' here"},
        {"hr.replay('growth_boundary').allocators[1].memory.peak", "'peak' here"},
        {"hr.explain('growth_boundary').cuase", "'cuase' here — did you mean 'cause'?"},
        {"hr.compare(hr.plan(), hr.plan{batch = {size = 1}})[1].chagne", "did you mean 'change'?"},
        {"hr.model().figures[1].parmeters", "did you mean 'parameters'?"},
        {"hr.sweep{['batch.size'] = {1}}[1].peak_in_us", "did you mean 'peak_in_use_bytes'?"},
        {"hr.plan().memory.peak", "'peak' here"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "hr.preset 'demo'\nhr.run{steps = 1, batch = {size = 100}}\nprint(%s)\n",
                       wrong[k].value);
        recipe_expect_failure(text, 3, wrong[k].says);
    }
    recipe_expect_fine("hr.preset 'demo'\nhr.run{steps = 1, batch = {size = 100}}\n"
                       "assert(hr.weights()[1].values == nil)\n"
                       "local r = hr.replay('growth_boundary')\n"
                       "assert(r.allocators[1].devices == nil and r.allocators[1][7] == nil)\n");
}
END_TEST

// ---- setting weights ------------------------------------------------------------------------------------------------

static const char *const devices[] = {"reference", "cpu"};

START_TEST(the_next_step_goes_on_from_what_was_set)
{
    char text[4096];
    (void)snprintf(text, sizeof text,
                   SMALL
                   "hr.knobs.device.kind = '%s'\n"
                   "hr.run{steps = 2}\n"
                   "for _, w in ipairs(hr.weights()) do hr.set_weights(w.name, 0) end\n"
                   "assert(hr.weights()[1].norm == 0 and hr.weights()[1].zeros == 1)\n"
                   "local r = hr.run{steps = 1}\n"
                   "assert(r.train.steps == 3 and math.abs(r.train.loss_last - math.log(10)) < 1e-6)\n"
                   "local w = hr.weights('weights', {values = true})[1]\n"
                   "assert(#w.values == w.elements)\n"
                   "for k = 1, #w.values do w.values[k] = k / 7 end\n"
                   "hr.set_weights(w.name, w.values)\n"
                   "local set = hr.weights(w.name, {values = true})[1].values\n"
                   "for k = 1, #set do assert(set[k] == string.unpack('f', string.pack('f', k / 7))) end\n"
                   "hr.save('set.safetensors')\n"
                   "hr.run{steps = 1}\n"
                   "assert(hr.weights(w.name, {values = true})[1].values[9] ~= set[9])\n"
                   "local after = hr.run{steps = 1}.train.weights_sha256\n"
                   "hr.load('set.safetensors')\n"
                   "assert(hr.run{steps = 2}.train.weights_sha256 == after)\n"
                   "hr.load('set.safetensors')\n"
                   "hr.knobs.optimizer.learning_rate = 0\n"
                   "hr.knobs.optimizer.kind = 'sgd'\n"
                   "hr.run{steps = 1, fresh = false}\n"
                   "local back = hr.weights(w.name, {values = true})[1].values\n"
                   "for k = 1, #set do assert(back[k] == set[k]) end\n",
                   devices[_i]);
    recipe_expect_fine_small(text);
}
END_TEST

START_TEST(what_cannot_be_set_is_refused)
{
    static const struct {
        const char *call, *says;
    } wrong[] = {
        {"hr.set_weights('dense/bias', {1, 2, 3})", "dense/bias needed 10 numbers (10), had 3"},
        {"hr.set_weights('dense/bais', 0)", "no weight is called 'dense/bais' — did you mean 'dense/bias'?"},
        {"hr.set_weights('dense/bias', 'x')",
         "takes a number, or a list of numbers row by row, had a string"},
        {"hr.set_weights('dense/bias', {1, 2, 3, 4, 5, 6, 7, 8, 9, '10'})", "had a string in it"},
        {"hr.set_weights('dense/bias', {1, 2, 3, 4, 5, 6, 7, 8, nil, 10})", "had a nil in it"},
        {"local t = {} for k = 0, 60 do t[1 << k], t[(1 << k) + 1] = 1.5, 1.5 end t[1 << 61] = 1.5\n"
         "for k = 1, 3000 do t[k] = 2.5 end hr.set_weights('dense/bias', t)",
         "dense/bias needed 10 numbers (10), had 2305843009213693952"}, // times 8 it is 0
        {"hr.set_weights('dense/bias')", "value expected"},
        {"hr.set_weights('dense/bias:m', 0)", "no weight is called 'dense/bias:m'"},
        {"hr.on('before_update', function() hr.set_weights('dense/bias', 0) end) hr.run{steps = 1}",
         "a before_update function looks on"},
        {"hr.run{steps = 1, fresh = true, device = {kind = 'plan'}} hr.set_weights('dense/bias', 0)",
         "there are no weights before a run that computes"},
        {"hr.preset 'small.yaml' hr.set_weights('dense/bias', 0)", "there are no weights before a run"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       SMALL "hr.run{steps = 1}\n"
                             "local before = hr.weights('bias')[1].norm\n"
                             "%s\n",
                       wrong[k].call);
        recipe_check_small(text, 3, wrong[k].says);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("lua_weights");
    TCase *tc = tcase_create("weights");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, the_norm_is_that_of_what_the_weights_move_by, 0,
                        (int)(sizeof settings / sizeof *settings));
    tcase_add_test(tc, the_norm_is_the_same_for_every_optimizer);
    tcase_add_test(tc, the_norm_is_taken_before_clipping);
    tcase_add_test(tc, who_asks_changes_nothing);
    tcase_add_test(tc, before_update_comes_behind_the_last_round);
    tcase_add_test(tc, a_mistyped_field_of_any_answer_is_an_error);
    tcase_add_loop_test(tc, the_next_step_goes_on_from_what_was_set, 0, 2);
    tcase_add_test(tc, what_cannot_be_set_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
