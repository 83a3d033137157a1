// SPDX-License-Identifier: Apache-2.0
// What a batch of images, generated ones or others, costs the host: processor time of one thread that makes batches as a card's first layer
// reads them, where they lie when the card copies them.
//
//   bench_pipeline SIDE BATCH float32|float16|bfloat16 [KEY=VALUE…]
//
// One JSON object: seconds of a batch, the least and the mean, and samples a second that one core makes. Asserts no time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/knobs.h"

#include "data/pipeline.h"

enum { CLASSES = 1000, VALUES_TO_MAKE = 1 << 27 };

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hr_status status, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_pipeline: %s\n", err->sentence);
        exit(1);
    }
}

static data_type type_of(const char *word)
{
    return strcmp(word, "bfloat16") == 0 ? DATA_BF16 : strcmp(word, "float16") == 0 ? DATA_F16 : DATA_FLOAT;
}

static pipeline *open_pipeline(uint32_t side, uint32_t batch, const char *type, char **pairs)
{
    const pipeline_wire wire = {.train = {type_of(type)}};
    const data_form form = {.count = 2,
                            .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {side, side, 3}},
                                     {.type = DATA_IDS, .is_label = true, .classes = CLASSES}}};
    hr_knobs knobs;
    hr_err err = {0};
    pipeline *p = NULL;
    char pair[64];
    hr_knobs_init(&knobs);
    (void)snprintf(pair, sizeof pair, "batch.size=%" PRIu32, batch);
    must(hr_knobs_set_pair(&knobs, pair, &err), &err);
    must(hr_knobs_set_pair(&knobs, "pipeline.prefetch=0", &err), &err); // in this thread
    must(hr_knobs_set_pair(&knobs, "pipeline.map_threads=1", &err), &err);
    for (; *pairs != NULL; pairs++) {
        must(hr_knobs_set_pair(&knobs, *pairs, &err), &err);
    }
    must(pipeline_open(&knobs, &form, &wire, &p, &err), &err);
    return p;
}

static void measure(uint32_t side, uint32_t batch, const char *type, char **pairs)
{
    const uint64_t values = (uint64_t)side * side * 3 * batch;
    const uint32_t batches = (uint32_t)(1 + VALUES_TO_MAKE / values);
    pipeline *p = open_pipeline(side, batch, type, pairs);
    double made = 0, least = 0;
    uint32_t count = 0;
    // The first batch takes its memory.
    for (uint32_t k = 0; k <= batches; k++) {
        hr_err err = {0};
        data_item item;
        uint64_t wait_ns;
        const double begin = cpu_seconds();
        must(pipeline_next(p, &item, &wait_ns, &err), &err);
        const double took = cpu_seconds() - begin;
        if (k == 0 || item.end || item.count < batch) {
            continue;
        }
        made += took;
        least = count == 0 || took < least ? took : least;
        count++;
    }
    printf("{\"make_seconds\": %.6f, \"make_seconds_least\": %.6f, \"samples_per_second\": %.0f}\n",
           made / count, least, count * batch / made);
    pipeline_close(p);
}

int main(int argc, char **argv)
{
    const uint32_t side = argc >= 4 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const uint32_t batch = argc >= 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (side == 0 || batch == 0) {
        (void)fputs("usage: bench_pipeline SIDE BATCH float32|float16|bfloat16 [KEY=VALUE...]\n", stderr);
        return 2;
    }
    measure(side, batch, argv[3], argv + 4);
    return 0;
}
