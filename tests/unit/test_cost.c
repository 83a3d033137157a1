// SPDX-License-Identifier: Apache-2.0
// The lanes of a step: copies run beside the compute lane, waits join them, rounds count. The judge is a model of its
// own that plays every instruction of every round and asks who waits for whom.
#include <check.h>
#include <math.h>
#include <string.h>

#include "device/cost.h"
#include "memory/heap.h"

enum { MAX_INSTRS = 64, MAX_EVENTS = 6 };

// An instruction takes as many nanoseconds as it has FLOPs.
static hr_time_basis knows(void *context)
{
    return *(const bool *)context ? HR_TIME_CALIBRATION : HR_TIME_UNKNOWN;
}

static uint64_t flops_as_ns(void *context, const program *p, const instr *i)
{
    (void)context, (void)p;
    return cost_family_of(i) == COST_NOTHING ? 0 : i->flops;
}

// And the host as many to issue it as it moves bytes.
static uint64_t bytes_as_ns(void *context, const program *p, const instr *i)
{
    (void)context, (void)p;
    return cost_family_of(i) == COST_NOTHING ? 0 : i->bytes_moved;
}

static const device_ops device = {
    .name = "test", .time_basis = knows, .duration_ns = flops_as_ns, .issue_ns = bytes_as_ns};

static const device_ops in_order = {.name = "in order",
                                    .in_order = true,
                                    .time_basis = knows,
                                    .duration_ns = flops_as_ns,
                                    .issue_ns = bytes_as_ns};

static double seconds_on(const device_ops *on, const instr *instrs, uint32_t count)
{
    const program p = {.instrs = instrs, .instr_count = count};
    bool timed = true;
    double seconds = 0;
    ck_assert_int_eq(cost_step_seconds(on, &timed, &p, &seconds, NULL), HR_OK);
    return seconds;
}

static double seconds_of(const instr *instrs, uint32_t count)
{
    return seconds_on(&device, instrs, count);
}

#define NS(...)                                                                                              \
    seconds_of((const instr[]){__VA_ARGS__}, sizeof((const instr[]){__VA_ARGS__}) / sizeof(instr)) * 1e9
#define COMPUTE(ns)       ((instr){.op = HR_OP_GELU, .flops = (ns)})
#define ISSUED(issue, ns) ((instr){.op = HR_OP_GELU, .flops = (ns), .bytes_moved = (issue)})
#define READ(ns)          ((instr){.op = HR_OP_READ, .lane = HR_LANE_D2H, .flops = (ns)})
#define OFFLOAD(ns)       ((instr){.op = HR_OP_OFFLOAD, .lane = HR_LANE_D2H, .flops = (ns)})
#define FETCH(ns)         ((instr){.op = HR_OP_FETCH, .lane = HR_LANE_H2D, .flops = (ns)})
#define INPUT(ns)         ((instr){.op = HR_OP_INPUT, .lane = HR_LANE_H2D, .flops = (ns)})
#define RECORD(on, event) ((instr){.op = HR_OP_RECORD, .lane = HR_LANE_##on, .attr = {.slot = (event)}})
#define WAIT(on, event)   ((instr){.op = HR_OP_WAIT, .lane = HR_LANE_##on, .attr = {.slot = (event)}})
#define REPEAT(rounds)    ((instr){.op = HR_OP_REPEAT, .attr = {.count = (rounds)}})
#define END               ((instr){.op = HR_OP_END})

static void is(double ns, double expected)
{
    ck_assert_double_eq_tol(ns, expected, 1e-6);
}

START_TEST(one_lane_adds_up)
{
    is(NS(COMPUTE(5), COMPUTE(7), (instr){.op = HR_OP_ALLOC, .flops = 100}), 12);
}
END_TEST

START_TEST(a_copy_runs_beside_the_arithmetic)
{
    is(NS(OFFLOAD(10), COMPUTE(4), COMPUTE(5)), 10);
    is(NS(OFFLOAD(10), FETCH(8), COMPUTE(14)), 14);
    is(NS(OFFLOAD(10), OFFLOAD(10), COMPUTE(14)), 20); // one lane, one after the other
}
END_TEST

START_TEST(a_wait_joins_the_lanes)
{
    is(NS(OFFLOAD(10), RECORD(D2H, 0), COMPUTE(4), WAIT(COMPUTE, 0), COMPUTE(5)), 15);
    is(NS(OFFLOAD(10), RECORD(D2H, 0), COMPUTE(40), WAIT(COMPUTE, 0), COMPUTE(5)), 45);
    is(NS(COMPUTE(6), RECORD(COMPUTE, 1), WAIT(D2H, 1), OFFLOAD(10), COMPUTE(4)), 16);
    is(NS(COMPUTE(6), OFFLOAD(10), RECORD(D2H, 0), OFFLOAD(10), WAIT(COMPUTE, 0), COMPUTE(5)), 20);
}
END_TEST

