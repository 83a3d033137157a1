// SPDX-License-Identifier: Apache-2.0
// Recomputation: what it keeps, what it computes again, and what its peak is. That the weights are the same bit for
// bit is shown where there is arithmetic (tests/cli).
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "knobs/checkpoint.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { CHAIN_LAYERS = 64, WIDTH = 8, BATCH = 512 };

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

static const hr_target target = {.name = "nothing", .key = 77, .ask = ask_nothing, .fuses = fuses_nothing};

static program *compile_with(const hr_model *model, const char *const *pairs, uint32_t batch)
{
    hr_knobs knobs;
    hr_err err = {0};
    program *p = NULL;
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, *pairs, &err), HR_OK);
    }
    hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, batch, &target, &p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    status = program_check(p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    return p;
}

static program *compile(const hr_model *model, const char *strategy, const char *mode)
{
    char recomputes[64], executes[32], size[32];
    sprintf(recomputes, "checkpoint.strategy=%s", strategy);
    sprintf(executes, "execution.mode=%s", mode);
    sprintf(size, "batch.size=%d", BATCH);
    return compile_with(model, (const char *const[]){recomputes, executes, "optimizer.kind=sgd", size, NULL},
                        BATCH);
}

// L equal layers, each of which must keep its input and nothing else.
static hr_model *chain(uint32_t layers)
{
    char *text = malloc(200 + 64 * layers);
    char *at = text + sprintf(text,
                              "device: {vram: 1GiB}\nmodel:\n  input: {shape: [1, 1, %d]}\n  classes: %d\n"
                              "  layers:\n    - {kind: flatten}\n",
                              WIDTH, WIDTH);
    for (uint32_t l = 0; l < layers; l++) {
        at += sprintf(at, "    - {kind: dense, units: %d, bias: false}\n", WIDTH);
    }
    hr_model *model = model_from_text(text);
    free(text);
    return model;
}

static const char residual[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  input: {shape: [16, 16, 3]}\n"
    "  classes: 4\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn0, kind: batch_norm, activation: relu}\n"
    "    - {name: a, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn1, kind: batch_norm, activation: relu}\n"
    "    - {name: b, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn2, kind: batch_norm}\n"
    "    - {name: sum, kind: add, inputs: [bn2, bn0], activation: relu}\n"
    "    - {name: c, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn3, kind: batch_norm}\n"
    "    - {name: sum2, kind: add, inputs: [sum, bn3], activation: relu}\n"
    "    - {name: gap, kind: global_avg_pool}\n"
    "    - {name: out, kind: dense, units: 4}\n";

static const char *const strategies[] = {"every:1", "every:2",   "every:3",  "every:100",   "sqrt",
                                         "blocks",  "selective", "list:sum", "list:bn0,sum"};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static uint64_t flops_of(const program *p, bool again)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        sum += p->instrs[n].again == again ? p->instrs[n].flops : 0;
    }
    return sum;
}

START_TEST(nothing_is_computed_a_third_time_and_running_statistics_move_once)
{
    hr_model *model = model_from_text(residual);
    static const char *const modes[] = {"eager", "graph"};
    for (int m = 0; m < 2; m++) {
        program *plain = compile(model, "none", modes[m]);
        program *p = compile(model, strategies[_i], modes[m]);
        uint32_t again[HR_OP_COUNT] = {0}, once[HR_OP_COUNT] = {0};
        for (uint32_t n = 0; n < p->instr_count; n++) {
            const instr *i = &p->instrs[n];
            once[i->op] += i->phase == HR_PHASE_FORWARD;
            again[i->op] += i->again && i->op != HR_OP_ALLOC && i->op != HR_OP_FREE;
            ck_assert(!i->again || i->phase == HR_PHASE_BACKWARD);
        }
        ck_assert_uint_eq(again[HR_OP_BATCH_NORM], 0);
        ck_assert_uint_le(again[HR_OP_BATCH_NORM_APPLY], once[HR_OP_BATCH_NORM]);
        ck_assert_uint_le(again[HR_OP_CONV2D], once[HR_OP_CONV2D]);
        ck_assert_uint_eq(flops_of(p, false), flops_of(plain, false));
        ck_assert_uint_le(p->saved_for_backward_bytes, plain->saved_for_backward_bytes);
        program_destroy(plain);
        program_destroy(p);
    }
    model_destroy(model);
}
END_TEST

