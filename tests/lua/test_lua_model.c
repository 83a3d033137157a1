// SPDX-License-Identifier: Apache-2.0
// hr.model: what a preset says of its model a table can say, by the same reader and with the same checks.
#include "headroom/preset.h"

#include "base/host_mem.h"
#include "lua/recipe_run.h"

#define SMALL "hr.preset 'small.yaml'\n"
#define LAYERS                                                                                               \
    "local function small(layers)\n"                                                                         \
    "  return {name = 'mine', input = {shape = {8, 8, 3}}, classes = 10, loss = 'softmax_cross_entropy',\n"  \
    "          layers = layers}\n"                                                                           \
    "end\n"

// ---- from a preset and back -------------------------------------------------------------------------------------------

static bool is_wanted(const char *name)
{
    const bool small = strstr(name, "_tiny") != NULL;
    return small || !HEADROOM_SANITIZED;
}

static void check_preset(const char *name)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "hr.preset '%s'\n"
                   "hr.knobs.device.kind = 'plan'\n"
                   "local a, layers = hr.plan{steps = 1}, tostring(hr.model())\n"
                   "assert(hr.model(hr.model()))\n"
                   "local b = hr.plan{steps = 1}\n"
                   "assert(tostring(hr.model()) == layers)\n"
                   "for _, row in ipairs(hr.compare(a, b)) do assert(row.name == 'preset', row.name) end\n"
                   "assert(a.step.instructions == b.step.instructions and (a.fits or a.oom.sentence == "
                   "b.oom.sentence))\n",
                   name);
    recipe_run r = recipe_run_text(text, &script_default_limits);
    ck_assert_msg(r.code == 0, "%s\n%s", name, r.notes);
    recipe_drop(&r);
}

START_TEST(the_model_of_every_preset_is_the_same_from_its_table)
{
    static const char *const all[] = {"models", "articles", ""};
    hr_preset_entry *entries = NULL;
    size_t count = 0, checked = 0;
    hr_err err;
    hr_preset_search_beside(".");
    ck_assert_msg(hr_preset_list(all[_i], &entries, &count, &err) == HR_OK, "%s", err.sentence);
    for (size_t k = 0; k < count; k++) {
        if (is_wanted(entries[k].name)) {
            check_preset(entries[k].name);
            checked++;
        }
    }
    ck_assert_msg(checked > 0 || HEADROOM_SANITIZED, "no preset in '%s'", all[_i]);
    hr_preset_list_free(entries);
}
END_TEST

// Sizes that were turned, widths, names that look like numbers.
START_TEST(a_table_says_what_the_knobs_are_at)
{
    recipe_expect_fine("hr.preset 'gpt2_124m_tiny'\n"
                       "hr.knobs.device.kind = 'plan'\n"
                       "hr.knobs.model.sequence = 16\n"
                       "local peak = hr.plan().memory.peak_in_use_bytes\n"
                       "local m = hr.model()\n"
                       "assert(m.sizes.sequence == 16)\n"
                       "hr.preset 'demo'\n"
                       "hr.model(m)\n"
                       "assert(hr.knobs.model.sequence == 16 and hr.knobs.batch.size == 128)\n"
                       "assert(hr.plan().preset ~= 'demo')\n"
                       "hr.preset 'gpt2_124m_tiny'\n"
                       "hr.knobs.device.kind = 'plan'\n"
                       "hr.model{like = 'gpt2_124m_tiny', sequence = 16}\n"
                       "assert(hr.plan().memory.peak_in_use_bytes == peak)\n");
    recipe_expect_fine_small(
        LAYERS
        "hr.model(small{{kind = 'flatten'}, {name = '1e3', kind = 'dense', units = 32},\n"
        "                {kind = 'relu', input = '1e3'}, {name = 'head', kind = 'dense', units = 10}})\n"
        "local m = hr.model()\n"
        "assert(m.layers[2].name == '1e3' and #m.figures == 4 and m.figures[2].parameters == 32 * 193)\n"
        "m.widths = {['1e3'] = 8}\n"
        "assert(hr.model(m).figures[2].parameters == 8 * 193 and hr.model().widths['1e3'] == 8)\n"
        "assert(hr.model(hr.model()).figures[2].output_bytes == hr.bytes(32))\n"
        "local ok, e = pcall(function() return m.figures[1].shape end)\n"
        "assert(not ok and e:find(\"called 'shape' here\", 1, true), e)\n");
}
END_TEST

// ---- a model of a recipe ----------------------------------------------------------------------------------------------

