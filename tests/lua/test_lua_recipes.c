// SPDX-License-Identifier: Apache-2.0
// Every recipe that ships runs, on a small model, says what it is for, and is short enough to read on one screen.
#include <dirent.h>

#include "lua/recipe_run.h"

enum { ARGUMENTS_MAX = 6, LINES_MAX = 40 };

static const struct {
    const char *name, *arguments[ARGUMENTS_MAX];
    const char *says, *writes; // in what it prints; below headroom-out, NULL: nothing
    int code;
} recipes[] = {
    {"find_rate", {"small.yaml"}, "explodes at ", "find_rate.svg", 0},
    {"early_stop",
     {"small.yaml", "batch.size=500", "device.vram=64MiB", "train.steps=40"},
     "the best so far\nbest of step ",
     "best.safetensors",
     0},
    {"grow_batch", {"small.yaml"}, "step 50: batch 512 does not fit", NULL, 0},
    {"switch_precision", {"small.yaml", "train.steps=4"}, "mixed_bfloat16   steps to 4 ", NULL, 0},
    {"recover_oom", {"small.yaml", "batch.size=1024", "train.steps=2"}, "as batch 256 x 4, peak", NULL, 0},
    {"checkpoint_curve", {"demo"}, "without: 31.89 MiB\n", "checkpoint_curve.svg", 0},
    {"checkpoint_curve", {"resnet50"}, "checkpoint.strategy=every:16\n", "checkpoint_curve.svg", 0},
    {"compare_allocators", {"growth_boundary"}, "smallest pool of those that serve all: ", NULL, 0},
    {"compare_allocators", {"small.yaml"}, "\nsmallest pool of those that serve all: ", NULL, 0},
    {"compare_allocators", {"demo", "device.kind=plan", "execution.mode=graph"}, " all: static\n", NULL, 0},
    {"compare_allocators", {"no_such_thing"}, "", NULL, 3},
    {"prune_quantize",
     {"small.yaml", "batch.size=500", "device.vram=64MiB", "train.steps=10"},
     "pruned to 70 %",
     NULL,
     0},
    {"memory_check", {"demo", "64MiB"}, "peak 63.97 MiB, may be 64.00 MiB\n", NULL, 0},
    {"memory_check", {"demo", "32MiB", "batch.size=64"}, "may be 32.00 MiB\n", NULL, 1},
    {"memory_check", {"demo", "batch.size=256"}, "", NULL, 1},
    {"lever_ladder", {"resnet50"}, "\nmixed_bfloat16 ", NULL, 0},
    {"lever_ladder",
     {"demo", "precision.loss_scale=dynamic"},
     "\noptimizer on the host    refused: ",
     NULL,
     0},
    {"frontier", {"demo"}, " ms  ", "frontier.csv", 0},
    {"sweep_csv",
     {"small.yaml", "batch.size=8", "train.steps=1"},
     "headroom-out/sweep.csv\n",
     "sweep.csv",
     0},
    {"distill", {"small.yaml", "small.yaml", "6"}, "\ntaught ", "teacher.safetensors", 0},
    {"distill", {"small.yaml", "batch.size=4"}, "\nalone ", "teacher.safetensors", 0},
};

enum { RECIPES = sizeof recipes / sizeof *recipes };

static void start(recipe_run *r, int which)
{
    char here[512], *argv[ARGUMENTS_MAX + 1], words[ARGUMENTS_MAX][32];
    int argc = 0;
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    recipe_make(r);
    hr_preset_search_beside(here);
    recipe_put(r, "small.yaml", small_preset, strlen(small_preset));
    for (; argc < ARGUMENTS_MAX && recipes[which].arguments[argc] != NULL; argc++) {
        (void)snprintf(words[argc], sizeof words[argc], "%s%s",
                       strcmp(recipes[which].arguments[argc], "small.yaml") == 0 ? "./" : "",
                       recipes[which].arguments[argc]);
        argv[argc] = words[argc];
    }
    ck_assert_int_eq(chdir(r->folder), 0);
    const int length =
        snprintf(r->file, sizeof r->file, "%s/scripts/recipes/%s.lua", here, recipes[which].name);
    ck_assert_int_lt(length, (int)sizeof r->file);
    recipe_start(r, argc, argv, &test_limits);
    ck_assert_int_eq(chdir(here), 0);
}

START_TEST(it_runs)
{
    recipe_run r;
    char path[160];
    start(&r, _i);
    ck_assert_msg(r.code == recipes[_i].code && strstr(r.out, recipes[_i].says) != NULL, "%s: code %d\n%s%s",
                  recipes[_i].name, r.code, r.out, r.notes);
    for (char *line = strtok(r.out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(strlen(line) <= 80, "%s: '%s' is wider than 80", recipes[_i].name, line);
    }
    if (recipes[_i].writes != NULL) {
        (void)snprintf(path, sizeof path, "%s/headroom-out/%s", r.folder, recipes[_i].writes);
        ck_assert_msg(access(path, R_OK) == 0, "%s", path);
    }
    recipe_drop(&r);
}
END_TEST

static bool is_called(const char *recipe, const char *name, size_t length)
{
    return strlen(recipe) == length && strncmp(recipe, name, length) == 0;
}

static bool is_tested(const char *name, size_t length)
{
    bool tested =
        is_called("largest_batch", name, length) || is_called("what_fits", name, length); // by lua_recipe
    for (size_t k = 0; k < RECIPES; k++) {
        tested = tested || is_called(recipes[k].name, name, length);
    }
    return tested;
}

static void check_length(const char *name)
{
    char path[300], line[256];
    unsigned lines = 0;
    (void)snprintf(path, sizeof path, "scripts/recipes/%s", name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    while (fgets(line, sizeof line, f) != NULL) {
        lines++;
        ck_assert_msg(lines != 2 || strncmp(line, "-- ", 3) == 0, "%s: its second line says what it is for",
                      name);
        ck_assert_msg(strlen(line) <= 125, "%s: %s", name, line);
    }
    (void)fclose(f);
    ck_assert_msg(lines <= LINES_MAX || strcmp(name, "what_fits.lua") == 0, "%s has %u lines", name, lines);
}

START_TEST(every_recipe_is_short_and_tested)
{
    DIR *folder = opendir("scripts/recipes");
    unsigned count = 0;
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *leaf = readdir(folder); leaf != NULL; leaf = readdir(folder)) {
        const size_t length = strlen(leaf->d_name);
        if (length > 4 && strcmp(leaf->d_name + length - 4, ".lua") == 0) {
            ck_assert_msg(is_tested(leaf->d_name, length - 4), "%s has no test", leaf->d_name);
            check_length(leaf->d_name);
            count++;
        }
    }
    (void)closedir(folder);
    ck_assert_uint_ge(count, 15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lua_recipes");
    TCase *tc = tcase_create("recipes");
    tcase_set_timeout(tc, 300);
    for (int k = 0; k < RECIPES; k += HEADROOM_SANITIZED ? 3 : 1) {
        tcase_add_loop_test(tc, it_runs, k, k + 1);
    }
    tcase_add_test(tc, every_recipe_is_short_and_tested);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
