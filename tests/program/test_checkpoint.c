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

static program *compile(const hr_model *model, const char *strategy, const char *mode)
{
    hr_knobs knobs;
    hr_err err = {0};
    program *p = NULL;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, strategy, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_MODE, mode, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_OPTIMIZER_KIND, "sgd", &err), HR_OK);
    hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err);
    ck_assert_msg(status == HR_OK, "%s %s: %s", strategy, mode, err.sentence);
    status = program_check(p, &err);
    ck_assert_msg(status == HR_OK, "%s %s: %s", strategy, mode, err.sentence);
    return p;
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

START_TEST(every_word_is_understood_and_no_other)
{
    static const char *const good[] = {"none",    "sqrt",     "blocks", "selective",
                                       "every:1", "every:12", "list:a", "list:a,b"};
    static const char *const bad[] = {"every",    "every:",   "every:0",
                                      "every:-3", "every:2x", "every:99999999999999999999",
                                      "list:",    "all",      "selective:3"};
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
