// SPDX-License-Identifier: Apache-2.0
// What softmax cross-entropy holds in graph mode: its logits in the type they were made in and two float32 numbers a
// row, never probabilities; its gradient lies where the logits lay. In eager mode it holds what TensorFlow does.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 4, LENGTH = 6, WORDS = 11 };

static const char language_model[] = "device: {vram: 1GiB}\n"
                                     "model:\n"
                                     "  name: words\n"
                                     "  input: {type: int32, classes: 11, shape: [6]}\n"
                                     "  classes: 11\n"
                                     "  loss: softmax_cross_entropy\n"
                                     "  layers:\n"
                                     "    - {name: wte, kind: embedding, units: 8}\n"
                                     "    - {name: head, kind: dense, units: 11}\n";

static const struct {
    const char *policy;
    hr_dtype logits, statistics;
} policies[] = {
    {"precision.policy=float32", HR_F32, HR_F32},       {"precision.policy=float64", HR_F64, HR_F64},
    {"precision.policy=mixed_float16", HR_F16, HR_F32}, {"precision.policy=mixed_bfloat16", HR_BF16, HR_F32},
    {"precision.policy=float16", HR_F16, HR_F32},       {"precision.policy=bfloat16", HR_BF16, HR_F32}};
enum { POLICIES = sizeof policies / sizeof *policies };

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

static bool makes_gradients(void *context, target_absorption what, hr_op op)
{
    (void)context;
    return what == TARGET_GRADIENT && op == HR_OP_SOFTMAX_XENT_STREAM;
}

static const hr_target native = {.name = "native", .key = 92, .ask = ask_nothing, .fuses = fuses_nothing};
static const hr_target absorbing = {
    .name = "absorbing", .key = 95, .ask = ask_nothing, .fuses = fuses_nothing, .absorbs = makes_gradients};

