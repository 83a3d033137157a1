// SPDX-License-Identifier: Apache-2.0
// A sweep for what fits: every point of it is a plan, none comes twice, and none does what is not permitted.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/planning_use.h"

static void apply(hr_knobs *knobs, const char *pairs)
{
    char copy[256], *rest = NULL;
    ck_assert_uint_lt(strlen(pairs), sizeof copy);
    strcpy(copy, pairs);
    for (char *pair = strtok_r(copy, " ", &rest); pair != NULL; pair = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_eq(hr_knobs_set_pair(knobs, pair, NULL), HR_OK);
    }
}

static int64_t effective_batch(const hr_knobs *knobs)
{
    return hr_knob_int(knobs, HR_KNOB_BATCH_SIZE) * hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE);
}

// Every other knob is the same at every point, whatever is permitted.
static hr_fit_permission permission_for(hr_knob_id id)
{
    static const hr_knob_id trades[] = {HR_KNOB_EXECUTION_MODE,    HR_KNOB_CHECKPOINT_STRATEGY,
                                        HR_KNOB_EXECUTION_FUSE,    HR_KNOB_OPTIMIZER_FUSED_BACKWARD,
                                        HR_KNOB_OFFLOAD_OPTIMIZER, HR_KNOB_OFFLOAD_ACTIVATIONS,
                                        HR_KNOB_OFFLOAD_PREFETCH,  HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS,
                                        HR_KNOB_ALLOCATOR_KIND,    HR_KNOB_ALLOCATOR_GROWTH,
                                        HR_KNOB_EXECUTION_INPLACE, HR_KNOB_WORKSPACE_LIMIT,
                                        HR_KNOB_BATCH_SIZE,        HR_KNOB_BATCH_ACCUMULATE};
    for (size_t k = 0; k < sizeof trades / sizeof *trades; k++) {
        if (id == trades[k]) {
            return HR_PERMIT_NOTHING;
        }
    }
    return id == HR_KNOB_PRECISION_POLICY || id == HR_KNOB_PRECISION_TF32 ? HR_PERMIT_PRECISION
           : id == HR_KNOB_OPTIMIZER_KIND                                 ? HR_PERMIT_OPTIMIZER
                                                                          : HR_PERMISSION_COUNT;
}

static bool differs(const hr_knobs *a, const hr_knobs *b, hr_knob_id id)
{
    char one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    return strcmp(hr_knob_format(a, id, one), hr_knob_format(b, id, other)) != 0;
}

// The largest permission that turning the one to the other needs; what it changes is said, and nothing else is.
static hr_fit_permission needed(const hr_knobs *knobs, const hr_knobs *turned)
{
    hr_fit_permission most = HR_PERMIT_NOTHING;
    char change[HR_FIT_CHANGE_MAX];
    hr_fit_change(knobs, turned, false, change);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        const hr_fit_permission permission = permission_for((hr_knob_id)id);
        const bool differing = differs(knobs, turned, (hr_knob_id)id);
        ck_assert(!differing || permission < HR_PERMISSION_COUNT);
        if (differing && permission > HR_PERMIT_NOTHING) {
            ck_assert_ptr_nonnull(strstr(change, hr_knob_text(turned, (hr_knob_id)id)));
        }
        ck_assert_int_eq(hr_fit_permission_for((hr_knob_id)id), permission % HR_PERMISSION_COUNT);
        most = differing && permission > most ? permission : most;
    }
    ck_assert((change[0] != '\0') == (most > HR_PERMIT_NOTHING));
    return most;
}

static hr_fit_permission check_point(const hr_planner *planner, const hr_knobs *knobs,
                                     const hr_fit_point *point)
{
    hr_knobs turned = *knobs;
    hr_whatif w;
    hr_err err = {0};
    apply(&turned, point->knobs);
    ck_assert_msg(hr_knobs_validate(&turned, &err) == HR_OK, "%s: %s", point->knobs, err.sentence);
    ck_assert_msg(hr_planner_plan(planner, &turned, &w, &err) == HR_OK, "%s: %s", point->knobs, err.sentence);
    hr_whatif said = point->plan;
    if (said.is_at_least) {
        ck_assert(!w.fits && said.missing_bytes > 0);
        ck_assert_uint_le(said.missing_bytes, w.missing_bytes);
        said.missing_bytes = w.missing_bytes;
        said.peak_in_use_bytes = w.peak_in_use_bytes;
    }
    ck_assert_msg(same_plan(&w, &said), "%s", point->knobs);
    ck_assert_int_eq(effective_batch(&turned), effective_batch(knobs));
    return needed(knobs, &turned);
}

