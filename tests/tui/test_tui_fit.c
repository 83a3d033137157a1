// SPDX-License-Identifier: Apache-2.0
// Points as the planner would tell them: which are best, how they stand, and what applying one does.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void tell(app *a, uint32_t index, const char *knobs, double mib, double seconds, bool last)
{
    hr_answer answer = {.kind = HR_QUESTION_FIT, .number = a->fit.question, .index = index, .last = last};
    hr_whatif *plan = &answer.point.plan;
    plan->limit_bytes = 64 * HR_MIB;
    plan->peak_in_use_bytes = (uint64_t)(mib * (double)HR_MIB);
    plan->fits = plan->peak_in_use_bytes <= plan->limit_bytes;
    plan->missing_bytes = plan->fits ? 0 : plan->peak_in_use_bytes - plan->limit_bytes;
    plan->step_seconds = seconds;
    snprintf(answer.point.knobs, sizeof answer.point.knobs, "%s", knobs);
    fit_take(a, &answer);
}

static const struct {
    const char *knobs;
    double mib, seconds;
} points[] = {
    {"", 59.2, 0.040},
    {"execution.mode=graph", 47.4, 0.036},
    {"checkpoint.strategy=sqrt", 39.1, 0.052},
    {"checkpoint.strategy=blocks", 36.0, 0.049},
    {"batch.size=64 batch.accumulate=2", 34.9, 0.044},
    {"execution.mode=graph batch.size=64 batch.accumulate=2", 29.0, 0.041},
    {"execution.mode=graph checkpoint.strategy=sqrt", 31.5, 0.047},
    {"offload.activations=on", 33.3, 0.080},
    {"batch.size=32 batch.accumulate=4", 22.8, 0.051},
    {"execution.mode=graph batch.size=32 batch.accumulate=4", 19.9, 0.048},
    {"execution.mode=graph offload.activations=on", 24.0, 0.071},
    {"execution.mode=graph batch.size=16 batch.accumulate=8", 15.3, 0.060},
    {"allocator.kind=direct", 59.4, 0.090},
    {"execution.mode=graph execution.fuse=off", 64.9, 0.043},
    {"execution.mode=graph workspace.limit=32MiB", 73.2, 0.033},
};

enum { POINTS = sizeof points / sizeof *points };

static void prepare(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, "0");
    ck_assert(fit_wanted(a));
    fit_begin(a, 1);
    ck_assert(!fit_wanted(a));
    for (uint32_t i = 0; i < POINTS; i++) {
        tell(a, i, points[i].knobs, points[i].mib, points[i].seconds, i + 1 == POINTS);
    }
    free(screen_text(a));
}

START_TEST(the_fit_looks_as_agreed)
{
    golden_all("fit", prepare);
}
END_TEST

START_TEST(before_the_first_point_and_where_nothing_can_be_planned_it_says_so)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_advance(a, 20);
    screen_keys(a, "0");
    fit_begin(a, 1);
    golden_compare("fit-waiting", a);
    hr_answer answer = {.kind = HR_QUESTION_FIT,
                        .number = 1,
                        .last = true,
                        .status = HR_CONSTRAINT,
                        .sentence = "it is refused"};
    fit_take(a, &answer);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "it is refused"));
    ck_assert_ptr_null(strstr(text, "being made"));
    free(text);
    screen_close(a);
}
END_TEST

// The definition, word by word.
static bool is_best(const app *a, size_t i)
{
    const hr_fit_point *p = &a->fit.point[i];
    for (size_t j = 0; j < a->fit.count; j++) {
        const hr_fit_point *q = &a->fit.point[j];
        bool no_worse = q->plan.step_seconds <= p->plan.step_seconds &&
                        q->plan.peak_in_use_bytes <= p->plan.peak_in_use_bytes;
        bool better = q->plan.step_seconds < p->plan.step_seconds ||
                      q->plan.peak_in_use_bytes < p->plan.peak_in_use_bytes;
        if (q->plan.fits && no_worse && (better || j < i)) {
            return false;
        }
    }
    return p->plan.fits;
}

