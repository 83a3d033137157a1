// SPDX-License-Identifier: Apache-2.0
// Points as the planner would tell them: which are best, how they stand, and what applying one does.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/fit/fit.h"
#include "app/tui/shell/fit_view.h"
#include "app/tui/shell/panes.h"
#include "tests/tui/fake_planning.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void tell(app *a, uint32_t index, const char *knobs, double mib, double seconds, bool last)
{
    hr_answer answer = {
        .kind = HR_QUESTION_FIT, .number = a->feed.fit.question, .index = index, .last = last};
    hr_whatif *plan = &answer.point.plan;
    plan->limit_bytes = 64 * HR_MIB;
    plan->peak_in_use_bytes = (uint64_t)(mib * (double)HR_MIB);
    plan->fits = plan->peak_in_use_bytes <= plan->limit_bytes;
    plan->missing_bytes = plan->fits ? 0 : plan->peak_in_use_bytes - plan->limit_bytes;
    plan->step_seconds = seconds;
    plan->step_basis = isnan(seconds) ? HR_TIME_UNKNOWN : HR_TIME_DATASHEET;
    snprintf(answer.point.knobs, sizeof answer.point.knobs, "%s", knobs);
    app_take_fit(a, &answer);
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
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
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
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    golden_compare("fit-waiting", a);
    hr_answer answer = {.kind = HR_QUESTION_FIT,
                        .number = 1,
                        .last = true,
                        .status = HR_CONSTRAINT,
                        .sentence = "it is refused"};
    app_take_fit(a, &answer);
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
    const hr_fit_point *p = &a->feed.fit.point[i];
    for (size_t j = 0; j < a->feed.fit.count; j++) {
        const hr_fit_point *q = &a->feed.fit.point[j];
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
        fit_begin(&a->feed.fit, &a->feed.knobs, 1);
        uint32_t count = 1 + (seed >> 8) % 60;
        for (uint32_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            tell(a, i, "", 1 + (seed >> 10) % 80, (1 + (seed >> 20) % 30) * 1e-3, i + 1 == count);
            for (size_t j = 0; j < a->feed.fit.count; j++) {
                ck_assert_int_eq(a->feed.fit.best[j], is_best(a, j));
            }
        }
        free(screen_text(a));
        for (size_t i = 1; i < a->feed.fit.count; i++) {
            const hr_whatif *one = &a->feed.fit.point[a->feed.fit.order[i - 1]].plan,
                            *next = &a->feed.fit.point[a->feed.fit.order[i]].plan;
            bool best = a->feed.fit.best[a->feed.fit.order[i - 1]],
                 next_best = a->feed.fit.best[a->feed.fit.order[i]];
            ck_assert(best >= next_best && one->fits >= next->fits);
            ck_assert(best != next_best || !one->fits || !next->fits ||
                      one->step_seconds <= next->step_seconds);
            ck_assert(one->fits || one->missing_bytes <= next->missing_bytes);
        }
        for (int i = 0; i < 100; i++) { // to the fast end
            app_key(a, INPUT_LEFT);
        }
        size_t walked = 0, best = fit_best_count(&a->feed.fit);
        uint64_t peak = UINT64_MAX;
        for (int i = 0; i < 100; i++, app_key(a, INPUT_RIGHT)) {
            size_t point = a->feed.fit.order[table_selected(&a->table[PANE_POINTS])];
            bool moved = a->feed.fit.point[point].plan.peak_in_use_bytes < peak;
            walked += moved && a->feed.fit.best[point];
            peak = a->feed.fit.point[point].plan.peak_in_use_bytes;
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
    hr_knobs before = a->feed.knobs;
    for (int i = 0; i < 20; i++) {
        app_key(a, INPUT_RIGHT);
    }
    screen_keys(a, "a");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 16);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_ACCUMULATE), 8);
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_EXECUTION_MODE), "graph");
    ck_assert(fit_wanted(a));
    fit_begin(&a->feed.fit, &a->feed.knobs, 2);
    ck_assert_uint_eq(a->feed.fit.count, POINTS); // the old ones, until a new one comes
    tell(a, 0, "", 15.3, 0.06, false);
    ck_assert_uint_eq(a->feed.fit.count, 1);
    hr_answer late = {.kind = HR_QUESTION_FIT, .number = 1, .index = 1};
    app_take_fit(a, &late);
    ck_assert_uint_eq(a->feed.fit.count, 1);
    screen_keys(a, "z");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!knob_edit_differs(&a->feed.knobs, &before, (hr_knob_id)id));
    }
    screen_close(a);
}
END_TEST

