// SPDX-License-Identifier: Apache-2.0
// What the packer reaches, and in how much processor time of its one thread:
//
//   bench_pack [-c CAPACITY] [-s SECONDS] [-r SEED] [-a ALIGNMENT] LIFETIMES.csv…
//   bench_pack -g                                                    programs made up here
//
// Columns id,lower,upper,size; a lifetime is [lower, upper). With a capacity the search ends at the first packing that
// fits, without it at a proven optimum or after SECONDS. Every packing goes through the checker. Asserts no time.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "memory/pack.h"

enum { BUFFERS_MAX = 150000 };

typedef struct settings {
    uint64_t capacity_bytes, seed, alignment_bytes;
    double seconds;
} settings;

static pack_buffer buffers[BUFFERS_MAX];
static uint64_t offsets[BUFFERS_MAX];

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hr_status status, const char *name, const hr_err *err)
{
    if (status != HR_OK) {
        (void)fprintf(stderr, "bench_pack: %s: %s\n", name, err->sentence);
        exit(1);
    }
}

static bool is_late(void *context, const pack_result *so_far)
{
    (void)so_far;
    return cpu_seconds() > *(const double *)context;
}

static void measure(const char *name, uint32_t count, const settings *with)
{
    hr_err err = {0};
    uint64_t height = 0;
    pack_result result;
    double begin = cpu_seconds(), deadline;
    must(pack_offsets(buffers, count, with->alignment_bytes, offsets, &height, &err), name, &err);
    double first_ms = 1e3 * (cpu_seconds() - begin);
    begin = cpu_seconds();
    deadline = begin + with->seconds;
    pack_goal goal = {.capacity_bytes = with->capacity_bytes,
                      .seed = with->seed,
                      .stop = is_late,
                      .stop_context = &deadline};
    must(pack_search(buffers, count, with->alignment_bytes, &goal, offsets, &result, &err), name, &err);
    double search_ms = 1e3 * (cpu_seconds() - begin);
    must(pack_check(buffers, count, with->alignment_bytes, offsets, result.height_bytes, &err), name, &err);
    double bound = (double)result.lower_bound_bytes;
    printf("%-16s %6u  offsets %+8.4f %% %8.2f ms  search %+8.4f %% %9.2f ms  %12" PRIu64 " %-8s %10" PRIu64
           " nodes\n",
           name, count, 100 * ((double)height / bound - 1), first_ms,
           100 * ((double)result.height_bytes / bound - 1), search_ms, result.height_bytes,
           result.optimal                                                                ? "optimal"
           : with->capacity_bytes > 0 && result.height_bytes <= with->capacity_bytes     ? "fits"
           : with->capacity_bytes > 0 && result.lower_bound_bytes > with->capacity_bytes ? "cannot"
                                                                                         : "open",
           result.nodes);
}

static uint32_t read_lifetimes(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint32_t count = 0;
    if (file == NULL || fgets(line, sizeof line, file) == NULL ||
        strncmp(line, "id,lower,upper,size", 19) != 0) {
        (void)fprintf(stderr, "bench_pack: %s: not a table of id,lower,upper,size\n", path);
        exit(1);
    }
    while (count < BUFFERS_MAX && fgets(line, sizeof line, file) != NULL) {
        pack_buffer *b = &buffers[count];
        count +=
            sscanf(line, "%*[^,],%" SCNu32 ",%" SCNu32 ",%" SCNu64, &b->birth, &b->death, &b->bytes) == 3;
    }
    (void)fclose(file);
    return count;
}

// ---- programs -------------------------------------------------------------------------------------------------

static uint64_t draw(uint64_t *seed, uint64_t low, uint64_t high)
{
    *seed = hash64_mix(*seed, 1);
    return low + *seed % (high - low + 1);
}

