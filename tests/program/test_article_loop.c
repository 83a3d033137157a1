// SPDX-License-Identifier: Apache-2.0
// The loop-and-stack experiment of article 000 (reference tensorflow.md D5). A layer whose kernel is shared multiplies
// x a hundred times and adds the products up; the article's remedy stacks one product a hundred times and reduces.
//
// T is the bytes of one product, [batch, units]. The article's sum begins as zeros_like(x), and its x has one number
// for each sample: these are the 4B = 4 * batch bytes that stand beside the T's (a kernel of shape (1, units) allows
// no other x). Our addition wants equal shapes, so the article's own figures are taken with one unit, where T = 4B, and
// wider layers begin with the first product.
//
//   eager, no tape, not in place   old sum, product, new sum: 3T, however long the loop
//   eager, tape                    Add keeps both its inputs: N products, N-1 sums and the first sum
//   graph                          the products are one; sums are written over one another: 2T
//   stack and reduce               the stack is kept: N*T. Alive are N+1: the article's 102nd is its Python variable
//                                  `intermediate`, which outlives its last use; here a value dies with its last use
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "device/executor.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 48 };

static const char head[] = "device: {vram: 1GiB}\n"
                           "model:\n"
                           "  name: article\n"
                           "  input: {shape: [1]}\n"
                           "  labels:\n"
                           "    - {name: target, type: float32}\n"
                           "  losses:\n"
                           "    - {kind: mean_squared_error, prediction: result, labels: target}\n"
                           "  layers:\n";

// One unit: the sum begins as something of x's shape.
static hr_model *article_loop(int rounds)
{
    char text[2048];
    (void)snprintf(
        text, sizeof text,
        "%s"
        "    - {name: zeros, kind: scale, factor: 1}\n"
        "    - {name: product, kind: dense, units: 1, bias: false, input: input}\n"
        "    - {name: sum, kind: add, inputs: [zeros, product]}\n"
        "    - repeat: %d\n"
        "      index: i\n"
        "      layers:\n"
        "        - {name: \"product{i}\", kind: dense, units: 1, bias: false, input: input, share: product}\n"
        "        - {name: \"sum{i}\", kind: add, inputs: [before, \"product{i}\"]}\n"
        "    - {name: result, kind: scale, factor: 1}\n",
        head, rounds - 1);
    return model_from_text(text);
}

static hr_model *wide_loop(int rounds, int units)
{
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "%s"
                   "    - {name: product, kind: dense, units: %d, bias: false}\n"
                   "    - repeat: %d\n"
                   "      index: i\n"
                   "      layers:\n"
                   "        - {name: \"product{i}\", kind: dense, units: %d, bias: false, input: input, "
                   "share: product}\n"
                   "        - {name: \"sum{i}\", kind: add, inputs: [before, \"product{i}\"]}\n"
                   "    - {name: result, kind: scale, factor: 1}\n",
                   head, units, rounds - 1, units);
    return model_from_text(text);
}

static hr_model *stacked(int copies, int units)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "%s"
                   "    - {name: product, kind: dense, units: %d, bias: false}\n"
                   "    - {name: copies, kind: stack, axis: 1, count: %d}\n"
                   "    - {name: sum, kind: reduce, axis: 1, of: sum}\n"
                   "    - {name: result, kind: scale, factor: 1}\n",
                   head, units, copies);
    return model_from_text(text);
}

static program *compile(const hr_model *model, const char *const *pairs)
{
    hr_knobs knobs;
    hr_err err = {0};
    hr_target target;
    program *p = NULL;
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    device_reference.target(NULL, &target);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

// Of the experiment itself: up to the instruction whose layer is `result`, whose scale stands for what comes behind.
typedef struct figures {
    uint64_t most_bytes; // activations alive at once
    uint64_t kept_bytes; // of them, kept by the tape or for backward
    uint32_t multiplications;
} figures;

static figures measure(const hr_model *model, const char *const *pairs)
{
    program *p = compile(model, pairs);
    figures f = {0};
    uint64_t live = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->phase > HR_PHASE_FORWARD ||
            (i->layer != HR_NO_ID && strcmp(p->layer_names[i->layer], "result") == 0)) {
            break;
        }
        const tensor *t = i->op == HR_OP_ALLOC ? &p->tensors[i->out[0]] : NULL;
        live = program_live_after(p, i, live);
        f.most_bytes = live > f.most_bytes ? live : f.most_bytes;
        f.kept_bytes += t != NULL && t->saved ? t->bytes : 0;
        f.multiplications += i->op == HR_OP_DENSE;
    }
    program_destroy(p);
    return f;
}

static const char *const no_tape[] = {"execution.mode=eager", "execution.tape=none", "execution.inplace=off",
                                      "batch.size=48", NULL};
static const char *const tape[] = {"execution.mode=eager", "batch.size=48", NULL};
static const char *const graph[] = {"execution.mode=graph", "batch.size=48", NULL};

static const int lengths[] = {2, 10, 100};

