// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/preset.h: what extends and model take, where values come from, where names are searched,
// what a stranger's file may not name, and every problem of a file in one go.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "base/host_mem.h"
#include "knobs/preset_model.h"

static char folder[64];
static hr_preset *preset;
static char *problems;
static hr_err err;

// ---- files ----------------------------------------------------------------------------------------------------

static const char *path_of(const char *leaf)
{
    static char path[4][256];
    static unsigned turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, leaf);
    return out;
}

static const char *write_preset(const char *leaf, const char *words)
{
    FILE *f = fopen(path_of(leaf), "w");
    ck_assert_ptr_nonnull(f);
    fputs(words, f);
    fclose(f);
    return path_of(leaf);
}

static void setup(void)
{
    strcpy(folder, "/tmp/headroom-preset-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    mkdir(path_of("models"), 0700);
    mkdir(path_of("home"), 0700);
    setenv("XDG_DATA_HOME", path_of("home"), 1);
    unsetenv("HEADROOM_DATA");
    hr_preset_search_beside("");
    memset(&err, 0, sizeof err);
}

static void close_preset(void)
{
    hr_preset_close(preset);
    hr_preset_problems_free(problems);
    preset = NULL;
    problems = NULL;
}

static void teardown(void)
{
    char command[128];
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void open_good(const char *name)
{
    hr_status status = hr_preset_open(name, false, &preset, &problems, &err);
    ck_assert_msg(status == HR_OK, "%s", problems != NULL ? problems : err.sentence);
    ck_assert_ptr_null(problems);
}

// Opens a preset that must be refused; the problems without the folder of the test.
static const char *open_bad(const char *name)
{
    static char shown[8192];
    ck_assert_int_eq(hr_preset_open(name, false, &preset, &problems, &err), HR_PRESET);
    ck_assert_ptr_null(preset);
    ck_assert_ptr_nonnull(problems);
    size_t used = 0, skip = strlen(folder) + 1;
    for (const char *at = problems; *at != '\0' && used + 1 < sizeof shown; at++) {
        at += strncmp(at, folder, skip - 1) == 0 ? skip : 0;
        shown[used++] = *at;
    }
    shown[used] = '\0';
    return shown;
}

static int64_t batch_size(void)
{
    return hr_knob_int(hr_preset_knobs(preset), HR_KNOB_BATCH_SIZE);
}

static const char *model_name(void)
{
    yaml_file *file;
    return yaml_find(preset_model(preset, &file), "name")->text;
}

// ---- extends and model ----------------------------------------------------------------------------------------

START_TEST(extends_takes_everything_and_the_derived_wins)
{
    write_preset("base.yaml", "model: {name: b}\nbatch: {size: 8, remainder: keep}\ntrain: {seed: 7}\n");
    open_good(write_preset("top.yaml", "extends: base\nbatch: {size: 16}\n"));
    const hr_knobs *knobs = hr_preset_knobs(preset);
    ck_assert_str_eq(hr_preset_name(preset), "top");
    hr_preset *again;
    ck_assert_int_eq(hr_preset_open(hr_preset_path(preset), hr_preset_trusts(preset), &again, NULL, NULL),
                     HR_OK);
    ck_assert_str_eq(hr_preset_name(again), "top");
    hr_preset_close(again);
    ck_assert_str_eq(model_name(), "b");
    ck_assert_int_eq(batch_size(), 16);
    ck_assert(hr_knob_is(knobs, HR_KNOB_BATCH_REMAINDER, "keep"));
    ck_assert_int_eq(hr_knob_int(knobs, HR_KNOB_TRAIN_SEED), 7);
    ck_assert(!hr_knob_is_set(knobs, HR_KNOB_TRAIN_STEPS));
}
END_TEST

START_TEST(values_say_where_they_came_from)
{
    write_preset("base.yaml", "model: {name: b}\nbatch:\n  size: 8\n  remainder: keep\n");
    open_good(write_preset("top.yaml", "extends: base\nbatch: {size: 16}\n"));
    const hr_origin *size = hr_preset_origin(preset, HR_KNOB_BATCH_SIZE);
    const hr_origin *remainder = hr_preset_origin(preset, HR_KNOB_BATCH_REMAINDER);
    ck_assert_str_eq(size->file, path_of("top.yaml"));
    ck_assert_uint_eq(size->line, 2);
    ck_assert_uint_eq(size->column, 15);
    ck_assert_str_eq(remainder->file, path_of("base.yaml"));
    ck_assert_uint_eq(remainder->line, 4);
    ck_assert_str_eq(hr_preset_origin(preset, HR_KNOB_TRAIN_SEED)->file, "");
    ck_assert_uint_eq(hr_preset_origin(preset, HR_KNOB_TRAIN_SEED)->line, 0);
}
END_TEST

START_TEST(a_model_by_name_takes_the_model_only)
{
    write_preset("deep.yaml", "model: {name: deep}\nbatch: {size: 9}\n");
    write_preset("models/named.yaml", "extends: ../deep\nbatch: {size: 8}\n");
    ck_assert_int_eq(hr_preset_open(write_preset("top.yaml", "model: named\ntrain: {seed: 3}\n"), true,
                                    &preset, &problems, &err),
                     HR_OK);
    ck_assert_str_eq(model_name(), "deep");
    ck_assert_int_eq(batch_size(), 32);
    ck_assert_int_eq(hr_knob_int(hr_preset_knobs(preset), HR_KNOB_TRAIN_SEED), 3);
    yaml_file *file;
    (void)preset_model(preset, &file);
    ck_assert_ptr_nonnull(strstr(yaml_name(file), "deep.yaml"));
}
END_TEST

START_TEST(a_model_of_its_own_replaces_that_of_the_base)
{
    write_preset("base.yaml", "model: {name: b}\nbatch: {size: 8}\n");
    open_good(write_preset("top.yaml", "extends: base\nmodel: {name: own}\n"));
    ck_assert_str_eq(model_name(), "own");
    ck_assert_int_eq(batch_size(), 8);
}
END_TEST

START_TEST(a_relative_data_path_counts_from_its_file)
{
    write_preset("models/base.yaml", "model: {name: b}\npipeline: {path: data/x.tar.gz}\n");
    open_good(write_preset("top.yaml", "extends: models/base\n"));
    ck_assert_str_eq(hr_knob_text(hr_preset_knobs(preset), HR_KNOB_PIPELINE_PATH),
                     path_of("models/data/x.tar.gz"));
    close_preset();
    open_good(write_preset("top.yaml", "extends: models/base\npipeline: {path: /srv/x}\n"));
    ck_assert_str_eq(hr_knob_text(hr_preset_knobs(preset), HR_KNOB_PIPELINE_PATH), "/srv/x");
    close_preset();
    open_good(write_preset("top.yaml", "model: {name: m}\npipeline: {cache: file, cache_path: models}\n"));
    ck_assert_str_eq(hr_knob_text(hr_preset_knobs(preset), HR_KNOB_PIPELINE_CACHE_PATH), path_of("models"));
}
END_TEST

// ---- what is refused ------------------------------------------------------------------------------------------

static const struct {
    const char *words;
    const char *line; // of the problems
} bad[] = {
    {"model: {name: m}\nexecution: {precison: graph}\n",
     "bad.yaml:2:13: unknown key 'precison' in 'execution' — did you mean 'precision' at the left margin?"},
    {"model: {name: m}\nbatch: {sise: 3}\n",
     "bad.yaml:2:9: unknown key 'sise' in 'batch' — did you mean 'size'?"},
    {"model: {name: m}\ntrain: {batch: 32}\n",
     "bad.yaml:2:9: unknown key 'batch' in 'train' — it belongs at the left margin"},
    {"model: {name: m}\ntrain: {growth: on}\n",
     "bad.yaml:2:9: unknown key 'growth' in 'train' — it belongs under 'allocator'"},
    {"model: {name: m}\nkind: cpu\n",
     "bad.yaml:2:1: unknown key 'kind' — it belongs under 'device' or 'allocator' or 'optimizer'"},
    {"model: {name: m}\nbatch.size: 3\n",
     "bad.yaml:2:1: unknown key 'batch.size' — write 'size:' indented below 'batch:'"},
    {"model: {name: m}\nbathc: {size: 3}\n", "bad.yaml:2:1: unknown key 'bathc' — did you mean 'batch'?"},
    {"model: {name: m}\ntrain: {learning_rat: 3}\n",
     "bad.yaml:2:9: unknown key 'learning_rat' in 'train' — did you mean optimizer.learning_rate?"},
    {"model: {name: m}\nbatch: {xylophone: 3}\n",
     "bad.yaml:2:9: unknown key 'xylophone' in 'batch': it has size, accumulate, remainder"},
    {"model: {name: m}\nbatch: 32\n",
     "bad.yaml:2:8: 'batch' needs keys indented below it: size, accumulate, remainder"},
    {"model: {name: m}\nbatch: {size: [3]}\n",
     "bad.yaml:2:15: batch.size: needs one value, had a list or a mapping"},
    {"model: {name: m}\nbatch: {size: }\n", "bad.yaml:2:15: batch.size: has no value"},
    {"model: {name: m}\nbatch: {size: \"32\"}\n",
     "bad.yaml:2:15: batch.size: a quoted value is text: take the quotes away"},
    {"model: {name: m}\nbatch: {size: 32abc}\n",
     "bad.yaml:2:15: batch.size: needs a whole number from 1 to 1048576 (samples), had '32abc'"},
    {"model: {name: m}\nallocator: {growth: maybe}\n",
     "bad.yaml:2:21: allocator.growth: needs one of off, on, had 'maybe'"},
    {"model: {name: m}\nprecision: {policy: amp}\n", "bad.yaml:2:21: precision.policy: needs one of float32, "
                                                     "mixed_float16, mixed_bfloat16, float16, bfloat16, "
                                                     "float64, had 'amp' — did you mean 'mixed_float16'?"},
    {"model: {name: m}\ndevice: {card: rtx0}\n",
     "bad.yaml:2:16: no card is called 'rtx0'; there are l4-24g, rtx2060-6g, rtx2070-8g, rtx2080-8g, "
     "rtx3050-6g, rtx3050-8g, rtx3060-8g, rtx3070-8g, rtx4060-8g, rtx5050-8g, …"},
    {"model: {name: m}\ntitle: [a]\n", "bad.yaml:2:8: 'title' needs a text"},
    {"batch: {size: 3}\n", "bad.yaml:1:1: no model: needed 'model:' or 'extends:', had neither"},
    {"", "bad.yaml:1:1: a preset begins with keys, such as 'model:' or 'extends:'"},
    {"- a\n", "bad.yaml:1:1: a preset begins with keys, such as 'model:' or 'extends:'"},
    {"model: [a]\n", "bad.yaml:1:8: 'model' needs the name of a preset"},
    {"extends: nowhere\n", "bad.yaml:1:10: no preset 'nowhere' beside this file or by name"},
    {"extends: ./nowhere\n", "bad.yaml:1:10: no preset './nowhere' beside this file or by name"},
    {"extends: ../other\n", "bad.yaml:1:10: '../other' leaves the folder of this file: needs --trust"},
    {"extends: models/../../other\n",
     "bad.yaml:1:10: 'models/../../other' leaves the folder of this file: needs --trust"},
    {"model: /etc/passwd\n", "bad.yaml:1:8: '/etc/passwd' leaves the folder of this file: needs --trust"},
    {"train: {save: ../x.safetensors}\n",
     "bad.yaml:1:15: train.save '../x.safetensors' leaves this folder: needs --trust"},
    {"train: {resume: /x.safetensors}\n",
     "bad.yaml:1:17: train.resume '/x.safetensors' leaves this folder: needs --trust"},
    {"pipeline: {cache: file, cache_path: /srv/cache}\n",
     "bad.yaml:1:37: pipeline.cache_path '/srv/cache' leaves this folder: needs --trust"},
    {"pipeline: {cache: file, cache_path: a/../../b}\n",
     "bad.yaml:1:37: pipeline.cache_path 'a/../../b' leaves this folder: needs --trust"},
    {"extends: bad\n", "bad.yaml:1:10: 'extends: bad' leads back to this preset itself"},
    {"model: without\n", "bad.yaml:1:8: preset 'without' has no model"},
};

START_TEST(each_mistake_has_its_place_and_sentence)
{
    write_preset("without.yaml", "batch: {size: 3}\n");
    const char *shown = open_bad(write_preset("bad.yaml", bad[_i].words));
    ck_assert_msg(strncmp(shown, bad[_i].line, strlen(bad[_i].line)) == 0 &&
                      shown[strlen(bad[_i].line)] == '\n',
                  "needed %s\nhad %s", bad[_i].line, shown);
    ck_assert_ptr_nonnull(strstr(err.sentence, "bad.yaml:"));
}
END_TEST

START_TEST(a_link_does_not_lead_out_of_the_folder)
{
    char secret[] = "/tmp/headroom-secret-XXXXXX";
    const int fd = mkstemp(secret);
    ck_assert_int_eq(write(fd, "swordfish: 1\n", 13), 13);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(symlink(secret, path_of("away.yaml")), 0);
    static const char *const words[] = {"extends: away\n", "extends: ./away.yaml\n", "model: away\n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *shown = open_bad(write_preset("bad.yaml", words[i]));
        ck_assert_msg(strstr(shown, "is a link that leaves the folder of this file: needs --trust") != NULL,
                      "%s", shown);
        ck_assert_ptr_null(strstr(shown, "swordfish"));
        close_preset();
    }
    ck_assert_int_eq(unlink(secret), 0);
}
END_TEST

START_TEST(a_pipe_beside_a_preset_is_no_preset)
{
    ck_assert_int_eq(mkfifo(path_of("pipe.yaml"), 0600), 0);
    const char *shown = open_bad(write_preset("bad.yaml", "extends: ./pipe.yaml\n"));
    ck_assert_msg(strstr(shown, "needed a file, it is a pipe") != NULL, "%s", shown);
}
END_TEST

START_TEST(all_mistakes_of_all_files_come_at_once)
{
    write_preset("base.yaml", "model: {name: b}\nbatch: {size: x, sise: 4}\nbatch: {size: 3}\n");
    const char *shown = open_bad(write_preset("top.yaml", "extends: base\ntrain: {steps: -1}\ndevise: {}\n"));
    static const char *const lines[] = {
        "top.yaml:2:16: ", "top.yaml:3:1: ", "base.yaml:2:15: ", "base.yaml:2:18: ", "base.yaml:3:1: "};
    const char *at = shown;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = at == NULL ? NULL : strstr(at, lines[i]);
        ck_assert_msg(at != NULL, "%s misses or is out of order in\n%s", lines[i], shown);
    }
}
END_TEST

START_TEST(a_base_with_a_mistake_is_shown_once)
{
    write_preset("base.yaml", "model: {name: b}\nmodel: {name: c}\n");
    const char *shown = open_bad(write_preset("top.yaml", "extends: base\nmodel: base\n"));
    const char *first = strstr(shown, "stands twice");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "stands twice"));
}
END_TEST

