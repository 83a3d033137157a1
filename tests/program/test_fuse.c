// SPDX-License-Identifier: Apache-2.0
// Pass fuse on MobileNetV2: every RELU6 goes behind its normalisation, for a target that can do that and for no other,
// and what backward does is the same. The passes behind it: what a target absorbs is an instruction less, and never a byte
// more; what none absorbs stays.
#include <check.h>
#include <stdlib.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"

#include "model/model.h"
#include "program/compile.h"

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_all(void *context, hr_op op, hr_act act)
{
    (void)context, (void)act;
    return op == HR_OP_BATCH_NORM || op == HR_OP_BATCH_NORM_EVAL || op == HR_OP_CONV2D || op == HR_OP_ADD;
}

static bool fuses_relu_only(void *context, hr_op op, hr_act act)
{
    return act == HR_ACT_RELU && fuses_all(context, op, act);
}

static const hr_target all = {.name = "all", .key = 11, .ask = ask_nothing, .fuses = fuses_all};
static const hr_target relu_only = {.name = "relu", .key = 12, .ask = ask_nothing, .fuses = fuses_relu_only};

static bool absorbs_all(void *context, target_absorption what, hr_op op)
{
    (void)context, (void)op;
    return what == TARGET_ADDS || what == TARGET_CUTS;
}

static bool widens(void *context, target_absorption what, hr_op op)
{
    (void)context;
    return what == TARGET_WIDENS && op == HR_OP_DENSE_BWD_WEIGHTS;
}

static bool gates(void *context, target_absorption what, hr_op op)
{
    return absorbs_all(context, what, op) || (what == TARGET_GATES && op == HR_OP_BATCH_NORM_BWD);
}

static bool normalises(void *context, target_absorption what, hr_op op)
{
    return gates(context, what, op) || what == TARGET_NORMALISES || what == TARGET_UNPOOLS;
}

static bool absorbs_everything(void *context, target_absorption what, hr_op op)
{
    (void)context, (void)what, (void)op;
    return true;
}

static bool joins(void *context, target_absorption what, hr_op op)
{
    (void)context;
    return what == TARGET_JOINS && op == HR_OP_ATTENTION;
}

static bool fuses_gelu(void *context, hr_op op, hr_act act)
{
    return fuses_all(context, op, act) ||
           (act == HR_ACT_GELU && (op == HR_OP_DENSE || op == HR_OP_DENSE_BWD_DATA));
}

static const hr_target absorbing = {
    .name = "absorbing", .key = 13, .ask = ask_nothing, .fuses = fuses_gelu, .absorbs = absorbs_all};
static const hr_target widening = {
    .name = "widening", .key = 14, .ask = ask_nothing, .fuses = fuses_all, .absorbs = widens};
static const hr_target gating = {
    .name = "gating", .key = 17, .ask = ask_nothing, .fuses = fuses_all, .absorbs = gates};
static const hr_target reading = {
    .name = "reading", .key = 19, .ask = ask_nothing, .fuses = fuses_all, .absorbs = normalises};
static const hr_target everything = {
    .name = "everything", .key = 18, .ask = ask_nothing, .fuses = fuses_gelu, .absorbs = absorbs_everything};
static const hr_target joining = {
    .name = "joining", .key = 16, .ask = ask_nothing, .fuses = fuses_all, .absorbs = joins};
static const hr_target smooth = {.name = "smooth", .key = 15, .ask = ask_nothing, .fuses = fuses_gelu};

static program *compile_as(program_mode mode, const char *path, const char *const *pairs,
                           const hr_target *target)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    program *p = NULL;
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (uint32_t k = 0; pairs[k] != NULL; k++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, pairs[k], &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert(model_create(preset, &knobs, &model, NULL, &err) == HR_OK);
    ck_assert_msg(program_compile(model, &knobs, mode, 2, target, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    hr_preset_close(preset);
    return p;
}

static program *compile_model(const char *path, const char *const *pairs, const hr_target *target)
{
    return compile_as(PROGRAM_TRAIN, path, pairs, target);
}

static program *compile(const char *fuse, const char *mode, const hr_target *target)
{
    const char *const pairs[] = {fuse, mode, NULL};
    return compile_model("presets/models/mobilenet_v2_tiny.yaml", pairs, target);
}

static unsigned count(const program *p, hr_op op, int32_t act)
{
    unsigned sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].op == op && p->instrs[n].attr.act == act;
    }
    return sum;
}

