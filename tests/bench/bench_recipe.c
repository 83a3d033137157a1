// SPDX-License-Identifier: Apache-2.0
// What an empty step callback costs a training, in processor time of the whole process: a session in this process whose guest
// listens or does not, in turns, as it goes on by itself and within hr.run. Prints JSON: medians and least of the
// rounds.
//
//   bench_recipe PRESET ROUNDS STEPS [key=value]…
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/preset.h"
#include "headroom/session.h"

#include "app/lua/lua_script.h"

enum { ROUNDS_MAX = 1000, WAYS = 4, WARM_STEPS = 5, TEXT_MAX = 128 };

static const struct way {
    const char *name;
    bool listens, within_run;
} ways[WAYS] = {{"goes on", false, false},
                {"goes on, heard", true, false},
                {"hr.run", false, true},
                {"hr.run, heard", true, true}};

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "bench_recipe: %s\n", what);
        exit(1);
    }
}

static double processor_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void drain(hr_session *s)
{
    static hr_event events[512];
    static uint64_t cursor;
    static char said[1 << 16];
    uint64_t lost = 0;
    while (hr_session_events(s, events, 512, &lost) > 0) {
    }
    while (hr_session_said(s, &cursor, said, sizeof said) > 0) {
        must(said[0] != HR_GUEST_ERROR, said);
    }
}

static void order(hr_session *s, const char *chunk)
{
    must(hr_session_order(s, HR_GUEST_CHUNK, chunk), "no order was taken");
    (void)hr_session_advance(s, 1);
    drain(s);
}

static double train(hr_session *s, const struct way *w, unsigned steps)
{
    char text[TEXT_MAX];
    order(s, w->listens ? "hr.on('step', nil) hr.on('step', function() end)" : "hr.on('step', nil)");
    const double begin = processor_seconds();
    if (w->within_run) {
        (void)snprintf(text, sizeof text, "hr.run{steps = %u}", steps);
        order(s, text);
    } else {
        const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps};
        must(hr_session_send(s, &run), "no command was taken");
        while (hr_session_advance(s, steps)) {
        }
    }
    const double seconds = processor_seconds() - begin;
    drain(s);
    return seconds / steps;
}

static hr_session *open_session(int argc, char **argv)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_session *s = NULL;
    must(hr_preset_open(argv[1], false, &preset, NULL, &err) == HR_OK, err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (int k = 4; k < argc; k++) {
        must(hr_knobs_set_pair(&knobs, argv[k], &err) == HR_OK, err.sentence);
    }
    const hr_session_options options = {
        .preset = hr_preset_path(preset), .knobs = &knobs, .guest = &lua_script_guest};
    must(hr_session_start_inline(&options, &s, &err) == HR_OK, err.sentence);
    hr_preset_close(preset);
    return s;
}

int main(int argc, char **argv)
{
    static double seconds[WAYS][ROUNDS_MAX];
    must(argc >= 4, "PRESET ROUNDS STEPS [key=value]…");
    const int rounds = atoi(argv[2]);
    const unsigned steps = (unsigned)atoi(argv[3]);
    must(rounds > 0 && rounds <= ROUNDS_MAX && steps > 0, "ROUNDS and STEPS are numbers from 1");
    hr_preset_search_beside(".");
    hr_session *s = open_session(argc, argv);
    (void)train(s, &ways[0], WARM_STEPS);
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            seconds[way][round] = train(s, &ways[way], steps);
        }
    }
    printf("{\"preset\": \"%s\", \"rounds\": %d, \"steps\": %u, \"processor_us_per_step\": {", argv[1],
           rounds, steps);
    for (int way = 0; way < WAYS; way++) {
        qsort(seconds[way], (size_t)rounds, sizeof seconds[way][0], compare);
        printf("%s\"%s\": [%.2f, %.2f]", way > 0 ? ", " : "", ways[way].name, 1e6 * seconds[way][rounds / 2],
               1e6 * seconds[way][0]);
    }
    printf("}}\n");
    return hr_session_stop(s, NULL) == HR_OK ? 0 : 1;
}