START_TEST(eight_presets_may_stand_behind_each_other_and_not_nine)
{
    char leaf[24], words[64];
    write_preset("p1.yaml", "model: {name: m}\n");
    for (int i = 2; i <= 9; i++) {
        snprintf(leaf, sizeof leaf, "p%d.yaml", i);
        snprintf(words, sizeof words, "extends: p%d\n", i - 1);
        write_preset(leaf, words);
    }
    open_good(path_of("p8.yaml"));
    close_preset();
    const char *shown = open_bad(path_of("p9.yaml"));
    ck_assert_ptr_nonnull(strstr(shown, "p2.yaml:1:10: 'extends: p1' goes on for more than 8 presets"));
}
END_TEST

START_TEST(a_circle_of_two_is_found)
{
    write_preset("a.yaml", "extends: b\n");
    write_preset("b.yaml", "model: a\n");
    const char *shown = open_bad(path_of("a.yaml"));
    ck_assert_ptr_nonnull(strstr(shown, "b.yaml:1:8: 'model: a' leads back to this preset itself"));
}
END_TEST

// Every file names two others: a reader without a limit would open 2^8 of them.
START_TEST(a_fan_of_presets_ends_at_sixteen_files)
{
    char leaf[24], words[64];
    write_preset("p1.yaml", "model: {name: m}\n");
    for (int i = 2; i <= 8; i++) {
        snprintf(leaf, sizeof leaf, "p%d.yaml", i);
        snprintf(words, sizeof words, "extends: p%d\nmodel: p%d\n", i - 1, i - 1);
        write_preset(leaf, words);
    }
    ck_assert_ptr_nonnull(strstr(open_bad(path_of("p8.yaml")), "or 16 in all"));
}
END_TEST

