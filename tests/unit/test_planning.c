// SPDX-License-Identifier: Apache-2.0
// Questions and answers, in process and in a process of its own: both say what a plan on the spot says; a new question
// replaces the old one.
#include <check.h>
#include <string.h>

#include "base/host_mem.h"
#include "unit/planning_use.h"

START_TEST(a_turn_is_answered_as_it_would_be_on_the_spot)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planner *planner = demo_planner();
    hr_planning *p = started(_i == 0);
    const uint64_t number = hr_planning_ask_turns(p, &knobs, turns, TURNS);
    ck_assert_uint_eq(number, 1);
    for (uint32_t k = 0; k < TURNS; k++) {
        hr_answer a;
        hr_whatif w;
        hr_err err = {0};
        ck_assert(hr_planning_is_busy(p) && next_answer(p, &a));
        hr_status status = turns[k].knob == HR_KNOB_COUNT
                               ? hr_planner_plan(planner, &knobs, &w, &err)
                               : hr_planner_turn(planner, &knobs, turns[k].knob, turns[k].value, &w, &err);
        ck_assert_int_eq(a.kind, HR_QUESTION_TURNS);
        ck_assert_uint_eq(a.number, number);
        ck_assert_uint_eq(a.index, k);
        ck_assert(a.last == (k + 1 == TURNS));
        ck_assert_int_eq(a.status, status);
        ck_assert_str_eq(a.sentence, err.sentence);
        ck_assert(status != HR_OK || same_plan(&a.whatif, &w));
        hr_answer_deinit(&a);
    }
    ck_assert(!hr_planning_is_busy(p));
    hr_planning_stop(p);
    hr_planner_close(planner);
}
END_TEST

// What a first build would find out is found out, and nothing is left of it; what only does not fit stands.
START_TEST(what_would_not_stand_says_why)
{
    static const struct {
        const char *pairs[3];
        hr_status status;
        const char *said;
    } rows[] = {
        {{"device.kind=plan"}, HR_OK, ""},
        {{"device.kind=reference", "batch.size=2"}, HR_OK, ""},
        {{"device.kind=plan", "batch.size=4096"}, HR_OK, ""},
        {{"allocator.kind=static"}, HR_CONSTRAINT, "static"},
        {{"device.kind=reference", "train.save=/nonexistent/a.safetensors"}, HR_WRITE, "/nonexistent"},
        {{"device.kind=reference", "train.resume=/nonexistent/a.safetensors"}, HR_READ, "/nonexistent"},
        {{"device.kind=reference", "pipeline.source=cifar10", "pipeline.path=/nonexistent"}, HR_OK, NULL},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_planning *p = started(_i == 0);
        const hr_knobs knobs = demo_knobs((const char *[]){rows[k].pairs[0], rows[k].pairs[1],
                                                           rows[k].pairs[1] ? rows[k].pairs[2] : NULL, NULL});
        hr_answer a;
        ck_assert_uint_ne(hr_planning_ask_stands(p, &knobs), 0);
        ck_assert(next_answer(p, &a) && a.last && a.kind == HR_QUESTION_STANDS);
        if (rows[k].said == NULL) {
            ck_assert(a.status != HR_OK && strstr(a.sentence, "/nonexistent") != NULL);
        } else {
            ck_assert_msg(a.status == rows[k].status && strstr(a.sentence, rows[k].said) != NULL,
                          "%zu: %d %s", k, a.status, a.sentence);
        }
        hr_answer_deinit(&a);
        hr_planning_stop(p);
    }
}
END_TEST

START_TEST(what_is_urgent_comes_first)
{
    static const hr_question_kind order[] = {HR_QUESTION_STANDS, HR_QUESTION_TURNS,     HR_QUESTION_TURNS,
                                             HR_QUESTION_TURNS,  HR_QUESTION_STEP_PLAN, HR_QUESTION_DIFF,
                                             HR_QUESTION_TURNS,  HR_QUESTION_FIT,       HR_QUESTION_TURNS};
    const hr_knobs knobs = demo_knobs(NULL),
                   graph = demo_knobs((const char *[]){"execution.mode=graph", NULL});
    hr_planning *p = started(true);
    ck_assert_uint_eq(hr_planning_ask_fit(p, &knobs, HR_PERMIT_OPTIMIZER), 1);
    ck_assert_uint_eq(hr_planning_ask_diff(p, &knobs, &graph), 2);
    ck_assert_uint_eq(hr_planning_ask_step_plan(p, &knobs), 3);
    ck_assert_uint_eq(hr_planning_ask_turns(p, &knobs, turns, 5), 4);
    ck_assert_uint_eq(hr_planning_ask_stands(p, &knobs), 5);
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        hr_answer a;
        ck_assert(next_answer(p, &a));
        ck_assert_int_eq(a.kind, order[k]);
        hr_answer_deinit(&a);
    }
    hr_planning_stop(p);
}
END_TEST

START_TEST(a_difference_is_the_planners)
{
    const hr_knobs knobs = demo_knobs(NULL),
                   graph = demo_knobs((const char *[]){"execution.mode=graph", NULL});
    const hr_knobs refused = demo_knobs((const char *[]){"allocator.kind=static", NULL});
    hr_planner *planner = demo_planner();
    hr_planning *p = started(_i == 0);
    char *lines = NULL;
    hr_answer a;
    ck_assert_int_eq(hr_planner_diff(planner, &knobs, &graph, &lines, NULL), HR_OK);
    ck_assert_uint_ne(hr_planning_ask_diff(p, &knobs, &graph), 0);
    ck_assert(next_answer(p, &a) && a.last && a.status == HR_OK);
    ck_assert_str_eq(a.text, lines);
    hr_answer_deinit(&a);
    ck_assert_uint_ne(hr_planning_ask_diff(p, &knobs, &refused), 0);
    ck_assert(next_answer(p, &a) && a.last);
    ck_assert_int_eq(a.status, HR_CONSTRAINT);
    ck_assert(a.text == NULL && a.sentence[0] != '\0');
    hr_answer_deinit(&a);
    hr_planner_text_free(lines);
    hr_planning_stop(p);
    hr_planner_close(planner);
}
END_TEST

