// SPDX-License-Identifier: Apache-2.0
// What-ifs: every neighbour of every knob is asked about once, the selected knob first, and every answer comes to its
// cell; the workbench asks again when a knob was turned, and works without a planner.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/app.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_planning.h"
#include "tests/tui/screen.h"

static hr_turn turns[HR_TURNS_MAX];
static whatif asked;

static whatif_question question_of(hr_knob_id first)
{
    return (whatif_question){
        .knobs = *hr_preset_knobs(fake_preset()), .first = first, .when_unset_bytes = UINT64_C(64) << 20};
}

static bool neighbour_of(const whatif_question *q, hr_knob_id id, int side, char value[HR_KNOB_TEXT_MAX])
{
    hr_knobs turned = q->knobs;
    return knob_edit_reach(&q->knobs, id, side == WHATIF_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE,
                           q->when_unset_bytes, value, NULL) &&
           knob_edit_set(&turned, id, value, NULL) == HR_OK;
}

static unsigned times_asked(size_t count, hr_knob_id id, const char *value)
{
    unsigned times = 0;
    for (size_t k = 0; k < count; k++) {
        times += turns[k].knob == id && strcmp(turns[k].value, value) == 0;
    }
    return times;
}

START_TEST(every_neighbour_is_asked_about_once)
{
    size_t knobs, rows;
    const hr_knob_id *panel = knob_edit_panel(&knobs);
    const hr_knob_row *row = hr_knob_rows(&rows);
    const whatif_question q = question_of(panel[(size_t)_i % knobs]);
    const size_t count = whatif_begin(&asked, &q, turns);
    size_t expected = 1;
    ck_assert_int_eq(turns[0].knob, HR_KNOB_COUNT);
    for (size_t k = 0; k < knobs; k++) {
        for (int side = 0; side < WHATIF_SIDES; side++) {
            char value[HR_KNOB_TEXT_MAX] = "";
            const bool legal = neighbour_of(&q, panel[k], side, value);
            const bool plans = legal && !row[panel[k]].hot;
            ck_assert_uint_eq(legal ? times_asked(count, panel[k], value) : 0, plans ? 1 : 0);
            ck_assert(asked.begun.cell[panel[k]][side].refused == !legal);
            expected += plans;
            if (plans && panel[k] == q.first) {
                ck_assert(turns[1].knob == q.first || turns[2].knob == q.first);
            }
        }
    }
    ck_assert_uint_eq(count, expected);
}
END_TEST

static hr_answer answer_of(const whatif_question *q, uint64_t number, size_t k, size_t count)
{
    hr_answer a = {.number = number, .index = (uint32_t)k, .last = k + 1 == count};
    ck_assert(fake_planning_turn(&q->knobs, &turns[k], &a));
    return a;
}

static bool same_plan(const hr_whatif *a, const hr_whatif *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

START_TEST(every_answer_comes_to_its_cell)
{
    static whatif_answers answers;
    size_t knobs;
    const hr_knob_id *panel = knob_edit_panel(&knobs);
    const whatif_question q = question_of(HR_KNOB_OPTIMIZER_KIND);
    const size_t count = whatif_begin(&asked, &q, turns);
    for (size_t k = 0; k < count; k++) {
        const hr_answer a = answer_of(&q, 7, k, count);
        whatif_take(&asked, &a, &answers);
    }
    ck_assert(answers.question == 7 && answers.present.known && !answers.present.refused);
    for (size_t k = 0; k < knobs; k++) {
        for (int side = 0; side < WHATIF_SIDES; side++) {
            const whatif_cell *cell = &answers.cell[panel[k]][side];
            char value[HR_KNOB_TEXT_MAX] = "";
            hr_knobs turned = q.knobs;
            hr_whatif plan;
            ck_assert(cell->known);
            ck_assert(cell->refused == !neighbour_of(&q, panel[k], side, value));
            if (cell->refused) {
                continue;
            }
            ck_assert_int_eq(hr_knobs_set(&turned, panel[k], value, NULL), HR_OK);
            ck_assert(fake_engine_plan(&turned, &plan));
            ck_assert_msg(same_plan(&cell->plan, &plan), "%s=%s", hr_knob_rows(NULL)[panel[k]].key, value);
            ck_assert_int_eq(strncmp(cell->value, value, strlen(cell->value)), 0);
        }
    }
}
END_TEST

START_TEST(older_answers_stay_until_a_newer_one_comes)
{
    static whatif_answers answers;
    const whatif_question q = question_of(HR_KNOB_BATCH_SIZE);
    const size_t count = whatif_begin(&asked, &q, turns);
    memset(&answers, 0, sizeof answers);
    for (size_t k = 0; k < 3; k++) {
        const hr_answer a = answer_of(&q, 1, k, count);
        whatif_take(&asked, &a, &answers);
    }
    ck_assert(answers.cell[HR_KNOB_BATCH_SIZE][WHATIF_MORE].known);
    (void)whatif_begin(&asked, &q, turns);
    ck_assert(answers.cell[HR_KNOB_BATCH_SIZE][WHATIF_MORE].known && answers.question == 1);
    const hr_answer present = answer_of(&q, 2, 0, count);
    whatif_take(&asked, &present, &answers);
    ck_assert(!answers.cell[HR_KNOB_BATCH_SIZE][WHATIF_MORE].known && answers.question == 2);
    // What is no answer to a turn, or ends the question, says nothing of a knob.
    const hr_answer others[] = {{.kind = HR_QUESTION_FIT, .number = 2, .index = 1},
                                {.number = 2, .index = HR_TURNS_MAX},
                                {.number = 2, .index = 1, .last = true, .status = HR_STATE}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const whatif_answers before = answers;
        whatif_take(&asked, &others[k], &answers);
        ck_assert_mem_eq(&before, &answers, sizeof before);
    }
}
END_TEST

// ---- in the workbench -----------------------------------------------------------------------------------------

static app *with_planner(void)
{
    static const screen_look look = {.rows = 24, .columns = 80};
    app *a = screen_open(&look);
    feed_start_planner(&a->feed);
    feed_ask_whatif(&a->feed);
    return a;
}

static void drain(app *a)
{
    bool more = true;
    while (more) {
        (void)app_drain(a, &more);
    }
}

START_TEST(turning_a_knob_asks_again)
{
    app *a = with_planner();
    const whatif_cell *cell;
    char value[HR_KNOB_TEXT_MAX];
    ck_assert_ptr_null(feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE));
    ck_assert_ptr_null(feed_step_plan(&a->feed));
    drain(a);
    cell = feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE);
    ck_assert_ptr_nonnull(cell);
    ck_assert_str_eq(cell->value, "256");
    const uint64_t first = a->feed.step_plan_version;
    ck_assert_ptr_nonnull(feed_step_plan(&a->feed));
    ck_assert(app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "64"));
    ck_assert_ptr_null(feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE)); // of the knobs before
    ck_assert(feed_step_plan(&a->feed) != NULL &&
              a->feed.step_plan_version == first); // the last one, until the new one is there
    drain(a);
    cell = feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE);
    ck_assert_ptr_nonnull(cell);
    ck_assert_str_eq(cell->value, "128");
    ck_assert_str_eq(hr_knob_format(&a->feed.knobs, HR_KNOB_BATCH_SIZE, value), "64");
    ck_assert(a->feed.step_plan_version != first);
    screen_close(a);
}
END_TEST