START_TEST(trust_opens_other_folders)
{
    write_preset("base.yaml", "model: {name: b}\n");
    const char *top = write_preset("models/top.yaml", "extends: ../base\n");
    ck_assert_int_eq(hr_preset_open(top, true, &preset, &problems, &err), HR_OK);
    ck_assert_str_eq(model_name(), "b");
}
END_TEST

// ---- names ----------------------------------------------------------------------------------------------------

START_TEST(a_name_is_searched_in_home_then_data_then_beside)
{
    mkdir(path_of("home/headroom"), 0700);
    mkdir(path_of("home/headroom/presets"), 0700);
    mkdir(path_of("data"), 0700);
    mkdir(path_of("build"), 0700);
    mkdir(path_of("presets"), 0700);
    mkdir(path_of("presets/models"), 0700);
    write_preset("presets/models/x.yaml", "title: beside\nmodel: {name: beside}\n");
    hr_preset_search_beside(path_of("build"));
    open_good("x");
    ck_assert_str_eq(model_name(), "beside");
    close_preset();
    write_preset("data/x.yaml", "title: data\nmodel: {name: data}\n");
    setenv("HEADROOM_DATA", path_of("data"), 1);
    open_good("x");
    ck_assert_str_eq(model_name(), "data");
    close_preset();
    write_preset("home/headroom/presets/x.yaml", "title: home\nmodel: {name: home}\n");
    open_good("x");
    ck_assert_str_eq(model_name(), "home");

    hr_preset_entry *entries;
    size_t count;
    ck_assert_int_eq(hr_preset_list(NULL, &entries, &count, &err), HR_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(entries[0].title, "home");
    hr_preset_list_free(entries);
}
END_TEST

// A prefix inside of a checkout (build/stage) is an installation, not that checkout.
static void add_name(const char *name, void *context)
{
    char *names = context;
    const size_t used = strlen(names);
    (void)snprintf(names + used, 256 - used, " %s", name);
}

START_TEST(an_installed_program_finds_what_was_installed_with_it)
{
    static const char *const folders[] = {"presets",
                                          "presets/models",
                                          "stage",
                                          "stage/bin",
                                          "stage/share",
                                          "stage/share/headroom",
                                          "stage/share/headroom/presets",
                                          "stage/share/headroom/recipes",
                                          "scripts",
                                          "scripts/recipes"};
    char found[HR_RECIPE_PATH_MAX];
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        mkdir(path_of(folders[k]), 0700);
    }
    write_preset("presets/models/x.yaml", "model: {name: checkout}\n");
    write_preset("stage/share/headroom/presets/x.yaml", "model: {name: installed}\n");
    write_preset("stage/share/headroom/recipes/all.lua", "\n");
    write_preset("scripts/recipes/all.lua", "\n");
    write_preset("scripts/recipes/more.lua", "\n");
    hr_preset_search_beside(path_of("stage/bin"));
    open_good("x");
    ck_assert_str_eq(model_name(), "installed");
    ck_assert_int_eq(hr_recipe_find("all", found, &err), HR_OK);
    ck_assert_msg(strstr(found, "/share/headroom/recipes/all.lua") != NULL, "%s", found);
    ck_assert_int_eq(hr_recipe_find("more", found, &err), HR_OK);
    ck_assert_msg(strstr(found, "/scripts/recipes/more.lua") != NULL, "%s", found);
    ck_assert_int_eq(hr_recipe_find("./all.lua", found, &err), HR_OK); // a path is what it says
    ck_assert_str_eq(found, "./all.lua");
    ck_assert_int_eq(hr_recipe_find("mor", found, &err), HR_USAGE);
    ck_assert_msg(strstr(err.sentence, "there is no recipe 'mor'") != NULL, "%s", err.sentence);
    ck_assert_str_eq(err.hint, "headroom script more");
    write_preset("scripts/recipes/zero.lua", "\n");
    write_preset("scripts/recipes/early.lua", "\n");
    char names[256] = "";
    ck_assert(hr_recipe_list(add_name, names));
    ck_assert_msg(strstr(names, " all early more zero") != NULL, "%s", names); // in alphabetical order
}
END_TEST

