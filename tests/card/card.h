// SPDX-License-Identifier: Apache-2.0
// What the emulated card (libcuda.so.1 of the tests) offers beside the driver's functions: to the emulated libraries
// that stand on it. It is exported by libcuda.so.1.
#ifndef TESTS_CARD_CARD_H
#define TESTS_CARD_CARD_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

// Work of the processor in the stream's order. `arguments` is copied at once, as a kernel's are; a stream that captures
// records it as a node, whose copy lives and runs with the graph.
CUresult card_enqueue(CUstream stream, void (*work)(void *arguments), const void *arguments, size_t bytes);

// Do these bytes lie in memory of the card that is there now?
bool card_holds(CUdeviceptr address, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