START_TEST(what_is_known_is_not_asked_again_when_another_knob_is_selected)
{
    app *a = with_planner();
    bool more;
    screen_keys(a, "]]]]]]");
    ck_assert_ptr_null(feed_whatif(&a->feed, feed_knob(&a->feed), WHATIF_MORE));
    for (int answers = 0; answers < HR_TURNS_FIRST; answers++) { // the selected knob's come first
        hr_answer answer;
        ck_assert(hr_planning_take(a->feed.planning, &answer));
        whatif_take(&a->feed.whatif, &answer, &a->feed.answers);
    }
    ck_assert_ptr_nonnull(feed_whatif(&a->feed, feed_knob(&a->feed), WHATIF_MORE));
    drain(a);
    const uint64_t question = a->feed.question, version = a->feed.step_plan_version;
    screen_keys(a, "[[[");
    (void)app_drain(a, &more);
    ck_assert_uint_eq(a->feed.question, question);
    ck_assert_uint_eq(a->feed.step_plan_version, version);
    ck_assert_ptr_nonnull(feed_whatif(&a->feed, feed_knob(&a->feed), WHATIF_MORE));
    screen_close(a);
}
END_TEST

START_TEST(a_model_is_opened_once_for_a_training)
{
    app *a = with_planner();
    const unsigned before = fake_planning_opened();
    drain(a);
    ck_assert(app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "64"));
    drain(a);
    ck_assert_uint_eq(fake_planning_opened(), before);
    feed_forget_plans(&a->feed); // the training ended: the file may be another
    ck_assert_ptr_null(feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE));
    feed_ask_whatif(&a->feed);
    ck_assert_uint_eq(fake_planning_opened(), before + 1);
    screen_close(a);
}
END_TEST

START_TEST(without_a_planner_the_workbench_works)
{
    app *a = with_planner();
    bool more;
    drain(a);
    fake_planning_break(true);
    ck_assert(app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "64"));
    fake_planning_break(false);
    ck_assert_ptr_null(a->feed.planning);
    ck_assert_ptr_null(feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE));
    ck_assert(app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "32"));
    (void)app_drain(a, &more);
    ck_assert_ptr_null(feed_whatif(&a->feed, HR_KNOB_BATCH_SIZE, WHATIF_MORE));
    free(screen_text(a));
    screen_close(a);
}
END_TEST

int main(void)
{
    size_t knobs;
    (void)knob_edit_panel(&knobs);
    Suite *suite = suite_create("tui_whatif");
    TCase *tests = tcase_create("tui_whatif");
    tcase_add_loop_test(tests, every_neighbour_is_asked_about_once, 0, (int)knobs);
    tcase_add_test(tests, every_answer_comes_to_its_cell);
    tcase_add_test(tests, older_answers_stay_until_a_newer_one_comes);
    tcase_add_test(tests, turning_a_knob_asks_again);
    tcase_add_test(tests, what_is_known_is_not_asked_again_when_another_knob_is_selected);
    tcase_add_test(tests, a_model_is_opened_once_for_a_training);
    tcase_add_test(tests, without_a_planner_the_workbench_works);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
