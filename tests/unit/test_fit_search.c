// SPDX-License-Identifier: Apache-2.0
// The search behind Fit against every combination there is, where few dimensions are left to turn.
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "insight/fit_search.h"
#include "insight/planner.h"
#include "unit/fit_grid.h"

enum { COMBINATIONS_MAX = 1200, FREE = 5, CASES = HEADROOM_SANITIZED ? 4 : 18 };

static void open_question(fit_grid *q, uint64_t seed)
{
    char why[512];
    memset(q, 0, sizeof *q);
    q->seed = hash64_mix(seed, 7);
    ck_assert_msg(fit_grid_open(q, why, sizeof why), "%s", why);
}

static void assert_none_missed(const fit_grid *q, const hr_fit_found *g)
{
    const int missed = fit_grid_missed(q, g, 0.01);
    if (missed >= 0) {
        const hr_whatif *w = &q->plans[missed];
        hr_knobs knobs;
        char pairs[256];
        (void)fit_turn(&q->asked, &q->combinations[missed], &knobs, pairs, sizeof pairs);
        ck_abort_msg("%s below %" PRIu64 " of %d combinations: %g s, %g s were found: %s", q->preset,
                     w->peak_in_use_bytes, q->count, w->step_seconds, fit_grid_found(g, w->peak_in_use_bytes),
                     pairs);
    }
}

// At the peak of every combination that nothing beats: within 1 % of the fastest there is.
START_TEST(the_frontier_of_a_search_is_that_of_every_combination)
{
    static fit_grid q;
    static hr_fit_found g;
    hr_err err = {0};
    open_question(&q, (uint64_t)_i);
    fit_grid_draw_wish(&q, FREE, COMBINATIONS_MAX);
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &g, &err), HR_OK);
    assert_none_missed(&q, &g);
    fit_grid_close(&q);
}
END_TEST

// Some of what needs least is legal only two turns away: a split batch has no gradients that are done at once, and what is prefetched
// of what is kept on the host is all of it where that is asked about.
static const struct {
    const char *preset, *pairs, *free;
} two_turns[] = {{"gpt2_124m_tiny",
                  "execution.mode=graph precision.policy=float16 checkpoint.strategy=selective "
                  "offload.activations=on optimizer.fused_backward=on",
                  "batch.size optimizer.kind optimizer.fused_backward"},
                 {"mlp_tiny", "offload.prefetch=4", "offload.activations offload.prefetch"}};

START_TEST(what_is_two_turns_away_is_found)
{
    static fit_grid q;
    static hr_fit_found g;
    char why[512];
    q = (fit_grid){.preset = two_turns[_i].preset, .wish.permission = HR_PERMIT_OPTIMIZER};
    ck_assert_msg(fit_grid_open(&q, why, sizeof why), "%s", why);
    ck_assert_int_eq(hr_knobs_set_pairs(&q.asked, two_turns[_i].pairs, NULL), HR_OK);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        const char *key = hr_knob_rows(NULL)[id].key;
        q.wish.keeps[id] = strstr(two_turns[_i].free, key) == NULL;
    }
    q.wish.keeps[HR_KNOB_BATCH_ACCUMULATE] = q.wish.keeps[HR_KNOB_BATCH_SIZE];
    ck_assert(fit_grid_plan(&q, COMBINATIONS_MAX));
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &g, NULL), HR_OK);
    assert_none_missed(&q, &g);
    fit_grid_close(&q);
}
END_TEST

// Under a limit that some combinations keep and others do not.
START_TEST(the_fastest_that_fits_is_the_fastest_there_is)
{
    static fit_grid q;
    static hr_fit_found g;
    char limit[48];
    hr_err err = {0};
    double best = INFINITY, found = INFINITY;
    open_question(&q, 1000 + (uint64_t)_i);
    fit_grid_draw_wish(&q, FREE, COMBINATIONS_MAX);
    const hr_whatif *some = &q.plans[fit_grid_draw(&q, (uint32_t)q.count)];
    (void)snprintf(limit, sizeof limit, "device.vram=%" PRIu64 "B", some->peak_in_use_bytes + 4096);
    ck_assert_int_eq(hr_knobs_set_pair(&q.asked, limit, NULL), HR_OK);
    ck_assert(fit_grid_plan(&q, COMBINATIONS_MAX));
    for (int k = 0; k < q.count; k++) {
        best = q.plans[k].fits ? fmin(best, q.plans[k].step_seconds) : best;
    }
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &g, &err), HR_OK);
    for (size_t k = 0; k < g.count; k++) {
        found = g.ways[k].point.plan.fits ? fmin(found, g.ways[k].point.plan.step_seconds) : found;
    }
    ck_assert_msg(found <= 1.01 * best || (isinf(found) && isinf(best)),
                  "%s, %d combinations: %g s, %g s was found", limit, q.count, best, found);
    fit_grid_close(&q);
}
END_TEST

