// SPDX-License-Identifier: Apache-2.0
// checkpoint.strategy=budget with offload.activations=on: each value that has to go is copied or made again, whichever costs less where the
// step will run, and copies go when the link is idle.
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "program/compile.h"
#include "program/drawn_network.h"
#include "program/link.h"

enum {
    BATCH = 64,
    NETWORKS = HEADROOM_SANITIZED ? 12 : 60,
    LINKS = HEADROOM_SANITIZED ? 50 : 400,
    COPIES = 12,
    LONG = 30,
    STEP = 16
};

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

// A place by the nanoseconds that a byte takes in arithmetic, and over the link.
typedef struct place {
    uint64_t arithmetic, link;
} place;

static hr_status asked_for(void *context, const program *p, target_judgement *out, hr_err *err)
{
    (void)context, (void)err;
    *out = (target_judgement){program_peak_bytes(p), true};
    return HR_OK;
}

static uint64_t at_place(void *context, const program *p, const instr *i)
{
    const place *here = context;
    (void)p;
    return i->bytes_moved * (i->lane == HR_LANE_COMPUTE ? here->arithmetic : here->link);
}

static hr_status compile(const hr_model *model, place *here, uint64_t budget_bytes, bool eager, program **out,
                         hr_err *err)
{
    const target_judge judge = {.judge = asked_for, .context = here, .duration_ns = at_place};
    const hr_target target = {
        .name = "nothing", .key = 79, .judge = &judge, .ask = ask_nothing, .fuses = fuses_nothing};
    char strategy[48] = "none";
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    if (budget_bytes > 0) {
        snprintf(strategy, sizeof strategy, "budget:%" PRIu64 "B", budget_bytes);
    }
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, strategy, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, budget_bytes > 0 ? "on" : "off", NULL),
                     HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_MODE, eager ? "eager" : "graph", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "optimizer.kind=sgd", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.size=64", NULL), HR_OK);
    return program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, out, err);
}

typedef struct outcome {
    bool kept;
    uint64_t peak;
    uint32_t again, sent;
} outcome;

static outcome within(const hr_model *model, place *here, uint64_t budget_bytes, bool eager)
{
    hr_err err = {0};
    program *p = NULL;
    outcome o = {0};
    const hr_status status = compile(model, here, budget_bytes, eager, &p, &err);
    if (status == HR_OK) {
        ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
        o = (outcome){.kept = true, .peak = program_peak_bytes(p)};
        ck_assert_msg(budget_bytes == 0 || o.peak <= budget_bytes, "%" PRIu64 " of %" PRIu64, o.peak,
                      budget_bytes);
    } else {
        ck_assert_msg(status == HR_CONSTRAINT, "%s", err.sentence);
    }
    for (uint32_t n = 0; p != NULL && n < p->instr_count; n++) {
        o.again += p->instrs[n].again;
        o.sent += p->instrs[n].op == HR_OP_OFFLOAD;
    }
    program_destroy(p);
    return o;
}

START_TEST(no_step_is_above_its_budget_and_none_is_higher_under_a_smaller_one)
{
    place here = {.arithmetic = 1 + (uint64_t)_i % 3, .link = 1 + (uint64_t)_i % 7};
    const bool eager = _i % 2 == 1;
    hr_model *model = draw_network((uint64_t)_i * 5 + 2);
    const uint64_t plain = within(model, &here, 0, eager).peak;
    uint64_t before = plain;
    bool kept = true;
    for (uint64_t part = STEP; part > 0; part--) {
        const outcome o = within(model, &here, plain / STEP * part + plain % STEP, eager);
        ck_assert(!o.kept || (kept && o.peak <= before));
        ck_assert(part < STEP || (o.kept && o.sent == 0 && o.again == 0));
        kept = o.kept;
        before = o.kept ? o.peak : before;
    }
    model_destroy(model);
}
END_TEST

// Thirty layers whose values are most of what there is.
static hr_model *long_chain(void)
{
    char text[DRAWN_TEXT];
    int at = snprintf(text, sizeof text,
                      "device: {vram: 1GiB}\nmodel:\n  input: {shape: [8, 8, 16]}\n  classes: 4\n"
                      "  layers:\n");
    for (uint32_t l = 0; l < LONG; l++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "    - {name: c%" PRIu32
                       ", kind: conv2d, filters: 16, kernel: 3, padding: 1, bias: false, "
                       "activation: tanh}\n",
                       l);
    }
    snprintf(text + at, sizeof text - (size_t)at,
             "    - {name: gap, kind: global_avg_pool}\n    - {name: out, kind: dense, units: 4}\n");
    return model_from_text(text);
}