START_TEST(what_cannot_be_planned_has_one_answer)
{
    const hr_knobs refused = demo_knobs((const char *[]){"allocator.kind=static", NULL});
    hr_planning *p = started(_i == 0);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_fit(p, &refused, HR_PERMIT_OPTIMIZER), 0);
    ck_assert(next_answer(p, &a) && a.last && a.index == 0);
    ck_assert_int_eq(a.status, HR_CONSTRAINT);
    ck_assert_uint_ne(hr_planning_ask_step_plan(p, &refused), 0);
    ck_assert(next_answer(p, &a) && a.last);
    ck_assert_int_eq(a.status, HR_CONSTRAINT);
    ck_assert_ptr_null(a.step_plan.instrs);
    hr_planning_open(p, "./no-such.yaml", false);
    ck_assert_uint_ne(hr_planning_ask_turns(p, &refused, turns, TURNS), 0);
    ck_assert(next_answer(p, &a) && a.last && a.index == 0);
    ck_assert_int_ne(a.status, HR_OK);
    ck_assert_ptr_nonnull(strstr(a.sentence, "no-such.yaml"));
    hr_planning_stop(p);
}
END_TEST

START_TEST(what_cannot_be_asked_has_no_number)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planning *p = NULL;
    hr_answer a;
    ck_assert_int_eq(hr_planning_start(_i == 0, &p, NULL), HR_OK);
    ck_assert_uint_eq(hr_planning_ask_step_plan(p, &knobs), 0); // of what?
    hr_planning_open(p, demo, false);
    ck_assert_uint_eq(hr_planning_ask_turns(p, &knobs, turns, 0), 0);
    ck_assert_uint_eq(hr_planning_ask_turns(p, &knobs, turns, HR_TURNS_MAX + 1), 0);
    ck_assert(!hr_planning_is_busy(p) && !hr_planning_take(p, &a));
    hr_planning_stop(p);
    ck_assert_uint_eq(hr_planning_ask_fit(NULL, &knobs, HR_PERMIT_NOTHING), 0);
    ck_assert(!hr_planning_take(NULL, &a) && !hr_planning_is_busy(NULL));
    hr_planning_open(NULL, demo, false);
    hr_planning_stop(NULL);
}
END_TEST

START_TEST(a_new_question_replaces_the_old_one)
{
    hr_planning *p = started(_i == 0);
    hr_answer a;
    uint64_t number = 0;
    unsigned answers = 0;
    for (int k = 0; k < 20; k++) {
        const hr_knobs knobs = demo_knobs(NULL);
        number = hr_planning_ask_turns(p, &knobs, turns, 1 + (size_t)k % TURNS);
        (void)hr_planning_ask_fit(p, &knobs, HR_PERMIT_OPTIMIZER);
        if (k % 3 == 0) {
            ck_assert(next_answer(p, &a) && a.number >= number);
            hr_answer_deinit(&a);
        }
    }
    for (uint64_t fit = number + 1; next_answer(p, &a); answers++) {
        ck_assert(a.number == number || a.number == fit);
        hr_answer_deinit(&a);
    }
    ck_assert_uint_gt(answers, 50);
    ck_assert_uint_ne(hr_planning_ask_fit(p, &(hr_knobs){0}, HR_PERMIT_NOTHING), 0);
    hr_planning_open(p, demo, false); // forgets it
    ck_assert(!hr_planning_is_busy(p) && !next_answer(p, &a));
    hr_planning_stop(p);
}
END_TEST

START_TEST(without_host_memory_it_says_so)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planner *planner = demo_planner();
    hr_whatif w;
    ck_assert_int_eq(hr_planner_plan(planner, &knobs, &w, NULL), HR_OK); // its device stays open
    hr_planner_close(planner);
    const int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1; nth < 400; nth += 7) {
        hr_planning *p = started(true);
        hr_answer a;
        (void)hr_planning_ask_turns(p, &knobs, turns, 2);
        (void)hr_planning_ask_step_plan(p, &knobs);
        (void)hr_planning_ask_fit(p, &knobs, HR_PERMIT_OPTIMIZER);
        (void)hr_host_mem_fail_at(nth);
        for (int k = 0; k < 6 && next_answer(p, &a); k++) {
            ck_assert(a.status == HR_OK || a.status == HR_NOMEM);
            ck_assert(a.status == HR_OK || a.sentence[0] != '\0');
            hr_answer_deinit(&a);
        }
        (void)hr_host_mem_fail_at(0);
        hr_planning_stop(p);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_turn_is_answered_as_it_would_be_on_the_spot, 0, 2);
    tcase_add_loop_test(tests, what_would_not_stand_says_why, 0, 2);
    tcase_add_test(tests, what_is_urgent_comes_first);
    tcase_add_loop_test(tests, a_difference_is_the_planners, 0, 2);
    tcase_add_loop_test(tests, what_cannot_be_planned_has_one_answer, 0, 2);
    tcase_add_loop_test(tests, what_cannot_be_asked_has_no_number, 0, 2);
    tcase_add_loop_test(tests, a_new_question_replaces_the_old_one, 0, 2);
    tcase_add_test(tests, without_host_memory_it_says_so);
}

int main(int argc, char **argv)
{
    return planning_tests(argc, argv, add, planning_serve_demo);
}