START_TEST(relu6_goes_behind_its_normalisation)
{
    program *fused = compile("execution.fuse=on", "execution.mode=graph", &all);
    program *apart = compile("execution.fuse=off", "execution.mode=graph", &all);
    program *other = compile("execution.fuse=on", "execution.mode=graph", &relu_only);
    const unsigned activations = count(apart, HR_OP_RELU6, HR_ACT_NONE);
    ck_assert_uint_gt(activations, 5);
    ck_assert_uint_eq(count(fused, HR_OP_RELU6, HR_ACT_NONE), 0);
    ck_assert_uint_eq(count(fused, HR_OP_BATCH_NORM, HR_ACT_RELU6), activations);
    ck_assert_uint_eq(count(apart, HR_OP_BATCH_NORM, HR_ACT_RELU6), 0);
    ck_assert_uint_eq(count(other, HR_OP_RELU6, HR_ACT_NONE), activations);
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        const bool forward =
            op == HR_OP_RELU6 || op == HR_OP_BATCH_NORM || op == HR_OP_ALLOC || op == HR_OP_FREE;
        ck_assert_msg(forward || count(fused, op, HR_ACT_NONE) == count(apart, op, HR_ACT_NONE), "%s",
                      op_name(op));
    }
    ck_assert_uint_eq(count(fused, HR_OP_RELU6_BWD, HR_ACT_NONE), activations);
    ck_assert_uint_eq(fused->saved_for_backward_bytes, apart->saved_for_backward_bytes);
    program_destroy(fused);
    program_destroy(apart);
    program_destroy(other);
}
END_TEST

// ---- what a target absorbs ------------------------------------------------------------------------------------

static const char *const absorbing_models[] = {
    "presets/models/mobilenet_v2_tiny.yaml", "presets/models/resnet50_tiny.yaml",
    "presets/models/resnet18_cifar_tiny.yaml", "presets/models/gpt2_124m_tiny.yaml",
    "presets/models/cifar10_separable_cnn_tiny.yaml"};
static const char *const ways[][4] = {{"execution.mode=graph", NULL},
                                      {"execution.mode=graph", "precision.policy=mixed_bfloat16", NULL},
                                      {"execution.mode=graph", "optimizer.fused_backward=on", NULL},
                                      {"execution.mode=graph", "batch.accumulate=2", NULL},
                                      {"execution.mode=graph", "checkpoint.strategy=sqrt", NULL},
                                      {"execution.mode=graph", "checkpoint.strategy=selective", NULL},
                                      {"execution.mode=graph", "checkpoint.strategy=every:1", NULL},
                                      {"execution.mode=graph", "execution.inplace=off", NULL},
                                      {"execution.mode=graph", "offload.activations=on", NULL}};
enum {
    ABSORBING_MODELS = sizeof absorbing_models / sizeof *absorbing_models,
    WAYS = sizeof ways / sizeof *ways,
    KEPT_WAYS = WAYS - 1 // what is offloaded waits for its copy, which comes later in a shorter program
};

START_TEST(what_is_absorbed_takes_no_byte_more)
{
    const char *const model = absorbing_models[_i / KEPT_WAYS], *const *pairs = ways[_i % KEPT_WAYS];
    program *less = compile_model(model, pairs, &absorbing), *plain = compile_model(model, pairs, &all);
    ck_assert_uint_le(less->instr_count, plain->instr_count);
    ck_assert_uint_le(program_peak_bytes(less), program_peak_bytes(plain));
    ck_assert_uint_le(less->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    program_destroy(less);
    program_destroy(plain);
}
END_TEST

static unsigned sums_absorbed(const program *p)
{
    unsigned sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        sum +=
            (i->op == HR_OP_BATCH_NORM && i->in_count == 6) || (i->op == HR_OP_RELU_BWD && i->in_count == 3);
    }
    return sum;
}

static unsigned all_of(const program *p, hr_op op)
{
    unsigned sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].op == op;
    }
    return sum;
}

