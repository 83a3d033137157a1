// SPDX-License-Identifier: Apache-2.0
// Promises of presets/models: the published numbers of parameters; a tiny one of each; every one names its card or
// its memory, opens without a complaint and compiles in both modes to a program that passes the checker.
#include <check.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"

#include "program/compile.h"
#include "program/model_checks.h"

typedef struct opened {
    hr_preset *preset;
    hr_model *model;
} opened;

static opened open_preset(const char *path)
{
    opened o = {0};
    char *problems = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(path, false, &o.preset, &problems, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(model_create(o.preset, hr_preset_knobs(o.preset), &o.model, &problems, &err) == HR_OK, "%s",
                  problems ? problems : err.sentence);
    assert_consistent(o.model);
    return o;
}

static void close_preset(opened *o)
{
    model_destroy(o->model);
    hr_preset_close(o->preset);
}

// Sources: torchvision's num_params for ResNet, ResNeXt, DenseNet, EfficientNet, MobileNet, RegNet, ConvNeXt, VGG and ViT; Keras
// applications' summary() for the two of Keras; the checkpoints' sizes for GPT-2 (tied output), BERT (encoder and
// pooler), Llama, Mistral, Qwen3, Gemma, Whisper and T5.
static const struct {
    const char *name;
    uint64_t trainable, statistics;
} published[] = {
    {"cifar10_separable_cnn", 695493, 0},
    {"mlp", 10510346, 0},
    {"resnet18_cifar", 11173962, 9600},
    {"resnet18", 11689512, 9600},
    {"resnet50", 25557032, 53120},
    {"resnet50_keras", 25583592, 53120},
    {"resnext50", 25028904, 68224},
    {"densenet121", 7978856, 83648},
    {"efficientnet_b0", 5288548, 42016},
    {"efficientnet_b4", 19341616, 125200},
    {"mobilenet_v3_large", 5483032, 24400},
    {"regnet_y_1_6gf", 11202430, 52672},
    {"convnext_t", 28589128, 0},
    {"convnext_b", 88591464, 0},
    {"swin_t", 28288354, 0},
    {"mobilenet_v2", 3504872, 34112},
    {"mobilenet_v2_keras", 3504872, 34112},
    {"vgg16", 138357544, 0},
    {"unet", 31037698, 11776},
    {"gpt2_124m", 124439808, 0},
    {"gpt2_355m", 354823168, 0},
    {"gpt2_1558m", 1557611200, 0},
    {"bert_base", 109482240, 0},
    {"vit_b16", 86567656, 0},
    {"lstm_lm_medium", 19775200, 0},
    {"llama3_2_1b", 1235814400, 0},
    {"llama3_2_3b", 3212749824, 0},
    {"llama3_1_8b", 8030261248, 0},
    {"mistral_7b", 7241732096, 0},
    {"mixtral_8x7b", 46702792704, 0},
    {"qwen3_0_6b", 596049920, 0},
    {"qwen3_8b", 8190735360, 0},
    {"gemma_2b", 2506172416, 0},
    {"whisper_small", 241734912, 0},
    {"t5_base", 222903552, 0},
};

// A tiny one stands for others of its structure.
static const char *tiny_of(const char *name)
{
    static const char *const stands_for[][2] = {
        {"efficientnet_b4", "efficientnet_b0"}, {"convnext_b", "convnext_t"},  {"llama3_2_3b", "llama3_2_1b"},
        {"llama3_1_8b", "llama3_2_1b"},         {"mistral_7b", "llama3_2_1b"}, {"qwen3_8b", "qwen3_0_6b"}};
    const char *tiny = name;
    for (size_t k = 0; k < sizeof stands_for / sizeof *stands_for; k++) {
        tiny = strcmp(stands_for[k][0], name) == 0 ? stands_for[k][1] : tiny;
    }
    return tiny;
}

static void path_of(const char *name, const char *suffix, char path[128])
{
    ck_assert_int_lt(snprintf(path, 128, "presets/models/%s%s.yaml", name, suffix), 128);
}

START_TEST(parameters_are_the_published_ones)
{
    char path[128];
    path_of(published[_i].name, "", path);
    opened o = open_preset(path);
    ck_assert_uint_eq(o.model->trainable_parameters, published[_i].trainable);
    ck_assert_uint_eq(o.model->parameters - o.model->trainable_parameters, published[_i].statistics);
    ck_assert_str_eq(o.model->name, published[_i].name);
    close_preset(&o);
}
END_TEST

static bool uses_op(const hr_model *m, hr_op op)
{
    for (uint32_t k = 0; k < m->node_count; k++) {
        if (m->nodes[k].op == op) {
            return true;
        }
    }
    return false;
}

// Of the same structure: every operation that the one uses, the other uses.
START_TEST(every_model_has_a_tiny_one_of_its_structure)
{
    char path[128], tiny_path[128];
    path_of(published[_i].name, "", path);
    path_of(tiny_of(published[_i].name), "_tiny", tiny_path);
    opened full = open_preset(path);
    opened tiny = open_preset(tiny_path);
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        ck_assert_msg(uses_op(full.model, op) == uses_op(tiny.model, op), "%s: %s", tiny_path, op_name(op));
    }
    ck_assert_uint_lt(tiny.model->parameters, 1000000);
    ck_assert_str_eq(hr_knob_text(hr_preset_knobs(tiny.preset), HR_KNOB_DEVICE_KIND), "cpu");
    close_preset(&full);
    close_preset(&tiny);
}
END_TEST

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_nothing(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

static void compile_and_check(const opened *o, const char *path, const char *mode)
{
    const hr_target target = {.name = "none", .key = 1, .ask = ask_nothing, .fuses = fuses_nothing};
    hr_knobs knobs = *hr_preset_knobs(o->preset);
    hr_err err = {0};
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_MODE, mode, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "plan", &err), HR_OK);
    for (program_mode kind = PROGRAM_TRAIN; kind <= PROGRAM_EVALUATE; kind++) {
        program *p = NULL;
        const uint32_t batch = (uint32_t)hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE);
        ck_assert_msg(program_compile(o->model, &knobs, kind, batch, &target, &p, &err) == HR_OK, "%s %s: %s",
                      path, mode, err.sentence);
        ck_assert_msg(program_check(p, &err) == HR_OK, "%s %s: %s", path, mode, err.sentence);
        program_destroy(p);
    }
}