// As the cores of this machine do: a copy is an instruction like the others.
START_TEST(a_copy_is_beside_nothing_where_all_runs_in_order)
{
    const instr list[] = {OFFLOAD(10), RECORD(D2H, 0), COMPUTE(4), WAIT(COMPUTE, 0), FETCH(8), COMPUTE(5)};
    const device_ops *cpu = NULL, *reference = NULL;
    is(seconds_on(&in_order, list, sizeof list / sizeof *list) * 1e9, 27);
    is(seconds_of(list, sizeof list / sizeof *list) * 1e9, 15);
    ck_assert_int_eq(device_find("reference", &reference, NULL), HR_OK);
    ck_assert(reference->in_order);
    ck_assert(device_find("cpu", &cpu, NULL) != HR_OK || cpu->in_order);
}
END_TEST

START_TEST(the_step_waits_for_its_input)
{
    is(NS(INPUT(10), COMPUTE(4)), 14);
    is(NS(COMPUTE(4), READ(3), COMPUTE(1)), 8);
}
END_TEST

START_TEST(rounds_count)
{
    is(NS(REPEAT(7), COMPUTE(5), END, COMPUTE(1)), 36);
    is(NS(COMPUTE(2), REPEAT(1000000), COMPUTE(5), INPUT(1), END), 6000002);
    // A copy that is longer than its round: the lane falls behind, and compute does not care.
    is(NS(REPEAT(4), COMPUTE(5), OFFLOAD(9), END), 36);
    // The same with a wait at the end of the round.
    is(NS(REPEAT(4), COMPUTE(5), OFFLOAD(9), RECORD(D2H, 0), WAIT(COMPUTE, 0), END), 36);
}
END_TEST

START_TEST(nothing_runs_before_the_host_has_issued_it)
{
    is(NS(ISSUED(10, 3), ISSUED(10, 3), ISSUED(10, 3)), 33);   // each is waited for
    is(NS(ISSUED(10, 90), ISSUED(10, 3), ISSUED(10, 3)), 106); // the host runs ahead of a long one
    is(NS(ISSUED(10, 90), READ(1), ISSUED(10, 3)), 114);       // but not of a result that it reads
    is(NS(REPEAT(1000), ISSUED(10, 3), ISSUED(10, 3), END), 20003);
    is(NS(REPEAT(1000), ISSUED(10, 30), ISSUED(10, 3), END), 33010);
}
END_TEST

START_TEST(who_does_not_know_says_so)
{
    const instr one = COMPUTE(5);
    const program p = {.instrs = &one, .instr_count = 1};
    bool timed = false;
    double seconds = 0;
    ck_assert_int_eq(cost_step_seconds(&device, &timed, &p, &seconds, NULL), HR_OK);
    ck_assert_double_nan(seconds);
    const device_ops mute = {.name = "mute"};
    ck_assert_int_eq(cost_step_seconds(&mute, &timed, &p, &seconds, NULL), HR_OK);
    ck_assert_double_nan(seconds);
}
END_TEST

// ---- random programs against the judge ------------------------------------------------------------------------

// When instruction `at` of the unrolled list is over, asked backwards from its end: an instruction follows the last
// one before it on its lane, a wait also follows the last record of its event, input and read also what computes
// before them, and what computes follows the input and read before it. Nothing begins before it was issued: the host
// issues in the order of the list, and waits for what it reads.
typedef struct judge {
    const instr *list;
    uint64_t *over_ns; // [count] of what was asked already, UINT64_MAX elsewhere
} judge;

static uint64_t over(judge *j, int at);

static bool stops_compute(const instr *i)
{
    return i->op == HR_OP_INPUT || i->op == HR_OP_READ;
}

static bool is_event_of(const instr *wait, const instr *record)
{
    return wait->op == HR_OP_WAIT && record->op == HR_OP_RECORD && wait->attr.slot == record->attr.slot;
}

static bool follows(const instr *i, const instr *earlier)
{
    const bool held = stops_compute(earlier) && i->lane == HR_LANE_COMPUTE;
    const bool holds = stops_compute(i) && (earlier->lane == HR_LANE_COMPUTE || stops_compute(earlier));
    return i->lane == earlier->lane || held || holds;
}

static uint64_t issue_of(const instr *i)
{
    return cost_family_of(i) == COST_NOTHING ? 0 : i->bytes_moved;
}

static uint64_t issued(judge *j, int at)
{
    uint64_t host = issue_of(&j->list[0]);
    for (int k = 1; k <= at; k++) {
        const uint64_t read = j->list[k - 1].op == HR_OP_READ ? over(j, k - 1) : 0;
        host = (read > host ? read : host) + issue_of(&j->list[k]);
    }
    return host;
}

