// SPDX-License-Identifier: Apache-2.0
// What our caching allocator answers to random streams, a line each as PyTorch's own prints it
// (tests/bench/peers/pytorch_caching compares them).
//
//   bench_caching_answers VERSION FIRST COUNT    VERSION: as allocator.version
#include <stdio.h>

#include "memory/caching_peer.h"

static void print_answer(uint64_t seed, caching_order order)
{
    caching_random drawn;
    caching_random_stream(seed, &drawn);
    caching_answer a = caching_peer_answer(&drawn.stream, order, NULL);
    printf("    {\"%s\", UINT64_C(0x%016llx), %u, %u, UINT64_C(%llu), UINT64_C(%llu), UINT64_C(%llu), %llu, "
           "%llu, "
           "UINT64_C(%llu), \"%s\"},\n",
           drawn.name, (unsigned long long)a.requests.hash, a.requests.served, a.requests.failed,
           (unsigned long long)a.peak_allocated_bytes, (unsigned long long)a.peak_reserved_bytes,
           (unsigned long long)a.peak_requested_bytes, (unsigned long long)a.retries,
           (unsigned long long)a.device_allocs, (unsigned long long)a.first_failure_bytes,
           a.first_message.length == 0 ? "" : a.first_message.data);
    text_deinit(&a.first_message);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: bench_caching_answers VERSION FIRST COUNT\n", stderr);
        return 2;
    }
    const uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++) {
        print_answer(seed, caching_order_of_version(argv[1]));
    }
    return 0;
}
