// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per allocation and release of 1 KiB in a 256 MiB pool, as XLA measures its own allocator
// (bfc_allocator_test.cc: BM_AllocAndFree, BM_AllocBatchThenFree), and in heaps that are already in pieces.
// Prints medians of 11; asserts nothing.
#include <stdio.h>
#include <stdlib.h>

#include "headroom/units.h"

#include "base/clock.h"
#include "memory/bfc.h"

enum { ROUNDS = 11, PAIRS = 200000, BLOCK_BYTES = 1024, BATCH_MAX = 65536 };

static uint64_t addresses[BATCH_MAX];

static uint64_t must_alloc(allocator *heap, uint64_t bytes)
{
    uint64_t address;
    if (allocator_alloc(heap, bytes, HR_NO_ID, &address, NULL) != HR_OK) {
        fputs("bench_bfc: the pool is too small\n", stderr);
        exit(1);
    }
    return address;
}

static double pair_ns(allocator *heap, uint32_t batch)
{
    uint64_t begin_ns = clock_now_ns();
    for (uint32_t done = 0; done < PAIRS; done += batch) {
        for (uint32_t i = 0; i < batch; i++) {
            addresses[i] = must_alloc(heap, BLOCK_BYTES);
        }
        for (uint32_t i = 0; i < batch; i++) {
            allocator_free(heap, addresses[i]);
        }
    }
    return (double)(clock_now_ns() - begin_ns) / (double)((PAIRS + batch - 1) / batch * batch);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// `holes`: free chunks of 256 B … 64 KiB that lie in the heap before the measurement, each beside a live one.
static void measure(const char *name, uint32_t batch, uint32_t holes)
{
    backing source;
    allocator *heap = NULL;
    allocator_config config = {.kind = "bfc", .limit_bytes = 256 * HR_MIB};
    if (backing_numbers_open(config.limit_bytes, 4096, &source, NULL) != HR_OK ||
        allocator_create(&config, &source, NULL, &heap, NULL) != HR_OK) {
        fputs("bench_bfc: no host memory\n", stderr);
        exit(1);
    }
    for (uint32_t i = 0; i < holes; i++) {
        addresses[i] = must_alloc(heap, 256 * (uint64_t)(1 + (i * 2654435761u >> 24)));
        (void)must_alloc(heap, 256);
    }
    for (uint32_t i = 0; i < holes; i++) {
        allocator_free(heap, addresses[i]);
    }
    double times_ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        times_ns[i] = pair_ns(heap, batch);
    }
    qsort(times_ns, ROUNDS, sizeof times_ns[0], by_value);
    printf("%-44s %7.1f ns a pair   (fastest %.1f)\n", name, times_ns[ROUNDS / 2], times_ns[0]);
    allocator_destroy(heap);
    backing_close(&source);
}

int main(void)
{
    measure("1 KiB, one live block", 1, 0);
    measure("1 KiB, 100 live, then all freed", 100, 0);
    measure("1 KiB, 1000 live, then all freed", 1000, 0);
    measure("1 KiB, one live, 500 holes in the heap", 1, 500);
    measure("1 KiB, 1000 live, 5000 holes in the heap", 1000, 5000);
    return 0;
}