static void check_unique(const hr_fit_point *points, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t j = 0; j < k; j++) {
            ck_assert_str_ne(points[k].knobs, points[j].knobs);
        }
    }
}

static bool is_better(const hr_fit_point *a, const hr_fit_point *b)
{
    return a->plan.peak_in_use_bytes < b->plan.peak_in_use_bytes / 2;
}

static const struct {
    const char *pairs[3];
    hr_fit_permission permission;
} fits[] = {
    {{"batch.size=128"}, HR_PERMIT_NOTHING},
    {{"batch.size=512"}, HR_PERMIT_NOTHING}, // does not fit
    {{"batch.size=128"}, HR_PERMIT_OPTIMIZER},
    {{"execution.mode=graph", "batch.accumulate=4"}, HR_PERMIT_NOTHING},
    {{"allocator.kind=caching", "device.card="}, HR_PERMIT_NOTHING}, // nobody tells the time
    {{"batch.size=128"}, HR_PERMIT_PRECISION},
    {{"precision.policy=mixed_float16", "precision.loss_scale=dynamic"}, HR_PERMIT_OPTIMIZER},
};

// What the sweep found, point by point.
static uint32_t swept(const hr_knobs *knobs, hr_fit_permission permission,
                      hr_fit_point points[HR_FIT_POINTS_MAX])
{
    hr_planning *p = started(true);
    hr_answer a = {.kind = HR_QUESTION_FIT};
    uint32_t count = 0;
    ck_assert_uint_eq(hr_planning_ask_fit(p, knobs, permission), 1);
    while (!a.last) {
        ck_assert(next_answer(p, &a));
        ck_assert(a.kind == HR_QUESTION_FIT && a.status == HR_OK);
        ck_assert_uint_eq(a.index, count);
        ck_assert_uint_lt(count, HR_FIT_POINTS_MAX);
        points[count++] = a.point;
    }
    hr_planning_stop(p);
    return count;
}

START_TEST(every_point_of_a_sweep_is_a_plan)
{
    const hr_knobs knobs = demo_knobs((const char *[]){fits[_i].pairs[0], fits[_i].pairs[1], NULL});
    hr_planner *planner = demo_planner();
    static hr_fit_point points[HR_FIT_POINTS_MAX];
    const uint32_t count = swept(&knobs, fits[_i].permission, points);
    bool better = false, fitting = false, used[HR_PERMISSION_COUNT] = {false};
    for (uint32_t k = 0; k < count; k++) {
        used[check_point(planner, &knobs, &points[k])] = true;
        better = better || is_better(&points[k], &points[0]);
        fitting = fitting || points[k].plan.fits;
    }
    ck_assert_str_eq(points[0].knobs, "");
    ck_assert_uint_gt(count, 50);
    ck_assert(better && fitting);
    for (int permission = 0; permission < HR_PERMISSION_COUNT; permission++) {
        ck_assert_int_eq(used[permission], permission <= (int)fits[_i].permission); // no more, and all of it
    }
    check_unique(points, count);
    hr_planner_close(planner);
}
END_TEST

START_TEST(a_step_as_tensorflow_holds_it_keeps_its_allocator)
{
    const hr_knobs knobs = demo_knobs((const char *[]){"execution.as=tensorflow", NULL});
    static hr_fit_point points[HR_FIT_POINTS_MAX];
    const uint32_t count = swept(&knobs, HR_PERMIT_NOTHING, points);
    for (uint32_t k = 0; k < count; k++) {
        hr_knobs turned = knobs;
        apply(&turned, points[k].knobs);
        ck_assert_msg(hr_knob_is(&turned, HR_KNOB_ALLOCATOR_KIND, "bfc"), "%s", points[k].knobs);
    }
}
END_TEST

