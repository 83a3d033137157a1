// SPDX-License-Identifier: Apache-2.0
// Offload: lanes wait for one another in the right order, what is on the host is not in the pool, and nothing is lost.
// That the weights are the same bit for bit is shown where there is arithmetic (tests/cli).
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 64 };

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

static const hr_target target = {.name = "nothing", .key = 78, .ask = ask_nothing, .fuses = fuses_nothing};

static const char net[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  input: {shape: [16, 16, 3]}\n"
    "  classes: 4\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn0, kind: batch_norm, activation: relu}\n"
    "    - {name: a, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn1, kind: batch_norm, activation: relu}\n"
    "    - {name: pool, kind: max_pool, size: 2}\n"
    "    - {name: b, kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false}\n"
    "    - {name: bn2, kind: batch_norm, activation: relu}\n"
    "    - {name: flat, kind: flatten}\n"
    "    - {name: hidden, kind: dense, units: 64, activation: relu}\n"
    "    - {name: out, kind: dense, units: 4}\n";

static hr_knobs knobs_of(const char *const *pairs)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        hr_err err = {0};
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    return knobs;
}

static program *compile(const hr_model *model, const char *const *pairs)
{
    const hr_knobs knobs = knobs_of(pairs);
    hr_err err = {0};
    program *p = NULL;
    hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    status = program_check(p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    return p;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const settings[][4] = {
    {"execution.mode=graph", "offload.activations=on", "offload.prefetch=0"},
    {"execution.mode=graph", "offload.activations=on", "offload.prefetch=5"},
    {"execution.mode=eager", "offload.activations=on", "offload.prefetch=3"},
    {"execution.mode=graph", "offload.optimizer=on", "offload.prefetch=0"},
    {"execution.mode=graph", "offload.optimizer=on", "offload.prefetch=1000"},
    {"execution.mode=eager", "offload.optimizer=on", "offload.activations=on"},
    {"execution.mode=graph", "offload.activations=on", "checkpoint.strategy=every:3"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

// Every event is recorded once and waited for once, later; between a copy and the compute lane's wait for it nothing
// but copies touches what the copy writes.
START_TEST(lanes_wait_in_order)
{
    hr_model *model = model_from_text(net);
    program *p = compile(model, settings[_i]);
    uint32_t *recorded = calloc(p->instr_count + 1, sizeof *recorded);
    uint32_t *pending = calloc(p->tensor_count, sizeof *pending); // event that a tensor's copy ends with, + 1
    uint32_t copies = 0, last_copy_out = HR_NO_ID;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_OFFLOAD || i->op == HR_OP_FETCH) {
            copies++;
            ck_assert_int_eq(i->lane, i->op == HR_OP_FETCH ? HR_LANE_H2D : HR_LANE_D2H);
            ck_assert(tensor_on_host(&p->tensors[i->op == HR_OP_FETCH ? i->in[0] : i->out[0]]));
            ck_assert(!tensor_on_host(&p->tensors[i->op == HR_OP_FETCH ? i->out[0] : i->in[0]]));
            last_copy_out = i->op == HR_OP_FETCH ? i->out[0] : i->in[0];
        } else if (i->op == HR_OP_RECORD) {
            ck_assert_uint_eq(recorded[i->attr.slot], 0);
            recorded[i->attr.slot] = n + 1;
            if (i->lane != HR_LANE_COMPUTE) {
                pending[last_copy_out] = (uint32_t)i->attr.slot + 1;
            }
        } else if (i->op == HR_OP_WAIT) {
            ck_assert_uint_ne(recorded[i->attr.slot], 0);
            if (i->lane == HR_LANE_COMPUTE) {
                ck_assert_uint_eq(i->in_count, 1);
                ck_assert_uint_eq(pending[i->in[0]], (uint32_t)i->attr.slot + 1);
                pending[i->in[0]] = 0;
            }
        } else if (i->op == HR_OP_FREE) {
            ck_assert_uint_eq(pending[i->in[0]], 0);
        } else if (i->lane == HR_LANE_COMPUTE && i->op != HR_OP_ALLOC) {
            for (uint32_t k = 0; k < i->out_count; k++) {
                ck_assert_uint_eq(pending[i->out[k]], 0);
            }
        }
    }
    ck_assert_uint_gt(copies, 0);
    free(recorded);
    free(pending);
    program_destroy(p);
    model_destroy(model);
}
END_TEST

START_TEST(what_is_on_the_host_is_not_in_the_pool)
{
    hr_model *model = model_from_text(net);
    program *plain = compile(model, PAIRS("execution.mode=graph"));
    program *acts =
        compile(model, PAIRS("execution.mode=graph", "offload.activations=on", "offload.prefetch=0"));
    program *slots =
        compile(model, PAIRS("execution.mode=graph", "offload.optimizer=on", "offload.prefetch=0"));
    uint64_t slot_bytes = 0, moved = 0;
    for (uint32_t k = 0; k < plain->persistent_count; k++) {
        slot_bytes += plain->tensors[k].category == HR_CATEGORY_OPTIMIZER ? plain->tensors[k].bytes : 0;
    }
    for (uint32_t n = 0; n < acts->instr_count; n++) {
        moved += acts->instrs[n].op == HR_OP_OFFLOAD ? acts->instrs[n].bytes_moved : 0;
    }
    ck_assert_uint_lt(program_peak_bytes(acts), program_peak_bytes(plain));
    ck_assert_uint_eq(acts->saved_for_backward_bytes + moved, plain->saved_for_backward_bytes);
    ck_assert_uint_eq(acts->h2d_bytes, plain->h2d_bytes + moved);
    ck_assert_uint_ge(program_host_bytes(acts), moved);
    ck_assert_uint_eq(slots->static_bytes + slot_bytes, plain->static_bytes);
    ck_assert_uint_eq(slots->h2d_bytes, plain->h2d_bytes + slot_bytes);
    ck_assert_uint_lt(program_peak_bytes(slots), program_peak_bytes(plain));
    program_destroy(plain);
    program_destroy(acts);
    program_destroy(slots);
    model_destroy(model);
}
END_TEST

START_TEST(a_longer_prefetch_holds_no_less)
{
    hr_model *model = model_from_text(net);
    uint64_t before = 0;
    static const char *const prefetch[] = {"offload.prefetch=0", "offload.prefetch=2", "offload.prefetch=8"};
    for (size_t k = 0; k < sizeof prefetch / sizeof *prefetch; k++) {
        program *p = compile(model, PAIRS("execution.mode=graph", "offload.optimizer=on", prefetch[k]));
        ck_assert_uint_ge(program_peak_bytes(p), before);
        before = program_peak_bytes(p);
        program_destroy(p);
    }
    model_destroy(model);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_model *model = model_from_text(net);
    const hr_knobs knobs = knobs_of(settings[_i]);
    program *p = NULL;
    target_forget();
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, NULL), HR_OK);
    program_destroy(p);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        hr_host_mem_fail_at(nth);
        status = program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        program_destroy(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("offload");
    TCase *tests = tcase_create("offload");
    tcase_add_loop_test(tests, lanes_wait_in_order, 0, SETTINGS);
    tcase_add_test(tests, what_is_on_the_host_is_not_in_the_pool);
    tcase_add_test(tests, a_longer_prefetch_holds_no_less);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, SETTINGS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
