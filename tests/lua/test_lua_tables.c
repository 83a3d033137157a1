// SPDX-License-Identifier: Apache-2.0
// What a recipe makes of results: hr.sweep, hr.compare, hr.export, hr.plot, hr.weights.
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "base/file.h"
#include "lua/recipe_run.h"

#define PLAN  "hr.preset 'demo'\nhr.knobs.device.kind = 'plan'\n"
#define SMALL "hr.preset 'small.yaml'\n"

// Every row is what a plan and a run of those knobs say; the recipe's training waits meanwhile.
START_TEST(a_sweep_is_plans_and_runs)
{
    recipe_expect_fine_small(
        SMALL
        "hr.run{steps = 3}\n"
        "local rows = hr.sweep({['batch.size'] = {2, 4}, ['optimizer.kind'] = {'sgd', 'adam'}}, {steps = "
        "2})\n"
        "assert(#rows == 4)\n"
        "for k, row in ipairs(rows) do\n"
        "  assert(row['batch.size'] == (k <= 2 and 2 or 4) and row['optimizer.kind'] == (k % 2 == 1 and "
        "'sgd' or 'adam'))\n"
        "  local knobs = {['batch.size'] = row['batch.size'], ['optimizer.kind'] = row['optimizer.kind']}\n"
        "  assert(row.fits and row.peak_in_use_bytes == hr.plan(knobs).memory.peak_in_use_bytes)\n"
        "  assert(row.run_peak_in_use_bytes == row.peak_in_use_bytes and row.loss_last > 0 and row.error == "
        "nil)\n"
        "  assert(row.run.train.steps == 2 and row.plan.fits)\n"
        "end\n"
        "assert(hr.run{steps = 1}.train.steps == 4)\n"
        "local all = hr.run{steps = 4, fresh = true}.train.weights_sha256\n"
        "hr.run{steps = 3, fresh = true}\n"
        "hr.sweep({['batch.size'] = {2}}, {steps = 1})\n"
        "assert(hr.run{steps = 1}.train.weights_sha256 == all)\n");
}
END_TEST

START_TEST(a_sweep_leaves_the_save_and_goes_on_from_none)
{
    recipe_expect_fine_small(SMALL "hr.knobs.train.save = 'mine.safetensors'\n"
                                   "hr.run{steps = 3}\n"
                                   "hr.sweep({['batch.size'] = {2}}, {steps = 2})\n"
                                   "assert(hr.knobs.train.save:find('mine.safetensors', 1, true))\n"
                                   "hr.load('mine.safetensors')\n"
                                   "local rows = hr.sweep({['batch.size'] = {2}}, {steps = 2})\n"
                                   "assert(rows[1].run.train.steps == 2, rows[1].run.train.steps)\n"
                                   "assert(hr.run{steps = 1}.train.steps == 4)\n");
}
END_TEST

START_TEST(a_sweep_goes_on_over_what_does_not_fit_or_is_refused)
{
    recipe_expect_fine(
        PLAN "local rows = hr.sweep{['batch.size'] = {128, 0, 1024}}\n"
             "assert(rows[1].fits and not rows[3].fits and rows[3].cause == 'capacity')\n"
             "assert(rows[2].plan == nil and rows[2].error:find('^batch.size'), rows[2].error)\n"
             "local nine = {}\n"
             "for _, k in ipairs{'batch.size', 'train.seed', 'model.x', 'a', 'b', 'c', 'd', 'e', 'f'} do "
             "nine[k] = {1} end\n"
             "for _, wrong in ipairs{{}, {['batch.size'] = 3}, {['batch.size'] = {}}, {{1}}, nine} do\n"
             "  assert(not pcall(hr.sweep, wrong))\n"
             "end\n"
             "local list = {}\n"
             "for k = 1, 101 do list[k] = k end\n"
             "local ok, e = pcall(hr.sweep, {['batch.size'] = list, ['train.seed'] = list})\n"
             "assert(e:find('at most 10000 combinations', 1, true))\n"
             "assert(not pcall(hr.sweep, {['batch.size'] = {1, nil, 3}}))\n"
             "ok, e = pcall(hr.sweep, {['batch.size'] = {1}}, {stesp = 3})\n"
             "assert(e:find(\"hr.sweep has no option 'stesp' — did you mean 'steps'?\", 1, true), e)\n"
             "for _, steps in ipairs{-3, 0, 1.5, 'x'} do\n"
             "  ok, e = pcall(hr.sweep, {['batch.size'] = {1}}, {steps = steps})\n"
             "  assert(not ok and e:find('steps needs a whole number from 1', 1, true), e)\n"
             "end\n");
}
END_TEST

