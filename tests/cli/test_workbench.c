// SPDX-License-Identifier: Apache-2.0
// The workbench as it was built, played by scripts: no terminal, no clock, the device `plan`.
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

static char *slurp(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "no file %s", path);
    ssize_t length = getdelim(&text, &size, '\0', in);
    fclose(in);
    ck_assert_int_ge(length, 0);
    return text;
}

// A folder of its own, where the script stands as a.keys and leaves its screenshots.
static void enter(const char *script)
{
    ck_assert_int_eq(chdir(program_home()), 0);
    ck_assert_int_eq(system("rm -rf play && mkdir play"), 0);
    ck_assert_int_eq(chdir("play"), 0);
    write_text("a.keys", script);
}

static void play(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    outcome_deinit(&o);
}

static void said(const char *words, int exit_code, const char *part)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    ck_assert_msg(strstr(o.err, part) != NULL, "no '%s' in: %s", part, o.err);
    outcome_deinit(&o);
}

START_TEST(five_tasks_are_done_with_keys_that_the_screen_shows)
{
    char *narrow = slurp("tests/cli/scripts/five_tasks.keys");
    char *wide = slurp("tests/cli/scripts/five_tasks_wide.keys");
    enter(narrow);
    play("demo --script a.keys", 0);
    enter(wide);
    play("demo --script a.keys --size 160x50", 0);
    free(narrow);
    free(wide);
}
END_TEST

// Its file, its runs and its judge are the program's own.
START_TEST(a_lesson_of_the_course_is_done_with_keys_that_the_screen_shows)
{
    char *keys = slurp("tests/cli/scripts/lesson.keys");
    enter(keys);
    play("demo -s device.kind=plan --script a.keys", 0);
    free(keys);
}
END_TEST

// A step of the demo, as a run recorded it.
START_TEST(a_recorded_step_is_turned_with_keys_that_the_screen_shows)
{
    char *keys = slurp("tests/cli/scripts/recorded.keys");
    enter(keys);
    play("run demo -s device.kind=plan --steps 1 --trace step.hrt", 0);
    play("step.hrt --script a.keys", 0);
    said("step.hrt --script a.keys -s batch.size=64", 2,
         "batch.size cannot be turned: this is a recorded step");
    free(keys);
}
END_TEST

// A log whose heap ran into 2 KiB: that limit is its own, and none of a card that is named.
START_TEST(a_named_card_has_its_own_limit_in_plan_and_on_the_screen)
{
    char *log = slurp("tests/fuzz/corpus/tensorflow_log/age_2016.log");
    enter("wait seconds 2\nexpect OUT OF MEMORY\nexpect 2.00 KiB\n");
    write_text("heap.log", log);
    play("plan heap.log", 1);
    play("heap.log --script a.keys", 0);
    write_text("a.keys", "wait seconds 2\nexpect idle, step 1\n");
    play("plan heap.log -s device.card=rtx4080-16g", 0);
    play("heap.log --script a.keys -s device.card=rtx4080-16g", 0);
    write_text("a.keys", "wait seconds 2\nexpect OUT OF MEMORY\n");
    play("plan heap.log -s device.card=rtx4080-16g -s device.vram=16KiB", 1);
    play("heap.log --script a.keys -s device.card=rtx4080-16g -s device.vram=16KiB", 0);
    free(log);
}
END_TEST

START_TEST(a_recipe_begins_with_the_training_and_acts_on_it)
{
    char *keys = slurp("tests/cli/scripts/recipe.keys");
    enter(keys);
    free(keys);
    write_text("mine.lua", "seen = 0\n"
                           "hr.on('step', function(e) seen = seen + 1 end)\n"
                           "hr.run{steps = 10}\n"
                           "hr.knobs.batch.size = 64\n"
                           "hr.note('batch ' .. hr.knobs.batch.size .. ' from here')\n"
                           "hr.run{steps = 2}\n"
                           "hr.plot{title = 'loss', x = {1, 2}, y = {2, 1}}\n");
    play("demo --recipe ./mine.lua --script a.keys", 0);
}
END_TEST

START_TEST(what_a_record_has_not_is_promised_nowhere)
{
    static const char head[] = "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor\n";
    char words[160];
    enter("wait seconds 2\nexpect OUT OF MEMORY\nexpect No turn of its card or its allocator\n");
    (void)snprintf(words, sizeof words, "%s0,0,alloc,4096,18446744073709551000,18446744073709551000,a/w\n",
                   head);
    write_text("endless.csv", words);
    play("endless.csv --script a.keys", 0);
    write_text("empty.csv", head);
    said("plan empty.csv", 2, "empty.csv: needed requests for memory to plan, had none");
    said("empty.csv --script a.keys", 2, "empty.csv: needed requests for memory to plan, had none");
}
END_TEST