START_TEST(every_residual_sum_and_every_cut_is_absorbed)
{
    const char *const graph[] = {"execution.mode=graph", NULL}, *const eager[] = {"execution.mode=eager",
                                                                                  NULL};
    const char *const resnet = "presets/models/resnet50_tiny.yaml";
    program *plain = compile_model(resnet, graph, &all), *less = compile_model(resnet, graph, &absorbing);
    const unsigned sums = all_of(plain, HR_OP_ADD);
    ck_assert_uint_gt(sums, 4);
    ck_assert_uint_eq(all_of(less, HR_OP_ADD), 0);
    ck_assert_uint_eq(sums_absorbed(less), sums);
    ck_assert_uint_gt(count(less, HR_OP_BATCH_NORM_BWD, HR_ACT_RELU), 4);
    ck_assert_uint_eq(all_of(less, HR_OP_RELU_BWD) + count(less, HR_OP_BATCH_NORM_BWD, HR_ACT_RELU),
                      all_of(plain, HR_OP_RELU_BWD));
    program *listed = compile_model(resnet, eager, &absorbing); // what eager mode does is not ours to say
    ck_assert_uint_eq(sums_absorbed(listed), 0);
    ck_assert_uint_eq(count(listed, HR_OP_BATCH_NORM_BWD, HR_ACT_RELU), 0);
    program_destroy(plain);
    program_destroy(less);
    program_destroy(listed);
}
END_TEST

START_TEST(a_cut_gradient_that_others_read_is_a_result_of_its_normalisation)
{
    const char *const graph[] = {"execution.mode=graph", NULL};
    const char *const resnet = "presets/models/resnet50_tiny.yaml";
    program *plain = compile_model(resnet, graph, &absorbing), *less = compile_model(resnet, graph, &gating);
    const unsigned cuts = all_of(plain, HR_OP_RELU_BWD);
    unsigned gated = 0;
    ck_assert_uint_gt(cuts, 3);
    for (uint32_t n = 0; n < less->instr_count; n++) {
        const instr *i = &less->instrs[n];
        gated += i->op == HR_OP_BATCH_NORM_BWD && i->out_count == 4 && i->attr.act == HR_ACT_RELU;
    }
    ck_assert_uint_eq(gated + all_of(less, HR_OP_RELU_BWD), cuts);
    ck_assert_uint_gt(gated, cuts / 2);
    ck_assert_uint_eq(less->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

// Of the pooling behind the first normalisation and of every shortcut with a convolution.
START_TEST(what_one_reader_normalises_is_never_written)
{
    const char *const graph[] = {"execution.mode=graph", NULL}, *const eager[] = {"execution.mode=eager",
                                                                                  NULL};
    const char *const resnet = "presets/models/resnet50_tiny.yaml";
    program *plain = compile_model(resnet, graph, &gating), *less = compile_model(resnet, graph, &reading);
    program *listed = compile_model(resnet, eager, &reading);
    unsigned read = 0;
    for (uint32_t n = 0; n < less->instr_count; n++) {
        const instr *i = &less->instrs[n];
        read += i->op == HR_OP_BATCH_NORM && i->in_count == 10;
        ck_assert(i->op != HR_OP_MAX_POOL || (i->in_count == 5 && i->attr.act == HR_ACT_RELU));
    }
    ck_assert_uint_gt(read, 2);
    ck_assert_uint_eq(all_of(less, HR_OP_BATCH_NORM_STATISTICS), read + all_of(plain, HR_OP_MAX_POOL));
    ck_assert_uint_eq(all_of(less, HR_OP_BATCH_NORM) + all_of(less, HR_OP_BATCH_NORM_STATISTICS),
                      all_of(plain, HR_OP_BATCH_NORM));
    ck_assert_uint_eq(all_of(plain, HR_OP_MAX_POOL_BWD_INDEX), 1);
    ck_assert_uint_eq(all_of(less, HR_OP_MAX_POOL_BWD_INDEX), 0);
    ck_assert_uint_eq(all_of(listed, HR_OP_BATCH_NORM_STATISTICS), 0);
    program_destroy(plain);
    program_destroy(less);
    program_destroy(listed);
}
END_TEST

START_TEST(an_evaluation_pools_what_it_normalises)
{
    const char *const graph[] = {"execution.mode=graph", NULL};
    const char *const resnet = "presets/models/resnet50_tiny.yaml";
    program *plain = compile_as(PROGRAM_EVALUATE, resnet, graph, &gating);
    program *less = compile_as(PROGRAM_EVALUATE, resnet, graph, &reading);
    ck_assert_uint_eq(all_of(less, HR_OP_BATCH_NORM_EVAL) + 1, all_of(plain, HR_OP_BATCH_NORM_EVAL));
    ck_assert_uint_eq(all_of(less, HR_OP_BATCH_NORM_STATISTICS), 0);
    ck_assert_uint_le(program_peak_bytes(less), program_peak_bytes(plain));
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

// dx may lie where dy lay, and is of its size then: what it is made from must not be gathered from there.
START_TEST(a_pooling_as_large_as_its_image_keeps_its_gradient)
{
    const char *const graph[] = {"execution.mode=graph", NULL};
    program *less = compile_model("tests/data/models/same_pool.yaml", graph, &reading);
    ck_assert_uint_eq(all_of(less, HR_OP_MAX_POOL_BWD_INDEX), 1);
    ck_assert_uint_eq(all_of(less, HR_OP_BATCH_NORM_STATISTICS), 1);
    program_destroy(less);
}
END_TEST

START_TEST(what_is_read_through_takes_no_byte_more)
{
    const char *const model = absorbing_models[_i / WAYS], *const *pairs = ways[_i % WAYS];
    program *less = compile_model(model, pairs, &reading), *plain = compile_model(model, pairs, &gating);
    ck_assert_uint_le(less->instr_count, plain->instr_count);
    ck_assert_uint_le(program_peak_bytes(less), program_peak_bytes(plain));
    ck_assert_uint_eq(less->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    program_destroy(less);
    program_destroy(plain);
}
END_TEST

// ---- what rides on products -----------------------------------------------------------------------------------

static const char *const gpt2 = "presets/models/gpt2_124m_tiny.yaml";
static const char *const in_bfloat16[] = {"execution.mode=graph", "precision.policy=mixed_bfloat16", NULL};

static unsigned flagged(const program *p, hr_op op, int32_t flag)
{
    unsigned sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].op == op && (p->instrs[n].attr.flags & flag) != 0;
    }
    return sum;
}

static unsigned with_operands(const program *p, hr_op op, uint8_t in_count)
{
    unsigned sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].op == op && p->instrs[n].in_count == in_count;
    }
    return sum;
}

