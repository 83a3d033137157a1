// SPDX-License-Identifier: Apache-2.0
// What execution.as=tensorflow promises of a program: what the tape keeps of a layer of Keras' is there until the gradient of its
// operation has been taken, and nobody keeps it longer; nothing lies over an operand; an optimizer's results come and go with each
// variable. What TensorFlow itself keeps is tests/program/tensorflow_rules.py's.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "ops/tensorflow.h"
#include "program/compile.h"
#include "program/compile_starved.h"
#include "program/model_from_text.h"

enum { BATCH = 3, REAL = sizeof(float) };

#define IMAGES(layers)                                                                                       \
    "device: {vram: 1GiB}\n"                                                                                 \
    "model:\n"                                                                                               \
    "  name: images\n"                                                                                       \
    "  input: {shape: [8, 8, 4]}\n"                                                                          \
    "  classes: 5\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n"                                                                                            \
    "    - {name: conv, kind: conv2d, filters: 8, kernel: 3, padding: same}\n" layers                        \
    "    - {name: flat, kind: flatten}\n"                                                                    \
    "    - {name: head, kind: dense, units: 5}\n"

static const char plain[] = IMAGES("");
static const char image_model[] =
    IMAGES("    - {name: norm, kind: batch_norm, activation: relu6}\n"
           "    - {name: pool, kind: max_pool, size: 2}\n"
           "    - {name: deep, kind: depthwise_conv2d, kernel: 3, padding: same}\n"
           "    - {name: sum, kind: add, inputs: [deep, pool], in_place: true}\n"
           "    - {name: act, kind: silu}\n"
           "    - {name: twice, kind: add, inputs: [act, sum], activation: gelu}\n"
           "    - {name: squeeze, kind: global_avg_pool}\n"
           "    - {name: gate, kind: dense, units: 8, activation: sigmoid}\n"
           "    - {name: scale, kind: multiply, inputs: [twice, gate]}\n"
           "    - {name: drop, kind: dropout, rate: 0.5}\n"
           "    - {name: wide, kind: dense, units: 16, activation: relu}\n");
static const char language_model[] = "device: {vram: 1GiB}\n"
                                     "model:\n"
                                     "  name: words\n"
                                     "  input: {type: int32, classes: 11, shape: [6]}\n"
                                     "  classes: 11\n"
                                     "  loss: softmax_cross_entropy\n"
                                     "  layers:\n"
                                     "    - {name: wte, kind: embedding, units: 8}\n"
                                     "    - {name: ln, kind: layer_norm}\n"
                                     "    - {name: mixed, kind: dense, units: 8, activation: gelu}\n"
                                     "    - {name: sum, kind: add, inputs: [previous, wte]}\n"
                                     "    - {name: rms, kind: rms_norm}\n"
                                     "    - {name: head, kind: dense, units: 11, bias: false}\n";
static const char *const models[] = {image_model, language_model};
enum { MODELS = sizeof models / sizeof *models };

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_all(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return true;
}

static const hr_target target = {.name = "willing", .key = 118, .ask = ask_nothing, .fuses = fuses_all};

static hr_knobs tensorflow_knobs(const char *pair)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_BATCH_SIZE, "3", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, "tensorflow", NULL), HR_OK);
    ck_assert_int_eq(pair == NULL ? HR_OK : hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

static program *compile_with(const char *text, const char *pair)
{
    hr_err err = {0};
    const hr_knobs knobs = tensorflow_knobs(pair);
    program *p = NULL;
    hr_model *model = model_from_text(text);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static uint32_t owner_of(const program *p, uint32_t id)
{
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

// Does the tape keep this storage for instruction i? One operand of instruction i lies there, which the rule names.
static bool keeps(const program *p, const instr *i, uint32_t owner)
{
    const framework_rule *rule = i->phase == HR_PHASE_FORWARD ? tensorflow_rule_of(i->op) : NULL;
    bool kept = false;
    for (uint32_t k = 0; rule != NULL && k < i->in_count; k++) {
        kept = kept || ((rule->keep_in >> k & 1) != 0 && owner_of(p, i->in[k]) == owner);
    }
    for (uint32_t k = 0; rule != NULL && k < i->out_count; k++) {
        kept = kept || ((rule->keep_out >> k & 1) != 0 && owner_of(p, i->out[k]) == owner);
    }
    return kept;
}

static uint32_t freed_at(const program *p, uint32_t owner)
{
    uint32_t at = p->instr_count;
    for (uint32_t n = p->instr_count; n-- > 0;) {
        at = p->instrs[n].op == HR_OP_FREE && p->instrs[n].in[0] == owner ? n : at;
    }
    return at;
}

static uint32_t last_use(const program *p, uint32_t owner)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        for (uint32_t k = 0; i->op != HR_OP_FREE && k < i->in_count; k++) {
            last = owner_of(p, i->in[k]) == owner ? n : last;
        }
    }
    return last;
}

// Of every instruction that keeps this storage, the last one that takes a gradient; 0: none does.
static uint32_t last_gradient(const program *p, uint32_t owner)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        for (uint32_t m = n; keeps(p, &p->instrs[n], owner) && m < p->instr_count; m++) {
            last = p->instrs[m].serves == p->instrs[n].id && m > last ? m : last;
        }
    }
    return last;
}

