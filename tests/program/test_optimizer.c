// SPDX-License-Identifier: Apache-2.0
// What an optimizer holds, to the byte, against formulas of its own (reference tensorflow.md G, planning.md 5.1), and
// what it adds to the program.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "program/compile.h"
#include "program/model_from_text.h"

static const char head[] = "device: {vram: 1GiB}\n"
                           "model:\n"
                           "  name: small\n"
                           "  input: {shape: [8, 8, 3]}\n"
                           "  classes: 10\n"
                           "  loss: softmax_cross_entropy\n"
                           "  layers:\n";

static const char mixed[] = "    - {kind: conv2d, filters: 20, kernel: 3}\n"
                            "    - {kind: batch_norm, activation: relu}\n"
                            "    - {kind: flatten}\n"
                            "    - {kind: dense, units: 31}\n"
                            "    - {kind: dense, units: 10}\n";

// What tensorflow.md G counts: one dense matrix of 4096 x 4096 behind one of 192 x 4096.
static const char wide[] = "    - {kind: flatten}\n"
                           "    - {name: first, kind: dense, units: 4096, bias: false}\n"
                           "    - {name: square, kind: dense, units: 4096, bias: false}\n"
                           "    - {name: last, kind: dense, units: 10}\n";

static hr_model *model_of(const char *layers)
{
    char text[2048];
    (void)snprintf(text, sizeof text, "%s%s", head, layers);
    return model_from_text(text);
}

static program *compile(const hr_model *model, const char *const *pairs)
{
    hr_knobs knobs;
    hr_target target;
    void *context = NULL;
    program *p = NULL;
    hr_err err = {0};
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_int_eq(device_reference.open(&(device_options){.threads = 1}, &context, &err), HR_OK);
    device_reference.target(context, &target);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, 4, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    device_reference.close(context);
    return p;
}

static uint64_t optimizer_bytes(const program *p, const char *variable)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        const tensor *t = &p->tensors[k];
        const bool asked = variable == NULL || strncmp(t->name, variable, strlen(variable)) == 0;
        sum += t->category == HR_CATEGORY_OPTIMIZER && asked ? t->bytes : 0;
    }
    return sum;
}

// ---- formulas -------------------------------------------------------------------------------------------------

typedef struct counts {
    uint64_t elements, rows, columns; // rows and columns of all the matrices of the last two dimensions
    uint32_t rank;
} counts;

static uint64_t nothing(const counts *c)
{
    (void)c;
    return 0;
}

static uint64_t one(const counts *c)
{
    return 4 * c->elements;
}

static uint64_t two(const counts *c)
{
    return 8 * c->elements;
}

static uint64_t factors(const counts *c)
{
    return c->rank < 2 ? 4 * c->elements : 4 * (c->rows + c->columns);
}

static uint64_t factors_and_all(const counts *c)
{
    return 4 * c->elements + (c->rank < 2 ? 0 : 4 * (c->rows + c->columns));
}

static uint64_t codes(const counts *c)
{
    return c->elements < 4096 ? 8 * c->elements : 2 * c->elements + 2 * 4 * ((c->elements + 255) / 256);
}

static const struct {
    const char *pair;
    uint64_t (*bytes)(const counts *c);
} kinds[] = {
    {"optimizer.kind=sgd", nothing},
    {"optimizer.kind=momentum", one},
    {"optimizer.kind=rmsprop", one},
    {"optimizer.kind=adam", two},
    {"optimizer.kind=adamw", two},
    {"optimizer.kind=adafactor", factors},
    {"optimizer.kind=adafactor_keras", factors_and_all},
    {"optimizer.kind=lion", one},
    {"optimizer.kind=adam8bit", codes},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t expected_bytes(const hr_model *model, uint64_t (*bytes)(const counts *c), bool average)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < model->param_count; k++) {
        const hr_shape *s = &model->params[k].shape;
        counts c = {.elements = 1, .rank = s->rank};
        for (uint32_t d = 0; d < s->rank; d++) {
            c.elements *= (uint64_t)s->dim[d];
        }
        c.rows = c.elements / (uint64_t)s->dim[s->rank - 1];
        c.columns = s->rank < 2 ? 0 : c.elements / (uint64_t)s->dim[s->rank - 2];
        sum += model->params[k].trainable ? bytes(&c) + (average ? 4 * c.elements : 0) : 0;
    }
    return sum;
}

START_TEST(an_optimizer_holds_what_its_formula_says)
{
    const int kind = _i % KINDS;
    const bool average = _i >= KINDS;
    hr_model *model = model_of(mixed);
    program *p =
        compile(model, (const char *[]){kinds[kind].pair, average ? "optimizer.ema=0.9" : NULL, NULL});
    ck_assert_uint_eq(optimizer_bytes(p, NULL), expected_bytes(model, kinds[kind].bytes, average));
    program_destroy(p);
    model_destroy(model);
}
END_TEST

START_TEST(every_kind_is_counted)
{
    const hr_knob_row *row = &hr_knob_rows(NULL)[HR_KNOB_OPTIMIZER_KIND];
    for (int k = 0; k < KINDS; k++) {
        ck_assert_str_eq(strchr(kinds[k].pair, '=') + 1, row->choices[k]);
    }
    ck_assert_ptr_null(row->choices[KINDS]);
}
END_TEST

START_TEST(a_square_of_4096_has_the_scalars_of_the_reference)
{
    static const struct {
        const char *pair;
        uint64_t scalars;
    } known[] = {{"optimizer.kind=adam", 33554432},
                 {"optimizer.kind=adafactor_keras", 16785408},
                 {"optimizer.kind=adafactor", 8192}};
    hr_model *model = model_of(wide);
    program *p = compile(model, (const char *[]){known[_i].pair, NULL});
    ck_assert_uint_eq(optimizer_bytes(p, "square/weights:"), 4 * known[_i].scalars);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// ---- the program ----------------------------------------------------------------------------------------------

static uint32_t count_of(const program *p, hr_op op)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        count += p->instrs[n].op == op;
    }
    return count;
}

// graph scales gradients where they lie; eager holds a second list of them until the last update.
START_TEST(clipping_costs_a_second_list_of_gradients_in_eager_alone)
{
    const char *mode = _i == 0 ? "execution.mode=eager" : "execution.mode=graph";
    hr_model *model = model_of(wide);
    program *plain = compile(model, (const char *[]){mode, NULL});
    program *clipped = compile(model, (const char *[]){mode, "optimizer.clip_norm=1", NULL});
    const uint64_t gradients = expected_bytes(model, one, false);
    ck_assert_uint_eq(count_of(clipped, HR_OP_CLIP), model->param_count);
    ck_assert_uint_eq(count_of(clipped, HR_OP_SQUARE_SUM), model->param_count);
    const uint64_t more = program_peak_bytes(clipped) - program_peak_bytes(plain);
    if (_i == 0) {
        ck_assert_uint_ge(more, gradients / 2); // the plain peak has activations beside the first list
        ck_assert_uint_le(more, gradients + 4);
    } else {
        ck_assert_uint_le(more, 4); // the sum of squares
    }
    program_destroy(plain);
    program_destroy(clipped);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optimizer");
    TCase *all = tcase_create("state and program");
    tcase_add_loop_test(all, an_optimizer_holds_what_its_formula_says, 0, 2 * KINDS);
    tcase_add_test(all, every_kind_is_counted);
    tcase_add_loop_test(all, a_square_of_4096_has_the_scalars_of_the_reference, 0, 3);
    tcase_add_loop_test(all, clipping_costs_a_second_list_of_gradients_in_eager_alone, 0, 2);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
