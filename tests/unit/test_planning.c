// SPDX-License-Identifier: Apache-2.0
// Questions and answers, in process and in a process of its own: both say what a plan on the spot says; what is
// replaced, killed or garbled ends well.
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/planning.h"
#include "headroom/preset.h"
#include "headroom/session.h"

#include "base/host_mem.h"
#include "session/planning_serve.h"
#include "session/planning_wire.h"
#include "session/spawn.h"
#include "unit/planning_evil.h"

enum { TIMEOUT_MS = 60000 };

static const char demo[] = "demo";

static hr_knobs demo_knobs(const char *const *pairs)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(demo, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_preset_close(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.card=rtx3070-8g", NULL), HR_OK);
    for (; pairs != NULL && *pairs != NULL; pairs++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, *pairs, NULL), HR_OK);
    }
    return knobs;
}

static hr_planner *demo_planner(void)
{
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    ck_assert_int_eq(hr_preset_open(demo, false, &preset, NULL, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    hr_preset_close(preset);
    return planner;
}

static hr_planning *started(bool in_process)
{
    hr_planning *p = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_planning_start(in_process, &p, &err) == HR_OK, "%s", err.sentence);
    hr_planning_open(p, demo, false);
    return p;
}

// The next answer; there must be one while a question is open.
static bool next_answer(hr_planning *p, hr_answer *answer)
{
    while (!hr_planning_take(p, answer)) {
        if (!hr_planning_is_busy(p)) {
            return false;
        }
        struct pollfd ready = {.fd = hr_planning_fd(p), .events = POLLIN};
        ck_assert_int_eq(poll(&ready, 1, TIMEOUT_MS), 1);
    }
    return true;
}

static bool same_plan(const hr_whatif *a, const hr_whatif *b)
{
    return a->fits == b->fits && a->limit_bytes == b->limit_bytes && a->static_bytes == b->static_bytes &&
           a->saved_for_backward_bytes == b->saved_for_backward_bytes &&
           a->peak_in_use_bytes == b->peak_in_use_bytes && a->missing_bytes == b->missing_bytes &&
           a->host_bytes == b->host_bytes && a->host_missing_bytes == b->host_missing_bytes &&
           a->h2d_bytes == b->h2d_bytes &&
           memcmp(&a->step_seconds, &b->step_seconds, sizeof a->step_seconds) == 0 &&
           memcmp(&a->step_seconds_low, &b->step_seconds_low, sizeof a->step_seconds_low) == 0 &&
           memcmp(&a->step_seconds_high, &b->step_seconds_high, sizeof a->step_seconds_high) == 0;
}

// ---- turns ----------------------------------------------------------------------------------------------------

static const hr_turn turns[] = {
    {HR_KNOB_COUNT, ""},
    {HR_KNOB_BATCH_SIZE, "256"},
    {HR_KNOB_BATCH_SIZE, "64"},
    {HR_KNOB_OPTIMIZER_LEARNING_RATE, "0.01"}, // hot
    {HR_KNOB_OPTIMIZER_LEARNING_RATE, "fast"},
    {HR_KNOB_EXECUTION_MODE, "graph"},
    {HR_KNOB_ALLOCATOR_KIND, "static"}, // needs graph
    {HR_KNOB_DEVICE_VRAM, "16MiB"},
    {HR_KNOB_OPTIMIZER_KIND, "sgd"},
};
enum { TURNS = sizeof turns / sizeof *turns };

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

// ---- step plans and differences ---------------------------------------------------------------------------------

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

static void put(wire_out *o, const hr_answer *a)
{
    *o = (wire_out){0};
    planning_put_answer(o, a);
    ck_assert(!o->bad);
}

// Every question there is, and a step that does not fit.
static void ask_everything(hr_planning *p, int round)
{
    const hr_knobs knobs =
        demo_knobs((const char *[]){round == 0 ? "batch.size=128" : "batch.size=500", NULL});
    const hr_knobs graph = demo_knobs((const char *[]){"execution.mode=graph", "batch.accumulate=2", NULL});
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    ck_assert_uint_ne(hr_planning_ask_step_plan(p, &knobs), 0);
    ck_assert_uint_ne(hr_planning_ask_diff(p, &knobs, &graph), 0);
    ck_assert_uint_ne(hr_planning_ask_fit(p, &knobs, HR_PERMIT_OPTIMIZER), 0);
    ck_assert_uint_ne(hr_planning_ask_stands(p, &knobs), 0);
}

// What is said here, by kind: in what order the kinds come depends on when a process heard of them.
static struct {
    wire_out said[HR_FIT_POINTS_MAX];
    uint32_t count, compared;
} expected[HR_QUESTION_COUNT];

static void forget_expected(void)
{
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        for (uint32_t i = 0; i < expected[k].count; i++) {
            wire_out_deinit(&expected[k].said[i]);
        }
        expected[k].count = expected[k].compared = 0;
    }
}

