// SPDX-License-Identifier: Apache-2.0
// What execution.as=pytorch promises of workspaces where a device knows PyTorch's (hr_target.ask_pytorch): what convolves has them,
// with its own kernel inside; products have none of their own; the script's settings and workspace.limit are handed on; and a
// device that does not know them plans as before. What cuDNN answers is unit/cudnn_pytorch's.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "insight/implementations.h"
#include "ops/pytorch.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 3, OURS = 5000, THEIRS = 1000, NEEDED = 64, CARD = 9, LARGE = 1 << 20 };

static const char text[] = "device: {vram: 1GiB}\n"
                           "model:\n"
                           "  name: images\n"
                           "  input: {shape: [8, 8, 4]}\n"
                           "  classes: 5\n"
                           "  loss: softmax_cross_entropy\n"
                           "  layers:\n"
                           "    - {name: conv, kind: conv2d, filters: 8, kernel: 3, padding: same}\n"
                           "    - {name: deep, kind: depthwise_conv2d, kernel: 3, padding: same}\n"
                           "    - {name: up, kind: conv2d_transpose, filters: 4, kernel: 2, stride: 2}\n"
                           "    - {name: act, kind: silu}\n"
                           "    - {name: mean, kind: global_avg_pool}\n"
                           "    - {name: head, kind: dense, units: 5}\n";

static struct asked {
    uint32_t times, products;
    bool channels_last, tf32;
    uint64_t limit, least; // handed to ask_pytorch; workspace of theirs
} asked;

// What the device at hand does otherwise than the plain one: its library has no engine for gradients of weights; kernels of ours want
// weights, and give their gradients, in the library's order.
static struct otherwise {
    bool no_engine, copies;
    uint64_t theirs; // 0: THEIRS
} otherwise;

static void want_copy(const op_query *q, target_answer *out)
{
    const uint8_t operand = q->op == HR_OP_CONV2D_BWD_WEIGHTS ? 0x80 : 1;
    const op_operand *weights = operand == 1 ? &q->in[1] : &q->out[0];
    uint64_t padding = 0;
    out->reorder_count = 1;
    out->reorder[0].operand = operand;
    ck_assert(operand_bytes(weights, &out->reorder[0].bytes, &padding));
}

// Ours takes what it is given, up to OURS, and cannot do without NEEDED in gradients of weights.
static hr_status ask(void *context, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    (void)context, (void)err;
    const bool computes = pytorch_convolves((hr_op)q->op) || pytorch_multiplies((hr_op)q->op);
    *out = (target_answer){.workspace_bytes = !computes ? 0 : limit < OURS ? limit : OURS};
    if (q->op == HR_OP_CONV2D_BWD_WEIGHTS && out->workspace_bytes < NEEDED) {
        out->workspace_bytes = NEEDED;
    }
    if (otherwise.copies &&
        (q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_BWD_DATA || q->op == HR_OP_CONV2D_BWD_WEIGHTS)) {
        want_copy(q, out);
    }
    asked.products += pytorch_multiplies((hr_op)q->op) && limit > 0;
    return HR_OK;
}

static hr_status ask_pytorch(void *context, const op_query *q, const pytorch_images *images, uint64_t limit,
                             target_answer *out, hr_err *err)
{
    (void)context, (void)err;
    ck_assert(pytorch_convolves((hr_op)q->op));
    asked.times++;
    asked.channels_last = images->channels_last;
    asked.tf32 = images->tf32;
    asked.limit = limit;
    const uint64_t theirs = otherwise.theirs == 0 ? THEIRS : otherwise.theirs;
    *out = (target_answer){.workspace_bytes = pytorch_asks_cudnn(q, images, CARD) && limit >= theirs
                                                  ? theirs + (uint64_t)q->op
                                                  : 0};
    if (otherwise.no_engine && q->op == HR_OP_CONV2D_BWD_WEIGHTS) {
        *out = (target_answer){.instead = TARGET_INSTEAD_ENGINE};
    }
    return HR_OK;
}