START_TEST(without_seconds_points_stand_by_their_peak)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "0");
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    for (uint32_t i = 0; i < 4; i++) {
        tell(a, i, points[i].knobs, points[i].mib, (double)NAN, i == 3);
    }
    ck_assert_uint_eq(fit_best_count(&a->feed.fit), 1); // the smallest
    ck_assert(a->feed.fit.best[3]);
    golden_compare("fit-untimed", a);
    screen_close(a);
}
END_TEST

// ---- what may change of what is learned -----------------------------------------------------------------------

static void permit_all(app *a)
{
    prepare(a);
    screen_keys(a, "PP");
    ck_assert(fit_wanted(a));
    fit_begin(&a->feed.fit, &a->feed.knobs, 2);
    tell(a, 0, "", 59.2, 0.040, false);
    tell(a, 1, "precision.policy=mixed_bfloat16", 33.0, 0.030, false);
    tell(a, 2, "execution.mode=graph precision.policy=mixed_bfloat16 optimizer.kind=lion", 24.0, 0.028,
         false);
    tell(a, 3, "execution.mode=graph precision.tf32=on", 47.4, 0.031, false);
    tell(a, 4, "execution.mode=graph", 47.4, 0.036, true);
}

static bool shows(app *a, const char *wanted)
{
    char *text = screen_text(a);
    const bool found = strstr(text, wanted) != NULL;
    free(text);
    return found;
}

static int times(app *a, const char *wanted)
{
    char *text = screen_text(a);
    int count = 0;
    for (const char *at = strstr(text, wanted); at != NULL; at = strstr(at + 1, wanted)) {
        count++;
    }
    free(text);
    return count;
}

START_TEST(what_changes_what_is_learned_looks_as_agreed)
{
    golden_all("fit-permitted", permit_all);
}
END_TEST

START_TEST(a_key_of_the_screen_says_what_may_change_and_asks_anew)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "P");
    ck_assert_int_eq(a->feed.fit.permission, HR_PERMIT_NOTHING); // of Fit alone
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "0 opens it"));
    feed_start_planner(&a->feed);
    screen_keys(a, "0");
    static const char *const titles[] = {"all learn the same", "~ other precision ",
                                         "~ other precision, optimizer"};
    for (int k = 0; k <= HR_PERMISSION_COUNT; k++) {
        bool more = false;
        ck_assert_int_eq(a->feed.fit.permission, k % HR_PERMISSION_COUNT);
        ck_assert(shows(a, titles[k % HR_PERMISSION_COUNT]));
        ck_assert(fit_wanted(a));
        (void)app_take_plans(a, &more);
        ck_assert(!fit_wanted(a));
        ck_assert_int_eq(fake_planning_permitted(), k % HR_PERMISSION_COUNT);
        screen_keys(a, "P");
    }
    screen_keys(a, ":permit\n");
    ck_assert_int_eq(a->feed.fit.permission, HR_PERMIT_OPTIMIZER);
    fit_forget(&a->feed.fit); // another model: nobody has permitted anything
    ck_assert_int_eq(a->feed.fit.permission, HR_PERMIT_NOTHING);
    screen_close(a);
}
END_TEST

static void pick_point(app *a, size_t point)
{
    const pane_request r = fit_pick(&a->feed.fit, point);
    ck_assert(table_select(&a->table[r.pane], pane_ops_of(r.pane)->table, pane_rows(a, r.pane), r.row));
}

// With the point that `knobs` names under the cursor.
static void pick(app *a, const char *knobs)
{
    for (size_t i = 0; i < a->feed.fit.count; i++) {
        if (strcmp(a->feed.fit.point[i].knobs, knobs) == 0) {
            pick_point(a, i);
        }
    }
}