// A mistake in the recipe is no row of the answer; what no row can have is an error that lists the right names.
// A name ends at no NUL, and a callback of a row may change what the next is made of.
START_TEST(a_sweep_knows_that_its_axes_may_change)
{
    recipe_expect_fine(PLAN "assert(#hr.sweep{['batch.size\\0'] = {2}} == 1)\n"
                            "for _, other in ipairs{{}, 'text', 3, false} do\n"
                            "  local axes = {['batch.size'] = {2, 4}}\n"
                            "  local h = hr.on('step', function() axes['batch.size'] = other end)\n"
                            "  local ok, e = pcall(hr.sweep, axes, {steps = 1})\n"
                            "  assert(not ok and e:find('the values of batch.size are gone', 1, true), e)\n"
                            "  h:off()\n"
                            "end\n");
}
END_TEST

START_TEST(a_mistyped_name_of_a_sweep_is_an_error)
{
    recipe_expect_failure("hr.preset 'demo'\nhr.sweep{['batch.sise'] = {1}}\n", 3,
                          "unknown knob 'batch.sise' — did you mean 'batch.size'?");
    recipe_expect_failure("hr.preset 'demo'\nhr.sweep{['execution.mode'] = {'graph', 'egaer'}}\n", 3,
                          "did you mean 'eager'?");
    recipe_expect_fine(PLAN
                       "local rows = hr.sweep{['batch.size'] = {64, 512}}\n"
                       "assert(rows[1].cause == nil and rows[2].run == nil and rows[1].error == nil)\n"
                       "local ok, e = pcall(function() return rows[1].loss_lats end)\n"
                       "assert(not ok and e:find(\"a row of hr.sweep has no field 'loss_lats' — did you mean "
                       "'loss_last'?\", 1, true), e)\n"
                       "assert(e:find('batch.size, fits, peak_in_use_bytes', 1, true), e)\n");
}
END_TEST

START_TEST(a_comparison_has_what_differs)
{
    recipe_expect_fine(
        PLAN "local a, b = hr.plan(), hr.plan{batch = {size = 64}}\n"
             "local found = {}\n"
             "for _, row in ipairs(hr.compare(a, b)) do found[row.name] = row end\n"
             "local peak = found['memory.peak_in_use_bytes']\n"
             "assert(peak.a == a.memory.peak_in_use_bytes and peak.b == b.memory.peak_in_use_bytes)\n"
             "assert(math.abs(peak.change - (peak.b / peak.a - 1)) < 1e-12)\n"
             "assert(found['memory.limit_bytes'] == nil and found['step.effective_batch'].b == 64)\n"
             "assert(#hr.compare(a, a) == 0 and tostring(hr.compare(a, a)) == 'no difference')\n"
             "local ok, e = pcall(hr.compare, a, {fits = true})\n"
             "assert(not ok and e:find('hr.compare takes two results of hr.plan or hr.run, the second is "
             "none', 1, "
             "true), e)\n"
             "for line in tostring(hr.compare(a, b)):gmatch('[^\\n]+') do assert(#line <= 80 and not "
             "line:find(' $'), line) end\n"
             "local small = hr.compare({memory = {fragmentation = 4.6711509716024e-05}}, {memory = "
             "{fragmentation = 1 / 3}})\n"
             "assert(tostring(small):find(' 4.671151e-05        0.3333333 ', 1, true), tostring(small))\n"
             "local no = hr.plan{batch = {size = 1024}}\n"
             "assert(hr.compare(a, no)[1].name == 'fits' and hr.compare(a, no)[1].b == false)\n");
}
END_TEST