static bool fuses(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

static hr_target target_of(bool knows)
{
    return (hr_target){.name = "knowing",
                       .key = knows ? 811 : 812,
                       .ask = ask,
                       .ask_pytorch = knows ? ask_pytorch : NULL,
                       .fuses = fuses};
}

static hr_knobs knobs_with(const char *as, const char *pair)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_BATCH_SIZE, "3", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, as, NULL), HR_OK);
    ck_assert_int_eq(pair == NULL ? HR_OK : hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

static program *compile_for(const hr_target *target, const char *as, const char *pair)
{
    hr_err err = {0};
    program *p = NULL;
    const hr_knobs knobs = knobs_with(as, pair);
    hr_model *model = model_from_text(text);
    asked = (struct asked){0};
    target_forget();
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static uint64_t workspace_of(const program *p, const instr *i)
{
    return i->workspace == HR_NO_ID ? 0 : p->tensors[i->workspace].bytes;
}

static bool by_channel(const program *p, const instr *i)
{
    return i->layer != HR_NO_ID && strcmp(p->layer_names[i->layer], "deep") == 0;
}

START_TEST(what_convolves_has_pytorchs_workspace_and_products_none)
{
    const hr_target target = target_of(true);
    program *p = compile_for(&target, "pytorch", NULL);
    uint32_t convolutions = 0, products = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const uint64_t own = i->op == HR_OP_CONV2D_BWD_WEIGHTS ? NEEDED : 0;
        if (pytorch_convolves(i->op)) {
            ck_assert_uint_eq(workspace_of(p, i), by_channel(p, i) ? own : THEIRS + (uint64_t)i->op);
            convolutions++;
        } else {
            ck_assert_uint_eq(workspace_of(p, i), 0);
            products += pytorch_multiplies(i->op);
        }
    }
    ck_assert_uint_eq(convolutions, 8); // the first image has no gradient
    ck_assert_uint_eq(products, 3);
    ck_assert_uint_eq(asked.times, 8);
    ck_assert_uint_eq(asked.products, 0);
    program_destroy(p);
}
END_TEST

START_TEST(a_workspace_is_there_while_its_instruction_runs_and_no_longer)
{
    const hr_target target = target_of(true);
    program *p = compile_for(&target, "pytorch", NULL);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->workspace != HR_NO_ID) {
            ck_assert_int_eq(p->instrs[n - 1].op, HR_OP_ALLOC); // behind the results, as PyTorch asks
            ck_assert_uint_eq(p->instrs[n - 1].out[0], i->workspace);
            bool freed = false;
            for (uint32_t k = n + 1; k < p->instr_count && p->instrs[k].op == HR_OP_FREE; k++) {
                freed = freed || p->instrs[k].in[0] == i->workspace;
            }
            ck_assert(freed);
        }
    }
    program_destroy(p);
}
END_TEST

START_TEST(the_scripts_settings_and_the_limit_are_handed_on)
{
    const hr_target target = target_of(true);
    program_destroy(compile_for(&target, "pytorch", NULL));
    ck_assert(!asked.channels_last && asked.tf32 && asked.limit == UINT64_MAX);
    program_destroy(compile_for(&target, "pytorch", "execution.memory_format=channels_last"));
    ck_assert(asked.channels_last && asked.tf32);
    program_destroy(compile_for(&target, "pytorch", "execution.cudnn_tf32=off"));
    ck_assert(!asked.channels_last && !asked.tf32);
    program *p = compile_for(&target, "pytorch", "workspace.limit=999B");
    ck_assert_uint_eq(asked.limit, 999);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        ck_assert_uint_le(workspace_of(p, &p->instrs[n]), NEEDED);
    }
    program_destroy(p);
}
END_TEST

