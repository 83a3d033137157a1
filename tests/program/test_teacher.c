// SPDX-License-Identifier: Apache-2.0
// A model with a teacher (compress.distill): what of it is in a training step, that nothing of it is in an evaluation, and what
// may not teach what.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "headroom/event.h"

#include "device/device.h"
#include "program/compile.h"
#include "program/compile_starved.h"

static char folder[] = "/tmp/headroom-teacher-XXXXXX";
static char path_text[160];

static const char *path_of(const char *name)
{
    (void)snprintf(path_text, sizeof path_text, "%s/%s.yaml", folder, name);
    return path_text;
}

static void write_file(const char *name, const char *words)
{
    FILE *f = fopen(path_of(name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(words, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

#define IMAGES                                                                                               \
    "device: {kind: reference, vram: 64MiB}\nbatch: {size: 4}\nmodel:\n  input: {shape: [16, 16, 3]}\n"
#define XENT "  classes: 10\n  loss: softmax_cross_entropy\n"

static const char student_text[] = IMAGES XENT "  name: student\n  layers:\n"
                                               "    - {kind: conv2d, filters: 4, kernel: 3, stride: 2}\n"
                                               "    - {kind: flatten}\n"
                                               "    - {kind: dense, units: 10}\n"
                                               "compress: {distill: teacher}\n";
// With all that only training has, and a layer whose loss is its own.
static const char teacher_text[] =
    IMAGES XENT "  name: wide\n  layers:\n"
                "    - {name: conv1, kind: conv2d, filters: 16, kernel: 3, padding: same, activation: relu}\n"
                "    - {name: norm, kind: batch_norm}\n"
                "    - {name: drop, kind: dropout, rate: 0.5}\n"
                "    - {name: pool, kind: max_pool, size: 4}\n"
                "    - {name: places, kind: reshape, shape: [16, 16]}\n"
                "    - {name: attend, kind: attention, heads: 2, dropout: 0.1}\n"
                "    - {name: flat, kind: flatten}\n"
                "    - {name: logits, kind: dense, units: 10}\n";

static hr_target target;
static void *context;

static void open_folder(void)
{
    ck_assert_int_eq(device_reference.open(&(device_options){.threads = 1}, &context, NULL), HR_OK);
    device_reference.target(context, &target);
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("student", student_text);
    write_file("teacher", teacher_text);
}

static void close_folder(void)
{
    char command[160];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    device_reference.close(context);
}

static hr_status try_model(const char *name, const char *pair, hr_model **out, hr_knobs *knobs, hr_err *err)
{
    hr_preset *preset = NULL;
    ck_assert_msg(hr_preset_open(path_of(name), false, &preset, NULL, err) == HR_OK, "%s", err->sentence);
    *knobs = *hr_preset_knobs(preset);
    if (pair != NULL) {
        ck_assert_msg(hr_knobs_set_pair(knobs, pair, err) == HR_OK, "%s", err->sentence);
    }
    const hr_status status = model_create(preset, knobs, out, NULL, err);
    hr_preset_close(preset);
    return status;
}

static program *compile(const hr_model *m, const hr_knobs *knobs, program_mode mode)
{
    program *p = NULL;
    hr_err err = {0};
    ck_assert_msg(program_compile(m, knobs, mode, 4, &target, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static bool is_teachers(const char *name)
{
    return strncmp(name, MODEL_TEACHER, strlen(MODEL_TEACHER)) == 0;
}

// ---- the model ------------------------------------------------------------------------------------------------

START_TEST(the_teacher_stands_behind_what_is_the_models_own)
{
    hr_model *plain = NULL, *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    ck_assert_int_eq(try_model("student", "compress.distill=none", &plain, &knobs, &err), HR_OK);
    ck_assert_msg(try_model("student", NULL, &m, &knobs, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(m->own_params, plain->param_count);
    ck_assert_uint_eq(m->own_layers, plain->layer_count);
    ck_assert_uint_eq(m->parameters, plain->parameters);
    ck_assert_uint_eq(m->trainable_parameters, plain->trainable_parameters);
    ck_assert_uint_gt(m->param_count, m->own_params);
    for (uint32_t k = 0; k < m->param_count; k++) {
        ck_assert(is_teachers(m->params[k].name) == (k >= m->own_params));
        ck_assert(k < m->own_params || !m->params[k].trainable);
    }
    for (uint32_t k = 0; k < m->layer_count; k++) {
        ck_assert(is_teachers(m->layers[k].name) == (k >= m->own_layers));
        ck_assert_uint_lt(m->layers[k].output, m->value_count);
    }
    ck_assert_uint_eq(m->loss_count, 2);
    ck_assert_double_eq(m->losses[0].weight, 0.5);
    ck_assert_double_eq(m->losses[0].evaluated, 1);
    ck_assert_double_eq(m->losses[1].weight, 0.5);
    ck_assert_double_eq(m->losses[1].evaluated, 0);
    model_destroy(plain);
    model_destroy(m);
}
END_TEST

// With answers from the host the model is the plain one, and one more slot that no data set fills.
START_TEST(cached_answers_are_a_slot)
{
    hr_model *plain = NULL, *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    ck_assert_int_eq(try_model("student", "compress.distill=none", &plain, &knobs, &err), HR_OK);
    ck_assert_msg(try_model("student", "compress.distill_cache=on", &m, &knobs, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_uint_eq(m->param_count, plain->param_count);
    ck_assert_uint_eq(m->layer_count, plain->layer_count);
    ck_assert_uint_eq(m->slot_count, plain->slot_count + 1);
    ck_assert_uint_eq(model_data_slots(m), plain->slot_count);
    ck_assert(model_takes_images(m));
    ck_assert_str_eq(m->values[m->slots[2].value].name, "teacher/logits");
    ck_assert(m->slots[2].answers && !m->slots[1].answers);
    model_destroy(plain);
    model_destroy(m);
}
END_TEST

START_TEST(a_model_without_a_free_slot_cannot_cache)
{
    static const char words[] = "batch: {size: 4}\n"
                                "model:\n"
                                "  name: full\n"
                                "  inputs:\n"
                                "    - {name: a, shape: [4]}\n"
                                "    - {name: b, shape: [4]}\n"
                                "    - {name: c, shape: [4]}\n"
                                "  classes: 3\n"
                                "  loss: softmax_cross_entropy\n"
                                "  layers:\n"
                                "    - {kind: add, inputs: [a, b]}\n"
                                "    - {kind: add, inputs: [add, c]}\n"
                                "    - {kind: dense, units: 3}\n"
                                "compress: {distill: self}\n";
    hr_model *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    write_file("full", words);
    ck_assert_msg(try_model("full", NULL, &m, &knobs, &err) == HR_OK, "%s", err.sentence);
    model_destroy(m);
    ck_assert_int_eq(try_model("full", "compress.distill_cache=on", &m, &knobs, &err), HR_KNOB);
    ck_assert_str_eq(
        err.sentence,
        "compress.distill_cache: the teacher's answers are an input of the step, and the student "
        "full has 4 inputs and labels, which is the most");
}
END_TEST

static void refuse(const char *name, const char *words, const char *sentence)
{
    hr_model *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    write_file("teacher", words);
    ck_assert_int_eq(try_model(name, NULL, &m, &knobs, &err), HR_KNOB);
    ck_assert_str_eq(err.sentence, sentence);
    ck_assert_str_ne(err.hint, "");
    ck_assert_ptr_null(m);
}

START_TEST(what_does_not_go_together_is_refused_in_one_sentence)
{
    char sentence[512];
    refuse("student",
           "model:\n  name: small\n  input: {shape: [8, 8, 3]}\n" XENT
           "  layers: [{kind: flatten}, {kind: dense, units: 10}]\n",
           "compress.distill: the teacher small takes 'input', float32 8x8x3 of a sample, and the student "
           "student gives it 'input', float32 16x16x3");
    refuse("student",
           IMAGES "  name: few\n  classes: 5\n  loss: softmax_cross_entropy\n"
                  "  layers: [{kind: flatten}, {kind: dense, units: 5}]\n",
           "compress.distill: the teacher few gives logits 5 of a sample, and the student student needs 10");
    refuse("student",
           IMAGES "  name: values\n  labels: {type: float32}\n  loss: mean_squared_error\n"
                  "  layers: [{kind: flatten}, {kind: dense, units: 10}]\n",
           "compress.distill compares logits of classes, and the first loss of the teacher values is no "
           "softmax_cross_entropy");
    write_file("student", student_text);
    (void)snprintf(sentence, sizeof sentence,
                   "compress.distill=%s: that preset learns from a teacher itself, other",
                   path_of("teacher"));
    refuse("student",
           IMAGES XENT "  name: pupil\n  layers: [{kind: flatten}, {kind: dense, units: 10}]\n"
                       "compress: {distill: other}\n",
           sentence);
    (void)snprintf(sentence, sizeof sentence, "compress.distill=%s: ", path_of("teacher"));
    write_file("teacher", IMAGES XENT "  layers: [{kind: flatten}, {kind: nonsense}]\n");
    hr_model *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    ck_assert_int_eq(try_model("student", NULL, &m, &knobs, &err), HR_KNOB);
    ck_assert_msg(strncmp(err.sentence, sentence, strlen(sentence)) == 0, "%s", err.sentence);
}
END_TEST

// Of the presets that can be opened by name those that would do are named, and one of them does.
START_TEST(a_refused_teacher_says_how_one_has_to_be_and_which_are_so)
{
    hr_model *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    write_file("student", "batch: {size: 4}\nmodel:\n  name: student\n  input: {shape: [32, 32, 3]}\n" XENT
                          "  layers: [{kind: flatten}, {kind: dense, units: 10}]\n"
                          "compress: {distill: mobilenet_v2}\n");
    ck_assert_int_eq(try_model("student", NULL, &m, &knobs, &err), HR_KNOB);
    ck_assert_msg(strncmp(err.hint, "-s compress.distill=", 20) == 0, "%s", err.hint);
    ck_assert_ptr_nonnull(strstr(err.hint, ", or mlp"));
    ck_assert_ptr_nonnull(strstr(err.hint, " (a teacher takes float32 32x32x3 and gives logits 10)"));
    ck_assert_ptr_null(strstr(err.hint, "mobilenet"));
    err.hint[strcspn(err.hint, ",")] = '\0';
    ck_assert_msg(try_model("student", err.hint + 3, &m, &knobs, &err) == HR_OK, "%s", err.sentence);
    model_destroy(m);
}
END_TEST

static uint64_t requests_of(hr_preset *preset, hr_err *err)
{
    hr_model *m = NULL;
    hr_host_mem_fail_at(UINT64_MAX);
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &m, NULL, err), HR_KNOB);
    return hr_host_mem_fail_at(0);
}

// The presets of models are opened for what is advised alone.
START_TEST(a_teacher_that_is_refused_to_nobody_opens_no_other)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    write_file("student", "batch: {size: 4}\nmodel:\n  name: student\n  input: {shape: [32, 32, 3]}\n" XENT
                          "  layers: [{kind: flatten}, {kind: dense, units: 10}]\n"
                          "compress: {distill: mobilenet_v2}\n");
    ck_assert_int_eq(hr_preset_open(path_of("student"), false, &preset, NULL, &err), HR_OK);
    const uint64_t told = requests_of(preset, &err), silent = requests_of(preset, NULL);
    ck_assert_str_ne(err.hint, "");
    ck_assert_uint_lt(2 * silent, told);
    hr_preset_close(preset);
}
END_TEST

START_TEST(ids_that_the_teacher_does_not_know_are_refused)
{
#define WORDS(name, count)                                                                                   \
    "batch: {size: 4}\nmodel:\n  name: " name "\n  input: {shape: [6], type: int32, classes: " count         \
    "}\n" XENT "  layers:\n    - {kind: embedding, units: 4}\n"                                              \
    "    - {kind: flatten}\n    - {kind: dense, units: 10}\n"
    write_file("student", WORDS("student", "20") "compress: {distill: teacher}\n");
    refuse("student", WORDS("short", "19"),
           "compress.distill: the teacher short knows ids below 19 in 'input', and the student student has "
           "them up to 19");
}
END_TEST

// A preset of a stranger names a teacher below its own folder, or by name.
START_TEST(a_teacher_elsewhere_needs_trust)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    write_file("student", IMAGES XENT "  layers: [{kind: flatten}, {kind: dense, units: 10}]\n"
                                      "compress: {distill: ../teacher.yaml}\n");
    ck_assert_int_eq(hr_preset_open(path_of("student"), false, &preset, NULL, &err), HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needs --trust"));
}
END_TEST

// ---- the programs ---------------------------------------------------------------------------------------------

static const instr *find(const program *p, hr_op op, const char *layer)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == op && i->layer != HR_NO_ID && strcmp(p->layer_names[i->layer], layer) == 0) {
            return i;
        }
    }
    return NULL;
}

static uint64_t teacher_bytes(const program *p)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        ck_assert(p->tensors[k].of_teacher == is_teachers(p->tensors[k].name));
        sum += p->tensors[k].of_teacher ? p->tensors[k].bytes : 0;
    }
    return sum;
}

// Backward knows the logits of the teacher and nothing else that it made; it takes no gradient of it.
static void check_dies_in_forward(const program *p)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        for (uint32_t k = 0; i->phase != HR_PHASE_FORWARD && k < i->in_count; k++) {
            const tensor *t = &p->tensors[i->in[k]];
            ck_assert_msg(!is_teachers(t->name) || strcmp(t->name, "teacher/logits/out") == 0 ||
                              strncmp(t->name, "teacher/logits/out:", 19) == 0,
                          "%s is read in backward", t->name);
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            const tensor *t = &p->tensors[i->out[k]];
            ck_assert_msg(!is_teachers(t->name) || i->phase == HR_PHASE_FORWARD, "%s is made in backward",
                          t->name);
            ck_assert_ptr_null(is_teachers(t->name) ? strstr(t->name, ":grad") : NULL);
        }
    }
}

static const char *const ways[] = {NULL,
                                   "execution.mode=graph",
                                   "checkpoint.strategy=sqrt",
                                   "checkpoint.strategy=every:1",
                                   "checkpoint.strategy=blocks",
                                   "checkpoint.strategy=selective",
                                   "batch.accumulate=3",
                                   "precision.policy=mixed_float16",
                                   "precision.policy=bfloat16",
                                   "offload.activations=on",
                                   "offload.optimizer=on",
                                   "execution.retain=predictions",
                                   "execution.tape=persistent",
                                   "optimizer.fused_backward=on",
                                   "optimizer.ema=0.9"};
enum { WAYS = sizeof ways / sizeof *ways };

START_TEST(a_teacher_infers_and_is_gone_before_backward)
{
    hr_model *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    ck_assert_msg(try_model("student", ways[_i], &m, &knobs, &err) == HR_OK, "%s", err.sentence);
    program *p = compile(m, &knobs, PROGRAM_TRAIN);
    ck_assert_ptr_nonnull(find(p, HR_OP_BATCH_NORM_EVAL, "teacher/norm"));
    ck_assert_ptr_null(find(p, HR_OP_BATCH_NORM, "teacher/norm"));
    ck_assert_ptr_null(find(p, HR_OP_DROPOUT, "teacher/drop"));
    ck_assert_uint_eq(find(p, HR_OP_MAX_POOL, "teacher/pool")->out_count, 1);
    ck_assert_double_eq(find(p, HR_OP_ATTENTION, "teacher/attend")->attr.rate, 0);
    check_dies_in_forward(p);
    program_destroy(p);
    model_destroy(m);
}
END_TEST

// What comes on top of plain training: the teacher's weights, and less than all that it makes.
START_TEST(the_bars_are_above_plain_training)
{
    hr_model *plain = NULL, *m = NULL;
    hr_knobs plain_knobs, knobs;
    hr_err err = {0};
    ck_assert_int_eq(try_model("student", "compress.distill=none", &plain, &plain_knobs, &err), HR_OK);
    ck_assert_int_eq(try_model("student", NULL, &m, &knobs, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&plain_knobs, "execution.mode=graph", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "execution.mode=graph", &err), HR_OK);
    program *alone = compile(plain, &plain_knobs, PROGRAM_TRAIN), *taught = compile(m, &knobs, PROGRAM_TRAIN);
    uint64_t made = 0;
    for (uint32_t k = taught->persistent_count; k < taught->tensor_count; k++) {
        const tensor *t = &taught->tensors[k];
        made += is_teachers(t->name) && t->storage == k ? t->bytes : 0;
    }
    const uint64_t weights = teacher_bytes(taught);
    ck_assert_uint_eq(taught->static_bytes, alone->static_bytes + weights);
    ck_assert_uint_gt(program_peak_bytes(taught), program_peak_bytes(alone) + weights);
    ck_assert_uint_lt(program_peak_bytes(taught), program_peak_bytes(alone) + weights + made);
    program_destroy(alone);
    program_destroy(taught);
    model_destroy(plain);
    model_destroy(m);
}
END_TEST

// The evaluation is the plain one, instruction by instruction.
START_TEST(an_evaluation_knows_no_teacher)
{
    const char *const cache[] = {"compress.distill_cache=off", "compress.distill_cache=on"};
    hr_model *plain = NULL, *m = NULL;
    hr_knobs plain_knobs, knobs;
    hr_err err = {0};
    ck_assert_int_eq(try_model("student", "compress.distill=none", &plain, &plain_knobs, &err), HR_OK);
    ck_assert_int_eq(try_model("student", cache[_i], &m, &knobs, &err), HR_OK);
    program *alone = compile(plain, &plain_knobs, PROGRAM_EVALUATE);
    program *taught = compile(m, &knobs, PROGRAM_EVALUATE);
    ck_assert_uint_eq(alone->instr_count, taught->instr_count);
    ck_assert_uint_eq(alone->tensor_count, taught->tensor_count);
    for (uint32_t n = 0; n < alone->instr_count; n++) {
        const instr *a = &alone->instrs[n], *b = &taught->instrs[n];
        ck_assert_int_eq(a->op, b->op);
        ck_assert_int_eq(memcmp(a->in, b->in, a->in_count * sizeof *a->in), 0);
        ck_assert_double_eq(a->op == HR_OP_READ ? a->attr.scale : 0, b->op == HR_OP_READ ? b->attr.scale : 0);
    }
    program_destroy(alone);
    program_destroy(taught);
    model_destroy(plain);
    model_destroy(m);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    hr_model *m = NULL;
    hr_knobs knobs;
    hr_err err = {0};
    hr_preset *preset = NULL;
    ck_assert_int_eq(hr_preset_open(path_of("student"), false, &preset, NULL, &err), HR_OK);
    knobs = *hr_preset_knobs(preset);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        hr_host_mem_fail_at(nth);
        status = model_create(preset, &knobs, &m, NULL, &err);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_msg(status == (nth <= seen ? HR_NOMEM : HR_OK), "%s", err.sentence);
        model_destroy(status == HR_OK ? m : NULL);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("teacher");
    TCase *tests = tcase_create("teacher");
    tcase_add_checked_fixture(tests, open_folder, close_folder);
    tcase_add_test(tests, the_teacher_stands_behind_what_is_the_models_own);
    tcase_add_test(tests, cached_answers_are_a_slot);
    tcase_add_test(tests, a_model_without_a_free_slot_cannot_cache);
    tcase_add_test(tests, what_does_not_go_together_is_refused_in_one_sentence);
    tcase_add_test(tests, a_refused_teacher_says_how_one_has_to_be_and_which_are_so);
    tcase_add_test(tests, a_teacher_that_is_refused_to_nobody_opens_no_other);
    tcase_add_test(tests, ids_that_the_teacher_does_not_know_are_refused);
    tcase_add_test(tests, a_teacher_elsewhere_needs_trust);
    tcase_add_loop_test(tests, a_teacher_infers_and_is_gone_before_backward, 0, WAYS);
    tcase_add_test(tests, the_bars_are_above_plain_training);
    tcase_add_loop_test(tests, an_evaluation_knows_no_teacher, 0, 2);
    tcase_add_test(tests, each_allocation_may_fail);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