// ---- files ------------------------------------------------------------------------------------------------------------

static char *file_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL && text != NULL, "%s", path);
    ck_assert_uint_lt(fread(text, 1, (1 << 16) - 1, f), (1 << 16) - 1);
    (void)fclose(f);
    return text;
}

static void check_file(const char *recipe, const char *path, const char *expected)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "recipe.lua", recipe, strlen(recipe));
    ck_assert_int_eq(chdir(r.folder), 0);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    char *text = file_text(path);
    ck_assert_str_eq(text, expected);
    free(text);
    recipe_drop(&r);
}

START_TEST(a_table_is_a_csv)
{
    check_file("local rows = {{b = 1, a = 'x,y', n = 0.1, big = hr.bytes('1GiB'), t = {deep = true}}, {a = "
               "'say \"hi\"', c = 1/0}}\n"
               "assert(hr.export('t.csv', rows) == 'headroom-out/t.csv')\n",
               "headroom-out/t.csv", "a,b,big,c,n\n\"x,y\",1,1073741824,,0.1\n\"say \"\"hi\"\"\",,,,\n");
    check_file("hr.export('t.csv', {{['batch.size'] = 3, t = {deep = {er = 2}}}, {}},\n"
               "  {columns = {'t.deep.er', 'batch.size'}})\n",
               "headroom-out/t.csv", "t.deep.er,batch.size\n2,3\n,\n");
}
END_TEST

START_TEST(a_value_is_json)
{
    check_file(
        "hr.export('v.json', {z = {1, 2.5, 'a\"b\\\\\\n'}, a = {}, n = 0/0, y = true, b = hr.bytes(7)})\n",
        "headroom-out/v.json",
        "{\"a\": {}, \"b\": 7, \"n\": null, \"y\": true, \"z\": [1, 2.5, \"a\\\"b\\\\\\n\"]}\n");
    check_file(
        "hr.export('v.json', {['a\\0b'] = 'c\\0d', a = 'é', ['a\\0'] = '\\127', [''] = '\\u{fffd}'})\n",
        "headroom-out/v.json",
        "{\"\": \"\xef\xbf\xbd\", \"a\": \"é\", \"a\\u0000\": \"\\u007f\", \"a\\u0000b\": "
        "\"c\\u0000d\"}\n");
    check_file("hr.export('notes.md', 'words')\n", "headroom-out/notes.md", "words");
}
END_TEST

// Under whatever name the file is written before it takes its own.
START_TEST(a_link_beside_a_file_leads_nowhere)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "recipe.lua", "hr.export('a.txt', 'new')\n", 26);
    recipe_put(&r, "mine", "old", 3);
    ck_assert_int_eq(chdir(r.folder), 0);
    ck_assert_int_eq(mkdir("headroom-out", 0777), 0);
    ck_assert_int_eq(symlink("../mine", "headroom-out/a.txt.new"), 0);
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    char *mine = file_text("mine"), *text = file_text("headroom-out/a.txt");
    ck_assert_str_eq(mine, "old");
    ck_assert_str_eq(text, "new");
    free(mine);
    free(text);
    recipe_drop(&r);
}
END_TEST

