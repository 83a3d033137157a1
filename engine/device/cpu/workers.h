// SPDX-License-Identifier: Apache-2.0
// The threads of the cpu device: one OpenMP team, shared with oneDNN. This is the only file with a pragma omp.
#ifndef DEVICE_CPU_WORKERS_H
#define DEVICE_CPU_WORKERS_H

#include <stdint.h>

// The items [begin, end) of worker `worker`.
typedef void (*cpu_body)(const void *argument, int64_t begin, int64_t end, uint32_t worker);

// Splits [0, items) into at most `threads` contiguous ranges of at least `grain` items and runs them side by
// side; one range runs on the caller. Where the cuts lie depends on the numbers alone, so that sums over ranges
// are the same in every run at one thread count. Every range starts at a multiple of `grain`.
void cpu_for(uint32_t threads, int64_t items, int64_t grain, cpu_body body, const void *argument);
// How many ranges cpu_for makes of it, 1 at least.
uint32_t cpu_for_ranges(uint32_t threads, int64_t items, int64_t grain);

// Settles the calling thread and its team: `threads` of them, denormal numbers treated as zero (they make
// kernels ten times slower and oneDNN's own code asks for it). Returns the caller's former mode.
uint32_t workers_settle(uint32_t threads);
void workers_restore(uint32_t mode); // the calling thread only
uint32_t workers_available(void);    // cores this process may run on

#endif
