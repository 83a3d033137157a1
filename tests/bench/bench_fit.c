// SPDX-License-Identifier: Apache-2.0
// What Fit finds against every combination there is:
//
//   bench_fit PRESET [key=value… | keep:WORDS…]
//
// Plans every legal combination of Fit's turns once, then searches under limits from the least peak to that of the fastest,
// and prints, as JSON, how much slower the search's fastest is than the fastest there is, and the plans and seconds of both.
// What never helps is left out of both, so that everything can be planned: see `left_out`. Asserts nothing.
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

#include "insight/fit_search.h"
#include "insight/fit_turns.h"

enum { THREADS = 2, PIECE = 64, LIMITS = 10 };

static const hr_knob_id left_out[] = {HR_KNOB_OFFLOAD_PREFETCH, HR_KNOB_ALLOCATOR_GROWTH,
                                      HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, HR_KNOB_PRECISION_TF32,
                                      HR_KNOB_EXECUTION_INPLACE};

typedef struct combination {
    fit_combination c;
    bool planned;
    uint64_t peak_bytes;
    double seconds;
} combination;

static struct {
    const hr_planner *planner;
    hr_knobs asked;
    hr_fit_wish wish;
    combination *all;
    size_t count, room, next;
    pthread_mutex_t lock;
} grid = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_fit: %s\n", err->sentence);
        exit(1);
    }
}

// ---- every combination ----------------------------------------------------------------------------------------

static void add(const fit_combination *c)
{
    if (grid.count == grid.room) {
        grid.room = grid.room > 0 ? 2 * grid.room : 65536;
        grid.all = realloc(grid.all, grid.room * sizeof *grid.all);
        if (grid.all == NULL) {
            abort();
        }
    }
    grid.all[grid.count++] = (combination){.c = *c};
}

static void enumerate(fit_combination *c, int dimension)
{
    hr_knobs knobs;
    char pairs[256];
    if (dimension == FIT_DIMENSIONS) {
        if (fit_turn(&grid.asked, c, &knobs, pairs, sizeof pairs)) {
            add(c);
        }
        return;
    }
    for (int word = FIT_AS_ASKED; word < fit_words(&grid.asked, &grid.wish, dimension); word++) {
        c->word[dimension] = (int8_t)word;
        enumerate(c, dimension + 1);
    }
    c->word[dimension] = FIT_AS_ASKED;
}

static void plan_one(combination *one)
{
    hr_knobs knobs;
    char pairs[256];
    hr_whatif w;
    if (fit_turn(&grid.asked, &one->c, &knobs, pairs, sizeof pairs) &&
        hr_planner_plan(grid.planner, &knobs, &w, NULL) == HR_OK && w.missing_bytes == 0) {
        one->planned = true;
        one->peak_bytes = w.peak_in_use_bytes;
        one->seconds = w.step_seconds;
    }
}

static void *plan_pieces(void *unused)
{
    size_t at;
    do {
        (void)pthread_mutex_lock(&grid.lock);
        at = grid.next;
        grid.next += PIECE;
        (void)pthread_mutex_unlock(&grid.lock);
        for (size_t k = at; k < at + PIECE && k < grid.count; k++) {
            plan_one(&grid.all[k]);
        }
    } while (at < grid.count);
    return unused;
}

static double plan_all(void)
{
    pthread_t threads[THREADS];
    fit_combination c = fit_as_asked();
    const double begin = now();
    enumerate(&c, 0);
    for (int k = 0; k < THREADS; k++) {
        if (pthread_create(&threads[k], NULL, plan_pieces, NULL) != 0) {
            abort();
        }
    }
    for (int k = 0; k < THREADS; k++) {
        (void)pthread_join(threads[k], NULL);
    }
    return now() - begin;
}

// ---- against the search ---------------------------------------------------------------------------------------

// Where every combination is planned without a limit, a limit is a peak that it must keep.
static double fastest_below(uint64_t limit_bytes)
{
    double seconds = INFINITY;
    for (size_t k = 0; k < grid.count; k++) {
        const combination *one = &grid.all[k];
        seconds = one->planned && one->peak_bytes <= limit_bytes ? fmin(seconds, one->seconds) : seconds;
    }
    return seconds;
}