// growth=on goes with bfc alone: kind=async is no way out, and no error.
START_TEST(a_fix_that_a_rule_refuses_takes_no_answer_down)
{
    static const char tight[] = "step.hrt -s allocator.growth=on -s device.vram=40MiB";
    char words[160];
    enter("wait seconds 2\nexpect OUT OF MEMORY\nexpect ▸device.vram=\n");
    play("run demo -s device.kind=plan --steps 1 --trace step.hrt", 0);
    (void)snprintf(words, sizeof words, "plan %s", tight);
    play(words, 1);
    (void)snprintf(words, sizeof words, "%s --script a.keys", tight);
    play(words, 0);
}
END_TEST

static const char walk[] =
    "wait seconds 2\nkeys b <Left>\nwait steps 20\n:theme safe\nkeys <Tab>?\nwait seconds 1\n"
    "keys <Esc> 5 . 0 8 9 3 4 1\nwait seconds 1\nsave-display b.svg\nsave-display b.txt\n"
    "save-display b.ans\n";

START_TEST(the_same_script_gives_the_same_bytes_whatever_the_environment)
{
    static const char *const settings[] = {"NO_COLOR=1", "COLORFGBG=0;15", "TERM=dumb", "LC_ALL=POSIX"};
    enter(walk);
    const char *words = "demo -s device.card=rtx3070-8g -s device.vram=64MiB --script a.keys --cast b.cast";
    play(words, 0);
    ck_assert_int_eq(system("mkdir first && mv b.* first/"), 0);
    for (size_t i = 0; i < (HEADROOM_SANITIZED ? 1 : sizeof settings / sizeof *settings); i++) {
        outcome o = program_run_with(settings[i], words);
        assert_exit(&o, settings[i], 0);
        outcome_deinit(&o);
        ck_assert_msg(system("for f in b.*; do cmp $f first/$f || exit 1; rm $f; done") == 0, "%s",
                      settings[i]);
    }
}
END_TEST

START_TEST(a_cast_is_a_header_and_output_in_the_order_of_time)
{
    enter(walk);
    play("demo -s device.card=rtx3070-8g -s device.vram=64MiB --script a.keys --cast b.cast --size 100x30",
         0);
    char *cast = slurp("b.cast"), *rest = NULL;
    double last = 0;
    size_t lines = 0;
    for (char *line = strtok_r(cast, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest), lines++) {
        json_t *json = json_loads(line, JSON_DECODE_ANY, NULL);
        ck_assert_msg(json != NULL, "line %zu is no JSON", lines + 1);
        if (lines == 0) {
            ck_assert_int_eq(json_integer_value(json_object_get(json, "version")), 2);
            ck_assert_int_eq(json_integer_value(json_object_get(json, "width")), 100);
            ck_assert_int_eq(json_integer_value(json_object_get(json, "height")), 30);
        } else {
            double time = json_real_value(json_array_get(json, 0));
            ck_assert_str_eq(json_string_value(json_array_get(json, 1)), "o");
            ck_assert(time >= last);
            last = time;
        }
        json_decref(json);
    }
    ck_assert_uint_gt(lines, 20);
    ck_assert(last > 4);
    free(cast);
}
END_TEST

START_TEST(a_cast_replaces_a_cast_and_nothing_else)
{
    enter("wait steps 1\n");
    write_text("mine", "a file of mine\n");
    said("demo --script a.keys --cast mine", 5, "mine is no cast, and stays");
    char *mine = slurp("mine");
    ck_assert_str_eq(mine, "a file of mine\n");
    free(mine);
    play("demo --script a.keys --cast b.cast", 0);
    play("demo --script a.keys --cast b.cast", 0);
    write_text("a.keys", "expect purple\n");
    ck_assert_int_eq(system("cp b.cast before.cast"), 0);
    said("demo --script a.keys --cast b.cast", 1, "a.keys:1: the screen does not show 'purple'");
    ck_assert_int_eq(system("cmp b.cast before.cast && test $(ls | wc -l) = 4"), 0); // and no rest of it
}
END_TEST

// What the engine took comes back whole, however long it is: no mark stays beside it, and it is still the user's own when a
// later turn is refused.
START_TEST(a_long_path_is_kept_whole)
{
    static const char folder[] =
        "a_folder_with_a_name_that_is_longer_than_an_event_of_the_engine_has_room_for";
    char script[1024];
    snprintf(script, sizeof script,
             "wait steps 3\n:set train.save %s/w\nwait steps 3\nkeys b\nexpect pinned: every number\n"
             ":set allocator.kind static\nexpect failed\nkeys <Esc>/\ntype train.save\nkeys <Enter><Enter>\n"
             "expect room_for/w\n",
             folder);
    enter(script);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    play("demo --script a.keys --size 160x50", 0);
}
END_TEST

