// SPDX-License-Identifier: Apache-2.0
// Configurations that are kept: a preset that is written opens as the knobs that were turned, and a framework's lines say
// every knob that is not at its default.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/knob_export.h"

#include "base/hash.h"
#include "base/host_mem.h"

static hr_preset *preset;
static char folder[64];

static void set_up(void)
{
    ck_assert_int_eq(hr_preset_open("presets/demo.yaml", false, &preset, NULL, NULL), HR_OK);
    strcpy(folder, "/tmp/headroom-export-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    hr_preset_close(preset);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(hr_host_mem_live(), 0);
}

// A text that the knob takes is set, another is left.
static void try_text(hr_knobs *knobs, hr_knob_id id, const char *text)
{
    const hr_status status = hr_knobs_set(knobs, id, text, NULL);
    ck_assert(status == HR_OK || status == HR_KNOB);
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = hash64_mix(*state, 5);
    return *state % below;
}

// A few knobs at values of their own; texts with what YAML must quote.
static hr_knobs turned(uint64_t seed)
{
    static const char *const texts[] = {"a b", "x: \"y\"", "back\\slash", "# none", "'", "-"};
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[k];
        char number[32];
        if (draw(&seed, 3) != 0) {
            continue;
        }
        if (row->type == HR_KNOB_CHOICE) {
            size_t count = 0;
            while (row->choices[count] != NULL) {
                count++;
            }
            ck_assert_int_eq(hr_knobs_set(&knobs, row->id, row->choices[draw(&seed, count)], NULL), HR_OK);
        } else if (row->type == HR_KNOB_TEXT) {
            try_text(&knobs, row->id, texts[draw(&seed, sizeof texts / sizeof *texts)]);
        } else {
            const double part = (double)draw(&seed, 1000) / 1000,
                         value = row->min + part * (row->max - row->min);
            (void)snprintf(number, sizeof number, row->type == HR_KNOB_REAL ? "%.17g" : "%.0f", value);
            ck_assert_int_eq(hr_knobs_set(&knobs, row->id, number, NULL), HR_OK);
        }
    }
    try_text(&knobs, HR_KNOB_DEVICE_CARD, ""); // one that exists, or a preset is refused
    try_text(&knobs, HR_KNOB_TRAIN_SAVE, "");
    try_text(&knobs, HR_KNOB_TRAIN_RESUME, "");
    return knobs;
}

START_TEST(a_written_preset_opens_as_what_was_turned)
{
    char path[128], *problems = NULL, one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    hr_preset *opened = NULL;
    hr_err err = {0};
    const hr_knobs knobs = turned((uint64_t)_i + 1);
    (void)snprintf(path, sizeof path, "%s/mine.yaml", folder);
    ck_assert_msg(hr_knob_export_file("preset", preset, &knobs, path, false, &err) == HR_OK, "%s",
                  err.sentence);
    const hr_status status = hr_preset_open(path, true, &opened, &problems, &err);
    ck_assert_msg(status == HR_OK, "%s", problems == NULL ? err.sentence : problems);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_id id = (hr_knob_id)k;
        const char *had = hr_knob_format(hr_preset_knobs(opened), id, other),
                   *wanted = hr_knob_format(&knobs, id, one);
        const char *tail =
            strrchr(had, '/') == NULL ? had : strrchr(had, '/') + 1; // these paths count from the file
        const bool is_path = id == HR_KNOB_PIPELINE_PATH || id == HR_KNOB_PIPELINE_CACHE_PATH;
        ck_assert_msg(strcmp(wanted, is_path ? tail : had) == 0, "%s is %s, was %s",
                      hr_knob_rows(NULL)[k].key, had, wanted);
    }
    hr_preset_close(opened);
    // What is there stays.
    ck_assert_int_eq(hr_knob_export_file("keras", preset, &knobs, path, false, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "is there already"));
    // Unless it is to be replaced.
    ck_assert_int_eq(hr_knob_export_file("preset", preset, hr_preset_knobs(preset), path, true, &err), HR_OK);
    ck_assert_int_eq(hr_preset_open(path, true, &opened, NULL, &err), HR_OK);
    ck_assert_str_eq(hr_knob_format(hr_preset_knobs(opened), HR_KNOB_BATCH_SIZE, one),
                     hr_knob_format(hr_preset_knobs(preset), HR_KNOB_BATCH_SIZE, other));
    hr_preset_close(opened);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

