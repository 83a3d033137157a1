// SPDX-License-Identifier: Apache-2.0
// What a kernel's threads know of themselves and ask of each other, on the processor: the part of emulated.h that is
// the same for every kernel file. A module of kernels (kernels.cmake) is a shared library that libcuda.so.1 opens.
#ifndef TESTS_CARD_WORDS_H
#define TESTS_CARD_WORDS_H

#include <cmath>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct card_index {
    unsigned x, y, z;
};

#pragma GCC visibility push(default)
extern "C" {
extern card_index threadIdx, blockIdx, blockDim, gridDim;
extern unsigned char *card_dynamic_shared;

// A thread stops here until every thread of its block has come.
void card_syncthreads(void);
// Threads of a warp put `bytes` (at most 8) of `mine` on the table and take what thread `source` of the warp has put
// there; `word` is what all of them must be saying. Returns bit k for thread k: what it has put there is not zero.
unsigned card_exchange(const char *word, unsigned mask, const void *mine, size_t bytes, int source,
                       void *out);
}
#pragma GCC visibility pop

// What a module exports, as `card_kernels` and `card_module`.
struct card_kernel {
    const char *name;
    void (*call)(const void *arguments);
    size_t argument_bytes;
};
struct card_module_info {
    const card_kernel *kernels;
    size_t count;
    unsigned char *shared_begin, *shared_end; // its SHARED variables; NULL without
};

#endif
