// SPDX-License-Identifier: Apache-2.0
// What telemetry costs a training: the time from one step's end to the next, in a worker process that fills the event
// ring, answers for reports and is read as the workbench reads it, and on an engine of this process that nobody
// listens to. They take turns, one waits while the other trains. Prints JSON: the median of each turn's steps.
//
//   bench_telemetry PRESET ROUNDS STEPS [key=value]…     HEADROOM_PROGRAM names the program that is the worker
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "headroom/preset.h"
#include "headroom/session.h"

enum { STEPS_MAX = 1000, WARM_STEPS = 3, TAKEN_MAX = 512, TIMEOUT_MS = 120000 };

static const struct timespec between_looks = {.tv_nsec = 15000000}; // the workbench looks no more often

typedef struct turn {
    double seconds[STEPS_MAX]; // from the end of one step to that of the next
    int count;
    uint64_t steps, end_ns; // done so far, and when the last of them was
} turn;

static void must(bool good, const hr_err *err)
{
    if (!good) {
        (void)fprintf(stderr, "bench_telemetry: %s\n", err->sentence);
        exit(1);
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(turn *t, uint64_t steps, uint64_t now_ns)
{
    if (steps == t->steps + 1 && t->end_ns != 0 && t->count < STEPS_MAX) {
        t->seconds[t->count++] = (double)(now_ns - t->end_ns) * 1e-9;
    }
    t->steps = steps;
    t->end_ns = now_ns;
}

static void begin(turn *t)
{
    t->count = 0;
    t->end_ns = 0;
}

static double median_seconds(turn *t)
{
    must(t->count > 0, &(hr_err){.sentence = "no two steps came one after the other"});
    qsort(t->seconds, (size_t)t->count, sizeof *t->seconds, compare);
    return t->seconds[t->count / 2];
}

static hr_command run_of(int steps)
{
    return (hr_command){.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = (uint64_t)steps};
}

// ---- a worker --------------------------------------------------------------------------------------------------

static void take(hr_session *s, turn *t)
{
    static hr_event events[TAKEN_MAX];
    static uint64_t version;
    uint64_t lost = 0;
    hr_report report;
    hr_session_end end;
    for (size_t n = TAKEN_MAX; n == TAKEN_MAX;) {
        n = hr_session_events(s, events, TAKEN_MAX, &lost);
        for (size_t k = 0; k < n; k++) {
            if (events[k].kind == HR_EVENT_STEP) {
                add(t, events[k].step, events[k].time_ns);
            }
        }
    }
    if (hr_session_report(s, &version, &report)) {
        hr_report_deinit(&report);
    }
    if (hr_session_get_life(s, &end) == HR_SESSION_ENDED) {
        (void)fprintf(stderr, "bench_telemetry: the worker ended: %s\n", end.sentence);
        exit(1);
    }
}

static void train_in_worker(hr_session *s, int steps, turn *t)
{
    const hr_command run = run_of(steps);
    const uint64_t target = t->steps + (uint64_t)steps;
    begin(t);
    must(hr_session_send(s, &run), &(hr_err){.sentence = "the worker takes no command"});
    while (t->steps < target) {
        struct pollfd fd = {.fd = hr_session_fd(s), .events = POLLIN};
        must(poll(&fd, 1, TIMEOUT_MS) > 0, &(hr_err){.sentence = "the worker says nothing"});
        take(s, t);
        (void)nanosleep(&between_looks, NULL);
    }
}

// ---- an engine -------------------------------------------------------------------------------------------------

static void train_here(hr_engine *engine, int steps, turn *t)
{
    const hr_command run = run_of(steps);
    hr_err err = {0};
    const uint64_t target = t->steps + (uint64_t)steps;
    begin(t);
    must(hr_engine_command(engine, &run, &err) == HR_OK, &err);
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
        if (hr_engine_steps(engine) > t->steps) {
            add(t, hr_engine_steps(engine), now_ns());
        }
    }
    must(t->steps == target, hr_engine_error(engine));
}

static void print_medians(const char *name, const double *seconds, int count)
{
    printf("\"%s\": [", name);
    for (int k = 0; k < count; k++) {
        printf("%s%.6g", k == 0 ? "" : ", ", seconds[k]);
    }
    putchar(']');
}

static void measure(hr_session *worker, hr_engine *engine, int rounds, int steps)
{
    static turn there, here;
    double *on = calloc((size_t)rounds, sizeof *on), *off = calloc((size_t)rounds, sizeof *off);
    must(on != NULL && off != NULL, &(hr_err){.sentence = "no memory"});
    train_in_worker(worker, WARM_STEPS, &there);
    train_here(engine, WARM_STEPS, &here);
    for (int k = 0; k < rounds; k++) {
        train_in_worker(worker, steps, &there);
        on[k] = median_seconds(&there);
        train_here(engine, steps, &here);
        off[k] = median_seconds(&here);
    }
    printf("{\"steps\": %d, ", steps);
    print_medians("on_seconds", on, rounds);
    printf(", ");
    print_medians("off_seconds", off, rounds);
    puts("}");
    free(on);
    free(off);
}

int main(int argc, char **argv)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_session *worker = NULL;
    hr_engine *engine = NULL;
    const int rounds = argc > 3 ? atoi(argv[2]) : 0, steps = argc > 3 ? atoi(argv[3]) : 0;
    if (rounds < 1 || steps < 2 || steps > STEPS_MAX) {
        (void)fprintf(stderr, "usage: bench_telemetry PRESET ROUNDS STEPS [key=value]...\n");
        return 2;
    }
    must(hr_preset_open(argv[1], false, &preset, NULL, &err) == HR_OK, &err);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (int k = 4; k < argc; k++) {
        must(hr_knobs_set_pair(&knobs, argv[k], &err) == HR_OK, &err);
    }
    const hr_session_options options = {.preset = argv[1], .knobs = &knobs};
    must(hr_session_start(&options, &worker, &err) == HR_OK, &err);
    must(hr_engine_create(preset, &knobs, &(hr_engine_options){0}, &engine, &err) == HR_OK, &err);
    measure(worker, engine, rounds, steps);
    hr_engine_destroy(engine);
    must(hr_session_stop(worker, &err) == HR_OK, &err);
    hr_preset_close(preset);
    return 0;
}
