// SPDX-License-Identifier: Apache-2.0
// A plan under a budget compiles many ways. What is asked meanwhile is answered first, and what gave way is answered as if it had not.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "session/planner_queue.h"

static const char preset_name[] = "unet_tiny";

// What was asked: at every so many looks of the queue, and at none from `until` on.
typedef struct asker {
    uint32_t looks, every, until;
} asker;

static bool is_asked(void *context)
{
    asker *a = context;
    const uint32_t look = a->looks++;
    return a->every > 0 && look < a->until && look % a->every == 0;
}

static hr_knobs knobs_under(const char *strategy)
{
    char *problems = NULL;
    hr_preset *preset = NULL;
    ck_assert_int_eq(hr_preset_open(preset_name, false, &preset, &problems, NULL), HR_OK);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_CHECKPOINT_STRATEGY, strategy, NULL), HR_OK);
    hr_preset_problems_free(problems);
    hr_preset_close(preset);
    return knobs;
}

static planner_queue *queue_of(asker *a)
{
    planner_queue *queue = NULL;
    ck_assert_int_eq(planner_queue_create(&queue, NULL), HR_OK);
    planner_queue_open(queue, preset_name, false);
    planner_queue_give_way(queue, is_asked, a);
    return queue;
}

enum { ANSWERS = 6 };

typedef struct told {
    uint64_t peak_bytes[ANSWERS];
    char knobs[ANSWERS][sizeof((hr_fit_point *)0)->knobs];
    uint32_t count;
} told;

static void take_first(planner_queue *queue, told *out)
{
    hr_answer answer;
    memset(out, 0, sizeof *out);
    for (planning_work done = PLANNING_WORKED; done != PLANNING_IDLE && out->count < ANSWERS;) {
        done = planner_queue_work(queue, &answer);
        if (done != PLANNING_ANSWERED) {
            continue;
        }
        ck_assert_msg(answer.status == HR_OK, "%s", answer.sentence);
        ck_assert_uint_eq(answer.index, out->count);
        const bool fit = answer.kind == HR_QUESTION_FIT;
        out->peak_bytes[out->count] =
            fit ? answer.point.plan.peak_in_use_bytes : answer.whatif.peak_in_use_bytes;
        memcpy(out->knobs[out->count], answer.point.knobs, sizeof out->knobs[0]);
        out->count++;
        hr_answer_deinit(&answer);
    }
}

static void ask_turns(planner_queue *queue, const hr_knobs *knobs)
{
    static planning_question q;
    q = (planning_question){.kind = HR_QUESTION_TURNS, .number = 1, .knobs = *knobs};
    for (q.turn_count = 0; q.turn_count < HR_TURNS_FIRST + 2; q.turn_count++) {
        q.turns[q.turn_count].knob = HR_KNOB_BATCH_SIZE;
        (void)snprintf(q.turns[q.turn_count].value, sizeof q.turns[0].value, "%u", 8 + q.turn_count);
    }
    planner_queue_ask(queue, &q);
}

static void ask_fit(planner_queue *queue, const hr_knobs *knobs)
{
    static planning_question q;
    q = (planning_question){.kind = HR_QUESTION_FIT, .number = 2, .knobs = *knobs};
    planner_queue_ask(queue, &q);
}

// Half of what the plain step holds: ways are tried.
static hr_knobs tight(void)
{
    asker nobody = {0};
    told plain;
    char strategy[48];
    const hr_knobs knobs = knobs_under("none");
    planner_queue *queue = queue_of(&nobody);
    ask_turns(queue, &knobs);
    take_first(queue, &plain);
    planner_queue_destroy(queue);
    (void)snprintf(strategy, sizeof strategy, "budget:%lluB",
                   (unsigned long long)plain.peak_bytes[0] / 10 * 9);
    return knobs_under(strategy);
}

START_TEST(what_gives_way_is_answered_the_same)
{
    asker nobody = {0}, now_and_then = {.every = 5, .until = 40};
    static told quiet, disturbed;
    const hr_knobs knobs = tight();
    planner_queue *queue = queue_of(&nobody);
    (_i == 0 ? ask_turns : ask_fit)(queue, &knobs);
    take_first(queue, &quiet);
    planner_queue_destroy(queue);
    queue = queue_of(&now_and_then);
    (_i == 0 ? ask_turns : ask_fit)(queue, &knobs);
    take_first(queue, &disturbed);
    planner_queue_destroy(queue);
    ck_assert_uint_gt(now_and_then.looks, now_and_then.until);
    ck_assert_uint_eq(quiet.count, disturbed.count);
    ck_assert_mem_eq(&quiet, &disturbed, sizeof quiet);
}
END_TEST

// While something is asked all the time it is given up at the first look, and the rest is not begun.
START_TEST(what_is_not_urgent_is_given_up_at_once)
{
    asker always = {.every = 1, .until = UINT32_MAX};
    hr_answer answer;
    const hr_knobs knobs = tight();
    planner_queue *queue = queue_of(&always);
    ask_turns(queue, &knobs);
    for (int k = 0; k < HR_TURNS_FIRST; k++) { // these are urgent
        ck_assert_int_eq(planner_queue_work(queue, &answer), PLANNING_ANSWERED);
        hr_answer_deinit(&answer);
    }
    ck_assert_uint_eq(always.looks, 0);
    for (uint32_t k = 1; k <= 3; k++) {
        ck_assert_int_eq(planner_queue_work(queue, &answer), PLANNING_WORKED);
        ck_assert_uint_eq(always.looks, k);
    }
    always.every = 0;
    ck_assert_int_eq(planner_queue_work(queue, &answer), PLANNING_ANSWERED);
    ck_assert_uint_eq(answer.index, HR_TURNS_FIRST);
    ck_assert_int_eq(answer.status, HR_OK);
    hr_answer_deinit(&answer);
    planner_queue_destroy(queue);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("planning_gives_way");
    TCase *cases = tcase_create("planning_gives_way");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, what_gives_way_is_answered_the_same, 0, 2);
    tcase_add_test(cases, what_is_not_urgent_is_given_up_at_once);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
