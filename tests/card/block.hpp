// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a kernel on the processor. Every thread of a block that waits for others is a fiber with a stack of
// its own; threads that never wait run one after another on one stack. Blocks come in a drawn order, the threads of a
// block from the first or from the last on, as a number says. Shared memory holds NaN bytes at the beginning of a block.
//
// What CUDA forbids is an error, with a line on stderr that names the kernel: a barrier or a shuffle that not all threads
// reach, an address that is nobody's.
#ifndef TESTS_CARD_BLOCK_HPP
#define TESTS_CARD_BLOCK_HPP

#include <cuda.h>
#include <functional>

#include "words.h"

namespace card
{

struct grid {
    card_index blocks, threads;
    unsigned shared_bytes; // dynamic
};

// CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_ADDRESS or CUDA_ERROR_LAUNCH_FAILED.
CUresult run_kernel(const card_kernel &kernel, const card_module_info &module, const grid &g,
                    const void *arguments, uint64_t draw);
// Other work, with the same protection against addresses that are nobody's.
CUresult run_work(const char *name, const std::function<void()> &work);

uint64_t draw_next(uint64_t &state); // splitmix64

} // namespace card

#endif
