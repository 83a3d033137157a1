// SPDX-License-Identifier: Apache-2.0
#include "workers.h"

#include <omp.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static int64_t blocks_of(int64_t items, int64_t grain)
{
    return (items + grain - 1) / grain;
}

uint32_t cpu_for_ranges(uint32_t threads, int64_t items, int64_t grain)
{
    int64_t blocks = blocks_of(items, grain);
    if (blocks < 1) {
        return 1;
    }
    return blocks < (int64_t)threads ? (uint32_t)blocks : threads;
}

static void run_range(int64_t items, int64_t grain, uint32_t ranges, uint32_t worker, cpu_body body,
                      const void *argument)
{
    int64_t blocks = blocks_of(items, grain);
    int64_t begin = blocks * worker / ranges * grain;
    int64_t end = blocks * (worker + 1) / ranges * grain;
    body(argument, begin, end < items ? end : items, worker);
}

void cpu_for(uint32_t threads, int64_t items, int64_t grain, cpu_body body, const void *argument)
{
    uint32_t ranges = cpu_for_ranges(threads, items, grain);
    if (ranges == 1) {
        body(argument, 0, items, 0);
        return;
    }
#pragma omp parallel num_threads((int)ranges)
    {
        // A team smaller than asked for still does all ranges, in the same cuts.
        for (uint32_t r = (uint32_t)omp_get_thread_num(); r < ranges; r += (uint32_t)omp_get_num_threads()) {
            run_range(items, grain, ranges, r, body, argument);
        }
    }
}

#if defined(__SSE__)
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };

uint32_t workers_settle(uint32_t threads)
{
    uint32_t before = _mm_getcsr();
    omp_set_dynamic(0);
    omp_set_num_threads((int)threads);
#pragma omp parallel num_threads((int)threads)
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return before;
}

void workers_restore(uint32_t mode)
{
    _mm_setcsr(mode);
}
#else
uint32_t workers_settle(uint32_t threads)
{
    omp_set_dynamic(0);
    omp_set_num_threads((int)threads);
    return 0;
}

void workers_restore(uint32_t mode)
{
    (void)mode;
}
#endif

uint32_t workers_available(void)
{
    int cores = omp_get_num_procs();
    return cores < 1 ? 1u : (uint32_t)cores;
}
