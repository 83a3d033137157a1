// SPDX-License-Identifier: Apache-2.0
// A step as it is foretold, and as it is measured, on the cpu device with one thread:
//
//   bench_steps PRESET SECONDS [key=value…]
//
// Trains for SECONDS, and takes each step by the processor time of the one thread that computes: what other programs have of its
// processor is none of it. Prints the plan and the lower quartile of the steps behind the first ones, as JSON. Asserts nothing.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

enum { WARM = 2, LEAST = 3, MOST = 2000 };

static double seconds_by(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_steps: %s\n", err->sentence);
        exit(1);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Of the steps from `from` on; their number.
static size_t train(hr_engine *engine, double seconds, double *steps)
{
    hr_err err = {0};
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = WARM + MOST};
    const double until = seconds_by(CLOCK_MONOTONIC) + seconds;
    size_t count = 0;
    must(hr_engine_command(engine, &run, &err), &err);
    for (bool idle = false; !idle && count < MOST;) {
        const uint64_t before = hr_engine_steps(engine);
        const double begin = seconds_by(CLOCK_THREAD_CPUTIME_ID);
        hr_engine_advance(engine, &idle);
        const double took = seconds_by(CLOCK_THREAD_CPUTIME_ID) - begin;
        if (hr_engine_steps(engine) > before && before >= WARM) {
            steps[count++] = took;
        }
        if (count >= LEAST && seconds_by(CLOCK_MONOTONIC) > until) {
            break;
        }
    }
    must(hr_engine_error(engine)->status, hr_engine_error(engine));
    return count;
}

static void print_number(const char *name, double value)
{
    if (isnan(value)) {
        printf("\"%s\": null, ", name);
    } else {
        printf("\"%s\": %.6g, ", name, value);
    }
}

int main(int argc, char **argv)
{
    static double steps[MOST];
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_engine *engine = NULL;
    hr_whatif plan;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: bench_steps PRESET SECONDS [key=value…]\n");
        return 2;
    }
    must(hr_preset_open(argv[1], true, &preset, NULL, &err), &err);
    hr_knobs knobs = *hr_preset_knobs(preset);
    must(hr_knobs_set_pair(&knobs, "device.kind=cpu", &err), &err);
    must(hr_knobs_set_pair(&knobs, "threads.count=1", &err), &err);
    for (int k = 3; k < argc; k++) {
        must(hr_knobs_set_pair(&knobs, argv[k], &err), &err);
    }
    must(hr_planner_open(preset, &planner, &err), &err);
    must(hr_planner_plan(planner, &knobs, &plan, &err), &err);
    must(hr_engine_create(preset, &knobs, NULL, &engine, &err), &err);
    const size_t count = train(engine, atof(argv[2]), steps);
    qsort(steps, count, sizeof *steps, ascending);
    printf("{\"preset\": \"%s\", ", argv[1]);
    print_number("planned_seconds", plan.step_seconds);
    print_number("low_seconds", plan.step_seconds_low);
    print_number("high_seconds", plan.step_seconds_high);
    print_number("measured_seconds", count > 0 ? steps[count / 4] : (double)NAN);
    print_number("fastest_seconds", count > 0 ? steps[0] : (double)NAN);
    printf("\"steps\": %zu}\n", count);
    hr_engine_destroy(engine);
    hr_planner_close(planner);
    hr_preset_close(preset);
    return 0;
}