START_TEST(every_sum_of_a_transformer_is_absorbed_by_what_makes_its_second_half)
{
    program *plain = compile_model(gpt2, in_bfloat16, &all),
            *less = compile_model(gpt2, in_bfloat16, &absorbing);
    const unsigned layers = all_of(plain, HR_OP_ATTENTION), sums = all_of(plain, HR_OP_ADD);
    ck_assert_uint_ge(layers, 2);
    ck_assert_uint_eq(sums, 6 * layers + 1); // residual sums, their gradients, those of keys and queries
    ck_assert_uint_eq(all_of(less, HR_OP_ADD), 1); // of the table that two layers share, in the end
    ck_assert_uint_eq(flagged(less, HR_OP_DENSE, OP_FLAG_ADDED), 2 * layers);
    ck_assert_uint_eq(flagged(less, HR_OP_DENSE_BWD_DATA, OP_FLAG_ADDED), 2 * layers);
    ck_assert_uint_eq(with_operands(less, HR_OP_LAYER_NORM_BWD, 6), 2 * layers);
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

// Of the sum of a layer's three gradients, the second product adds the first and the third adds both.
START_TEST(gradients_are_added_in_the_order_they_were)
{
    program *less = compile_model(gpt2, in_bfloat16, &absorbing);
    uint32_t last = HR_NO_ID;
    unsigned chains = 0;
    for (uint32_t n = 0; n < less->instr_count; n++) {
        const instr *i = &less->instrs[n];
        if (i->op == HR_OP_DENSE_BWD_DATA && (i->attr.flags & OP_FLAG_ADDED) != 0) {
            ck_assert_uint_eq(i->in_count, 3);
            ck_assert_uint_eq(i->in[2], last);
            chains++;
        }
        last = i->op == HR_OP_DENSE_BWD_DATA ? i->out[0] : last;
    }
    ck_assert_uint_gt(chains, 3);
    program_destroy(less);
}
END_TEST

START_TEST(gelu_rides_on_products_and_keeps_what_it_kept)
{
    program *plain = compile_model(gpt2, in_bfloat16, &all),
            *less = compile_model(gpt2, in_bfloat16, &smooth);
    const unsigned gelus = all_of(plain, HR_OP_GELU);
    ck_assert_uint_ge(gelus, 2);
    ck_assert_uint_eq(all_of(less, HR_OP_GELU), 0);
    ck_assert_uint_eq(all_of(less, HR_OP_GELU_BWD), 0);
    ck_assert_uint_eq(count(less, HR_OP_DENSE, HR_ACT_GELU), gelus);
    ck_assert_uint_eq(count(less, HR_OP_DENSE_BWD_DATA, HR_ACT_GELU), gelus);
    ck_assert_uint_eq(less->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    program_destroy(plain);
    program_destroy(less);
    const char *const bert = "presets/models/bert_base_tiny.yaml"; // the form with the error function
    less = compile_model(bert, in_bfloat16, &smooth);
    ck_assert_uint_gt(all_of(less, HR_OP_GELU), 0);
    ck_assert_uint_eq(count(less, HR_OP_DENSE, HR_ACT_GELU), 0);
    program_destroy(less);
    const char *const eager[] = {"execution.mode=eager", NULL};
    less = compile_model(gpt2, eager, &smooth);
    ck_assert_uint_eq(all_of(less, HR_OP_GELU), gelus);
    program_destroy(less);
}
END_TEST

static uint64_t joined_bytes(const program *p)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        sum += i->op == HR_OP_CONCAT || (i->op == HR_OP_DENSE_BWD_WEIGHTS &&
                                         p->tensors[i->out[0]].category == HR_CATEGORY_TEMPORARIES)
                   ? p->tensors[i->out[0]].bytes
                   : 0;
    }
    return sum;
}