// Where nothing fits, no search for a limit was made of most: the nearest is none the less what a plan of it says, and no way's plan is
// nearer; nor is anything that is on a frontier only said to miss so much at least.
START_TEST(where_nothing_fits_the_nearest_is_the_nearest)
{
    static fit_grid q;
    static hr_fit_found g;
    hr_err err = {0};
    uint64_t nearest_bytes = UINT64_MAX, planned_bytes = UINT64_MAX;
    open_question(&q, (uint64_t)_i);
    q.wish.permission = (hr_fit_permission)(_i % HR_PERMISSION_COUNT);
    ck_assert_int_eq(hr_knobs_set_pair(&q.asked, "device.vram=8KiB", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &g, &err), HR_OK);
    for (uint32_t k = 0; k < g.count; k++) {
        const hr_fit_way *w = &g.ways[k];
        hr_knobs turned;
        hr_whatif plan;
        ck_assert(!w->point.plan.fits);
        ck_assert_msg(!w->point.plan.is_at_least || !(w->on_frontier || w->on_same_frontier), "%s: %s",
                      q.preset, w->point.knobs);
        nearest_bytes = w->missing_bytes < nearest_bytes ? w->missing_bytes : nearest_bytes;
        ck_assert_int_eq(hr_fit_knobs(&q.asked, &w->point, &turned, NULL), HR_OK);
        if (k % 9 == 0 || !w->point.plan.is_at_least) {
            ck_assert_int_eq(hr_planner_plan(q.planner, &turned, &plan, NULL), HR_OK);
            ck_assert(w->point.plan.is_at_least || plan.missing_bytes == w->missing_bytes);
            planned_bytes = plan.missing_bytes < planned_bytes ? plan.missing_bytes : planned_bytes;
        }
    }
    ck_assert_uint_eq(nearest_bytes, planned_bytes);
    fit_grid_close(&q);
}
END_TEST

// Between what keeps everything and what computes much again: as much as the limit asks for.
START_TEST(recomputation_under_a_budget_is_found_where_it_is_fastest)
{
    static fit_grid q;
    static hr_fit_found g;
    hr_preset *preset = NULL;
    hr_knobs turned;
    hr_whatif plan;
    static const char *const pairs[] = {"device.kind=plan", "device.card=rtx3090-24g", "device.vram=4MiB"};
    ck_assert_int_eq(hr_preset_open("gpt2_124m_tiny", false, &preset, NULL, NULL), HR_OK);
    q = (fit_grid){.asked = *hr_preset_knobs(preset)};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&q.asked, pairs[k], NULL), HR_OK);
    }
    ck_assert_int_eq(hr_fit_keep(&q.wish, "offload,batch", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_open(preset, &q.planner, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &g, NULL), HR_OK);
    const hr_fit_way *fastest = hr_fit_fastest(&g, false);
    ck_assert_ptr_nonnull(fastest);
    ck_assert_msg(strstr(fastest->point.knobs, "checkpoint.strategy=budget:4MiB") != NULL, "%s",
                  fastest->point.knobs);
    ck_assert_int_eq(hr_fit_knobs(&q.asked, &fastest->point, &turned, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_plan(q.planner, &turned, &plan, NULL), HR_OK);
    ck_assert(plan.fits);
    ck_assert_uint_eq(plan.peak_in_use_bytes, fastest->point.plan.peak_in_use_bytes);
    ck_assert_int_eq(hr_fit_keep(&q.wish, "checkpoint", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &g, NULL), HR_OK);
    for (uint32_t k = 0; k < g.count; k++) {
        ck_assert_ptr_null(strstr(g.ways[k].point.knobs, "checkpoint"));
    }
    hr_planner_close(q.planner);
    hr_preset_close(preset);
}
END_TEST

static void assert_same_way(const hr_fit_way *a, const hr_fit_way *b)
{
    const hr_whatif *x = &a->point.plan, *y = &b->point.plan;
    const double one[] = {x->step_seconds, x->step_seconds_low, x->step_seconds_high};
    const double other[] = {y->step_seconds, y->step_seconds_low, y->step_seconds_high};
    ck_assert_str_eq(a->point.knobs, b->point.knobs);
    ck_assert_str_eq(a->changes, b->changes);
    ck_assert_uint_eq(x->peak_in_use_bytes, y->peak_in_use_bytes);
    ck_assert_uint_eq(a->missing_bytes, b->missing_bytes);
    ck_assert(x->fits == y->fits && x->is_at_least == y->is_at_least && a->on_frontier == b->on_frontier &&
              a->on_same_frontier == b->on_same_frontier);
    ck_assert_mem_eq(one, other, sizeof one);
}

// To the byte, but for the time that it took.
START_TEST(a_search_is_the_same_for_any_number_of_threads)
{
    static fit_grid q;
    static hr_fit_found one, more;
    static const char *const limits[] = {"none", "24MiB", "256KiB"};
    char limit[48];
    open_question(&q, 40 + (uint64_t)_i);
    q.wish.permission = HEADROOM_SANITIZED ? HR_PERMIT_NOTHING : HR_PERMIT_OPTIMIZER;
    ck_assert_int_eq(
        hr_fit_keep(&q.wish, HEADROOM_SANITIZED ? "allocator,workspace,offload,batch" : "allocator,workspace",
                    NULL),
        HR_OK);
    (void)snprintf(limit, sizeof limit, "device.vram=%s", limits[_i]);
    ck_assert_int_eq(hr_knobs_set_pair(&q.asked, limit, NULL), HR_OK);
    q.wish.threads = 1;
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &one, NULL), HR_OK);
    q.wish.threads = 2 + (uint32_t)_i;
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, NULL, NULL, &more, NULL), HR_OK);
    ck_assert_uint_eq(more.count, one.count);
    ck_assert_uint_eq(more.plans, one.plans);
    for (uint32_t k = 0; k < one.count; k++) {
        assert_same_way(&more.ways[k], &one.ways[k]);
    }
    fit_grid_close(&q);
}
END_TEST