static uint64_t over(judge *j, int at)
{
    if (j->over_ns[at] != UINT64_MAX) {
        return j->over_ns[at];
    }
    uint64_t begin = issue_of(&j->list[at]) > 0 ? issued(j, at) : 0;
    bool found = false;
    for (int before = at - 1; before >= 0; before--) {
        const instr *i = &j->list[at], *earlier = &j->list[before];
        const bool event =
            !found && is_event_of(i, earlier); // it may have happened before: the last time counts
        const uint64_t ns = event || follows(i, earlier) ? over(j, before) : 0;
        found = found || event;
        begin = ns > begin ? ns : begin;
    }
    const bool takes = cost_family_of(&j->list[at]) != COST_NOTHING;
    j->over_ns[at] = begin + (takes ? j->list[at].flops : 0);
    return j->over_ns[at];
}

static uint64_t judged(const instr *list, int count)
{
    static uint64_t memory[4096];
    judge j = {.list = list, .over_ns = memory};
    uint64_t end = 0;
    memset(memory, 0xff, sizeof memory);
    for (int k = 0; k < count; k++) {
        end = over(&j, k) > end ? over(&j, k) : end;
    }
    return end;
}

static uint32_t draw_below(uint64_t *state, uint32_t count)
{
    return (uint32_t)(next_random(state) % count);
}

static instr any_instr(uint64_t *d)
{
    static const hr_op ops[] = {HR_OP_GELU,  HR_OP_DENSE, HR_OP_OFFLOAD, HR_OP_FETCH, HR_OP_RECORD,
                                HR_OP_WAIT,  HR_OP_INPUT, HR_OP_RECORD,  HR_OP_WAIT,  HR_OP_OFFLOAD,
                                HR_OP_FETCH, HR_OP_ALLOC, HR_OP_READ};
    static const uint8_t lanes[] = {HR_LANE_COMPUTE, HR_LANE_H2D, HR_LANE_D2H};
    instr i = {.op = ops[draw_below(d, sizeof ops / sizeof *ops)], .flops = draw_below(d, 50)};
    i.bytes_moved = draw_below(d, 2) == 0 ? 0 : draw_below(d, 40);
    i.lane = i.op == HR_OP_OFFLOAD || i.op == HR_OP_READ  ? HR_LANE_D2H
             : i.op == HR_OP_FETCH || i.op == HR_OP_INPUT ? HR_LANE_H2D
             : i.op == HR_OP_RECORD || i.op == HR_OP_WAIT ? lanes[draw_below(d, 3)]
                                                          : HR_LANE_COMPUTE;
    i.attr.slot = i.op == HR_OP_INPUT || i.op == HR_OP_READ ? 0 : (int32_t)draw_below(d, MAX_EVENTS);
    return i;
}

START_TEST(random_programs_take_what_the_judge_says)
{
    static instr list[MAX_INSTRS], unrolled[4096];
    uint64_t d = (uint64_t)_i + 1;
    const uint32_t before = draw_below(&d, 8), body = draw_below(&d, 12), behind = draw_below(&d, 8);
    const uint32_t rounds = 1 + draw_below(&d, 40);
    uint32_t count = 0, long_count = 0;
    for (uint32_t k = 0; k < before; k++) {
        unrolled[long_count++] = list[count++] = any_instr(&d);
    }
    list[count++] = REPEAT((int32_t)rounds);
    const uint32_t first = count;
    for (uint32_t k = 0; k < body; k++) {
        list[count++] = any_instr(&d);
    }
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t k = 0; k < body; k++) {
            unrolled[long_count++] = list[first + k];
        }
    }
    list[count++] = END;
    for (uint32_t k = 0; k < behind; k++) {
        unrolled[long_count++] = list[count++] = any_instr(&d);
    }
    is(seconds_of(list, count) * 1e9, (double)judged(unrolled, (int)long_count));
    for (uint32_t k = 0; k < long_count; k++) {
        unrolled[k].lane = HR_LANE_COMPUTE;
    }
    is(seconds_on(&in_order, list, count) * 1e9, (double)judged(unrolled, (int)long_count));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cost");
    TCase *all = tcase_create("lanes");
    tcase_add_test(all, one_lane_adds_up);
    tcase_add_test(all, a_copy_runs_beside_the_arithmetic);
    tcase_add_test(all, a_wait_joins_the_lanes);
    tcase_add_test(all, a_copy_is_beside_nothing_where_all_runs_in_order);
    tcase_add_test(all, the_step_waits_for_its_input);
    tcase_add_test(all, rounds_count);
    tcase_add_test(all, nothing_runs_before_the_host_has_issued_it);
    tcase_add_test(all, who_does_not_know_says_so);
    tcase_add_loop_test(all, random_programs_take_what_the_judge_says, 0, 300);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
