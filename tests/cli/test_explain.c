// SPDX-License-Identifier: Apache-2.0
// `explain`: the cause in five lines, what shows it behind, fixes that hold what they say.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

#define TIGHT "explain demo -s device.kind=plan -s device.vram=40MiB"

static char *text_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    char *text = strdup(o.out);
    outcome_deinit(&o);
    return text;
}

static const struct {
    const char *words;
    int exit_code;
    const char *begins, *has;
} rows[] = {
    {TIGHT, 1, "out of memory: capacity: the step asks for ", "what shows it\n  needed "},
    {"explain retained_predictions -s device.vram=6GiB", 0,
     "leak, +196.3 MiB/step: nothing was refused yet; ", "full in at most 4 steps"},
    {"explain retained_predictions --allocator caching", 1,
     "out of memory: leak, +196.3 MiB/step: ", "lm_head/out"},
    {"explain growth_boundary", 1, "out of memory: fragmentation: ", "  1. -s allocator.growth=off: fits, "},
    {"explain demo -s device.kind=plan -s pipeline.device_prefetch=8 -s device.vram=60MiB", 1,
     "out of memory: pipeline: the step asks for ", "-s pipeline.device_prefetch=1: fits, "},
    {"explain demo -s device.kind=plan -s pipeline.ram_limit=1MiB -s device.vram=1GiB", 1,
     "out of memory: pipeline: the host would hold ", "what shows it\n    "},
    {"explain two_copies", 1, "out of memory: double_copy: ", "the same once more: 1 block, 392.0 MiB"},
    {"explain near_full --allocator caching", 0, "near full: retries: ", "expandable_segments=on: fits"},
};

START_TEST(the_cause_is_said_in_five_lines_and_shown_behind)
{
    char *text = text_of(rows[_i].words, rows[_i].exit_code);
    ck_assert_msg(strncmp(text, rows[_i].begins, strlen(rows[_i].begins)) == 0, "%s", text);
    ck_assert_msg(strstr(text, rows[_i].has) != NULL, "%s", text);
    const char *behind = strstr(text, "\n\nwhat shows it\n");
    ck_assert_msg(behind != NULL, "%s", text);
    int lines = 1, width = 0;
    for (const char *c = text; *c != '\0'; c++) {
        lines += c < behind && *c == '\n';
        width = *c == '\n' ? 0 : width + 1;
        ck_assert_msg(width <= 80, "wider than a page: %s", text);
    }
    ck_assert_msg(lines <= 5, "%d lines: %s", lines, text);
    free(text);
}
END_TEST

START_TEST(a_fix_that_is_applied_fits_and_leaves_what_was_said)
{
    json_t *report = NULL;
    outcome o = program_run(TIGHT " --json");
    assert_exit(&o, TIGHT, 1);
    report = assert_json(&o, TIGHT);
    outcome_deinit(&o);
    const json_t *oom = json_object_get(report, "oom"), *fixes = json_object_get(oom, "fixes");
    ck_assert_str_eq(json_string_value(json_object_get(oom, "cause")), "capacity");
    ck_assert_uint_gt(json_array_size(json_object_get(oom, "evidence")), 0);
    ck_assert_uint_gt(json_array_size(fixes), 0);
    for (size_t k = 0; k < json_array_size(fixes); k++) {
        char words[128];
        (void)snprintf(words, sizeof words, TIGHT " --apply %zu --json", k + 1);
        outcome applied = program_run(words);
        assert_exit(&applied, words, 0);
        json_t *with = assert_json(&applied, words);
        ck_assert_int_eq(
            json_integer_value(json_object_get(json_object_get(with, "memory"), "peak_in_use_bytes")),
            json_integer_value(json_object_get(json_array_get(fixes, k), "peak_bytes")));
        json_decref(with);
        outcome_deinit(&applied);
    }
    json_decref(report);
}
END_TEST

#define REFUSED "explain tests/data/refused/"

static const struct {
    const char *words;
    int exit_code;
    const char *has;
} snapshots[] = {
    {REFUSED "hole.pickle", 1,
     "  1. -s allocator.expandable_segments=on: fits, 200.0 MiB left; same numbers\n"},
    {REFUSED "hole.pickle -s device.card=h100-80g", 1,
     "expandable_segments=on: fits, 200.0 MiB left; same numbers\n"},
    {REFUSED "forgotten.pickle", 1, "\n  no setting was proved to make it fit\n"},
    {REFUSED "untold.pickle", 1, "\n  no setting was proved to make it fit\n"},
    {REFUSED "second_gpu.pickle", 1, "out of memory: device 1: fragmentation: 550.0 MiB are free"},
    {REFUSED "second_gpu.pickle --apply 1", 0, "=on:\nfits: 200.0 MiB of 650.0 MiB are left"},
    {REFUSED "near_full.pickle", 1, "rounding: the request needs 5.00 MiB"},
    {REFUSED "hole.pickle --apply 1", 0, "=on:\nfits: 200.0 MiB of 650.0 MiB are left"},
};

START_TEST(a_snapshot_is_played_under_the_limit_that_it_shows)
{
    char *text = text_of(snapshots[_i].words, snapshots[_i].exit_code);
    ck_assert_msg(strstr(text, snapshots[_i].has) != NULL, "%s: %s", snapshots[_i].words, text);
    free(text);
}
END_TEST

static const struct {
    const char *words;
    int exit_code;
    const char *says;
} refused[] = {
    {TIGHT " --apply 9", 2, "--apply needs one of 3 fixes, had 9"},
    {TIGHT " --apply 0", 2, "--apply"},
    {"explain nowhere.pickle", 4, "nowhere.pickle"},
    {"explain small_tensors -s batch.size=4", 2, "batch.size"},
    {"explain small_tensors --steps 4", 2, "--steps is about a preset"},
    {"explain small_tensors --allocator bfc,caching", 2, "needs one allocator"},
    {TIGHT " --allocator bfc", 2, "-s allocator.kind=bfc"},
};

START_TEST(what_cannot_be_explained_is_said)
{
    outcome o = program_run(refused[_i].words);
    ck_assert_msg(o.exit_code != 0 && o.exit_code != 1, "%s", o.out);
    ck_assert_msg(strstr(o.err, refused[_i].says) != NULL, "%s: %s", refused[_i].words, o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_fits_says_how_much_is_left)
{
    char *text = text_of("explain demo -s device.kind=plan -s device.vram=1GiB", 0);
    ck_assert_msg(strncmp(text, "fits: ", 6) == 0, "%s", text);
    free(text);
    text = text_of("explain pool_stays --allocator bfc", 0);
    ck_assert_msg(strncmp(text, "fits: ", 6) == 0, "%s", text);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain");
    TCase *cases = tcase_create("explain");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, the_cause_is_said_in_five_lines_and_shown_behind, 0,
                        sizeof rows / sizeof *rows);
    tcase_add_test(cases, a_fix_that_is_applied_fits_and_leaves_what_was_said);
    tcase_add_loop_test(cases, a_snapshot_is_played_under_the_limit_that_it_shows, 0,
                        sizeof snapshots / sizeof *snapshots);
    tcase_add_loop_test(cases, what_cannot_be_explained_is_said, 0, sizeof refused / sizeof *refused);
    tcase_add_test(cases, what_fits_says_how_much_is_left);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