static void expect_everything(int round)
{
    hr_planning *here = started(true);
    hr_answer a;
    ck_assert_int_eq(hr_planning_fd(here), -1);
    forget_expected();
    ask_everything(here, round);
    while (next_answer(here, &a)) {
        put(&expected[a.kind].said[expected[a.kind].count++], &a);
        hr_answer_deinit(&a);
    }
    hr_planning_stop(here);
}

// Takes up to `until` answers; they are those expected.
static void compare_some(hr_planning *there, unsigned until)
{
    hr_answer a;
    for (unsigned k = 0; k < until && next_answer(there, &a); k++) {
        wire_out o;
        const uint32_t at = expected[a.kind].compared++;
        ck_assert_uint_lt(at, expected[a.kind].count);
        const wire_out *e = &expected[a.kind].said[at];
        put(&o, &a);
        ck_assert(o.bytes == e->bytes && memcmp(o.data, e->data, e->bytes) == 0);
        wire_out_deinit(&o);
        hr_answer_deinit(&a);
    }
}

static void compare_all(hr_planning *there)
{
    compare_some(there, 1000);
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        ck_assert_uint_eq(expected[k].compared, expected[k].count);
        ck_assert_uint_gt(expected[k].count, 0);
    }
}

START_TEST(a_process_says_what_is_said_here_byte_for_byte)
{
    hr_planning *there = started(false);
    expect_everything(_i);
    ask_everything(there, _i);
    compare_all(there);
    hr_planning_stop(there);
    forget_expected();
}
END_TEST

// ---- fits -----------------------------------------------------------------------------------------------------

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
    ck_assert_msg(same_plan(&w, &point->plan), "%s", point->knobs);
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
    {{"execution.mode=graph", "batch.accumulate=4"}, HR_PERMIT_NOTHING},
    {{"allocator.kind=caching", "device.card="}, HR_PERMIT_NOTHING}, // nobody tells the time
    {{"batch.size=128"}, HR_PERMIT_PRECISION},
    {{"batch.size=128"}, HR_PERMIT_OPTIMIZER},
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

// ---- replacing ------------------------------------------------------------------------------------------------

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

// ---- life and death -------------------------------------------------------------------------------------------

// The one child that we have; 0: none.
static pid_t the_child(void)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    const size_t got = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[got] = '\0';
    return (pid_t)strtol(text, NULL, 10);
}

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

START_TEST(nothing_is_left_of_a_planner)
{
    const unsigned files = open_files();
    const int64_t live = hr_host_mem_live();
    for (int k = 0; k < 8; k++) {
        hr_planning *p = started(false);
        ck_assert_int_gt(the_child(), 0);
        if (k % 2 == 0) {
            ask_everything(p, 0);
        }
        if (k == 4) {
            ck_assert_int_eq(kill(the_child(), SIGKILL), 0);
        }
        hr_planning_stop(p);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
        ck_assert_uint_eq(open_files(), files);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(a_planner_takes_what_nobody_else_wants)
{
    const hr_knobs knobs = demo_knobs(NULL);
    setenv("PLANNER_IS", "idle", 1);
    hr_planning *p = started(false);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, 1), 0);
    ck_assert(next_answer(p, &a));
    ck_assert_int_eq(sched_getscheduler(the_child()), SCHED_IDLE);
    ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)the_child()), 19);
    hr_planning_stop(p);
}
END_TEST

START_TEST(what_a_killed_planner_owed_another_one_says)
{
    hr_planning *there = started(false);
    expect_everything(0);
    ask_everything(there, 0);
    compare_some(there, (unsigned)_i * 7);
    const pid_t first = the_child();
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    compare_all(there);
    ck_assert_int_ne(the_child(), first);
    hr_planning_stop(there);
    forget_expected();
}
END_TEST