static void count_name(const char *name, void *context)
{
    int *count = context;
    int number = -1;
    (void)sscanf(name, "many%3d", &number);
    ck_assert_msg(number == *count, "%s", name);
    ++*count;
}

START_TEST(every_recipe_of_a_folder_is_listed_in_order)
{
    enum { MANY = 150 };
    char file[64], found[HR_RECIPE_PATH_MAX];
    static const char *const folders[] = {"presets", "presets/models", "scripts", "scripts/recipes"};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        mkdir(path_of(folders[k]), 0700);
    }
    write_preset("presets/models/x.yaml", "model: {name: checkout}\n");
    for (int k = MANY; k-- > 0;) {
        (void)snprintf(file, sizeof file, "scripts/recipes/many%03d.lua", k);
        write_preset(file, "\n");
    }
    hr_preset_search_beside(folder);
    int count = 0;
    ck_assert(hr_recipe_list(count_name, &count));
    ck_assert_int_eq(count, MANY);
    ck_assert_int_eq(hr_recipe_find("many14", found, &err), HR_USAGE);
    const int64_t live = hr_host_mem_live();
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(hr_recipe_find("many14", found, &err), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(an_unknown_name_gets_the_known_ones)
{
    write_preset("demo.yaml", "model: {name: m}\n");
    setenv("HEADROOM_DATA", folder, 1);
    ck_assert_int_eq(hr_preset_open("dmeo", false, &preset, &problems, &err), HR_PRESET);
    ck_assert_str_eq(err.sentence, "no preset is called 'dmeo'; there are demo");
    ck_assert_str_eq(err.hint, "headroom plan demo");
    ck_assert_int_eq(hr_preset_open("../x", false, &preset, &problems, &err), HR_READ);
}
END_TEST

START_TEST(those_most_like_it_come_first_and_names_stay_whole)
{
    char file[64];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(file, sizeof file, "aaa_resnet_%02d.yaml", i);
        write_preset(file, "model: {name: m}\n");
    }
    write_preset("x_resnet.yaml", "model: {name: m}\n");
    write_preset("resnet50.yaml", "model: {name: m}\n");
    setenv("HEADROOM_DATA", folder, 1);
    ck_assert_int_eq(hr_preset_open("resnet", false, &preset, &problems, &err), HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, "there are resnet50, aaa_resnet_00, aaa_"));
    const char *end = strstr(err.sentence, ", …");
    ck_assert_ptr_nonnull(end);
    ck_assert_str_eq(end, ", …");
    ck_assert(end[-14] == ' ' && memcmp(end - 13, "aaa_resnet_", 11) == 0);
}
END_TEST