// Below ./headroom-out a file gives way, whole or not at all; one that was typed is the person's.
START_TEST(a_file_of_the_person_is_not_replaced)
{
    char word[] = "mine.txt", *typed[] = {word};
    recipe_run r;
    recipe_make(&r);
    static const char text_of[] = "hr.export('a.txt', 'one') hr.export('a.txt', 'new')\n"
                                  "hr.export(hr.args[1], 'new')";
    recipe_put(&r, "recipe.lua", text_of, sizeof text_of - 1);
    ck_assert_int_eq(chdir(r.folder), 0);
    recipe_start(&r, 1, typed, &test_limits);
    ck_assert_msg(r.code == 0, "%s", r.notes);
    char *mine = file_text("mine.txt"), *text = file_text("headroom-out/a.txt");
    ck_assert_str_eq(mine, "new");
    ck_assert_str_eq(text, "new");
    free(mine);
    free(text);
    recipe_put(&r, "mine.txt", "old", 3);
    recipe_start(&r, 1, typed, &test_limits);
    ck_assert_int_ne(r.code, 0);
    ck_assert_ptr_nonnull(strstr(r.notes, "mine.txt: is there already, and stays as it is"));
    mine = file_text("mine.txt");
    ck_assert_str_eq(mine, "old");
    free(mine);
    recipe_drop(&r);
}
END_TEST

// The folder with the file, as each of the calls that write it fails once.
START_TEST(an_export_that_fails_leaves_what_was_there)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "recipe.lua", "hr.export('a.txt', 'new')", 25);
    ck_assert_int_eq(chdir(r.folder), 0);
    ck_assert_int_eq(mkdir("headroom-out", 0777), 0);
    bool whole = false;
    for (uint64_t nth = 1; !whole; nth++) {
        recipe_put(&r, "headroom-out/a.txt", "old", 3);
        file_fail_at(nth);
        recipe_start(&r, 0, NULL, &test_limits);
        whole = file_fail_at(0) < nth;
        char *text = file_text("headroom-out/a.txt");
        ck_assert_str_eq(text, r.code == 0 ? "new" : "old");
        ck_assert_msg(r.code == 0 || strstr(r.notes, "headroom-out/a.txt") != NULL, "%s", r.notes);
        ck_assert_int_eq(system("test $(ls -A headroom-out | wc -l) = 1"), 0);
        ck_assert(!whole || (r.code == 0 && nth > 4));
        free(text);
    }
    recipe_drop(&r);
}
END_TEST

