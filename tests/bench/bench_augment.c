// SPDX-License-Identifier: Apache-2.0
// What augmentation costs on the way from a record into a batch of float32, sample by sample as a batch is made, on one thread.
//
//   bench_augment SIDE SAMPLES ROUNDS
//
// One JSON object, medians of ROUNDS: the microseconds of processor time that an image of SIDE × SIDE × 3 takes from its planes to its
// values with each list of pipeline.augment, and those in which memcpy moves as many bytes in and out (the floor). Asserts no time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/knobs.h"

#include "data/augment.h"
#include "data/pixels.h"

enum { ROUNDS_MAX = 1001, CHANNELS = 3 };

typedef struct job {
    image_size size;
    uint32_t samples;
    uint8_t *planes, *image, *spare;
    float *batch;
} job;

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void make_batch(const job *j, const data_augment *a, uint64_t epoch)
{
    const uint64_t values = image_bytes(&j->size);
    for (uint32_t k = 0; k < j->samples; k++) {
        pixels_of_planes(j->image, j->planes + k * values, values / CHANNELS, CHANNELS);
        const uint8_t *out = data_augment_image(a, epoch, k, &j->size, j->image, j->spare);
        pixels_write(j->batch + k * values, PIXELS_F32, out, values, false);
    }
}

// As many bytes read and written as by make_batch: 5 for a value.
static void copy_batch(const job *j)
{
    const uint64_t half = image_bytes(&j->size) * 5 / 2;
    for (uint32_t k = 0; k < j->samples; k++) {
        memcpy((uint8_t *)j->batch + k * half, j->planes + k * half, half);
    }
}

// `list` NULL: the floor.
static double microseconds_of(const job *j, const char *list, uint32_t rounds)
{
    double took[ROUNDS_MAX];
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    if (list != NULL && hr_knobs_set(&knobs, HR_KNOB_PIPELINE_AUGMENT, list, NULL) != HR_OK) {
        exit(1);
    }
    const data_augment a = data_augment_of(&knobs);
    for (uint32_t k = 0; k < rounds; k++) {
        const double began = cpu_seconds();
        if (list == NULL) {
            copy_batch(j);
        } else {
            make_batch(j, &a, k);
        }
        took[k] = 1e6 * (cpu_seconds() - began) / j->samples;
    }
    qsort(took, rounds, sizeof *took, by_value);
    return took[rounds / 2];
}

int main(int argc, char **argv)
{
    static const char *const lists[] = {
        "none",       "flip",      "crop:4", "flip,crop:4",
        "colour:0.4", "rotate:15", "erase",  "flip,crop:4,colour:0.4,rotate:15,erase"};
    const uint32_t side = argc == 4 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const uint32_t samples = argc == 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    const uint32_t rounds = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    if (side == 0 || side > 4096 || samples == 0 || samples > 65536 || rounds == 0 || rounds > ROUNDS_MAX) {
        (void)fputs("usage: bench_augment SIDE SAMPLES ROUNDS\n", stderr);
        return 2;
    }
    job j = {.size = {side, side, CHANNELS}, .samples = samples};
    const uint64_t values = image_bytes(&j.size);
    j.planes = malloc((samples * 5 / 2 + 3) * values);
    j.image = malloc(values);
    j.spare = malloc(values);
    j.batch = malloc(samples * values * sizeof *j.batch);
    if (j.planes == NULL || j.image == NULL || j.spare == NULL || j.batch == NULL) {
        (void)fputs("bench_augment: no memory\n", stderr);
        return 1;
    }
    for (uint64_t k = 0; k < (samples * 5 / 2 + 3) * values; k++) {
        j.planes[k] = (uint8_t)(k * 31 + (k >> 9));
    }
    memset(j.batch, 1, samples * values * sizeof *j.batch);
    printf("{\"side\": %u, \"samples\": %u, \"copy_of_as_many\": %.3f", side, samples,
           microseconds_of(&j, NULL, rounds));
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        printf(", \"%s\": %.3f", lists[k], microseconds_of(&j, lists[k], rounds));
    }
    puts("}");
    free(j.planes);
    free(j.image);
    free(j.spare);
    free(j.batch);
    return 0;
}
