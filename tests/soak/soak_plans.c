// SPDX-License-Identifier: Apache-2.0
// A million what-ifs in one process: nothing may grow. Each turns one knob of one of some presets, in a seeded order,
// on a card and on the cpu; the process's resident bytes are read when every question has been asked a few times, and
// at the end. From the root of the checkout.
//
//   soak_plans [--seconds S] [--seed N]    until a million plans are made, or the time is up when S is not 0
//
// One JSON object on stdout; exit 1 when resident bytes grew by more than GROWTH_BYTES or a plan was another one.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

enum { PLANS = 1000 * 1000, WARM_UP = 5000, PRESETS = 4, TURNS = 8 };
#define GROWTH_BYTES ((int64_t)1 << 20)

static const char *const preset_names[PRESETS] = {"cifar10_separable_cnn", "resnet50_tiny", "gpt2_124m_tiny",
                                                  "lstm_lm_medium_tiny"};
static const struct {
    hr_knob_id id;
    const char *value;
} turns[TURNS] = {
    {HR_KNOB_BATCH_SIZE, "7"},
    {HR_KNOB_BATCH_SIZE, "24"},
    {HR_KNOB_EXECUTION_MODE, "graph"},
    {HR_KNOB_PRECISION_POLICY, "mixed_bfloat16"},
    {HR_KNOB_CHECKPOINT_STRATEGY, "sqrt"},
    {HR_KNOB_OPTIMIZER_KIND, "sgd"},
    {HR_KNOB_BATCH_ACCUMULATE, "4"},
    {HR_KNOB_DEVICE_KIND, "plan"},
};

typedef struct subject {
    hr_preset *preset;
    hr_planner *planner;
    hr_knobs knobs;
    uint64_t peak_bytes[TURNS]; // of the first plan of each; 0: not asked yet
} subject;

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int64_t resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) {
        (void)fputs("soak_plans: /proc/self/statm cannot be read\n", stderr);
        exit(5);
    }
    (void)fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
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

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "soak_plans: %s\n", err->sentence);
        exit(1);
    }
}

static void open_subject(subject *s, const char *name)
{
    hr_err err = {0};
    *s = (subject){0};
    must(hr_preset_open(name, false, &s->preset, NULL, &err), &err);
    must(hr_planner_open(s->preset, &s->planner, &err), &err);
    s->knobs = *hr_preset_knobs(s->preset);
    must(hr_knobs_set(&s->knobs, HR_KNOB_DEVICE_CARD, "rtx3070-8g", &err), &err);
}

static void close_subject(subject *s)
{
    hr_planner_close(s->planner);
    hr_preset_close(s->preset);
}

// Asks one question; false when its answer was another one before.
static bool ask(subject *s, unsigned turn)
{
    hr_whatif answer;
    hr_err err = {0};
    must(hr_planner_turn(s->planner, &s->knobs, turns[turn].id, turns[turn].value, &answer, &err), &err);
    if (s->peak_bytes[turn] == 0) {
        s->peak_bytes[turn] = answer.peak_in_use_bytes;
    }
    return answer.peak_in_use_bytes == s->peak_bytes[turn];
}

// Makes plans until there are `count` of them or the time is up; *changed counts answers that were others before.
static unsigned plan_until(subject *subjects, unsigned done, unsigned count, double deadline, uint64_t *seed,
                           unsigned *changed)
{
    while (done < count && (deadline <= 0 || now_seconds() < deadline)) {
        uint64_t r = random_next(seed);
        *changed += !ask(&subjects[r % PRESETS], (unsigned)(r / PRESETS % TURNS));
        done++;
    }
    return done;
}

int main(int argc, char **argv)
{
    subject subjects[PRESETS];
    unsigned changed = 0;
    uint64_t seed = option(argc, argv, "--seed", 1);
    uint64_t first_seed = seed;
    double seconds = (double)option(argc, argv, "--seconds", 0);
    double begin = now_seconds();
    double deadline = seconds > 0 ? begin + seconds : 0;
    hr_preset_search_beside(".");
    for (unsigned k = 0; k < PRESETS; k++) {
        open_subject(&subjects[k], preset_names[k]);
    }
    unsigned done = plan_until(subjects, 0, WARM_UP, deadline, &seed, &changed);
    int64_t bytes_at_start = resident_bytes();
    done = plan_until(subjects, done, PLANS, deadline, &seed, &changed);
    int64_t bytes_at_end = resident_bytes();
    for (unsigned k = 0; k < PRESETS; k++) {
        close_subject(&subjects[k]);
    }
    bool grew = bytes_at_end - bytes_at_start > GROWTH_BYTES;
    printf("{\"plans\": %u, \"plan_seconds\": %.1f, \"resident_bytes_at_start\": %" PRId64
           ", \"resident_bytes_at_end\": %" PRId64 ", \"changed\": %u, \"seed\": %" PRIu64 "}\n",
           done, now_seconds() - begin, bytes_at_start, bytes_at_end, changed, first_seed);
    return grew || changed != 0 || done <= WARM_UP;
}