// What is held as PyTorch holds it stays on the allocator that it is asked about, whose own knobs turn.
START_TEST(a_step_as_pytorch_holds_it_keeps_its_allocator)
{
    const hr_knobs knobs =
        demo_knobs((const char *[]){"execution.as=pytorch", "allocator.kind=caching", NULL});
    static hr_fit_point points[HR_FIT_POINTS_MAX];
    const uint32_t count = swept(&knobs, HR_PERMIT_NOTHING, points);
    bool turns_segments = false;
    for (uint32_t k = 0; k < count; k++) {
        hr_knobs turned = knobs;
        apply(&turned, points[k].knobs);
        ck_assert_msg(hr_knob_is(&turned, HR_KNOB_ALLOCATOR_KIND, "caching"), "%s", points[k].knobs);
        turns_segments = turns_segments || differs(&knobs, &turned, HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS);
    }
    ck_assert(turns_segments);
}
END_TEST

static const char *const kinds[][2] = {
    {"adam", "lion"},    {"adamw", "adam8bit"},    {"adam8bit", "adafactor"},
    {"momentum", "sgd"}, {"rmsprop", "adafactor"}, {"sgd", ""},
    {"lion", ""}};

// Alone, it takes less of what stays for all of a step; the rate that it wants is said, not turned.
START_TEST(an_optimizer_that_is_offered_keeps_less_and_says_what_it_changes)
{
    char pair[64], change[HR_FIT_CHANGE_MAX];
    snprintf(pair, sizeof pair, "optimizer.kind=%s", kinds[_i][0]);
    const hr_knobs knobs = demo_knobs((const char *[]){pair, NULL});
    static hr_fit_point points[HR_FIT_POINTS_MAX];
    const uint32_t count = swept(&knobs, HR_PERMIT_OPTIMIZER, points);
    bool offered = kinds[_i][1][0] == '\0';
    for (uint32_t k = 0; k < count; k++) {
        hr_knobs turned = knobs;
        apply(&turned, points[k].knobs);
        const bool alone = strchr(points[k].knobs, ' ') == NULL;
        if (!differs(&knobs, &turned, HR_KNOB_OPTIMIZER_KIND)) {
            continue;
        }
        ck_assert(kinds[_i][1][0] != '\0');
        ck_assert(!alone || points[k].plan.static_bytes < points[0].plan.static_bytes);
        ck_assert(!differs(&knobs, &turned, HR_KNOB_OPTIMIZER_LEARNING_RATE));
        hr_fit_change(&knobs, &turned, false, change);
        ck_assert(hr_knob_is(&turned, HR_KNOB_OPTIMIZER_KIND, "adam8bit") ==
                  (strstr(change, "learning rate") == NULL));
        offered = offered || hr_knob_is(&turned, HR_KNOB_OPTIMIZER_KIND, kinds[_i][1]);
    }
    ck_assert(offered);
}
END_TEST

// A constraint is asked, not known: a dynamic loss scale leaves float16 alone.
START_TEST(a_policy_that_a_constraint_refuses_is_no_point)
{
    const hr_knobs knobs =
        demo_knobs((const char *[]){"precision.policy=mixed_float16", "precision.loss_scale=dynamic", NULL});
    static hr_fit_point points[HR_FIT_POINTS_MAX];
    const uint32_t count = swept(&knobs, HR_PERMIT_PRECISION, points);
    bool turns_policy = false;
    for (uint32_t k = 0; k < count; k++) {
        ck_assert_ptr_null(strstr(points[k].knobs, "float64"));
        ck_assert_ptr_null(strstr(points[k].knobs, "bfloat16"));
        turns_policy = turns_policy || strstr(points[k].knobs, "precision.policy=float16") != NULL;
    }
    ck_assert(turns_policy);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, every_point_of_a_sweep_is_a_plan, 0,
                        HEADROOM_SANITIZED ? 3 : (int)(sizeof fits / sizeof *fits));
    tcase_add_loop_test(tests, an_optimizer_that_is_offered_keeps_less_and_says_what_it_changes, 0,
                        HEADROOM_SANITIZED ? 2 : (int)(sizeof kinds / sizeof *kinds));
    tcase_add_test(tests, a_step_as_pytorch_holds_it_keeps_its_allocator);
    tcase_add_test(tests, a_step_as_tensorflow_holds_it_keeps_its_allocator);
    tcase_add_test(tests, a_policy_that_a_constraint_refuses_is_no_point);
}

int main(int argc, char **argv)
{
    return planning_tests(argc, argv, add, planning_serve_demo);
}