static const char *const join_ways[][4] = {
    {"execution.mode=graph", NULL},
    {"execution.mode=graph", "precision.policy=mixed_bfloat16", NULL},
    {"execution.mode=graph", "optimizer.fused_backward=on", NULL},
    {"execution.mode=graph", "batch.accumulate=2", "precision.policy=mixed_float16", NULL},
    {"execution.mode=graph", "checkpoint.strategy=sqrt", NULL},
    {"execution.mode=graph", "checkpoint.strategy=every:1", "precision.policy=mixed_bfloat16", NULL}};
enum { JOIN_WAYS = sizeof join_ways / sizeof *join_ways };

START_TEST(queries_keys_and_values_are_one_product)
{
    const char *const *way = join_ways[_i];
    program *plain = compile_model(gpt2, way, &all), *less = compile_model(gpt2, way, &joining);
    const unsigned layers = all_of(plain, HR_OP_ATTENTION_BWD), again = all_of(plain, HR_OP_ATTENTION);
    ck_assert_uint_eq(with_operands(less, HR_OP_ATTENTION_BWD, 4), layers);
    ck_assert_uint_gt(with_operands(less, HR_OP_ATTENTION, 1), layers - 1);
    ck_assert_uint_eq(all_of(less, HR_OP_ATTENTION), again);
    ck_assert_uint_eq(all_of(less, HR_OP_DENSE_BWD_WEIGHTS) + 2 * layers,
                      all_of(plain, HR_OP_DENSE_BWD_WEIGHTS));
    ck_assert_uint_eq(all_of(less, HR_OP_DENSE_BWD_DATA) + 2 * layers, all_of(plain, HR_OP_DENSE_BWD_DATA));
    ck_assert_uint_eq(all_of(less, HR_OP_ADD) + 2 * layers, all_of(plain, HR_OP_ADD));
    ck_assert_uint_eq(all_of(less, HR_OP_ADAM),
                      all_of(plain, HR_OP_ADAM)); // of three weights each, as they were
    ck_assert_uint_eq(less->persistent_count, plain->persistent_count);
    ck_assert_uint_eq(less->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    ck_assert_uint_le(program_peak_bytes(less), program_peak_bytes(plain) + joined_bytes(less));
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

// What differs between the three, or is read by somebody else, stays apart.
START_TEST(attention_over_another_sequence_stays_as_it_is)
{
    program *less = compile_model("tests/data/models/cross_attention.yaml", in_bfloat16, &joining);
    ck_assert_uint_eq(with_operands(less, HR_OP_ATTENTION, 3), 1);
    ck_assert_uint_eq(with_operands(less, HR_OP_ATTENTION, 1), 1);
    program *plain = compile_model("tests/data/models/cross_attention.yaml", in_bfloat16, &all);
    ck_assert_uint_eq(all_of(less, HR_OP_ADD) + 2,
                      all_of(plain, HR_OP_ADD)); // what came before is added still
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

// Nothing is kept for a backward that does not come.
START_TEST(an_evaluation_is_one_product_too_and_keeps_nothing)
{
    program *plain = compile_as(PROGRAM_EVALUATE, gpt2, in_bfloat16, &all),
            *less = compile_as(PROGRAM_EVALUATE, gpt2, in_bfloat16, &everything);
    const unsigned layers = all_of(plain, HR_OP_ATTENTION);
    ck_assert_uint_eq(with_operands(less, HR_OP_ATTENTION, 1), layers);
    ck_assert_uint_eq(all_of(less, HR_OP_DENSE) + 2 * layers, all_of(plain, HR_OP_DENSE));
    ck_assert_uint_eq(count(less, HR_OP_DENSE, HR_ACT_GELU), layers);
    ck_assert_uint_eq(all_of(less, HR_OP_GELU), 0);
    ck_assert_uint_eq(all_of(less, HR_OP_ADD), 0);
    for (uint32_t n = 0; n < less->instr_count; n++) {
        ck_assert(less->instrs[n].op != HR_OP_DENSE || less->instrs[n].out_count == 1);
    }
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

START_TEST(gradients_of_weights_are_written_in_float32)
{
    program *plain = compile_model(gpt2, in_bfloat16, &all),
            *less = compile_model(gpt2, in_bfloat16, &widening);
    unsigned results = 0;
    for (uint32_t n = 0; n < less->instr_count; n++) {
        const instr *i = &less->instrs[n];
        for (uint32_t k = 0; i->op == HR_OP_DENSE_BWD_WEIGHTS && k < i->out_count; k++) {
            ck_assert_int_eq(less->tensors[i->in[0]].dtype, HR_BF16);
            const bool wide = less->tensors[i->out[k]].dtype == HR_F32;
            ck_assert(wide || all_of(less, HR_OP_EMBEDDING_BWD) > 0); // a table that is added up first
            results += wide;
        }
    }
    ck_assert_uint_gt(results, 10);
    ck_assert_uint_eq(all_of(less, HR_OP_CAST) + results, all_of(plain, HR_OP_CAST));
    program_destroy(plain);
    program_destroy(less);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fuse");
    TCase *c = tcase_create("fuse");
    tcase_add_test(c, relu6_goes_behind_its_normalisation);
    tcase_add_loop_test(c, what_is_absorbed_takes_no_byte_more, 0, ABSORBING_MODELS * KEPT_WAYS);
    tcase_add_test(c, every_residual_sum_and_every_cut_is_absorbed);
    tcase_add_test(c, a_cut_gradient_that_others_read_is_a_result_of_its_normalisation);
    tcase_add_test(c, what_one_reader_normalises_is_never_written);
    tcase_add_test(c, an_evaluation_pools_what_it_normalises);
    tcase_add_test(c, a_pooling_as_large_as_its_image_keeps_its_gradient);
    tcase_add_loop_test(c, what_is_read_through_takes_no_byte_more, 0, ABSORBING_MODELS * WAYS);
    tcase_add_test(c, every_sum_of_a_transformer_is_absorbed_by_what_makes_its_second_half);
    tcase_add_test(c, gradients_are_added_in_the_order_they_were);
    tcase_add_test(c, gelu_rides_on_products_and_keeps_what_it_kept);
    tcase_add_test(c, gradients_of_weights_are_written_in_float32);
    tcase_add_loop_test(c, queries_keys_and_values_are_one_product, 0, JOIN_WAYS);
    tcase_add_test(c, attention_over_another_sequence_stays_as_it_is);
    tcase_add_test(c, an_evaluation_is_one_product_too_and_keeps_nothing);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