// An addition and a reshape hand their gradient on: no instruction takes it. Logits and loss have names to the end of the step.
static bool is_kept_longer(const program *p, uint32_t owner)
{
    bool longer = false;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool hands_on = (i->op == HR_OP_ADD || i->op == HR_OP_RESHAPE) && keeps(p, i, owner);
        longer = longer || hands_on || (i->op == HR_OP_SOFTMAX_XENT && owner_of(p, i->in[0]) == owner);
    }
    return longer;
}

START_TEST(what_the_tape_keeps_goes_when_its_gradient_has_been_taken)
{
    program *p = compile_with(models[_i], NULL);
    unsigned kept = 0;
    for (uint32_t id = p->persistent_count; id < p->tensor_count; id++) {
        const bool is_saved = p->tensors[id].saved && p->tensors[id].storage == id;
        const uint32_t until = is_saved ? last_gradient(p, id) : 0, used = last_use(p, id);
        if (until == 0) {
            continue;
        }
        const uint32_t freed = freed_at(p, id);
        ck_assert_msg(freed > until && freed > used, "%s goes before its gradient", p->tensors[id].name);
        for (uint32_t n = (until > used ? until : used) + 1; !is_kept_longer(p, id) && n < freed; n++) {
            ck_assert_msg(p->instrs[n].op == HR_OP_FREE, "%s outlives its gradient", p->tensors[id].name);
        }
        kept += !is_kept_longer(p, id);
    }
    ck_assert_uint_gt(kept, 4);
    program_destroy(p);
}
END_TEST

START_TEST(a_persistent_tape_keeps_everything_to_the_end)
{
    program *p = compile_with(models[_i], "execution.tape=persistent");
    unsigned kept = 0;
    for (uint32_t id = p->persistent_count; id < p->tensor_count; id++) {
        if (p->tensors[id].saved && p->tensors[id].storage == id) {
            kept++;
            for (uint32_t n = freed_at(p, id); n < p->instr_count; n++) {
                ck_assert(p->instrs[n].op == HR_OP_FREE);
            }
        }
    }
    ck_assert_uint_gt(kept, 10);
    program_destroy(p);
}
END_TEST

START_TEST(no_result_lies_over_an_operand)
{
    program *p = compile_with(models[_i], NULL);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        for (uint32_t o = 0; op_needs_kernel(i->op) && o < i->out_count; o++) {
            for (uint32_t k = 0; k < i->in_count; k++) {
                const bool updated = i->in[k] == i->out[o]; // a variable
                ck_assert_msg(updated || owner_of(p, i->in[k]) != owner_of(p, i->out[o]), "%s",
                              p->tensors[i->out[o]].name);
            }
        }
    }
    program_destroy(p);
}
END_TEST

// What a layer keeps more than none at all: [8, 8, 8] of a sample is the convolution's result, which each of these reads.
static const struct {
    const char *layer;
    uint64_t tensors, channels; // of that size, and of its 8 channels once a batch
    uint64_t bytes;             // beside those, of a sample
} cases[] = {
    {"    - {name: l, kind: relu}\n", 0, 0, 0}, // keeps its result, which the next layer would have kept
    {"    - {name: l, kind: leaky_relu}\n", 1, 0, 0},
    {"    - {name: l, kind: silu}\n", 2, 0, 0},
    {"    - {name: l, kind: gelu}\n", 5, 0, 0},
    {"    - {name: l, kind: conv2d, filters: 8, kernel: 1, bias: false, activation: gelu_tanh}\n", 8, 0, 0},
    {"    - {name: l, kind: sigmoid}\n", 1, 0, 0},
    {"    - {name: l, kind: hard_sigmoid}\n", 2, 0, 0},
    {"    - {name: l, kind: hard_swish}\n", 3, 0, 0},
    {"    - {name: l, kind: mish}\n", 2, 0, 0},
    {"    - {name: l, kind: batch_norm}\n", 3, 10, 0},
    // Of each group a mean, a variance and two roots, of each channel three products: of every sample.
    {"    - {name: l, kind: group_norm, groups: 2}\n", 3, 0, (4 * UINT64_C(2) + 3 * 8) * REAL},
    {"    - {name: l, kind: dropout, rate: 0.5}\n", 2, 0, UINT64_C(8) * 8 * 8},
};