// What misses is told by what it asks for, and of the same program to the byte where that is near enough.
START_TEST(what_misses_by_less_is_planned_to_the_byte_as_well)
{
    static fit_grid q;
    planner_rough near, far;
    hr_whatif plan;
    open_question(&q, 60);
    ck_assert_int_eq(hr_knobs_set_pair(&q.asked, "device.vram=256KiB", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_plan(q.planner, &q.asked, &plan, NULL), HR_OK);
    ck_assert_int_eq(planner_plan_roughly(q.planner, &q.asked, UINT64_MAX, &near, NULL), HR_OK);
    ck_assert_int_eq(planner_plan_roughly(q.planner, &q.asked, near.plan.missing_bytes, &far, NULL), HR_OK);
    ck_assert(near.plan.is_at_least && near.has_exact && !near.exact.is_at_least && !far.has_exact);
    ck_assert_uint_eq(far.plan.missing_bytes, near.plan.missing_bytes);
    ck_assert_uint_eq(near.exact.missing_bytes, plan.missing_bytes);
    ck_assert_uint_eq(near.exact.peak_in_use_bytes, plan.peak_in_use_bytes);
    ck_assert_uint_eq(near.exact.host_bytes, plan.host_bytes);
    ck_assert_double_eq(near.exact.step_seconds, plan.step_seconds);
    ck_assert_uint_le(near.plan.missing_bytes, plan.missing_bytes);
    hr_planner_close(q.planner);
}
END_TEST

static bool end_at_third(void *context)
{
    return ++*(int *)context < 3;
}

START_TEST(a_search_ends_when_it_is_told_to)
{
    static fit_grid q;
    static hr_fit_found g;
    int taken = 0;
    open_question(&q, 1);
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, end_at_third, &taken, &g, NULL), HR_OK);
    ck_assert_int_eq(taken, 3);
    ck_assert_uint_eq(g.count, 3);
    fit_grid_close(&q);
}
END_TEST

// Where nothing fits, what comes nearest is planned to the byte behind the last point.
static void open_too_small(fit_grid *q)
{
    open_question(q, 1);
    q->wish.threads = 1;
    ck_assert_int_eq(hr_fit_keep(&q->wish, "offload,batch,workspace", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&q->asked, "device.vram=64KiB", NULL), HR_OK);
}

typedef struct asking {
    uint32_t asked, ends_at; // 0: it does not end
    uint32_t fails_at;       // from the first allocation after that on, one
} asking;

static bool ask(void *context)
{
    asking *a = context;
    a->asked++;
    if (a->asked == a->fails_at) {
        (void)hr_host_mem_fail_at(1);
    }
    return a->asked != a->ends_at;
}

static bool is_planned_to_the_byte(const hr_fit_found *f)
{
    bool is = true;
    for (uint32_t k = 0; k < f->count; k++) {
        const hr_fit_way *w = &f->ways[k];
        is = is && !(w->point.plan.is_at_least && (w->on_frontier || w->on_same_frontier));
    }
    return is;
}