// None of its values is made again where the link has time for what goes, and none is sent where it has not.
START_TEST(what_goes_goes_the_cheaper_way)
{
    place quick = {.arithmetic = 1000, .link = 1}, slow = {.arithmetic = 1, .link = 100000};
    const bool eager = _i % 2 == 1;
    hr_model *model = long_chain();
    const uint64_t value = BATCH * 8 * 8 * 16 * sizeof(float);
    const uint64_t budget = within(model, &quick, 0, eager).peak - LONG / 2 * value;
    const outcome by_link = within(model, &quick, budget, eager),
                  by_sums = within(model, &slow, budget, eager);
    ck_assert(by_link.kept && by_sums.kept);
    ck_assert_uint_ge(by_link.sent, LONG / 2);
    ck_assert_uint_le(by_link.again, 1); // an eager step's probabilities
    ck_assert_uint_eq(by_sums.sent, 0);
    ck_assert_uint_ge(by_sums.again, LONG / 2);
    model_destroy(model);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    place here = {.arithmetic = 10, .link = 1};
    hr_model *model = draw_network(4);
    const uint64_t budget = within(model, &here, 0, _i == 1).peak / 8 * 7;
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status == HR_NOMEM; nth++) {
        program *p = NULL;
        hr_host_mem_fail_at(nth);
        status = compile(model, &here, budget, _i == 1, &p, NULL);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status == HR_NOMEM, nth <= seen);
        program_destroy(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    model_destroy(model);
}
END_TEST

// ---- the link -----------------------------------------------------------------------------------------------------

enum { INSTRS = 40, FORWARD = 16, TICKS = 2000 };

static bool is_taken(const bool *lane, uint64_t from, uint64_t cost)
{
    for (uint64_t t = from; t < from + cost; t++) {
        if (t >= TICKS || lane[t]) {
            return true;
        }
    }
    return false;
}

static void take(bool *lane, uint64_t from, uint64_t cost)
{
    memset(lane + from, true, cost);
}

// Tick by tick: out in the order of the last uses, at the first tick that is free from then on; back in that of the first ones from the
// end, at the last that is.
START_TEST(copies_are_where_a_lane_of_ticks_has_them)
{
    uint64_t state = (uint64_t)_i + 1, until[INSTRS + 1] = {0};
    bool out[TICKS] = {false}, back[TICKS] = {false};
    link_copy copies[COPIES];
    const uint32_t count = 1 + (uint32_t)draw(&state, COPIES);
    for (uint32_t n = 0; n < INSTRS; n++) {
        until[n + 1] = until[n] + 1 + draw(&state, 20);
    }
    for (uint32_t k = 0; k < count; k++) {
        copies[k] = (link_copy){.id = k,
                                .behind = (uint32_t)draw(&state, FORWARD),
                                .before = FORWARD + (uint32_t)draw(&state, INSTRS - FORWARD),
                                .cost = 1 + draw(&state, 25)};
    }
    if (link_schedule(copies, count, until, INSTRS, FORWARD) > 0) {
        return;
    }
    for (uint32_t use = 0; use < FORWARD; use++) {
        for (uint32_t id = 0; id < count; id++) {
            for (uint32_t k = 0; k < count; k++) {
                const link_copy *c = &copies[k];
                uint64_t t = until[use + 1];
                if (c->id != id || c->behind != use) {
                    continue;
                }
                while (is_taken(out, t, c->cost)) {
                    t++;
                }
                take(out, t, c->cost);
                ck_assert_uint_ge(until[c->done], t + c->cost);
                ck_assert(c->done == use + 1 || until[c->done - 1] < t + c->cost);
                ck_assert_uint_le(c->done, FORWARD);
            }
        }
    }
    for (uint32_t k = count; k-- > 0;) {
        const link_copy *c = &copies[k];
        ck_assert(k + 1 == count || c->before <= copies[k + 1].before);
        uint64_t t = until[c->before] - c->cost;
        while (is_taken(back, t, c->cost)) {
            t--;
        }
        take(back, t, c->cost);
        ck_assert_uint_le(until[c->begin], t);
        ck_assert(until[c->begin + 1] > t);
        ck_assert_uint_ge(c->begin, FORWARD);
    }
}
END_TEST

// Two copies of five ticks each, and forward of eight: out from 4 to 14, back from 16 to 6.
START_TEST(a_link_without_room_says_by_how_much)
{
    const uint64_t until[] = {0, 4, 8, 12, 16, 40};
    link_copy copies[] = {{.id = 0, .behind = 0, .before = 4, .cost = 5},
                          {.id = 1, .behind = 0, .before = 3, .cost = 5}};
    ck_assert_uint_eq(link_schedule(copies, 2, until, 5, 2), 6 + 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("budget_offload");
    TCase *tests = tcase_create("budget_offload");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, no_step_is_above_its_budget_and_none_is_higher_under_a_smaller_one, 0,
                        NETWORKS);
    tcase_add_loop_test(tests, what_goes_goes_the_cheaper_way, 0, 2);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, 2);
    tcase_add_loop_test(tests, copies_are_where_a_lane_of_ticks_has_them, 0, LINKS);
    tcase_add_test(tests, a_link_without_room_says_by_how_much);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