static program *compile_for(const hr_target *target, program_mode mode, const char *const *pairs)
{
    hr_err err = {0};
    hr_knobs knobs;
    program *p = NULL;
    hr_model *model = model_from_text(language_model);
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(program_compile(model, &knobs, mode, BATCH, target, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static program *compile(program_mode mode, const char *const *pairs)
{
    return compile_for(&native, mode, pairs);
}

static const instr *only(const program *p, hr_op op)
{
    const instr *found = NULL;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        if (p->instrs[n].op == op) {
            ck_assert_msg(found == NULL, "%s stands there twice", op_name(op));
            found = &p->instrs[n];
        }
    }
    return found;
}

static uint32_t owner_of(const program *p, uint32_t id)
{
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

// Storages that hold a number for every logit.
static uint32_t count_like_logits(const program *p)
{
    uint32_t count = 0;
    for (uint32_t k = p->persistent_count; k < p->tensor_count; k++) {
        const hr_shape *s = &p->tensors[k].shape;
        const bool alike = s->rank == 3 && s->dim[0] == BATCH && s->dim[1] == LENGTH && s->dim[2] == WORDS;
        count += alike && p->tensors[k].storage == k;
    }
    return count;
}

START_TEST(a_graph_holds_logits_and_two_numbers_a_row)
{
    const char *const pairs[] = {"execution.mode=graph", policies[_i].policy, NULL};
    program *p = compile(PROGRAM_TRAIN, pairs);
    const instr *loss = only(p, HR_OP_SOFTMAX_XENT_STREAM), *back = only(p, HR_OP_SOFTMAX_XENT_STREAM_BWD);
    ck_assert(loss != NULL && back != NULL && only(p, HR_OP_SOFTMAX_XENT) == NULL);
    const tensor *logits = &p->tensors[loss->in[0]];
    ck_assert_int_eq(logits->dtype, policies[_i].logits);
    ck_assert_int_eq(p->tensors[back->out[0]].dtype, policies[_i].logits);
    ck_assert(logits->saved && back->in[0] == loss->in[0]);
    for (uint32_t k = 0; k < 2; k++) {
        const tensor *t = &p->tensors[loss->out[k]];
        ck_assert(t->shape.rank == 2 && t->shape.dim[0] == BATCH && t->shape.dim[1] == LENGTH);
        ck_assert(t->dtype == policies[_i].statistics && t->category == HR_CATEGORY_STATE);
        ck_assert_uint_eq(back->in[2 + k], loss->out[k]);
    }
    ck_assert_int_eq(p->tensors[loss->out[2]].dtype, policies[_i].statistics);
    ck_assert_uint_eq(owner_of(p, back->out[0]), owner_of(p, loss->in[0])); // written over the logits
    ck_assert_uint_eq(count_like_logits(p), 1);
    program_destroy(p);
}
END_TEST

START_TEST(without_inplace_the_gradient_has_storage_of_its_own)
{
    const char *const pairs[] = {"execution.mode=graph", "execution.inplace=off", policies[_i].policy, NULL};
    program *p = compile(PROGRAM_TRAIN, pairs);
    const instr *back = only(p, HR_OP_SOFTMAX_XENT_STREAM_BWD);
    ck_assert_uint_ne(owner_of(p, back->out[0]), owner_of(p, back->in[0]));
    ck_assert_uint_eq(count_like_logits(p), 2);
    program_destroy(p);
}
END_TEST

START_TEST(predictions_that_are_kept_are_not_written_over)
{
    const char *const pairs[] = {"execution.mode=graph", "execution.retain=predictions", NULL};
    program *p = compile(PROGRAM_TRAIN, pairs);
    const instr *back = only(p, HR_OP_SOFTMAX_XENT_STREAM_BWD);
    ck_assert_uint_ne(owner_of(p, back->out[0]), owner_of(p, back->in[0]));
    program_destroy(p);
}
END_TEST

START_TEST(an_evaluation_holds_the_logits_alone)
{
    const char *const pairs[] = {"execution.mode=graph", policies[_i].policy, NULL};
    program *p = compile(PROGRAM_EVALUATE, pairs);
    const instr *correct = only(p, HR_OP_ACCURACY);
    ck_assert_ptr_nonnull(only(p, HR_OP_SOFTMAX_XENT_STREAM));
    ck_assert_int_eq(p->tensors[correct->in[0]].dtype, policies[_i].logits);
    ck_assert_uint_eq(count_like_logits(p), 1);
    program_destroy(p);
}
END_TEST

START_TEST(eager_mode_keeps_logits_and_probabilities)
{
    const char *const pairs[] = {"execution.mode=eager", policies[_i].policy, NULL};
    program *p = compile(PROGRAM_TRAIN, pairs);
    const instr *loss = only(p, HR_OP_SOFTMAX_XENT);
    ck_assert(loss != NULL && only(p, HR_OP_SOFTMAX_XENT_STREAM) == NULL);
    ck_assert_int_eq(p->tensors[loss->in[0]].dtype, policies[_i].statistics);
    ck_assert_str_eq(p->tensors[loss->out[0]].name, "probs");
    ck_assert(p->tensors[loss->in[0]].saved && p->tensors[loss->out[0]].saved);
    program_destroy(p);
}
END_TEST

// ---- both at once -----------------------------------------------------------------------------------------------

START_TEST(a_target_that_can_makes_loss_and_gradient_at_once)
{
    const char *const pairs[] = {"execution.mode=graph", policies[_i].policy, NULL};
    program *p = compile_for(&absorbing, PROGRAM_TRAIN, pairs), *apart = compile(PROGRAM_TRAIN, pairs);
    const instr *both = only(p, HR_OP_SOFTMAX_XENT_GRADIENT),
                *back = only(apart, HR_OP_SOFTMAX_XENT_STREAM_BWD);
    ck_assert(only(p, HR_OP_SOFTMAX_XENT_STREAM) == NULL && only(p, HR_OP_SOFTMAX_XENT_STREAM_BWD) == NULL);
    ck_assert_int_eq(both->phase, HR_PHASE_BACKWARD);
    ck_assert_uint_eq(owner_of(p, both->out[0]), owner_of(p, both->in[0]));
    ck_assert_str_eq(p->tensors[both->out[1]].name, "loss");
    ck_assert_uint_eq(both->in_count + 2u, back->in_count); // with the loss scale, where there is one
    ck_assert(both->attr.scale == back->attr.scale);
    ck_assert_uint_le(program_peak_bytes(p), program_peak_bytes(apart));
    ck_assert_uint_eq(p->instr_count + 5u, apart->instr_count); // the loss, and what held its rows' numbers
    program_destroy(apart);
    program_destroy(p);
}
END_TEST

START_TEST(nobody_else_does)
{
    static const char *const ways[][3] = {{"execution.mode=eager"},
                                          {"execution.mode=graph", "execution.fuse=off"},
                                          {"execution.mode=graph", "execution.tape=none"}};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        program *p = compile_for(&absorbing, PROGRAM_TRAIN, ways[k]);
        ck_assert_ptr_null(only(p, HR_OP_SOFTMAX_XENT_GRADIENT));
        program_destroy(p);
    }
    const char *const graph[] = {"execution.mode=graph", NULL};
    program *p = compile_for(&absorbing, PROGRAM_EVALUATE, graph);
    ck_assert_ptr_null(only(p, HR_OP_SOFTMAX_XENT_GRADIENT));
    program_destroy(p);
}
END_TEST

START_TEST(every_round_has_its_loss)
{
    const char *const pairs[] = {"execution.mode=graph", "batch.accumulate=2",
                                 "precision.policy=mixed_float16", NULL};
    program *p = compile_for(&absorbing, PROGRAM_TRAIN, pairs);
    const instr *both = only(p, HR_OP_SOFTMAX_XENT_GRADIENT);
    ck_assert_ptr_nonnull(both);
    ck_assert_str_eq(p->tensors[both->in[2]].name, "loss_scale");
    program_destroy(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("streaming_loss");
    TCase *c = tcase_create("programs");
    tcase_add_loop_test(c, a_graph_holds_logits_and_two_numbers_a_row, 0, POLICIES);
    tcase_add_loop_test(c, without_inplace_the_gradient_has_storage_of_its_own, 0, POLICIES);
    tcase_add_test(c, predictions_that_are_kept_are_not_written_over);
    tcase_add_loop_test(c, an_evaluation_holds_the_logits_alone, 0, POLICIES);
    tcase_add_loop_test(c, a_target_that_can_makes_loss_and_gradient_at_once, 0, POLICIES);
    tcase_add_test(c, nobody_else_does);
    tcase_add_test(c, every_round_has_its_loss);
    tcase_add_loop_test(c, eager_mode_keeps_logits_and_probabilities, 0, POLICIES);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
