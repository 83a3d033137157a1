// SPDX-License-Identifier: Apache-2.0
// hr.explain: of a preset, a log and a snapshot; what it says would help is handed on as it is, and helps.
#include "lua/recipe_run.h"

static const char rmm_log[] = "Thread,Time,Action,Pointer,Size,Stream\n"
                              "1,10:00:00:000001,allocate,0x1000,3145728,0\n"
                              "1,10:00:00:000002,allocate,0x2000,6291456,0\n";

static void put_file(const recipe_run *r, const char *from, const char *name)
{
    static char bytes[1 << 16];
    FILE *f = fopen(from, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t length = fread(bytes, 1, sizeof bytes, f);
    ck_assert_int_eq(fclose(f), 0);
    recipe_put(r, name, bytes, length);
}

static void expect(const char *text, int code, const char *sentence)
{
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "log.csv", rmm_log, strlen(rmm_log));
    put_file(&r, "tests/data/refused/hole.pickle", "hole.pickle");
    recipe_put(&r, "recipe.lua", text, strlen(text));
    recipe_start(&r, 0, NULL, &test_limits);
    ck_assert_msg(r.code == code && strstr(r.notes, sentence) != NULL,
                  "%s\n-- code %d, wanted %d and '%s'\n%s%s", text, r.code, code, sentence, r.out, r.notes);
    recipe_drop(&r);
}

START_TEST(every_fix_of_a_preset_is_handed_on_and_fits)
{
    expect("hr.preset 'demo'\n"
           "hr.knobs.device.kind = 'plan'\n"
           "local why = hr.explain{['device.vram'] = '50MiB'}\n"
           "assert(not why.fits and why.cause == 'capacity' and why.report.oom.cause == 'capacity')\n"
           "assert(#why.fixes == #why.report.oom.fixes and #why.fixes >= 2 and #why.evidence >= 3)\n"
           "for k, fix in ipairs(why.fixes) do\n"
           "  assert(fix.cost == why.report.oom.fixes[k].cost and #fix.cost > 0)\n"
           "  assert(fix.seconds == nil or #fix.seconds_basis > 0)\n"
           "  assert(fix.seconds_basis ~= 'unknown')\n"
           "  fix.knobs['device.vram'] = '50MiB'\n"
           "  local with = hr.plan(fix.knobs)\n"
           "  assert(with.fits and with.memory.peak_in_use_bytes == fix.peak_bytes)\n"
           "  assert(hr.explain(fix.knobs).cause == nil)\n"
           "end\n"
           "assert(hr.plan{['device.vram'] = why.needed_bytes}.fits)\n"
           "assert(hr.plan{['device.vram'] = '50MiB'}.oom.needed_bytes == why.needed_bytes)\n"
           "local well = hr.explain{['device.vram'] = '1GiB'}\n"
           "assert(well.fits and well.cause == nil and #well.fixes == 0 and well.needed_bytes == nil)\n",
           0, "");
}
END_TEST

START_TEST(a_log_and_a_snapshot_are_explained)
{
    expect("local log = hr.explain('log.csv', {['device.vram'] = '8MiB'})\n"
           "assert(log.cause == 'capacity' and log.needed_bytes > '8MiB')\n"
           "assert(log.fixes[#log.fixes].knobs['device.vram'] ~= nil)\n"
           "assert(hr.explain('log.csv').fits)\n"
           "local hole = hr.explain('hole.pickle')\n"
           "assert(hole.cause == 'fragmentation' and #hole.fixes > 0 and hole.fixes[1].cost == 'same "
           "numbers')\n",
           0, "");
}
END_TEST

static const struct {
    const char *text, *sentence;
    int code;
} wrong[] = {
    {"hr.explain()", "there is no model before a preset", 3},
    {"hr.explain(3)", "table expected", 3},
    {"hr.explain('log.csv', 3)", "table expected", 3},
    {"hr.explain('log.csv', {batch = {size = 3}})", "batch.size changes nothing in a replay", 3},
    {"hr.explain('/etc/passwd')", "a recipe may not use '/etc/passwd'", 3},
    {"hr.explain('missing.csv')", "missing.csv", 5},
};

START_TEST(what_is_wrong_is_said_at_its_line)
{
    expect(wrong[_i].text, wrong[_i].code, wrong[_i].sentence);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lua_explain");
    tcase_add_test(tests, every_fix_of_a_preset_is_handed_on_and_fits);
    tcase_add_test(tests, a_log_and_a_snapshot_are_explained);
    tcase_add_loop_test(tests, what_is_wrong_is_said_at_its_line, 0, sizeof wrong / sizeof *wrong);
    Suite *suite = suite_create("lua_explain");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