static void check_end(const char *how, const char *said)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planning *p = NULL;
    hr_answer a;
    setenv("PLANNER_IS", how, 1);
    ck_assert_int_eq(hr_planning_start(false, &p, NULL), HR_OK);
    hr_planning_open(p, demo, false);
    const uint64_t number = hr_planning_ask_turns(p, &knobs, turns, TURNS);
    ck_assert_uint_ne(hr_planning_ask_step_plan(p, &knobs), 0);
    ck_assert(next_answer(p, &a));
    ck_assert_uint_eq(a.number, number);
    ck_assert(a.last && a.status == HR_STATE);
    ck_assert_msg(strstr(a.sentence, said) != NULL, "%s: %s", how, a.sentence);
    ck_assert(next_answer(p, &a) && a.last && a.kind == HR_QUESTION_STEP_PLAN && a.status == HR_STATE);
    ck_assert(!next_answer(p, &a));
    unsetenv("PLANNER_IS");
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS),
                      0); // the next question starts a good one
    for (int k = 0; k < TURNS; k++) {
        ck_assert(next_answer(p, &a) && a.index == (uint32_t)k && (k > 0 || a.status == HR_OK));
    }
    hr_planning_stop(p);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

START_TEST(a_planner_that_lies_or_dies_is_no_harm)
{
    check_end(planning_evils[_i].name, planning_evils[_i].said);
}
END_TEST

START_TEST(a_planner_that_never_stops_holds_nobody_up)
{
    const hr_knobs knobs = demo_knobs(NULL);
    setenv("PLANNER_IS", "flooding", 1);
    hr_planning *p = started(false);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    for (int k = 0; k < 40; k++) {
        struct pollfd ready = {.fd = hr_planning_fd(p), .events = POLLIN};
        ck_assert_int_eq(poll(&ready, 1, TIMEOUT_MS), 1);
        ck_assert(!hr_planning_take(p, &a));
    }
    ck_assert(hr_planning_is_busy(p));
    hr_planning_stop(p);
}
END_TEST

static uint64_t ahead_ns;

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);

uint64_t __wrap_clock_now_ns(void)
{
    return __real_clock_now_ns() + ahead_ns;
}

// A minute after it was asked, and not before; more to do is no sign of life.
static void be_silent(hr_planning *p, const hr_knobs *knobs, hr_answer *a)
{
    const uint64_t second_ns = UINT64_C(1000000000);
    const pid_t before = the_child();
    ahead_ns += 50 * second_ns;
    ck_assert(!hr_planning_take(p, a));
    ck_assert_int_eq(the_child(), before);
    ck_assert_uint_ne(hr_planning_ask_step_plan(p, knobs), 0);
    ahead_ns += 11 * second_ns;
    (void)hr_planning_take(p, a);
    ck_assert_int_ne(the_child(), before);
}

START_TEST(a_planner_that_was_stopped_is_replaced)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planning *p = started(false);
    siginfo_t how;
    hr_answer a;
    ck_assert_int_eq(kill(the_child(), SIGSTOP), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)the_child(), &how, WSTOPPED | WNOWAIT), 0);
    ahead_ns += UINT64_C(300000000000); // it owes nothing
    ck_assert(!hr_planning_take(p, &a));
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    be_silent(p, &knobs, &a);
    for (int k = 0; k < TURNS; k++) {
        ck_assert(next_answer(p, &a) && a.status != HR_STATE);
        hr_answer_deinit(&a);
    }
    hr_planning_stop(p);
}
END_TEST

START_TEST(two_silent_planners_are_enough)
{
    const hr_knobs knobs = demo_knobs(NULL);
    setenv("PLANNER_IS", "silent", 1);
    hr_planning *p = started(false);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    be_silent(p, &knobs, &a);
    be_silent(p, &knobs, &a);
    ck_assert_int_eq(a.status, HR_STATE);
    ck_assert_str_eq(a.sentence, "the planner did not answer: it was silent for a minute");
    hr_planning_stop(p);
}
END_TEST

START_TEST(without_a_program_there_is_no_planner)
{
    hr_planning *p = NULL;
    hr_err err = {0};
    setenv("HEADROOM_PROGRAM", "/no/such/program", 1);
    ck_assert_int_eq(hr_planning_start(false, &p, &err), HR_STATE);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(err.sentence, "/no/such/program"));
}
END_TEST