START_TEST(a_path_may_leave_the_ending_out)
{
    write_preset("x.yaml", "model: {name: m}\n");
    open_good(path_of("x"));
    ck_assert_str_eq(hr_preset_name(preset), "x");
}
END_TEST

// ---- what is shipped ------------------------------------------------------------------------------------------

START_TEST(every_shipped_preset_opens_validates_and_is_listed)
{
    hr_preset_entry *entries;
    size_t count;
    hr_preset_search_beside(".");
    ck_assert_int_eq(hr_preset_list(NULL, &entries, &count, &err), HR_OK);
    ck_assert_uint_ge(count, 4);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(entries[i].title[0] != '\0', "%s has no title", entries[i].name);
        open_good(entries[i].name);
        hr_status status = hr_knobs_validate(hr_preset_knobs(preset), &err);
        ck_assert_msg(status == HR_OK, "%s: %s", entries[i].name, err.sentence);
        close_preset();
    }
    hr_preset_list_free(entries);
}
END_TEST

START_TEST(the_demo_is_the_separable_cnn_on_64_mib)
{
    hr_preset_search_beside(".");
    open_good("demo");
    const hr_knobs *knobs = hr_preset_knobs(preset);
    ck_assert_str_eq(model_name(), "cifar10_separable_cnn");
    ck_assert_int_eq(batch_size(), 128);
    ck_assert_uint_eq(hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, 0), 64 << 20);
    ck_assert(hr_knob_is(knobs, HR_KNOB_EXECUTION_MODE, "eager"));
    ck_assert(hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, "adam"));
    ck_assert(hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cpu"));
}
END_TEST