START_TEST(what_cannot_be_written_is_refused)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"hr.export('../x.csv', {{a = 1}})", "a recipe may not use '../x.csv'"},
        {"hr.export('/tmp/x.csv', {{a = 1}})", "a recipe may not use '/tmp/x.csv'"},
        {"hr.export('x.exe', 'x')", "hr.export writes .csv, .json, .svg, .txt and .md, had 'x.exe'"},
        {"hr.export('x.csv', {})", "a .csv is made of a list of tables"},
        {"hr.export('x.csv', 3)", "table expected, got number"},
        {"hr.export('x.csv', {{a = 1}, 3}, {columns = {'a'}})",
         "row 2 of a .csv needs a table, had a number"},
        {"hr.export('x.csv', {{a = 1}}, {columns = {{}}})", "columns needs names, had a table"},
        {"hr.export('x.csv', {{loss = 1, step = 1}}, {columns = {'step', 'lss'}})",
         "no row has the column 'lss' — did you mean 'loss'? There are loss, step"},
        {"hr.preset 'small.yaml' hr.export('x.csv', hr.sweep{['batch.size'] = {1}}, {columns = {'peak'}})",
         "a row of hr.sweep has no field 'peak'"},
        {"hr.preset 'small.yaml' hr.export('x.csv', hr.sweep{['batch.size'] = {1}}, {columns = "
         "{'plan.memory.peak'}})",
         "no field of a result is called 'peak' here"},
        {"hr.export('x.csv', {{a = {1}}}, {columns = {'a'}})", "column 'a' needs plain values, had a table"},
        {"hr.export('x.json', print)", "hr.export: a function cannot be written"},
        {"hr.export('x.json', {[{}] = 1})", "a table has a table as key"},
        {"hr.export('x.json', {{1, 2, name = 'x'}})", "a list of 2 and has the key 'name', too"},
        {"local t = {} t.t = t hr.export('x.json', t)", "tables lie in each other more than 16 deep"},
        {"hr.export('x.json', {'fine', {name = 'ab\\xc3'}})",
         "hr.export: byte 3 of a text is 0xc3, which belongs to no character of UTF-8"},
        {"hr.export('x.json', {['\\x80'] = 1})", "byte 1 of a text is 0x80, which belongs to no character"},
        {"hr.export('x.csv', {{a = '\\u{d800}'}})",
         "byte 1 of a text is 0xed, which belongs to no character"},
        {"hr.export('x.csv', {{a = 'b\\0c'}})", "byte 2 of a text is 0x00, which it cannot have here"},
        {"hr.export('x.csv', {{a = 1, ['a\\0b'] = 2}})", "byte 2 of a text is 0x00"},
        {"hr.export('x.csv', {{a = 1}}, {columns = {'a', 'a\\0b'}})", "byte 2 of a text is 0x00"},
        {"hr.export('x.json')", "value expected"},
        {"hr.export('none/x.json', 1)",
         "headroom-out/none/x.json: its folder cannot be opened: No such file"},
        {"hr.export('x.svg', {})", "a .svg is made of a plot or of a text"},
        {"hr.export('x.csv', {{a = 1}}, {colums = {'a'}})", "did you mean 'columns'?"},
        {"hr.plot{x = {1}, y = {1}, title = {}}", "title needs a text, had a table"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        recipe_run r;
        recipe_make(&r);
        recipe_put(&r, "small.yaml", small_preset, strlen(small_preset));
        recipe_put(&r, "recipe.lua", wrong[k].text, strlen(wrong[k].text));
        ck_assert_int_eq(chdir(r.folder), 0);
        recipe_start(&r, 0, NULL, &test_limits);
        ck_assert_msg(r.code != 0 && strstr(r.notes, wrong[k].says) != NULL, "%s: %s", wrong[k].text,
                      r.notes);
        ck_assert_msg(rmdir("headroom-out") == 0 || errno == ENOENT, "%s has written", wrong[k].text);
        recipe_drop(&r);
    }
}
END_TEST

START_TEST(a_plot_is_drawn_in_letters_and_as_svg)
{
    recipe_expect_fine(
        "local p = hr.plot{x = {1, 10, 100}, y = {b = {3, 2, 1}, a = {1, false, 3}}, title = '<T>', label = "
        "'n', log_x = true}\n"
        "local lines = {}\n"
        "for line in tostring(p):gmatch('[^\\n]*') do lines[#lines + 1] = line assert(#line <= 78, line) "
        "end\n"
        "assert(lines[1]:find('<T>', 1, true) and lines[2]:find('^ +3 |o +%*$'), lines[2])\n"
        "assert(lines[17]:find('^ +1 |%* +o$'), lines[17])\n"
        "assert(tostring(p):find('* a\\n', 1, true) and tostring(p):find('o b\\n', 1, true))\n"
        "assert(p.svg:find('^<svg ') and p.svg:find('&lt;T&gt;', 1, true) and p.svg:find('</svg>\\n$'))\n"
        "local steep = tostring(hr.plot{x = {1, 2, 3, 4}, y = {1, 100, 10000, -1}, log_y = true})\n"
        "lines = {}\n"
        "for line in steep:gmatch('[^\\n]*') do lines[#lines + 1] = line end\n"
        "assert(lines[1]:find('1e%+04 |.*%*$') and lines[16]:find('^ +1 |%*$'), steep)\n"
        "local long = hr.plot{x = {1}, y = {['\\x80\\n'] = {1}}, title = ('é'):rep(40), label = 'a\\xc3'}\n"
        "assert(utf8.len(long.text) and long.text:find('  ' .. ('é'):rep(31) .. '\\n', 1, true), long.text)\n"
        "assert(utf8.len(long.svg) and long.svg:find('>a?<', 1, true) and long.text:find('* ? \\n', 1, "
        "true))\n"
        "local one = hr.plot{x = {5}, y = {hr.bytes('1MiB')}}\n"
        "assert(tostring(one):find('1.00 MiB', 1, true))\n"
        "for _, wrong in ipairs{{}, {x = {1}}, {x = {}, y = {}}, {x = {1}, y = {0/0}}, {x = {1}, y = 3},\n"
        "    {x = {0}, y = {1}, log_x = true}, {x = {1}, y = {a = 1}}, {x = {1}, y = {1}, colour = 'red'},\n"
        "    {x = {1, 2}, y = {-1.7e308, 1.7e308}}, {x = {-1.7e308, 1.7e308}, y = {1, 2}}} "
        "do\n"
        "  assert(not pcall(hr.plot, wrong))\n"
        "end\n");
}
END_TEST

