// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings under compress.quantize: made once of a table whoever reads it, looked up and multiplied as they lie, and left as they
// are where anybody reads the numbers themselves. Judged by the program of an evaluation.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "program/compile.h"
#include "program/deployed.h"
#include "program/model_from_text.h"

#define HEAD                                                                                                 \
    "device: {vram: 1GiB}\n"                                                                                 \
    "model:\n"                                                                                               \
    "  name: words\n"                                                                                        \
    "  input: {type: int32, classes: 30, shape: [6]}\n"                                                      \
    "  classes: 30\n"                                                                                        \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n"
#define WORDS "    - {name: words, kind: embedding, units: 10}\n"
#define TIED  "    - {name: logits, kind: dense, units: 30, bias: false, transpose: true, share: words}\n"

static const char tied[] = HEAD WORDS "    - {name: places, kind: position_embedding}\n" TIED;
static const char apart[] = HEAD WORDS "    - {name: logits, kind: dense, units: 30}\n";
static const char turned[] = HEAD WORDS "    - {name: logits, kind: dense, units: 30, transpose: true}\n";
// Also read as it lies, along the other axis: its rows have no scale there.
static const char both_ways[] =
    HEAD "    - {name: words, kind: embedding, units: 30}\n"
         "    - {name: along, kind: dense, units: 30, bias: false, share: words}\n"
         "    - {name: logits, kind: dense, units: 30, bias: false, transpose: true, share: words}\n";

static const char *const modes[] = {"none", "int8_weights", "int8", "int4_weights"};
static const hr_op products[] = {HR_OP_DENSE, HR_OP_DENSE_INT8_WEIGHTS, HR_OP_DENSE_INT8,
                                 HR_OP_DENSE_INT4_WEIGHTS};
static const hr_op lookups[] = {HR_OP_EMBEDDING, HR_OP_EMBEDDING_INT8, HR_OP_EMBEDDING_INT8,
                                HR_OP_EMBEDDING_INT4};
static const hr_op makers[] = {HR_OP_COUNT, HR_OP_QUANTIZE_INT8, HR_OP_QUANTIZE_INT8, HR_OP_QUANTIZE_INT4};

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
    hr_model *model;
    hr_knobs knobs;
    program *p;
} compiled;

static compiled compile_as(const char *text, program_mode mode, const char *quantize)
{
    static const hr_target target = {.name = "test", .ask = ask_nothing, .fuses = fuses};
    hr_preset *preset = preset_from_text(text);
    compiled c = {.knobs = *hr_preset_knobs(preset)};
    hr_err err = {0};
    ck_assert_int_eq(hr_knobs_set(&c.knobs, HR_KNOB_COMPRESS_QUANTIZE, quantize, &err), HR_OK);
    ck_assert_msg(model_create(preset, &c.knobs, &c.model, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_compile(c.model, &c.knobs, mode, 4, &target, &c.p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(c.p, &err) == HR_OK, "%s", err.sentence);
    hr_preset_close(preset);
    return c;
}

static void put_away(compiled *c)
{
    program_destroy(c->p);
    model_destroy(c->model);
}

static uint32_t count_of(const program *p, hr_op op)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        count += p->instrs[n].op == op;
    }
    return count;
}

static const instr *only(const program *p, hr_op op)
{
    const instr *found = NULL;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        if (p->instrs[n].op == op) {
            ck_assert_ptr_null(found);
            found = &p->instrs[n];
        }
    }
    ck_assert_msg(found != NULL, "no %s", op_name(op));
    return found;
}

static uint64_t deployed_bytes(const compiled *c)
{
    deployed_size size;
    ck_assert_int_eq(deployed_size_of(c->model, &c->knobs, &size, NULL), HR_OK);
    return size.bytes;
}

// Bytes of [30,10] by rows: numbers and scales, for int4 with zero points.
static const uint64_t table_bytes[] = {1200, 300 + 120, 300 + 120, 150 + 120 + 30};

START_TEST(a_tied_table_is_made_once_and_read_twice)
{
    compiled c = compile_as(tied, PROGRAM_EVALUATE, modes[_i]);
    const instr *made = only(c.p, makers[_i]), *looked_up = only(c.p, lookups[_i]);
    const instr *product = only(c.p, products[_i]);
    ck_assert_int_eq(made->attr.flags, OP_FLAG_TRANSPOSE);
    ck_assert_int_eq(product->attr.flags, OP_FLAG_TRANSPOSE);
    for (uint32_t k = 0; k < made->out_count; k++) {
        ck_assert_uint_eq(looked_up->in[k + 1], made->out[k]);
        ck_assert_uint_eq(product->in[k + 1], made->out[k]);
    }
    ck_assert_uint_eq(deployed_bytes(&c), table_bytes[_i] + 4 * 6 * 10); // positions stay
    ck_assert_uint_eq(count_of(c.p, HR_OP_ADD_BROADCAST), 1);
    put_away(&c);
}
END_TEST

START_TEST(a_table_and_a_dense_layer_are_two)
{
    static const uint64_t dense_bytes[] = {1200, 300 + 120, 300 + 120, 150 + 120 + 30};
    compiled c = compile_as(apart, PROGRAM_EVALUATE, modes[_i]);
    ck_assert_uint_eq(count_of(c.p, makers[_i]), 2);
    ck_assert_uint_eq(count_of(c.p, lookups[_i]), 1);
    ck_assert_uint_eq(count_of(c.p, products[_i]), 1);
    ck_assert_uint_eq(deployed_bytes(&c), table_bytes[_i] + dense_bytes[_i] + 4 * 30);
    put_away(&c);
}
END_TEST

START_TEST(weights_that_lie_turned_are_measured_by_rows_too)
{
    compiled c = compile_as(turned, PROGRAM_EVALUATE, modes[_i]);
    ck_assert_int_eq(only(c.p, products[_i])->attr.flags, OP_FLAG_TRANSPOSE);
    ck_assert_uint_eq(deployed_bytes(&c), 2 * table_bytes[_i] + 4 * 30);
    put_away(&c);
}
END_TEST

START_TEST(a_table_that_is_read_both_ways_stays)
{
    compiled c = compile_as(both_ways, PROGRAM_EVALUATE, modes[_i]);
    ck_assert_uint_eq(count_of(c.p, makers[_i]), 0);
    ck_assert_uint_eq(count_of(c.p, HR_OP_EMBEDDING), 1);
    ck_assert_uint_eq(count_of(c.p, HR_OP_DENSE), 2);
    ck_assert_uint_eq(deployed_bytes(&c), 4 * 30 * 30);
    put_away(&c);
}
END_TEST

START_TEST(training_is_without_it)
{
    compiled c = compile_as(tied, PROGRAM_TRAIN, modes[_i]);
    ck_assert_uint_eq(count_of(c.p, makers[_i]) + count_of(c.p, lookups[_i]), 0);
    ck_assert_uint_eq(count_of(c.p, HR_OP_EMBEDDING), 1);
    put_away(&c);
}
END_TEST

int main(void)
{
    const int count = sizeof modes / sizeof *modes;
    Suite *suite = suite_create("quantised tables");
    TCase *tests = tcase_create("programs");
    tcase_add_loop_test(tests, a_tied_table_is_made_once_and_read_twice, 1, count);
    tcase_add_loop_test(tests, a_table_and_a_dense_layer_are_two, 1, count);
    tcase_add_loop_test(tests, weights_that_lie_turned_are_measured_by_rows_too, 1, count);
    tcase_add_loop_test(tests, a_table_that_is_read_both_ways_stays, 1, count);
    tcase_add_loop_test(tests, training_is_without_it, 1, count);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