START_TEST(the_frontier_is_what_no_point_beats_and_the_cursor_walks_all_of_it)
{
    uint32_t seed = 3;
    for (int round = 0; round < 40; round++) {
        app *a = screen_open(&golden_looks[1].look);
        screen_keys(a, "0");
        fit_begin(a, 1);
        uint32_t count = 1 + (seed >> 8) % 60;
        for (uint32_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            tell(a, i, "", 1 + (seed >> 10) % 80, (1 + (seed >> 20) % 30) * 1e-3, i + 1 == count);
            for (size_t j = 0; j < a->fit.count; j++) {
                ck_assert_int_eq(a->fit.best[j], is_best(a, j));
            }
        }
        free(screen_text(a));
        for (size_t i = 1; i < a->fit.count; i++) {
            const hr_whatif *one = &a->fit.point[a->fit.order[i - 1]].plan,
                            *next = &a->fit.point[a->fit.order[i]].plan;
            bool best = a->fit.best[a->fit.order[i - 1]], next_best = a->fit.best[a->fit.order[i]];
            ck_assert(best >= next_best && one->fits >= next->fits);
            ck_assert(best != next_best || !one->fits || !next->fits ||
                      one->step_seconds <= next->step_seconds);
            ck_assert(one->fits || one->missing_bytes <= next->missing_bytes);
        }
        for (int i = 0; i < 100; i++) { // to the fast end
            app_key(a, INPUT_LEFT);
        }
        size_t walked = 0, best = fit_best_count(&a->fit);
        uint64_t peak = UINT64_MAX;
        for (int i = 0; i < 100; i++, app_key(a, INPUT_RIGHT)) {
            size_t point = a->fit.order[table_selected(&a->table[PANE_POINTS])];
            bool moved = a->fit.point[point].plan.peak_in_use_bytes < peak;
            walked += moved && a->fit.best[point];
            peak = a->fit.point[point].plan.peak_in_use_bytes;
        }
        ck_assert_uint_eq(walked, best);
        screen_close(a);
    }
}
END_TEST

START_TEST(applying_a_point_is_one_step_of_undo_and_asks_anew)
{
    app *a = screen_open(&golden_looks[0].look);
    prepare(a);
    hr_knobs before = a->knobs;
    for (int i = 0; i < 20; i++) {
        app_key(a, INPUT_RIGHT);
    }
    screen_keys(a, "a");
    ck_assert_int_eq(hr_knob_int(&a->knobs, HR_KNOB_BATCH_SIZE), 16);
    ck_assert_int_eq(hr_knob_int(&a->knobs, HR_KNOB_BATCH_ACCUMULATE), 8);
    ck_assert_str_eq(hr_knob_text(&a->knobs, HR_KNOB_EXECUTION_MODE), "graph");
    ck_assert(fit_wanted(a));
    fit_begin(a, 2);
    ck_assert_uint_eq(a->fit.count, POINTS); // the old ones, until a new one comes
    tell(a, 0, "", 15.3, 0.06, false);
    ck_assert_uint_eq(a->fit.count, 1);
    hr_answer late = {.kind = HR_QUESTION_FIT, .number = 1, .index = 1};
    fit_take(a, &late);
    ck_assert_uint_eq(a->fit.count, 1);
    screen_keys(a, "z");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!turn_differs(&a->knobs, &before, (hr_knob_id)id));
    }
    screen_close(a);
}
END_TEST

START_TEST(without_seconds_points_stand_by_their_peak)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "0");
    fit_begin(a, 1);
    for (uint32_t i = 0; i < 4; i++) {
        tell(a, i, points[i].knobs, points[i].mib, (double)NAN, i == 3);
    }
    ck_assert_uint_eq(fit_best_count(&a->fit), 1); // the smallest
    ck_assert(a->fit.best[3]);
    golden_compare("fit-untimed", a);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui fit", the_fit_looks_as_agreed,
           before_the_first_point_and_where_nothing_can_be_planned_it_says_so,
           the_frontier_is_what_no_point_beats_and_the_cursor_walks_all_of_it,
           applying_a_point_is_one_step_of_undo_and_asks_anew, without_seconds_points_stand_by_their_peak)