START_TEST(who_does_not_know_them_plans_its_own)
{
    static const char *const frameworks[] = {"headroom", "pytorch"};
    for (int knows = 0; knows < 2; knows++) {
        for (int as = 0; as < 2; as++) {
            const hr_target target = target_of(knows != 0);
            if (knows != 0 && as == 1) {
                continue;
            }
            program *p = compile_for(&target, frameworks[as], NULL);
            ck_assert_uint_eq(asked.times, 0);
            for (uint32_t n = 0; n < p->instr_count; n++) {
                const instr *i = &p->instrs[n];
                const bool computes = pytorch_convolves(i->op) || pytorch_multiplies(i->op);
                ck_assert_uint_eq(workspace_of(p, i), computes ? OURS : 0);
            }
            program_destroy(p);
        }
    }
}
END_TEST

static op_query query_of(hr_op op, hr_dtype dtype, int32_t groups)
{
    const op_operand x = {.shape = shape_of(4, (const int64_t[]){2, 8, 8, 6}), .dtype = dtype},
                     w = {.shape = shape_of(4, (const int64_t[]){3, 3, 6 / groups, 6}), .dtype = dtype};
    op_query q = {
        .op = op, .in_count = 2, .out_count = 1, .attr = {.groups = groups}, .in = {x, w}, .out = {x}};
    if (op == HR_OP_CONV2D_BWD_WEIGHTS) {
        q.in[1] = x;
        q.out[0] = w;
    }
    return q;
}

START_TEST(one_by_channel_in_float32_is_pytorchs_own_unless_channels_are_last)
{
    static const hr_op ops[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};
    const pytorch_images plain = {.tf32 = true}, last = {.channels_last = true};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        for (int32_t groups = 1; groups <= 6; groups++) {
            if (6 % groups == 0) {
                const op_query q = query_of(ops[k], HR_F32, groups), half = query_of(ops[k], HR_BF16, groups);
                ck_assert_int_eq(pytorch_asks_cudnn(&q, &plain, CARD), groups < 6);
                ck_assert(pytorch_asks_cudnn(&q, &last, CARD) && pytorch_asks_cudnn(&half, &plain, CARD));
            }
        }
    }
    const op_query dense = query_of(HR_OP_DENSE, HR_F32, 1);
    ck_assert(!pytorch_asks_cudnn(&dense, &plain, CARD));
}
END_TEST

START_TEST(bfloat16_is_pytorchs_own_below_compute_capability_8)
{
    static const hr_op ops[] = {
        HR_OP_CONV2D,           HR_OP_CONV2D_BWD_DATA,           HR_OP_CONV2D_BWD_WEIGHTS,
        HR_OP_CONV2D_TRANSPOSE, HR_OP_CONV2D_TRANSPOSE_BWD_DATA, HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS};
    const pytorch_images plain = {.tf32 = true}, last = {.channels_last = true};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        for (uint32_t major = 6; major <= 12; major++) {
            const op_query wide = query_of(ops[k], HR_BF16, 1), half = query_of(ops[k], HR_F16, 1),
                           whole = query_of(ops[k], HR_F32, 1);
            ck_assert_int_eq(pytorch_asks_cudnn(&wide, &plain, major), major >= 8);
            ck_assert_int_eq(pytorch_asks_cudnn(&wide, &last, major), major >= 8);
            ck_assert(pytorch_asks_cudnn(&half, &plain, major) && pytorch_asks_cudnn(&whole, &last, major));
        }
    }
}
END_TEST

START_TEST(where_pytorchs_library_has_no_engine_ours_takes_its_own)
{
    const hr_target target = target_of(true);
    otherwise = (struct otherwise){.no_engine = true};
    program *p = compile_for(&target, "pytorch", NULL), *limited = NULL;
    uint32_t without = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool of_weights = i->op == HR_OP_CONV2D_BWD_WEIGHTS;
        ck_assert_int_eq(i->theirs, of_weights ? TARGET_INSTEAD_ENGINE : TARGET_INSTEAD_NONE);
        ck_assert(!of_weights || workspace_of(p, i) == OURS);
        without += of_weights;
    }
    ck_assert_uint_eq(without, 2);
    hr_report r = {0};
    implementations_count(p, &r);
    ck_assert_uint_eq(r.step.unserved.instructions, without);
    ck_assert_uint_eq(r.step.unserved.without_driver, 0);
    ck_assert_str_eq(r.step.unserved.first, "deep/conv2d_bwd_weights"); // backward begins at the end
    limited = compile_for(&target, "pytorch", "workspace.limit=2000B"); // the user's
    for (uint32_t n = 0; n < limited->instr_count; n++) {
        const instr *i = &limited->instrs[n];
        ck_assert(i->op != HR_OP_CONV2D_BWD_WEIGHTS || workspace_of(limited, i) == 2000);
    }
    program_destroy(p);
    program_destroy(limited);
}
END_TEST