// ---- faults ---------------------------------------------------------------------------------------------------

START_TEST(every_allocation_may_fail)
{
    write_preset("base.yaml", "model: {name: b}\nbatch: {size: 8}\n");
    const char *words = _i == 0 ? "extends: base\n" : "extends: base\nbatch: {sise: 1}\ntrain: {steps: x}\n";
    const char *top = write_preset("top.yaml", words);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_host_mem_fail_at(nth);
        hr_status status = hr_preset_open(top, false, &preset, &problems, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : _i == 0 ? HR_OK : HR_PRESET);
        close_preset();
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preset");
    TCase *tc = tcase_create("extends, problems, names, faults");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, extends_takes_everything_and_the_derived_wins);
    tcase_add_test(tc, values_say_where_they_came_from);
    tcase_add_test(tc, a_model_by_name_takes_the_model_only);
    tcase_add_test(tc, a_model_of_its_own_replaces_that_of_the_base);
    tcase_add_test(tc, a_relative_data_path_counts_from_its_file);
    tcase_add_loop_test(tc, each_mistake_has_its_place_and_sentence, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, a_link_does_not_lead_out_of_the_folder);
    tcase_add_test(tc, a_pipe_beside_a_preset_is_no_preset);
    tcase_add_test(tc, all_mistakes_of_all_files_come_at_once);
    tcase_add_test(tc, a_base_with_a_mistake_is_shown_once);
    tcase_add_test(tc, eight_presets_may_stand_behind_each_other_and_not_nine);
    tcase_add_test(tc, a_circle_of_two_is_found);
    tcase_add_test(tc, a_fan_of_presets_ends_at_sixteen_files);
    tcase_add_test(tc, trust_opens_other_folders);
    tcase_add_test(tc, a_name_is_searched_in_home_then_data_then_beside);
    tcase_add_test(tc, an_installed_program_finds_what_was_installed_with_it);
    tcase_add_test(tc, an_unknown_name_gets_the_known_ones);
    tcase_add_test(tc, every_recipe_of_a_folder_is_listed_in_order);
    tcase_add_test(tc, those_most_like_it_come_first_and_names_stay_whole);
    tcase_add_test(tc, a_path_may_leave_the_ending_out);
    tcase_add_test(tc, every_shipped_preset_opens_validates_and_is_listed);
    tcase_add_test(tc, the_demo_is_the_separable_cnn_on_64_mib);
    tcase_add_loop_test(tc, every_allocation_may_fail, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
