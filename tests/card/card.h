// SPDX-License-Identifier: Apache-2.0
// What the emulated card (libcuda.so.1 of the tests) offers beside the driver's functions: to the emulated libraries
// that stand on it, and to tests, which see what was asked of it and make it fail. Exported by libcuda.so.1; tests
// reach it with dlsym (tests/card/reach.h).
//
// The environment makes a card before the first call; bytes may end in K, M, G:
//   CARD_VRAM=8G               memory of the card; only what is touched takes memory of this machine
//   CARD_CONTEXT=256M          what a context takes of it
//   CARD_OTHERS=0              what other processes have of it; "1G,3G@100": 3G from the 100th launch on
//   CARD_MULTIPROCESSORS=4
//   CARD_PIECE=2M              of which mapped memory is made; 0: the driver cannot map
//   CARD_DEVICES=1             0: no card
//   CARD_DRIVER=13000          version that the driver tells
//   CARD_SEED=1                of the order in which streams go on
//   CARD_FAIL=cuMemCreate:3:2,cuLaunchKernel:7:719     the 3rd call of the one returns 2, the 7th of the other 719;
//                              of libraries: cudnnBackendFinalize, cudnnBackendExecute, cublasLtMatmul
//   CARD_LOSE_AT=50            the 50th launch uses an illegal address: from there on every call says so
//   CARD_FAIL_ONCE=path        CARD_FAIL and CARD_LOSE_AT are for the one process that makes this file
//   CARD_REFUSE_PLANS=1        cuDNN makes no plan; what it would have to compile it promises all the same
//   CARD_REFUSE_PLANS=load     none once there is a handle: all that was planned is refused when it is loaded
//   CARD_REFUSE_PLANS=gradients     of these, the gradients of attention alone
//   CARD_REFUSE_PLANS=handle   none that is asked for by its handle; by the properties of the card all are made
//   CARD_NO_INT8=1             cuBLASLt has no whole-number kernels
//   CARD_SLOW_HANDLE=1         cuDNN takes its time with a handle: two threads that use one at a time are seen
//   CARD_CUDNN=91001           version that cuDNN tells: 9.10.1
//   CARD_ENGINE_SECONDS=0.1:9,1.0:2     what engines of cuDNN take by the card's clock, beside what the processor takes:
//                              9 s engine 0 with tile 1, 2 s engine 1 with tile 0
//   CARD_PROCESSES=1           others in NVML's list, who share what CARD_OTHERS says; -1: it does not say what each has
//   CARD_GUARD=1               0: host code may read and write the card's memory (it may not while nothing runs)
#ifndef TESTS_CARD_CARD_H
#define TESTS_CARD_CARD_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

// ---- for libraries --------------------------------------------------------------------------------------------------

// Work of the processor in the stream's order. `arguments` is copied at once, as a kernel's are; a stream that captures
// records it as a node, whose copy lives and runs with the graph.
CUresult card_enqueue(CUstream stream, void (*work)(void *arguments), const void *arguments, size_t bytes);

// What CARD_FAIL and card_fail have this call of a library's function return; 0: nothing, it goes on.
int card_fault(const char *function);

// For work under way: by the card's clock (events) it takes so much longer.
void card_take(double ms);

// Do these bytes lie in memory of the card that is there now?
bool card_holds(CUdeviceptr address, size_t bytes);

// ---- for tests ------------------------------------------------------------------------------------------------------

typedef struct card_totals {
    uint64_t calls;            // of every function
    uint64_t allocations;      // of memory of the card or pinned memory, pools' included
    uint64_t synchronisations; // host waits, those inside of copies and frees too
    uint64_t to_card_bytes, from_card_bytes, on_card_bytes; // copied
    uint64_t launches;                                      // of kernels, by graphs too
    uint64_t library_runs;                                  // card_enqueue, by graphs too
    uint64_t graph_launches;
} card_totals;

void card_reset(void); // counts only
void card_count(card_totals *out);
uint64_t card_calls(const char *function);  // "cuMemAlloc_v2"
uint64_t card_launches(const char *kernel); // that have run

// The nth call of `function` from now on (1: the next) returns `result`.
void card_fail(const char *function, uint64_t nth, CUresult result);
// The nth launch from now on uses an illegal address.
void card_lose_at(uint64_t nth);
// What other processes have: `bytes` now, `later_bytes` from the nth launch from now on (0: never).
void card_others(uint64_t bytes, uint64_t later_bytes, uint64_t nth);

// What NVML tells.
typedef struct card_memory {
    uint64_t total_bytes, process_bytes, others_bytes;
    bool present; // is there a card
} card_memory;
void card_memory_now(card_memory *out);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
