// SPDX-License-Identifier: Apache-2.0
// A preset of one's own with three lines works on every device, and so does a card of one's own: from a file, in place,
// and from the command line.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/program.h"

static void put(const char *name, const char *words)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/%s", program_home(), name);
    FILE *f = fopen(path, "w");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_int_ge(fputs(words, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static json_t *report_of(const char *words)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

// "plan HOME/three.yaml --json REST"
static json_t *of_file(const char *command, const char *name, const char *rest)
{
    char words[512];
    (void)snprintf(words, sizeof words, "%s %s/%s --json %s", command, program_home(), name, rest);
    return report_of(words);
}

static const json_t *field(const json_t *report, const char *group, const char *key)
{
    const json_t *value = json_object_get(json_object_get(report, group), key);
    ck_assert_msg(value != NULL, "%s.%s", group, key);
    return value;
}

static void assert_refused(const char *name, const char *rest, const char *sentence, const char *hint)
{
    char words[512];
    (void)snprintf(words, sizeof words, "plan %s/%s %s", program_home(), name, rest);
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_msg(strstr(o.err, sentence) != NULL, "%s: %s", words, o.err);
    ck_assert_msg(strstr(o.err, hint) != NULL, "%s: %s", words, o.err);
    outcome_deinit(&o);
}

static const char three[] = "model: mlp_tiny\nbatch:\n  size: 8\n";

START_TEST(three_lines_are_planned_without_a_limit)
{
    put("three.yaml", three);
    json_t *plan = of_file("plan", "three.yaml", "-s device.kind=plan");
    ck_assert(json_is_null(field(plan, "memory", "limit_bytes")));
    ck_assert_str_eq(json_string_value(field(plan, "device", "card")), "unlimited");
    ck_assert(json_real_value(field(plan, "step", "seconds")) > 0);
    const json_int_t in_use = json_integer_value(field(plan, "memory", "peak_in_use_bytes"));
    const json_int_t pool = json_integer_value(field(plan, "memory", "peak_pool_bytes"));
    ck_assert_int_ge(pool, in_use);
    ck_assert_int_le(pool, 4 * in_use + 4194304); // it grew, it did not take all there is
    json_t *run = of_file("run", "three.yaml", "-s device.kind=plan --steps 2");
    ck_assert(json_equal(json_object_get(plan, "memory"), json_object_get(run, "memory")));
    json_decref(plan);
    json_decref(run);
    char words[320];
    (void)snprintf(words, sizeof words, "plan %s/three.yaml -s device.kind=plan", program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.out, "no limit: at its peak") != NULL, "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_workbench_has_no_limit_either_and_says_so)
{
    char words[640], screen[4096] = "";
    put("three.yaml", three);
    (void)snprintf(words, sizeof words, "keys <Esc>\nwait steps 3\nkeys 4\nsave-display %s/doctor.txt\n",
                   program_home());
    put("doctor.keys", words);
    (void)snprintf(words, sizeof words, "%s/three.yaml -s device.kind=plan --script %s/doctor.keys",
                   program_home(), program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    (void)snprintf(words, sizeof words, "%s/doctor.txt", program_home());
    FILE *f = fopen(words, "r");
    ck_assert_ptr_nonnull(f);
    screen[fread(screen, 1, sizeof screen - 1, f)] = '\0';
    (void)fclose(f);
    ck_assert_msg(strstr(screen, "plan as unlimited") != NULL && strstr(screen, "there is no") != NULL, "%s",
                  screen);
    ck_assert_msg(strstr(screen, "% left") == NULL && strstr(screen, "iB of 1") == NULL, "%s", screen);
}
END_TEST

START_TEST(three_lines_compute_within_what_the_machine_can_give)
{
    put("three.yaml", three);
    json_t *plan = of_file("plan", "three.yaml", "-s device.kind=reference");
    json_t *run = of_file("run", "three.yaml", "-s device.kind=reference --steps 2");
    const json_int_t limit = json_integer_value(field(plan, "memory", "limit_bytes"));
    const json_int_t whole = (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE);
    ck_assert_int_gt(limit, 0);
    ck_assert_int_le(limit, whole / 5 * 4);
    ck_assert(json_equal(json_object_get(plan, "memory"), json_object_get(run, "memory")));
    json_decref(plan);
    json_decref(run);
}
END_TEST

START_TEST(three_lines_on_cuda_are_told_to_name_a_card)
{
    put("three.yaml", three);
    assert_refused("three.yaml", "-s device.kind=cuda", "name a card in device.card",
                   "-s device.card=rtx3070-8g");
}
END_TEST

START_TEST(beyond_the_cards_size_it_says_how)
{
    put("three.yaml", three);
    assert_refused("three.yaml", "-s device.card=rtx3070-8g -s device.vram=16GiB",
                   "card rtx3070-8g has 8GiB, wanted 16GiB", "-s device.card=rtx3070-8g,vram=16GiB");
    json_t *plan = of_file("plan", "three.yaml",
                           "-s device.vram=16GiB -s device.card=rtx3070-8g,vram=16GiB"); // as it says
    ck_assert_int_eq(json_integer_value(field(plan, "memory", "limit_bytes")), 16LL << 30);
    json_decref(plan);
}
END_TEST

static double seconds_on(const char *name)
{
    json_t *plan = of_file("plan", name, "-s device.kind=plan");
    const double seconds = json_real_value(field(plan, "step", "seconds"));
    json_decref(plan);
    return seconds;
}

START_TEST(a_card_of_ones_own_is_a_file_or_stands_in_place)
{
    put("slow.yaml", "like: rtx4090-24g\nmemory_bytes_per_second: 1e9\nvram: 6GiB\n");
    put("by_path.yaml", "model: mlp_tiny\ndevice: {card: ./slow.yaml}\n");
    put("in_place.yaml",
        "model: mlp_tiny\ndevice: {card: {like: rtx4090-24g, vram: 6GiB, memory_bytes_per_second: 1e9}}\n");
    put("named.yaml", "model: mlp_tiny\ndevice: {card: rtx4090-24g}\n");
    ck_assert_double_eq(seconds_on("by_path.yaml"), seconds_on("in_place.yaml"));
    ck_assert_double_gt(seconds_on("by_path.yaml"), 2 * seconds_on("named.yaml"));
}
END_TEST

START_TEST(a_card_in_place_that_is_wrong_is_said_with_its_place)
{
    put("no_base.yaml", "model: mlp_tiny\ndevice:\n  card: {vram: 6GiB}\n");
    assert_refused("no_base.yaml", "", "no_base.yaml:3:9: device.card: needs 'like: NAME'", "");
    put("wrong.yaml", "model: mlp_tiny\ndevice: {card: {like: rtx4090-24g, vrm: 6GiB}}\n");
    assert_refused("wrong.yaml", "", "a card has no 'vrm' — did you mean 'vram'?", "");
    put("list.yaml", "model: mlp_tiny\ndevice: {card: {like: rtx4090-24g, vram: [6GiB]}}\n");
    assert_refused("list.yaml", "", "device.card: vram needs one value", "");
}
END_TEST

// What is printed of a stranger's mistake must not be a line of a file elsewhere.
START_TEST(a_card_outside_the_folder_needs_trust)
{
    char outside[320], link[320], words[320];
    put("secret", "a: secret\n");
    (void)snprintf(outside, sizeof outside, "%s/box", program_home());
    (void)mkdir(outside, 0700);
    put("box/up.yaml", "model: mlp_tiny\ndevice: {card: ../secret}\n");
    put("box/linked.yaml", "model: mlp_tiny\ndevice: {card: ./link.yaml}\n");
    (void)snprintf(link, sizeof link, "%s/box/link.yaml", program_home());
    ck_assert_int_eq(symlink("../secret", link), 0);
    assert_refused("box/up.yaml", "", "leaves this folder: needs --trust", "");
    assert_refused("box/linked.yaml", "", "is a link that leaves the folder", "");
    (void)snprintf(words, sizeof words, "plan %s/box/linked.yaml", program_home());
    outcome o = program_run(words);
    ck_assert_ptr_null(strstr(o.err, "a: secret"));
    outcome_deinit(&o);
}
END_TEST

// ---- headroom cards -----------------------------------------------------------------------------------------------

START_TEST(what_cards_prints_of_one_is_read_back_as_the_same)
{
    char quoted[128];
    (void)snprintf(quoted, sizeof quoted, "%s/quoted.yaml", program_home());
    put("quoted.yaml", "like: rtx3070-8g\ntitle: 'my \"big\" \\ card: #1'\nfamily: 'on'\nsource: 'a: b'\n");
    const char *const names[] = {"rtx3070-8g", "h100-80g", "gtx1080-ti-11g", "unlimited", quoted};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char words[192], name[64];
        (void)snprintf(words, sizeof words, "cards %s", names[k]);
        outcome o = program_run(words);
        assert_exit(&o, words, 0);
        (void)snprintf(name, sizeof name, "as_%zu.yaml", k);
        put(name, o.out);
        outcome_deinit(&o);
        (void)snprintf(words, sizeof words, "cards %s --json", names[k]);
        json_t *row = report_of(words);
        (void)snprintf(words, sizeof words, "cards %s/%s --json", program_home(), name);
        json_t *own = report_of(words);
        json_object_del(row, "name"); // the file's
        json_object_del(own, "name");
        ck_assert_msg(json_equal(row, own), "%s", names[k]);
        json_decref(row);
        json_decref(own);
    }
}
END_TEST

static double number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

START_TEST(cards_are_sorted_and_filtered)
{
    static const struct {
        const char *words, *key;
        bool ascends;
    } sorts[] = {{"", "vram_bytes", false},
                 {"--sort vram", "vram_bytes", false},
                 {"--sort vram --reverse", "vram_bytes", true},
                 {"--sort bandwidth", "memory_bytes_per_second", false},
                 {"-r --sort bandwidth", "memory_bytes_per_second", true},
                 {"--sort flops --family hopper", "float16_flops", false},
                 {"--sort year", "year", false}};
    size_t all = 0;
    for (size_t k = 0; k < sizeof sorts / sizeof *sorts; k++) {
        char words[96];
        (void)snprintf(words, sizeof words, "cards --json %s", sorts[k].words);
        json_t *rows = report_of(words);
        all = json_array_size(rows) > all ? json_array_size(rows) : all;
        ck_assert_uint_ge(all, 40);
        for (size_t i = 1; i < json_array_size(rows); i++) {
            const double before = number(json_array_get(rows, i - 1), sorts[k].key);
            const double here = number(json_array_get(rows, i), sorts[k].key);
            ck_assert(sorts[k].ascends ? before <= here : before >= here);
        }
        json_decref(rows);
    }
    json_t *large = report_of("cards --json --family ampere --min-vram 40GiB");
    ck_assert(json_array_size(large) > 1 && json_array_size(large) < all / 4);
    for (size_t i = 0; i < json_array_size(large); i++) {
        const json_t *row = json_array_get(large, i);
        ck_assert_str_eq(json_string_value(json_object_get(row, "family")), "ampere");
        ck_assert(number(row, "vram_bytes") >= 40 * 1073741824.0);
    }
    json_decref(large);
}
END_TEST

static int rows_of(const char *table)
{
    int rows = -1; // its head
    for (const char *at = table; at[0] != '\n'; at = strchr(at, '\n') + 1) {
        rows++;
    }
    return rows;
}

// A card sold as one of 24 GB has not quite 24 GiB: the foot says how many such there are, and what lists them.
START_TEST(cards_just_below_what_was_asked_are_counted)
{
    static const char asked[] = "cards --min-vram 24GiB", value[] = "--min-vram ";
    char words[96];
    int more = 0;
    outcome o = program_run(asked);
    assert_exit(&o, asked, 0);
    ck_assert_ptr_null(strstr(o.out, "rtx4090-24g"));
    const char *foot = strstr(o.out, " less than 10 % below 24.00 GiB"), *lists = strstr(o.out, value);
    ck_assert_msg(foot != NULL && lists != NULL, "%s", o.out);
    while (foot[-1] != '\n') {
        foot--;
    }
    ck_assert_int_eq(sscanf(foot, "%d more", &more), 1);
    (void)snprintf(words, sizeof words, "cards %.*s", (int)strcspn(lists, "\n"), lists);
    outcome all = program_run(words);
    assert_exit(&all, words, 0);
    ck_assert_ptr_nonnull(strstr(all.out, "rtx4090-24g"));
    ck_assert_int_gt(more, 0);
    ck_assert_int_eq(rows_of(all.out), rows_of(o.out) + more);
    outcome_deinit(&all);
    outcome_deinit(&o);
    o = program_run("cards --min-vram 1MiB");
    ck_assert_ptr_null(strstr(o.out, value));
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_is_not_all_is_not_rounded_to_it)
{
    char words[320];
    put("three.yaml", three);
    for (int k = 0; k < 2; k++) {
        (void)snprintf(words, sizeof words, "%s %s/three.yaml -s device.kind=plan -s device.vram=100GiB",
                       k == 0 ? "plan" : "run --plain --steps 1", program_home());
        outcome o = program_run(words);
        assert_exit(&o, words, 0);
        ck_assert_ptr_nonnull(strstr(o.out, "(more than 99.9 %)"));
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(names_ascend)
{
    json_t *rows = report_of("cards --json --sort name");
    for (size_t i = 1; i < json_array_size(rows); i++) {
        ck_assert(strcmp(json_string_value(json_object_get(json_array_get(rows, i - 1), "name")),
                         json_string_value(json_object_get(json_array_get(rows, i), "name"))) < 0);
    }
    json_decref(rows);
}
END_TEST

// Below the home of the program; XDG_DATA_HOME is there too.
#define CARDS ".local/share/headroom/presets/cards"

static void make_cards_folder(void)
{
    static const char *const folders[] = {".local", ".local/share", ".local/share/headroom",
                                          ".local/share/headroom/presets", CARDS};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s/%s", program_home(), folders[k]);
        (void)mkdir(path, 0700);
    }
}

static void remove_card(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/" CARDS "/%s", program_home(), name);
    ck_assert_int_eq(unlink(path), 0);
}

// What the advice says, word for word, as far as it is a command.
static outcome follow_advice(const outcome *o)
{
    char words[512];
    const char *advice = strstr(o->err, "  try: headroom ");
    ck_assert_msg(advice != NULL, "%s", o->err);
    advice += strlen("  try: headroom ");
    (void)snprintf(words, sizeof words, "%.*s", (int)strcspn(advice, "\n"), advice);
    return program_run(words);
}

START_TEST(one_broken_card_is_told_and_the_others_are_listed)
{
    make_cards_folder();
    put(CARDS "/whole.yaml", "like: a100-80g\nvram: 81GiB\n");
    put(CARDS "/broken.yaml", "vram: 8GiBs\ncontxt: 1GiB\nlike: a100-80g\n");
    outcome o = program_run("cards");
    assert_exit(&o, "cards", 2);
    ck_assert(strstr(o.out, "\nwhole ") != NULL && strstr(o.out, "\nrtx3070-8g ") != NULL);
    ck_assert_ptr_nonnull(strstr(o.err, "broken.yaml:1:7: vram: needs a size such as 8GiB, had '8GiBs'"));
    outcome checked = follow_advice(&o);
    assert_exit(&checked, "config check", 2);
    ck_assert_ptr_nonnull(strstr(checked.err, "broken.yaml:1:7: vram: needs a size"));
    ck_assert_ptr_nonnull(
        strstr(checked.err, "broken.yaml:2:1: a card has no 'contxt' — did you mean 'context'?"));
    ck_assert_ptr_null(strstr(checked.err, "unknown key"));
    outcome_deinit(&checked);
    outcome_deinit(&o);
    o = program_run("cards --json");
    assert_exit(&o, "cards --json", 2);
    json_t *rows = json_loads(o.out, 0, NULL); // one document
    ck_assert_uint_ge(json_array_size(rows), 40);
    json_decref(rows);
    outcome_deinit(&o);
    put(CARDS "/broken.yaml", "like: a100-80g\nvram: 8GiB\n");
    char words[400];
    (void)snprintf(words, sizeof words, "config check %s/" CARDS "/broken.yaml -s batch.size=3",
                   program_home());
    o = program_run(words);
    assert_exit(&o, words, 2);
    checked = follow_advice(&o);
    assert_exit(&checked, "what it advises", 0);
    outcome_deinit(&checked);
    outcome_deinit(&o);
    o = program_run("cards");
    assert_exit(&o, "cards", 0);
    outcome_deinit(&o);
    remove_card("broken.yaml");
    remove_card("whole.yaml");
}
END_TEST

START_TEST(advice_about_a_card_is_for_the_command_at_hand)
{
    static const char *const words[] = {"cards a100", "cards a100-80g,vrm=8GiB"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        outcome o = program_run(words[k]);
        assert_exit(&o, words[k], 2);
        outcome followed = follow_advice(&o);
        assert_exit(&followed, o.err, 0);
        outcome_deinit(&followed);
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(the_table_is_80_columns_wide)
{
    outcome o = program_run("cards");
    assert_exit(&o, "cards", 0);
    for (const char *line = o.out; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ck_assert_msg(strcspn(line, "\n") <= 80, "%.90s", line);
    }
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_is_no_order_family_or_size_is_refused)
{
    static const char *const words[] = {"cards --sort price", "cards --family kepler",
                                        "cards --min-vram much", "cards --min-vram 80", "cards rtx9999"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        outcome o = program_run(words[k]);
        assert_exit(&o, words[k], 2);
        ck_assert_msg(strstr(o.err, "try: headroom cards") != NULL, "%s", o.err);
        outcome_deinit(&o);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("own_preset");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, three_lines_are_planned_without_a_limit);
    tcase_add_test(all, the_workbench_has_no_limit_either_and_says_so);
    tcase_add_test(all, three_lines_compute_within_what_the_machine_can_give);
    tcase_add_test(all, three_lines_on_cuda_are_told_to_name_a_card);
    tcase_add_test(all, beyond_the_cards_size_it_says_how);
    tcase_add_test(all, a_card_of_ones_own_is_a_file_or_stands_in_place);
    tcase_add_test(all, a_card_in_place_that_is_wrong_is_said_with_its_place);
    tcase_add_test(all, a_card_outside_the_folder_needs_trust);
    tcase_add_test(all, what_cards_prints_of_one_is_read_back_as_the_same);
    tcase_add_test(all, cards_are_sorted_and_filtered);
    tcase_add_test(all, cards_just_below_what_was_asked_are_counted);
    tcase_add_test(all, what_is_not_all_is_not_rounded_to_it);
    tcase_add_test(all, names_ascend);
    tcase_add_test(all, one_broken_card_is_told_and_the_others_are_listed);
    tcase_add_test(all, advice_about_a_card_is_for_the_command_at_hand);
    tcase_add_test(all, the_table_is_80_columns_wide);
    tcase_add_test(all, what_is_no_order_family_or_size_is_refused);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
