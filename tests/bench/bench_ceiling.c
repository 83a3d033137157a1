// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most: the rate of the fastest large matrix product (oneDNN's sgemm) and of the
// fastest large copy, each over a number of threads. Prints one JSON line; asserts nothing.
//
// usage: bench_ceiling THREADS
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { PRODUCT_ROUNDS = 5, COPY_ROUNDS = 7 };
#define COPY_BYTES ((size_t)256 << 20) // far beyond any cache

static void *must_reserve(size_t bytes)
{
    void *memory = aligned_alloc(64, bytes);
    if (memory == NULL) {
        (void)fprintf(stderr, "bench_ceiling: no host memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

static double seconds_since(uint64_t begin_ns)
{
    return (double)(clock_now_ns() - begin_ns) * 1e-9;
}

// The fastest of PRODUCT_ROUNDS products of two n×n matrices, after one that pays for compiling the kernel.
static double product_flops_per_second(dnnl_dim_t n)
{
    size_t count = (size_t)(n * n);
    float *a = must_reserve(3 * count * sizeof *a);
    for (size_t i = 0; i < 3 * count; i++) {
        a[i] = (float)(i % 7) - 3.0f;
    }
    double best = 0;
    for (int round = 0; round <= PRODUCT_ROUNDS; round++) {
        uint64_t begin_ns = clock_now_ns();
        if (dnnl_sgemm('N', 'N', n, n, n, 1.0f, a, n, a + count, n, 0.0f, a + 2 * count, n) != dnnl_success) {
            (void)fputs("bench_ceiling: dnnl_sgemm failed\n", stderr);
            exit(1);
        }
        double rate = 2.0 * (double)count * (double)n / seconds_since(begin_ns);
        best = round > 0 && rate > best ? rate : best;
    }
    free(a);
    return best;
}

static void copy_side_by_side(char *to, const char *from)
{
#pragma omp parallel
    {
        size_t share = COPY_BYTES / (size_t)omp_get_num_threads();
        size_t begin = share * (size_t)omp_get_thread_num();
        memcpy(to + begin, from + begin, share);
    }
}

// Bytes read plus bytes written.
static double copy_bytes_per_second(void)
{
    char *memory = must_reserve(2 * COPY_BYTES);
    memset(memory, 1, 2 * COPY_BYTES);
    double best = 0;
    for (int round = 0; round < COPY_ROUNDS; round++) {
        uint64_t begin_ns = clock_now_ns();
        copy_side_by_side(memory + COPY_BYTES, memory);
        double rate = 2.0 * (double)COPY_BYTES / seconds_since(begin_ns);
        best = rate > best ? rate : best;
    }
    free(memory);
    return best;
}

int main(int argc, char **argv)
{
    int threads = argc == 2 ? atoi(argv[1]) : 0;
    if (threads < 1) {
        (void)fputs("usage: bench_ceiling THREADS\n", stderr);
        return 2;
    }
    omp_set_num_threads(threads);
    double product = 0;
    for (dnnl_dim_t n = 1024; n <= 3072; n += 1024) {
        double rate = product_flops_per_second(n);
        product = rate > product ? rate : product;
    }
    const dnnl_version_t *version = dnnl_version();
    printf(
        "{\"onednn\": \"%d.%d.%d\", \"product_flops_per_second\": %.4g, \"copy_bytes_per_second\": %.4g}\n",
        version->major, version->minor, version->patch, product, copy_bytes_per_second());
    return 0;
}