START_TEST(a_layer_keeps_what_it_is_composed_of)
{
    char text[sizeof plain + 128];
    const char *at = strstr(plain, "    - {name: flat");
    ck_assert_ptr_nonnull(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plain), plain, cases[_i].layer, at);
    program *with = compile_with(text, NULL), *without = compile_with(plain, NULL);
    const uint64_t size = UINT64_C(8) * 8 * 8 * BATCH * REAL;
    ck_assert_uint_eq(with->saved_for_backward_bytes - without->saved_for_backward_bytes,
                      cases[_i].tensors * size + cases[_i].channels * 8 * REAL + cases[_i].bytes * BATCH);
    program_destroy(with);
    program_destroy(without);
}
END_TEST

// Beside what a Conv1D reads its product before the bias, [10, 6] of a sample.
START_TEST(a_convolution_of_a_sequence_keeps_its_product)
{
    static const char text[] = "device: {vram: 1GiB}\n"
                               "model:\n"
                               "  name: sequence\n"
                               "  input: {shape: [12, 4]}\n"
                               "  classes: 3\n"
                               "  loss: softmax_cross_entropy\n"
                               "  layers:\n"
                               "    - {name: first, kind: conv1d, filters: 6, kernel: 3, bias: %s}\n"
                               "    - {name: flat, kind: flatten}\n"
                               "    - {name: head, kind: dense, units: 3}\n";
    char on[sizeof text + 8], off[sizeof text + 8];
    (void)snprintf(on, sizeof on, text, "true");
    (void)snprintf(off, sizeof off, text, "false");
    program *with = compile_with(on, NULL), *without = compile_with(off, NULL);
    ck_assert_uint_eq(with->saved_for_backward_bytes - without->saved_for_backward_bytes,
                      UINT64_C(10) * 6 * BATCH * REAL);
    program_destroy(with);
    program_destroy(without);
}
END_TEST

static const struct {
    const char *pair;
    unsigned results;
} optimizers[] = {{"optimizer.kind=sgd", 1},  {"optimizer.kind=momentum", 3}, {"optimizer.kind=rmsprop", 4},
                  {"optimizer.kind=adam", 3}, {"optimizer.kind=adamw", 3},    {"optimizer.kind=lion", 3}};

// Beside each variable as it is updated; then they are gone.
START_TEST(an_optimizer_makes_results_as_large_as_each_variable)
{
    program *p = compile_with(image_model, optimizers[_i].pair);
    uint64_t alive = 0;
    unsigned updates = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool moves = i->phase == HR_PHASE_UPDATE && (i->op == HR_OP_ALLOC || i->op == HR_OP_FREE);
        const tensor *t = &p->tensors[i->op == HR_OP_ALLOC ? i->out[0] : i->in[0]];
        if (moves && t->category == HR_CATEGORY_TEMPORARIES) {
            alive = i->op == HR_OP_ALLOC ? alive + t->bytes : alive - t->bytes;
        } else if (i->phase == HR_PHASE_UPDATE && op_row_of(i->op)->updates != 0) {
            ck_assert_uint_eq(alive, optimizers[_i].results * p->tensors[i->in[0]].bytes);
            updates++;
        }
    }
    ck_assert_uint_eq(alive, 0);
    ck_assert_uint_gt(updates, 8);
    program_destroy(p);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_model *model = model_from_text(models[_i]);
    const hr_knobs knobs = tensorflow_knobs(NULL);
    compile_starved(model, &knobs, BATCH, &target);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensorflow");
    TCase *tests = tcase_create("tensorflow");
    tcase_add_loop_test(tests, what_the_tape_keeps_goes_when_its_gradient_has_been_taken, 0, MODELS);
    tcase_add_loop_test(tests, a_persistent_tape_keeps_everything_to_the_end, 0, MODELS);
    tcase_add_loop_test(tests, no_result_lies_over_an_operand, 0, MODELS);
    tcase_add_loop_test(tests, a_layer_keeps_what_it_is_composed_of, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, a_convolution_of_a_sequence_keeps_its_product);
    tcase_add_loop_test(tests, an_optimizer_makes_results_as_large_as_each_variable, 0,
                        sizeof optimizers / sizeof *optimizers);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, MODELS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