#if HEADROOM_HAVE_ONEDNN
START_TEST(what_the_library_was_asked_outlives_a_kill)
{
    static const hr_turn present[] = {{HR_KNOB_COUNT, ""}};
    const hr_knobs knobs = demo_knobs((const char *[]){"device.kind=cpu", "device.card=", NULL});
    hr_planning *p = started(false);
    char path[160];
    struct stat file;
    hr_answer a;
    snprintf(path, sizeof path, "%s/headroom/workspaces", getenv("XDG_CACHE_HOME"));
    (void)unlink(path);
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, present, 1), 0);
    ck_assert(next_answer(p, &a) && a.status == HR_OK);
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, present, 1),
                      0); // answered once the first is done with
    ck_assert(next_answer(p, &a));
    hr_planning_stop(p);
    ck_assert_msg(stat(path, &file) == 0 && file.st_size > 0, "%s", path);
}
END_TEST
#endif

// ---- bodies ---------------------------------------------------------------------------------------------------

static uint64_t random_state = 20261121;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static void draw_knobs(hr_knobs *knobs)
{
    static const char *const words[] = {"none",  "",  "7", "0.5", "64MiB", "on",      "off",
                                        "graph", "a", "4", "1",   "0",     "caching", "sqrt"};
    hr_knobs_init(knobs);
    for (int k = 0; k < 200; k++) {
        const char *word = words[draw(sizeof words / sizeof *words)];
        (void)!hr_knobs_set(knobs, (hr_knob_id)draw(HR_KNOB_COUNT), word, NULL);
    }
}

START_TEST(questions_come_over_as_they_are)
{
    static planning_question q, r;
    for (int round = 0; round < 200; round++) {
        wire_out o = {0};
        q = (planning_question){.kind = (hr_question_kind)draw(HR_QUESTION_COUNT), .number = draw(1000)};
        q.permission =
            q.kind == HR_QUESTION_FIT ? (hr_fit_permission)draw(HR_PERMISSION_COUNT) : HR_PERMIT_NOTHING;
        draw_knobs(&q.knobs);
        draw_knobs(&q.after);
        q.turn_count = q.kind == HR_QUESTION_TURNS ? 1 + draw(HR_TURNS_MAX) : 0;
        for (uint32_t k = 0; k < q.turn_count; k++) {
            q.turns[k] = turns[draw(TURNS)];
        }
        planning_put_question(&o, &q);
        wire_in in = {.data = o.data, .bytes = o.bytes};
        ck_assert(planning_get_question(&in, &r));
        ck_assert(r.kind == q.kind && r.number == q.number && r.turn_count == q.turn_count &&
                  r.permission == q.permission);
        ck_assert_mem_eq(&r.knobs, &q.knobs, sizeof q.knobs);
        ck_assert(q.kind != HR_QUESTION_DIFF || memcmp(&r.after, &q.after, sizeof q.after) == 0);
        for (uint32_t k = 0; k < q.turn_count; k++) {
            ck_assert(r.turns[k].knob == q.turns[k].knob && strcmp(r.turns[k].value, q.turns[k].value) == 0);
        }
        for (int k = 0; k < 50; k++) { // of a garbled one nothing is believed
            wire_in cut = {.data = o.data, .bytes = draw((uint32_t)o.bytes)};
            ck_assert(!planning_get_question(&cut, &r));
            o.data[draw((uint32_t)o.bytes)] ^= (uint8_t)(1 + draw(255));
            wire_in garbled = {.data = o.data, .bytes = o.bytes};
            (void)planning_get_question(&garbled, &r);
        }
        wire_out_deinit(&o);
    }
}
END_TEST

START_TEST(a_permission_that_there_is_not_is_refused)
{
    static planning_question q = {.kind = HR_QUESTION_FIT, .number = 1}, r;
    hr_knobs_init(&q.knobs);
    for (uint32_t permission = 0; permission < HR_PERMISSION_COUNT + 3u; permission++) {
        wire_out o = {0};
        q.permission = (hr_fit_permission)permission;
        planning_put_question(&o, &q);
        wire_in in = {.data = o.data, .bytes = o.bytes};
        ck_assert_int_eq(planning_get_question(&in, &r), permission < HR_PERMISSION_COUNT);
        wire_out_deinit(&o);
    }
    hr_planning *p = started(true);
    ck_assert_uint_eq(hr_planning_ask_fit(p, &q.knobs, HR_PERMISSION_COUNT), 0);
    hr_planning_stop(p);
}
END_TEST