// ---- copies in the library's order --------------------------------------------------------------------------------

static bool is_copy(const tensor *t)
{
    const size_t length = strlen(t->name);
    return length > 8 && strcmp(t->name + length - 8, ":library") == 0;
}

static uint32_t allocs_of_copies(const program *p)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        count += p->instrs[n].op == HR_OP_ALLOC && is_copy(&p->tensors[p->instrs[n].out[0]]);
    }
    return count;
}

static uint32_t copies_inside(const program *p, const instr *i, const uint32_t *ids, uint8_t count)
{
    uint32_t inside = 0;
    for (uint8_t k = 0; k < count; k++) {
        const tensor *t = &p->tensors[ids[k]];
        if (is_copy(t)) {
            ck_assert_uint_eq(t->storage, i->workspace);
            ck_assert_uint_ge(t->offset, program_scratch_bytes(p, i));
            ck_assert_uint_le(t->offset + t->bytes, workspace_of(p, i));
            ck_assert_uint_eq(t->offset % 256, 0);
            inside++;
        }
    }
    return inside;
}

START_TEST(copies_in_the_librarys_order_lie_in_pytorchs_workspace)
{
    const hr_target target = target_of(true);
    uint32_t inside = 0;
    otherwise = (struct otherwise){.copies = true, .theirs = LARGE};
    program *p = compile_for(&target, "pytorch", NULL);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_CONV2D || i->op == HR_OP_CONV2D_BWD_DATA || i->op == HR_OP_CONV2D_BWD_WEIGHTS) {
            const bool has_room = !by_channel(p, i);
            inside +=
                has_room ? copies_inside(p, i, i->in, i->in_count) + copies_inside(p, i, i->out, i->out_count)
                         : 0;
            ck_assert(!has_room || workspace_of(p, i) == LARGE + (uint64_t)i->op);
        }
    }
    ck_assert_uint_eq(inside, 2);
    ck_assert_uint_eq(allocs_of_copies(p), 3); // by channel there is no workspace to lie in
    program_destroy(p);
}
END_TEST

// The workspace is asked for behind the results, as without the copy.
START_TEST(a_copy_that_is_read_changes_the_order_of_no_request)
{
    const hr_target target = target_of(true);
    otherwise = (struct otherwise){.copies = true, .theirs = LARGE};
    program *p = compile_for(&target, "pytorch", NULL);
    uint32_t seen = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if ((i->op == HR_OP_CONV2D || i->op == HR_OP_CONV2D_BWD_DATA) && p->tensors[i->in[1]].offset > 0) {
            ck_assert_int_eq(p->instrs[n - 1].op, HR_OP_REORDER);
            ck_assert(p->instrs[n - 2].op == HR_OP_ALLOC && p->instrs[n - 2].out[0] == i->workspace);
            ck_assert(p->instrs[n - 3].op == HR_OP_ALLOC && p->instrs[n - 3].out[0] == i->out[0]);
            seen++;
        }
    }
    ck_assert_uint_ge(seen, 1);
    program_destroy(p);
}
END_TEST

START_TEST(copies_without_room_there_are_tensors_of_their_own)
{
    const hr_target target = target_of(true);
    otherwise = (struct otherwise){.copies = true};
    program *p = compile_for(&target, "pytorch", NULL);
    ck_assert_uint_eq(allocs_of_copies(p), 5);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        ck_assert(!is_copy(&p->tensors[k]) || p->tensors[k].storage == k);
    }
    program_destroy(p);
}
END_TEST

