// SPDX-License-Identifier: Apache-2.0
// Pass prune: which kernels have masks, where their instructions stand, how many there are whatever the step repeats or runs
// again, and what is refused.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/text.h"
#include "device/device.h"
#include "ops/prune.h"
#include "program/compile.h"
#include "program/compile_starved.h"
#include "program/model_from_text.h"

enum { BATCH = 2, PAIRS_MAX = 6 };

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

static const hr_target target = {.name = "nothing", .key = 21, .ask = ask_nothing, .fuses = fuses_nothing};

static bool masks_updates(void *context, target_absorption what, hr_op op)
{
    (void)context;
    return what == TARGET_MASKS && device_masks(op);
}

static const hr_target masking = {
    .name = "masking", .key = 22, .ask = ask_nothing, .fuses = fuses_nothing, .absorbs = masks_updates};

static hr_knobs knobs_of(const char *const *pairs)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=1GiB", NULL), HR_OK);
    for (; *pairs != NULL; pairs++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, *pairs, NULL), HR_OK);
    }
    ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
    return knobs;
}

static hr_model *shipped(const char *path)
{
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err) == HR_OK, "%s",
                  err.sentence);
    hr_preset_close(preset);
    return model;
}

static program *compiled_for(const hr_target *on, const hr_model *model, program_mode mode,
                             const char *const *pairs)
{
    program *p = NULL;
    hr_err err = {0};
    const hr_knobs knobs = knobs_of(pairs);
    ck_assert_msg(program_compile(model, &knobs, mode, BATCH, on, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static program *compiled(const hr_model *model, program_mode mode, const char *const *pairs)
{
    return compiled_for(&target, model, mode, pairs);
}

static uint32_t tensor_named(const program *p, const char *name)
{
    uint32_t id = 0;
    while (id < p->tensor_count && strcmp(p->tensors[id].name, name) != 0) {
        id++;
    }
    return id;
}

static bool has_mask(const program *p, const char *kernel)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s:mask", kernel);
    const uint32_t w = tensor_named(p, kernel), mask = tensor_named(p, name);
    ck_assert_msg(w < p->tensor_count, "no %s", kernel);
    if (mask == p->tensor_count) {
        return false;
    }
    const tensor *t = &p->tensors[mask];
    ck_assert(t->persistent && t->category == HR_CATEGORY_STATE && t->initial == 1.0f);
    ck_assert(shape_equal(&t->shape, &p->tensors[w].shape) && t->dtype == p->tensors[w].dtype);
    return true;
}

static uint64_t mask_bytes(const program *p)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        sum += text_ends_in(p->tensors[k].name, ":mask") ? p->tensors[k].bytes : 0;
    }
    return sum;
}

// ---- which ------------------------------------------------------------------------------------------------------

static const struct {
    const char *path, *pruned[5], *whole[5];
} registry[] = {
    {"presets/models/cifar10_separable_cnn.yaml",
     {"separable_conv2d/pointwise_weights", "separable_conv2d_1/pointwise_weights", "dense/weights",
      "dense_1/weights"},
     {"separable_conv2d/depthwise_weights", "separable_conv2d/bias", "dense/bias"}},
    {"presets/models/mobilenet_v2_tiny.yaml",
     {"conv1/weights", "stage2_0_expand/weights", "classifier/weights"},
     {"stage1_0_depthwise/weights", "conv1_bn/gamma"}},
    {"presets/models/lstm_lm_medium_tiny.yaml",
     {"embedding/weights", "lstm0/weights", "lstm0/recurrent_weights", "output/weights"},
     {"lstm0/bias"}},
    {"presets/models/gpt2_124m_tiny.yaml",
     {"wte/weights", "h0_attn/query_weights", "h0_attn/output_weights", "h0_mlp_fc/weights"},
     {"h0_ln_1/gamma"}},
    {"presets/models/unet_tiny.yaml", {"inc_conv1/weights", "up1_up/weights"}, {NULL}},
};

START_TEST(masks_are_for_the_kernels_of_tfmots_registry)
{
    hr_model *model = shipped(registry[_i].path);
    program *p = compiled(model, PROGRAM_TRAIN, (const char *const[]){"compress.prune=constant:0.5", NULL});
    for (size_t k = 0; registry[_i].pruned[k] != NULL; k++) {
        ck_assert_msg(has_mask(p, registry[_i].pruned[k]), "%s", registry[_i].pruned[k]);
    }
    for (size_t k = 0; registry[_i].whole[k] != NULL; k++) {
        ck_assert_msg(!has_mask(p, registry[_i].whole[k]), "%s", registry[_i].whole[k]);
    }
    program_destroy(p);
    model_destroy(model);
}
END_TEST

