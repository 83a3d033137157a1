// SPDX-License-Identifier: Apache-2.0
// The recipe that ships: it finds the largest batch, and doubles it when the loss is flat.
#include "headroom/preset.h"

#include "lua/recipe_run.h"

static recipe_run run_recipe(int argc, char **argv)
{
    recipe_run r = {.file = "scripts/recipes/largest_batch.lua"};
    hr_preset_search_beside(".");
    recipe_start(&r, argc, argv, &test_limits);
    return r;
}

static void expect_story(int argc, char **argv, const char *story)
{
    recipe_run r = run_recipe(argc, argv);
    ck_assert_msg(r.code == 0, "%s%s", r.out, r.notes);
    ck_assert_str_eq(r.out, story);
    ck_assert_str_eq(r.notes, "");
    free(r.out);
    free(r.notes);
}

START_TEST(the_largest_batch_of_the_demo_is_found_and_doubled)
{
    char device[] = "device.kind=plan";
    expect_story(1, (char *[]){device},
                 "demo under 64.00 MiB: batch 136 fits, 144 does not (10 plans)\n"
                 "step 20: no loss to wait for; batch 272 under 128.0 MiB from here\n"
                 "peak 63.97 MiB under 64.00 MiB\n"
                 "peak 127.9 MiB under 128.0 MiB\n");
}
END_TEST

START_TEST(a_card_that_is_full_is_not_doubled)
{
    char name[] = "cifar10_separable_cnn", device[] = "device.kind=plan", vram[] = "device.vram=";
    char card[] = "device.card=rtx3060-12g";
    recipe_run r = run_recipe(4, (char *[]){name, device, vram, card});
    ck_assert_msg(r.code == 0, "%s%s", r.out, r.notes);
    ck_assert_ptr_nonnull(strstr(r.out, "no doubling: device.vram: card rtx3060-12g has 12GiB"));
    free(r.out);
    free(r.notes);
}
END_TEST

START_TEST(a_cap_that_holds_nothing_fails_the_check)
{
    char device[] = "device.kind=plan", vram[] = "device.vram=1MiB";
    recipe_run r = run_recipe(2, (char *[]){device, vram});
    ck_assert_int_eq(r.code, 1);
    ck_assert_ptr_nonnull(strstr(r.notes, "a batch of 8 fits 1.00 MiB"));
    free(r.out);
    free(r.notes);
}
END_TEST

static const char small_preset[] = "device: {kind: reference, vram: 768KiB}\n"
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
    recipe_put(&r, "small.yaml", small_preset, strlen(small_preset));
    (void)snprintf(path, sizeof path, "%s/small.yaml", r.folder);
    (void)snprintf(r.file, sizeof r.file, "scripts/recipes/largest_batch.lua");
    char steps[] = "train.steps=40";
    recipe_start(&r, 2, (char *[]){path, steps}, &test_limits);
    ck_assert_msg(r.code == 0, "%s%s", r.out, r.notes);
    ck_assert_ptr_nonnull(strstr(r.out, "loss 2."));
    ck_assert_ptr_nonnull(strstr(r.out, " in 40 steps\n"));
    recipe_drop(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_recipe");
    TCase *tc = tcase_create("recipe");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_largest_batch_of_the_demo_is_found_and_doubled);
    tcase_add_test(tc, a_card_that_is_full_is_not_doubled);
    tcase_add_test(tc, a_cap_that_holds_nothing_fails_the_check);
    tcase_add_test(tc, it_trains);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