START_TEST(what_changes_what_is_learned_is_marked_and_said)
{
    app *a = screen_open(&golden_looks[0].look);
    permit_all(a);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "~mixed_bfloat16 ~lion graph "));
    ck_assert_ptr_nonnull(strstr(text, "~tf32 graph "));
    ck_assert_ptr_null(strstr(text, "~graph"));
    free(text);
    pick(a, "execution.mode=graph");
    ck_assert(!shows(a, "changes what is learned"));
    pick(a, a->feed.fit.point[2].knobs);
    ck_assert(shows(a, "~ changes what is learned:"));
    ck_assert(shows(a, "mixed_bfloat16 rounds activations, not weights;"));
    screen_keys(a, "a");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_OPTIMIZER_KIND), "lion");
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "It changes what is learned: mixed_bfloat16"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "learning rate is usually 3 to 10 times smaller"));
    ck_assert(hr_knob_real(&a->feed.knobs, HR_KNOB_OPTIMIZER_LEARNING_RATE) > 0.0009); // it is not turned
    screen_close(a);
}
END_TEST

// The Doctor's remedies leave alone what is learned, whatever Fit may do.
START_TEST(the_doctor_does_not_offer_what_changes_what_is_learned)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_advance(a, 20);
    screen_keys(a, "r");
    screen_advance(a, 2);
    screen_keys(a, ":set device.vram 32MiB\n");
    screen_advance(a, 2);
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    tell(a, 0, "", 59.2, 0.040, false);
    tell(a, 1, "execution.mode=graph precision.policy=bfloat16", 20.0, 0.020, false);
    tell(a, 2, "execution.mode=graph batch.size=32 batch.accumulate=4", 19.9, 0.048, true);
    screen_keys(a, "4");
    ck_assert(shows(a, "execution.mode=graph batch.size=32"));
    ck_assert(!shows(a, "precision.policy=bfloat16"));
    screen_close(a);
}
END_TEST

// ---- rows -----------------------------------------------------------------------------------------------------

// Of real sweeps of the demo, with and without permission.
static const char *const long_points[] = {
    "execution.mode=graph checkpoint.strategy=every:2 batch.size=64 batch.accumulate=2",
    "execution.mode=graph checkpoint.strategy=every:2 offload.optimizer=on batch.size=64 batch.accumulate=2",
    "execution.mode=graph offload.optimizer=on offload.prefetch=0 batch.size=64 batch.accumulate=2",
    "execution.mode=graph offload.optimizer=on execution.inplace=off batch.size=64 batch.accumulate=2",
    "execution.mode=graph optimizer.fused_backward=on offload.activations=on allocator.kind=static",
    "execution.mode=graph precision.policy=mixed_bfloat16 optimizer.kind=adam8bit "
    "optimizer.fused_backward=on",
    "execution.mode=graph precision.policy=mixed_bfloat16 allocator.kind=static batch.size=64 "
    "batch.accumulate=2",
    "execution.mode=graph optimizer.kind=adafactor optimizer.fused_backward=on precision.tf32=on",
};

START_TEST(a_row_says_all_that_differs_and_begins_with_it)
{
    enum { LONG = sizeof long_points / sizeof *long_points };
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 80});
    screen_keys(a, "0");
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    tell(a, 0, "", 59, 0.04, false);
    for (uint32_t i = 0; i < LONG; i++) {
        tell(a, i + 1, long_points[i], 40 - i, 0.05 + 0.01 * i, i + 1 == LONG);
    }
    char *text = screen_text(a), *points_pane = strstr(text, " points ");
    ck_assert_ptr_nonnull(points_pane);
    ck_assert_ptr_null(strstr(points_pane, "…"));
    static const char *const rows[] = {"64×2 ckpt=every:2 graph ",
                                       "64×2 ckpt=every:2 offload_opt graph ",
                                       "64×2 offload_opt prefetch=0 graph ",
                                       "64×2 offload_opt no inplace graph ",
                                       "offload_act fused_bwd static graph ",
                                       "~mixed_bfloat16 ~adam8bit fused_bwd graph ",
                                       "~mixed_bfloat16 64×2 static graph ",
                                       "~tf32 ~adafactor fused_bwd graph "};
    for (size_t i = 0; i < LONG; i++) {
        ck_assert_msg(strstr(points_pane, rows[i]) != NULL, "%s is not in\n%s", rows[i], points_pane);
    }
    free(text);
    screen_close(a);
}
END_TEST

