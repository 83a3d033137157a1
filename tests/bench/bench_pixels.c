// SPDX-License-Identifier: Apache-2.0
// What becomes of an image's bytes on their way into a batch, on THREADS threads as a batch is written, sample by sample.
//
//   bench_pixels THREADS ROUNDS [SAMPLES]
//
// One JSON object, medians of ROUNDS: seconds in which a batch of SAMPLES (256) × 224 × 224 × 3 bytes becomes values of each type,
// through the caches and past them, and the seconds of one reader that then goes through the batch; the seconds in which
// memcpy moves as many bytes in and out as bytes become float16 (the floor). Asserts no time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "data/pixels.h"

enum { SAMPLES = 256, SAMPLES_MAX = 4096, VALUES = 224 * 224 * 3, ROUNDS_MAX = 1001 };

typedef struct job {
    const uint8_t *from;
    uint8_t *to;
    pixels_type type;
    bool past_caches;
    uint32_t samples;
} job;

static void write_samples(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const size_t bytes = (size_t)VALUES * pixels_value_bytes(j->type);
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        pixels_write(j->to + (size_t)k * bytes, j->type, j->from + (size_t)k * VALUES, VALUES,
                     j->past_caches);
    }
}

// As many bytes read and written as for float16: 3 for 3.
static void copy_samples(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const size_t half = (size_t)VALUES * 3 / 2;
    (void)worker;
    memcpy(j->to + (size_t)begin * half, j->from + (size_t)begin * half, (size_t)(end - begin) * half);
}

static void read_batch(const job *j)
{
    const uint64_t words = (uint64_t)j->samples * VALUES * pixels_value_bytes(j->type) / sizeof(uint64_t);
    uint64_t sum = 0;
    for (uint64_t k = 0; k < words; k++) {
        sum += ((const uint64_t *)(const void *)j->to)[k];
    }
    *(volatile uint8_t *)j->to = (uint8_t)(j->to[0] + (sum == 1));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds, uint32_t count)
{
    qsort(seconds, count, sizeof *seconds, by_value);
    return seconds[count / 2];
}

static double since(uint64_t began_ns)
{
    return 1e-9 * (double)(clock_now_ns() - began_ns);
}

static void print_case(const char *name, workers *w, const job *j, workers_body body, uint32_t rounds)
{
    double wrote[ROUNDS_MAX], then_read[ROUNDS_MAX];
    for (uint32_t k = 0; k < rounds; k++) {
        uint64_t began_ns = clock_now_ns();
        workers_for(w, j->samples, 1, body, j);
        wrote[k] = since(began_ns);
        began_ns = clock_now_ns();
        read_batch(j);
        then_read[k] = since(began_ns);
    }
    printf("\"%s\": {\"seconds\": %.6f, ", name, median(wrote, rounds));
    printf("\"seconds_least\": %.6f, \"then_read_seconds\": %.6f}", wrote[0], median(then_read, rounds));
}

static void print_all(workers *w, uint8_t *from, uint8_t *to, uint32_t samples, uint32_t rounds)
{
    static const char *const names[] = {"float32", "float64", "float16", "bfloat16"};
    char name[64];
    job j = {.from = from, .to = to, .type = PIXELS_F16, .samples = samples};
    print_case("copy_of_as_many", w, &j, copy_samples, rounds);
    for (int type = 0; type < PIXELS_TYPE_COUNT; type++) {
        for (int past = 0; past < 2; past++) {
            j.type = (pixels_type)type;
            j.past_caches = past == 1;
            (void)snprintf(name, sizeof name, "%s%s", names[type], past == 1 ? "_past_caches" : "");
            (void)fputs(", ", stdout);
            print_case(name, w, &j, write_samples, rounds);
        }
    }
}

int main(int argc, char **argv)
{
    const uint32_t threads = argc >= 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const uint32_t rounds = argc >= 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    const uint32_t samples = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : SAMPLES;
    const size_t values = (size_t)samples * VALUES;
    uint8_t *from = malloc(2 * values), *to = malloc(8 * values);
    workers *w = NULL;
    if (threads == 0 || rounds == 0 || rounds > ROUNDS_MAX || samples == 0 || samples > SAMPLES_MAX) {
        (void)fputs("usage: bench_pixels THREADS ROUNDS [SAMPLES]\n", stderr);
        return 2;
    }
    if (from == NULL || to == NULL || workers_create(threads, &w, NULL) != HR_OK) {
        (void)fputs("bench_pixels: no memory or no thread\n", stderr);
        return 1;
    }
    for (size_t k = 0; k < 2 * values; k++) {
        from[k] = (uint8_t)(k * 31 + (k >> 9));
    }
    memset(to, 1, 8 * values);
    printf("{\"threads\": %u, \"values\": %zu, ", threads, values);
    print_all(w, from, to, samples, rounds);
    puts("}");
    workers_destroy(w);
    free(from);
    free(to);
    return 0;
}