START_TEST(selective_computes_no_convolution_again)
{
    hr_model *model = model_from_text(residual);
    program *plain = compile(model, "none", "graph"), *p = compile(model, "selective", "graph");
    uint32_t applied = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        ck_assert(!p->instrs[n].again || p->instrs[n].op != HR_OP_CONV2D);
        applied += p->instrs[n].again && p->instrs[n].op == HR_OP_BATCH_NORM_APPLY;
    }
    ck_assert_uint_gt(applied, 0);
    ck_assert_uint_lt(flops_of(p, true), flops_of(plain, false) / 10);
    ck_assert_uint_lt(p->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    ck_assert_uint_lt(program_peak_bytes(p), program_peak_bytes(plain));
    program_destroy(plain);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// Reference tensorflow.md E1: L equal layers in segments of K keep the inputs of L / K segments and, while one is
// differentiated, its K interior results: L / K + K, least at √L.
START_TEST(the_peak_of_equal_layers_is_least_at_the_square_root)
{
    hr_model *model = chain(CHAIN_LAYERS);
    const uint64_t activation = (uint64_t)BATCH * WIDTH * sizeof(float);
    program *plain = compile(model, "none", "graph");
    ck_assert_uint_ge(program_peak_bytes(plain), CHAIN_LAYERS * activation);
    double best = INFINITY;
    uint32_t best_layers = 0;
    for (uint32_t layers = 1; layers <= CHAIN_LAYERS; layers++) {
        char strategy[16];
        sprintf(strategy, "every:%u", layers);
        program *p = compile(model, strategy, "graph");
        const double held = (double)program_peak_bytes(p) / (double)activation;
        if (held < best) {
            best = held;
            best_layers = layers;
        }
        program_destroy(p);
    }
    program *root = compile(model, "sqrt", "graph");
    ck_assert_uint_ge(best_layers, 6);
    ck_assert_uint_le(best_layers, 11);
    const double of_root = (double)program_peak_bytes(root) / (double)activation;
    ck_assert_msg(of_root < best + 2 && of_root < 2 * sqrt(CHAIN_LAYERS) + 6, "%g, best %g", of_root, best);
    ck_assert_uint_le(flops_of(root, true) * 3, flops_of(root, false));
    program_destroy(plain);
    program_destroy(root);
    model_destroy(model);
}
END_TEST

// ---- blocks ----------------------------------------------------------------------------------------------------

enum { BLOCKS_BATCH = 8, GIVEN = 3 };

// Blocks whose inner results are each read by several layers behind.
static const char dense_blocks[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  input: {shape: [8, 8, 3]}\n"
    "  classes: 4\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
    "    - repeat: 3\n"
    "      index: i\n"
    "      layers:\n"
    "        - {name: \"{i}_a\", kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
    "        - {name: \"{i}_xa\", kind: concat, inputs: [before, \"{i}_a\"]}\n"
    "        - {name: \"{i}_b\", kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
    "        - {name: \"{i}_xab\", kind: concat, inputs: [before, \"{i}_a\", \"{i}_b\"]}\n"
    "        - {name: \"{i}_c\", kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
    "        - {name: \"{i}_xabc\", kind: concat, inputs: [before, \"{i}_a\", \"{i}_b\", \"{i}_c\"]}\n"
    "        - {name: \"{i}_d\", kind: conv2d, filters: 8, kernel: 1}\n"
    "        - {name: \"{i}_out\", kind: add, inputs: [before, previous]}\n"
    "    - {name: gap, kind: global_avg_pool}\n"
    "    - {name: out, kind: dense, units: 4}\n";

// The result of one run, a sum itself, is given to every second block of the next.
static const char given_on[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  inputs:\n"
    "    - {name: tokens, type: int32, classes: 11, shape: [6]}\n"
    "    - {name: target, type: int32, classes: 11, shape: [4]}\n"
    "  classes: 11\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: words, kind: embedding, input: tokens, units: 8}\n"
    "    - repeat: 3\n"
    "      index: i\n"
    "      layers:\n"
    "        - {name: \"e{i}_wide\", kind: dense, units: 16, activation: relu}\n"
    "        - {name: \"e{i}_narrow\", kind: dense, units: 8}\n"
    "        - {name: \"e{i}_out\", kind: add, inputs: [before, previous]}\n"
    "    - {name: targets, kind: embedding, input: target, units: 8}\n"
    "    - repeat: 3\n"
    "      index: i\n"
    "      layers:\n"
    "        - {name: \"d{i}_attn\", kind: attention, heads: 2}\n"
    "        - {name: \"d{i}_add\", kind: add, inputs: [before, previous]}\n"
    "        - {name: \"d{i}_cross\", kind: attention, heads: 2, inputs: [previous, e2_out]}\n"
    "        - {name: \"d{i}_out\", kind: add, inputs: [\"d{i}_add\", previous]}\n"
    "    - {name: head, kind: dense, units: 11}\n";

// What the blocks of a run are given beside their one input.
typedef struct network {
    const char *source; // a file, or text
    uint32_t blocks;    // residual sums
    const char *given[GIVEN];
} network;

static const network networks[] = {
    {"presets/models/convnext_b.yaml", 36, {NULL}},
    {"presets/models/gpt2_124m.yaml", 24, {NULL}},
    {"presets/models/llama3_2_1b_tiny.yaml", 4, {NULL}},
    {"presets/models/whisper_small.yaml", 60, {"encoder_norm/out"}},
    {"presets/models/t5_base.yaml", 60, {"encoder_bias/bias", "decoder_bias/bias", "encoder_out/out"}},
    {dense_blocks, 3, {NULL}},
    {given_on, 9, {NULL}},
};
enum { NETWORKS = sizeof networks / sizeof *networks, SETTINGS = 4 };
static const char *const settings[SETTINGS][2] = {
    {"execution.as=pytorch", "precision.policy=float32"},
    {"execution.as=pytorch", "precision.policy=mixed_bfloat16"},
    {"execution.as=headroom", "precision.policy=float32"},
    {"execution.as=headroom", "precision.policy=mixed_bfloat16"},
};

static hr_model *model_of(const char *source)
{
    if (strchr(source, '\n') != NULL) {
        return model_from_text(source);
    }
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(source, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err), HR_OK);
    hr_preset_close(preset);
    return model;
}

static program *in_blocks(const hr_model *model, const char *const *setting, const char *strategy)
{
    return compile_with(model,
                        (const char *const[]){setting[0], setting[1], strategy, "execution.mode=eager",
                                              "optimizer.kind=sgd", NULL},
                        BLOCKS_BATCH);
}

static uint32_t last_sum(const program *p)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        last = p->instrs[n].phase == HR_PHASE_FORWARD && p->instrs[n].op == HR_OP_ADD ? n : last;
    }
    return last;
}