// A training step of a transformer with `layers` of 20 buffers each in both directions: saved activations that die in
// backward in the reverse order, temporaries of an instruction or three, weights and their gradients, of which the
// gradients are born in backward and live to the end.
static uint32_t make_transformer(uint32_t layers, uint64_t seed)
{
    enum { WEIGHTS = 4, SAVED = 8, TEMPORARIES = 4 };
    uint32_t per_layer = SAVED + TEMPORARIES, end = 2 * layers * per_layer, count = 0;
    uint64_t hidden = 768 * 4, tokens = 2048;
    for (uint32_t l = 0; l < layers; l++) {
        uint32_t begin = l * per_layer, mirror = end - 1 - begin;
        for (uint32_t k = 0; k < WEIGHTS; k++) {
            uint64_t bytes = hidden * draw(&seed, 700, 3200);
            buffers[count++] = (pack_buffer){0, end, bytes};
            buffers[count++] = (pack_buffer){mirror - (uint32_t)draw(&seed, 0, per_layer - 1), end, bytes};
        }
        for (uint32_t k = 0; k < SAVED; k++) {
            uint32_t birth = begin + k;
            buffers[count++] = (pack_buffer){birth, end - birth, hidden * tokens / draw(&seed, 1, 8)};
        }
        for (uint32_t k = 0; k < TEMPORARIES; k++) {
            uint32_t birth = begin + (uint32_t)draw(&seed, 0, per_layer - 1);
            uint32_t back = mirror - (uint32_t)draw(&seed, 0, per_layer - 1);
            buffers[count++] = (pack_buffer){birth, birth + (uint32_t)draw(&seed, 1, 3),
                                             hidden * tokens * draw(&seed, 1, 8) / 2};
            buffers[count++] = (pack_buffer){back, back + 1, hidden * tokens * draw(&seed, 1, 8) / 2};
        }
    }
    return count;
}

// Dense layers, of one width or of random ones: for each the gradients of its weights and of its bias, that live to
// the end, a saved activation and what flows back.
static uint32_t make_dense(uint32_t layers, uint64_t most_units, uint64_t seed)
{
    uint32_t end = 2 * layers + 1, count = 0;
    uint64_t width = 256 * most_units;
    for (uint32_t l = 0; l < layers; l++) {
        uint64_t next = draw(&seed, 1, most_units) * 256;
        next = seed % 2 == 0 && most_units > 1 ? next : width;
        buffers[count++] = (pack_buffer){l, end - 1 - l, width * 32};
        buffers[count++] = (pack_buffer){end - 2 - l, end, width * next};
        buffers[count++] = (pack_buffer){end - 2 - l, end, next * 4};
        buffers[count++] = (pack_buffer){end - 2 - l, end - l, width * 32};
        width = next;
    }
    return count;
}

static void measure_programs(const settings *with)
{
    measure("transformer 42", make_transformer(42, with->seed), with);
    measure("transformer 833", make_transformer(833, with->seed), with);
    measure("dense 300", make_dense(300, 64, with->seed), with);
    measure("dense 30000", make_dense(30000, 1, with->seed), with);
    measure("dense 30000 mixed", make_dense(30000, 64, with->seed), with);
}

int main(int argc, char **argv)
{
    settings with = {.alignment_bytes = 1, .seconds = 10};
    bool has_programs = false;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *value = at + 1 < argc ? argv[at + 1] : "";
        has_programs = has_programs || strcmp(argv[at], "-g") == 0;
        if (strcmp(argv[at], "-c") == 0) {
            with.capacity_bytes = strtoull(value, NULL, 10);
        } else if (strcmp(argv[at], "-s") == 0) {
            with.seconds = strtod(value, NULL);
        } else if (strcmp(argv[at], "-r") == 0) {
            with.seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[at], "-a") == 0) {
            with.alignment_bytes = strtoull(value, NULL, 10);
        } else {
            continue; // -g has no value
        }
        at++;
    }
    if (has_programs) {
        measure_programs(&with);
    }
    for (; at < argc; at++) {
        const char *name = strrchr(argv[at], '/');
        measure(name == NULL ? argv[at] : name + 1, read_lifetimes(argv[at]), &with);
    }
    return 0;
}
