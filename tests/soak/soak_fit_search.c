// SPDX-License-Identifier: Apache-2.0
// Fit's search against every combination there is: questions that are drawn, of preset, card, what is asked about and what may be
// turned. By hand; from the root of the checkout.
//
//   soak_fit_search [--seconds S] [--seed N] [--count N] [--only N]
//
// Each question is asked without a limit, where at the peak of every combination the search must have found something as fast, to 1 %;
// and under a limit that lies at one of them. A line for each that it has not on stderr, one JSON object on stdout; exit 1 then.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/preset.h"

#include "base/hash.h"
#include "unit/fit_grid.h"

#define SHARE 0.01
enum { FREE = 6, MOST = 2000 };

typedef struct tally {
    unsigned questions, missed, limits, missed_limits;
    uint64_t combinations, plans;
} tally;

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t option(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int k = 1; k + 1 < argc; k++) {
        if (strcmp(argv[k], name) == 0) {
            return strtoull(argv[k + 1], NULL, 10);
        }
    }
    return otherwise;
}

static void must(bool holds, const char *why)
{
    if (!holds) {
        (void)fprintf(stderr, "soak_fit_search: %s\n", why);
        exit(2);
    }
}

static void search(const fit_grid *g, hr_fit_found *found, tally *t)
{
    hr_err err = {0};
    must(hr_planner_fit(g->planner, &g->asked, &g->wish, NULL, NULL, found, &err) == HR_OK, err.sentence);
    t->combinations += (uint64_t)g->count;
    t->plans += found->plans;
}

static void say(const fit_grid *g, uint64_t n, int at, const char *limit, double found_seconds)
{
    hr_knobs knobs;
    char pairs[256], card[HR_KNOB_TEXT_MAX];
    (void)fit_turn(&g->asked, &g->combinations[at], &knobs, pairs, sizeof pairs);
    (void)fprintf(stderr,
                  "%" PRIu64 ": %s on %s%s, %d combinations: %g s with %" PRIu64 " B, found %g s: %s\n", n,
                  g->preset, hr_knob_format(&g->asked, HR_KNOB_DEVICE_CARD, card), limit, g->count,
                  g->plans[at].step_seconds, g->plans[at].peak_in_use_bytes, found_seconds, pairs);
}

static void ask_freely(fit_grid *g, uint64_t n, tally *t)
{
    static hr_fit_found found;
    search(g, &found, t);
    const int missed = fit_grid_missed(g, &found, SHARE);
    t->questions++;
    if (missed >= 0) {
        t->missed++;
        say(g, n, missed, "", fit_grid_found(&found, g->plans[missed].peak_in_use_bytes));
    }
}

static void ask_under_a_limit(fit_grid *g, uint64_t n, tally *t)
{
    static hr_fit_found found;
    char limit[48];
    int best = -1;
    const hr_whatif *some = &g->plans[fit_grid_draw(g, (uint32_t)g->count)];
    (void)snprintf(limit, sizeof limit, "device.vram=%" PRIu64 "B", some->peak_in_use_bytes + 4096);
    must(hr_knobs_set_pair(&g->asked, limit, NULL) == HR_OK && fit_grid_plan(g, FIT_GRID_MAX), limit);
    for (int k = 0; k < g->count; k++) {
        const bool is_best = best < 0 || g->plans[k].step_seconds < g->plans[best].step_seconds;
        best = g->plans[k].fits && is_best ? k : best;
    }
    search(g, &found, t);
    const hr_fit_way *way = hr_fit_fastest(&found, true);
    const double seconds = way == NULL ? (double)INFINITY : way->point.plan.step_seconds;
    t->limits++;
    if (best >= 0 && seconds > (1 + SHARE) * g->plans[best].step_seconds) {
        t->missed_limits++;
        say(g, n, best, limit + strlen("device.vram"), seconds);
    }
}

static void ask(uint64_t seed, uint64_t n, tally *t)
{
    static fit_grid g;
    char why[512];
    memset(&g, 0, sizeof g);
    g.seed = hash64_mix(seed, n);
    must(fit_grid_open(&g, why, sizeof why), why);
    fit_grid_turn_asked(&g);
    fit_grid_draw_wish(&g, FREE, MOST);
    if (g.count > 0) {
        ask_freely(&g, n, t);
        ask_under_a_limit(&g, n, t);
    }
    fit_grid_close(&g);
}

int main(int argc, char **argv)
{
    tally t = {0};
    const double until = now_seconds() + (double)option(argc, argv, "--seconds", 60);
    const uint64_t seed = option(argc, argv, "--seed", 1), only = option(argc, argv, "--only", UINT64_MAX);
    const uint64_t count = option(argc, argv, "--count", UINT64_MAX);
    hr_preset_search_beside(".");
    if (only != UINT64_MAX) {
        ask(seed, only, &t);
    } else {
        for (uint64_t n = 0; now_seconds() < until && n < count; n++) {
            ask(seed, n, &t);
        }
    }
    printf("{\"questions\": %u, \"missed\": %u, \"limits\": %u, \"missed_limits\": %u, \"combinations\": "
           "%" PRIu64 ", \"plans\": %" PRIu64 ", \"seed\": %" PRIu64 "}\n",
           t.questions, t.missed, t.limits, t.missed_limits, t.combinations, t.plans, seed);
    return t.missed + t.missed_limits == 0 ? 0 : 1;
}