// Follows everything that may be followed, as a screen would.
static uint64_t walk(const hr_answer *a)
{
    const hr_step_plan *p = &a->step_plan;
    uint64_t sum = strlen(a->sentence) + strlen(a->point.knobs) + a->whatif.fits + a->point.plan.fits;
    sum += a->text != NULL ? strlen(a->text) : 0;
    for (size_t n = 0; n < p->instr_count; n++) {
        const hr_step_plan_instr *i = &p->instrs[n];
        sum += strlen(hr_step_plan_text(p, i->name)) + strlen(hr_step_plan_text(p, i->line)) + i->is_alloc +
               i->is_free + i->again + strlen(hr_phase_name((hr_phase)i->phase));
        sum += i->layer == HR_NO_ID ? 0 : p->layers[i->layer].flops;
        sum += i->tensor == HR_NO_ID ? 0 : p->tensors[i->tensor].bytes;
        sum += i->event < p->event_count ? p->events[i->event].seq : 0;
    }
    for (size_t k = 0; k < p->tensor_count; k++) {
        const hr_step_plan_tensor *t = &p->tensors[k];
        sum += strlen(hr_step_plan_text(p, t->name)) + strlen(hr_step_plan_text(p, t->dtype)) +
               t->persistent + t->saved + strlen(hr_step_plan_text(p, t->shape)) +
               strlen(hr_category_name((hr_category)t->category));
        sum += p->tensors[t->owner].bytes + (t->layer == HR_NO_ID ? 0 : p->layers[t->layer].flops);
        sum += t->born == HR_NO_ID ? 0 : p->instrs[t->born].flops;
        sum += t->died == HR_NO_ID ? 0 : p->instrs[t->died].flops;
    }
    for (size_t k = 0; k < p->layer_count; k++) {
        sum += strlen(hr_step_plan_text(p, p->layers[k].name)) +
               strlen(hr_step_plan_text(p, p->layers[k].output_shape));
    }
    for (size_t k = 0; k < p->event_count; k++) {
        sum += strlen(hr_event_name((hr_event_kind)p->events[k].kind));
        sum += p->events[k].u.memory.tensor == HR_NO_ID ? 0 : p->tensors[p->events[k].u.memory.tensor].bytes;
    }
    sum += p->instrs == NULL || p->peak_instr == HR_NO_ID ? 0 : p->instrs[p->peak_instr].flops;
    return sum;
}

// Garbles what `o` holds, a little or a lot; what is still believed can be followed.
static void garble(const wire_out *o, uint32_t rounds)
{
    const int64_t live = hr_host_mem_live();
    uint8_t *copy = malloc(o->bytes);
    uint64_t sum = 0;
    ck_assert_ptr_nonnull(copy);
    for (uint32_t round = 0; round < rounds; round++) {
        hr_answer b;
        const size_t bytes = draw(8) == 0 ? draw((uint32_t)o->bytes) : o->bytes;
        memcpy(copy, o->data, o->bytes);
        for (uint32_t k = 0; k < 1 + draw(4); k++) {
            const uint32_t near = draw(2) == 0 ? 160 : (uint32_t)o->bytes; // heads decide most
            copy[draw(near < o->bytes ? near : (uint32_t)o->bytes)] =
                draw(3) == 0 ? 0xff : (uint8_t)draw(256);
        }
        uint8_t *exact = malloc(bytes + 1); // so that a sanitizer sees the end
        memcpy(exact, copy, bytes);
        wire_in in = {.data = exact, .bytes = bytes};
        if (planning_get_answer(&in, &b)) {
            sum += walk(&b);
            hr_answer_deinit(&b);
        }
        free(exact);
        if (hr_host_mem_live() != live) {
            ck_abort_msg("round %u leaves memory", round);
        }
    }
    free(copy);
    ck_assert_uint_gt(sum + 1, 0);
}

