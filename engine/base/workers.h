// SPDX-License-Identifier: Apache-2.0
// Threads that share a piece of work: the kernels of the cpu device, the samples of a batch. (oneDNN brings its own:
// OpenMP's team, see onednn_settle_threads. It and the kernels never work at the same time.)
//
// A step of a small network is some thirty short kernels, so handing out work must cost about a microsecond
// and not the forty of a sleeping thread: a worker that has nothing to do polls for a moment, yielding its core
// at every turn, and then sleeps. Two networks side by side do not slow each other down
// by waiting.
//
// Any worker may run any range: one that sleeps or has no core when its range could begin loses it to one that is
// done, so that a busy machine costs the share of the core that is missing and not the whole wait. What a range
// computes depends on its number alone.
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <pthread.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct workers workers;

// The items [begin, end) of range `worker`, whose scratch no other range uses.
typedef void (*workers_body)(const void *argument, int64_t begin, int64_t end, uint32_t worker);

// `threads` of them, the caller of workers_for included. Denormal numbers are zero on all but the caller.
HR_MUST_CHECK hr_status workers_create(uint32_t threads, workers **out, hr_err *err);
void workers_destroy(workers *w); // NULL is fine
uint32_t workers_count(const workers *w);

// Splits [0, items) into at most as many contiguous ranges as there are workers, each starting at a multiple
// of `grain`, and runs them side by side, each once. Where the cuts lie depends on the
// numbers alone, so that sums over ranges are the same in every run at one thread count. One caller at a
// time. Without workers (NULL) there is one range, on any thread.
void workers_for(workers *w, int64_t items, int64_t grain, workers_body body, const void *argument);
// The same in at most `most` ranges, so that no more than as many of the workers have work; 0 counts as 1.
void workers_for_few(workers *w, int64_t items, uint32_t most, workers_body body, const void *argument);
// The same as workers_for in ranges several times as short, for bodies without scratch whose results do not depend on the cuts: they
// have no use for `worker`.
void workers_for_pieces(workers *w, int64_t items, int64_t grain, workers_body body, const void *argument);
// How many ranges workers_for makes of it, 1 at least.
uint32_t workers_for_ranges(const workers *w, int64_t items, int64_t grain);

// Starts a thread that no signal reaches: those are for the threads that the program knows of. errno's number, or 0.
int thread_start(pthread_t *thread, void *(*run)(void *), void *context);

// Treats denormal numbers as zero on the calling thread, which makes kernels that meet them ten times faster.
// Returns the former mode for workers_restore.
uint32_t workers_flush_denormals(void);
void workers_restore(uint32_t mode);

#endif