START_TEST(the_articles_loop)
{
    const uint64_t n = (uint64_t)lengths[_i];
    const uint64_t T = BATCH * 4, zeros = BATCH * 4; // one unit
    hr_model *model = article_loop(lengths[_i]);
    figures without = measure(model, no_tape);
    figures taped = measure(model, tape);
    figures known = measure(model, graph);
    ck_assert_uint_eq(without.most_bytes, 3 * T);
    ck_assert_uint_eq(without.kept_bytes, 0);
    ck_assert_uint_eq(taped.kept_bytes, (2 * n - 1) * T + zeros); // n = 100: 199T + 4B
    ck_assert_uint_eq(taped.most_bytes, 2 * n * T + zeros);       //          200T + 4B
    ck_assert_uint_eq(taped.multiplications, n);
    ck_assert_uint_eq(known.most_bytes, 2 * T);
    ck_assert_uint_eq(known.kept_bytes, 0);
    ck_assert_uint_eq(known.multiplications, 1);
    model_destroy(model);
}
END_TEST

START_TEST(a_wider_loop_that_begins_with_its_first_product)
{
    const uint64_t n = (uint64_t)lengths[_i];
    const uint64_t T = BATCH * 7 * 4;
    hr_model *model = wide_loop(lengths[_i], 7);
    figures without = measure(model, no_tape);
    figures taped = measure(model, tape);
    figures known = measure(model, graph);
    ck_assert_uint_eq(without.most_bytes, 3 * T);
    ck_assert_uint_eq(without.kept_bytes, 0);
    ck_assert_uint_eq(taped.kept_bytes, (2 * n - 2) * T);
    ck_assert_uint_eq(taped.most_bytes, (2 * n - 1) * T);
    ck_assert_uint_eq(known.most_bytes, 2 * T);
    ck_assert_uint_eq(known.kept_bytes, 0);
    ck_assert_uint_eq(known.multiplications, 1);
    model_destroy(model);
}
END_TEST

START_TEST(the_articles_stack_is_worse_in_every_mode)
{
    const uint64_t n = (uint64_t)lengths[_i];
    const uint64_t T = BATCH * 7 * 4;
    hr_model *model = stacked(lengths[_i], 7);
    figures without = measure(model, no_tape);
    figures taped = measure(model, tape);
    figures known = measure(model, graph);
    ck_assert_uint_eq(without.most_bytes, (n + 1) * T);
    ck_assert_uint_eq(taped.most_bytes, (n + 1) * T);
    ck_assert_uint_eq(taped.kept_bytes, n * T); // only for its shape: a graph keeps nothing
    ck_assert_uint_eq(known.most_bytes, (n + 1) * T);
    ck_assert_uint_eq(known.kept_bytes, 0);
    model_destroy(model);
}
END_TEST

// ---- the same weights, bit for bit --------------------------------------------------------------------------------

static void train_once(const hr_model *model, const char *const *pairs, float *weights, uint64_t bytes)
{
    static float x[BATCH], y[BATCH * 7];
    const allocator_config config = {.kind = "bfc", .limit_bytes = 1 << 24, .growth = true};
    backing source;
    allocator *heap = NULL;
    executor *e = NULL;
    uint32_t slot = 0;
    hr_err err = {0};
    program *p = compile(model, pairs);
    for (int n = 0; n < BATCH; n++) {
        x[n] = (float)(n % 11) / 7.0f - 0.6f;
    }
    ck_assert_int_eq(device_reference.memory(NULL, 1 << 24, false, &source, &err), HR_OK);
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &heap, &err), HR_OK);
    ck_assert_int_eq(executor_create(&device_reference, NULL, heap, NULL, &e, &err), HR_OK);
    ck_assert_int_eq(executor_build(e, p, &err), HR_OK);
    ck_assert_int_eq(executor_attach(e, p, &slot, &err), HR_OK);
    void *at = (void *)(uintptr_t)executor_address(e, "product/weights");
    memcpy(at, weights, bytes);
    step_io io = {.slot = {x, y}, .update = 1, .learning_rate = 0.01};
    ck_assert_msg(executor_step(e, slot, &io, &err) == HR_OK, "%s", err.sentence);
    memcpy(weights, at, bytes);
    executor_destroy(e);
    allocator_destroy(heap);
    backing_close(&source);
    program_destroy(p);
}

START_TEST(one_product_for_a_hundred_changes_no_bit)
{
    static const char *const eager_sgd[] = {"execution.mode=eager", "optimizer.kind=sgd", "batch.size=48",
                                            NULL};
    static const char *const graph_sgd[] = {"execution.mode=graph", "optimizer.kind=sgd", "batch.size=48",
                                            NULL};
    float eager[7] = {0.3f, -0.7f, 0.11f, 0.9f, -0.2f, 0.013f, 1.7f};
    float known[7];
    float before[7];
    memcpy(known, eager, sizeof eager);
    memcpy(before, eager, sizeof eager);
    hr_model *model = wide_loop(lengths[_i], 7);
    train_once(model, eager_sgd, eager, sizeof eager);
    train_once(model, graph_sgd, known, sizeof known);
    ck_assert_mem_eq(eager, known, sizeof eager);
    ck_assert_mem_ne(eager, before, sizeof eager);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("article loop");
    TCase *cases = tcase_create("article loop");
    tcase_add_loop_test(cases, the_articles_loop, 0, 3);
    tcase_add_loop_test(cases, a_wider_loop_that_begins_with_its_first_product, 0, 3);
    tcase_add_loop_test(cases, the_articles_stack_is_worse_in_every_mode, 0, 3);
    tcase_add_loop_test(cases, one_product_for_a_hundred_changes_no_bit, 0, 3);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
