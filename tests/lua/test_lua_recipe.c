// SPDX-License-Identifier: Apache-2.0
// Recipes that ship and have more than one story.
#include "headroom/preset.h"

#include "lua/recipe_run.h"

static recipe_run run_recipe(const char *file, int argc, char **argv)
{
    recipe_run r = {.file = ""};
    (void)snprintf(r.file, sizeof r.file, "scripts/recipes/%s", file);
    hr_preset_search_beside(".");
    recipe_start(&r, argc, argv, &test_limits);
    return r;
}

static void expect_story(int argc, char **argv, const char *story)
{
    recipe_run r = run_recipe("largest_batch.lua", argc, argv);
    ck_assert_msg(r.code == 0, "%s%s", r.out, r.notes);
    ck_assert_str_eq(r.out, story);
    ck_assert_ptr_nonnull(strstr(r.notes, "step 200 of 200\n"));
    free(r.out);
    free(r.notes);
}

START_TEST(the_largest_batch_of_the_demo_is_found_and_trained)
{
    char device[] = "device.kind=plan";
    expect_story(1, (char *[]){device},
                 "demo under 64.00 MiB: batch 136 fits, 144 does not (10 plans)\n"
                 "200 steps, peak 63.97 MiB\n");
}
END_TEST

START_TEST(a_cap_that_holds_nothing_fails_the_check)
{
    char device[] = "device.kind=plan", vram[] = "device.vram=1MiB";
    recipe_run r = run_recipe("largest_batch.lua", 2, (char *[]){device, vram});
    ck_assert_int_eq(r.code, 1);
    ck_assert_ptr_nonnull(strstr(r.notes, "a batch of 8 fits 1.00 MiB"));
    free(r.out);
    free(r.notes);
}
END_TEST

// The rows of a table of 13 ways: what each would take, planned once more.
START_TEST(what_fits_says_of_every_way_whether_it_fits)
{
    static const struct {
        const char *preset, *card;
        int least, most; // rows that fit
    } cases[] = {{"demo", "rtx3070-8g", 13, 13},
                 {"resnet50", "rtx3070-8g", 1, 12},
                 {"gpt2_1558m", "rtx3060-12g", 0, 2},
                 {"resnet50", "8GiB", 1, 12}};
    char name[32], card[32];
    (void)snprintf(name, sizeof name, "%s", cases[_i].preset);
    (void)snprintf(card, sizeof card, "%s", cases[_i].card);
    recipe_run r = run_recipe("what_fits.lua", 2, (char *[]){name, card});
    ck_assert_msg(r.code == 0, "%s%s", r.out, r.notes);
    ck_assert_str_eq(r.notes, "");
    int yes = 0, no = 0, refused = 0;
    for (const char *line = r.out; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        char text[256];
        (void)snprintf(text, sizeof text, "%.*s", end == NULL ? 0 : (int)(end - line), line);
        yes += strstr(text, "  yes, ") != NULL;
        no += strstr(text, "  no: ") != NULL;
        refused += strstr(text, "refused: ") != NULL;
        line = end == NULL ? NULL : end + 1;
    }
    ck_assert_int_eq(yes + no, 13);
    ck_assert_int_eq(refused, 0);
    ck_assert_msg(yes >= cases[_i].least && yes <= cases[_i].most, "%s", r.out);
    free(r.out);
    free(r.notes);
}
END_TEST

START_TEST(what_fits_into_a_size_is_of_the_presets_own_card_or_of_the_one_named)
{
    static const char *const rows[][4] = {
        {"resnet50", "8GiB", "", "resnet50 on a100-80g with 8.00 GiB,"},
        {"resnet50", "rtx3070-8g", "4GiB", "resnet50 on rtx3070-8g with 4.00 GiB,"},
        {"demo", "96MiB", "", "demo on no card with 96.00 MiB,"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char words[3][32];
        for (int i = 0; i < 3; i++) {
            (void)snprintf(words[i], sizeof words[i], "%s", rows[k][i]);
        }
        recipe_run r = run_recipe("what_fits.lua", words[2][0] == '\0' ? 2 : 3,
                                  (char *[]){words[0], words[1], words[2]});
        ck_assert_msg(r.code == 0 && strstr(r.out, rows[k][3]) != NULL, "%s%s", r.out, r.notes);
        free(r.out);
        free(r.notes);
    }
}
END_TEST

START_TEST(what_fits_on_no_such_card_is_an_error)
{
    char name[] = "demo", card[] = "rtx9999";
    recipe_run r = run_recipe("what_fits.lua", 2, (char *[]){name, card});
    ck_assert_int_eq(r.code, 3);
    ck_assert_ptr_nonnull(strstr(r.notes, "no card is called 'rtx9999'"));
    ck_assert_ptr_nonnull(strstr(r.notes, "what_fits.lua:"));
    free(r.out);
    free(r.notes);
}
END_TEST

static const char capped_preset[] = "device: {kind: reference, vram: 768KiB}\n"
                                    "pipeline: {shuffle: 0}\n"
                                    "model:\n"
                                    "  name: small\n"
                                    "  input: {shape: [32, 32, 3]}\n"
                                    "  classes: 10\n"
                                    "  loss: softmax_cross_entropy\n"
                                    "  layers:\n"
                                    "    - {kind: max_pool, size: 8, stride: 8}\n"
                                    "    - {kind: flatten}\n"
                                    "    - {kind: dense, units: 10}\n";

START_TEST(it_trains)
{
    char path[160];
    recipe_run r;
    recipe_make(&r);
    recipe_put(&r, "small.yaml", capped_preset, strlen(capped_preset));
    (void)snprintf(path, sizeof path, "%s/small.yaml", r.folder);
    (void)snprintf(r.file, sizeof r.file, "scripts/recipes/largest_batch.lua");
    char steps[] = "train.steps=40";
    recipe_start(&r, 2, (char *[]){path, steps}, &test_limits);
    ck_assert_msg(r.code == 0, "%s%s", r.out, r.notes);
    ck_assert_ptr_nonnull(strstr(r.notes, "step 40 of 40, loss 2."));
    ck_assert_ptr_nonnull(strstr(r.out, "40 steps, peak "));
    recipe_drop(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_recipe");
    TCase *tc = tcase_create("recipe");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_largest_batch_of_the_demo_is_found_and_trained);
    tcase_add_test(tc, a_cap_that_holds_nothing_fails_the_check);
    tcase_add_loop_test(tc, what_fits_says_of_every_way_whether_it_fits, 0, 4);
    tcase_add_test(tc, what_fits_into_a_size_is_of_the_presets_own_card_or_of_the_one_named);
    tcase_add_test(tc, what_fits_on_no_such_card_is_an_error);
    tcase_add_test(tc, it_trains);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