// Whatever is wrong with it, and wherever that is found: the training before goes on.
START_TEST(a_preset_that_would_not_stand_ends_no_training)
{
    static const struct {
        const char *yaml, *keys, *said;
    } rows[] = {
        {"title: [", "", "./broken.yaml:2:1"}, // said before anybody is asked
        {"extends: demo\nbatch: {size: many}\n", "", "batch.size"},
        {"extends: demo\nallocator: {kind: static}\n", "", "static"},
        {"extends: demo\nmodel:\n  input: {shape: [4, 4, 3]}\n  layers:\n    - {kind: dense, units: 1}\n",
         "keys y", "classes"},
        {"extends: demo\ndevice: {kind: reference}\npipeline: {source: mnist, path: /nonexistent}\n",
         "keys y", "/nonexistent"},
        {"extends: demo\ndevice: {kind: reference}\ntrain: {save: gone/a.safetensors}\n", "keys y", "gone/a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char script[512];
        snprintf(script, sizeof script,
                 "wait steps 5\n:preset ./broken.yaml\n%s\nexpect failed\nexpect %s\n"
                 "keys <Esc>\nwait steps 5\nexpect demo\n:set batch.size 8\nwait steps 5\nexpect running\n",
                 rows[i].keys, rows[i].said);
        enter(script);
        write_text("broken.yaml", rows[i].yaml);
        play("demo -s batch.size=16 --script a.keys", 0);
    }
}
END_TEST

START_TEST(what_cannot_be_played_is_said)
{
    enter("wait steps 1\n");
    said("demo --script nothing.keys", 5, "nothing.keys: No such file or directory");
    said("demo --script a.keys --size 80", 2, "--size needs columns and rows, had '80'");
    said("demo --script a.keys --term nope", 4, "no terminal that can place its cursor is called nope");
    said("demo --script a.keys --term dumb", 4, "no terminal that can place its cursor is called dumb");
    said("demo --script a.keys --theme purple", 2, "no theme is called 'purple'");
    said("nothing --script a.keys", 2, "nothing");
    said("--size 80x24", 2, "--size goes with --script");
    write_text("a.keys", "wait steps 1\nkeys q\nkeys z\n"); // a plan has nothing to lose
    said("demo --script a.keys", 1, "a.keys:3: the workbench was left before this line");
    write_text("a.keys", "save-display no/a.svg\n");
    said("demo --script a.keys", 5, "no/a.svg");
}
END_TEST

START_TEST(run_does_so_many_steps_and_stops)
{
    enter("wait steps 5\nkeys r\nwait steps 1\n:run 3\nwait steps 100\nsave-display b.txt\nexpect step 8\n");
    play("demo --script a.keys", 0);
}
END_TEST

#if !HEADROOM_SANITIZED
START_TEST(the_screenshots_and_the_cast_can_be_made_anew)
{
    char root[512], command[1536];
    ck_assert_ptr_nonnull(getcwd(root, sizeof root));
    snprintf(command, sizeof command, "%s/scripts/dev/screenshots %s %s/screenshots > /dev/null", root,
             HEADROOM_PROGRAM, program_home());
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command,
             "cd %s/screenshots && test $(ls *.svg | wc -l) -ge 5 && test -s tour.cast", program_home());
    ck_assert_int_eq(system(command), 0);
}
END_TEST

#endif

// Other looks, and terminals that can do less.
START_TEST(every_terminal_and_theme_is_played_on)
{
    static const char *const looks[] = {
        "--term vt100 --ascii", "--term linux",       "--term screen",           "--term tmux-256color",
        "--theme mono",         "--theme safe-light", "--no-color --size 40x10", "--size 20x4",
        "--size 1x1",           "--size 300x120",
    };
    enter("wait steps 3\nkeys <Right>\nwait steps 1\nkeys z ? <Esc> p <Esc> : <Tab> <Esc>\nresize "
          "60x16\nwait steps 2\n"
          "resize 200x3\nwait steps 2\n");
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        char words[96];
        snprintf(words, sizeof words, "mlp_tiny --script a.keys %s", looks[i]);
        play(words, 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        five_tasks_are_done_with_keys_that_the_screen_shows,
        a_lesson_of_the_course_is_done_with_keys_that_the_screen_shows,
        a_recorded_step_is_turned_with_keys_that_the_screen_shows,
        a_named_card_has_its_own_limit_in_plan_and_on_the_screen,
        a_recipe_begins_with_the_training_and_acts_on_it,
        what_a_record_has_not_is_promised_nowhere,
        a_fix_that_a_rule_refuses_takes_no_answer_down,
        the_same_script_gives_the_same_bytes_whatever_the_environment,
        a_cast_is_a_header_and_output_in_the_order_of_time,
        a_cast_replaces_a_cast_and_nothing_else,
        what_cannot_be_played_is_said,
        a_preset_that_would_not_stand_ends_no_training,
        a_long_path_is_kept_whole,
        run_does_so_many_steps_and_stops,
#if !HEADROOM_SANITIZED
        the_screenshots_and_the_cast_can_be_made_anew,
#endif
        every_terminal_and_theme_is_played_on
    };
    TCase *tc = tcase_create("workbench");
    tcase_add_checked_fixture(tc, NULL, program_remove_home); // each test has a home of its own
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        tcase_add_test(tc, tests[i]);
    }
    Suite *suite = suite_create("cli workbench");
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
