// SPDX-License-Identifier: Apache-2.0
// Which rows are padded, for a target that takes padded rows: those of logits over a large vocabulary that is no whole
// number of vectors, and of their gradient, when all who touch them take them so. Weights stay as they are.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 2, LENGTH = 3, PADDED_WORDS = 1088 };

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

// The operations that do not, as a set.
static bool refuses[HR_OP_COUNT];

static bool pads_most(void *context, const op_query *q)
{
    (void)context;
    const bool both = q->in[0].layout == q->out[0].layout; // the gradient as its logits
    return !refuses[q->op] && (both || q->op != HR_OP_SOFTMAX_XENT_STREAM_BWD);
}

static const hr_target willing = {
    .name = "willing", .key = 93, .ask = ask_nothing, .fuses = fuses_nothing, .pads_rows = pads_most};
static const hr_target plain = {.name = "plain", .key = 94, .ask = ask_nothing, .fuses = fuses_nothing};

static program *compile(const hr_target *target, int words, program_mode mode, const char *const *pairs)
{
    char text[1024];
    hr_err err = {0};
    hr_knobs knobs;
    program *p = NULL;
    (void)snprintf(text, sizeof text,
                   "device: {vram: 1GiB}\n"
                   "model:\n"
                   "  name: words\n"
                   "  input: {type: int32, classes: %d, shape: [3]}\n"
                   "  classes: %d\n"
                   "  loss: softmax_cross_entropy\n"
                   "  layers:\n"
                   "    - {name: wte, kind: embedding, units: 8}\n"
                   "    - {name: head, kind: dense, units: %d, bias: false, transpose: true, share: wte}\n",
                   words, words, words);
    hr_model *model = model_from_text(text);
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(program_compile(model, &knobs, mode, BATCH, target, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static const tensor *named(const program *p, const char *name)
{
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        if (strcmp(p->tensors[k].name, name) == 0) {
            return &p->tensors[k];
        }
    }
    ck_abort_msg("no %s", name);
}

static uint32_t padded(const program *p)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        count += p->tensors[k].layout == HR_LAYOUT_PADDED;
    }
    return count;
}

static const char *const graph[] = {"execution.mode=graph", NULL};

START_TEST(logits_and_their_gradient_are_padded_and_weights_are_not)
{
    static const struct {
        const char *policy;
        uint64_t bytes;
    } types[] = {{"precision.policy=float32", 4}, {"precision.policy=mixed_bfloat16", 2}};
    const char *const pairs[] = {"execution.mode=graph", types[_i].policy, NULL};
    program *p = compile(&willing, 1027, PROGRAM_TRAIN, pairs);
    const tensor *logits = named(p, "head/out"), *gradient = named(p, "head/out:grad"),
                 *weights = named(p, "wte/weights");
    ck_assert_uint_eq(padded(p), 2);
    ck_assert(logits->layout == HR_LAYOUT_PADDED && gradient->layout == HR_LAYOUT_PADDED);
    ck_assert_int_eq(logits->shape.dim[2], 1027);
    ck_assert_uint_eq(logits->bytes, BATCH * LENGTH * PADDED_WORDS * types[_i].bytes);
    ck_assert_uint_eq(logits->padding_bytes, BATCH * LENGTH * (PADDED_WORDS - 1027) * types[_i].bytes);
    ck_assert_uint_eq(gradient->storage, (uint32_t)(logits - p->tensors)); // still over the logits
    ck_assert_uint_eq(weights->bytes, 1027 * 8 * 4);
    program_destroy(p);
}
END_TEST

START_TEST(the_listing_shows_the_rows)
{
    char *text = NULL;
    size_t size = 0;
    program *p = compile(&willing, 1027, PROGRAM_TRAIN, graph);
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    program_print(p, out);
    (void)fclose(out);
    ck_assert_ptr_nonnull(
        strstr(text, "alloc  A        26112 B  head/out[float32 2x3x1027 in rows of 1088]"));
    free(text);
    program_destroy(p);
}
END_TEST

START_TEST(what_is_short_or_whole_is_not_padded)
{
    static const int words[] = {10, 1023, 1024, 1028, 2048};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        program *p = compile(&willing, words[k], PROGRAM_TRAIN, graph);
        ck_assert_uint_eq(padded(p), 0);
        program_destroy(p);
    }
}
END_TEST

START_TEST(one_that_does_not_take_them_is_enough)
{
    static const hr_op cases[] = {HR_OP_DENSE, HR_OP_SOFTMAX_XENT_STREAM, HR_OP_SOFTMAX_XENT_STREAM_BWD,
                                  HR_OP_DENSE_BWD_DATA, HR_OP_DENSE_BWD_WEIGHTS};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        refuses[cases[k]] = true;
        program *p = compile(&willing, 1027, PROGRAM_TRAIN, graph);
        ck_assert_msg(padded(p) == 0, "%s: %u", op_name(cases[k]), padded(p));
        refuses[cases[k]] = false;
        program_destroy(p);
    }
}
END_TEST

START_TEST(nobody_is_padded_who_is_not_asked)
{
    static const char *const ways[][3] = {{"execution.mode=eager"},
                                          {"execution.mode=graph", "execution.fuse=off"}};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        program *p = compile(&willing, 1027, PROGRAM_TRAIN, ways[k]);
        ck_assert_uint_eq(padded(p), 0);
        program_destroy(p);
    }
    program *p = compile(&plain, 1027, PROGRAM_TRAIN, graph);
    ck_assert_uint_eq(padded(p), 0);
    program_destroy(p);
}
END_TEST

START_TEST(an_evaluation_pads_its_logits)
{
    program *p = compile(&willing, 1027, PROGRAM_EVALUATE, graph);
    ck_assert_uint_eq(padded(p), 1);
    program_destroy(p);
}
END_TEST

// On their way to the host and back, rows stay as they are.
START_TEST(what_is_offloaded_comes_back_padded)
{
    const char *const pairs[] = {"execution.mode=graph", "offload.activations=on", NULL};
    program *p = compile(&willing, 1027, PROGRAM_TRAIN, pairs);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_OFFLOAD || i->op == HR_OP_FETCH) {
            const tensor *from = &p->tensors[i->in[0]], *to = &p->tensors[i->out[0]];
            ck_assert(from->layout == to->layout && from->bytes == to->bytes);
        }
    }
    program_destroy(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pad_rows");
    TCase *c = tcase_create("programs");
    tcase_add_loop_test(c, logits_and_their_gradient_are_padded_and_weights_are_not, 0, 2);
    tcase_add_test(c, the_listing_shows_the_rows);
    tcase_add_test(c, what_is_short_or_whole_is_not_padded);
    tcase_add_test(c, one_that_does_not_take_them_is_enough);
    tcase_add_test(c, nobody_is_padded_who_is_not_asked);
    tcase_add_test(c, an_evaluation_pads_its_logits);
    tcase_add_test(c, what_is_offloaded_comes_back_padded);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