START_TEST(masks_of_the_cifar_model_are_2780032_bytes)
{
    hr_model *model = shipped("presets/models/cifar10_separable_cnn.yaml");
    program *p = compiled(model, PROGRAM_TRAIN, (const char *const[]){"compress.prune=constant:0.5", NULL});
    program *plain = compiled(model, PROGRAM_TRAIN, (const char *const[]){NULL});
    program *evaluates =
        compiled(model, PROGRAM_EVALUATE, (const char *const[]){"compress.prune=constant:0.5", NULL});
    ck_assert_uint_eq(mask_bytes(p), 2780032);
    ck_assert_uint_eq(p->static_bytes, plain->static_bytes + 2780032);
    ck_assert_uint_eq(program_peak_bytes(p), program_peak_bytes(plain) + 2780032);
    ck_assert_uint_eq(mask_bytes(plain), 0);
    ck_assert_uint_eq(mask_bytes(evaluates), 0); // what it reads is masked
    program_destroy(p);
    program_destroy(plain);
    program_destroy(evaluates);
    model_destroy(model);
}
END_TEST

// ---- where ------------------------------------------------------------------------------------------------------

static bool writes(const instr *i, uint32_t id)
{
    for (uint32_t k = 0; k < i->out_count; k++) {
        if (i->out[k] == id) {
            return true;
        }
    }
    return false;
}

static const char *const ways[][PAIRS_MAX] = {
    {"execution.mode=graph"},
    {"batch.accumulate=3"},
    {"optimizer.fused_backward=on"},
    {"checkpoint.strategy=sqrt", "execution.mode=graph"},
    {"precision.policy=mixed_float16", "batch.accumulate=2"},
    {"optimizer.ema=0.9"},
    {"offload.optimizer=on", "offload.activations=on"},
    {"execution.as=tensorflow"},
};

// Each kernel has one instruction of the schedule, behind everything else that reads or writes the kernel and outside of rounds.
START_TEST(a_kernel_is_pruned_once_behind_its_update)
{
    const char *pairs[PAIRS_MAX] = {"compress.prune=constant:0.5"};
    hr_model *model = shipped("presets/models/cifar10_separable_cnn_tiny.yaml");
    for (size_t k = 0; k + 1 < PAIRS_MAX && ways[_i][k] != NULL; k++) {
        pairs[k + 1] = ways[_i][k];
    }
    program *p = compiled(model, PROGRAM_TRAIN, pairs);
    unsigned pruned = 0, averages = 0, rounds = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        rounds += i->op == HR_OP_REPEAT;
        rounds -= i->op == HR_OP_END;
        if (i->op != HR_OP_PRUNE) {
            continue;
        }
        ck_assert_int_eq(i->attr.slot, 1);
        ck_assert_uint_eq(rounds, 0);
        pruned += i->attr.stride_h > 0;
        averages += i->attr.stride_h == 0;
        for (uint32_t later = n + 1; later < p->instr_count; later++) {
            ck_assert(!writes(&p->instrs[later], i->in[0]));
        }
    }
    ck_assert_uint_eq(pruned, 4);
    ck_assert_uint_eq(averages, strstr(ways[_i][0], "ema") != NULL ? 4 : 0);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// A turn in update 1 is in front of all that reads a kernel, and of the rounds; it has the schedule's sparsity of that update.
START_TEST(a_first_turn_stands_in_front_of_the_step)
{
    static const char *const firsts[] = {"compress.prune=polynomial:0.2:0.8:0:10:1",
                                         "compress.prune=constant:0.5:1"};
    hr_model *model = shipped("presets/models/cifar10_separable_cnn_tiny.yaml");
    program *p =
        compiled(model, PROGRAM_TRAIN, (const char *const[]){firsts[_i % 2], "batch.accumulate=2", NULL});
    unsigned first = 0;
    for (uint32_t n = 0; p->instrs[n].op != HR_OP_REPEAT; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_PRUNE) {
            first++;
            ck_assert_int_eq(prune_act_at(&i->attr, 1), PRUNE_MAKE);
            ck_assert_int_eq(prune_act_at(&i->attr, 2), PRUNE_NOTHING);
            ck_assert_double_eq_tol(prune_sparsity(&i->attr, 1), _i % 2 == 0 ? 0.8 - 0.6 * 0.729 : 0.5, 1e-7);
        }
    }
    ck_assert_uint_eq(first, 4);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// ---- updates that mask -------------------------------------------------------------------------------------------

static const struct {
    const char *pair;
    unsigned masked;
} updates[] = {
    {"optimizer.kind=adam", 4},         {"optimizer.kind=sgd", 4},        {"optimizer.kind=lion", 4},
    {"optimizer.fused_backward=on", 4}, {"batch.accumulate=3", 4},        {"optimizer.ema=0.9", 4},
    {"optimizer.kind=adafactor", 0},    {"precision.policy=bfloat16", 4}, {"precision.policy=float16", 4},
    {"execution.fuse=off", 0},          {"execution.as=tensorflow", 0},
};