static bool is_given(const network *w, const tensor *t)
{
    for (int k = 0; k < GIVEN && w->given[k] != NULL; k++) {
        if (strcmp(t->name, w->given[k]) == 0) {
            return true;
        }
    }
    return false;
}

static bool computes(const instr *i)
{
    return i->phase == HR_PHASE_FORWARD && i->op != HR_OP_ALLOC && i->op != HR_OP_FREE && i->op != HR_OP_HOLD;
}

// A view of a batch's input holds nothing of its own.
static bool is_of_input(const program *p, const tensor *t)
{
    while (&p->tensors[t->storage] != t) {
        t = &p->tensors[t->storage];
    }
    return t->category == HR_CATEGORY_INPUT;
}

// Up to the last sum of a network no activation is kept but the sums and what the blocks are given; returns the sums.
static uint32_t check_kept(const program *p, const network *w)
{
    uint32_t sums = 0, given = 0, wanted = 0;
    const uint32_t last = last_sum(p);
    for (uint32_t n = 0; n <= last; n++) {
        const instr *i = &p->instrs[n];
        for (uint32_t k = 0; computes(i) && k < i->out_count; k++) {
            const tensor *t = &p->tensors[i->out[k]];
            const bool sum = i->op == HR_OP_ADD, gives = is_given(w, t);
            ck_assert_msg(t->category != HR_CATEGORY_ACTIVATIONS || is_of_input(p, t) ||
                              t->dropped == (!sum && !gives),
                          "%s: %s is %s", w->source, t->name, t->dropped ? "dropped" : "kept");
            sums += sum;
            given += gives;
        }
    }
    for (int k = 0; k < GIVEN && w->given[k] != NULL; k++) {
        wanted++;
    }
    ck_assert_uint_eq(given, wanted);
    return sums;
}