// Of what misses no limit was tried: it may miss more.
START_TEST(a_lower_bound_is_marked_as_one)
{
    app *a = screen_open(&(screen_look){.rows = 36, .columns = 120});
    screen_keys(a, "0");
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    tell(a, 0, "", 80, 0.04, false);
    tell(a, 1, "execution.mode=graph", 70, 0.03, true);
    char *text = screen_text(a);
    ck_assert_ptr_null(strstr(text, ">="));
    free(text);
    for (size_t i = 0; i < 2; i++) {
        a->feed.fit.point[i].plan.is_at_least = true;
    }
    a->feed.fit.version++;
    text = screen_text(a);
    static const char *const said[] = {">=70.00 MiB, ", ", misses by >=6.00:", " >=80.00 "};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        ck_assert_msg(strstr(text, said[i]) != NULL, "%s is not in\n%s", said[i], text);
    }
    free(text);
    screen_close(a);
}
END_TEST

// As the command marks it: what batch normalisation sees changes with the batch, and with nothing else.
START_TEST(a_split_batch_is_marked_where_batches_are_normalised)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 80});
    screen_keys(a, "0");
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    tell(a, 0, "", 59, 0.04, false);
    tell(a, 1, long_points[0], 40, 0.05, false);
    tell(a, 2, long_points[4], 39, 0.06, true);
    for (size_t k = 0; k < 3; k++) {
        a->feed.fit.point[k].normalises_batches = true;
    }
    a->feed.fit.version++;
    ck_assert(shows(a, "~64×2 ckpt=every:2 graph "));
    ck_assert(shows(a, " offload_act fused_bwd static graph "));
    screen_close(a);
}
END_TEST

// ---- the chart ------------------------------------------------------------------------------------------------

// How often a character stands in the frontier's plot.
static int count_of(app *a, const char *glyph)
{
    char *text = screen_text(a), *from = strstr(text, "frontier]"), *to = strstr(text, " points ");
    int count = 0;
    ck_assert(from != NULL && to != NULL);
    from = strchr(from, '\n'); // behind the legend
    for (char *at = strstr(from, glyph); at != NULL && at < to; at = strstr(at + 1, glyph)) {
        count++;
    }
    free(text);
    return count;
}

static app *with_points(const double mib[], const double seconds[], uint32_t count)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "0");
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    for (uint32_t i = 0; i < count; i++) {
        tell(a, i, i == 0 ? "" : "execution.mode=graph", mib[i], seconds[i], i + 1 == count);
    }
    free(screen_text(a));
    return a;
}

// Of long rows that differ in what stands last otherwise, the difference is seen at 80 columns.
START_TEST(what_tells_a_row_from_those_beside_it_comes_first)
{
#define LONG                                                                                                 \
    "precision.policy=mixed_bfloat16 optimizer.kind=adafactor checkpoint.strategy=selective "                \
    "offload.optimizer=on offload.activations=on allocator.kind=caching"
    static const char *const knobs[] = {"", LONG " execution.fuse=off", LONG " execution.fuse=on", LONG};
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "0");
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    for (uint32_t i = 0; i < 4; i++) {
        tell(a, i, knobs[i], 60 - 10 * i, 0.04 + 0.01 * i, i == 3);
    }
    ck_assert(shows(a, "best no fuse ~"));
    ck_assert(shows(a, "best fuse ~"));
    screen_close(a);
#undef LONG
}
END_TEST

START_TEST(points_of_one_place_are_drawn_apart_and_more_are_counted)
{
    double mib[64] = {50, 20}, seconds[64] = {0.05, 0.04};
    for (uint32_t i = 2; i < 64; i++) {
        mib[i] = 40;
        seconds[i] = 0.045;
    }
    app *a = with_points(mib, seconds, 4);
    ck_assert_int_eq(count_of(a, "○"), 2);
    ck_assert_int_eq(count_of(a, "◇") + count_of(a, "◆"), 2);
    ck_assert(!shows(a, "2-9 points"));
    screen_close(a);
    a = with_points(mib, seconds, 7); // five cells have room for five
    ck_assert_int_eq(count_of(a, "○"), 5);
    ck_assert(!shows(a, "2-9 points"));
    screen_close(a);
    a = with_points(mib, seconds, 64); // what has none is counted, up to nine
    ck_assert_int_eq(count_of(a, "○"), 4);
    ck_assert(shows(a, "9○") || shows(a, "○9"));
    ck_assert(shows(a, "step_seconds, datasheet · 2-9 points"));
    for (size_t i = 0; i < a->feed.fit.count; i++) { // whichever is picked is seen
        pick_point(a, i);
        ck_assert_int_eq(count_of(a, "◆"), 1);
    }
    screen_close(a);
}
END_TEST