// A mask is of its kernel's type and size in every policy: has_mask looks.
START_TEST(a_mask_is_of_its_kernels_type)
{
    static const char *const policies[] = {"precision.policy=float32", "precision.policy=mixed_float16",
                                           "precision.policy=mixed_bfloat16", "precision.policy=float16",
                                           "precision.policy=bfloat16"};
    hr_model *model = shipped("presets/models/cifar10_separable_cnn_tiny.yaml");
    program *p = compiled(model, PROGRAM_TRAIN,
                          (const char *const[]){"compress.prune=constant:0.5", policies[_i], NULL});
    ck_assert(has_mask(p, "dense/weights"));
    ck_assert(has_mask(p, "separable_conv2d/pointwise_weights"));
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// As many updates mask as there are PRUNE that leave it to them; an average has its own.
START_TEST(updates_mask_where_the_kernel_can)
{
    hr_model *model = shipped("presets/models/cifar10_separable_cnn_tiny.yaml");
    program *p = compiled_for(&masking, model, PROGRAM_TRAIN,
                              (const char *const[]){"compress.prune=constant:0.5", updates[_i].pair, NULL});
    unsigned masked = 0, turns = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool marked = (i->attr.flags & OP_FLAG_MASKED) != 0;
        masked += marked && i->op != HR_OP_PRUNE;
        turns += marked && i->op == HR_OP_PRUNE;
        ck_assert(!marked || i->op == HR_OP_PRUNE ||
                  text_ends_in(p->tensors[i->in[i->in_count - 1]].name, ":mask"));
    }
    ck_assert_uint_eq(masked, updates[_i].masked);
    ck_assert_uint_eq(turns, updates[_i].masked);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// ---- what is refused, and what fails ----------------------------------------------------------------------------

#define IMAGES(layers)                                                                                       \
    "device: {vram: 1GiB}\n"                                                                                 \
    "model:\n"                                                                                               \
    "  name: bare\n"                                                                                         \
    "  input: {shape: [8, 8, 4]}\n"                                                                          \
    "  classes: 4\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n" layers

static const struct {
    const char *text, *structure, *sentence, *hint;
} refusals[] = {
    {IMAGES("    - {kind: depthwise_conv2d, kernel: 3}\n"
            "    - {kind: global_avg_pool}\n"),
     "compress.prune_structure=element",
     "compress.prune needs a layer with a kernel that trains, and bare has none", "-s compress.prune=none"},
    {IMAGES("    - {kind: flatten}\n"
            "    - {kind: dense, units: 4}\n"),
     "compress.prune_structure=filter",
     "compress.prune needs a layer with a kernel that trains and whose filters only other kernels read, and "
     "bare has none",
     "-s compress.prune_structure=element"},
    {IMAGES("    - {kind: flatten}\n"
            "    - {kind: dense, units: 4}\n"),
     "compress.prune_structure=block:8x8",
     "compress.prune_structure block:8x8 needs kernels at least as large as a block, and dense/weights is "
     "256x4",
     "-s compress.prune_structure=element"},
    {IMAGES("    - {kind: conv2d, filters: 4, kernel: 3}\n"
            "    - {kind: global_avg_pool}\n"),
     "compress.prune_structure=block:2x2",
     "compress.prune_structure block:2x2 needs kernels that are matrices, and conv2d/weights is 3x3x4x4",
     "-s compress.prune_structure=element"},
};

START_TEST(what_cannot_be_pruned_is_refused)
{
    hr_model *model = model_from_text(refusals[_i].text);
    program *p = NULL;
    hr_err err = {0};
    const hr_knobs knobs =
        knobs_of((const char *const[]){"compress.prune=constant:0.5", refusals[_i].structure, NULL});
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err), HR_CONSTRAINT);
    ck_assert_str_eq(err.sentence, refusals[_i].sentence);
    ck_assert_str_eq(err.hint, refusals[_i].hint);
    model_destroy(model);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    hr_model *model = shipped("presets/models/cifar10_separable_cnn_tiny.yaml");
    const hr_knobs knobs =
        knobs_of((const char *const[]){"compress.prune=constant:0.5:1:-1:1", "optimizer.ema=0.9", NULL});
    const hr_knobs filters = knobs_of((const char *const[]){
        "compress.prune=constant:0.5:1:-1:1", "compress.prune_structure=filter", "optimizer.ema=0.9", NULL});
    compile_starved(model, &knobs, BATCH, &target);
    compile_starved(model, &filters, BATCH, &target);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prune_program");
    TCase *all = tcase_create("prune");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, masks_are_for_the_kernels_of_tfmots_registry, 0,
                        sizeof registry / sizeof *registry);
    tcase_add_test(all, masks_of_the_cifar_model_are_2780032_bytes);
    tcase_add_loop_test(all, a_kernel_is_pruned_once_behind_its_update, 0, sizeof ways / sizeof *ways);
    tcase_add_loop_test(all, a_first_turn_stands_in_front_of_the_step, 0, 2);
    tcase_add_loop_test(all, a_mask_is_of_its_kernels_type, 0, 5);
    tcase_add_loop_test(all, updates_mask_where_the_kernel_can, 0, sizeof updates / sizeof *updates);
    tcase_add_loop_test(all, what_cannot_be_pruned_is_refused, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(all, each_allocation_may_fail);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
