// SPDX-License-Identifier: Apache-2.0
// TensorFlow's retry (tensorflow/core/common_runtime/allocator_retry.cc): an allocator that several threads use, where
// a request that cannot be served waits until somebody frees something, for a while.
//
//   request ──▶ allocator ──served──▶
//                  ▲  │ out of memory, time left
//                  └──┴─ waits; every release wakes everyone     time over: once more, and then it has failed
//
// No knob leads here and nothing of headroom's own uses it: a step never waits in silence, it fails at once with the
// record of why (TensorFlow waits ten seconds before it says so, also where no thread is left to free anything). It is
// for those who replay or embed what TensorFlow does.
//
// All functions but open and close may be called by any thread.
#ifndef MEMORY_RETRY_H
#define MEMORY_RETRY_H

#include <pthread.h>
#include <stdint.h>

#include "memory/allocator.h"

#define RETRY_TENSORFLOW_NS UINT64_C(10000000000) // what TensorFlow waits

// What a waiting thread goes by; a test brings its own.
typedef struct retry_clock {
    void *context;
    uint64_t (*now_ns)(void *context);
    // Lets go of the lock, sleeps until `wake` or until `until_ns` of this clock, and holds the lock again. May return
    // early.
    void (*sleep)(void *context, pthread_cond_t *wake, pthread_mutex_t *lock, uint64_t until_ns);
} retry_clock;

typedef struct retry retry;

// `heap` and the clock's context are borrowed until close; the heap is to be used through this door only. NULL: the
// system's monotonic clock.
HR_MUST_CHECK hr_status retry_open(allocator *heap, const retry_clock *clock, retry **out, hr_err *err);
void retry_close(retry *r); // NULL is fine; no thread waits any longer

// As allocator_serve, but an OOM only after `wait_ns` have passed; 0: at once. Only the last attempt is told to the bus.
HR_MUST_CHECK hr_status retry_serve(retry *r, const allocator_request *request, uint64_t wait_ns,
                                    uint64_t *address, hr_err *err);
void retry_free(retry *r, uint64_t address);
// Lets `act` do something to the heap alone, then wakes everyone: a safe frontier that moves, for one.
void retry_act(retry *r, void (*act)(allocator *heap, void *context), void *context);

#endif