// Of weights whose values are known: new ones are drawn, biases are zero.
START_TEST(weights_have_norms_and_histograms)
{
    recipe_expect_fine_small(
        SMALL
        "hr.run{steps = 1, optimizer = {kind = 'sgd', learning_rate = 0}}\n"
        "local all = hr.weights()\n"
        "assert(#all == 2)\n"
        "for _, w in ipairs(all) do\n"
        "  local sum = 0\n"
        "  for _, n in ipairs(w.histogram) do sum = sum + n end\n"
        "  assert(#w.histogram == 16 and sum == w.elements and w.nonfinite == 0)\n"
        "end\n"
        "local bias = hr.weights('bias')[1]\n"
        "assert(#hr.weights('bias') == 1 and bias.elements == 10 and bias.norm == 0 and bias.zeros == 1)\n"
        "local w = hr.weights('weights')[1]\n"
        "assert(w.elements == 480 and w.least < 0 and w.most > 0 and math.abs(w.mean) < w.most)\n"
        "assert(w.norm > 0 and w.norm <= math.sqrt(480) * math.max(w.most, -w.least))\n"
        "hr.run{steps = 5}\n"
        "assert(hr.weights('bias')[1].norm > 0 and hr.weights('weights')[1].norm ~= w.norm)\n"
        "hr.on('step', function() assert(#hr.weights() == 2) end)\n"
        "hr.run{steps = 1}\n");
    recipe_check_small(SMALL "hr.weights()\n", 3, "there are no weights before a run");
    recipe_check_small(SMALL "hr.knobs.device.kind = 'plan'\nhr.run{steps = 1}\nhr.weights()\n", 1,
                       "there are no weights before a run that computes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_tables");
    TCase *tc = tcase_create("tables");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_sweep_is_plans_and_runs);
    tcase_add_test(tc, a_sweep_leaves_the_save_and_goes_on_from_none);
    tcase_add_test(tc, a_sweep_goes_on_over_what_does_not_fit_or_is_refused);
    tcase_add_test(tc, a_sweep_knows_that_its_axes_may_change);
    tcase_add_test(tc, a_mistyped_name_of_a_sweep_is_an_error);
    tcase_add_test(tc, a_comparison_has_what_differs);
    tcase_add_test(tc, a_table_is_a_csv);
    tcase_add_test(tc, a_value_is_json);
    tcase_add_test(tc, a_link_beside_a_file_leads_nowhere);
    tcase_add_test(tc, a_file_of_the_person_is_not_replaced);
    tcase_add_test(tc, an_export_that_fails_leaves_what_was_there);
    tcase_add_test(tc, what_cannot_be_written_is_refused);
    tcase_add_test(tc, a_plot_is_drawn_in_letters_and_as_svg);
    tcase_add_test(tc, weights_have_norms_and_histograms);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