// Allocators take more or less of what there is.
START_TEST(the_limit_is_that_of_the_picked_point)
{
    app *a = with_points((double[]){30, 20}, (double[]){0.01, 0.05}, 2);
    a->feed.fit.point[1].plan.limit_bytes = 70 * HR_MIB;
    pick_point(a, 0);
    ck_assert(shows(a, "64.00") && !shows(a, "70.00"));
    pick_point(a, 1);
    ck_assert(shows(a, "70.00") && !shows(a, "64.00"));
    screen_close(a);
}
END_TEST

// Column of the screen in which a glyph of one column stands.
static int column_of_glyph(app *a, const char *glyph)
{
    char *text = screen_text(a), *at = strstr(strchr(strstr(text, "frontier]"), '\n'), glyph);
    ck_assert_ptr_nonnull(at);
    int column = 0;
    for (; at > text && at[-1] != '\n'; at--) {
        column += ((unsigned char)at[-1] & 0xc0) != 0x80;
    }
    free(text);
    return column;
}

START_TEST(the_name_of_the_limit_hides_no_point)
{
    app *a = with_points((double[]){30, 64, 64}, (double[]){0.01, 0.05, 0.0497}, 3);
    pick_point(a, 1);
    ck_assert_int_eq(count_of(a, "◆"), 1);
    ck_assert_int_eq(count_of(a, "○"), 1);
    ck_assert_int_eq(count_of(a, " limit"), 1);
    ck_assert_int_eq(count_of(a, " limit○") + count_of(a, " limit◆"), 0); // no word of its own and a point
    screen_close(a);
}
END_TEST

START_TEST(an_axis_is_logarithmic_where_its_ends_are_far_apart_and_says_so)
{
    app *a = with_points((double[]){60, 50, 8}, (double[]){0.01, 0.1, 1}, 3);
    ck_assert(shows(a, "step_seconds (log)"));
    pick_point(a, 0);
    const int first = column_of_glyph(a, "◆");
    pick_point(a, 1);
    const int middle = column_of_glyph(a, "◆");
    pick_point(a, 2);
    const int last = column_of_glyph(a, "◆");
    ck_assert_int_le(abs(first + last - 2 * middle), 1); // ten times is as far as ten times
    ck_assert_int_eq(times(a, "(log)"), 1);
    screen_close(a);
    a = with_points((double[]){60, 50, 7}, (double[]){0.01, 0.02, 0.07}, 3);
    ck_assert(!shows(a, "step_seconds (log)"));
    ck_assert_int_eq(times(a, "(log)"), 1); // 64 MiB, the limit, is more than eight times 7
    screen_close(a);
    a = with_points((double[]){60, 50, 30}, (double[]){0.01, 0.02, 0.07}, 3);
    ck_assert(!shows(a, "(log)"));
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui fit", the_fit_looks_as_agreed, what_changes_what_is_learned_looks_as_agreed,
           a_key_of_the_screen_says_what_may_change_and_asks_anew,
           what_changes_what_is_learned_is_marked_and_said,
           the_doctor_does_not_offer_what_changes_what_is_learned,
           a_row_says_all_that_differs_and_begins_with_it, a_lower_bound_is_marked_as_one,
           a_split_batch_is_marked_where_batches_are_normalised,
           what_tells_a_row_from_those_beside_it_comes_first, the_limit_is_that_of_the_picked_point,
           points_of_one_place_are_drawn_apart_and_more_are_counted, the_name_of_the_limit_hides_no_point,
           an_axis_is_logarithmic_where_its_ends_are_far_apart_and_says_so,
           before_the_first_point_and_where_nothing_can_be_planned_it_says_so,
           the_frontier_is_what_no_point_beats_and_the_cursor_walks_all_of_it,
           applying_a_point_is_one_step_of_undo_and_asks_anew, without_seconds_points_stand_by_their_peak)