static void find_ends(uint64_t *least_bytes, uint64_t *most_bytes)
{
    double seconds = INFINITY;
    *least_bytes = UINT64_MAX;
    for (size_t k = 0; k < grid.count; k++) {
        const combination *one = &grid.all[k];
        *least_bytes = one->planned && one->peak_bytes < *least_bytes ? one->peak_bytes : *least_bytes;
        if (one->planned && one->seconds < seconds) {
            seconds = one->seconds;
            *most_bytes = one->peak_bytes;
        }
    }
}

typedef struct found {
    hr_fit_point points[HR_FIT_POINTS_MAX];
    uint32_t count, plans;
    double seconds;
} found;

static void search(found *f)
{
    fit_search *s = NULL;
    hr_err err = {0};
    fit_search_result result = FIT_SEARCH_WORKED;
    const double begin = now();
    *f = (found){.plans = 0};
    must(fit_search_create(&grid.asked, &grid.wish, false, &s, &err), &err);
    while (result != FIT_SEARCH_LAST) {
        result = fit_search_advance(s, grid.planner, &f->points[f->count], &err);
        must(result == FIT_SEARCH_REFUSED ? err.status : HR_OK, &err);
        f->count += result != FIT_SEARCH_WORKED;
        f->plans++;
    }
    fit_search_destroy(s);
    f->seconds = now() - begin;
}

static double found_below(const found *f, uint64_t limit_bytes)
{
    double seconds = INFINITY;
    for (uint32_t k = 0; k < f->count; k++) {
        const hr_whatif *w = &f->points[k].plan;
        seconds = w->peak_in_use_bytes <= limit_bytes && w->missing_bytes == 0
                      ? fmin(seconds, w->step_seconds)
                      : seconds;
    }
    return seconds;
}

static void print_limits(const found *f)
{
    uint64_t least_bytes, most_bytes = 0;
    find_ends(&least_bytes, &most_bytes);
    printf(" \"limits\": [");
    for (int k = 0; k <= LIMITS; k++) {
        const double share = (double)k / LIMITS;
        const uint64_t limit_bytes =
            (uint64_t)((double)least_bytes * pow((double)most_bytes / (double)least_bytes, share));
        const double best = fastest_below(limit_bytes);
        const double slower = found_below(f, limit_bytes) / best - 1;
        printf("%s\n  {\"limit_bytes\": %" PRIu64 ", \"fastest_seconds\": %.6g, \"slower\": ",
               k > 0 ? "," : "", limit_bytes, best);
        if (isfinite(slower)) {
            printf("%.6g}", slower);
        } else {
            fputs("null}", stdout); // the search found nothing as small
        }
    }
    puts("]}");
}

int main(int argc, char **argv)
{
    static found f;
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench_fit PRESET [key=value… | keep:WORDS…]\n");
        return 2;
    }
    must(hr_preset_open(argv[1], true, &preset, NULL, &err), &err);
    grid.asked = *hr_preset_knobs(preset);
    grid.wish.permission = HR_PERMIT_OPTIMIZER;
    for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++) {
        grid.wish.keeps[left_out[k]] = true;
    }
    for (int k = 2; k < argc; k++) {
        static const char keep[] = "keep:";
        must(strncmp(argv[k], keep, strlen(keep)) == 0 ? hr_fit_keep(&grid.wish, argv[k] + strlen(keep), &err)
                                                       : hr_knobs_set_pair(&grid.asked, argv[k], &err),
             &err);
    }
    must(hr_planner_open(preset, &planner, &err), &err);
    grid.planner = planner;
    const double seconds = plan_all();
    search(&f);
    printf("{\"preset\": \"%s\",\n \"combinations\": %zu, \"seconds\": %.4g, \"threads\": %d,\n"
           " \"plans\": %u, \"points\": %u, \"search_seconds\": %.4g,\n",
           argv[1], grid.count, seconds, (int)THREADS, f.plans, f.count, f.seconds);
    print_limits(&f);
    hr_planner_close(planner);
    hr_preset_close(preset);
    free(grid.all);
    return 0;
}
