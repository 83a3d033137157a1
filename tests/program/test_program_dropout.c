// SPDX-License-Identifier: Apache-2.0
// Dropout in programs: the eager tape keeps a mask of one byte per element, a graph draws it again from nothing,
// an evaluation has no dropout at all.
#include <check.h>
#include <string.h>

#include "program/compile.h"
#include "program/model_from_text.h"

static const char model_text[] = "device: {vram: 1GiB}\n"
                                 "model:\n"
                                 "  name: dropping\n"
                                 "  input: {shape: [4, 4, 3]}\n"
                                 "  classes: 5\n"
                                 "  loss: softmax_cross_entropy\n"
                                 "  layers:\n"
                                 "    - {kind: flatten}\n"
                                 "    - {name: wide, kind: dense, units: 96}\n"
                                 "    - {name: smooth, kind: gelu}\n"
                                 "    - {name: thin, kind: dropout, rate: 0.25}\n"
                                 "    - {name: path, kind: stochastic_depth, rate: 0.5}\n"
                                 "    - {name: out, kind: dense, units: 5}\n"
                                 "    - {name: last, kind: dropout, rate: 0.5}\n";

enum { BATCH = 7, WIDE = 96 };

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

static program *compile(const char *execution, program_mode mode)
{
    static const hr_target target = {
        .name = "nothing", .key = 101, .ask = ask_nothing, .fuses = fuses_nothing};
    hr_err err = {0};
    hr_knobs knobs;
    program *p = NULL;
    hr_model *model = model_from_text(model_text);
    hr_knobs_init(&knobs);
    ck_assert_msg(hr_knobs_set_pair(&knobs, execution, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_knobs_set_pair(&knobs, "batch.size=7", &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_compile(model, &knobs, mode, BATCH, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static uint32_t count(const program *p, hr_op op)
{
    uint32_t found = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        found += p->instrs[n].op == op;
    }
    return found;
}

static const instr *first(const program *p, hr_op op)
{
    uint32_t n = 0;
    while (n < p->instr_count && p->instrs[n].op != op) {
        n++;
    }
    ck_assert_msg(n < p->instr_count, "no %s", op_name(op));
    return &p->instrs[n];
}

START_TEST(the_eager_tape_keeps_a_mask)
{
    program *p = compile("execution.mode=eager", PROGRAM_TRAIN);
    const instr *forward = first(p, HR_OP_DROPOUT);
    ck_assert_uint_eq(forward->out_count, 2);
    const tensor *mask = &p->tensors[forward->out[1]];
    ck_assert_str_eq(mask->name, "thin/out:mask");
    ck_assert_uint_eq(mask->bytes, BATCH * WIDE);
    ck_assert_int_eq(mask->category, HR_CATEGORY_STATE);
    ck_assert(mask->saved);
    ck_assert_uint_eq(count(p, HR_OP_DROPOUT_BWD_MASK), 2);
    ck_assert_uint_eq(count(p, HR_OP_DROPOUT_BWD), 0);
    program_destroy(p);
}
END_TEST

START_TEST(a_graph_draws_the_mask_again)
{
    program *p = compile("execution.mode=graph", PROGRAM_TRAIN);
    const instr *forward = first(p, HR_OP_DROPOUT);
    ck_assert_uint_eq(forward->out_count, 1);
    ck_assert_uint_eq(count(p, HR_OP_DROPOUT_BWD), 2);
    ck_assert_uint_eq(count(p, HR_OP_DROPOUT_BWD_MASK), 0);
    // The last one found, walking forward, belongs to the layer that came first.
    const instr *backward = NULL;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        backward = p->instrs[n].op == HR_OP_DROPOUT_BWD ? &p->instrs[n] : backward;
    }
    ck_assert_uint_eq(backward->attr.salt, forward->attr.salt);
    ck_assert(backward->attr.rate == 0.25);
    program_destroy(p);
}
END_TEST

START_TEST(a_number_a_sample_is_kept_of_stochastic_depth)
{
    program *p = compile(_i == 0 ? "execution.mode=eager" : "execution.mode=graph", PROGRAM_TRAIN);
    const instr *forward = first(p, HR_OP_DROP_PATH), *backward = first(p, HR_OP_DROP_PATH_BWD);
    const tensor *factors = &p->tensors[forward->out[1]];
    ck_assert_uint_eq(factors->bytes, BATCH * sizeof(float));
    ck_assert_int_eq(factors->category, HR_CATEGORY_STATE);
    ck_assert(factors->saved);
    ck_assert_uint_eq(backward->in[0], forward->out[1]);
    program_destroy(p);
}
END_TEST

START_TEST(layers_draw_masks_of_their_own)
{
    program *p = compile("execution.mode=graph", PROGRAM_TRAIN);
    uint64_t salt = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        if (p->instrs[n].op == HR_OP_DROPOUT) {
            ck_assert_uint_ne(p->instrs[n].attr.salt, salt);
            salt = p->instrs[n].attr.salt;
        }
    }
    program_destroy(p);
}
END_TEST

START_TEST(an_evaluation_leaves_dropout_out)
{
    program *p = compile(_i == 0 ? "execution.mode=eager" : "execution.mode=graph", PROGRAM_EVALUATE);
    ck_assert_uint_eq(count(p, HR_OP_DROPOUT), 0);
    ck_assert_uint_eq(count(p, HR_OP_DROP_PATH), 0);
    const hr_op loss = _i == 0 ? HR_OP_SOFTMAX_XENT : HR_OP_SOFTMAX_XENT_STREAM;
    const tensor *read = &p->tensors[first(p, loss)->in[0]];
    ck_assert_str_eq(read->name, "out/out"); // what the last dropout would have read
    program_destroy(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_dropout");
    TCase *all = tcase_create("programs");
    tcase_add_test(all, the_eager_tape_keeps_a_mask);
    tcase_add_loop_test(all, a_number_a_sample_is_kept_of_stochastic_depth, 0, 2);
    tcase_add_test(all, a_graph_draws_the_mask_again);
    tcase_add_test(all, layers_draw_masks_of_their_own);
    tcase_add_loop_test(all, an_evaluation_leaves_dropout_out, 0, 2);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
