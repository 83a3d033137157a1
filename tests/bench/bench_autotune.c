// SPDX-License-Identifier: Apache-2.0
// What pipeline.autotune decides, beside every setting by hand: batches a second of generated images, for a step that computes so
// many milliseconds on one core.
//
//   bench_autotune SIDE BATCH STEP_MS ROUNDS
//
// All pipelines are open at once, and each round measures each of them for half a second: what the machine does meanwhile, it does to
// all. What a pipeline had made ready while the others were measured is taken before.
// Autotune has had ten seconds before. One JSON object. Asserts no time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/knobs.h"
#include "headroom/machine.h"

#include "base/clock.h"
#include "data/pipeline.h"

enum { CLASSES = 1000, ROUNDS_MAX = 32, PREFETCHES = 4, CASES_MAX = 64 * PREFETCHES + 2 };
#define SECOND_NS   UINT64_C(1000000000)
#define MEASURED_NS (SECOND_NS / 2)

static const uint32_t prefetches[PREFETCHES] = {1, 2, 4, 8};

typedef struct contender {
    pipeline *p;
    char name[32];
    uint32_t threads, prefetch; // by hand; of autotune, what it uses
    double rate[ROUNDS_MAX];
} contender;

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_autotune: %s\n", err->sentence);
        exit(1);
    }
}

static void set(hr_knobs *knobs, const char *key, const char *value)
{
    char pair[96];
    hr_err err = {0};
    (void)snprintf(pair, sizeof pair, "%s=%s", key, value);
    must(hr_knobs_set_pair(knobs, pair, &err), &err);
}

static pipeline *open_pipeline(uint32_t side, const char *batch, const char *threads, const char *prefetch,
                               const char *autotune)
{
    const pipeline_wire wire = {.train = {DATA_FLOAT}};
    const data_form form = {.count = 2,
                            .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {side, side, 3}},
                                     {.type = DATA_IDS, .is_label = true, .classes = CLASSES}}};
    hr_knobs knobs;
    hr_err err = {0};
    pipeline *p = NULL;
    hr_knobs_init(&knobs);
    set(&knobs, "batch.size", batch);
    set(&knobs, "pipeline.map_threads", threads);
    set(&knobs, "pipeline.prefetch", prefetch);
    set(&knobs, "pipeline.autotune", autotune);
    must(pipeline_open(&knobs, &form, &wire, &p, &err), &err);
    return p;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void compute(uint64_t step_ns)
{
    for (const uint64_t until = cpu_ns() + step_ns; cpu_ns() < until;) {
    }
}

static void take(pipeline *p, uint64_t step_ns)
{
    hr_err err = {0};
    data_item item;
    uint64_t wait_ns;
    must(pipeline_next(p, &item, &wait_ns, &err), &err);
    if (!item.end) {
        compute(step_ns);
    }
}

static uint32_t ready(const pipeline *p)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    const uint32_t count = pipeline_stages(p, info);
    uint32_t length = 0;
    for (uint32_t k = 0; k < count; k++) {
        length = info[k].queue_length > length ? info[k].queue_length : length;
    }
    return length;
}

static double rate_of(pipeline *p, uint64_t step_ns)
{
    // Where batches are made faster than they are taken, there is always one ready.
    for (uint32_t left = 2 * ready(p) + 2; left > 0 && ready(p) > 0; left--) {
        take(p, step_ns);
    }
    const uint64_t began_ns = clock_now_ns();
    uint32_t taken = 0;
    for (; clock_now_ns() - began_ns < MEASURED_NS; taken++) {
        take(p, step_ns);
    }
    return taken * 1e9 / (double)(clock_now_ns() - began_ns);
}

static void read_setting(contender *c)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    const uint32_t count = pipeline_stages(c->p, info);
    for (uint32_t k = 0; k < count; k++) {
        c->threads = strcmp(info[k].name, "map") == 0 ? info[k].threads : c->threads;
        c->prefetch = strcmp(info[k].name, "prefetch") == 0 ? info[k].queue_capacity : c->prefetch;
    }
}

static uint32_t open_all(contender *c, uint32_t side, const char *batch)
{
    static const char *const by[] = {"headroom", "tensorflow"};
    uint32_t count = 0;
    for (size_t k = 0; k < sizeof by / sizeof *by; k++, count++) {
        c[count].p = open_pipeline(side, batch, "auto", "auto", by[k]);
        (void)snprintf(c[count].name, sizeof c->name, "%s", by[k]);
    }
    for (uint32_t threads = 1; threads <= hr_machine_cores() && threads <= 64; threads++) {
        for (int k = 0; k < PREFETCHES; k++, count++) {
            char t[16], p[16];
            (void)snprintf(t, sizeof t, "%" PRIu32, threads);
            (void)snprintf(p, sizeof p, "%" PRIu32, prefetches[k]);
            c[count].p = open_pipeline(side, batch, t, p, "off");
            (void)snprintf(c[count].name, sizeof c->name, "hand");
        }
    }
    return count;
}

static void print_all(const contender *c, uint32_t count, uint32_t rounds)
{
    printf("{\"cores\": %" PRIu32 ", \"settings\": [", hr_machine_cores());
    for (uint32_t k = 0; k < count; k++) {
        printf("%s\n  {\"by\": \"%s\", \"map_threads\": %" PRIu32 ", \"prefetch\": %" PRIu32
               ", \"batches_per_second\": [",
               k == 0 ? "" : ",", c[k].name, c[k].threads, c[k].prefetch);
        for (uint32_t r = 0; r < rounds; r++) {
            printf("%s%.3f", r == 0 ? "" : ", ", c[k].rate[r]);
        }
        printf("]}");
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    static contender c[CASES_MAX];
    const uint32_t side = argc == 5 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const uint64_t step_ns = argc == 5 ? strtoull(argv[3], NULL, 10) * 1000000 : 0;
    const uint32_t rounds = argc == 5 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
    if (side == 0 || rounds == 0 || rounds > ROUNDS_MAX) {
        (void)fputs("usage: bench_autotune SIDE BATCH STEP_MS ROUNDS\n", stderr);
        return 2;
    }
    const uint32_t count = open_all(c, side, argv[2]);
    for (uint32_t k = 0; k < 2; k++) {
        for (const uint64_t began_ns = clock_now_ns(); clock_now_ns() - began_ns < 10 * SECOND_NS;) {
            take(c[k].p, step_ns);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        read_setting(&c[k]);
    }
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t k = 0; k < count; k++) { // none always comes behind the same one
            contender *next = &c[(k + r) % count];
            next->rate[r] = rate_of(next->p, step_ns);
        }
    }
    print_all(c, count, rounds);
    for (uint32_t k = 0; k < count; k++) {
        pipeline_close(c[k].p);
    }
    return 0;
}