START_TEST(every_residual_block_is_a_segment_and_is_given_what_the_run_is)
{
    const network *w = &networks[_i / SETTINGS];
    hr_model *model = model_of(w->source);
    program *p = in_blocks(model, settings[_i % SETTINGS], "checkpoint.strategy=blocks");
    ck_assert_uint_eq(check_kept(p, w), w->blocks);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// What the flash kernel takes of one attention: of 128 queries and 32 features of a head at least, of which these networks have fewer.
static uint64_t whole_blocks(const program *p)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const char *suffix = strrchr(p->tensors[k].name, ':');
        const bool flash = suffix != NULL && strcmp(suffix, ":dq_accum") == 0;
        most = flash && p->tensors[k].bytes > most ? p->tensors[k].bytes : most;
    }
    return most;
}

START_TEST(in_blocks_a_mixed_policy_needs_no_more_than_float32_by_the_rules_of_pytorch)
{
    hr_model *model = model_of(networks[_i].source);
    program *wide = in_blocks(model, settings[0], "checkpoint.strategy=blocks");
    program *half = in_blocks(model, settings[1], "checkpoint.strategy=blocks");
    program *plain = in_blocks(model, settings[1], "checkpoint.strategy=none");
    ck_assert_msg(program_peak_bytes(half) <= program_peak_bytes(wide) + whole_blocks(half),
                  "%s: %llu above %llu", networks[_i].source, (unsigned long long)program_peak_bytes(half),
                  (unsigned long long)program_peak_bytes(wide));
    ck_assert_uint_lt(half->saved_for_backward_bytes, plain->saved_for_backward_bytes);
    program_destroy(wide);
    program_destroy(half);
    program_destroy(plain);
    model_destroy(model);
}
END_TEST

START_TEST(every_word_is_understood_and_no_other)
{
    static const char *const good[] = {"none",     "sqrt",   "blocks",   "selective",   "every:1",
                                       "every:12", "list:a", "list:a,b", "budget:1GiB", "budget:1500B"};
    static const char *const bad[] = {
        "every",        "every:",      "every:0",     "every:-3", "every:2x", "every:99999999999999999999",
        "list:",        "all",         "selective:3", "budget",   "budget:",  "budget:0B",
        "budget:-1GiB", "budget:some", "list:a,",     "list:,a",  "list:a,,b"};
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_VRAM, "1GiB", NULL), HR_OK);
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        checkpoint_strategy s;
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, good[k], NULL), HR_OK);
        ck_assert_int_eq(checkpoint_strategy_of(&knobs, &s, NULL), HR_OK);
        ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
    }
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        checkpoint_strategy s;
        hr_err err = {0};
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, bad[k], NULL), HR_OK);
        ck_assert_int_eq(checkpoint_strategy_of(&knobs, &s, &err), HR_KNOB);
        ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
    }
}
END_TEST

START_TEST(a_layer_that_does_not_exist_is_named)
{
    hr_model *model = model_from_text(residual);
    hr_knobs knobs;
    hr_err err = {0};
    program *p = NULL;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, "list:sum,sun", &err), HR_OK);
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, &err), HR_KNOB);
    ck_assert_ptr_nonnull(strstr(err.sentence, "'sun'"));
    ck_assert_ptr_null(p);
    model_destroy(model);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_model *model = model_from_text(residual);
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, strategies[_i], NULL), HR_OK);
    program *p = NULL;
    target_forget();
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, NULL), HR_OK);
    program_destroy(p);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        hr_host_mem_fail_at(nth);
        status = program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        program_destroy(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("checkpoint");
    tcase_add_loop_test(tests, nothing_is_computed_a_third_time_and_running_statistics_move_once, 0,
                        STRATEGIES);
    tcase_add_test(tests, selective_computes_no_convolution_again);
    tcase_add_test(tests, the_peak_of_equal_layers_is_least_at_the_square_root);
    tcase_add_loop_test(tests, every_residual_block_is_a_segment_and_is_given_what_the_run_is, 0,
                        NETWORKS * SETTINGS);
    tcase_add_loop_test(tests, in_blocks_a_mixed_policy_needs_no_more_than_float32_by_the_rules_of_pytorch, 0,
                        NETWORKS);
    tcase_add_test(tests, every_word_is_understood_and_no_other);
    tcase_add_test(tests, a_layer_that_does_not_exist_is_named);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, STRATEGIES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