static glob_t shipped;

START_TEST(every_preset_names_its_memory_and_compiles)
{
    const char *path = shipped.gl_pathv[_i];
    opened o = open_preset(path);
    const hr_knobs *knobs = hr_preset_knobs(o.preset);
    ck_assert_msg(hr_knob_text(knobs, HR_KNOB_DEVICE_CARD)[0] != '\0' ||
                      hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, 0) > 0,
                  "%s names neither device.card nor device.vram", path);
    if (strncmp(path, "presets/models/", 15) == 0) {
        compile_and_check(&o, path, "eager");
        compile_and_check(&o, path, "graph");
    } else { // an article's situation is one of the two
        compile_and_check(&o, path, hr_knob_text(knobs, HR_KNOB_EXECUTION_MODE));
    }
    close_preset(&o);
}
END_TEST

int main(void)
{
    setenv("HEADROOM_DATA", ".", 1); // tests start at the root of the tree
    glob("presets/models/*.yaml", 0, NULL, &shipped);
    glob("presets/articles/*.yaml", GLOB_APPEND, NULL, &shipped);
    Suite *suite = suite_create("presets");
    TCase *cases = tcase_create("models");
    tcase_add_loop_test(cases, parameters_are_the_published_ones, 0, COUNT(published));
    tcase_add_loop_test(cases, every_model_has_a_tiny_one_of_its_structure, 0, COUNT(published));
    tcase_add_loop_test(cases, every_preset_names_its_memory_and_compiles, 0, (int)shipped.gl_pathc);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    globfree(&shipped);
    return failed != 0 || COUNT(published) == 0;
}
