// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per allocation and release of 1 KiB in a 256 MiB pool, as XLA measures its own allocator
// (bfc_allocator_test.cc: BM_AllocAndFree, BM_AllocBatchThenFree), in heaps that are already in pieces, and over a
// stream of requests shaped like training. For each allocator named, or for all that need no plan; `malloc` is the
// process's own (LD_PRELOAD decides whose). Prints medians of 11; asserts nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "../memory/requests.h"
#include "base/clock.h"
#include "memory/allocator.h"

enum { ROUNDS = 11, PAIRS = 200000, BLOCK_BYTES = 1024, BATCH_MAX = 65536 };

// What is measured: an allocator of ours, or (NULL) malloc.
static allocator *heap;
static uint64_t addresses[BATCH_MAX];

static uint64_t ask(void *context, uint64_t bytes, uint32_t stream)
{
    uint64_t address = 0;
    (void)context;
    if (heap == NULL) {
        return (uint64_t)(uintptr_t)malloc(bytes);
    }
    allocator_request request = {.bytes = bytes, .tensor = HR_NO_ID, .stream = stream};
    return allocator_serve(heap, &request, &address, NULL) == HR_OK ? address : 0;
}

static void give(void *context, uint64_t address)
{
    (void)context;
    if (heap == NULL) {
        free((void *)(uintptr_t)address);
    } else {
        allocator_free(heap, address);
    }
}

static uint64_t must_ask(uint64_t bytes)
{
    uint64_t address = ask(NULL, bytes, 0);
    if (address == 0) {
        fputs("bench_allocators: the pool is too small\n", stderr);
        exit(1);
    }
    return address;
}

static double pair_ns(uint32_t batch)
{
    uint64_t begin_ns = clock_now_ns();
    for (uint32_t done = 0; done < PAIRS; done += batch) {
        for (uint32_t i = 0; i < batch; i++) {
            addresses[i] = must_ask(BLOCK_BYTES);
        }
        for (uint32_t i = 0; i < batch; i++) {
            give(NULL, addresses[i]);
        }
    }
    return (double)(clock_now_ns() - begin_ns) / (double)((PAIRS + batch - 1) / batch * batch);
}

// The drawing of a request takes some 5 ns of it.
static double request_ns(uint32_t unused)
{
    static const request_mix training = {"training", 3, 200000, 3000, 1, REQUESTS_TRAINING, 0};
    (void)unused;
    uint64_t begin_ns = clock_now_ns();
    request_subject subject = {NULL, 0, ask, give};
    (void)requests_play(&training, &subject);
    return (double)(clock_now_ns() - begin_ns) / training.operations;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// `holes`: free chunks of 256 B … 64 KiB that lie in the heap before the measurement, each beside a live one.
static void make_holes(uint32_t holes)
{
    for (uint32_t i = 0; i < holes; i++) {
        addresses[i] = must_ask(256 * (uint64_t)(1 + (i * 2654435761u >> 24)));
        (void)must_ask(256);
    }
    for (uint32_t i = 0; i < holes; i++) {
        give(NULL, addresses[i]);
    }
}

static void measure(const char *kind, const char *name, double (*time_ns)(uint32_t), uint32_t batch,
                    uint32_t holes)
{
    double times_ns[ROUNDS];
    make_holes(holes);
    for (int i = 0; i < ROUNDS; i++) {
        times_ns[i] = time_ns(batch);
    }
    qsort(times_ns, ROUNDS, sizeof times_ns[0], by_value);
    printf("%-8s %-44s %8.1f ns   (fastest %.1f)\n", kind, name, times_ns[ROUNDS / 2], times_ns[0]);
}

static const struct {
    const char *name;
    double (*time_ns)(uint32_t batch);
    uint64_t pool_mib;
    uint32_t batch, holes;
} cases[] = {
    {"1 KiB, one live block", pair_ns, 256, 1, 0},
    {"1 KiB, 100 live, then all freed", pair_ns, 256, 100, 0},
    {"1 KiB, 1000 live, then all freed", pair_ns, 256, 1000, 0},
    {"1 KiB, one live, 500 holes in the heap", pair_ns, 256, 1, 500},
    {"1 KiB, 1000 live, 5000 holes in the heap", pair_ns, 256, 1000, 5000},
    {"a request of the stream `training`", request_ns, 1024, 0, 0},
};

static bool open_heap(const char *kind, uint64_t bytes, backing *source)
{
    allocator_config config = allocator_config_of(kind, bytes);
    hr_err err;
    if (backing_numbers_open(bytes, 4096, source, &err) != HR_OK) {
        fprintf(stderr, "bench_allocators: %s\n", err.sentence);
        exit(1);
    }
    if (allocator_create(&config, source, NULL, &heap, &err) != HR_OK) {
        fprintf(stderr, "bench_allocators: %s\n", err.sentence);
        backing_close(source);
        return false;
    }
    return true;
}

static bool measure_kind(const char *kind)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        backing source;
        bool is_malloc = strcmp(kind, "malloc") == 0;
        heap = NULL;
        if (!is_malloc && !open_heap(kind, cases[k].pool_mib * HR_MIB, &source)) {
            return false;
        }
        measure(kind, cases[k].name, cases[k].time_ns, cases[k].batch, cases[k].holes);
        if (!is_malloc) {
            allocator_destroy(heap);
            backing_close(&source);
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"bfc", "caching", "async", "direct"};
    int count = argc > 1 ? argc - 1 : (int)(sizeof all / sizeof *all);
    bool measured = true;
    for (int k = 0; k < count; k++) {
        measured &= measure_kind(argc > 1 ? argv[k + 1] : all[k]);
    }
    return measured ? 0 : 2;
}