START_TEST(garbled_answers_are_refused_or_harmless)
{
    hr_planning *p = started(true);
    hr_answer a;
    bool seen[HR_QUESTION_COUNT] = {false};
    ask_everything(p, 1);
    while (next_answer(p, &a)) {
        wire_out o;
        hr_answer b;
        put(&o, &a);
        wire_in in = {.data = o.data, .bytes = o.bytes};
        ck_assert(planning_get_answer(&in, &b));
        ck_assert_uint_eq(walk(&a), walk(&b));
        hr_answer_deinit(&b);
        if (!seen[a.kind] || a.kind == HR_QUESTION_TURNS) {
            garble(&o, a.kind == HR_QUESTION_STEP_PLAN ? 600 : 200);
        }
        seen[a.kind] = true;
        wire_out_deinit(&o);
        hr_answer_deinit(&a);
    }
    ck_assert(seen[HR_QUESTION_TURNS] && seen[HR_QUESTION_STEP_PLAN] && seen[HR_QUESTION_DIFF] &&
              seen[HR_QUESTION_FIT]);
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

// This program as the planner: a good one, at the priority of a test.
static int serve(void)
{
    const char *how = getenv("PLANNER_IS");
    if (how != NULL && strcmp(how, "idle") == 0) {
        return hr_session_serve("planner");
    }
    const int socket = child_begin();
    return socket < 0 ? 2 : how != NULL ? planning_evil(how, socket) : planning_serve_eagerly(socket);
}

int main(int argc, char **argv)
{
    hr_preset_search_beside(".");
    if (argc > 1 && strcmp(argv[1], "@planner") == 0) {
        return serve();
    }
    char home[] = "/tmp/headroom-planning-XXXXXX";
    if (mkdtemp(home) == NULL) {
        return EXIT_FAILURE;
    }
    setenv("XDG_CACHE_HOME", home, 1);
    setenv("HEADROOM_PROGRAM", "/proc/self/exe", 1);
    Suite *suite = suite_create("planning");
    TCase *tests = tcase_create("planning");
    tcase_add_loop_test(tests, a_turn_is_answered_as_it_would_be_on_the_spot, 0, 2);
    tcase_add_loop_test(tests, what_would_not_stand_says_why, 0, 2);
    tcase_add_test(tests, what_is_urgent_comes_first);
    tcase_add_loop_test(tests, a_difference_is_the_planners, 0, 2);
    tcase_add_loop_test(tests, a_process_says_what_is_said_here_byte_for_byte, 0, 2);
    tcase_add_loop_test(tests, every_point_of_a_sweep_is_a_plan, 0, sizeof fits / sizeof *fits);
    tcase_add_loop_test(tests, an_optimizer_that_is_offered_keeps_less_and_says_what_it_changes, 0,
                        sizeof kinds / sizeof *kinds);
    tcase_add_test(tests, a_step_as_pytorch_holds_it_keeps_its_allocator);
    tcase_add_test(tests, a_step_as_tensorflow_holds_it_keeps_its_allocator);
    tcase_add_test(tests, a_policy_that_a_constraint_refuses_is_no_point);
    tcase_add_loop_test(tests, what_cannot_be_planned_has_one_answer, 0, 2);
    tcase_add_loop_test(tests, what_cannot_be_asked_has_no_number, 0, 2);
    tcase_add_loop_test(tests, a_new_question_replaces_the_old_one, 0, 2);
    tcase_add_test(tests, nothing_is_left_of_a_planner);
    tcase_add_test(tests, a_planner_takes_what_nobody_else_wants);
    tcase_add_loop_test(tests, what_a_killed_planner_owed_another_one_says, 0, 3);
    tcase_add_loop_test(tests, a_planner_that_lies_or_dies_is_no_harm, 0, PLANNING_EVILS);
    tcase_add_test(tests, a_planner_that_never_stops_holds_nobody_up);
    tcase_add_test(tests, a_planner_that_was_stopped_is_replaced);
    tcase_add_test(tests, two_silent_planners_are_enough);
    tcase_add_test(tests, without_a_program_there_is_no_planner);
#if HEADROOM_HAVE_ONEDNN
    tcase_add_test(tests, what_the_library_was_asked_outlives_a_kill);
#endif
    tcase_add_test(tests, questions_come_over_as_they_are);
    tcase_add_test(tests, a_permission_that_there_is_not_is_refused);
    tcase_add_test(tests, garbled_answers_are_refused_or_harmless);
    tcase_add_test(tests, without_host_memory_it_says_so);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", home);
    (void)!system(command);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
