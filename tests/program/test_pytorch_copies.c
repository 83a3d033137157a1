// SPDX-License-Identifier: Apache-2.0
// What PyTorch copies and our kernels do not, where execution.as=pytorch makes an operation of the copy: what it reads instead has
// the size that PyTorch's has, autograd keeps it, and without PyTorch's rules there is none. Whether PyTorch asks for the same is
// tests/program/pytorch_rules.py's.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 3 };

// Windows of 3 and 2 with a padding of "same", which is 1 at both ends and 1 behind; a causal one; one with a stride, padded by 1 behind.
static const char padded_model[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: padded\n"
    "  input: {shape: [8, 6, 4]}\n"
    "  classes: 5\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: even, kind: conv2d, filters: 4, kernel: [3, 2], padding: same}\n"
    "    - {name: odd, kind: conv2d, filters: 4, kernel: 3, padding: same}\n"
    "    - {name: stride, kind: conv2d, filters: 4, kernel: 5, stride: 2, padding: same}\n"
    "    - {name: rows, kind: reshape, shape: [12, 4]}\n"
    "    - {name: causal, kind: conv1d, filters: 4, kernel: 3, dilation: 2, padding: causal}\n"
    "    - {name: image, kind: reshape, shape: [12, 1, 4]}\n"
    "    - {name: mean, kind: global_avg_pool}\n"
    "    - {name: head, kind: dense, units: 5}\n";

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static const hr_target target = {.name = "willing", .key = 118, .ask = ask_nothing};

static hr_status compile_once(const char *text, const char *framework, program **out, hr_err *err)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, framework, NULL), HR_OK);
    hr_model *model = model_from_text(text);
    const hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, out, err);
    model_destroy(model);
    return status;
}

static program *compile_as(const char *text, const char *framework)
{
    hr_err err = {0};
    program *p = NULL;
    ck_assert_msg(compile_once(text, framework, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static const instr *forward_of(const program *p, const char *result)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->phase == HR_PHASE_FORWARD && i->out_count > 0 && op_needs_kernel(i->op) &&
            strcmp(p->tensors[i->out[0]].name, result) == 0) {
            return i;
        }
    }
    return NULL;
}

static void assert_padded(const program *p, const char *name, uint64_t rows, uint64_t columns)
{
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%s:padded", name);
    const instr *conv = forward_of(p, name), *pad = forward_of(p, copy);
    ck_assert_msg(conv != NULL && pad != NULL, "%s", copy);
    ck_assert_int_eq(pad->op, HR_OP_ZERO_PAD);
    ck_assert_uint_eq(conv->in[0], pad->out[0]);
    ck_assert_uint_eq(p->tensors[pad->out[0]].bytes, rows * columns * 4 * BATCH * sizeof(float));
    ck_assert(p->tensors[pad->out[0]].saved);
    ck_assert_int_eq(conv->attr.pad_top, conv->attr.pad_bottom);
    ck_assert_int_eq(conv->attr.pad_left, conv->attr.pad_right);
}

START_TEST(a_convolution_of_unequal_pads_reads_a_padded_copy_that_is_kept)
{
    program *p = compile_as(padded_model, "pytorch");
    assert_padded(p, "even/out", 8, 7);           // a column behind; 1 above and below stay
    assert_padded(p, "stride/out", 8 + 3, 6 + 3); // all of it: 1 before, 2 behind
    assert_padded(p, "causal/conv", 1, 12 + 4);
    ck_assert_ptr_null(forward_of(p, "odd/out:padded"));
    program_destroy(p);
}
END_TEST

START_TEST(without_pytorchs_rules_nothing_is_padded_apart)
{
    program *p = compile_as(padded_model, "headroom");
    for (uint32_t n = 0; n < p->instr_count; n++) {
        ck_assert_int_ne(p->instrs[n].op, HR_OP_ZERO_PAD);
    }
    program_destroy(p);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    program *p = NULL;
    program_destroy(compile_as(padded_model, "pytorch"));
    hr_model *model = model_from_text(padded_model);
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, "pytorch", NULL), HR_OK);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        hr_host_mem_fail_at(nth);
        status = program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        program_destroy(p);
        p = NULL;
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pytorch_copies");
    TCase *tests = tcase_create("pytorch_copies");
    tcase_add_test(tests, a_convolution_of_unequal_pads_reads_a_padded_copy_that_is_kept);
    tcase_add_test(tests, without_pytorchs_rules_nothing_is_padded_apart);
    tcase_add_test(tests, every_allocation_may_fail_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
