// SPDX-License-Identifier: Apache-2.0
// Questions about the demo, for tests of planning: this program is its own planner.
#ifndef TESTS_PLANNING_USE_H
#define TESTS_PLANNING_USE_H

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/planning.h"
#include "headroom/preset.h"

#include "session/planning_serve.h"
#include "session/planning_wire.h"
#include "session/spawn.h"

enum { TIMEOUT_MS = 60000 };

static const char demo[] = "demo";

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

static inline hr_knobs demo_knobs(const char *const *pairs)
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

static inline hr_planner *demo_planner(void)
{
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    ck_assert_int_eq(hr_preset_open(demo, false, &preset, NULL, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    hr_preset_close(preset);
    return planner;
}

static inline hr_planning *started(bool in_process)
{
    hr_planning *p = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_planning_start(in_process, &p, &err) == HR_OK, "%s", err.sentence);
    hr_planning_open(p, demo, false);
    return p;
}

// The next answer; there must be one while a question is open.
static inline bool next_answer(hr_planning *p, hr_answer *answer)
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

static inline bool same_plan(const hr_whatif *a, const hr_whatif *b)
{
    return a->fits == b->fits && a->limit_bytes == b->limit_bytes && a->static_bytes == b->static_bytes &&
           a->saved_for_backward_bytes == b->saved_for_backward_bytes &&
           a->peak_in_use_bytes == b->peak_in_use_bytes && a->missing_bytes == b->missing_bytes &&
           a->host_bytes == b->host_bytes && a->host_missing_bytes == b->host_missing_bytes &&
           a->h2d_bytes == b->h2d_bytes &&
           memcmp(&a->step_seconds, &b->step_seconds, sizeof a->step_seconds) == 0 &&
           a->step_basis == b->step_basis &&
           memcmp(&a->step_seconds_low, &b->step_seconds_low, sizeof a->step_seconds_low) == 0 &&
           memcmp(&a->step_seconds_high, &b->step_seconds_high, sizeof a->step_seconds_high) == 0;
}

static inline void put_answer(wire_out *o, const hr_answer *a)
{
    *o = (wire_out){0};
    planning_put_answer(o, a);
    ck_assert(!o->bad);
}

// Every question there is, and a step that does not fit.
static inline void ask_everything(hr_planning *p, int round)
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

// A good one, at the priority of a test.
static inline int planning_serve_demo(void)
{
    const int socket = child_begin();
    return socket < 0 ? 2 : planning_serve_eagerly(socket);
}

// Runs what `add` adds; started as a planner, it is what `serve` is.
static inline int planning_tests(int argc, char **argv, void (*add)(TCase *), int (*serve)(void))
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
    add(tests);
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

#endif