START_TEST(what_comes_nearest_is_planned_as_long_as_it_is_wanted)
{
    static fit_grid q;
    static hr_fit_found all, some;
    asking a = {0}, ends = {0}, fails = {0};
    open_too_small(&q);
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, ask, &a, &all, NULL), HR_OK);
    ck_assert_uint_gt(a.asked, all.count);
    ck_assert(is_planned_to_the_byte(&all));
    ends.ends_at = all.count + 1;
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, ask, &ends, &some, NULL), HR_OK);
    ck_assert_uint_eq(ends.asked, ends.ends_at);
    ck_assert_uint_eq(some.count, all.count);
    ck_assert_uint_lt(some.plans, all.plans);
    ck_assert(!is_planned_to_the_byte(&some));
    fails.fails_at = all.count + 1;
    ck_assert_int_eq(hr_planner_fit(q.planner, &q.asked, &q.wish, ask, &fails, &some, NULL), HR_OK);
    ck_assert_uint_ge(hr_host_mem_fail_at(0), 1);
    ck_assert_uint_eq(some.count, all.count);
    fit_grid_close(&q);
}
END_TEST

// However few they are, and whether a step is recomputed under a budget at its end.
START_TEST(a_search_looks_at_no_more_than_it_may)
{
    static fit_grid q;
    hr_fit_point point;
    open_too_small(&q);
    q.wish.threads = 1 + (uint32_t)_i % 3;
    ck_assert_int_eq(hr_knobs_set_pair(&q.asked, "device.vram=2MiB", NULL), HR_OK);
    for (int most = 1 + _i; most < 400; most += HEADROOM_SANITIZED ? 97 : 13) {
        fit_search *s = NULL;
        fit_search_result result = FIT_SEARCH_WORKED;
        ck_assert_int_eq(fit_search_create(&q.asked, &q.wish, false, &s, NULL), HR_OK);
        fit_search_bound(s, most);
        while (result != FIT_SEARCH_LAST && result != FIT_SEARCH_REFUSED) {
            result = fit_search_advance(s, q.planner, &point, NULL);
            ck_assert_msg(fit_search_looked_at(s) <= most, "%d of %d", fit_search_looked_at(s), most);
        }
        ck_assert_int_eq(result, FIT_SEARCH_LAST);
        fit_search_destroy(s);
    }
    fit_grid_close(&q);
}
END_TEST

// Without threads a search plans alone; without memory for itself there is none.
START_TEST(a_search_without_threads_plans_alone)
{
    enum { ITS_OWN = 3 }; // allocations: the search, what it plans ahead, and those candidates
    static fit_grid q;
    hr_fit_point point;
    open_question(&q, 1);
    q.wish.threads = 4;
    for (uint64_t nth = 1; nth <= ITS_OWN + 2; nth++) {
        fit_search *s = NULL;
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = fit_search_create(&q.asked, &q.wish, false, &s, NULL);
        (void)hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= ITS_OWN ? HR_NOMEM : HR_OK);
        ck_assert(nth <= ITS_OWN || fit_search_advance(s, q.planner, &point, NULL) == FIT_SEARCH_WORKED);
        ck_assert(nth <= ITS_OWN || fit_search_advance(s, q.planner, &point, NULL) != FIT_SEARCH_REFUSED);
        fit_search_destroy(s);
    }
    fit_grid_close(&q);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("fit search");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, the_frontier_of_a_search_is_that_of_every_combination, 0, CASES);
    tcase_add_loop_test(tc, what_is_two_turns_away_is_found, 0, (int)(sizeof two_turns / sizeof *two_turns));
    tcase_add_loop_test(tc, the_fastest_that_fits_is_the_fastest_there_is, 0, CASES);
    tcase_add_loop_test(tc, where_nothing_fits_the_nearest_is_the_nearest, 0,
                        HEADROOM_SANITIZED ? 1 : HR_PERMISSION_COUNT);
    tcase_add_test(tc, recomputation_under_a_budget_is_found_where_it_is_fastest);
    tcase_add_test(tc, a_search_ends_when_it_is_told_to);
    tcase_add_test(tc, what_misses_by_less_is_planned_to_the_byte_as_well);
    suite_add_tcase(suite, tc);
    TCase *bounds = tcase_create("bounds");
    tcase_set_timeout(bounds, 120);
    tcase_add_test(bounds, what_comes_nearest_is_planned_as_long_as_it_is_wanted);
    tcase_add_loop_test(bounds, a_search_looks_at_no_more_than_it_may, 0, HEADROOM_SANITIZED ? 1 : 2);
    tcase_add_test(bounds, a_search_without_threads_plans_alone);
    suite_add_tcase(suite, bounds);
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, 120);
    tcase_add_loop_test(threads, a_search_is_the_same_for_any_number_of_threads, 0,
                        HEADROOM_SANITIZED ? 1 : 3);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
