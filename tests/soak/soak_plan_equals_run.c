// SPDX-License-Identifier: Apache-2.0
// The promise that a plan is the run, over every configuration, in a seeded order, until the time is up. Minutes, by
// hand; from the root of the checkout.
//
//   soak_plan_equals_run [--seconds S] [--seed N]    S = 0, the default: all of them
//
// A line for each configuration on stderr, one JSON object on stdout.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/preset.h"

#include "cli/plan_equals_run.h"

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static void shuffle(unsigned numbers[EXACTNESS_CASES], uint64_t seed)
{
    for (unsigned k = 0; k < EXACTNESS_CASES; k++) {
        unsigned j = (unsigned)(random_next(&seed) % (k + 1));
        numbers[k] = numbers[j];
        numbers[j] = k;
    }
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

static bool check_one(unsigned number)
{
    exactness_case c = exactness_case_number(number);
    char name[96];
    char why[256] = "";
    uint64_t peak_bytes = 0;
    double begin = now_seconds();
    bool holds = exactness_holds(&c, &peak_bytes, why, sizeof why);
    fprintf(stderr, "%-58s %12" PRIu64 " B %6.2f s  %s%s\n", exactness_name(&c, name, sizeof name),
            peak_bytes, now_seconds() - begin, holds ? "same" : "BROKEN: ", why);
    return holds;
}

int main(int argc, char **argv)
{
    unsigned numbers[EXACTNESS_CASES];
    unsigned done = 0;
    unsigned broken = 0;
    double limit = (double)option(argc, argv, "--seconds", 0);
    uint64_t seed = option(argc, argv, "--seed", 1);
    double begin = now_seconds();
    hr_preset_search_beside(".");
    shuffle(numbers, seed);
    while (done < EXACTNESS_CASES && (limit <= 0 || now_seconds() - begin < limit)) {
        broken += !check_one(numbers[done++]);
    }
    printf("{\"configurations\": %u, \"of\": %u, \"steps\": %u, \"broken\": %u, \"seed\": %" PRIu64 "}\n",
           done, (unsigned)EXACTNESS_CASES, (unsigned)EXACTNESS_STEPS, broken, seed);
    return broken != 0;
}
