// SPDX-License-Identifier: Apache-2.0
// Quantization-aware training: what tfmot's default 8-bit scheme quantises is read through a copy, weights of products and
// convolutions once each, ranges move in training alone, and a step takes more memory than without.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "ops/fake_quant.h"
#include "program/compile.h"
#include "program/model_from_text.h"

#define HEAD                                                                                                 \
    "device: {vram: 1GiB}\n"                                                                                 \
    "compress: {quantize: qat}\n"                                                                            \
    "model:\n"                                                                                               \
    "  name: quantised\n"                                                                                    \
    "  input: {shape: [16, 16, 3]}\n"                                                                        \
    "  classes: 4\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n"

static const char plain[] = HEAD "    - {name: one, kind: conv2d, filters: 8, kernel: 3, activation: relu}\n"
                                 "    - {name: two, kind: depthwise_conv2d, kernel: 3}\n"
                                 "    - {name: pool, kind: max_pool, size: 2}\n"
                                 "    - {name: flat, kind: flatten}\n"
                                 "    - {name: out, kind: dense, units: 4}\n";

static const char residual[] =
    HEAD "    - {name: stem, kind: conv2d, filters: 8, kernel: 3, padding: 1, bias: false}\n"
         "    - {name: bn0, kind: batch_norm, activation: relu}\n"
         "    - {name: a, kind: conv2d, filters: 8, kernel: 3, padding: 1, bias: false}\n"
         "    - {name: bn1, kind: batch_norm}\n"
         "    - {name: sum, kind: add, inputs: [bn1, bn0], activation: relu}\n"
         "    - {name: gap, kind: global_avg_pool}\n"
         "    - {name: out, kind: dense, units: 4}\n";

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

typedef struct compiled {
    hr_preset *preset;
    hr_model *model;
    program *p;
} compiled;

static compiled compile_with(const char *text, program_mode mode, const char *const *pairs)
{
    static const hr_target target = {.name = "test", .ask = ask_nothing, .fuses = fuses};
    compiled c = {.preset = preset_from_text(text)};
    hr_knobs knobs = *hr_preset_knobs(c.preset);
    hr_err err = {0};
    for (; pairs != NULL && *pairs != NULL; pairs++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, *pairs, &err), HR_OK);
    }
    ck_assert_msg(hr_knobs_validate(&knobs, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(model_create(c.preset, &knobs, &c.model, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_compile(c.model, &knobs, mode, 6, &target, &c.p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(c.p, &err) == HR_OK, "%s", err.sentence);
    return c;
}

static void put_away(compiled *c)
{
    program_destroy(c->p);
    model_destroy(c->model);
    hr_preset_close(c->preset);
}

static uint32_t count_of(const program *p, hr_op op)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        count += p->instrs[n].op == op;
    }
    return count;
}

static bool has_range(const program *p, const char *value)
{
    char name[96];
    (void)snprintf(name, sizeof name, "%s:range", value);
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (strcmp(p->tensors[k].name, name) == 0) {
            ck_assert_uint_eq(p->tensors[k].category, HR_CATEGORY_STATE);
            ck_assert_uint_eq(p->tensors[k].bytes, 8);
            ck_assert(p->tensors[k].initial == FAKE_QUANT_INITIAL);
            return true;
        }
    }
    return false;
}

START_TEST(what_an_activation_follows_is_quantised_behind_it)
{
    compiled c = compile_with(plain, PROGRAM_TRAIN, NULL);
    ck_assert(has_range(c.p, "input") && has_range(c.p, "one/out") && has_range(c.p, "two/out") &&
              has_range(c.p, "out/out"));
    ck_assert(!has_range(c.p, "one/conv2d") && !has_range(c.p, "pool/out") && !has_range(c.p, "flat/out"));
    ck_assert_uint_eq(count_of(c.p, HR_OP_TRACK_RANGE), 4);
    ck_assert_uint_eq(count_of(c.p, HR_OP_FAKE_QUANT), 4);
    ck_assert_uint_eq(count_of(c.p, HR_OP_FAKE_QUANT_WEIGHTS), 3);
    put_away(&c);
}
END_TEST

START_TEST(what_a_normalisation_follows_is_not)
{
    compiled c = compile_with(residual, PROGRAM_TRAIN, NULL);
    ck_assert(has_range(c.p, "bn0/out") && has_range(c.p, "bn1/out") && has_range(c.p, "sum/out") &&
              has_range(c.p, "gap/out") && has_range(c.p, "out/out"));
    ck_assert(!has_range(c.p, "stem/out") && !has_range(c.p, "a/out") && !has_range(c.p, "sum/add") &&
              !has_range(c.p, "bn0/batch_norm"));
    put_away(&c);
}
END_TEST

// Filters have levels of their own, what is depthwise and dense has those of the whole tensor.
START_TEST(weights_have_the_levels_of_the_scheme)
{
    compiled c = compile_with(plain, PROGRAM_TRAIN, NULL);
    for (uint32_t n = 0; n < c.p->instr_count; n++) {
        const instr *i = &c.p->instrs[n];
        if (i->op == HR_OP_FAKE_QUANT_WEIGHTS) {
            const bool filters = strcmp(c.p->tensors[i->in[0]].name, "one/weights") == 0;
            ck_assert_int_eq(i->attr.count, filters ? 1 : 0);
            ck_assert_uint_eq(c.p->tensors[i->out[0]].category, HR_CATEGORY_CASTS);
        }
    }
    put_away(&c);
}
END_TEST

