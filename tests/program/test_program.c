// SPDX-License-Identifier: Apache-2.0
// What a compiled program promises: it passes the independent checker for every model, mode, optimizer and kind
// of target; it keeps for backward what the reference says; the checker itself notices broken programs.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "program/compile.h"
#include "program/model_from_text.h"

static const char separable_cnn[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: separable\n"
    "  input: {shape: [32, 32, 3]}\n"
    "  classes: 10\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {kind: separable_conv2d, filters: 32, kernel: 3, activation: relu}\n"
    "    - {kind: max_pool, size: 2}\n"
    "    - {kind: separable_conv2d, filters: 64, kernel: 3, activation: relu}\n"
    "    - {kind: flatten}\n"
    "    - {kind: dense, units: 64, activation: relu}\n"
    "    - {kind: dense, units: 10}\n";

static const char residual[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: residual\n"
    "  input: {shape: [16, 16, 3]}\n"
    "  classes: 4\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn0, kind: batch_norm, activation: relu}\n"
    "    - {name: a, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn1, kind: batch_norm, activation: relu}\n"
    "    - {name: b, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn2, kind: batch_norm}\n"
    "    - {name: sum, kind: add, inputs: [bn2, bn0], activation: relu}\n"
    "    - {name: sum2, kind: add, inputs: [sum, bn0]}\n"
    "    - {name: gap, kind: global_avg_pool}\n"
    "    - {name: out, kind: dense, units: 4}\n";

static const char *const models[] = {separable_cnn, residual};

// A target that wants nothing.
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

// A target that wants scratch everywhere and weights in a layout of its own.
static hr_status ask_much(void *context, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    (void)context, (void)limit, (void)err;
    *out = (target_answer){.workspace_bytes = 1000 + q->op};
    if (q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_BWD_DATA) {
        out->reorder_count = 1;
        out->reorder[0].operand = 1;
        out->reorder[0].bytes = 4096;
    } else if (q->op == HR_OP_CONV2D_BWD_WEIGHTS) {
        out->reorder_count = 1;
        out->reorder[0].operand = 0x80;
        out->reorder[0].bytes = 4096;
    }
    return HR_OK;
}

static bool fuses_all(void *context, hr_op op, hr_act act)
{
    (void)context, (void)act;
    return op == HR_OP_CONV2D || op == HR_OP_DENSE || op == HR_OP_BATCH_NORM || op == HR_OP_BATCH_NORM_EVAL ||
           op == HR_OP_ADD;
}

static const hr_target targets[] = {
    {.name = "nothing", .key = 1, .ask = ask_nothing, .fuses = fuses_nothing},
    {.name = "fusing", .key = 2, .ask = ask_nothing, .fuses = fuses_all},
    {.name = "much", .key = 3, .ask = ask_much, .fuses = fuses_all},
};

static program *compile(const char *model_text, const char *const *pairs, program_mode mode, uint32_t batch,
                        const hr_target *target)
{
    hr_err err = {0};
    hr_knobs knobs;
    program *p = NULL;
    hr_model *model = model_from_text(model_text);
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(program_compile(model, &knobs, mode, batch, target, &p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

START_TEST(every_program_passes_the_checker)
{
    static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
    static const char *const optimizers[] = {"optimizer.kind=sgd", "optimizer.kind=momentum",
                                             "optimizer.kind=adam"};
    for (int k = 0; k < 2 * 2 * 3 * 3 * 2; k++) {
        const char *pairs[] = {modes[k % 2], optimizers[k / 2 % 3], "batch.size=8", NULL};
        hr_err err = {0};
        program *p = compile(models[k / 6 % 2], pairs, k / 36 % 2 == 0 ? PROGRAM_TRAIN : PROGRAM_EVALUATE,
                             8u - (uint32_t)(k % 3), &targets[k / 12 % 3]);
        ck_assert_msg(program_check(p, &err) == HR_OK, "%d: %s", k, err.sentence);
        program_destroy(p);
    }
}
END_TEST

START_TEST(eager_keeps_what_the_tape_keeps)
{
    for (uint32_t batch = 1; batch <= 128; batch *= 2) {
        char size[32];
        (void)snprintf(size, sizeof size, "batch.size=%u", batch);
        program *eager = compile(separable_cnn, (const char *[]){size, "execution.mode=eager", NULL},
                                 PROGRAM_TRAIN, batch, &targets[1]);
        program *graph = compile(separable_cnn, (const char *[]){size, "execution.mode=graph", NULL},
                                 PROGRAM_TRAIN, batch, &targets[1]);
        ck_assert_uint_eq(eager->saved_for_backward_bytes, UINT64_C(232320) * batch);
        ck_assert_uint_lt(graph->saved_for_backward_bytes, eager->saved_for_backward_bytes);
        program_destroy(eager);
        program_destroy(graph);
    }
}
END_TEST

START_TEST(fusing_changes_nothing_that_is_kept)
{
    const char *pairs[] = {"batch.size=16", "execution.mode=eager", NULL};
    program *plain = compile(separable_cnn, pairs, PROGRAM_TRAIN, 16, &targets[0]);
    program *fused = compile(separable_cnn, pairs, PROGRAM_TRAIN, 16, &targets[1]);
    ck_assert_uint_eq(plain->saved_for_backward_bytes, fused->saved_for_backward_bytes);
    ck_assert_uint_lt(fused->instr_count, plain->instr_count);
    program_destroy(plain);
    program_destroy(fused);
}
END_TEST

START_TEST(persistent_tensors_are_the_same_in_all_programs_of_a_build)
{
    const char *pairs[] = {"batch.size=16", NULL};
    program *train = compile(residual, pairs, PROGRAM_TRAIN, 16, &targets[2]);
    program *partial = compile(residual, pairs, PROGRAM_TRAIN, 5, &targets[2]);
    ck_assert_uint_eq(train->persistent_count, partial->persistent_count);
    for (uint32_t k = 0; k < train->persistent_count; k++) {
        ck_assert_str_eq(train->tensors[k].name, partial->tensors[k].name);
        ck_assert_uint_eq(train->tensors[k].bytes, partial->tensors[k].bytes);
    }
    program_destroy(train);
    program_destroy(partial);
}
END_TEST

START_TEST(every_reorder_serves_an_instruction_of_the_program)
{
    program *p = compile(residual, (const char *[]){"batch.size=4", NULL}, PROGRAM_TRAIN, 4, &targets[2]);
    unsigned reorders = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *r = &p->instrs[n];
        bool found = false;
        for (uint32_t k = 0; r->op == HR_OP_REORDER && k < p->instr_count; k++) {
            const instr *peer = &p->instrs[k];
            uint32_t operand = r->attr.peer_operand;
            found = found || (peer->id == r->attr.peer &&
                              ((operand & 0x80) != 0 ? peer->out[operand & 0x7f] == r->in[0]
                                                     : peer->in[operand] == r->out[0]));
        }
        ck_assert(r->op != HR_OP_REORDER || found);
        reorders += r->op == HR_OP_REORDER;
    }
    ck_assert_uint_eq(reorders, 3 + 2 + 3); // forward, data (the stem has none), weights
    program_destroy(p);
}
END_TEST

// Rewrites one instruction of a copy and asks the checker.
static bool checker_accepts(const program *p, uint32_t index, instr changed)
{
    program copy = *p;
    instr *instrs = hr_calloc(p->instr_count, sizeof *instrs);
    memcpy(instrs, p->instrs, p->instr_count * sizeof *instrs);
    instrs[index] = changed;
    copy.instrs = instrs;
    bool accepted = program_check(&copy, NULL) == HR_OK;
    hr_free(instrs);
    return accepted;
}

START_TEST(the_checker_notices_every_misplaced_alloc_and_free)
{
    program *p = compile(residual, (const char *[]){"batch.size=4", NULL}, PROGRAM_TRAIN, 4, &targets[2]);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        instr i = p->instrs[n];
        if (i.op == HR_OP_ALLOC || i.op == HR_OP_FREE) {
            instr other = i;
            other.op = HR_OP_READ; // neither allocates nor frees
            other.in[0] = 0;
            other.in_count = 1;
            other.out_count = 0;
            ck_assert_msg(!checker_accepts(p, n, other), "instruction %u", n);
        }
    }
    program_destroy(p);
}
END_TEST

START_TEST(compiling_survives_every_failing_allocation)
{
    hr_knobs knobs;
    hr_model *model = model_from_text(residual);
    hr_knobs_init(&knobs);
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK && nth < 100000; nth++) {
        program *p = NULL;
        hr_err err = {0};
        target_forget();
        int64_t live = hr_host_mem_live();
        (void)hr_host_mem_fail_at(nth);
        status = program_compile(model, &knobs, PROGRAM_TRAIN, 4, &targets[2], &p, &err);
        (void)hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "%s", err.sentence);
        program_destroy(p);
        target_forget();
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_int_eq(status, HR_OK);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program");
    TCase *cases = tcase_create("program");
    tcase_add_test(cases, every_program_passes_the_checker);
    tcase_add_test(cases, eager_keeps_what_the_tape_keeps);
    tcase_add_test(cases, fusing_changes_nothing_that_is_kept);
    tcase_add_test(cases, persistent_tensors_are_the_same_in_all_programs_of_a_build);
    tcase_add_test(cases, every_reorder_serves_an_instruction_of_the_program);
    tcase_add_test(cases, the_checker_notices_every_misplaced_alloc_and_free);
    tcase_add_test(cases, compiling_survives_every_failing_allocation);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