// From the folder that it was named in, whatever folder the new preset is written to.
START_TEST(a_relative_folder_is_written_as_the_folder_that_it_is)
{
    char path[128], here[1024], *problems = NULL;
    hr_preset *opened = NULL;
    hr_err err = {0};
    hr_knobs knobs = *hr_preset_knobs(preset);
    (void)snprintf(path, sizeof path, "%s/mine.yaml", folder);
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_CACHE_PATH, ".", NULL), HR_OK);
    ck_assert_msg(hr_knob_export_file("preset", preset, &knobs, path, false, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(hr_preset_open(path, true, &opened, &problems, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(hr_knob_text(hr_preset_knobs(opened), HR_KNOB_PIPELINE_CACHE_PATH), here);
    hr_preset_close(opened);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static void write_text(const char *path, const char *words)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(words, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

// What is extended is called from the folder of the new file: both may be moved together.
START_TEST(what_is_extended_is_called_from_the_new_file)
{
    static const struct {
        const char *base, *made, *line;
    } cases[] = {
        {"a/base.yaml", "a/made.yaml", "\"base.yaml\""},
        {"a/base.yaml", "made.yaml", "\"a/base.yaml\""},
        {"base.yaml", "a/made.yaml", "\"../base.yaml\""},
        {"a/base.yaml", "ab/c/made.yaml", "\"../../a/base.yaml\""},
    };
    static const char *const folders[] = {"a", "ab", "ab/c"};
    char path[4][160];
    hr_err err = {0};
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0);
    for (size_t k = 0; k < 3; k++) {
        (void)snprintf(path[k], sizeof path[k], "%s/%s", folder, folders[k]);
        ck_assert_int_eq(mkdir(path[k], 0700), 0);
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char base[160], made[160], line[200], *text = NULL;
        hr_preset *own = NULL, *opened = NULL;
        const bool leaves = strstr(cases[k].line, "..") != NULL;
        (void)snprintf(base, sizeof base, "%s/%s", folder, cases[k].base);
        (void)snprintf(made, sizeof made, "%s/%s", folder, cases[k].made);
        (void)snprintf(line, sizeof line, "%sextends: %s\n",
                       leaves ? "# opened with --trust, because the file it extends lies elsewhere\n" : "",
                       cases[k].line);
        write_text(base, "extends: demo\nbatch: {size: 7}\n");
        ck_assert_int_eq(hr_preset_open(base, false, &own, NULL, &err), HR_OK);
        ck_assert_int_eq(hr_knob_export("preset", own, hr_preset_knobs(own), made, &text, &err), HR_OK);
        ck_assert_str_eq(text, line);
        write_text(made, text);
        ck_assert_int_eq(hr_preset_open(made, false, &opened, NULL, &err), leaves ? HR_PRESET : HR_OK);
        hr_preset_close(opened);
        ck_assert_int_eq(hr_preset_open(made, true, &opened, NULL, &err), HR_OK);
        ck_assert_int_eq(hr_knob_int(hr_preset_knobs(opened), HR_KNOB_BATCH_SIZE), 7);
        hr_preset_close(opened);
        hr_preset_close(own);
        hr_knob_export_free(text);
        ck_assert_int_eq(unlink(base), 0);
        ck_assert_int_eq(unlink(made), 0);
    }
    for (size_t k = 3; k-- > 0;) {
        ck_assert_int_eq(rmdir(path[k]), 0);
    }
}
END_TEST

// A cache that lies below it needs no trust.
START_TEST(a_folder_below_the_new_file_is_called_from_there)
{
    char path[128], below[128];
    hr_preset *opened = NULL;
    hr_err err = {0};
    hr_knobs knobs = *hr_preset_knobs(preset);
    (void)snprintf(path, sizeof path, "%s/mine.yaml", folder);
    (void)snprintf(below, sizeof below, "%s/cache", folder);
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0); // the demo is known by name
    ck_assert_int_eq(mkdir(below, 0700), 0);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_CACHE_PATH, below, NULL), HR_OK);
    ck_assert_msg(hr_knob_export_file("preset", preset, &knobs, path, false, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(hr_preset_open(path, false, &opened, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(hr_knob_text(hr_preset_knobs(opened), HR_KNOB_PIPELINE_CACHE_PATH), below);
    hr_preset_close(opened);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(below), 0);
}
END_TEST

START_TEST(no_knob_is_left_out)
{
    const hr_knobs knobs = turned((uint64_t)_i + 1);
    hr_knobs defaults;
    hr_knobs_init(&defaults);
    for (size_t form = 1; hr_knob_export_form(form) != NULL; form++) {
        char *text = NULL, value[HR_KNOB_TEXT_MAX], otherwise[HR_KNOB_TEXT_MAX], said[2 * HR_KNOB_TEXT_MAX];
        ck_assert_int_eq(hr_knob_export(hr_knob_export_form(form), preset, &knobs, NULL, &text, NULL), HR_OK);
        for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
            const char *now = hr_knob_format(&knobs, (hr_knob_id)k, value);
            (void)snprintf(said, sizeof said, " %s=%s", hr_knob_rows(NULL)[k].key, now);
            const bool keras = strcmp(hr_knob_export_form(form), "keras") == 0;
            const char *own = keras ? "tensorflow" : hr_knob_export_form(form);
            if (k == HR_KNOB_EXECUTION_AS && strcmp(now, own) == 0) {
                ck_assert_msg(strstr(text, said) == NULL, "%s in\n%s", said, text); // all of it is
            } else if (strcmp(now, hr_knob_format(&defaults, (hr_knob_id)k, otherwise)) != 0) {
                ck_assert_msg(strstr(text, said) != NULL, "%s: no '%s' in\n%s", hr_knob_export_form(form),
                              said, text);
            }
        }
        hr_knob_export_free(text);
    }
}
END_TEST

START_TEST(every_failed_allocation_is_survived)
{
    const hr_knobs knobs = turned(7);
    for (size_t form = 0; hr_knob_export_form(form) != NULL; form++) {
        hr_status status = HR_NOMEM;
        for (uint64_t nth = 1; status == HR_NOMEM; nth++) {
            char *text = NULL;
            (void)hr_host_mem_fail_at(nth);
            status = hr_knob_export(hr_knob_export_form(form), preset, &knobs, NULL, &text, NULL);
            (void)hr_host_mem_fail_at(0);
            ck_assert((status == HR_OK) == (text != NULL));
            hr_knob_export_free(text);
        }
        ck_assert_int_eq(status, HR_OK);
    }
}
END_TEST

START_TEST(frameworks_say_what_people_look_for)
{
    static const struct {
        const char *pairs[4], *pytorch, *keras;
    } rows[] = {
        {{"precision.policy=mixed_bfloat16"},
         "torch.autocast(\"cuda\", dtype=torch.bfloat16)",
         "set_dtype_policy(\"mixed_bfloat16\")"},
        {{"compress.lora=8"}, "r=8, lora_alpha=8, target_modules", "enable_lora(8, lora_alpha=8)"},
        {{"compress.lora=8", "compress.lora_alpha=16"},
         "r=8, lora_alpha=16",
         "enable_lora(8, lora_alpha=16)"},
        {{"compress.prune=constant:0.5:10"},
         "prune.l1_unstructured(layer, \"weight\", amount=0.5)",
         "ConstantSparsity(0.5, 10, -1, 100))"},
        {{"compress.prune=polynomial:0.25:0.8:0:1000", "compress.prune_structure=block:4x2"},
         "has no schedule",
         "PolynomialDecay(0.25, 0.8, 0, 1000,\n#     power=3, frequency=100))"},
        {{"compress.prune=polynomial:0.25:0.8:0:1000", "compress.prune_structure=block:4x2"},
         "# compress.prune_structure=block:4x2: PyTorch has no such thing",
         "block_size=(4, 2)"},
        {{"compress.quantize=qat"}, "torch.ao.quantization has another scheme", "quantize_model(model)"},
        {{"compress.quantize=int8"}, "torch.ao.quantization has another scheme", "layer.quantize(\"int8\")"},
        {{"checkpoint.strategy=blocks"}, "checkpoint(block, x, use_reentrant=False)", "keras.remat(block)"},
        {{"batch.accumulate=4"}, "(loss / 4).backward()", "gradient_accumulation_steps = 4"},
        {{"allocator.kind=caching", "allocator.expandable_segments=on", "allocator.max_split=128MiB"},
         "os.environ[\"PYTORCH_ALLOC_CONF\"] = \"expandable_segments:True,max_split_size_mb:128\"",
         "# allocator.kind=caching: no counterpart"},
        {{"allocator.growth=on"}, "# allocator.growth=on: PyTorch has no such thing", "set_memory_growth("},
        {{"optimizer.kind=adamw", "optimizer.beta2=0.95"},
         "torch.optim.AdamW(model.parameters(), lr=0.001, betas=(0.9, 0.95), eps=1e-7, weight_decay=0.004)",
         "keras.optimizers.AdamW(learning_rate=0.001, beta_2=0.95)"},
        {{"optimizer.kind=adamw", "optimizer.weight_decay=0.1", "execution.as=pytorch"},
         "torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.1)\n",
         "# execution.as=pytorch: no counterpart"},
        {{"optimizer.epsilon=1e-6", "execution.as=pytorch"}, "lr=0.001, eps=1e-06)\n", "epsilon=1e-06"},
        {{"optimizer.form=torch"}, "torch.optim.Adam(model.parameters(), lr=0.001)", "epsilon=1e-8"},
        {{"execution.mode=graph"}, "torch.compile(model)", "jit_compile=True"},
        {{"offload.activations=on"},
         "save_on_cpu(pin_memory=True)",
         "# offload.activations=on: Keras has no such thing"},
        {{"execution.inplace=off"},
         "# execution.inplace=off: no counterpart",
         "# execution.inplace=off: no counterpart"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_knobs knobs = *hr_preset_knobs(preset);
        for (size_t p = 0; p < 4 && rows[k].pairs[p] != NULL; p++) {
            ck_assert_int_eq(hr_knobs_set_pair(&knobs, rows[k].pairs[p], NULL), HR_OK);
        }
        char *torch = NULL, *keras = NULL;
        ck_assert_int_eq(hr_knob_export("pytorch", preset, &knobs, NULL, &torch, NULL), HR_OK);
        ck_assert_int_eq(hr_knob_export("keras", preset, &knobs, NULL, &keras, NULL), HR_OK);
        ck_assert_msg(strstr(torch, rows[k].pytorch) != NULL, "%s in\n%s", rows[k].pytorch, torch);
        ck_assert_msg(strstr(keras, rows[k].keras) != NULL, "%s in\n%s", rows[k].keras, keras);
        hr_knob_export_free(torch);
        hr_knob_export_free(keras);
    }
}
END_TEST

// Python itself says whether it is Python, where there is one.
START_TEST(the_lines_are_python)
{
    char command[256], path[128];
    if (system("python3 --version >/dev/null 2>&1") != 0) {
        return;
    }
    (void)snprintf(
        command, sizeof command,
        "cd %s && python3 -c 'import ast, glob; [ast.parse(open(f).read()) for f in glob.glob(\"*\")]'",
        folder);
    for (size_t form = 1; hr_knob_export_form(form) != NULL; form++) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
            const hr_knobs knobs = turned(seed);
            (void)snprintf(path, sizeof path, "%s/%d.%s", folder, (int)seed, hr_knob_export_form(form));
            ck_assert_int_eq(
                hr_knob_export_file(hr_knob_export_form(form), preset, &knobs, path, false, NULL), HR_OK);
        }
    }
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(command, sizeof command, "rm %s/*", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("knob export");
    TCase *all = tcase_create("forms");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, a_written_preset_opens_as_what_was_turned, 0, 40);
    tcase_add_loop_test(all, no_knob_is_left_out, 0, 20);
    tcase_add_test(all, a_relative_folder_is_written_as_the_folder_that_it_is);
    tcase_add_test(all, what_is_extended_is_called_from_the_new_file);
    tcase_add_test(all, a_folder_below_the_new_file_is_called_from_there);
    tcase_add_test(all, every_failed_allocation_is_survived);
    tcase_add_test(all, frameworks_say_what_people_look_for);
    tcase_add_test(all, the_lines_are_python);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