START_TEST(answers_are_remembered_apart_from_ours_and_each_setting)
{
    const hr_target target = target_of(true);
    const op_query q = query_of(HR_OP_CONV2D, HR_BF16, 1);
    const pytorch_images settings[] = {{false, false}, {false, true}, {true, false}, {true, true}};
    hr_err err = {0};
    target_answer a, b;
    target_forget();
    asked = (struct asked){0};
    ck_assert_int_eq(target_ask(&target, &q, UINT64_MAX, &a, &err), HR_OK);
    for (int again = 0; again < 2; again++) {
        for (uint32_t k = 0; k < 4; k++) {
            ck_assert_int_eq(target_ask_pytorch(&target, &q, &settings[k], UINT64_MAX, &b, &err), HR_OK);
            ck_assert_uint_eq(b.workspace_bytes, THEIRS + (uint64_t)q.op);
            ck_assert_uint_eq(asked.times, again == 0 ? k + 1 : 4);
        }
    }
    ck_assert_int_eq(target_ask_pytorch(&target, &q, &settings[0], 1, &b, &err), HR_OK);
    ck_assert_uint_eq(b.workspace_bytes, 0);
    ck_assert_int_eq(target_ask(&target, &q, UINT64_MAX, &b, &err), HR_OK);
    ck_assert_uint_eq(b.workspace_bytes, a.workspace_bytes);
}
END_TEST

START_TEST(an_estimate_has_none_and_is_counted)
{
    const hr_target slow = target_of(true);
    target_estimates estimates = {.from = &slow};
    hr_target target = slow;
    target.estimates = &estimates;
    const op_query q = query_of(HR_OP_CONV2D, HR_BF16, 1);
    target_answer a;
    hr_err err = {0};
    target_forget();
    asked = (struct asked){0};
    ck_assert_int_eq(target_ask_pytorch(&target, &q, &(pytorch_images){.tf32 = true}, UINT64_MAX, &a, &err),
                     HR_OK);
    ck_assert(a.workspace_bytes == 0 && estimates.count == 1 && asked.times == 0);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    const hr_target target = target_of(true);
    const hr_knobs knobs = knobs_with("pytorch", NULL);
    hr_model *model = model_from_text(text);
    const int64_t live = hr_host_mem_live();
    bool finished = false;
    for (uint64_t n = 1; !finished && n < 5000; n++) {
        hr_err err = {0};
        program *p = NULL;
        target_forget();
        const int64_t before = hr_host_mem_live();
        hr_host_mem_fail_at(n);
        const hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err);
        finished = hr_host_mem_fail_at(0) < n;
        ck_assert(status == HR_NOMEM || status == HR_OK); // the memo does without
        program_destroy(p);
        target_forget();
        ck_assert_int_eq(hr_host_mem_live(), before);
    }
    ck_assert(finished);
    ck_assert_int_le(hr_host_mem_live(), live);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pytorch_workspaces");
    TCase *c = tcase_create("pytorch_workspaces");
    tcase_add_test(c, what_convolves_has_pytorchs_workspace_and_products_none);
    tcase_add_test(c, a_workspace_is_there_while_its_instruction_runs_and_no_longer);
    tcase_add_test(c, the_scripts_settings_and_the_limit_are_handed_on);
    tcase_add_test(c, who_does_not_know_them_plans_its_own);
    tcase_add_test(c, one_by_channel_in_float32_is_pytorchs_own_unless_channels_are_last);
    tcase_add_test(c, bfloat16_is_pytorchs_own_below_compute_capability_8);
    tcase_add_test(c, where_pytorchs_library_has_no_engine_ours_takes_its_own);
    tcase_add_test(c, copies_in_the_librarys_order_lie_in_pytorchs_workspace);
    tcase_add_test(c, a_copy_that_is_read_changes_the_order_of_no_request);
    tcase_add_test(c, copies_without_room_there_are_tensors_of_their_own);
    tcase_add_test(c, answers_are_remembered_apart_from_ours_and_each_setting);
    tcase_add_test(c, an_estimate_has_none_and_is_counted);
    tcase_add_test(c, every_allocation_may_fail_once);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