// No product, convolution or sum reads a tensor that has a copy.
START_TEST(readers_read_the_copies)
{
    static const char *const texts[] = {plain, residual};
    compiled c = compile_with(texts[_i], PROGRAM_TRAIN, NULL);
    for (uint32_t n = 0; n < c.p->instr_count; n++) {
        const instr *copy = &c.p->instrs[n];
        for (uint32_t m = 0; copy->op == HR_OP_FAKE_QUANT && m < c.p->instr_count; m++) {
            const instr *i = &c.p->instrs[m];
            const bool reads = i->phase == HR_PHASE_FORWARD && i->in_count > 0 && i->in[0] == copy->in[0] &&
                               op_needs_kernel(i->op);
            ck_assert_msg(!reads || i->op == HR_OP_FAKE_QUANT || i->op == HR_OP_TRACK_RANGE,
                          "%s reads %s itself", op_name(i->op), c.p->tensors[copy->in[0]].name);
        }
    }
    put_away(&c);
}
END_TEST

START_TEST(an_evaluation_moves_no_range)
{
    compiled train = compile_with(residual, PROGRAM_TRAIN, NULL);
    compiled evaluate = compile_with(residual, PROGRAM_EVALUATE, NULL);
    ck_assert_uint_eq(count_of(evaluate.p, HR_OP_TRACK_RANGE), 0);
    ck_assert_uint_eq(count_of(evaluate.p, HR_OP_FAKE_QUANT), count_of(train.p, HR_OP_FAKE_QUANT));
    put_away(&train);
    put_away(&evaluate);
}
END_TEST

START_TEST(every_variable_has_its_gradient)
{
    static const char *const graph[] = {"execution.mode=graph", NULL};
    static const char *const half[] = {"precision.policy=mixed_bfloat16", NULL};
    static const char *const *const pairs[] = {NULL, graph, half};
    compiled c = compile_with(residual, PROGRAM_TRAIN, pairs[_i]);
    bool *has = calloc(c.model->param_count, sizeof *has);
    ck_assert_ptr_nonnull(has);
    for (uint32_t k = c.p->persistent_count; k < c.p->tensor_count; k++) {
        const tensor *t = &c.p->tensors[k];
        if (t->category == HR_CATEGORY_GRADIENTS) {
            ck_assert_uint_ne(t->param, HR_NO_ID);
            has[t->param] = true;
        }
    }
    for (uint32_t k = 0; k < c.model->param_count; k++) {
        ck_assert_msg(has[k] == c.model->params[k].trainable, "%s", c.model->params[k].name);
    }
    free(has);
    put_away(&c);
}
END_TEST

// The teacher is what it was trained as: none of its weights and values has a copy, and it reads the images themselves.
START_TEST(a_teacher_stays_as_it_is)
{
    static const char *const taught[] = {"compress.distill=self", NULL};
    compiled c = compile_with(residual, PROGRAM_TRAIN, taught);
    compiled alone = compile_with(residual, PROGRAM_TRAIN, NULL);
    ck_assert_uint_lt(c.model->own_layers, c.model->layer_count);
    ck_assert_uint_eq(count_of(c.p, HR_OP_FAKE_QUANT), count_of(alone.p, HR_OP_FAKE_QUANT));
    ck_assert_uint_eq(count_of(c.p, HR_OP_FAKE_QUANT_WEIGHTS), count_of(alone.p, HR_OP_FAKE_QUANT_WEIGHTS));
    for (uint32_t n = 0; n < c.p->instr_count; n++) {
        const instr *i = &c.p->instrs[n];
        const bool teachers = i->layer != HR_NO_ID && i->layer >= c.model->own_layers;
        for (uint32_t k = 0; teachers && k < i->in_count; k++) {
            ck_assert_ptr_null(strstr(c.p->tensors[i->in[k]].name, ":fake_quant"));
        }
    }
    put_away(&c);
    put_away(&alone);
}
END_TEST

START_TEST(a_step_takes_more_memory_not_less)
{
    static const char *const modes[][3] = {{"execution.mode=eager", NULL}, {"execution.mode=graph", NULL}};
    static const char *const without[][3] = {{"execution.mode=eager", "compress.quantize=none", NULL},
                                             {"execution.mode=graph", "compress.quantize=none", NULL}};
    compiled aware = compile_with(residual, PROGRAM_TRAIN, modes[_i]);
    compiled other = compile_with(residual, PROGRAM_TRAIN, without[_i]);
    ck_assert_uint_gt(program_peak_bytes(aware.p), program_peak_bytes(other.p));
    ck_assert_uint_gt(aware.p->saved_for_backward_bytes, other.p->saved_for_backward_bytes);
    ck_assert_uint_gt(aware.p->static_bytes, other.p->static_bytes);
    put_away(&aware);
    put_away(&other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize_aware");
    TCase *tc = tcase_create("programs");
    tcase_add_test(tc, what_an_activation_follows_is_quantised_behind_it);
    tcase_add_test(tc, what_a_normalisation_follows_is_not);
    tcase_add_test(tc, weights_have_the_levels_of_the_scheme);
    tcase_add_loop_test(tc, readers_read_the_copies, 0, 2);
    tcase_add_test(tc, an_evaluation_moves_no_range);
    tcase_add_loop_test(tc, every_variable_has_its_gradient, 0, 3);
    tcase_add_test(tc, a_teacher_stays_as_it_is);
    tcase_add_loop_test(tc, a_step_takes_more_memory_not_less, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