START_TEST(a_model_of_a_recipe_trains_as_that_of_a_file)
{
    recipe_expect_fine_small(
        SMALL
        "local sha = hr.run{steps = 3}.train.weights_sha256\n"
        "local m = hr.model{input = {shape = {32, 32, 3}}, classes = 10, loss = 'softmax_cross_entropy',\n"
        "  name = 'small', layers = {{kind = 'max_pool', size = 8, stride = 8}, {kind = 'flatten'},\n"
        "                            {kind = 'dense', units = 10}}}\n"
        "local r = hr.run{steps = 3}\n"
        "assert(r.train.steps == 3 and r.train.weights_sha256 == sha)\n"
        "hr.save('mine.safetensors')\n"
        "hr.run{steps = 1}\n"
        "hr.load('mine.safetensors')\n"
        "assert(hr.run{steps = 1}.train.steps == 4)\n"
        "assert(hr.knobs.batch.size == 2 and hr.knobs.device.kind == 'reference')\n"
        "m.layers[3] = nil\n"
        "local ok = pcall(hr.model, m)\n"
        "assert(not ok or true)\n"
        "hr.on('step', function() hr.model(m) end)\n"
        "ok, m = pcall(hr.run, {steps = 1})\n"
        "assert(not ok and m:find('the model cannot change between two steps', 1, true), m)\n");
}
END_TEST

// Nothing has changed when it is refused.
START_TEST(what_is_wrong_with_a_table_names_the_layer_and_the_line)
{
    static const struct {
        const char *model, *says;
    } wrong[] = {
        {"hr.model(small{{kind = 'flatten'}, {name = 'head', kind = 'dense', units = 'x'}})",
         "recipe.lua:7: layer 'head' (dense): units must be a whole number from 1 to 16777216, had 'x'"},
        {"hr.model(small{{kind = 'flatten'}, {kind = 'dens', units = 10}})", "did you mean 'dense'?"},
        {"hr.model(small{{kind = 'flatten', units = 10}})",
         "layer 'flatten' (flatten): has no attribute 'units'"},
        {"hr.model(small{})", "the model needs layers"},
        {"hr.model{}", "hr.model needs layers, or like = the name of a preset"},
        {"hr.model{sequence = 3}", "hr.model needs layers, or like = the name of a preset"},
        {"hr.model{like = 'gpt3'}", "no preset 'gpt3'"},
        {"hr.model{like = '../gpt2_124m_tiny'}", "'../gpt2_124m_tiny' leaves the folder"},
        {"hr.model{like = 'gpt2_124m_tiny', width = 1/0}", "width"},
        {"hr.model(small{{kind = print}})", "hr.model: a function cannot be written"},
        {"hr.model(small{{kind = 'flatten', [7] = 1}})", "a table has a number as key"},
        {"hr.model(small{{kind = 'flatten\\0'}})", "a control character, U+0000"},
        {"local t = small{} t.layers[1] = t hr.model(t)", "tables lie in each other more than 16 deep"},
        {"hr.model(small{{kind = ('x'):rep(1 << 20)}})",
         "as the text of a preset the model may have at most 1048576 bytes"},
        {"hr.model(small{{['repeat'] = 1e9, layers = {{kind = 'relu'}}}})", "repeat must be a whole number"},
        {"hr.model('small.yaml')", "table expected, got string"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       SMALL LAYERS "local before = tostring(hr.model())\n"
                                    "%s\n",
                       wrong[k].model);
        recipe_check_small(text, 3, wrong[k].says);
        (void)snprintf(text, sizeof text,
                       SMALL LAYERS "local before = tostring(hr.model())\n"
                                    "assert(not pcall(function() %s end))\n"
                                    "assert(tostring(hr.model()) == before)\n",
                       wrong[k].model);
        recipe_expect_fine_small(text);
    }
    recipe_expect_failure("hr.model()\n", 3, "there are no knobs before a preset");
}
END_TEST

// Each request for host memory fails once.
START_TEST(a_list_of_layers_is_whole_or_not_there)
{
    static const char words[] = "model: {input: {shape: [8]}, classes: 3, loss: softmax_cross_entropy,\n"
                                "  layers: [{kind: dense, units: 3}]}\n";
    const int64_t live = hr_host_mem_live();
    bool whole = false;
    for (uint64_t nth = 1; !whole; nth++) {
        hr_preset *preset = NULL;
        hr_model_layers layers = {NULL, 0};
        hr_err err = {0};
        hr_host_mem_fail_at(nth);
        hr_status status = hr_preset_open_text("mine.yaml", words, false, &preset, &err);
        status =
            status == HR_OK ? hr_model_list_layers(preset, hr_preset_knobs(preset), &layers, &err) : status;
        whole = hr_host_mem_fail_at(0) < nth;
        ck_assert_int_eq(status, whole ? HR_OK : HR_NOMEM);
        ck_assert_uint_eq(layers.count, whole);
        hr_model_layers_deinit(&layers);
        hr_preset_close(preset);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("lua_model");
    TCase *tc = tcase_create("model");
    tcase_set_timeout(tc, 240);
    tcase_add_loop_test(tc, the_model_of_every_preset_is_the_same_from_its_table, 0, 3);
    tcase_add_test(tc, a_table_says_what_the_knobs_are_at);
    tcase_add_test(tc, a_model_of_a_recipe_trains_as_that_of_a_file);
    tcase_add_test(tc, what_is_wrong_with_a_table_names_the_layer_and_the_line);
    tcase_add_test(tc, a_list_of_layers_is_whole_or_not_there);
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
